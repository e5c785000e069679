"""Run All of a lesson in which nothing is written yet, or all of it wrong: no cell fails, those that wait say so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exercise_kit.authoring.lesson import Role, read_lesson
from tests.answers import read_empty_cell
from tests.bare_python import isolate_environment

ROOT = Path(__file__).parents[2]
LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
RUN = """
import contextlib, dataclasses, io, json, sys
import vit_course.data
from IPython.core.interactiveshell import InteractiveShell

def smaller(*arguments, split=vit_course.data.train_validation_split, **options):
    # 64 images to look at do: how often a model is right on 500 takes lesson 08 a quarter of a minute
    train, validation = split(*arguments, **options)
    few = {name: getattr(validation, name)[:64] for name in ("images", "labels")}
    return train, dataclasses.replace(validation, **few)

vit_course.data.train_validation_split = smaller
shell = InteractiveShell.instance()
shell.colors = "NoColor"
for line in sys.stdin:
    failed, scores, shown = [], [], io.StringIO()
    shell.reset(new_session=False)
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        for cell in json.loads(line):
            done = shell.run_cell(cell, store_history=True)
            if not done.success:
                failed.append([cell, repr(done.error_before_exec or done.error_in_exec)])
            if getattr(done.result, "score", None) is not None:
                scores.append(done.result.score)
    print(json.dumps({"failed": failed, "shown": shown.getvalue(), "scores": scores}), flush=True)
"""


@pytest.fixture(scope="module")
def run_notebook(tmp_path_factory):
    """Runs the cells of a notebook; all notebooks in one process, each without what others have defined."""
    folder = tmp_path_factory.mktemp("run_all")
    environment = isolate_environment(dict(os.environ)) | {"IPYTHONDIR": str(folder), "MPLBACKEND": "agg"}
    command = [sys.executable, "-W", "ignore", "-c", RUN]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=environment, text=True
    ) as process:

        def send_cells(cells):
            process.stdin.write(f"{json.dumps(cells)}\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield send_cells
        process.stdin.close()


EMPTY = read_empty_cell("patchify")


def list_code_cells(lesson: str) -> list[str]:
    """The code cells of a student's notebook; without experiments, which take minutes."""
    cells = json.loads((ROOT / "notebooks" / f"{lesson}.ipynb").read_bytes())["cells"]
    code = (each for each in cells if each["cell_type"] == "code")
    return ["".join(each["source"]) for each in code if "experiment" not in each["metadata"].get("tags", ())]


@pytest.mark.parametrize("lesson", LESSONS)
def test_run_all_with_nothing_written_fails_in_no_cell_and_earns_nothing(lesson, run_notebook):
    ran = run_notebook(list_code_cells(lesson))
    assert ran["failed"] == []
    source = read_lesson(ROOT, ROOT / "solutions" / f"{lesson}.py")
    assert ran["scores"] == [0.0 for check in source.list_cells_of_role(Role.CHECK)]
    unwritten = [each.name for each in source.list_cells_of_role(Role.EXERCISE) if not each.name.startswith("fix_")]
    assert [name for name in unwritten if name not in ran["shown"]] == []


@pytest.mark.parametrize("wrong", ["raise RuntimeError('mine')", "return None"])
@pytest.mark.parametrize("lesson", LESSONS)
def test_run_all_with_wrong_answers_fails_in_no_cell(lesson, wrong, run_notebook):
    ran = run_notebook([cell.replace("raise NotImplementedError", wrong) for cell in list_code_cells(lesson)])
    assert ran["failed"] == []


def test_a_cell_that_needs_a_failing_exercise_waits_and_says_what_stopped_it(run_notebook):
    wrong = "def patchify(images, patch_size):\n    return images.reshape(5, -1)"
    given = ["import torch\nfrom vit_course import check\nimages = torch.rand(1, 3, 4, 4)", wrong]
    calls = ["patches = patchify(images, 2)", "print(patches.shape)"]
    through = ["def cut(images):\n    return patchify(images[:, :, :, :2], 2)", "strips = cut(images)", "strips[9]"]
    right = wrong.replace("(5, -1)", "(5 - 4, -1, 12)")
    ran = run_notebook([*given, "check('patchify', patchify)", *calls, *through, right, *calls])
    assert ran["failed"] == []
    at = "whose check fails. It stops at `return images.reshape(5, -1)`: `RuntimeError: shape '[5, -1]' is invalid"
    assert ran["shown"].count(f"○ This cell waits for `patchify`, {at}") == 2
    assert ran["shown"].count("○ This cell waits for `patchify`. Repair it") == 2
    assert ran["shown"].strip().endswith("torch.Size([1, 4, 12])")


def test_a_cell_that_waits_says_so_and_so_does_one_that_needs_what_it_would_have_made(run_notebook):
    given = "import torch\nfrom vit_course import check\nimages = torch.rand(1, 3, 4, 4)\npatches = 'old'"
    waiting = "patches = patchify(images, 2)"
    after = ["print(patches.shape)", "print([patches for each in range(2)])", "print('can run')"]
    ran = run_notebook([given, EMPTY, waiting, *after])
    assert ran["failed"] == []
    assert ran["shown"].count("○ This cell waits for `patchify`.") == 3
    assert "old" not in ran["shown"]
    assert "can run" in ran["shown"]


def test_what_a_waiting_cell_has_half_filled_is_taken_away(run_notebook):
    half = "size = 2\nfound = []\nfor each in range(3):\n    found.append(patchify(each, size))"
    ran = run_notebook(["from vit_course import check", EMPTY, half, "print(len(found))", "print(size)"])
    assert ran["failed"] == []
    assert ran["shown"].count("waits for `patchify`") == 2
    assert ran["shown"].strip().endswith("2")


@pytest.mark.parametrize(
    "cell",
    [
        "check('patchify', patches_of)",
        "def cut(images):\n    return images[9]\ncut('')",
        "raise NotImplementedError",
        "def mine():\n    raise NotImplementedError\nmine()",
        "1 / 0",
    ],
    ids=[
        "a check of a name that waits",
        "an error that has nothing to do with it",
        "not an exercise's",
        "in a function of the student's",
        "another error",
    ],
)
def test_other_errors_stay_errors(cell, run_notebook):
    ran = run_notebook(["from vit_course import check", EMPTY, "patches_of = patchify(1, 2)", cell])
    assert [each for each, _ in ran["failed"]] == [cell]


def test_once_it_is_written_nothing_waits(run_notebook):
    uses = ["patches = patchify(3, 2)", "print('made', patches)"]
    written = "def patchify(images, patch_size):\n    return images * patch_size"
    ran = run_notebook(["from vit_course import check", EMPTY, *uses, written, *uses])
    assert ran["failed"] == []
    assert ran["shown"].count("waits") == 2
    assert ran["shown"].strip().endswith("made 6")


def test_a_class_without_a_signature_in_the_notebook_is_no_trouble_for_a_check(run_notebook):
    """As the setup cell's own exception is one."""
    stub = (
        "class Mlp(torch.nn.Module):\n    def __init__(self, embed_dim, hidden_dim):\n        raise NotImplementedError"
    )
    ran = run_notebook(["import torch\nfrom vit_course import check\nStop = type('Stop', (Exception,), {})", stub,
                   "print(check('Mlp', Mlp))"])  # fmt: skip
    assert ran["failed"] == []
    assert "Mlp is not written yet" in ran["shown"]
