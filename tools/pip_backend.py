"""What pip builds Berth by: scikit-build-core, which says every ten seconds how far it is.

pip shows what a backend says only if it is called with -v. On a terminal each line turns the mark that pip shows instead, and
all lines are in build/log/pip.log."""

import contextlib
import json
import os
import pathlib
import re
import sys
import tempfile
import threading

import progress
from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403

LOG = pathlib.Path("build/log/pip.log")


def targets() -> list[str]:
    found = re.search(r"^build\.targets = (\[.*\])$", pathlib.Path("pyproject.toml").read_text(), re.M)
    return json.loads(found[1])


@contextlib.contextmanager
def log_file():
    """Where the sources belong to somebody else, there is none."""
    try:
        LOG.parent.mkdir(parents=True, exist_ok=True)
        file = LOG.open("wb", buffering=0)
    except OSError:
        yield None
        return
    with file:
        yield file


@contextlib.contextmanager
def told(folder: pathlib.Path):
    """What this process and its children print goes on to where it went, with a line every ten seconds among it."""
    os.environ["NINJA_STATUS"] = progress.STATUS
    output = os.dup(1)
    reader, writer = os.pipe()
    os.dup2(writer, 1)
    os.close(writer)
    with log_file() as log:

        def write(text: bytes) -> None:
            os.write(output, text)
            # A full disk is the build's own affair.
            with contextlib.suppress(OSError):
                if log is not None:
                    log.write(text)

        def say(text: str) -> None:
            os.write(output, f"{text}\n".encode())

        def plan() -> dict[str, int]:
            return progress.plan_or_none(folder, targets())

        def follow() -> None:
            try:
                progress.follow(reader, write, plan, say, str(LOG.resolve()) if log is not None else "")
            finally:
                # If nobody reads any more, a build that goes on printing fails, and does not wait.
                os.close(reader)

        thread = threading.Thread(target=follow)
        thread.start()
        try:
            yield
        finally:
            sys.stdout.flush()
            # The pipe ends with its last writer.
            os.dup2(output, 1)
            thread.join()
            os.close(output)


@contextlib.contextmanager
def settings_and_folder(settings):
    """Where it builds has to be known here: scikit-build-core's own folder has a name of chance."""
    given = (settings or {}).get("build-dir") or os.environ.get("SKBUILD_BUILD_DIR")
    if given:
        yield settings, pathlib.Path(given).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        yield {**(settings or {}), "build-dir": folder}, pathlib.Path(folder)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with settings_and_folder(config_settings) as (settings, folder), told(folder):
        return build.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with settings_and_folder(config_settings) as (settings, folder), told(folder):
        return build.build_editable(wheel_directory, settings, metadata_directory)
