"""measured.json is what the logged runs say, and the listing says what measured.json says."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from vit_course.recipes import RECIPES, RecipeError, listing
from vit_course.recipes.listing import MEASURED, is_counted_run, read_measured_runs, summarize_runs
from vit_course.recipes.result import read_result, write_result

ROOT = Path(__file__).parents[3]
LOGS = ROOT / "benchmarks" / "results" / "recipes"
MINUTE = RECIPES["cpu-minute"]


@pytest.fixture
def measured_runs(tmp_path, make_result, monkeypatch):
    """A measured.json of three invented runs of cpu-minute on a CPU and one on a GPU, which the listing reads."""
    runs = [make_result(seed=seed, accuracy=accuracy) for seed, accuracy in enumerate((0.985, 0.987, 0.989))]
    runs += [make_result(device="Tesla T4", precision="fp16", accuracy=0.99, seconds=6.0)]
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(summarize_runs(RECIPES.values(), runs)))
    monkeypatch.setattr(listing, "read_measured_runs", lambda: read_measured_runs(path))
    return path


def test_measured_json_is_what_the_logs_say() -> None:
    logged = [read_result(path) for path in sorted(LOGS.glob("*.json"))]
    known = json.loads(MEASURED.read_text(encoding="utf-8"))
    assert known == summarize_runs(RECIPES.values(), logged), "run: python benchmarks/recipes.py --summary"


def test_every_log_carries_the_name_of_its_run() -> None:
    for path in LOGS.glob("*.json"):
        result = read_result(path)
        assert path.stem == f"{result.recipe}-{result.seed}"


class TestWhatCounts:
    def test_a_whole_run_of_the_recipe_as_it_is(self, make_result) -> None:
        assert is_counted_run(MINUTE, make_result())
        assert is_counted_run(MINUTE, make_result(ending="stopped early"))

    @pytest.mark.parametrize(
        "changes",
        [
            {"changed": {"epochs": 1}},
            {"ending": "interrupted"},
            {"data": {"name": "my own"}},
            {"definition": {"dataset": "mnist"}},
            {"data": {"name": "mnist", "validation_images": 4_000}},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_nothing_else(self, make_result, changes) -> None:
        assert not is_counted_run(MINUTE, make_result(**changes))
        assert summarize_runs([MINUTE], [make_result(**changes)])["recipes"] == {}


class TestSummary:
    def test_runs_of_one_machine_make_a_mean_and_a_spread(self, measured_runs) -> None:
        cpu, gpu = read_measured_runs(measured_runs)["cpu-minute"]
        assert (cpu.device, cpu.seeds) == ("CPU, 2 threads", (0, 1, 2))
        assert cpu.accuracy.mean == pytest.approx(0.987)
        assert cpu.accuracy.deviation == pytest.approx(0.002)
        assert (gpu.device, gpu.precision, gpu.accuracy.deviation) == ("Tesla T4", "fp16", None)

    def test_runs_with_more_and_fewer_threads_are_runs_of_one_recipe(self, tmp_path, make_result) -> None:
        path = tmp_path / "measured.json"
        runs = [make_result(seed=0, cpu_seconds=100.0), make_result(seed=1, threads=1, cpu_seconds=80.0)]
        path.write_text(json.dumps(summarize_runs([MINUTE], [*runs, make_result(seed=2, cpu_seconds=None)])))
        (cpu,) = read_measured_runs(path)["cpu-minute"]
        assert (cpu.device, cpu.seeds) == ("CPU, 1 or 2 threads", (0, 1, 2))
        assert cpu.cpu_seconds.mean == 90

    def test_the_order_of_the_logs_does_not_matter(self, make_result) -> None:
        runs = [make_result(seed=seed) for seed in range(3)]
        assert summarize_runs([MINUTE], runs) == summarize_runs([MINUTE], runs[::-1])


class TestListing:
    def print_to_text(self, what: object) -> str:
        console = Console(width=120, no_color=True, highlight=False)
        with console.capture() as capture:
            console.print(what)
        return capture.get()

    def test_a_measured_recipe_opens_with_command_device_minutes_and_accuracy(self, measured_runs) -> None:
        page = listing.write_recipe_page(MINUTE)
        assert page.startswith("vit-course train cpu-minute\n")
        assert "98.70 ± 0.20 % (3 seeds) of the test images, in 2.0 minutes of one core" in page
        assert "on CPU, 2 threads, fp32, 4,600 images/s, seeds 0, 1, 2" in page
        assert "99.00 % (1 seed) of the test images, in 0.1 minutes" in page

    def test_a_page_tells_how_images_are_changed_and_grow(self) -> None:
        page = listing.write_recipe_page(RECIPES["cpu-coffee"])
        assert "images      max_shift 2, flip, 0.5 of their size until 50% of the steps, 0.75 of" in page
        assert "images      as they are" in listing.write_recipe_page(RECIPES["seed-a-mnist"])

    def test_the_table_has_a_row_for_each_recipe(self, measured_runs) -> None:
        rows = self.print_to_text(listing.make_recipe_table()).splitlines()
        assert [row.split()[0] for row in rows[1:]] == list(RECIPES)
        assert "98.70 ± 0.20 % " in rows[1 + list(RECIPES).index("cpu-minute")]

    def test_an_unmeasured_recipe_says_so(self, measured_runs) -> None:
        page = listing.write_recipe_page(RECIPES["gpu-best"])
        assert "not measured yet" in page
        assert "calculated  5.9 minutes on H200 or H100, at 8.5% of the GPU's peak" in page
        assert "calculated" not in listing.write_recipe_page(RECIPES["seed-e-cifar10"])
        row = next(
            row for row in self.print_to_text(listing.make_recipe_table()).splitlines() if row.startswith("gpu-best ")
        )
        assert "not measured yet" in row

    def test_a_seed_tells_what_was_published_and_its_slips(self, measured_runs) -> None:
        page = listing.write_recipe_page(RECIPES["seed-a-mnist"])
        assert "published   71.50% of the test images, 5 epochs, Tesla T4" in page
        assert "softmax before the loss: The model ends in a softmax" in page
        assert "A validation split is kept back" in page

    def test_json_holds_the_same(self, measured_runs) -> None:
        entry, other = json.loads(listing.write_recipes_json([MINUTE, RECIPES["seed-d-cifar100"]]))
        assert entry["command"] == "vit-course train cpu-minute"
        assert [each["device"] for each in entry["measured"]] == ["CPU, 2 threads", "Tesla T4"]
        assert other["measured"] == []
        assert other["published"]["accuracy"] == 0.37
        assert "GELU after the MLP" in other["slips"]


class TestResultFile:
    def test_it_comes_back_as_it_was(self, tmp_path, make_result) -> None:
        write_result(tmp_path / "result.json", make_result())
        assert read_result(tmp_path / "result.json") == make_result()
        assert [path.name for path in tmp_path.iterdir()] == ["result.json"]

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            *((each, r"result\.json is damaged") for each in ("{", "[]", '{"version": 1}', "3")),
            ('{"version": 9}', "has version 9; this is version 1"),
        ],
    )
    def test_a_damaged_one_and_another_version_are_refused(self, tmp_path, content, words) -> None:
        (tmp_path / "result.json").write_text(content)
        with pytest.raises(RecipeError, match=words):
            read_result(tmp_path / "result.json")


def load_benchmark():
    spec = importlib.util.spec_from_file_location("recipes_benchmark", ROOT / "benchmarks" / "recipes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestBenchmark:
    def test_a_run_is_a_command_whose_result_becomes_the_log(self, tmp_path, make_result, monkeypatch) -> None:
        benchmark, commands = load_benchmark(), []

        def pretend_to_train(command, env):
            commands.append((command[2:], env["OMP_NUM_THREADS"]))
            folder = Path(command[command.index("--out") + 1])
            folder.mkdir(parents=True, exist_ok=True)
            if len(commands) == 2:
                write_result(folder / "result.json", make_result(seed=7))
            return subprocess.CompletedProcess(command, 0 if len(commands) == 2 else 1)

        monkeypatch.setattr(benchmark.subprocess, "run", pretend_to_train)
        places = [f"--{name}={tmp_path / name}" for name in ("runs", "logs", "measured", "curves")]
        options = ["--recipe", "cpu-minute", "--seeds", "7", "--data", "images", "--threads", "1", *places]
        monkeypatch.setattr(sys, "argv", ["recipes.py", *options])
        with pytest.raises(SystemExit, match="stopped: vit_course train cpu-minute"):
            benchmark.main()
        benchmark.main()
        assert "--resume" not in commands[0][0]
        assert commands[1][0][-1] == "--resume"
        assert commands[1][1] == "1"
        assert read_result(tmp_path / "logs" / "cpu-minute-7.json").seed == 7
        assert json.loads((tmp_path / "measured").read_text())["recipes"]["cpu-minute"]["runs"][0]["seed"] == 7
        assert (tmp_path / "curves" / "cpu-minute.png").exists()
        benchmark.main()
        assert len(commands) == 2  # a finished run is kept
