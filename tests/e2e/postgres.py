"""Debian's PostgreSQL as a private server: its files in a folder of its own, a Unix socket, no port."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.waiting import GIVE_UP

BINARIES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/nonexistent"))
ACCOUNT = "postgres"  # of the machine, for the server does not run as root; and of the server, which it may do all in
needs_postgres = pytest.mark.skipif(
    not (BINARIES / "initdb").is_file() or (os.getuid() == 0 and shutil.which("runuser") is None),
    reason="no PostgreSQL server on this machine (Debian: apt-get install postgresql)",
)


class Server:
    """A server that is started and stopped.

    Args:
        folder: an empty one, which the server's account can reach.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if os.getuid() == 0:
            shutil.chown(folder, ACCOUNT)
        self._run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", ACCOUNT, "-E", "UTF8", "--no-sync")
        self.start()

    def start(self) -> None:
        options = f"-c listen_addresses='' -c fsync=off -k '{self.folder}'"
        self._run_pg_ctl("start", "-o", options, "-l", str(self.folder / "log"))

    def stop(self) -> None:
        """At once, as a machine that goes down."""
        self._run_pg_ctl("stop", "-m", "immediate")

    def create_database(self, name: str) -> str:
        """The address of a new database."""
        self._run("createdb", "-h", str(self.folder), "-U", ACCOUNT, name)
        return f"postgresql+psycopg://{ACCOUNT}@/{name}?host={self.folder}"

    @property
    def stop_command(self) -> list[str]:
        return self._prefix_with_account(
            str(BINARIES / "pg_ctl"), "-D", str(self.folder / "data"), "stop", "-m", "immediate"
        )

    def _run_pg_ctl(self, action: str, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", action, *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        command = self._prefix_with_account(str(BINARIES / program), *arguments)
        # a server that is started would hold the pipe of a captured output open
        with (self.folder / "output").open("a") as output:
            done = subprocess.run(command, stdout=output, stderr=output, cwd=self.folder, check=False, timeout=GIVE_UP)
        assert done.returncode == 0, (self.folder / "output").read_text()

    @staticmethod
    def _prefix_with_account(*command: str) -> list[str]:
        return ["runuser", "-u", ACCOUNT, "--", *command] if os.getuid() == 0 else list(command)
