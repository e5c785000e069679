"""``vit-course doctor``: what this machine can do for the course, and what to do about what it cannot."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from exercise_kit.files import explain_unreadable_folder
from exercise_kit.submission.released import CLONE
from exercise_kit.versions import find_version_problem
from exercise_kit.worker.capabilities import SandboxCapabilities, probe_capabilities

Verdict = Literal["fine", "weaker", "missing"]
# one warm process with torch and a worker at its limit; its files and the class' results
MEMORY_WANTED, DISK_WANTED = 3 << 30, 1 << 30
GRADING = 'pip install "vit-course[grading]"'


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: what it is.
        verdict: "fine"; "weaker": works, with less; "missing": something will not work.
        seen: what was found.
        advice: what to do about it; empty where nothing need be done.
    """

    subject: str
    verdict: Verdict
    seen: str
    advice: str = ""


def inspect_machine(hidden: Path) -> tuple[list[Finding], bool]:
    """Look at everything, and grade one answer; the findings, and whether grading can run sandboxed.

    Args:
        hidden: the folder of the hidden checks.
    """
    protections = probe_capabilities()
    findings = [
        _inspect_python_and_torch(),
        _inspect_gpu(),
        *map(_inspect_program, ("nbgrader", "alembic", "jupyter-lab")),
    ]
    findings += [
        _inspect_hidden_checks(hidden),
        *_inspect_sandbox(protections),
        _inspect_disk(Path(tempfile.gettempdir())),
        _inspect_memory(),
    ]
    if not protections.is_sufficient:
        return findings, False
    tried = [try_grading_on_device(device) for device in ("cpu", *(["cuda"] if _has_cuda() else []))]
    return [*findings, *tried], tried[0].verdict != "missing"


def _inspect_python_and_torch() -> Finding:
    torch_version = _read_package_version("torch")
    problem = find_version_problem(sys.version_info[:3], torch_version)
    seen = f"Python {'.'.join(map(str, sys.version_info[:3]))}, torch {torch_version or 'not installed'}"
    return Finding("Python and PyTorch", "missing" if problem else "fine", seen, problem or "")


def _inspect_gpu() -> Finding:
    try:
        import torch
    except ImportError:
        return Finding("GPU", "weaker", "PyTorch is not there to ask", "Install PyTorch first")
    if torch.cuda.is_available():
        return Finding("GPU", "fine", torch.cuda.get_device_name())
    if torch.backends.mps.is_available():
        return Finding("GPU", "fine", "Apple's, through MPS")
    advice = "Lessons and grading do without. For long training use Colab: Runtime > Change runtime type > GPU"
    return Finding("GPU", "weaker", "none", advice)


def _has_cuda() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def try_grading_on_device(device: str, root: Path = CLONE) -> Finding:
    """Say whether submissions can be graded on a device, found by grading the model answer to the first lesson there.

    Args:
        device: as for `grade --device`.
        root: the clone of the course.
    """
    subject, advice = "Grading one answer", "That is what every answer would get: mend what it says first"
    if device != "cpu":
        subject, advice = "Grading on the GPU", "Grade with --device cpu, which decides the same"
    answers = sorted((root / "solutions").glob("*.ipynb"))
    if not answers:
        return Finding(
            subject, "weaker", "not tried: there is no model answer here", "Run this in a clone of the course"
        )
    from exercise_kit.batch.locations import GradeError
    from exercise_kit.cli.grade import GradeOptions, grade
    from exercise_kit.sandbox.limits import Limits

    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "result.json")
        silent = Console(file=io.StringIO())
        options = GradeOptions(answers[:1], json=str(written), fresh=True, limits=Limits(device=device))
        try:
            grade(options, silent, silent, Console(stderr=True))
        except GradeError as error:
            return Finding(subject, "missing", str(error), advice)
        result = json.loads(written.read_text(encoding="utf-8"))["submissions"][0]
    seen = f"{result['score']:g} of {result['max_score']:g} points for {answers[0].name}, in {result['seconds']:.1f} s"
    if result["status"] == "graded" and result["score"] == result["max_score"]:
        return Finding(subject, "fine", seen)
    return Finding(subject, "missing", f"{seen}: {result['reason'] or result['status']}", advice)


