"""The proof of simulated answers: a cell that holds a mistake fails as the mistake does that it was made of."""

import random
from functools import cache

import pytest

from exercise_kit.engine.records import is_same_record
from exercise_kit.engine.two_mistakes import list_pairs
from exercise_kit.simulate.answer_pool import AnswerPool, LessonPools
from exercise_kit.simulate.modules import load_right_variants
from exercise_kit.submission.released import Lessons
from tests.course.test_hidden_checks import (
    EACH_EXERCISE,
    KEYS,
    ROOT,
    choose_mistakes,
    run_hidden_checks,
    summarize_outcomes,
)
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
def make_answer_pools(lesson_name):
    """The shelves of a lesson's exercises; made for each lesson alone, since processes share the exercises."""
    lesson = next(each for each in read_lessons() if each.name == lesson_name)
    models = {name: _remove_solution_marks(source) for name, source in lesson.model_answers.items()}
    return LessonPools(lesson, models, load_variants()).pools


@cache
def read_lessons():
    return tuple(Lessons(None, ROOT))


@cache
def load_variants():
    return load_right_variants()


@pytest.fixture
def answer_pool(exercise) -> AnswerPool:
    return make_answer_pools(EXERCISES[exercise].lesson)[exercise]


def _remove_solution_marks(source):
    return "\n".join(line for line in source.split("\n") if "### " not in line)


def run_cell(exercise, source):
    """The objects that a cell defines, when it is the only one of a notebook."""
    namespace = {"__name__": "__main__"}
    exec(compile(source, f"<a cell of {exercise}>", "exec"), namespace)
    return tuple(namespace[name] for name in EXERCISES[exercise].objects)


def expect_the_same(exercise, source, objects):
    own, cells = (run_hidden_checks(exercise, each, KEYS[0]) for each in (objects, run_cell(exercise, source)))
    for one, other in zip(own, cells, strict=True):
        assert one.result.verdict == other.result.verdict, f"{source}\n{summarize_outcomes(cells)}"
        assert is_same_record(one.record, other.record), f"{source}\n{one.check.name}: {one.record}\n{other.record}"


@EACH_EXERCISE
@pytest.mark.proof
def test_a_misconception_in_a_cell_does_what_the_librarys_own_does(exercise, answer_pool):
    for wrong in [] if EXERCISES[exercise].file else choose_mistakes(EXERCISES[exercise]):
        answer = answer_pool.answer_with_mistake(wrong)
        if answer is None:
            assert (exercise, wrong.name) in NO_CELL, answer_pool.explain_omitted_mistakes()[wrong.name]
            continue
        expect_the_same(exercise, answer.source, wrong.objects)
        assert "exercise_kit.engine" not in answer.source
        assert wrong.cause.explanation[:30] not in answer.source, "it gives the mistake away"


@EACH_EXERCISE
@pytest.mark.proof
def test_two_mistakes_in_a_cell_do_what_the_librarys_own_do(exercise, answer_pool):
    pairs = [] if EXERCISES[exercise].file else list(list_pairs(EXERCISES[exercise]))
    for pair in random.Random(exercise).sample(pairs, min(PAIRS, len(pairs))):
        made = answer_pool.write_mistake_cell(pair)
        if (exercise, pair.first.name) not in NO_CELL and (exercise, pair.second.name) not in NO_CELL:
            expect_the_same(exercise, made, pair.objects)


@EACH_EXERCISE
@pytest.mark.proof
def test_right_answers_in_cells_are_right(exercise, answer_pool):
    """The model answer in other words, and a variant, each with its own copy of what it takes from other cells."""
    for answer in answer_pool.right[1:3]:
        source = answer_pool.make_self_contained(answer).source
        outcomes = run_hidden_checks(exercise, run_cell(exercise, IMPORTS + source), KEYS[0])
        assert all(each.result.verdict == "pass" for each in outcomes), f"{source}\n{summarize_outcomes(outcomes)}"
        assert ".variants" not in source
