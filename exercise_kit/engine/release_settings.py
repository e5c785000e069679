"""What an instructor has decided for the students of one release: which route they take, and whether they may borrow.

The settings travel in the wheel of a release, as ``exercises/release.json`` of the course's package. Where there is no
such file, as in a clone, every lesson is there and borrowing is allowed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from exercise_kit.engine.course_named import read_package_name

FILE = Path("exercises") / "release.json"  # in the course's package


class Route(StrEnum):
    """Which lessons students get."""

    CORE = "core"
    ALL = "all"


@dataclass(frozen=True)
class ReleaseSettings:
    """The settings of a release.

    Attributes:
        route: which lessons it holds.
        borrow: whether ``borrow`` gives the course's parts.
    """

    route: Route = Route.ALL
    borrow: bool = True

    def as_json(self) -> bytes:
        """The settings as the file that travels in a wheel."""
        return json.dumps(asdict(self), indent=1).encode() + b"\n"


def read_release_settings() -> ReleaseSettings:
    """The settings of the release that the course's package came with."""
    place = files(read_package_name()).joinpath(*FILE.parts)
    if not place.is_file():
        return ReleaseSettings()
    found = json.loads(place.read_text("utf-8"))
    return ReleaseSettings(Route(found["route"]), found["borrow"])
