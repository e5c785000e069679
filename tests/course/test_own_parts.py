"""``keep`` and ``own``: what a student wrote goes from lesson to lesson, or the course's part takes its place."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest
import torch

import vit_course
from exercise_kit.authoring.lesson import Role, read_lesson
from exercise_kit.engine import own_folder, own_parts, run
from vit_course import ViTConfig, check, keep, own
from vit_course.course import COURSE
from vit_course.exercises.catalog import EXERCISES
from vit_course.trained import trained_vit
from vit_course.whole_vit import your_vit

ROOT = Path(__file__).parents[2]
COURSE_S = {f"vit_course.{each}" for each in ("patches", "attention", "encoder")}
LESSONS = tuple(sorted(COURSE.built_upon))
HEAD = "import math\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
PATCHIFY = """
def sides(images, patch_size):
    return images.shape[2] // patch_size, images.shape[3] // patch_size


def patchify(images, patch_size):
    for name, side in (("height", images.shape[2]), ("width", images.shape[3])):
        if side % patch_size:
            raise ValueError(f"{name} {side} is not divisible by patch_size {patch_size}")
    batch, channels, _, _ = images.shape
    rows, columns = sides(images, patch_size)
    patches = images.reshape(batch, channels, rows, patch_size, columns, patch_size).permute(0, 2, 4, 1, 3, 5)
    return patches.reshape(batch, rows * columns, channels * patch_size**AREA)


AREA = 2
"""
EMBEDDING = """
class PatchEmbedding(nn.Module):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim)

    def forward(self, images):
        return self.projection(patchify(images, self.patch_size))
"""


MINE = """

# %% [markdown]
# my notes
# %% scratch
from collections import (
    Counter,
)
# %% scratch
# %% my_tools, one and all
def double(x):
    return 2 * x
"""


def join_statements(statements: Iterable[ast.stmt]) -> str:
    return "\n".join(map(ast.unparse, statements))


class Notebook:
    """The variables of a notebook, whose cells can be found again as those of IPython can."""

    def __init__(self) -> None:
        self.module = ModuleType("__main__")
        self.cells = 0

    def run(self, source: str) -> None:
        self.cells += 1
        name = f"<cell {self.cells} of {id(self)}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        exec(compile(source, name, "exec"), vars(self.module))

    def check(self, exercise: str) -> bool:
        return check(exercise, *(vars(self.module)[name] for name in EXERCISES[exercise].objects)).passed

    def keep(self, exercise: str, source: str) -> None:
        """Run a right answer, pass its check and keep it."""
        self.run(source)
        assert self.check(exercise)
        keep(exercise)


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch) -> Path:
    """A folder of its own, in which nothing has passed yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "_passed_objects", {})
    monkeypatch.setattr(own_parts, "_reports", {})
    monkeypatch.delitem(sys.modules, "my_vit", raising=False)
    yield tmp_path / "my_vit.py"
    sys.modules.pop("my_vit", None)


@pytest.fixture
def notebook() -> Notebook:
    made = Notebook()
    made.run(HEAD)
    return made


@pytest.fixture
def notebook_with_kept_patchify(notebook) -> Notebook:
    """A notebook whose patchify is kept."""
    notebook.keep("patchify", PATCHIFY)
    return notebook


