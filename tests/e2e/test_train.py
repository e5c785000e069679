"""`vit-course train`, `evaluate` and `recipes` as one types them: on a few embedded drawings, by a real recipe."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from tests.waiting import GIVE_UP, wait_until
from vit_course.cli import app
from vit_course.data import shapes

pytestmark = pytest.mark.proof
RECIPE = "cpu-coffee"


@pytest.fixture(autouse=True, scope="module")
def _require_sklearn() -> None:
    pytest.importorskip("sklearn", reason="the metrics come from scikit-learn")


def run_vit_course(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        make_command(*arguments), cwd=cwd, capture_output=True, text=True, env=make_environment(), timeout=GIVE_UP
    )


def make_command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "vit_course", *map(str, arguments)]


def make_environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def save_images(
    path: Path, images: torch.Tensor, labels: torch.Tensor, classes: tuple[str, ...], **arrays: object
) -> Path:
    """An .npz whose last quarter is the test part."""
    pixels, cut = images.permute(0, 2, 3, 1).numpy(), len(images) * 3 // 4
    parts = {
        "train_images": pixels[:cut],
        "train_labels": labels[:cut].numpy(),
        "test_images": pixels[cut:],
        "test_labels": labels[cut:].numpy(),
        "classes": np.array(classes),
    }
    np.savez(path, **(parts | arrays))
    return path


@pytest.fixture(scope="module")
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with drawings.npz: 300 pictures to train on, 100 to test on."""
    folder = tmp_path_factory.mktemp("at work")
    drawn = shapes(400)
    save_images(folder / "drawings.npz", drawn.images, drawn.labels, drawn.classes)
    return folder


@pytest.fixture(scope="module")
def finished_training(working_folder: Path) -> subprocess.CompletedProcess[str]:
    return run_vit_course(
        "train", RECIPE, "--data", "drawings.npz", "--epochs", 2, "--out", "first run", cwd=working_folder
    )


def test_train_says_what_it_reached_and_where_everything_is(working_folder: Path, finished_training) -> None:
    assert (finished_training.returncode, finished_training.stderr) == (0, "")
    result = json.loads((working_folder / "first run" / "result.json").read_text(encoding="utf-8"))
    assert finished_training.stdout.startswith(f"{RECIPE}, made for cifar10, on your images drawings.")
    assert f"{result['test']['top1']:.2%} of the 100 test images of drawings are right" in finished_training.stdout
    assert "Everything is in first run" in finished_training.stdout
    assert "\r" not in finished_training.stdout  # no progress bar in a pipe
    for name in ("curves.png", "confusion.png", "attention.png", "best.safetensors", "metrics.jsonl", "config.json"):
        assert (working_folder / "first run" / name).stat().st_size > 0


