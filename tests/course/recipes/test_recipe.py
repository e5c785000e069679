"""The recipes themselves: each can be run, says what it repeats, and keeps to what was promised."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from vit_course.data import ImageDataset
from vit_course.data.torchvision_sets import PUBLISHED
from vit_course.recipes import RECIPES, Recipe, RecipeError, find
from vit_course.recipes.builtin import AS_PUBLISHED
from vit_course.recipes.listing import PEAKS, SHARE, calculate_minutes, count_training_operations
from vit_course.recipes.result import make_recipe_definition

GPU = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "gpu"
PREDICTIONS = json.loads((GPU / "predictions.json").read_text())["predictions"]

# top-1, epochs, seconds: what the five notebooks report
REPORTED = {
    "seed-a-mnist": (0.7150, 5, None),
    "seed-a-cifar10": (0.3944, 5, None),
    "seed-b-mnist": (0.9588, None, None),
    "seed-c-cifar10": (0.788, 180, 28 * 60 + 17),
    "seed-c-cifar100": (0.498, 180, 101 * 60 + 41),
    "seed-d-cifar100": (0.37, None, None),
    "seed-e-cifar10": (0.755, 100, None),
}
OURS = ("cpu-minute", "cpu-coffee", "cpu-coffee-mnist", "cpu-lunch", "cpu-course", "colab-t4", "gpu-minute", "gpu-best")
TWINS = ("cpu-coffee-cifar100", "colab-t4-cifar100", "gpu-minute-cifar100", "gpu-best-cifar100")


def make_images(channels: int, height: int, width: int, classes: int = 3) -> ImageDataset:
    pixels = torch.zeros(classes, channels, height, width, dtype=torch.uint8)
    return ImageDataset(pixels, torch.arange(classes), tuple("abcdefghij"[:classes]), "own")


def test_every_promised_recipe_is_there() -> None:
    mended = [f"{name}-mended" for name in REPORTED]
    assert set(RECIPES) >= {*REPORTED, *mended, *OURS, *TWINS}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_every_recipe_builds_a_model_that_classifies_its_images(recipe: Recipe) -> None:
    config = recipe.config
    with torch.inference_mode():
        scores = recipe.build(config).eval()(torch.zeros(2, config.in_channels, config.height, config.width))
    assert scores.shape == (2, PUBLISHED[recipe.dataset].classes)
    assert recipe.summary.endswith(".")
    assert len(recipe.summary) < 120


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_every_definition_survives_json(recipe: Recipe) -> None:
    known = make_recipe_definition(recipe)
    assert json.loads(json.dumps(known)) == known
    assert make_recipe_definition(replace(recipe, settings=replace(recipe.settings, seed=9, device="auto"))) == known
    assert make_recipe_definition(replace(recipe, settings=replace(recipe.settings, epochs=1234))) != known


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_what_is_kept_back_is_a_tenth_at_most_and_so_what_a_run_keeps_back(recipe: Recipe) -> None:
    assert recipe.num_validation <= PUBLISHED[recipe.dataset].training_images // 10


def test_the_minutes_by_calculation_follow_from_images_and_epochs() -> None:
    minute, best, t4 = RECIPES["gpu-minute"], RECIPES["gpu-best"], RECIPES["colab-t4"]
    by_images = best.settings.epochs * 49_000 / (minute.settings.epochs * 45_000)
    assert calculate_minutes(best) / calculate_minutes(minute) == pytest.approx(by_images)
    by_peaks = t4.settings.epochs / minute.settings.epochs * 989 / 65
    assert calculate_minutes(t4) / calculate_minutes(minute) == pytest.approx(by_peaks)
    # nine blocks of 295 thousand weights for 65 tokens, and what attention and the ends add: 2 operations, 3 passes
    per_image = count_training_operations(minute) / (45_000 * minute.settings.epochs)
    assert per_image == pytest.approx(3 * 2 * 65 * 9 * 8 * 192**2, rel=0.2)
    assert calculate_minutes(RECIPES["cpu-coffee"]) is None


def test_the_calculation_rests_on_the_trial_that_is_logged() -> None:
    trial = json.loads((GPU / "trial_graph_light_40_epochs.json").read_text())
    minute = RECIPES["gpu-minute"]
    per_step = count_training_operations(minute) / (45_000 * minute.settings.epochs) * trial["batch"]
    in_steps = per_step / (trial["ms_per_step"] / 1000) / PEAKS["H200 or H100"]
    assert pytest.approx(in_steps * 0.95, abs=0.001) == SHARE  # a twentieth of the time is validation's


@pytest.mark.parametrize("each", PREDICTIONS, ids=lambda each: f"{each['what']}: {each['quantity']}")
def test_every_prediction_can_be_contradicted(each: dict) -> None:
    assert each["low"] < each["high"]
    assert each["arithmetic"]
    recipe = RECIPES.get(each["what"])
    if recipe and each["quantity"] == "seconds of training":
        assert each["low"] < 60 * calculate_minutes(recipe) < each["high"]


def test_an_older_log_still_speaks_of_a_recipe_without_newer_changes() -> None:
    known = make_recipe_definition(RECIPES["cpu-coffee"])["settings"]["augmentation"]
    assert set(known) == {"max_shift", "flip", "erase", "mixup", "cutmix", "randaugment"}
    assert {"affine", "color"} < set(make_recipe_definition(RECIPES["gpu-minute"])["settings"]["augmentation"])


@pytest.mark.parametrize("name", REPORTED)
def test_what_was_published_stands_beside_the_recipe_and_its_mended_twin(name: str) -> None:
    for recipe in (RECIPES[name], RECIPES[f"{name}-mended"]):
        published = recipe.published
        assert (published.accuracy, published.epochs, published.seconds) == REPORTED[name]
    assert RECIPES[name].settings.epochs == (REPORTED[name][1] or RECIPES[name].settings.epochs)
    assert RECIPES[f"{name}-mended"].deviations == ()
    assert RECIPES[f"{name}-mended"].dataset == RECIPES[name].dataset


def test_the_slips_are_named() -> None:
    lab = {"torch's own start", "heads on slices", "no output projection", "softmax before the loss"}
    critical = {"torch's own start", "no output projection", "GELU after the MLP", "softmax before the loss"}
    named = {recipe.name: {deviation.name for deviation in recipe.deviations} for recipe in AS_PUBLISHED}
    assert named["seed-a-mnist"] == named["seed-a-cifar10"] == lab
    assert named["seed-d-cifar100"] == critical
    assert not any(named[name] for name in ("seed-b-mnist", "seed-c-cifar10", "seed-c-cifar100", "seed-e-cifar10"))


@pytest.mark.parametrize("name", [name for name in (*OURS, *TWINS) if not name.startswith("cpu")])
def test_the_gpu_recipes_are_plain_vits_of_at_most_ten_million_parameters(name: str) -> None:
    model = RECIPES[name].build(RECIPES[name].config)
    assert sum(each.numel() for each in model.parameters()) <= 10_000_000
    assert not [module for module in model.modules() if isinstance(module, torch.nn.Conv2d)]
    assert not RECIPES[name].deviations


def test_the_walkthrough_keeps_its_head_of_two_layers_when_mended() -> None:
    assert RECIPES["seed-b-mnist-mended"].config.representation_size == 32


class TestConfigFor:
    def test_size_channels_and_classes_follow_the_images(self) -> None:
        config = RECIPES["cpu-coffee"].config_for(make_images(1, 16, 24, classes=4))
        assert (config.image_size, config.in_channels, config.num_classes) == ((16, 24), 1, 4)
        assert config.embed_dim == RECIPES["cpu-coffee"].config.embed_dim

    def test_patches_that_do_not_fit_are_refused_in_words(self) -> None:
        with pytest.raises(
            RecipeError, match=r"patches of 4 x 4 pixels, and the images of own are 30 x 32.*--image-size"
        ):
            RECIPES["cpu-coffee"].config_for(make_images(3, 30, 32))


class TestFind:
    def test_a_near_name_is_suggested(self) -> None:
        with pytest.raises(RecipeError, match=r"no recipe 'cpu_minute'\. Did you mean cpu-minute"):
            find("cpu_minute")

    def test_a_far_name_is_not(self) -> None:
        with pytest.raises(RecipeError, match=r"no recipe 'resnet'\. All of them: vit-course recipes"):
            find("resnet")
