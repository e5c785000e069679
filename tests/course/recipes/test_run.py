"""A run from the images to the run folder, on a few drawings; and what it refuses."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from vit_course.config import ViTConfig
from vit_course.data import Augmentation, DatasetError, load_dataset, shapes
from vit_course.metrics import measure
from vit_course.recipes import Recipe, RecipeError, deviations, run
from vit_course.recipes.evaluate import check_images_fit_model, evaluate_checkpoint, open_checkpoint
from vit_course.recipes.finalize import predict_logits
from vit_course.recipes.images import load_images, split_validation
from vit_course.recipes.result import make_recipe_definition, read_result
from vit_course.recipes.run import RunInterruptedError, RunOptions, train_recipe
from vit_course.training import CheckpointError, History, OutOfMemoryError, TrainingDivergedError, TrainingSettings
from vit_course.training.progress import TrackerError

TINY = Recipe(
    name="tiny",
    summary="A test's own recipe.",
    dataset="shapes",
    config=ViTConfig(patch_size=8, embed_dim=16, depth=1, num_heads=2, mlp_ratio=2.0),
    settings=TrainingSettings(epochs=2, batch_size=32, learning_rate=3e-3),
    num_validation=5_000,
    hardware="anything",
    seeds=(4, 5),
)
CPU = torch.device("cpu")
PICTURES = {"curves.png", "confusion.png", "attention.png"}


@pytest.fixture(autouse=True, scope="module")
def _require_sklearn() -> None:
    pytest.importorskip("sklearn", reason="the metrics come from scikit-learn")


@pytest.fixture(scope="module")
def finished_run(few_shapes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of one small run."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    train_recipe(TINY, RunOptions(folder, few_shapes, device="cpu", progress=False))
    return folder


class TestFolder:
    def test_it_holds_the_result_the_weights_and_the_pictures(self, finished_run: Path) -> None:
        names = {path.name for path in finished_run.iterdir()}
        assert {"recipe.json", "result.json", "metrics.jsonl", "best.safetensors"} | PICTURES <= names
        for picture in PICTURES:
            assert (finished_run / picture).read_bytes().startswith(b"\x89PNG")

    def test_the_result_says_all_that_the_figures_depend_on(self, finished_run: Path) -> None:
        result = read_result(finished_run / "result.json")
        assert (result.recipe, result.seed, result.changed, result.epochs) == ("tiny", 4, {}, 2)
        assert result.definition == make_recipe_definition(TINY)
        assert result.data == {
            "name": "few_shapes",
            "train_images": 270,  # a tenth of a small set is kept back, and not 5,000
            "validation_images": 30,
            "test_images": 100,
            "classes": 4,
        }
        assert (result.device, result.precision, result.processes) == ("CPU", "fp32", 1)
        assert result.seconds == pytest.approx(sum(result.history["seconds"]), abs=0.01)
        assert result.cpu_seconds == pytest.approx(sum(result.history["cpu_seconds"]), abs=0.1)
        assert result.images_per_second > 0
        assert len(result.history["validation_loss"]) == 2

    def test_the_metrics_are_those_of_the_best_weights_on_the_test_images(
        self, finished_run: Path, few_shapes: Path
    ) -> None:
        result = read_result(finished_run / "result.json")
        saved = open_checkpoint(finished_run / "best.safetensors")
        _, test = load_dataset(few_shapes)
        logits = predict_logits(saved.model, replace(test, mean=saved.mean, std=saved.std), CPU)
        assert result.test["top1"] == measure(logits, test.labels).top1
        lowest = result.history["validation_loss"].index(min(result.history["validation_loss"]))
        assert result.best_epoch == lowest + 1
        assert result.validation["loss"] == pytest.approx(result.history["validation_loss"][lowest], abs=1e-4)
        assert result.validation["top1"] == pytest.approx(result.history["validation_accuracy"][lowest])

    def test_the_statistics_are_those_of_the_training_part(self, finished_run: Path, few_shapes: Path) -> None:
        train, _ = split_validation(TINY, load_dataset(few_shapes)[0])
        assert open_checkpoint(finished_run / "best.safetensors").mean == pytest.approx(train.mean)


class TestSplit:
    def test_it_is_the_same_for_every_seed(self) -> None:
        data = shapes(100)
        first, second = (split_validation(replace(TINY, seeds=(seed,)), data)[1] for seed in (0, 1))
        assert torch.equal(first.images, second.images)

    @pytest.mark.parametrize(("images", "kept"), [(100, 10), (5, 1), (200, 20)])
    def test_of_a_small_set_a_tenth_is_kept_back(self, images: int, kept: int) -> None:
        train, validation = split_validation(TINY, shapes(images))
        assert (len(train), len(validation)) == (images - kept, kept)


class TestChoices:
    def test_the_same_seed_gives_the_same_weights_and_another_seed_others(
        self, finished_run: Path, few_shapes: Path, tmp_path: Path
    ) -> None:
        for seed in (4, 5):
            options = RunOptions(tmp_path / str(seed), few_shapes, seed=seed, device="cpu", progress=False)
            train_recipe(TINY, options)
        weights = (finished_run / "best.safetensors").read_bytes()
        assert (tmp_path / "4" / "best.safetensors").read_bytes() == weights
        assert (tmp_path / "5" / "best.safetensors").read_bytes() != weights

    def test_what_was_requested_in_place_of_the_recipes_own_is_written_down(
        self, few_shapes: Path, tmp_path: Path
    ) -> None:
        options = RunOptions(tmp_path, few_shapes, epochs=1, batch_size=64, device="cpu", progress=False)
        result = train_recipe(TINY, options)
        assert result is not None
        assert result.changed == {"epochs": 1, "batch_size": 64}
        assert result.epochs == 1

    def test_torchs_own_generator_is_left_alone(self, few_shapes: Path, tmp_path: Path) -> None:
        torch.manual_seed(3)
        state = torch.get_rng_state()
        train_recipe(TINY, RunOptions(tmp_path, few_shapes, epochs=1, device="cpu", progress=False))
        assert torch.equal(torch.get_rng_state(), state)

    @pytest.mark.parametrize(
        ("choice", "words"),
        [
            ({"precision": "fp8"}, r"tiny cannot be run so: precision must be one of .* not 'fp8'"),
            ({"device": "cpu", "precision": "fp16"}, 'tiny cannot be run so: precision "fp16" is for GPUs'),
            ({"epochs": 0}, "epochs must be at least 1, not 0"),
            ({"wandb": True}, "--wandb needs wandb, which is not installed"),
        ],
    )
    def test_a_choice_out_of_range_is_refused(
        self, few_shapes: Path, tmp_path: Path, monkeypatch, choice, words: str
    ) -> None:
        monkeypatch.setattr(run, "find_spec", lambda name: None)
        with pytest.raises(RecipeError, match=words):
            train_recipe(TINY, RunOptions(tmp_path / "run", few_shapes, progress=False, **({"device": "cpu"} | choice)))
        assert not (tmp_path / "run").exists()


class TestFolderInUse:
    def test_without_resume_it_is_refused(self, finished_run: Path, few_shapes: Path) -> None:
        with pytest.raises(RecipeError, match=r"is not empty; go on with that run by --resume, or name another"):
            train_recipe(TINY, RunOptions(finished_run, few_shapes, device="cpu"))

    def test_a_finished_one_gives_its_result_back(self, finished_run: Path, few_shapes: Path) -> None:
        before = (finished_run / "result.json").stat().st_mtime_ns
        result = train_recipe(TINY, RunOptions(finished_run, few_shapes, device="cpu", resume=True))
        assert result == read_result(finished_run / "result.json")
        assert (finished_run / "result.json").stat().st_mtime_ns == before

    def test_one_without_its_result_is_concluded(self, finished_run: Path, few_shapes: Path, tmp_path: Path) -> None:
        folder = shutil.copytree(finished_run, tmp_path / "run")
        (folder / "result.json").unlink()
        result = train_recipe(TINY, RunOptions(folder, few_shapes, device="cpu", resume=True, progress=False))
        known = read_result(finished_run / "result.json")
        assert result is not None
        assert (result.test, result.best_epoch) == (known.test, known.best_epoch)
        assert result.cpu_seconds == known.cpu_seconds

    @pytest.mark.parametrize(
        ("choice", "words"),
        [({"epochs": 50}, "epochs = 2, not 50"), ({"batch_size": 7}, "batch_size = 32, not 7")],
    )
    def test_a_finished_one_is_not_taken_for_another(self, finished_run: Path, few_shapes: Path, choice, words) -> None:
        options = RunOptions(finished_run, few_shapes, device="cpu", resume=True, **choice)
        with pytest.raises(RecipeError, match=f"holds a finished run with {words}; name another folder"):
            train_recipe(TINY, options)

    def test_nor_for_one_on_other_images(self, finished_run: Path, few_shapes: Path, tmp_path: Path) -> None:
        other = shutil.copy(few_shapes, tmp_path / "other.npz")
        with pytest.raises(RecipeError, match="with data = 'few_shapes', not 'other'"):
            train_recipe(TINY, RunOptions(finished_run, other, device="cpu", resume=True))

    @pytest.mark.parametrize("name", ["recipe.json.unfinished", ".recipe.json.ab12"])
    def test_what_a_full_disk_left_is_no_run(self, name: str, few_shapes: Path, tmp_path: Path) -> None:
        (tmp_path / name).touch()
        assert train_recipe(TINY, RunOptions(tmp_path, few_shapes, epochs=1, device="cpu", progress=False))
        assert not (tmp_path / name).exists()

    @pytest.mark.parametrize(
        ("recipe", "seed", "words"),
        [(replace(TINY, name="other"), 4, "not of other with seed 4"), (TINY, 5, "not of tiny with seed 5")],
    )
    def test_another_run_is_not_gone_on_with(
        self, finished_run, few_shapes, recipe: Recipe, seed: int, words: str
    ) -> None:
        with pytest.raises(RecipeError, match=f"holds a run of tiny with seed 4, {words}"):
            train_recipe(recipe, RunOptions(finished_run, few_shapes, seed=seed, device="cpu", resume=True))

    def test_something_else_is_left_alone(self, tmp_path: Path, few_shapes: Path) -> None:
        (tmp_path / "thesis.tex").write_text("...")
        with pytest.raises(RecipeError, match=r"holds no run of a recipe: its recipe\.json is missing"):
            train_recipe(TINY, RunOptions(tmp_path, few_shapes, device="cpu", resume=True))
        with pytest.raises(RecipeError, match="is a file"):
            train_recipe(TINY, RunOptions(tmp_path / "thesis.tex", few_shapes, device="cpu"))
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(("epochs", "words"), [(0, "Stopped after 0 whole epochs"), (1, "is the best model so far")])
def test_an_interrupted_run_looks_at_no_test_image(few_shapes, tmp_path, monkeypatch, epochs: int, words: str) -> None:
    history = History(ending="interrupted")
    history.validation_loss = [1.0] * epochs
    monkeypatch.setattr(run, "fit", lambda *arguments, **options: history)
    monkeypatch.setattr(run, "measure_and_draw", lambda *arguments: pytest.fail("the test images were looked at"))
    with pytest.raises(RunInterruptedError, match=rf"{words}.*--resume goes on"):
        train_recipe(TINY, RunOptions(tmp_path / "run", few_shapes, device="cpu", progress=False))


def test_ctrl_c_while_it_is_measured_says_how_to_go_on(few_shapes, tmp_path, monkeypatch) -> None:
    options = RunOptions(tmp_path / "run", few_shapes, epochs=1, device="cpu", progress=False)
    monkeypatch.setattr(run, "measure_and_draw", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(RunInterruptedError, match=r"after the training.*--resume measures them"):
        train_recipe(TINY, options)


def test_divergence_says_what_a_command_can_change(few_shapes, tmp_path) -> None:
    wild = replace(TINY, settings=replace(TINY.settings, learning_rate=1e30, warmup=0.0, gradient_clip=None))
    with pytest.raises(TrainingDivergedError, match="try another --seed"):
        train_recipe(wild, RunOptions(tmp_path / "run", few_shapes, device="cpu", progress=False))


@pytest.mark.parametrize(
    ("batch_size", "words"),
    [
        (256, r"^no room\. That is the same command with --batch-size 256 and another folder by --out$"),
        (None, r"^no room\. That is the same command with --resume and --device cpu$"),
    ],
)
def test_out_of_memory_says_what_a_command_can_change(few_shapes, tmp_path, monkeypatch, batch_size, words) -> None:
    monkeypatch.setattr(run, "fit", Mock(side_effect=OutOfMemoryError("no room", batch_size)))
    with pytest.raises(OutOfMemoryError, match=words) as raised:
        train_recipe(TINY, RunOptions(tmp_path / "run", few_shapes, device="cpu", progress=False))
    assert raised.value.batch_size == batch_size


def test_a_tracker_that_does_not_start_is_a_refusal_and_resume_begins(few_shapes, tmp_path, monkeypatch) -> None:
    options = RunOptions(tmp_path / "run", few_shapes, epochs=1, device="cpu", progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(run, "fit", Mock(side_effect=TrackerError("no account")))
        with pytest.raises(RecipeError, match=r"no account\. Then the same command with --resume begins"):
            train_recipe(TINY, options)
    assert train_recipe(TINY, replace(options, resume=True)) is not None


class TestImages:
    @pytest.fixture
    def rgba_file(self, few_shapes: Path, tmp_path: Path) -> Path:
        with np.load(few_shapes) as arrays:
            known = dict(arrays)
        for name in ("train_images", "test_images"):
            known[name] = np.concatenate([known[name], known[name][..., :1]], axis=-1)
        np.savez(tmp_path / "rgba.npz", **known)
        return tmp_path / "rgba.npz"

    def test_four_channels_are_trained_on_and_not_shown(self, rgba_file: Path, tmp_path: Path) -> None:
        train_recipe(TINY, RunOptions(tmp_path / "run", rgba_file, epochs=1, device="cpu", progress=False))
        names = {path.name for path in (tmp_path / "run").iterdir()}
        assert PICTURES & names == {"curves.png", "confusion.png"}

    def test_randaugment_refuses_them_before_the_training(self, rgba_file: Path, tmp_path: Path) -> None:
        changing = replace(TINY, settings=replace(TINY.settings, augmentation=Augmentation(randaugment=True)))
        with pytest.raises(RecipeError, match="takes 1 or 3 channels, and those of rgba have 4"):
            train_recipe(changing, RunOptions(tmp_path / "run", rgba_file, device="cpu"))
        assert not (tmp_path / "run").exists()

    def test_one_training_image_is_too_few(self) -> None:
        with pytest.raises(DatasetError, match="has one training image"):
            split_validation(TINY, shapes(1))

    def test_a_mistyped_place_is_not_downloaded_into(self, tmp_path: Path) -> None:
        with pytest.raises(DatasetError, match=r"there is nothing at .*dta"):
            load_images("cifar10", tmp_path / "dta")
        assert not (tmp_path / "dta").exists()

    def test_image_size_is_refused_where_it_does_nothing(self, few_shapes: Path) -> None:
        for name, data in (("cifar10", few_shapes), ("shapes", None)):
            with pytest.raises(DatasetError, match="--image-size scales the images of class folders"):
                load_images(name, data, 32)


WRONG = replace(TINY, deviations=(deviations.TORCH_START, deviations.NO_PROJECTION, deviations.GELU_AFTER_MLP))


@pytest.fixture(scope="module")
def wrong_model_run(few_shapes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a model that the right one cannot stand in for."""
    folder = tmp_path_factory.mktemp("runs") / "wrong"
    train_recipe(WRONG, RunOptions(folder, few_shapes, device="cpu", progress=False))
    return folder


