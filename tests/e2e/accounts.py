"""Accounts of this machine, made for a test and removed after it, and an environment in which they run the course."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbgrader
import pytest

from tests.waiting import GIVE_UP

ROOT = Path(__file__).parents[2]
PACKAGES = Path(nbgrader.__file__).parents[1]
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("useradd"), reason="only root makes accounts (useradd)"
)
SCRIPTS = {"nbgrader": "-m nbgrader", "vit-course": "-m vit_course", "alembic": "-m alembic.config", "python": ""}


@dataclass(frozen=True)
class Accounts:
    """A folder that everybody may enter, with a home for each account, and the accounts' names by their roles."""

    base: Path
    names: dict[str, str]

    def find_home(self, role: str) -> Path:
        return self.base / "home" / self.names[role]

    def run(self, role: str, commands: str, status: int | None = 0) -> str:
        """Run commands in an account's own shell, from its home folder, and give all that they print.

        Args:
            role: "root", or one of the accounts.
            commands: for bash, which stops at the first that fails.
            status: the exit status that is asserted; None: any.
        """
        name = self.names.get(role, "root")
        entry = pwd.getpwnam(name)
        home = self.base if role == "root" else self.find_home(role)
        environment = {
            "HOME": str(home),
            "USER": name,
            "LOGNAME": name,
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "JUPYTER_PATH": f"{sys.prefix}/share/jupyter",
            "JUPYTER_CONFIG_PATH": str(self.base / "etc" / "jupyter"),
            "PATH": f"{self.base}/bin:/usr/bin:/bin",
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"umask 022; exec 2>&1; {commands}"],
            cwd=home,
            env=environment,
            user=entry.pw_uid,
            group=entry.pw_gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
            timeout=GIVE_UP,
        )
        assert status is None or done.returncode == status, f"{role}: {commands}\n{done.stdout}"
        return done.stdout


@contextmanager
def open_accounts(roles: Sequence[str]) -> Iterator[Accounts]:
    """Make an account for each role; afterward they are gone, with their homes.

    Raises:
        pytest.skip.Exception: no account but root's can run the course on this machine.
    """
    base = Path(tempfile.mkdtemp(prefix="vit-course-accounts-"))
    names = {role: f"vit{os.getpid()}-{role}" for role in roles}
    try:
        base.chmod(0o755)
        for folder in ("home", "bin", "etc/jupyter"):
            (base / folder).mkdir(parents=True)
        made = Accounts(base, names)
        for role, name in names.items():
            home = str(made.find_home(role))
            command = ["useradd", "--create-home", "--home-dir", home, "--shell", "/bin/bash", name]
            subprocess.run(command, check=True, capture_output=True)
            made.find_home(role).chmod(0o700)
        _install_commands(made)
        yield made
    finally:
        for name in names.values():
            subprocess.run(["userdel", name], check=False, capture_output=True)
        shutil.rmtree(base)


def _install_commands(made: Accounts) -> None:
    """Put the course's commands on the accounts' path, with the first interpreter that they may run."""
    role = next(iter(made.names))
    said = ""
    for interpreter in (sys.executable, f"/usr/bin/python3.{sys.version_info[1]}"):
        start = f"#!/bin/sh\nPYTHONPATH={ROOT}:{PACKAGES} PYTHONDONTWRITEBYTECODE=1 exec {interpreter} -W ignore"
        for name, module in SCRIPTS.items():
            script = made.base / "bin" / name
            script.write_text(f'{start} {module} "$@"\n')
            script.chmod(0o755)
        said = made.run(role, 'python -c "import nbgrader, sqlite3, vit_course; print(nbgrader.__file__)"', None)
        if said.strip().endswith(".py"):
            return
    pytest.skip(f"no other account can run the course here: {said.strip().splitlines()[-1:]}")
