"""Hidden checks of ``vit_cifar``: the weights of a trained model, by its accuracy on held-out images of CIFAR-10."""

import pytest


@pytest.mark.exercise("vit_cifar", points=1)
def test_it_can_be_measured(student, results):
    """The file is a whole weights file, and its model, of 10 million parameters at most, can classify images."""
    results.measured()


@pytest.mark.exercise("vit_cifar", points=1)
def test_at_least_40_percent(student, results):
    """It is right on at least 40 % of held-out images of CIFAR-10."""
    results.expect_at_least(40)


@pytest.mark.exercise("vit_cifar", points=1.5)
def test_at_least_50_percent(student, results):
    """It is right on at least 50 % of held-out images of CIFAR-10."""
    results.expect_at_least(50)


@pytest.mark.exercise("vit_cifar", points=1.5)
def test_at_least_60_percent(student, results):
    """It is right on at least 60 % of held-out images of CIFAR-10."""
    results.expect_at_least(60)


@pytest.mark.exercise("vit_cifar", points=1.5)
def test_at_least_65_percent(student, results):
    """It is right on at least 65 % of held-out images of CIFAR-10."""
    results.expect_at_least(65)


@pytest.mark.exercise("vit_cifar", points=1.5)
def test_at_least_70_percent(student, results):
    """It is right on at least 70 % of held-out images of CIFAR-10."""
    results.expect_at_least(70)
