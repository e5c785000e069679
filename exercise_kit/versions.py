"""The versions that the course needs, and the sentence that says so."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

MINIMUM_PYTHON = (3, 11)
MINIMUM_TORCH = (2, 9)


class NotSupportedError(ImportError):
    """Python or torch is too old; Jupyter shows the sentence alone."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def find_version_problem(python: tuple[int, ...], torch_version: str | None) -> str | None:
    """Say what is too old or missing, and what to do about it; None when all is well.

    Args:
        python: (major, minor, ...) of the running Python.
        torch_version: as in ``torch.__version__``, or None where torch is not installed.
    """
    if python[:2] < MINIMUM_PYTHON:
        return (
            f"vit_course needs Python {_format_version(MINIMUM_PYTHON)} or newer; "
            f"this is Python {_format_version(python[:2])}. On Colab choose Runtime > Change runtime type > Latest; "
            "elsewhere make a new environment."
        )
    if torch_version is None:
        return "vit_course needs PyTorch, which is not installed here. Install it with: pip install torch torchvision"
    major, minor = torch_version.split(".")[:2]
    if (int(major), int(minor)) < MINIMUM_TORCH:
        return (
            f"vit_course needs PyTorch {_format_version(MINIMUM_TORCH)} or newer; this is {torch_version}. "
            "Upgrade with: pip install --upgrade torch torchvision"
        )
    return None


def require_supported_versions() -> None:
    """Raise NotSupportedError, with a remedy, where Python or torch is too old. Torch itself is not imported for it."""
    if problem := find_version_problem(sys.version_info[:3], _find_torch_version()):
        raise NotSupportedError(problem)


def _find_torch_version() -> str | None:
    if loaded := sys.modules.get("torch"):
        return str(loaded.__version__)
    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def _format_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
