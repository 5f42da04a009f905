"""A user of the drop-ins, or of their originals, at a simulated machine."""

import json
import os
import pathlib
import re

import pytest
from simulated_machine import BUILD, Answer, Machine

HERE = pathlib.Path(__file__).parent
ORIGINALS = HERE.parents[1] / ".venv-originals"
# Where both distributions are installed (./dev test python).
ENVIRONMENT = pathlib.Path(os.environ.get("BERTH_DROPIN_ENV", BUILD.parent / "python/current/dropin/env"))

_ANSWERS = """
import ast, json, os, sys
def told(value):
    if isinstance(value, BaseException):
        return {"raises": type(value).__name__, "kinds": [kind.__name__ for kind in type(value).__mro__], "text": str(value)}
    try:
        json.dumps(value)
        return value
    except TypeError:
        return repr(value)
scope = {}
exec(sys.argv[1], scope)
for question in json.loads(sys.argv[2]):
    try:
        answer = eval(question, scope)
    except BaseException as error:
        answer = error
    print("ANSWER " + json.dumps(told(answer)), flush=True)
"""


def example(document: str, title: str) -> str:
    """The text of an example in examples/, as it stands there."""
    text = (HERE / "examples" / document).read_text()
    found = re.search(rf"^## {re.escape(title)}\n\n```\w*\n(.*?)^```", text, re.M | re.S)
    return found.group(1)


class Desk:
    """`machine` is the machine; commands find the drop-ins, and the stand-ins for what cannot be had here."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.directory = machine.directory / "work"
        self.directory.mkdir()
        machine.env["PATH"] = f"{HERE / 'standins/bin'}:{ENVIRONMENT / 'bin'}:{machine.env['PATH']}"
        machine.env["PYTHONPATH"] = str(HERE / "standins")
        machine.env["PYTHONDONTWRITEBYTECODE"] = "1"

    def run(self, *words, **options) -> Answer:
        return self.machine.run(*words, cwd=self.directory, **options)

    def shell(self, text: str, **options) -> Answer:
        return self.run("bash", "-c", text, **options)

    def python(self, code: str, **options) -> Answer:
        """Runs as a user's script would."""
        (self.directory / "script.py").write_text(code)
        return self.run("python3", "script.py", **options)

    def start_python(self, code: str, **options):
        return self.machine.start("python3", "-c", code, cwd=self.directory, **options)

    def ask(self, setup: str, *questions: str, env=None, original: str = "") -> list:
        """What the expressions are, in one process. `original` names an environment of .venv-originals instead."""
        python = "python3"
        if original:
            python = ORIGINALS / original / "bin/python"
            if not python.exists():
                pytest.skip("needs the originals: ./dev setup")
            env = {"PYTHONPATH": HERE / "standins", **(env or {})}
        done = self.run(python, "-W", "ignore", "-c", _ANSWERS, setup, json.dumps(questions), env=env or {})
        lines = [line for line in done.out.splitlines() if line.startswith("ANSWER ")]
        assert len(lines) == len(questions), done.err
        return [json.loads(line[len("ANSWER ") :]) for line in lines]

    def leased(self) -> list:
        """Indices of the GPUs that are leased."""
        devices = self.machine.berth("list", "--json").json["devices"]
        return [device["index"] for device in devices if device["leases"]]