def test_the_model_solutions_build_on_one_another(working_folder, capsys):
    """Each lesson takes its parts from those before, and the class gives torchvision's logits and the trained ViT's.

    The ViT of lesson 00 holds after each lesson what was kept so far.
    """
    from torchvision.models import VisionTransformer as TorchvisionTransformer

    borrowed: list[set[str]] = []
    for lesson in LESSONS:
        notebook = Notebook()
        for cell in read_lesson(ROOT, ROOT / "solutions" / f"{lesson}.py").cells:
            if cell.role is Role.EXERCISE and "fix_" not in str(cell.name):
                notebook.run(cell.source)
                assert notebook.check(str(cell.name)), cell.name
            elif cell.role is Role.CODE and cell.source.startswith(("import ", "from ")):
                statements = ast.parse(cell.source).body
                notebook.run(
                    join_statements(each for each in statements if isinstance(each, ast.Import | ast.ImportFrom))
                )
                notebook.run(join_statements(each for each in statements if "own(" in ast.unparse(each)))
            elif cell.role is Role.CODE and cell.source.startswith("keep("):
                notebook.run(cell.source)
                _, *inside = your_vit().modules()
                borrowed.append({type(each).__name__ for each in inside if type(each).__module__ in COURSE_S})
    last = ast.parse((ROOT / "solutions" / "10_modern.py").read_text("utf-8")).body
    exec(
        join_statements(each for each in last if isinstance(each, ast.Assign) and "own(" in ast.unparse(each)),
        {"own": own},
    )
    said = capsys.readouterr().out
    assert "not kept" not in said
    mine = [int(each) for each in re.findall(r"Your ViT: (\d) of 6 parts are yours", said)]
    assert mine == [1, 2, 3, 5, 6, 6, 6], "parts of six, after each lesson that keeps answers"
    assert said.count("The course's") == 4  # in these ViTs alone
    blocks = {"Encoder", "EncoderBlock", "Mlp"}
    assert borrowed[:2] == [{"MultiHeadSelfAttention", *blocks}] * 2
    assert borrowed[2:] == [blocks, {"Encoder"}, set(), set(), set()]
    model_class, load_torchvision = own("VisionTransformer", "load_torchvision")
    for name in ("VisionTransformer", "EncoderBlock", "MultiHeadSelfAttention", "scaled_dot_product_attention"):
        assert inspect.getsourcefile(getattr(sys.modules["my_vit"], name)) == str(working_folder)
    theirs = TorchvisionTransformer(32, 8, 2, 4, 48, 96, num_classes=5).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, 0.1, 0.3)
    config = ViTConfig(32, 8, num_classes=5, embed_dim=48, depth=2, num_heads=4, mlp_ratio=2.0)
    mine = load_torchvision(model_class(config), theirs.state_dict()).eval()
    assert {type(each).__module__ for each in mine.modules()} <= {"my_vit", *_list_torch_modules(mine)}
    images = torch.randn(3, 3, 32, 32)
    torch.testing.assert_close(mine(images), theirs(images))
    torch.testing.assert_close(trained_vit(model_class).model(images), trained_vit().model(images))


def _list_torch_modules(model: torch.nn.Module) -> set[str]:
    return {name for name in (type(each).__module__ for each in model.modules()) if name.startswith("torch.")}


def test_a_part_takes_its_helpers_and_constants_along(notebook, working_folder, capsys):
    notebook.keep("patchify", PATCHIFY)
    assert capsys.readouterr().out.startswith("Kept in my_vit.py: `patchify`.")
    patchify = own("patchify")
    assert capsys.readouterr().out == "Your own, from my_vit.py: `patchify`.\n"
    assert patchify.__module__ == "my_vit"
    assert "AREA = 2" in working_folder.read_text()


def test_a_part_that_calls_another_takes_it_along_once_that_has_passed(notebook, working_folder, capsys):
    notebook.run(PATCHIFY)
    notebook.run(EMBEDDING)
    assert notebook.check("PatchEmbedding")
    keep("PatchEmbedding")
    assert "It calls your `patchify`, which has to pass its check first" in capsys.readouterr().out
    assert not working_folder.exists()
    assert notebook.check("patchify")
    keep("PatchEmbedding")
    assert "Kept in my_vit.py: `PatchEmbedding`." in capsys.readouterr().out
    own("PatchEmbedding", "patchify")
    assert capsys.readouterr().out == "Your own, from my_vit.py: `PatchEmbedding`, `patchify`.\n"


