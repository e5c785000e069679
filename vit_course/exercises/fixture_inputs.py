"""What the training fixtures of the course pass to a student's code, as a message about an error there names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from exercise_kit.engine.compare import describe_argument
from exercise_kit.engine.course import NamedArgument

MODEL = NamedArgument("a small model")


def fixture_inputs(fields: Mapping[str, Any]) -> Sequence[object] | None:
    """The arguments that a fixture makes of these fields; None: they are the arguments."""
    if "batches" in fields:
        count = len(fields["batches"])
        return MODEL, NamedArgument(f"{count} batch{'' if count == 1 else 'es'} of images")
    if "parts" in fields:
        return MODEL, *(fields[name] for name in ("weight_decay", "backbone_lr", "head_lr") if name in fields)
    if "config" in fields and "num_classes" in fields:
        return MODEL, fields["num_classes"]
    if "seed" in fields:
        shown = (value for name, value in fields.items() if name not in ("seed", "calls", "global_seed"))
        return *shown, NamedArgument("a generator")
    if "branch" in fields:
        return fields["probability"], NamedArgument(f"and given {describe_argument(fields['branch'])}")
    if "image" in fields:
        return MODEL, fields["image"]
    if "losses" in fields:
        return fields["patience"], NamedArgument("and given a few losses")
    return None
