"""A report in a script: printed where nobody else shows it, and not twice."""

import subprocess
import sys

import pytest

from exercise_kit.engine import check

REPORT = str(check("patchify", None))


@pytest.fixture
def run_script(tmp_path):
    def write_and_run(source):
        path = tmp_path / "mine.py"
        path.write_text(f"from exercise_kit.engine import check\n{source}\n")
        return subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    return write_and_run


def test_a_check_whose_report_nobody_uses_prints_it(run_script):
    in_a_function = "def main():\n    check('patchify', None)\n    return 3\nmain()"
    assert run_script(f"check('patchify', None)\n{in_a_function}") == f"{REPORT}\n" * 2


def test_a_report_that_is_used_is_left_to_whoever_uses_it(run_script):
    assert run_script("print(check('patchify', None))\nkept = check('patchify', None)") == f"{REPORT}\n"


def test_outside_of_a_script_nothing_is_printed(run_script, capsys):
    check("patchify", None)
    exec(compile("check('patchify', None)", "<cell>", "exec"), {"check": check, "__name__": "__main__"})
    assert capsys.readouterr().out == ""
