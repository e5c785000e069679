"""Hidden checks of is_attention: the student's test, asked about right and wrong attention.

Saying no to everything catches every mistake, and saying yes to everything lets every right one pass. So every check
asks about right attention too, in a random order, and about a right and a wrong one twice: who guesses earns nothing.
"""

import pytest
import torch

from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.verdict import Failure, NotWritten
from vit_course.staff.hidden_attention_cases import RIGHT, WRONG

RIGHT_ONES = 2  # in a check; the nine checks together ask about each right attention at least once


def expect_told_apart(student, probe, family, look):
    """Fail unless the test says True to right attention and False to the wrong one of ``family``.

    All answers are gathered before the verdict, so that the whole pattern goes on record.
    """
    first = RIGHT_ONES * list(WRONG).index(family)
    right = [RIGHT[(first + number) % len(RIGHT)] for number in range(RIGHT_ONES)]
    wrong = WRONG[family](probe)
    asked = [*((each, True) for each in (*right, right[0])), *((each, False) for each in (*wrong, wrong[-1]))]
    order = probe.permutation(len(asked)).tolist()
    failures = [(asked[place][1], problem_with(student, *asked[place], look)) for place in order]
    for about_right in (True, False):  # a refusal of right attention is told first
        for is_right, failure in failures:
            if failure and is_right == about_right:
                raise failure


def problem_with(student, suspect, is_right, look):
    """The failure when the student's test answers wrong about one suspect, None when it is right."""
    described = f"an attend that {'is right: it ' if is_right else ''}{suspect.described}"
    try:
        torch.default_generator.manual_seed(0)  # a test that draws without a seed draws the same for every attend
        answer = student(lambda query, key, value: suspect.attend(query, key, value))  # no name gives it away
    except NotWritten:
        raise
    except Failure as failure:
        asks = "A fact may turn out false, but is_attention should still answer. What could it return then?"
        return Failure(f"{failure.seen}; it was asked about {described}", str(is_right), failure.look or asks)
    if not is_bool(answer):
        seen = "None" if answer is None else f"a {type(answer).__name__}"
        return Failure(f"is_attention(attend) gives {seen}", "True or False", "What does each `return` give back?")
    if bool(answer) is is_right:
        return None
    far = "Print what your test compares, for this one. Is a fact of yours wrong, or only too strict?"
    return Failure(f"is_attention(attend) is {bool(answer)} for {described}", str(is_right), far if is_right else look)


def is_bool(answer):
    """Whether it is True or False, be it as a tensor or a number of numpy."""
    if isinstance(answer, torch.Tensor):
        return answer.dtype == torch.bool and answer.numel() == 1
    return type(answer).__name__ in ("bool", "bool_")


@pytest.mark.exercise("is_attention", points=0.5)
def test_it_catches_wrong_shapes(student, probe):
    """It catches output or weights of a wrong shape, and lets right attention pass."""
    look = "Which shapes do you expect when queries, keys and both dimensions all differ in size?"
    expect_told_apart(student, probe, "shape", look)


@pytest.mark.exercise("is_attention", points=0.75)
def test_it_catches_rows_that_do_not_sum_to_one(student, probe):
    """It catches weights of a query that do not sum to one, and lets right attention pass."""
    look = "Which sums of the weights do you know without computing any attention?"
    expect_told_apart(student, probe, "sums", look)


@pytest.mark.exercise("is_attention", points=1.25)
def test_it_catches_another_scale(student, probe):
    """It catches scores that are not divided by the root of head_dim, and lets right attention pass."""
    look = "Which example can you work out with a pencil, and are two of its sizes equal by accident?"
    expect_told_apart(student, probe, "scale", look)


@pytest.mark.exercise("is_attention", points=0.5)
def test_it_catches_altered_queries_and_keys(student, probe):
    """It catches scores that leave out a number of each key, or change its length, and lets right attention pass."""
    look = "Which numbers could be missing from the scores of your pencil example, and nothing would change?"
    expect_told_apart(student, probe, "altered", look)


@pytest.mark.exercise("is_attention", points=1)
def test_it_catches_an_output_of_other_values(student, probe):
    """It catches an output that is no mean of the values under the weights, and lets right attention pass."""
    look = "When you know weights and values, what must the output be, and how exactly?"
    expect_told_apart(student, probe, "values", look)


@pytest.mark.exercise("is_attention", points=1.25)
def test_it_catches_places_that_matter(student, probe):
    """It catches attention that treats tokens by their place, and lets right attention pass."""
    look = "What happens to right attention when keys and values are shuffled alike, or the queries are?"
    expect_told_apart(student, probe, "places", look)


@pytest.mark.exercise("is_attention", points=0.75)
def test_it_catches_weights_of_another_output(student, probe):
    """It catches weights and an output that do not belong together, and lets right attention pass."""
    look = "Does your test look at output and weights apart, or also at the two together?"
    expect_told_apart(student, probe, "belonging", look)


@pytest.mark.exercise("is_attention", points=0.75)
def test_it_catches_images_that_get_mixed(student, probe):
    """It catches images of a batch that get mixed, and lets right attention pass."""
    look = "Does the answer for one image change when it is alone?"
    expect_told_apart(student, probe, "images", look)


@pytest.mark.exercise("is_attention", points=1)
def test_it_catches_what_is_no_softmax(student, probe):
    """It catches weights that sum to one but are no softmax of the scores, and lets right attention pass."""
    look = "Which numbers, worked out by hand, would only a softmax of dot products give?"
    expect_told_apart(student, probe, "softmax", look)


@pytest.mark.exercise("is_attention", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The example in the docstring comes out as it stands there, and right attention passes."""
    look = "Which shapes do you expect when queries, keys and both dimensions all differ in size?"
    expect_told_apart(student, probe, "shape", look)
    expect_example(student)
