"""All exercises by name, in the order of the course."""

from __future__ import annotations

import vit_course.checks.misconceptions.attention
import vit_course.checks.misconceptions.block
import vit_course.checks.misconceptions.decay
import vit_course.checks.misconceptions.early_stopping
import vit_course.checks.misconceptions.embedding
import vit_course.checks.misconceptions.evaluation
import vit_course.checks.misconceptions.heads
import vit_course.checks.misconceptions.inside_distance
import vit_course.checks.misconceptions.inside_prediction
import vit_course.checks.misconceptions.inside_rollout
import vit_course.checks.misconceptions.is_attention
import vit_course.checks.misconceptions.layer_norm
import vit_course.checks.misconceptions.mlp
import vit_course.checks.misconceptions.parameters
import vit_course.checks.misconceptions.patches
import vit_course.checks.misconceptions.positions
import vit_course.checks.misconceptions.positions_2d
import vit_course.checks.misconceptions.resizing
import vit_course.checks.misconceptions.results
import vit_course.checks.misconceptions.schedule
import vit_course.checks.misconceptions.self_attention
import vit_course.checks.misconceptions.splitting
import vit_course.checks.misconceptions.start
import vit_course.checks.misconceptions.tokens
import vit_course.checks.misconceptions.training_loop
import vit_course.checks.misconceptions.vit
import vit_course.checks.misconceptions.weights
import vit_course.checks.pairs.attention
import vit_course.checks.pairs.inside
import vit_course.checks.pairs.layer_norm
import vit_course.checks.pairs.layouts
import vit_course.checks.pairs.positions
import vit_course.checks.pairs.schedule
import vit_course.checks.pairs.start
import vit_course.checks.pairs.tokens
import vit_course.checks.pairs.training
import vit_course.checks.pairs.whole_model  # noqa: F401  # importing a module of mistakes adds them to its exercises
from vit_course.checks.exercise import Exercise
from vit_course.checks.lessons import (
    attention,
    block,
    decay,
    early_stopping,
    embedding,
    evaluation,
    heads,
    inside_distance,
    inside_prediction,
    inside_rollout,
    is_attention,
    layer_norm,
    mlp,
    parameters,
    patches,
    positions,
    results,
    schedule,
    self_attention,
    splitting,
    start,
    tokens,
    training_loop,
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
        splitting,
        training_loop,
        evaluation,
        schedule,
        decay,
        early_stopping,
        results,
        inside_rollout,
        inside_distance,
        inside_prediction,
    )
    for each in vars(lesson).values()
    if isinstance(each, Exercise)
}
