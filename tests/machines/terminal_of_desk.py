"""A terminal of the desk, with berth or a shell on it."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios

from fleet_of_hosts import PATIENCE_S
from jobs import eventually


class Terminal:
    """A terminal of 30 x 100, with berth on it, or another program."""

    def __init__(self, machines, *words, program=None, env=None):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [program or machines.hosts[0].machine.program, *words],
            env=machines.env | (env or {}),
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
            self.seen += piece.decode(errors="replace")
        return self.seen

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def resize(self, rows, columns) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def modes(self) -> list:
        """Of the side that programs have."""
        return termios.tcgetattr(self.ours)

    def passes_every_key(self) -> bool:
        return not self.modes()[3] & (termios.ICANON | termios.ECHO | termios.ISIG)


SHELLS = {"bash": ["bash", "--norc", "--noprofile", "-i"], "dash": ["dash", "-i"]}


def settings_of_shell(machines) -> dict:
    """What a shell of the desk finds: `berth` is the program."""
    found = machines.folder / "desk-bin"
    if not found.exists():
        found.mkdir()
        (found / "berth").symlink_to(machines.hosts[0].machine.program)
    return machines.env | {
        "PATH": f"{found}:{machines.env['PATH']}",
        "PS1": "desk> ",
        "HISTFILE": "/dev/null",
        "TERM": "dumb",
        "ENV": "",
    }


class ShellOfDesk(Terminal):
    """A shell with job control, as somebody types into it. What a line prints is told by a mark behind it."""

    def __init__(self, machines, kind="bash"):
        self.marks = 0
        program, *words = SHELLS[kind]
        super().__init__(machines, *words, program=program, env=settings_of_shell(machines))
        self.says("true")

    def says(self, line: str) -> str:
        """What the line writes, up to the next prompt."""
        self.marks += 1
        before = len(self.seen)
        # In pieces, so that the line as it is typed is not taken for what it writes.
        self.type(f"echo beg'in'{self.marks}.; {line}; echo en'd'{self.marks}.\n")
        self.until(f"end{self.marks}.")
        return re.search(f"begin{self.marks}\\.(.*)end{self.marks}\\.", self.seen[before:], re.DOTALL)[
            1
        ].strip()

    def after_it(self, line: str) -> str:
        """What the line writes once the shell has its terminal back. What is typed before goes to the command."""
        eventually(lambda: not self.passes_every_key())
        return self.says(line)

    def jobs(self) -> str:
        return self.says("jobs")
