"""Hidden checks of ``vit_cifar``: the weights of a trained model, by its accuracy on held-out images of CIFAR-10."""

import pytest

from vit_course.exercises.l07_experiments.vit_cifar.claims import THRESHOLDS, claim


@pytest.mark.exercise("vit_cifar", points=1)
def test_it_can_be_measured(student, results):
    """The file is a whole weights file, and its model, of 10 million parameters at most, can classify images."""
    results.measured()


def _at_least(percent):
    def test(student, results):
        results.expect_at_least(percent)

    test.__name__ = test.__qualname__ = f"test_at_least_{percent}_percent"
    test.__doc__ = claim(percent)
    return pytest.mark.exercise("vit_cifar", points=THRESHOLDS[percent])(test)


test_at_least_40_percent = _at_least(40)
test_at_least_50_percent = _at_least(50)
test_at_least_60_percent = _at_least(60)
test_at_least_65_percent = _at_least(65)
test_at_least_70_percent = _at_least(70)
