"""The course, as the kit that checks, grades and reports knows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from exercise_kit.engine.course import Course, Deferred, Measure, Modules, Results
from vit_course.exercises.simulated_answers import SIMULATION

if TYPE_CHECKING:
    from exercise_kit.engine.call_rules import Rule
    from exercise_kit.engine.exercise import Exercise
    from exercise_kit.engine.pace import Pace
    from exercise_kit.engine.probes import Probe
    from exercise_kit.engine.student import Student
    from vit_course.exercises.l07_experiments.model_accuracy import ModelAccuracy

# what stands in the place of `hunt` while the judge grades: it draws nothing
_HUNTS = '''"""Stands where the bug hunts are while a student works: every ground of theirs holds an answer."""


class Suspect:
    """What a hunt gives while the judge grades: nothing to be read or run."""

    code = ""

    def __call__(self, *inputs: object, **options: object) -> object:
        """There is no program here."""
        raise RuntimeError("bug hunts are not there while grading; no point depends on them")

    program = __call__

    def check(self, mended: object = None) -> "Suspect":
        """Decide nothing."""
        return self

    def __repr__(self) -> str:
        return "a bug hunt is not shown while grading; no point depends on it"


def hunt(exercise: str = "", seed: object = 1, bugs: object = 1) -> Suspect:
    """Draw nothing."""
    return Suspect()
'''

_DIAGNOSIS = '''"""Stands where `diagnose` is while a student works."""


def diagnose(model: object, images: object, **more: object) -> str:
    """Ask nothing."""
    return "diagnose is not there while grading; no point depends on it"
'''

_WHOLE_VIT = '''"""Stands where a student's own ViT is put together while a student works; no point depends on it."""


def your_vit() -> None:
    """Build nothing."""


def learn_drawings(model: object) -> None:
    """Train nothing."""
