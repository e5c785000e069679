"""`nbgrader release_feedback` for a class in which some students have not used nbgrader's exchange.

nbgrader puts a page where only its student finds it: the page's name is made of a secret that `nbgrader submit` writes
beside the notebook. Work that came another way has no such secret. There nbgrader's own step ends in a traceback, and
the pages of all later students are not released.
"""

from __future__ import annotations

from glob import escape, glob
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback

SECRET, TIMESTAMP = "submission_secret.txt", "timestamp.txt"


class ReleaseFeedback(ExchangeReleaseFeedback):
    """nbgrader's step, student by student."""

    src_path: str  # which nbgrader sets without a type

    def copy_files(self) -> None:
        """Release the page of everybody who has a secret, and say who has none.

        Raises:
            ExchangeError: there is no feedback.
        """
        folders = [Path(found) for found in sorted(glob(self.src_path)) if any(Path(found).glob("*.html"))]
        if not folders:
            lesson = self.coursedir.assignment_id
            self.fail(
                f"there is no feedback for {lesson} in {self.src_path}; first: nbgrader generate_feedback {lesson}"
            )
        without = [folder for folder in folders if not all((folder / name).is_file() for name in (SECRET, TIMESTAMP))]
        for folder in folders:
            if folder not in without:
                self.src_path = escape(str(folder))
                super().copy_files()
        for folder in without:
            self.log.warning(
                "%s: not released, for it was not handed in by 'nbgrader submit'; the page is in %s",
                folder.parent.name,
                folder,
            )
