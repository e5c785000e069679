"""The package's names come on demand: a module that is not there hides its own names and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import vit_course.training as training

HERE = Path(training.__file__).parent


def test_every_name_that_it_offers_is_there() -> None:
    assert set(training.__all__) == {name for names in training._HOME.values() for name in names}
    assert all(getattr(training, name) is not None for name in training.__all__)


def test_no_name_is_that_of_a_module() -> None:
    """Python would put the module in the place of the name as soon as it is imported."""
    assert set(training.__all__) & {path.stem for path in HERE.glob("*.py")} == set()


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'vit_course\.training' has no attribute 'nothing'"):
        training.nothing  # noqa: B018


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


TRAIN = """
import torch
from vit_course.data import shapes
from vit_course.training import TrainingSettings, fit
fit(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10)), *[shapes(20, image_size=8)] * 2,
    TrainingSettings(epochs=1))
"""


def test_a_training_that_keeps_nothing_needs_torch_and_nothing_heavier() -> None:
    heavy = "{'torchvision', 'sklearn', 'matplotlib', 'accelerate', 'tensorboard', 'transformers', 'psutil'}"
    assert run(f"import sys\n{TRAIN}\nprint({heavy} & set(sys.modules))") == "set()"


def test_fit_and_checkpoints_can_be_imported_where_lesson_06_is_graded() -> None:
    hidden = ["loop", "early_stopping", "optimizers"]
    code = (
        f"import sys; sys.modules |= {{f'vit_course.training.{{name}}': None for name in {hidden}}}\n"
        "from vit_course.training import History, TrainingSettings, draws_progress, fit, load_model, save_model\n"
        "print(fit.__name__)"
    )
    assert run(code) == "fit"
