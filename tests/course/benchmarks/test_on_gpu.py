"""What is to run on a GPU runs here on a CPU first, with tiny sizes, from its pack alone, in a Python without more."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from gpu_pack import THERE

from tests.bare_python import isolate_environment
from vit_course.data import shapes

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "benchmarks" / "on_gpu.py"


def find_requirements(names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    left = list(names)
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in found:
            continue
        try:
            requires = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        left += [match[0] for each in requires if "extra ==" not in each and (match := re.match(r"[\w.-]+", each))]
    return found


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that sees nothing but what a lent machine's has, and what that needs."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    library = Path(sysconfig.get_path("purelib"))
    parts = {each.parts[0] for name in find_requirements(THERE) for each in importlib.metadata.files(name) or []} - {
        ".."
    }
    try:  # links to files: one to a folder leads out of what a worker may read
        for part in sorted(each for each in parts | {"nvidia"} if (library / each).exists()):
            if (library / part).is_dir():
                shutil.copytree(library / part, site / part, copy_function=os.link, dirs_exist_ok=True)
            else:
                os.link(library / part, site / part)
    except OSError as error:
        pytest.skip(f"packages cannot be linked to a temporary folder: {error}")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def image_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    images = shapes(120)
    train, test = images.subset(slice(100)), images.subset(slice(100, None))
    arrays = {
        f"{split}_{what}": values
        for split, part in (("train", train), ("test", test))
        for what, values in (("images", part.images.permute(0, 2, 3, 1).numpy()), ("labels", part.labels.numpy()))
    }
    np.savez(folder / "cifar10.npz", classes=np.array(images.classes), **arrays)
    command = [sys.executable, SCRIPT, "--pack", folder / "pack", "--data", folder / "cifar10.npz", "--students", "1"]
    subprocess.run([*command, "--lesson", "00_start"], check=True)
    for part in (folder / "pack").iterdir():
        shutil.copytree(part, folder / "there", dirs_exist_ok=True)
    return folder / "there"


@pytest.mark.proof
@pytest.mark.skipif(sys.platform != "linux", reason="grading needs Linux's sandbox")
def test_all_of_it_runs_on_a_cpu_from_the_pack_alone(image_archive: Path, bare_python: Path, tmp_path: Path) -> None:
    command = [bare_python, image_archive / "on_gpu.py", "--out", tmp_path / "out", "--device", "cpu", "--tiny"]
    environment = isolate_environment(dict(os.environ)) | {"OMP_NUM_THREADS": "1"}
    first = subprocess.run([*command, "--budget", "25"], env=environment, cwd=tmp_path, text=True, capture_output=True)
    assert first.returncode == 0, first.stderr
    begun = json.loads((tmp_path / "out" / "results.json").read_text())
    assert "grade one notebook" in begun  # and, there being no time left, not all
    again = subprocess.run(
        [*command, "--budget", "1500"], env=environment, cwd=tmp_path, text=True, capture_output=True
    )
    assert again.returncode == 0, again.stderr
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {name: each["exit"] for name, each in results.items() if each["exit"] != 0} == {}
    assert len(results) == 9
    assert results["grade one notebook"] == begun["grade one notebook"]
    report = (tmp_path / "out" / "report.txt").read_text()
    assert "one: 00_start.ipynb 2.0 of 2.0 points" in report
    assert "truth: 1 of 1 as they deserve" in report
    assert "gpu-minute, test accuracy: not run" in report  # one epoch says nothing of fifty
