"""Each face in Python has each argument of the table, and passes it on. The sources are run with a stand-in for the
extension, which needs no machine."""

import contextlib
import importlib
import pathlib
import re
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# How a value is written, by its kind: what Python has, and what the option gets.
SAMPLES = {
    "number": (3, "3"),
    "flag": (True, ""),
    "text": ("50", "50"),
    "size": ("20G", "20G"),
    "time": (7200, "7200s"),
    "grace": (60, "60s"),
    "selectors": ([0, "GPU-a"], "0,GPU-a"),
}
# The words that submitit and Hydra have for arguments of `berth.submit`.
OF_SUBMITIT = {"n": "gpus_per_node", "time": "timeout_min", "yield_": "yield"}


class Request:
    """Notes what it is told."""

    made = None

    def __init__(self):
        self.said = []
        Request.made = self

    def set(self, option, value):
        self.said.append((option, value))

    def check(self):
        pass


class StandIn(types.ModuleType):
    """Has whatever is asked for."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


@contextlib.contextmanager
def sources():
    """The package of this tree, as long as it is looked at."""
    ours = ("berth", "hydra_plugins")
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] in ours}
    for name in before:
        del sys.modules[name]
    extension = StandIn("berth._berth")
    extension.version, extension.Request = "0", Request
    extension.pick = extension.why = lambda *words: None
    sys.modules["berth._berth"] = extension
    sys.path.insert(0, str(ROOT / "python"))
    try:
        yield importlib.import_module("berth")
    finally:
        sys.path.remove(str(ROOT / "python"))
        for name in [name for name in sys.modules if name.split(".")[0] in ours]:
            del sys.modules[name]
        sys.modules.update(before)


@pytest.fixture
def berth():
    with sources() as package:
        yield package


def table(name: str) -> dict:
    return getattr(importlib.import_module("berth._request_fields"), name)


@pytest.mark.parametrize("call", ["pick", "why"])
def test_each_argument_of_a_question_reaches_the_request(berth, call):
    for name, (option, kind, _) in table("ARGUMENTS").items():
        value, text = SAMPLES[kind]
        getattr(berth, call)(**{name: value})
        assert (option, text) in Request.made.said
        assert len(Request.made.said) == (1 if name == "n" else 2)


def test_each_argument_of_a_lease_reaches_the_request(berth, monkeypatch):
    module = importlib.import_module("berth._lease")
    monkeypatch.setattr(module.Lease, "_acquire", lambda lease: lease)
    for name, (option, kind, _) in table("ARGUMENTS").items():
        value, text = SAMPLES[kind]
        berth.lease(**{name: value})
        assert (option, text) in Request.made.said


def test_each_argument_of_a_job_is_an_option_of_the_program(berth, monkeypatch):
    module = importlib.import_module("berth._job")
    asked = []
    monkeypatch.setattr(module, "_ask", lambda words, *rest: asked.append(words) or "7\n")
    for name, (option, kind, _) in table("JOB_ARGUMENTS").items():
        value, text = SAMPLES[kind]
        for ask in (lambda **said: berth.submit("true", **said), berth.Job("7").edit):
            ask(**{name: value})
            assert (f"--{option}={text}" if text else f"--{option}") in asked.pop()


def test_each_argument_is_explained(berth):
    for name in table("ARGUMENTS"):
        assert re.search(rf"^(\w+, )*{name}\b|; {name}:", berth.__doc__, re.M), name


def test_submitit_passes_each_argument_of_a_job_on(berth, monkeypatch, tmp_path):
    module = importlib.import_module("berth.submitit")
    asked = []
    monkeypatch.setattr(
        module._job, "submit", lambda *words, **said: asked.append(said) or types.SimpleNamespace(id="7")
    )
    for name, (_, kind, _) in table("JOB_ARGUMENTS").items():
        value = SAMPLES[kind][0]
        executor = module.BerthExecutor(tmp_path)
        executor.update_parameters(**{OF_SUBMITIT.get(name, name): value})
        executor._submitted()
        assert asked.pop()[name] == (value * 60 if name == "time" else value)


def test_hydra_has_each_argument_of_a_job(berth):
    module = importlib.import_module("hydra_plugins.berth_launcher")
    fields = set(module._REQUEST.__dataclass_fields__)
    for name in table("JOB_ARGUMENTS"):
        # A field cannot be called `yield`.
        word = OF_SUBMITIT.get(name, name)
        assert ("yields" if word == "yield" else word) in fields
