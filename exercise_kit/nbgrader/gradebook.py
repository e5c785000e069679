"""Where a class's gradebook is, how long to wait for it, and what is wrong with it, in a sentence.

Whatever is wrong with its database, nbgrader answers with an SQL traceback and the advice to upgrade. SQLAlchemy lets
a program act where a connection is made and where one fails, so this module waits and explains there, for every command
of nbgrader's too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from exercise_kit.quoting import make_one_line
from exercise_kit.submission.released import CONFIG

FILE = "gradebook.db"
PATIENCE = 30  # seconds for another program's lock; an address with a `timeout` of its own keeps it
CONNECTING = 10  # seconds for a server to answer
_SETTING = "c.CourseDirectory.db_url"
_LONGEST = 300


class Fault(StrEnum):
    """What can be the matter with a gradebook; the value goes on from "the gradebook WHERE"."""

    LOCKED = "is locked: another program has been writing to it all the while; end that program, or let it finish"
    GONE = (
        "is gone, or an empty one is in its place: put its backup back, or begin a new one with 'nbgrader "
        "generate_assignment LESSON --force'; points given by hand are in the backup alone"
    )
    EMPTY = (
        "holds no lesson, so nothing is written: release one with 'nbgrader generate_assignment LESSON'; where one was "
        "released, put the gradebook's backup in its place"
    )
    READ_ONLY = "cannot be written to ({cause}): make it and its folder writable, or see why the disk is read-only"
    FULL = "cannot be written to, because its disk is full: free some space"
    DAMAGED = "is damaged ({cause}): keep that file, and put its backup in its place"
    CLOSED = "cannot be opened ({cause}): see that its folder exists, and that you may read and write it"
    DISK = "cannot be used, because its disk fails ({cause}): look at the disk before anything else"
    UNREACHABLE = f"does not answer ({{cause}}): start its server, or mend its address in {CONFIG}"
    OTHER_VERSION = "was made by another nbgrader ({cause}): back it up, then run 'nbgrader db upgrade'"
    NO_DRIVER = (
        'needs a driver that is not installed ({cause}): pip install "vit-course[postgres]", and begin its address '
        "with postgresql+psycopg://"
    )
    ADDRESS = (
        f"has no address that can be read ({{cause}}): in {CONFIG}, write it as "
        "postgresql+psycopg://USER@HOST/NAME or sqlite:////FOLDER/FILE"
    )
    COMPUTED = (
        f"has an address that {CONFIG} computes, and this command runs no configuration: write "
        f'{_SETTING} = "…" there as plain text, and a password into ~/.pgpass'
    )


class GradebookError(Exception):
    """A gradebook cannot be used; the message says which, why, and what to do.

    Attributes: the ``fault``.
    """

    def __init__(self, fault: Fault, where: str, cause: object = "") -> None:
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        super().__init__(f"the gradebook {where} {fault.format(cause=make_one_line(lines[0])[:_LONGEST])}")
        self.fault = fault


def read_gradebook_address(class_dir: Path) -> str:
    """The address of a class's gradebook, as its configuration has it, which is read and not run.

    Raises:
        GradebookError: the configuration cannot be read, or computes the address.
    """
    file = class_dir / FILE
    try:
        tree = ast.parse((class_dir / CONFIG).read_bytes())
    except FileNotFoundError:
        return f"sqlite:///{file}"
    except (OSError, SyntaxError, ValueError) as error:
        raise GradebookError(Fault.ADDRESS, f"of {class_dir}", error) from None
    settings = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    values = [node.value for node in settings if any(ast.unparse(each) == _SETTING for each in node.targets)]
    if not values:
        return f"sqlite:///{file}"
    if not (isinstance(values[-1], ast.Constant) and isinstance(values[-1].value, str)):
        raise GradebookError(Fault.COMPUTED, f"of {class_dir}")
    url = _parse_address(values[-1].value)
    if url.get_backend_name() == "sqlite" and url.database:  # nbgrader's commands work in the class folder
        url = url.set(database=str(class_dir / url.database))
    return url.render_as_string(hide_password=False)


def find_gradebook_file(address: str) -> Path | None:
    """The file that is the gradebook; None: it is on a server.

    Raises:
        GradebookError: the address cannot be read.
    """
    url = _parse_address(address)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def make_engine(address: str) -> Engine:
    """Return what connects to a gradebook; nothing is connected yet, and what fails from here on is a `GradebookError`.

    Raises:
        GradebookError: the address cannot be read, or its driver is not installed.
    """
    install_connection_listeners()
    url = _parse_address(address)
    try:
        return create_engine(url, poolclass=NullPool)
    except (ImportError, NoSuchModuleError, ArgumentError) as error:
        missing = isinstance(error, ImportError) and url.get_backend_name() == "postgresql"
        raise GradebookError(Fault.NO_DRIVER if missing else Fault.ADDRESS, describe_address(url), error) from None


def _parse_address(address: str) -> URL:
    try:
        return make_url(address)
    except (ArgumentError, ValueError) as error:
        raise GradebookError(Fault.ADDRESS, "of this class", type(error).__name__) from None


def describe_address(url: URL) -> str:
    """An address for people: of a file its path, of a server all but the password."""
    if url.drivername.startswith("sqlite"):
        return make_one_line(str(url.database))
    return make_one_line(unquote(url.difference_update_query(["password"]).render_as_string()))


def has_released_lesson(class_dir: Path) -> bool:
    """Say whether a class has released a lesson, so that it has had a gradebook."""
    return any((class_dir / "release").glob("*/*.ipynb"))


_new_files = ContextVar("new_files", default=True)


@contextmanager
def refuse_new_gradebook(needed: bool = True) -> Iterator[None]:
    """Inside, where ``needed``, refuse to make a file where the gradebook was: SQLite would grade into an empty one."""
    token = _new_files.set(not needed)
    try:
        yield
    finally:
        _new_files.reset(token)


def install_connection_listeners() -> None:
    """Take part in every connection of this process to a database; once is enough, and more is no harm."""
    for name, listener in (("do_connect", _prepare_connection), ("handle_error", _translate_driver_error)):
        if not event.contains(Engine, name, listener):
            event.listen(Engine, name, listener)


def _prepare_connection(dialect: Any, _: object, positional: list[Any], options: dict[str, Any]) -> None:
    if dialect.name == "sqlite":
        options.setdefault("timeout", PATIENCE)
        path = Path(positional[0])
        if not _new_files.get() and not (path.is_file() and path.stat().st_size):
            raise GradebookError(Fault.GONE, str(path))
    elif dialect.name == "postgresql":
        options.setdefault("connect_timeout", CONNECTING)
        options.setdefault("options", f"-c lock_timeout={PATIENCE}s")


def _translate_driver_error(context: Any) -> GradebookError | None:
    """The error that takes the place of a driver's; None: it stays."""
    error, statement = context.original_exception, context.statement or ""
    fault = (_classify_file_error if context.dialect.name == "sqlite" else _classify_server_error)(error, statement)
    if fault is None:
        return None
    return GradebookError(fault, describe_address(context.engine.url) if context.engine else "of this class", error)