def _inspect_program(name: str) -> Finding:
    """A program that is called by its name, so it has to be on PATH; nbgrader calls alembic."""
    found = shutil.which(name)
    if found:
        return Finding(name, "fine", found)
    beside = Path(sys.executable).parent / name
    if beside.exists():
        return Finding(name, "missing", f"not on PATH, but at {beside}", f'export PATH="{beside.parent}:$PATH"')
    install = 'pip install "vit-course[notebooks]"' if name == "jupyter-lab" else GRADING
    return Finding(name, "missing", "not installed", install)


def _inspect_hidden_checks(folder: Path) -> Finding:
    if explain_unreadable_folder(folder):
        seen, advice = f"this account may not read {folder}", "Students do without; grade as the account that owns them"
        return Finding("Hidden checks", "missing", seen, advice)
    if folder.is_dir():
        own = len(list(folder.glob("test_*.py")))
        more = f", and {own} {'file' if own == 1 else 'files'} of your own in {folder}" if own else ""
        return Finding("Hidden checks", "fine", f"the course's{more}")
    advice = "They are not in the package that students install: grade from a clone of the course"
    return Finding("Hidden checks", "missing", f"there is no {folder}", advice)


def _inspect_sandbox(protections: SandboxCapabilities) -> list[Finding]:
    there = {
        "landlock": f"version {protections.landlock}" if protections.landlock else "",
        "seccomp": "filters are allowed" if protections.seccomp else "",
        "namespaces": "allowed" if protections.namespaces else "",
    }
    names = {
        "landlock": "Sandbox: files (Landlock)",
        "seccomp": "Sandbox: system calls (seccomp)",
        "namespaces": "Sandbox: namespaces",
    }
    findings = []
    for protection, seen in there.items():
        absent: Verdict = "weaker" if protection == "namespaces" else "missing"
        verdict: Verdict = "fine" if seen else absent
        findings.append(Finding(names[protection], verdict, seen or "absent", protections.missing.get(protection, "")))
    return findings


def _inspect_disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    seen = f"{free / 2**30:.1f} GB free in {folder}"
    if free >= DISK_WANTED:
        return Finding("Disk for temporary files", "fine", seen)
    return Finding("Disk for temporary files", "weaker", seen, "Free some, or name another folder in TMPDIR")


def _inspect_memory() -> Finding:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return Finding("Memory", "fine", "this system does not say")
    seen = f"{total / 2**30:.1f} GB"
    if total >= MEMORY_WANTED:
        return Finding("Memory", "fine", seen)
    return Finding("Memory", "weaker", seen, "Grade with --jobs 1, and close what else is running")


def _read_package_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


COLORS: dict[Verdict, str] = {"fine": "green", "weaker": "yellow", "missing": "bold red"}


def doctor(
    hidden: Annotated[Path, typer.Option(help="The folder of the hidden checks.")] = CLONE / "tests" / "hidden",
) -> None:
    """Tell what this machine can do: torch, GPU, nbgrader, sandbox; each with what to do about it."""
    findings, sandboxed = inspect_machine(hidden)
    # a path or a command is never broken over two lines: it is there to be copied
    console = Console(highlight=False, soft_wrap=True)
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        console.print(_format_line(finding, width))
    if sandboxed:
        console.print("\nGrading can run in the sandbox.")
        return
    console.print("\nGrading cannot run in the sandbox here: see what is missing above.")
    console.print("vit-course grade --no-sandbox grades all the same, with nothing between the students' code and you.")
    raise typer.Exit(1)


def _format_line(finding: Finding, width: int) -> Text:
    line = Text(f"{finding.verdict:<8}", style=COLORS[finding.verdict])
    line.append(f"{finding.subject:<{width}}  {finding.seen}", style="default")
    if finding.advice:
        line.append(f"\n{'':<{8 + width}}  → {finding.advice}", style="default")
    return line
