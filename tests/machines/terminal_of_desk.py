"""berth on a terminal of the desk."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios

from fleet_of_hosts import PATIENCE_S


class Terminal:
    """berth on a terminal of 30 x 100."""

    def __init__(self, machines, *words):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [machines.hosts[0].lab.program, *words],
            env=machines.env,
            cwd=machines.folder / "work",
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)),
        )
        machines.running.append(self.process)
        os.close(theirs)
        self.seen = ""

    def until(self, text: str) -> str:
        while text not in self.seen:
            assert select.select([self.ours], [], [], PATIENCE_S)[0], self.seen
            try:
                piece = os.read(self.ours, 65536)
            except OSError:
                piece = b""
            assert piece, self.seen
            self.seen += piece.decode()
        return self.seen

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def resize(self, rows, columns) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
