"""All exercises by name, in the order of the course."""

from __future__ import annotations

import vit_course.exercises.misconceptions.attention
import vit_course.exercises.misconceptions.block
import vit_course.exercises.misconceptions.decay
import vit_course.exercises.misconceptions.early_stopping
import vit_course.exercises.misconceptions.embedding
import vit_course.exercises.misconceptions.evaluation
import vit_course.exercises.misconceptions.heads
import vit_course.exercises.misconceptions.inside_distance
import vit_course.exercises.misconceptions.inside_prediction
import vit_course.exercises.misconceptions.inside_rollout
import vit_course.exercises.misconceptions.is_attention
import vit_course.exercises.misconceptions.layer_norm
import vit_course.exercises.misconceptions.mlp
import vit_course.exercises.misconceptions.parameters
import vit_course.exercises.misconceptions.patches
import vit_course.exercises.misconceptions.positions
import vit_course.exercises.misconceptions.positions_2d
import vit_course.exercises.misconceptions.resizing
import vit_course.exercises.misconceptions.results
import vit_course.exercises.misconceptions.schedule
import vit_course.exercises.misconceptions.self_attention
import vit_course.exercises.misconceptions.splitting
import vit_course.exercises.misconceptions.start
import vit_course.exercises.misconceptions.tokens
import vit_course.exercises.misconceptions.training_loop
import vit_course.exercises.misconceptions.vit
import vit_course.exercises.misconceptions.weights
import vit_course.exercises.pairs.attention
import vit_course.exercises.pairs.inside
import vit_course.exercises.pairs.layer_norm
import vit_course.exercises.pairs.layouts
import vit_course.exercises.pairs.positions
import vit_course.exercises.pairs.schedule
import vit_course.exercises.pairs.start
import vit_course.exercises.pairs.tokens
import vit_course.exercises.pairs.training
import vit_course.exercises.pairs.whole_model  # noqa: F401  # importing a module of mistakes adds them to its exercises
from exercise_kit.engine.exercise import Exercise
from vit_course.exercises.checks import (
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