def test_evaluate_finds_the_same_figures(working_folder: Path, finished_training) -> None:
    known = json.loads((working_folder / "first run" / "result.json").read_text(encoding="utf-8"))["test"]
    shown = run_vit_course("evaluate", "first run", "--data", "drawings.npz", cwd=working_folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "on the 100 test images of drawings" in shown.stdout
    first = next(line for line in shown.stdout.splitlines() if "top-1 accuracy" in line)
    assert first.endswith(f"{known['top1']:.2%}")
    as_json = run_vit_course(
        "evaluate", "first run/best.safetensors", "--data", "drawings.npz", "--json", "-", cwd=working_folder
    )
    assert {name: json.loads(as_json.stdout)[name] for name in known} == pytest.approx(known)


def test_a_folder_in_use_is_refused_and_left_alone(working_folder: Path, finished_training) -> None:
    before = (working_folder / "first run" / "best.safetensors").read_bytes()
    again = run_vit_course("train", RECIPE, "--data", "drawings.npz", "--out", "first run", cwd=working_folder)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == (
        "first run is not empty; go on with that run by --resume, or name another folder with --out\n"
    )
    assert (working_folder / "first run" / "best.safetensors").read_bytes() == before


def test_a_run_killed_without_warning_goes_on_to_the_same_weights(working_folder: Path, tmp_path: Path) -> None:
    arguments = ("train", RECIPE, "--data", working_folder / "drawings.npz", "--epochs", 4)
    whole = run_vit_course(*arguments, "--out", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    process = subprocess.Popen(
        make_command(*arguments, "--out", "killed"), cwd=tmp_path, env=make_environment(), stdout=subprocess.DEVNULL
    )
    metrics = tmp_path / "killed" / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and metrics.read_text().count("\n"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "result.json").exists()
    resumed = run_vit_course(*arguments, "--out", "killed", "--resume", cwd=tmp_path)
    assert (resumed.returncode, resumed.stderr) == (0, "")
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("whole", "killed")]
    assert results[0]["test"] == results[1]["test"]
    for name in ("train_loss", "validation_loss"):
        assert results[0]["history"][name] == results[1]["history"][name]
    assert (tmp_path / "whole" / "best.safetensors").read_bytes() == (
        tmp_path / "killed" / "best.safetensors"
    ).read_bytes()


def test_ctrl_c_ends_in_words_and_the_test_images_stay_unseen(working_folder: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        make_command("train", RECIPE, "--data", working_folder / "drawings.npz", "--epochs", 200, "--out", "run"),
        cwd=tmp_path,
        env=make_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until((tmp_path / "run" / "best.safetensors").exists)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=GIVE_UP)
    assert process.returncode == 130
    assert error.startswith("Stopped after ")
    assert "best.safetensors is the best model so far" in error
    assert "The test images were not looked at. The same command with --resume goes on from here." in error
    assert not (tmp_path / "run" / "result.json").exists()


@pytest.mark.skipif(find_spec("accelerate") is None, reason="several processes need accelerate")
@pytest.mark.parametrize("launcher", ["torchrun", "accelerate"])
def test_two_processes_write_one_run_and_speak_once(working_folder: Path, run_in_two_processes, launcher: str) -> None:
    command = ["-m", "vit_course", "train", RECIPE, "--epochs", 2, "--device", "cpu", "--out", "run"]
    drawings = working_folder / "drawings.npz"
    folder, done = run_in_two_processes(lambda folder: [*command, "--data", drawings], launcher)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    result = json.loads((folder / "run" / "result.json").read_text(encoding="utf-8"))
    assert (result["processes"], result["epochs"], result["test"]["num_images"]) == (2, 2, 100)
    assert len(result["history"]["validation_loss"]) == 2
    assert len((folder / "run" / "metrics.jsonl").read_text().splitlines()) == 2
    assert done.stdout.count("of the 100 test images of drawings are right") == 1
    assert not [path.name for path in (folder / "run").iterdir() if path.name.startswith(".")]
    shown = run_vit_course("evaluate", folder / "run", "--data", drawings, "--json", "-", cwd=working_folder)
    assert json.loads(shown.stdout)["top1"] == pytest.approx(result["test"]["top1"])


def test_ones_own_class_folders_train_by_any_recipe(tmp_path: Path) -> None:
    """Pictures of two sizes, one of them gray, scaled by --image-size."""
    drawn = shapes(60)
    for number, (image, label) in enumerate(zip(drawn.images, drawn.labels.tolist(), strict=True)):
        train, test = (tmp_path / "mine" / part / drawn.classes[label] for part in ("train", "test"))
        folder = train if len(list(train.glob("*"))) < 4 else test
        folder.mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray(image.permute(1, 2, 0).numpy())
        picture = picture.convert("L") if number == 0 else picture.resize((40, 36)) if number == 1 else picture
        picture.save(folder / f"{number}.png")
    refused = run_vit_course("train", "cpu-minute", "--data", "mine", "--epochs", 1, cwd=tmp_path)
    assert refused.returncode == 1
    assert "--image-size" in refused.stderr
    done = run_vit_course("train", "cpu-minute", "--data", "mine", "--image-size", 28, "--epochs", 1, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "of the 20 test images of mine are right" in done.stdout
    result = json.loads((tmp_path / "runs" / "cpu-minute-seed0" / "result.json").read_text())
    assert result["data"]["classes"] == 10
    assert result["changed"] == {"epochs": 1}


class TestRefusals:
    """In this process, which has imported torch already."""

    def run_refused(self, *arguments: object, cwd: Path) -> str:
        with contextlib.chdir(cwd):
            finished = CliRunner().invoke(app, list(map(str, arguments)))
        assert finished.exit_code == 1, finished.output
        assert finished.stderr.count("\n") == 1
        return finished.stderr

    def test_an_unknown_recipe(self, working_folder: Path) -> None:
        words = "there is no recipe 'cpu-cofee'. Did you mean cpu-coffee"
        assert self.run_refused("train", "cpu-cofee", cwd=working_folder).startswith(words)
        assert self.run_refused("recipes", "cpu-cofee", cwd=working_folder).startswith(words)

    def test_no_such_data(self, working_folder: Path, finished_training) -> None:
        words = self.run_refused("evaluate", "first run", "--data", "elsewhere.npz", cwd=working_folder)
        assert "elsewhere.npz" in words

    def test_a_damaged_file_of_images(self, working_folder: Path, tmp_path: Path) -> None:
        (tmp_path / "half.npz").write_bytes((working_folder / "drawings.npz").read_bytes()[:1000])
        words = self.run_refused("train", RECIPE, "--data", "half.npz", cwd=tmp_path)
        assert words.startswith("half.npz is damaged or no .npz file")
        assert not (tmp_path / "runs").exists()

    def test_images_that_the_patches_do_not_fit(self, working_folder: Path) -> None:
        words = self.run_refused("train", "cpu-minute", "--data", "drawings.npz", cwd=working_folder)
        assert "cpu-minute cuts images into patches of 7 x 7 pixels, and the images of drawings are 32 x 32" in words
        assert not (working_folder / "runs").exists()

    def test_a_checkpoint_cut_short(self, working_folder: Path, tmp_path: Path, finished_training) -> None:
        (tmp_path / "best.safetensors").write_bytes(
            (working_folder / "first run" / "best.safetensors").read_bytes()[:5000]
        )
        assert "was cut short or damaged" in self.run_refused(
            "evaluate", tmp_path / "best.safetensors", cwd=working_folder
        )

    def test_json_that_cannot_be_written(self, working_folder: Path, finished_training) -> None:
        measured = ("evaluate", "first run", "--data", "drawings.npz", "--json")
        assert "is a folder; name a file" in self.run_refused(*measured, "first run", cwd=working_folder)
        assert "there is no folder nowhere" in self.run_refused(*measured, "nowhere/x.json", cwd=working_folder)
        assert not list(working_folder.glob("*.unfinished"))

    def test_a_pickle(self, working_folder: Path, tmp_path: Path) -> None:
        torch.save({"head.weight": torch.zeros(2)}, tmp_path / "model.pt")
        assert "is a pickle of torch.save" in self.run_refused("evaluate", tmp_path / "model.pt", cwd=working_folder)

    def test_other_classes_and_other_sizes(self, working_folder: Path, finished_training) -> None:
        drawn = shapes(40)
        save_images(working_folder / "few.npz", drawn.images, drawn.labels % 3, drawn.classes[:3])
        words = self.run_refused("evaluate", "first run", "--data", "few.npz", cwd=working_folder)
        assert "knows 10 classes" in words
        assert "and few has 3" in words
        small = shapes(40, image_size=16)
        save_images(working_folder / "small.npz", small.images, small.labels, small.classes)
        words = self.run_refused("evaluate", "first run", "--data", "small.npz", cwd=working_folder)
        assert "takes images of 32 x 32 pixels in 3 channels, and those of small are 16 x 16" in words


def test_recipes_lists_them_all_and_tells_about_one(working_folder: Path) -> None:
    every = run_vit_course("recipes", cwd=working_folder)
    assert every.returncode == 0
    assert "seed-a-mnist" in every.stdout
    assert "gpu-best" in every.stdout
    assert all(len(line) <= 80 for line in every.stdout.splitlines())
    assert "…" not in every.stdout
    one = CliRunner().invoke(app, ["recipes", "seed-d-cifar100"])
    assert one.stdout.startswith("vit-course train seed-d-cifar100\n")
    assert "GELU after the MLP" in one.stdout
    as_json = json.loads(CliRunner().invoke(app, ["recipes", "--json", "-"]).stdout)
    assert {"cpu-minute", "seed-c-cifar100-mended"} <= {entry["name"] for entry in as_json}
