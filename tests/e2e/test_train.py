"""`vit-course train`, `evaluate` and `recipes` as one types them: on a few embedded drawings, by a real recipe."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import subprocess
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from tests.e2e import commands
from tests.e2e.commands import make_command, make_environment
from tests.waiting import GIVE_UP, wait_until
from vit_course.cli import app
from vit_course.data import shapes

pytestmark = pytest.mark.proof
RECIPE = "cpu-coffee"
SETTINGS = {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}
run_vit_course = partial(commands.run_vit_course, **SETTINGS)


@pytest.fixture(autouse=True, scope="module")
def _require_sklearn() -> None:
    pytest.importorskip("sklearn", reason="the metrics come from scikit-learn")


@pytest.fixture(scope="module")
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with drawings.npz: 300 pictures to train on, 100 to test on."""
    folder = tmp_path_factory.mktemp("at work")
    drawn = shapes(400)
    pixels, labels = drawn.images.permute(0, 2, 3, 1).numpy(), drawn.labels.numpy()
    train = {"train_images": pixels[:300], "train_labels": labels[:300]}
    test = {"test_images": pixels[300:], "test_labels": labels[300:]}
    np.savez(folder / "drawings.npz", classes=np.array(drawn.classes), **train, **test)
    return folder


@pytest.fixture(scope="module")
def finished_training(working_folder: Path) -> subprocess.CompletedProcess[str]:
    return run_vit_course(
        "train", RECIPE, "--data", "drawings.npz", "--epochs", 2, "--out", "first run", cwd=working_folder
    )


def test_train_says_what_it_reached_and_where_everything_is(working_folder: Path, finished_training) -> None:
    assert finished_training.stderr == ""
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
    assert shown.stderr == ""
    assert "on the 100 test images of drawings" in shown.stdout
    first = next(line for line in shown.stdout.splitlines() if "top-1 accuracy" in line)
    assert first.endswith(f"{known['top1']:.2%}")
    as_json = run_vit_course(
        "evaluate", "first run/best.safetensors", "--data", "drawings.npz", "--json", "-", cwd=working_folder
    )
    assert {name: json.loads(as_json.stdout)[name] for name in known} == pytest.approx(known)


def test_a_run_killed_without_warning_goes_on_to_the_same_weights(working_folder: Path, tmp_path: Path) -> None:
    arguments = ("train", RECIPE, "--data", working_folder / "drawings.npz", "--epochs", 4)
    run_vit_course(*arguments, "--out", "whole", cwd=tmp_path)
    process = subprocess.Popen(
        make_command(*arguments, "--out", "killed"),
        cwd=tmp_path,
        env=make_environment(**SETTINGS),
        stdout=subprocess.DEVNULL,
    )
    metrics = tmp_path / "killed" / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and metrics.read_text().count("\n"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "result.json").exists()
    resumed = run_vit_course(*arguments, "--out", "killed", "--resume", cwd=tmp_path)
    assert resumed.stderr == ""
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
        env=make_environment(**SETTINGS),
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
    refused = run_vit_course("train", "cpu-minute", "--data", "mine", "--epochs", 1, cwd=tmp_path, status=1)
    assert "--image-size" in refused.stderr
    done = run_vit_course("train", "cpu-minute", "--data", "mine", "--image-size", 28, "--epochs", 1, cwd=tmp_path)
    assert done.stderr == ""
    assert "of the 20 test images of mine are right" in done.stdout
    result = json.loads((tmp_path / "runs" / "cpu-minute-seed0" / "result.json").read_text())
    assert result["data"]["classes"] == 10
    assert result["changed"] == {"epochs": 1}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train cpu-cofee", "there is no recipe 'cpu-cofee'. Did you mean cpu-coffee"),
        ("recipes cpu-cofee", "there is no recipe 'cpu-cofee'. Did you mean cpu-coffee"),
        (f"train {RECIPE} --data half.npz", "half.npz is damaged or no .npz file"),
        (f"train {RECIPE} --data drawings.npz --out 'first run'", "first run is not empty; go on with that run by"),
        ("evaluate 'first run' --data elsewhere.npz", "elsewhere.npz"),
        ("evaluate model.pt", "is a pickle of torch.save"),
        ("evaluate 'first run' --data drawings.npz --json 'first run'", "is a folder; name a file"),
        ("evaluate 'first run' --data drawings.npz --json nowhere/x.json", "there is no folder nowhere"),
    ],
)
def test_a_refusal_is_one_line_and_changes_no_file(
    working_folder: Path, finished_training, command: str, words: str
) -> None:
    """In this process, which has imported torch already."""
    (working_folder / "half.npz").write_bytes((working_folder / "drawings.npz").read_bytes()[:1000])
    torch.save({"head.weight": torch.zeros(2)}, working_folder / "model.pt")
    before = {path: path.is_file() and path.read_bytes() for path in working_folder.rglob("*")}
    with contextlib.chdir(working_folder):
        refused = CliRunner().invoke(app, shlex.split(command))
    assert refused.exit_code == 1, refused.output
    assert refused.stderr.count("\n") == 1
    assert words in refused.stderr
    assert {path: path.is_file() and path.read_bytes() for path in working_folder.rglob("*")} == before


def test_recipes_lists_them_all_and_tells_about_one(working_folder: Path) -> None:
    every = run_vit_course("recipes", cwd=working_folder)
    assert "seed-a-mnist" in every.stdout
    assert "gpu-best" in every.stdout
    assert all(len(line) <= 80 for line in every.stdout.splitlines())
    assert "…" not in every.stdout
    one = CliRunner().invoke(app, ["recipes", "seed-d-cifar100"])
    assert one.stdout.startswith("vit-course train seed-d-cifar100\n")
    assert "GELU after the MLP" in one.stdout
    as_json = json.loads(CliRunner().invoke(app, ["recipes", "--json", "-"]).stdout)
    assert {"cpu-minute", "seed-c-cifar100-mended"} <= {entry["name"] for entry in as_json}
