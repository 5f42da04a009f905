"""A pseudo-terminal, for what Berth shows to people."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time


def on_terminal(machine, *words, columns=80, env=None) -> tuple[int, str]:
    """Exit status and all that berth wrote, with output and errors on one terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [str(machine.program), *words],
        env=machine.env | {"TERM": "xterm"} | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # EIO: the last writer has gone
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    return process.wait(timeout=30), written.decode().replace("\r\n", "\n")


class OnTerminal:
    """berth on a pseudo-terminal of its own, left running. It ends with the machine of its test."""

    def __init__(self, machine, *words, columns=80, lines=24, **more):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen(
            [str(machine.program), *words],
            env=machine.env | {"TERM": "xterm"},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            **more,
        )
        os.close(theirs)
        self.text = ""

    def shows(self, wanted: str, seconds: float = 60) -> str:
        """All that it has written, once the pattern is in it."""
        end = time.monotonic() + seconds
        while not re.search(wanted, self.text, re.M):
            assert time.monotonic() < end, self.text
            if not select.select([self.ours], [], [], 1)[0]:
                continue
            try:
                self.text += os.read(self.ours, 65536).decode().replace("\r\n", "\n")
            except OSError:  # EIO: the last writer has gone
                assert re.search(wanted, self.text, re.M), self.text
        return self.text

    def close(self) -> None:
        self.process.kill()
        self.process.wait(timeout=30)
        os.close(self.ours)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
