"""A screen: tmux is the terminal, which paints what a program sends and tells what stands where."""

import re
import shutil
import subprocess
import tempfile
import time

import pytest
from jobs import eventually


class Screen:
    """A program on a terminal of this size. It ends with the test."""

    def __init__(self, machine, *words, columns=80, lines=24, env=None):
        self.folder = tempfile.mkdtemp(prefix="berth-tmux-")
        settings = {
            name: str(value) for name, value in (machine.env | (env or {})).items() if value is not None
        }
        # A shell as the user has it: Ctrl-Z and what stands there afterwards are its business.
        self.tmux(
            *["new-session", "-d", "-x", str(columns), "-y", str(lines), "bash", "--norc", "--noprofile"],
            env=settings | {"PS1": "$ ", "HISTFILE": "/dev/null"},
        )
        self.shows("$")
        if words:
            self.type(f"clear; {' '.join(str(word) for word in words)}\n")

    def tmux(self, *words, **more) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", f"{self.folder}/socket", "-f", "/dev/null", *words],
            capture_output=True,
            text=True,
            timeout=30,
            **more,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """By tmux's names: Down, PPage, Escape, C-z."""
        self.tmux("send-keys", *keys)

    def lines(self) -> list[str]:
        return self.tmux("capture-pane", "-p").split("\n")[:-1]

    def text(self) -> str:
        return "\n".join(self.lines())

    def coloured(self) -> str:
        """With the sequences of its colours, of which each line has all that it needs."""
        lines, state = [], ""
        for line in self.tmux("capture-pane", "-p", "-e").split("\n")[:-1]:
            lines.append(state + line)
            for codes in re.findall(r"\x1b\[([0-9;]*)m", line):
                begins_anew = codes == "" or codes.split(";")[0] == "0"
                state = f"\x1b[{codes}m" if begins_anew else f"{state}\x1b[{codes}m"
        return "\n".join(lines)

    def shows(self, wanted: str) -> str:
        """Waits until the pattern is somewhere on the screen, and nothing more is being drawn."""
        return eventually(lambda: re.search(wanted, text := self.at_rest(), re.M) and text)

    def at_rest(self) -> str:
        text, before = self.text(), ""
        while text != before:
            time.sleep(0.05)
            text, before = self.text(), text
        return text

    def lacks(self, unwanted: str) -> str:
        return eventually(lambda: not re.search(unwanted, text := self.text(), re.M) and (text or " "))

    def resize(self, columns: int, lines: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def close(self) -> None:
        subprocess.run(["tmux", "-S", f"{self.folder}/socket", "kill-server"], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def make_screen():
    screens = []

    def make(machine, *words, **more) -> Screen:
        screens.append(Screen(machine, *words, **more))
        return screens[-1]

    yield make
    for screen in screens:
        screen.close()
