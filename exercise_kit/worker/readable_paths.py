"""What a worker may read: Python, its packages and shared libraries, entry by entry; never the course, never a home."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

# answers (also other people's models), other graders, and what leads out of the folder
HIDDEN = (
    "vit_course",
    "exercise_kit",
    "__editable__",
    "timm",
    "transformers",
    "vit_pytorch",
    "nbgrader",
    "pytest",
    "_pytest",
    "__pycache__",
)
NEEDED = ("torch", "torchvision", "numpy", "IPython", "matplotlib", "PIL")
LIBRARY_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/cuda/lib64")
# how many processors there are, which libraries exist, and letters for figures
SYSTEM_FILES = ("/etc/ld.so.cache", "/proc/cpuinfo", "/sys/devices/system/cpu", "/usr/share/fonts", "/usr/lib/locale")

GPU_FILES = (
    *("/proc/driver/nvidia", "/proc/driver/nvidia-uvm", "/proc/sys/vm/mmap_min_addr"),
    *("/proc/devices", "/proc/meminfo", "/proc/modules", "/proc/filesystems"),
    *("/sys/bus/pci", "/sys/devices", "/sys/module/nvidia", "/sys/module/nvidia_uvm", "/sys/class/drm"),
    *("/etc/nvidia", "/usr/share/nvidia", "/usr/local/nvidia"),
)
GPU_LIBRARIES = ("/usr/lib64-nvidia", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib")


def list_package_folders() -> list[Path]:
    """The folders in which installed packages stand: site-packages, dist-packages, the user's own."""
    found = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    for name in NEEDED:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parent.parent)
    return list(dict.fromkeys(folder for folder in found if folder.is_dir()))


def list_standard_library() -> list[Path]:
    """The folders of Python's own modules."""
    folders = [Path(sysconfig.get_path(name, vars=_find_base_prefixes())) for name in ("stdlib", "platstdlib")]
    return list(dict.fromkeys(folder for folder in folders if folder.is_dir()))


def list_listable_folders() -> list[Path]:
    """The folders that imports list: what is in them may be read entry by entry, or not."""
    return [*list_package_folders(), *list_standard_library()]


def list_readable_paths(answers: Sequence[str] = ()) -> list[Path]:
    """Every file and folder that a worker may read, for ``policy.prepare_policy``; parents are not among them.

    Ask in an ordinary Python (with ``site``), for it looks where the packages of *this* Python are.

    Args:
        answers: how the names of packages begin that hold answers, beside those of ``HIDDEN``.
    """
    found = [path for path in map(Path, SYSTEM_FILES) if path.exists()]
    for folder in list_listable_folders():
        found += _list_readable_entries(folder, (*HIDDEN, *answers))
    for folder in map(Path, LIBRARY_FOLDERS):
        found += _list_libraries(folder)
    found += _list_libraries(Path(sys.base_prefix) / "lib")
    found += [path for path in [Path(sys.prefix) / "pyvenv.cfg"] if path.exists()]
    return list(dict.fromkeys(found))


def list_gpu_devices() -> list[Path]:
    """The devices through which programs use NVIDIA's GPUs."""
    folder = Path("/dev")
    return [path for path in sorted(folder.glob("nvidia*")) if not path.is_dir()]


def list_gpu_readable_paths() -> list[Path]:
    """Return what CUDA's libraries read of the machine, and where they are beside the usual places."""
    found = [path for path in map(Path, GPU_FILES) if path.exists()]
    for folder in (*GPU_LIBRARIES, *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))):
        found += _list_libraries(Path(folder))
    return list(dict.fromkeys(found))


def _list_readable_entries(folder: Path, hidden: tuple[str, ...]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        is_hidden = path.name.startswith(hidden) or path.suffix in (".pth", ".egg-link")
        folder_of_packages = path.name in ("site-packages", "dist-packages")
        leads_away = path.is_symlink() and folder.resolve() not in path.resolve().parents
        if not (is_hidden or folder_of_packages or leads_away):
            yield path


def _list_libraries(folder: Path) -> Iterator[Path]:
    """Shared libraries, and the folders (of an architecture) that hold them; no Python packages."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if ".so" in path.suffixes or (path.is_dir() and path.name.endswith(("-linux-gnu", "-linux-musl"))):
            yield path


def _find_base_prefixes() -> dict[str, str]:
    """Where the Python lies that a virtual environment was made from."""
    base, platbase = sys.base_prefix, sys.base_exec_prefix
    return {"installed_base": base, "installed_platbase": platbase, "base": base, "platbase": platbase}
