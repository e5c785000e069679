"""What grading asks beside the claims of the second course."""

import pytest

from exercise_kit.engine.expect import expect_input_gradients


@pytest.mark.exercise("moving_average", points=1)
def test_every_value_gets_its_gradient(student, reference, probe):
    """The gradient of every mean returns to the values of its window."""
    rows, width, more = probe.sizes(3)
    values = probe.normal(rows, width + more)
    expect_input_gradients(student, (values, width), ("values",), reference.moving_average, ("row", "place"))
