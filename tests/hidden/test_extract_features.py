"""Hidden checks of ``extract_features``: models of any size, batches of any."""

from dataclasses import replace

import pytest

from exercise_kit.engine.exercise import expect_example
from vit_course.exercises.l05_vit.vision_transformer.claims import TALL_MODEL, WIDE_MODEL
from vit_course.exercises.l09_fine_tuning.extract_features.claims import (
    expect_evaluation,
    expect_features,
    expect_mode,
    expect_no_graph,
    expect_no_trace,
    expect_nothing_after_an_error,
    expect_on_the_cpu,
    expect_one_pass,
    expect_rows,
)


def _config(probe):
    """A model of any width."""
    chosen = (WIDE_MODEL, TALL_MODEL)[int(probe.integers(1, high=2))]
    return replace(chosen, embed_dim=2 * (4 + int(probe.integers(1, high=5))), num_heads=2)


@pytest.mark.exercise("extract_features", points=0.5)
def test_every_image_has_a_row(student, probe):
    """It gives the features of every image, and its label, a short last batch included."""
    config = _config(probe)
    expect_features(student, probe, config)
    expect_rows(student, probe, config)


@pytest.mark.exercise("extract_features", points=2.0)
def test_the_features_are_what_the_head_reads(student, probe):
    """The features are what the head reads."""
    for _ in range(2):
        expect_features(student, probe, _config(probe))


@pytest.mark.exercise("extract_features", points=1.0)
def test_the_model_is_asked_in_evaluation_mode(student, probe):
    """A model that comes in training mode is run in evaluation mode."""
    expect_evaluation(student, probe, _config(probe))


@pytest.mark.exercise("extract_features", points=0.5)
def test_the_mode_is_put_back(student, probe):
    """The features are right, and afterward each module is in the mode that it had before."""
    config = _config(probe)
    expect_features(student, probe, config)
    expect_mode(student, probe, config)


@pytest.mark.exercise("extract_features", points=0.5)
def test_no_graph_is_kept(student, probe):
    """The features are right, and have no graph."""
    config = _config(probe)
    expect_features(student, probe, config)
    expect_no_graph(student, probe, config)


@pytest.mark.exercise("extract_features", points=0.5)
def test_the_model_is_left_as_it_was(student, probe):
    """The features are right, and model and torch are left as they were."""
    config = _config(probe)
    expect_features(student, probe, config)
    expect_no_trace(student, probe, config)


@pytest.mark.exercise("extract_features", points=0.25)
def test_an_error_leaves_nothing_behind(student, probe):
    """The features are right, and even if a batch stops the model, the model is left as it was."""
    config = _config(probe)
    expect_features(student, probe, config)
    expect_nothing_after_an_error(student, probe, config)


@pytest.mark.exercise("extract_features", points=0.25)
def test_the_loader_is_gone_through_once(student, probe):
    """The features are right, and the loader is read only once."""
    config = _config(probe)
    expect_features(student, probe, config)
    expect_one_pass(student, probe, config)


@pytest.mark.exercise("extract_features", points=0.25)
def test_it_computes_where_the_model_is(student, probe):
    """Images go to the device of the model, and what comes back is on the CPU."""
    config = _config(probe)
    expect_features(student, probe, config)
    expect_on_the_cpu(student, probe, config)


@pytest.mark.exercise("extract_features", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other features are right too."""
    expect_features(student, probe, _config(probe))
    expect_example(student)