'''


_TRAINING = ("__init__", "settings", "history", "fitting", "checkpoints", "progress", "muon")
_MODULES = Modules(
    shared=(
        *("__init__", "config", "recording", "recipes/presets", "data", "metrics", "trained"),
        *("plots", "plots_attention", "plots_training", "interactive", "explore", "torchvision_vit"),
        *(f"training/{name}" for name in _TRAINING),
    ),
    answers={
        **{"patches": 1, "positions": 2, "attention": 3, "encoder": 4, "initialisation": 5, "vit": 5},
        **{"pretrained": 5, "interpret": 8, "fine_tuning": 9, "modern": 10},
    },
    tools={
        **dict.fromkeys(("training/loop", "training/early_stopping", "training/optimizers"), 6),
        "data/splits": 6,
    },
    fixtures={
        "exercises/training_fixtures": 6,
        "exercises/experiment_fixtures": 7,
        "exercises/inside_fixtures": 8,
        "exercises/transfer_fixtures": 9,
        "exercises/modern_fixtures": 10,
    },
    stand_ins={
        "exercises/__init__.py": "",
        "hunts/__init__.py": _HUNTS,
        "diagnosis/__init__.py": "",
        "diagnosis/asking.py": _DIAGNOSIS,
        "whole_vit.py": _WHOLE_VIT,
        "recipes/__init__.py": "",
    },
)
_REFERENCE_MODULES = {
    "patchify": "vit_course.patches",
    "sinusoidal_positions": "vit_course.positions",
    "scaled_dot_product_attention": "vit_course.attention",
    "split_heads": "vit_course.attention",
    "Mlp": "vit_course.encoder",
    "attention_rollout": "vit_course.interpret",
}

# in the README.md of a class folder
_ON_RESULTS = """\
Lesson 07 is handed in as a folder: the notebook, and beside it `vit_cifar.safetensors`, the weights that the student
has trained. They are measured on test images of CIFAR-10, the same for the whole class; nothing is downloaded for it.
Name the folder that holds them (`cifar10.npz`, or what torchvision has put there) before you grade:

    export VIT_COURSE_DATA=/path/to/data

Without them that exercise is not graded yet, and the grader says so. When they are there, grade again: with nbgrader
by `--force`, since it skips whom it has graded.

These test images are public: whoever trains on them earns all points of that exercise, and no file betrays it. Compare
with the accuracies that the notebook shows and with the answers to its questions, and let those whose model surprises
you train once more beside you. Or measure on labeled photos of your own of the ten classes, 250 or more: a
`cifar10.npz` with `test_images` (N, 32, 32, 3) as uint8, `test_labels`, and the names of the ten `classes` in \
CIFAR-10's order.

"""


def _load_exercises() -> Mapping[str, Exercise]:
    from vit_course.exercises.catalog import EXERCISES

    return EXERCISES


def _load_call_rules() -> Mapping[str, Rule]:
    from vit_course.exercises.forbidden_calls import RULES

    return RULES


def _load_fixture_inputs(fields: Mapping[str, Any]) -> Sequence[object] | None:
    from vit_course.exercises.fixture_inputs import fixture_inputs

    return fixture_inputs(fields)


def _load_lesson_paces() -> Mapping[str, Pace]:
    from vit_course.exercises.paces import PACES

    return PACES


def _load_references() -> Mapping[str, tuple[Callable[..., Any], ...]]:
    from vit_course.staff.references import REFERENCE

    return REFERENCE


def _load_graded_claims() -> None:
    from vit_course.exercises.catalog import load_graded

    load_graded()


def _make_class_measure(secret: bytes) -> Measure:
    from vit_course.exercises.l07_experiments.model_accuracy import make_accuracy_for_secret

    return make_accuracy_for_secret(secret)


def _read_images_fingerprint() -> object:
    from vit_course.exercises.l07_experiments.model_accuracy import read_fingerprint_of_images

    return read_fingerprint_of_images()


def _read_site_address() -> str:
    """The site's address, which the builder has written for the package."""
    return str(json.loads((Path(__file__).parent / "exercises" / "addresses.json").read_bytes())["site"])


def _load_quoted_texts() -> Mapping[str, Callable[[], str]]:
    from vit_course.staff.quoted import QUOTED

    return QUOTED


def _make_measured_results(student: Student, probe: Probe, measure: Measure | None) -> object:
    from vit_course.exercises.l07_experiments.model_accuracy import Results as MeasuredResults
    from vit_course.exercises.l07_experiments.model_accuracy import make_accuracy_for_probe

    return MeasuredResults(student, cast("ModelAccuracy", measure) if measure else make_accuracy_for_probe(probe))


COURSE = Course(
    exercises=Deferred(_load_exercises),
    rules=Deferred(_load_call_rules),
    modules=_MODULES,
    reference_modules=_REFERENCE_MODULES,
    references=_load_references,
    load_graded=_load_graded_claims,
    results=Results(_make_class_measure, _read_images_fingerprint, _make_measured_results, _ON_RESULTS),
    records={"ViTConfig": "vit_course.config"},
    examples={"VisionTransformer": "vit_course.vit", "torchvision": "", "numpy": ""},
    training_fixtures=tuple(f"vit_course.{each.replace('/', '.')}" for each in _MODULES.fixtures),
    fixture_inputs=_load_fixture_inputs,
    copied_from=(
        *("patches", "positions", "attention", "encoder", "initialisation", "vit", "pretrained", "interpret"),
        *("fine_tuning", "modern", "data/splits", "training/loop", "training/early_stopping", "training/optimizers"),
        "staff/references",
    ),
    prescribed=frozenset({"fix_patchify", "fix_block", "fix_vit", "fix_training", "Mlp", "EncoderBlock"}),
    own_parts="my_vit.py",
    built_upon=frozenset(
        # their last cell keeps
        ("01_patchify", "02_positions", "03_attention", "04_block", "05_vit", "06_training", "09_fine_tuning")
    ),
    title="The Vision Transformer, by hand",
    highlights={"test-accuracy": "{:.1f} % right on test images, by a model of my own"},
    assembled={
        "Your ViT": (
            *("PatchEmbedding", "add_class_token", "MultiHeadSelfAttention"),
            *("Mlp", "EncoderBlock", "VisionTransformer"),
        )
    },
    site=_read_site_address(),
    quoted=Deferred(_load_quoted_texts),
    simulation=SIMULATION,
    paces=Deferred(_load_lesson_paces),
)
