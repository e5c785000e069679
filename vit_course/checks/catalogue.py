"""All exercises by name, in the order of the course."""

from __future__ import annotations

import vit_course.checks.misconceptions.attention
import vit_course.checks.misconceptions.block
import vit_course.checks.misconceptions.embedding
import vit_course.checks.misconceptions.heads
import vit_course.checks.misconceptions.is_attention
import vit_course.checks.misconceptions.layer_norm
import vit_course.checks.misconceptions.mlp
import vit_course.checks.misconceptions.parameters
import vit_course.checks.misconceptions.patches
import vit_course.checks.misconceptions.positions
import vit_course.checks.misconceptions.resizing
import vit_course.checks.misconceptions.self_attention
import vit_course.checks.misconceptions.start
import vit_course.checks.misconceptions.tokens
import vit_course.checks.misconceptions.vit
import vit_course.checks.misconceptions.weights  # noqa: F401  # importing a module of mistakes adds them to its exercises
from vit_course.checks.exercise import Exercise
from vit_course.checks.lessons import (
    attention,
    block,
    embedding,
    heads,
    is_attention,
    layer_norm,
    mlp,
    parameters,
    patches,
    positions,
    self_attention,
    start,
    tokens,
    vit,
    weights,
)

EXERCISES: dict[str, Exercise] = {
    each.name: each
    for lesson in (
        start,
        patches,
        embedding,
        positions,
        tokens,
        attention,
        heads,
        self_attention,
        is_attention,
        layer_norm,
        mlp,
        block,
        vit,
        parameters,
        weights,
    )
    for each in vars(lesson).values()
    if isinstance(each, Exercise)
}
