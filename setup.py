"""What a wheel leaves out: right programs are packed, so that nobody reads one by accident; right variants and what
only grading asks stay in the clone. Everything else about the project stands in pyproject.toml.
"""

import zlib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class PackPrograms(build_py):
    """Build the packages, and store each ``program.py`` of an exercise as ``program.packed``."""

    def run(self) -> None:
        """Build; an editable install, which copies nothing, is left as it is."""
        super().run()
        if self.editable_mode:
            return
        for program in Path(self.build_lib).glob("*/exercises/*/*/program.py"):
            program.with_name("program.packed").write_bytes(zlib.compress(program.read_bytes(), 9))
            program.unlink()
        for name in ("variants.py", "graded.py"):
            for file in Path(self.build_lib).glob(f"*/exercises/*/*/{name}"):
                file.unlink()


setup(cmdclass={"build_py": PackPrograms})