def test_what_a_kept_part_imports_of_the_course_is_the_course_s(notebook, working_folder, capsys):
    notebook.run("from vit_course import patchify")
    notebook.keep("PatchEmbedding", EMBEDDING)
    assert "from vit_course import patchify" in working_folder.read_text("utf-8")
    capsys.readouterr()
    assert own("patchify", "PatchEmbedding")[0] is vit_course.patchify
    assert capsys.readouterr().out == "Your own, from my_vit.py: `PatchEmbedding`.\nThe course's: `patchify`.\n"


def test_what_has_not_passed_is_not_kept(notebook, working_folder, capsys):
    keep("patchify", "patchfy")
    said = capsys.readouterr().out
    assert 'patchify is not kept. It has to pass its check first: `check("patchify", patchify)`.' in said
    assert 'Did you mean `keep("' in said
    assert not working_folder.exists()


def test_what_needs_the_notebook_is_not_kept(notebook, working_folder, capsys):
    reads = PATCHIFY.replace("return images.shape[2]", "picture\n    return images.shape[2]")
    notebook.keep("patchify", "picture = torch.zeros(3)\n" + reads)
    assert "`sides` uses `picture`, a tensor of this notebook" in capsys.readouterr().out.replace("Tensor", "tensor")
    assert not working_folder.exists()


def test_a_part_that_has_gone_wrong_is_the_course_s(notebook, working_folder, capsys):
    notebook.keep("patchify", PATCHIFY)
    notebook.keep("PatchEmbedding", EMBEDDING)
    working_folder.write_text(
        working_folder.read_text().replace("permute(0, 2, 4, 1, 3, 5)", "permute(0, 4, 2, 1, 3, 5)")
    )
    capsys.readouterr()
    patchify, embedding = own("patchify", "PatchEmbedding")
    said = capsys.readouterr().out
    assert patchify is vit_course.patchify
    assert embedding is vit_course.PatchEmbedding, "its patches are in the wrong order"
    assert "`patchify` in my_vit.py is not used." in said
    assert "`PatchEmbedding` in my_vit.py is not used. PatchEmbedding is right. It calls your `patchify`" in said
    assert said.endswith("The course's: `patchify`, `PatchEmbedding`.\n")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("def half(", "my_vit.py is not Python in line"),
        ("print(1 / 0)", "with ZeroDivisionError: division by zero"),
        ("import no_such_module", "with ModuleNotFoundError"),
        ("from vit_course import a_part_of_an_older_release", "with ImportError: cannot import name"),
    ],
)
def test_a_damaged_file_is_named_and_left_alone(notebook_with_kept_patchify, working_folder, capsys, damage, words):
    working_folder.write_text(damaged := working_folder.read_text() + "\n# %% mine\n" + damage)
    capsys.readouterr()
    assert own("patchify") is vit_course.patchify
    assert words in capsys.readouterr().out
    keep("patchify")
    assert "patchify is not kept. my_vit.py" in capsys.readouterr().out
    assert working_folder.read_text() == damaged


def test_parts_of_an_older_release_give_way_to_the_course_s_and_what_it_no_longer_asks_for_stays(
    notebook_with_kept_patchify, working_folder, capsys
):
    older = EMBEDDING.replace("in_channels, patch_size, embed_dim", "patch_size, embed_dim, in_channels=3")
    working_folder.write_text(
        working_folder.read_text()
        + f"\n\n# %% PatchEmbedding\nfrom torch import nn\n{older}\n\n# %% cut_tokens\ncut_tokens = patchify\n"
    )
    capsys.readouterr()
    patchify, embedding = own("patchify", "PatchEmbedding")
    said = capsys.readouterr().out
    assert patchify.__module__ == "my_vit"
    assert embedding is vit_course.PatchEmbedding
    assert "`PatchEmbedding` in my_vit.py is not used. " in said
    assert "Your own, from my_vit.py: `patchify`.\nThe course's: `PatchEmbedding`.\n" in said
    notebook_with_kept_patchify.keep("PatchEmbedding", EMBEDDING)
    assert own("PatchEmbedding").__module__ == "my_vit"
    assert "# %% cut_tokens\ncut_tokens = patchify\n" in working_folder.read_text()


