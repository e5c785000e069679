"""nbgrader's commands, one after the other in one process: each alone imports torch and starts a judge anew.

Run it in a class folder as ``python nbgrader_commands.py COMMANDS``, with a JSON list of lists of words.
"""

from __future__ import annotations

import json
import sys

from nbgrader.apps import AutogradeApp, ExportApp, GenerateAssignmentApp, GenerateFeedbackApp

APPS = {
    "generate_assignment": GenerateAssignmentApp,
    "autograde": AutogradeApp,
    "generate_feedback": GenerateFeedbackApp,
    "export": ExportApp,
}


def main() -> None:
    """Run them; the first that fails ends it, with its exit status."""
    for name, *words in json.loads(sys.argv[1]):
        app = APPS[name]()
        app.initialize(words)
        app.start()


if __name__ == "__main__":  # the judge's own processes import this file
    main()