_FILE_FAULTS = {
    "SQLITE_BUSY": Fault.LOCKED,
    "SQLITE_LOCKED": Fault.LOCKED,
    "SQLITE_READONLY_DBMOVED": Fault.GONE,
    "SQLITE_READONLY": Fault.READ_ONLY,
    "SQLITE_FULL": Fault.FULL,
    "SQLITE_CORRUPT": Fault.DAMAGED,
    "SQLITE_NOTADB": Fault.DAMAGED,
    "SQLITE_CANTOPEN": Fault.CLOSED,
    "SQLITE_PERM": Fault.CLOSED,
    "SQLITE_IOERR": Fault.DISK,
}
_MAKES = ("CREATE", "ALTER", "DROP")


def _classify_file_error(error: BaseException, statement: str) -> Fault | None:
    name = getattr(error, "sqlite_errorname", None) or ""
    for code, fault in _FILE_FAULTS.items():
        if name.startswith(code):
            return fault
    if name == "SQLITE_ERROR" and not statement.startswith(_MAKES):  # a table or a column that is not there
        return Fault.OTHER_VERSION
    return None


_SERVER_FAULTS = {
    "55P03": Fault.LOCKED,  # it waited for a lock
    "40P01": Fault.LOCKED,  # two waited for each other
    "25006": Fault.READ_ONLY,
    "42501": Fault.READ_ONLY,  # no right to a table
    "53100": Fault.FULL,
    "XX001": Fault.DAMAGED,
    "XX002": Fault.DAMAGED,
    "58030": Fault.DISK,
    "42P01": Fault.OTHER_VERSION,
    "42703": Fault.OTHER_VERSION,
}
_AWAY = ("08", "53", "57")  # the classes of codes of a connection, of resources, of an operator who stopped it


def _classify_server_error(error: BaseException, _: str) -> Fault | None:
    if (code := getattr(error, "sqlstate", None)) is not None:
        return _SERVER_FAULTS.get(code) or (Fault.UNREACHABLE if code.startswith(_AWAY) else None)
    psycopg = sys.modules.get("psycopg")
    return Fault.UNREACHABLE if psycopg and isinstance(error, psycopg.OperationalError) else None
