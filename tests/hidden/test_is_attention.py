"""Hidden checks of is_attention: the student's test, asked about right and wrong attention."""

import pytest

from exercise_kit.engine.exercise import expect_example
from vit_course.staff.hidden_attention_cases import RIGHT, WRONG
from vit_course.staff.impostors import HiddenLineUp


def unnamed(attend):
    return lambda query, key, value: attend(query, key, value)


LINE_UP = HiddenLineUp("an attend", "your own attention", RIGHT, WRONG, unnamed)


@pytest.mark.exercise("is_attention", points=0.5)
def test_it_catches_wrong_shapes(student, probe):
    """It catches output or weights of a wrong shape, and lets right attention pass."""
    look = "Which shapes do you expect when queries, keys and both dimensions all differ in size?"
    LINE_UP.expect_distinguished(student, probe, "shape", look)


@pytest.mark.exercise("is_attention", points=0.75)
def test_it_catches_rows_that_do_not_sum_to_one(student, probe):
    """It catches weights of a query that do not sum to one, and lets right attention pass."""
    look = "Which sums of the weights do you know without computing any attention?"
    LINE_UP.expect_distinguished(student, probe, "sums", look)


@pytest.mark.exercise("is_attention", points=1.25)
def test_it_catches_another_scale(student, probe):
    """It catches scores that are not divided by the root of head_dim, and lets right attention pass."""
    look = "Which example can you work out with a pencil, and are two of its sizes equal by accident?"
    LINE_UP.expect_distinguished(student, probe, "scale", look)


@pytest.mark.exercise("is_attention", points=0.5)
def test_it_catches_altered_queries_and_keys(student, probe):
    """It catches scores that leave out a number of each key, or change its length, and lets right attention pass."""
    look = "Which numbers could be missing from the scores of your pencil example, and nothing would change?"
    LINE_UP.expect_distinguished(student, probe, "altered", look)


@pytest.mark.exercise("is_attention", points=1)
def test_it_catches_an_output_of_other_values(student, probe):
    """It catches an output that is no mean of the values under the weights, and lets right attention pass."""
    look = "When you know weights and values, what must the output be, and how exactly?"
    LINE_UP.expect_distinguished(student, probe, "values", look)


@pytest.mark.exercise("is_attention", points=1.25)
def test_it_catches_places_that_matter(student, probe):
    """It catches attention that treats tokens by their place, and lets right attention pass."""
    look = "What happens to right attention when keys and values are shuffled alike, or the queries are?"
    LINE_UP.expect_distinguished(student, probe, "places", look)


@pytest.mark.exercise("is_attention", points=0.75)
def test_it_catches_weights_of_another_output(student, probe):
    """It catches weights and an output that do not belong together, and lets right attention pass."""
    look = "Does your test look at output and weights apart, or also at the two together?"
    LINE_UP.expect_distinguished(student, probe, "belonging", look)


@pytest.mark.exercise("is_attention", points=0.75)
def test_it_catches_images_that_get_mixed(student, probe):
    """It catches images of a batch that get mixed, and lets right attention pass."""
    look = "Does the answer for one image change when it is alone?"
    LINE_UP.expect_distinguished(student, probe, "images", look)


@pytest.mark.exercise("is_attention", points=1)
def test_it_catches_what_is_no_softmax(student, probe):
    """It catches weights that sum to one but are no softmax of the scores, and lets right attention pass."""
    look = "Which numbers, worked out by hand, would only a softmax of dot products give?"
    LINE_UP.expect_distinguished(student, probe, "softmax", look)


@pytest.mark.exercise("is_attention", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and right attention passes."""
    look = "Which shapes do you expect when queries, keys and both dimensions all differ in size?"
    LINE_UP.expect_distinguished(student, probe, "shape", look)
    expect_example(student)
