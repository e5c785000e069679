"""The module names of earlier releases: before the kit had a package of its own, lesson 06 became two, modules merged.

A class folder made then names them, in its ``nbgrader_config.py`` and in its hidden checks, and goes on grading.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_LESSONS = {
    "00_start": {"start": "normalize_images"},
    "01_patchify": {"patches": "patchify unpatchify", "embedding": "patch_embedding conv_from_linear"},
    "02_positions": {
        "positions": "sinusoidal_positions sinusoidal_positions_2d",
        "tokens": "add_class_token resize_positions",
    },
    "03_attention": {
        "attention": "scaled_dot_product_attention",
        "heads": "split_heads",
        "self_attention": "multi_head_self_attention",
        "is_attention": "is_attention",
        "attends": "attention_cases",
    },
    "04_block": {"layer_norm": "layer_norm", "mlp": "mlp", "block": "encoder_block"},
    "05_vit": {"vit": "vision_transformer", "parameters": "count_parameters", "weights": "load_torchvision"},
    "06_training": {
        "splitting": "split_indices",
        "training_loop": "train_one_epoch",
        "evaluation": "evaluate",
        "schedule": "warmup_cosine",
        "decay": "parameter_groups",
        "early_stopping": "early_stopping",
        "loops": "loop_cases",
    },
    "07_experiments": {"results": "vit_cifar"},
    "08_inside": {
        "inside_rollout": "attention_rollout",
        "inside_distance": "mean_attention_distance",
        "inside_prediction": "predict_with_attention",
    },
}
_ENGINE = {
    "compare": "words differences",
    "exercise": "in_training examples",
    "verdict": "show",
    "student": "student_module",
    "run": "arguments carried",
    "rules": "tensor_operations",
    "probes": "isolation",
    "expect": "common parts",
    "records": "answers",
    "two_mistakes": "rearranging two_at_once likely_pairs",
}
# old name, of a module or of a package with all that it holds → the new ones; the longest that fits counts
NAMES: dict[str, tuple[str, ...]] = {
    "vit_course.checks": ("exercise_kit.engine",),
    **{
        f"vit_course.checks.{old}": (f"exercise_kit.engine.{new}",)
        for new, names in _ENGINE.items()
        for old in names.split()
    },
    "vit_course.checks.catalogue": ("vit_course.exercises.catalog",),
    "vit_course.checks.lessons": ("vit_course.exercises",),
    "vit_course.checks.misconceptions": ("vit_course.exercises",),
    **{
        f"vit_course.checks.{package}.{old}": tuple(f"vit_course.exercises.l{lesson}.{each}" for each in new.split())
        for package in ("lessons", "misconceptions")
        for lesson, modules in _LESSONS.items()
        for old, new in modules.items()
    },
    "vit_course.exercises.l06_cifar": ("vit_course.exercises.l06_training",),
    **{
        f"vit_course.exercises.l06_cifar.{each}": (f"vit_course.exercises.l07_experiments.{each}",)
        for each in ("vit_cifar", "weights_file", "model_accuracy")
    },
    "vit_course.exercises.l07_inside": ("vit_course.exercises.l08_inside",),
    "vit_course.exercises.references": ("vit_course.staff.references",),
    "vit_course.exercises.l03_attention.hidden_attention_cases": ("vit_course.staff.hidden_attention_cases",),
    "vit_course.checks.lessons.chance": ("vit_course.exercises.repeatability",),
    "vit_course.grading": ("exercise_kit",),
    "vit_course.grading.submissions": ("exercise_kit.submission",),
    "vit_course.grading.judging": ("exercise_kit.judge",),
    "vit_course.grading.judging.hidden_fixtures": ("exercise_kit.judge.fixtures",),
    "vit_course.grading.judging.attends": ("vit_course.staff.hidden_attention_cases",),
    "vit_course.grading.judging.wrong_attends": ("vit_course.staff.hidden_attention_cases",),
    "vit_course.grading.classroom": ("exercise_kit.nbgrader",),
    "vit_course.grading.classroom.receiving": ("exercise_kit.nbgrader.submission_exporter",),
    "vit_course.grading.classroom.restore": ("exercise_kit.nbgrader.cleaning",),
    "vit_course.grading.classroom.ungraded": ("exercise_kit.nbgrader.nbgrader_judge",),
    "vit_course.grading.classroom.feedback": ("exercise_kit.nbgrader.nbgrader_judge",),
    "vit_course.grading.simulating": ("exercise_kit.simulate",),
    "vit_course.authoring": ("exercise_kit.authoring",),
    "vit_course.famous": ("vit_course.torchvision_vit",),
    "vit_course.files": ("exercise_kit.files",),
    "vit_course.reasons": ("exercise_kit.reasons",),
    "vit_course.supported": ("exercise_kit.versions",),
    "vit_course.data.loaders": ("vit_course.data.image_dataset",),
    "vit_course.data.superclasses": ("vit_course.data.torchvision_sets",),
    "vit_course.training.atomic_files": ("vit_course.training.checkpoints",),
    "vit_course.training.tally": ("vit_course.training.loop",),
}
# module → what could once be imported from it, and the module where that is now
MOVED = {
    "vit_course.config": {"PRESETS": "vit_course.recipes.presets"},
    "vit_course.patches": {"conv_from_linear": "vit_course.pretrained"},
    "vit_course.positions": {"resize_positions": "vit_course.pretrained"},
    "vit_course.vit": {"initialise": "vit_course.initialisation"},
}


class Renamed(MetaPathFinder, Loader):
    """Finds a module under its old name: the one module that there is."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of an old name, or of a module that something has moved out of; None for any other."""
        if fullname in MOVED:
            return _with_moved(PathFinder.find_spec(fullname, path, target), MOVED[fullname])
        return ModuleSpec(fullname, self, is_package=True) if new_names(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module by its new name; where there are several, one that finds what they hold."""
        modules = [import_module(each) for each in new_names(spec.name)]
        if len(modules) == 1:
            spec.loader_state = modules[0].__spec__
            return modules[0]
        whole = ModuleType(spec.name)
        for each in reversed(modules):
            vars(whole).update({name: value for name, value in vars(each).items() if not name.startswith("__")})
        return whole

    def exec_module(self, module: ModuleType) -> None:
        """It has run already, and stays what it is."""
        if module.__spec__ is not None and module.__spec__.loader_state is not None:
            module.__spec__ = module.__spec__.loader_state


def _with_moved(spec: ModuleSpec | None, moved: Mapping[str, str]) -> ModuleSpec | None:
    """The spec of a module that also finds what has moved out of it, when somebody asks for it there."""
    if spec is None or spec.loader is None:
        return spec
    execute = spec.loader.exec_module

    def exec_module(module: ModuleType) -> None:
        def find(name: str) -> Any:
            if name not in moved:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return getattr(import_module(moved[name]), name)

        execute(module)
        vars(module)["__getattr__"] = find

    vars(spec.loader)["exec_module"] = exec_module
    return spec


def new_names(name: str) -> tuple[str, ...]:
    """What the modules are called that hold what one of this name did; none where there never was one."""
    parts = name.split(".")
    for length in range(len(parts), 1, -1):
        if new := NAMES.get(".".join(parts[:length])):
            return tuple(".".join((each, *parts[length:])) for each in new)
    return ()


def install() -> None:
    """From here on old names lead to the modules."""
    if not any(isinstance(each, Renamed) for each in sys.meta_path):
        sys.meta_path.insert(0, Renamed())  # else Python's own finder would load a package's modules a second time
