"""Programs that import berth, on a simulated machine. The package is the installed one (./dev test python)."""

import os
import pathlib
import subprocess
import sys
import textwrap

from jobs import Lines, eventually
from simulated_machine import BUILD, DEADLINE_S, Answer, Machine

# The wheel of ./dev test python is for the interpreter of its tests.
BUILT = BUILD.parent / "python" / f"{sys.version_info[0]}.{sys.version_info[1]}" / "env"
ENVIRONMENT = pathlib.Path(os.environ.get("BERTH_PYTHON_ENV", BUILT))
PYTHON = ENVIRONMENT / "bin/python"

# What every program here begins with.
PREAMBLE = """
import os, signal, subprocess, sys, threading, time
import berth

def say(*words):
    print(*words, flush=True)

def say_once(word):
    # For on_wait, which hears of each change.
    said = []
    return lambda waiting: said or said.append(say(word))

def hear():
    return sys.stdin.readline().strip()
"""


class Program:
    """A running program, line by line."""

    def __init__(self, process: subprocess.Popen):
        self.process = process
        self.pid = process.pid
        self.out, self.err = Lines(process.stdout), Lines(process.stderr)

    def hears(self) -> str:
        line = self.out.line()
        assert line, f"it ended: {self.err.rest()}"
        return line.strip()

    def says(self, word: str) -> "Program":
        assert self.hears() == word
        return self

    def tell(self, word: str = "") -> "Program":
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self

    def signal(self, number: int) -> "Program":
        self.process.send_signal(number)
        return self

    def ends(self) -> int:
        return self.process.wait(DEADLINE_S)


class Host:
    """Python with berth, on one machine."""

    def __init__(self, machine: Machine, python: pathlib.Path = PYTHON):
        self.machine = machine
        self.python = python

    def run(self, code: str, *words, **options) -> Answer:
        return self.machine.run(self.python, "-c", PREAMBLE + textwrap.dedent(code), *words, **options)

    def says(self, code: str, *words, **options) -> list[str]:
        """The lines that it prints."""
        answer = self.run(code, *words, **options)
        assert answer.status == 0, answer.err
        return answer.out.splitlines()

    def start(self, code: str, *words, **options) -> Program:
        text = PREAMBLE + textwrap.dedent(code)
        return Program(self.machine.start(self.python, "-c", text, *words, stdin=subprocess.PIPE, **options))

    def free(self) -> int:
        """How many devices a new request could get."""
        verdicts = self.machine.berth("why", "--json").json["devices"]
        return sum(device["verdict"]["free"] for device in verdicts)

    def becomes_free(self, count: int) -> None:
        eventually(lambda: self.free() == count)

    def waiting(self) -> int:
        return len(self.machine.berth("queue", "--json").json["waiters"])

    def starts_waiting(self, count: int = 1) -> None:
        eventually(lambda: self.waiting() == count)