class TestSlips:
    def test_evaluate_builds_the_wrong_model_again(self, wrong_model_run: Path, few_shapes: Path, monkeypatch) -> None:
        monkeypatch.setattr("vit_course.recipes.evaluate.RECIPES", {"tiny": WRONG})
        known = read_result(wrong_model_run / "result.json")
        assert evaluate_checkpoint(wrong_model_run, few_shapes, "cpu").metrics.top1 == known.test["top1"]

    def test_alone_its_weights_file_is_refused(self, wrong_model_run: Path, few_shapes: Path, tmp_path: Path) -> None:
        shutil.copy(wrong_model_run / "best.safetensors", tmp_path)
        with pytest.raises(CheckpointError, match="do not fit the model"):
            evaluate_checkpoint(tmp_path / "best.safetensors", few_shapes, "cpu")


class TestExamine:
    def test_it_says_what_the_model_was_trained_on(self, finished_run: Path) -> None:
        with pytest.raises(RecipeError, match=r"was trained on 'few_shapes'.* with --data"):
            evaluate_checkpoint(finished_run, device="cpu")

    def test_another_device_is_refused(self, finished_run: Path, few_shapes: Path) -> None:
        with pytest.raises(RecipeError, match="device must be"):
            evaluate_checkpoint(finished_run, few_shapes, "banana")

    def test_a_run_folder_or_its_weights_file(self, finished_run: Path, few_shapes: Path) -> None:
        known = read_result(finished_run / "result.json")
        for checkpoint in (finished_run, finished_run / "best.safetensors"):
            found = evaluate_checkpoint(checkpoint, few_shapes, "cpu")
            assert found.metrics.top1 == known.test["top1"]
            assert (found.data, found.parameters) == ("few_shapes", known.parameters)

    def test_other_classes_are_refused(self, finished_run: Path) -> None:
        with pytest.raises(RecipeError, match=r"knows 4 classes \(disc, ring, square, \.\.\.\), and shapes has 10"):
            check_images_fit_model(finished_run, open_checkpoint(finished_run / "best.safetensors"), shapes(20))

    def test_the_same_number_of_other_classes_is_refused(self, finished_run: Path, few_shapes: Path) -> None:
        _, test = load_dataset(few_shapes)
        turned = replace(test, classes=test.classes[::-1])
        with pytest.raises(RecipeError, match=r"class 0 is 'disc' for the model in .* and 'triangle' in few_shapes"):
            check_images_fit_model(finished_run, open_checkpoint(finished_run / "best.safetensors"), turned)

    def test_another_size_is_refused(self, finished_run: Path) -> None:
        with pytest.raises(
            RecipeError, match=r"images of 32 x 32 pixels in 3 channels, and those of shapes are 16 x 16"
        ):
            check_images_fit_model(
                finished_run, open_checkpoint(finished_run / "best.safetensors"), shapes(20, image_size=16)
            )


def test_recipe_json_tells_what_the_folder_holds(finished_run: Path) -> None:
    assert json.loads((finished_run / "recipe.json").read_text()) == {
        "version": 1,
        "recipe": "tiny",
        "seed": 4,
        "slips": [],
        "data": "few_shapes",
    }
