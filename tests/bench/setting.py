"""What every part of a run has in common: the build, its programs, a scratch directory, how often to measure."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Bench:
    build: pathlib.Path
    directory: pathlib.Path
    runs: int  # rounds of each contest
    share: float = 1.0  # of the full length, for what is measured for some time

    @functools.cached_property
    def berth(self) -> str:
        """As an installation has it. A linker writes a file in pieces, and then the kernel maps it in pieces: the same
        program takes a tenth longer to pick from where it was linked than from a copy."""
        folder = self.directory / "installed"
        folder.mkdir()
        for program in ("berth", "berth-serve"):
            shutil.copy2(self.build / program, folder)
        return str(folder / "berth")

    @property
    def measure(self) -> pathlib.Path:
        return self.build / "bench/measure"

    @property
    def python(self) -> str:
        """That of the environment which has the package and nothing else."""
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return str(self.build.parent / "python" / version / "env/bin/python")

    @staticmethod
    def say(text: str) -> None:
        """How far the run is."""
        print(f"  {text}", file=sys.stderr, flush=True)

    def program(self, name: str) -> str:
        return str(self.build / "bench" / name)

    def seconds(self, full: float) -> float:
        return max(1.0, full * self.share)

    def times(self, full: int, least: int = 2) -> int:
        return max(least, round(full * self.share))
