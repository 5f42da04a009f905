"""A command run to its end, or ended with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator


def run(words: list[str], environment: dict[str, str], patience_s: float) -> subprocess.CompletedProcess:
    """Raises OSError or subprocess.TimeoutExpired; nothing of it runs on then.

    What it says goes to files: a server that it leaves behind would hold a pipe open."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            status = process.wait(patience_s)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, status, out.read(), err.read())


@contextlib.contextmanager
def ended(process: subprocess.Popen) -> Iterator[subprocess.Popen]:
    """It is killed behind the block."""
    try:
        yield process
    finally:
        process.kill()
        with process:
            process.wait()