def test_what_a_student_wrote_into_the_file_stays(notebook_with_kept_patchify, working_folder):
    working_folder.write_text(working_folder.read_text() + MINE)
    notebook_with_kept_patchify.keep("PatchEmbedding", EMBEDDING)
    assert own("PatchEmbedding").__module__ == "my_vit"
    assert sys.modules["my_vit"].double(2) == 4
    assert "# %% [markdown]\n# my notes\n" in working_folder.read_text()
    assert working_folder.read_text().count("# %% scratch") == 2


def test_a_part_that_is_kept_anew_loses_nothing_of_the_old_one(notebook_with_kept_patchify, working_folder):
    working_folder.write_text(
        mine := working_folder.read_text().replace("# %% patchify\n", "# %% patchify\n# my note\n")
    )
    notebook_with_kept_patchify.keep("patchify", PATCHIFY.replace("rows", "down").replace("columns", "across"))
    assert "down, across" in working_folder.read_text()
    assert working_folder.with_name("my_vit.before.py").read_text() == mine


def test_in_a_class_the_file_lies_beside_the_lessons_folders(tmp_path, monkeypatch, notebook, capsys):
    for lesson in ("01_patchify", "02_positions"):
        (tmp_path / lesson).mkdir()
    monkeypatch.chdir(tmp_path / "01_patchify")
    notebook.keep("patchify", PATCHIFY)
    monkeypatch.chdir(tmp_path / "02_positions")
    assert own("patchify").__module__ == "my_vit"


def test_on_colab_with_a_drive_they_are_kept_there(tmp_path, monkeypatch, notebook, capsys):
    drive, here = tmp_path / "MyDrive", tmp_path / "content"
    for folder in (drive, here):
        folder.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(own_folder, "DRIVE", drive)
    monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
    notebook.keep("patchify", PATCHIFY)
    assert f"Kept in {drive / 'my_vit.py'}: `patchify`." in (said := capsys.readouterr().out)
    assert "mount your Drive" not in said
    assert [path.name for path in drive.iterdir()] == ["my_vit.py"]
    assert list(here.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder here in which nobody can write")
def test_in_a_folder_that_cannot_be_written_it_says_so(monkeypatch, notebook, capsys):
    monkeypatch.chdir("/proc")
    notebook.keep("patchify", PATCHIFY)
    said = capsys.readouterr().out
    assert said.startswith("patchify is not kept. /proc/my_vit.py cannot be written: ")
    assert "mount your Drive" in said


def test_a_passing_check_offers_to_keep(notebook):
    notebook.run(PATCHIFY)
    report = check("patchify", vars(notebook.module)["patchify"])
    assert '`keep("patchify")` takes it to the next lessons.' in str(report)
    assert "keep(" not in str(check("patchify", lambda images, patch_size: images))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pachify", 'The course has no part called `pachify`. Did you mean `own("patchify")`?'),
        ("attn", "The course has no part called `attn`. There are: DropPath, EarlyStopping, "),
        (vit_course.patchify, 'The name of a part comes in quotes: `own("patchify")`. This is the function patchify.'),
        (3, "The name of a part comes in quotes: `own("),
    ],
)
def test_a_part_that_the_course_does_not_have_gets_a_sentence_and_no_traceback(name, words):
    with pytest.raises(AttributeError) as caught:
        own(name)
    assert caught.value._render_traceback_()[0].startswith(words)


def test_after_a_restart_what_is_kept_stays_and_keep_says_so(
    notebook_with_kept_patchify, working_folder, monkeypatch, capsys
):
    before = working_folder.read_text("utf-8")
    monkeypatch.setattr(run, "_passed_objects", {})
    keep("patchify")
    assert "patchify stays in my_vit.py as it is. To replace it, check yours first: " in capsys.readouterr().out
    assert working_folder.read_text("utf-8") == before
