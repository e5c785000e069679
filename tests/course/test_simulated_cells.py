"""The proof of simulated answers: a cell that holds a mistake fails as the mistake does that it was made of."""

import random
from functools import cache

import pytest

from exercise_kit.engine.records import same_record
from exercise_kit.engine.two_mistakes import pairs_of
from exercise_kit.simulate.answer_pool import AnswerPool, LessonPools
from exercise_kit.simulate.modules import load_right_variants
from exercise_kit.submission.released import Lessons
from tests.course.test_hidden_checks import EACH_EXERCISE, KEYS, ROOT, choose_mistakes, outcomes_of, summary
from vit_course.exercises.catalog import EXERCISES

# of each exercise's pairs; all of them take an hour
PAIRS = 3
# what is forbidden cannot be called under another name: a layer of torch as a whole
NO_CELL = {
    ("VisionTransformer", "library layers for the blocks"),
    ("fix_vit", "library layers for the blocks"),
    ("count_parameters", "built to be counted"),
}
# what lessons import in cells of their own
IMPORTS = """
import copy
import math
from dataclasses import replace
import torch
import torch.nn.functional as F
from torch import nn
from vit_course.attention import MultiHeadSelfAttention, merge_heads, split_heads
from vit_course.config import ViTConfig
from vit_course.encoder import EncoderBlock
from vit_course.patches import PatchEmbedding
from vit_course.positions import add_class_token
"""


@cache
def shelves_of(lesson_name):
    """The shelves of a lesson's exercises; made for each lesson alone, since processes share the exercises."""
    lesson = next(each for each in lessons() if each.name == lesson_name)
    models = {name: _without_marks(source) for name, source in lesson.model_answers.items()}
    return LessonPools(lesson, models, variants()).pools


@cache
def lessons():
    return tuple(Lessons(None, ROOT))


@cache
def variants():
    return load_right_variants()


@pytest.fixture
def pool(exercise) -> AnswerPool:
    return shelves_of(EXERCISES[exercise].lesson)[exercise]


def _without_marks(source):
    return "\n".join(line for line in source.split("\n") if "### " not in line)


def of_cell(exercise, source):
    """The objects that a cell defines, when it is the only one of a notebook."""
    namespace = {"__name__": "__main__"}
    exec(compile(source, f"<a cell of {exercise}>", "exec"), namespace)
    return tuple(namespace[name] for name in EXERCISES[exercise].objects)


def expect_the_same(exercise, source, objects):
    own, cells = (outcomes_of(exercise, each, KEYS[0]) for each in (objects, of_cell(exercise, source)))
    for one, other in zip(own, cells, strict=True):
        assert one.result.verdict == other.result.verdict, f"{source}\n{summary(cells)}"
        assert same_record(one.record, other.record), f"{source}\n{one.check.name}: {one.record}\n{other.record}"


@EACH_EXERCISE
@pytest.mark.proof
def test_a_misconception_in_a_cell_does_what_the_librarys_own_does(exercise, pool):
    for wrong in [] if EXERCISES[exercise].file else choose_mistakes(EXERCISES[exercise]):
        answer = pool.answer_with_mistake(wrong)
        if answer is None:
            assert (exercise, wrong.name) in NO_CELL, pool.explain_left_out()[wrong.name]
            continue
        expect_the_same(exercise, answer.source, wrong.objects)
        assert "exercise_kit.engine" not in answer.source
        assert wrong.cause.explanation[:30] not in answer.source, "it gives the mistake away"


@EACH_EXERCISE
@pytest.mark.proof
def test_two_mistakes_in_a_cell_do_what_the_librarys_own_do(exercise, pool):
    pairs = [] if EXERCISES[exercise].file else list(pairs_of(EXERCISES[exercise]))
    for pair in random.Random(exercise).sample(pairs, min(PAIRS, len(pairs))):
        made = pool.write_mistake_cell(pair)
        if (exercise, pair.first.name) not in NO_CELL and (exercise, pair.second.name) not in NO_CELL:
            expect_the_same(exercise, made, pair.objects)


@EACH_EXERCISE
@pytest.mark.proof
def test_right_answers_in_cells_are_right(exercise, pool):
    """The model answer in other words, and a variant, each with its own copy of what it takes from other cells."""
    for answer in pool.right[1:3]:
        source = pool.make_self_contained(answer).source
        outcomes = outcomes_of(exercise, of_cell(exercise, IMPORTS + source), KEYS[0])
        assert all(each.result.verdict == "pass" for each in outcomes), f"{source}\n{summary(outcomes)}"
        assert ".variants" not in source
