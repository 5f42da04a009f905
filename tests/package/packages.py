"""What ./dev package leaves in dist/."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def output(*command, **options) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, **options).stdout


def only(pattern: str) -> pathlib.Path:
    (found,) = (ROOT / "dist").glob(pattern)
    return found
