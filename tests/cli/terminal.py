"""A pseudo-terminal, for what Berth shows to people."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios


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


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
