"""One question, five faces: the program, the lease helper under a host, the C++ library, Python, and the agent. What is
granted, why it is not, and what is to be known about it is the same whoever asks."""

import contextlib
import dataclasses
import json
import os
import re
import signal
from collections.abc import Callable

import pytest
from agent import Agent
from hosts import Host
from jobs import eventually, is_probe
from simulated_machine import Machine

pytestmark = pytest.mark.python

# As src/core/base/error.cpp has them.
STATUS = {"failure": 1, "usage": 2, "no_driver": 69, "impossible": 69, "not_now": 75}
PYTHON = {
    "failure": "Error",
    "usage": "Usage",
    "no_driver": "NoDriver",
    "impossible": "Impossible",
    "not_now": "NotNow",
}  # What stands against a device for this request or this asker only: the agent shows the machine.
OF_THE_REQUEST = ("in_mask", "static_filters")


@dataclasses.dataclass
class Said:
    """An answer, the same for each face: devices and notes, or a code and a message."""

    devices: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
    code: str = "ok"
    message: str = ""
    verdicts: dict = dataclasses.field(default_factory=dict)  # label: (clause or "free", reason)


@dataclasses.dataclass
class Case:
    """A machine, what is wrong there, and the right answer to a request for `count`."""

    machine: str
    count: int
    code: str = "ok"
    devices: list | None = None  # places in the snapshot
    clauses: dict | None = None  # label: clause that fails; the others are free
    notes: tuple = ()  # words of each note, in order
    message: str = ""  # words of the refusal
    among: tuple = ()  # devices asked for by name
    env: dict = dataclasses.field(default_factory=dict)
    prepare: Callable = lambda machine: {}  # gives more of the environment
    seen: bool = True  # why and the agent see devices

    @property
    def options(self) -> list:
        return ["-n", self.count] + (["--devices", ",".join(self.among)] if self.among else [])


def site(text: str):
    def prepare(machine: Machine) -> dict:
        (machine.directory / "site.toml").write_text(text)
        return {}

    return prepare


def open_to_all(machine: Machine) -> dict:
    machine.leases.mkdir(exist_ok=True)
    machine.leases.chmod(0o777)
    return {}


INSIDE = {"BERTH_LEASE", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}


def job_on(devices: str):
    """Somebody's job, and the environment that it has."""

    def prepare(machine: Machine) -> dict:
        job = machine.start_berth("run", "--devices", devices, "--", "sh", "-c", "env; exec sleep 1000")
        found = {}
        while not found.keys() >= INSIDE:
            line = job.stdout.readline()
            assert line, job.stderr.read()
            name, _, value = line.rstrip("\n").partition("=")
            found[name] = value
        return found

    return prepare


def inside(devices: str):
    """Asked from inside of that job's lease."""

    def prepare(machine: Machine) -> dict:
        found = job_on(devices)(machine)
        return {name: found[name] for name in INSIDE}

    return prepare


def taken(devices: str):
    def prepare(machine: Machine) -> dict:
        job_on(devices)(machine)
        return {}

    return prepare


FOUR = '[[device]]\nmodel = "T4"\ncount = 4\n'
PROCESS = "[[device.process]]\npid = 4204242\nghost = true\nused_mib = 900\n"

CASES = {
    "all is well": Case(FOUR, 2, devices=[0, 1], clauses={}),
    "no driver": Case(
        f"init_result = 9\n{FOUR}", 1, code="no_driver", message="kernel module is not loaded", seen=False
    ),
    "the driver crashes": Case(
        f'{FOUR}[[fault]]\ncall = "nvmlDeviceGetMemoryInfo*"\ndevice = 2\ncrash = true\n',
        1,
        code="failure",
        message="at GPU 2 with signal 11",
        seen=False,
    ),
    "topology crashes": Case(
        f'{FOUR}[[fault]]\ncall = "nvmlDeviceGetTopologyCommonAncestor"\ncrash = true\n',
        2,
        devices=[0, 1],
        clauses={},
        notes=("topology is not known",),
    ),
    "a card is lost": Case(
        '[[device]]\nmodel = "T4"\n[[device]]\nmodel = "T4"\nlost = true\n[[device]]\nmodel = "T4"\n',
        2,
        devices=[0, 2],
        clauses={"1": "healthy"},
    ),
    "too few cards for what is lost": Case(
        '[[device]]\nmodel = "T4"\n[[device]]\nmodel = "T4"\nlost = true\n',
        2,
        code="impossible",
        clauses={"1": "healthy"},
        message="it has 2 GPUs, and only 1 could serve it",
    ),
    "the driver hangs at one card": Case(
        f'{FOUR}[[fault]]\ncall = "nvmlDeviceGetMemoryInfo*"\ndevice = 2\nhang = true\n',
        1,
        devices=[0],
        clauses={"2": "healthy", "3": "healthy"},
        env={"BERTH_DRIVER_DEADLINE_MS": "300"},
    ),
    "a mask": Case(
        FOUR, 1, devices=[1], clauses={"0": "in_mask", "3": "in_mask"}, env={"CUDA_VISIBLE_DEVICES": "2,1"}
    ),
    "a mask that is too narrow": Case(
        FOUR,
        2,
        code="impossible",
        clauses={"0": "in_mask", "1": "in_mask", "3": "in_mask"},
        env={"CUDA_VISIBLE_DEVICES": "2"},
        message="it has 4 GPUs, and only 1 could serve it",
    ),
    "a mask that is cut off": Case(
        FOUR,
        1,
        devices=[3],
        clauses={"0": "in_mask", "1": "in_mask", "2": "in_mask"},
        env={"CUDA_VISIBLE_DEVICES": "3,99,1"},
        notes=("99",),
    ),
    "a mask that names nothing": Case(
        FOUR,
        1,
        code="impossible",
        clauses=dict.fromkeys("0123", "in_mask"),
        env={"CUDA_VISIBLE_DEVICES": "gpu zero"},
    ),
    "an instance": Case(
        '[[device]]\nmodel = "A100"\nmig = ["3g.20gb", "2g.10gb"]\n', 1, devices=[1], clauses={}
    ),
    "an instance beside a whole card": Case(
        '[[device]]\nmodel = "A100"\nmig = ["3g.20gb", "2g.10gb"]\n[[device]]\nmodel = "A100"\n',
        1,
        devices=[3],
        clauses={},
    ),
    "two instances": Case(
        '[[device]]\nmodel = "A100"\nmig = ["3g.20gb", "2g.10gb"]\n',
        2,
        code="impossible",
        clauses={"0:0": "static_filters", "0:1": "static_filters"},
        message="CUDA sees only one",
    ),
    "two instances by name": Case(
        '[[device]]\nmodel = "A100"\nmig = ["3g.20gb", "2g.10gb"]\n',
        2,
        among=("0:0", "0:1"),
        devices=[1, 2],
        clauses={},
        notes=("only the first of these 2 MIG instances",),
    ),
    "too few for ever": Case(FOUR, 5, code="impossible", clauses={}, message="(5 whole GPUs): it has 4 GPUs"),
    "too few now": Case(
        f'[[device]]\nmodel = "T4"\n{PROCESS}[[device]]\nmodel = "T4"\n',
        2,
        code="not_now",
        clauses={"0": "no_outsider"},
        message="1 GPU instead of 2",
    ),
    "leased": Case(
        FOUR,
        3,
        code="not_now",
        clauses={"1": "not_leased", "3": "not_leased"},
        message="GPU 1,3  leased by ",
        prepare=taken("1,3"),
    ),
    "a broken site file": Case(
        FOUR, 1, code="failure", message="site.toml", prepare=site("nonsense"), seen=False
    ),
    "a site that excludes": Case(
        FOUR,
        3,
        devices=[0, 1, 3],
        clauses={"2": "not_excluded"},
        prepare=site('[[excluded]]\ndevice = 2\nreason = "fan is broken"\n'),
    ),
    "a lease directory that is open to all": Case(
        FOUR, 1, code="failure", message="sticky", prepare=open_to_all, seen=False
    ),
    "inside of a lease": Case(
        FOUR,
        1,
        devices=[1],
        clauses={"0": "in_lease", "3": "in_lease"},
        prepare=inside("1,2"),
    ),
    "too few inside of a lease": Case(
        FOUR,
        3,
        code="impossible",
        clauses={"0": "in_lease", "3": "in_lease"},
        message="it has 2 GPUs",
        prepare=inside("1,2"),
    ),
    "a lease that is no more": Case(
        FOUR,
        1,
        devices=[0],
        clauses={},
        env={"BERTH_LEASE": "0000000000000001", "CUDA_VISIBLE_DEVICES": "3"},
        notes=("the lease in BERTH_LEASE=0000000000000001 has ended, or is not yours",),
    ),
}


def of_lines(text: str) -> Said:
    """What the asker prints."""
    said = Said()
    for line in text.splitlines():
        kind, *fields = line.split("\t")
        fields = [field.replace("\\n", "\n") for field in fields]
        if kind == "device":
            said.devices += fields
        elif kind == "note":
            said.notes += fields
        elif kind == "code":
            said.code = fields[0]
        elif kind == "message":
            said.message = fields[0]
        else:
            assert kind == "verdict", line
            said.verdicts[fields[0]] = (fields[1], fields[2])
    return said


def sentences(err: str) -> list:
    """Of the error stream."""
    lines = err.splitlines()
    assert all(line.startswith("berth: ") for line in lines), err
    return [line.removeprefix("berth: ") for line in lines]


def of_program(answer, uuids: Callable[[], list], code: str) -> Said:
    if answer.status == 0:
        return Said(devices=uuids(), notes=sentences(answer.err))
    assert answer.status == STATUS.get(code), answer
    assert answer.out == ""
    assert answer.err.startswith("berth: ") and answer.err.endswith("\n")
    return Said(code=code, message=answer.err.removeprefix("berth: ").removesuffix("\n"))


def pick_of_program(machine, case, env) -> Said:
    answer = machine.berth("pick", *case.options, "--json", env=env)
    said = of_program(answer, lambda: [device["uuid"] for device in answer.json["devices"]], case.code)
    if answer.status == 0:
        # What is about the place is told at once, and is no part of the document.
        assert said.notes[len(said.notes) - len(answer.json["notes"]) :] == answer.json["notes"]
    return said


def run_of_program(machine, case, env) -> Said:
    # --exec: what it says of processes that are left behind, of a hanging driver's probe too, is no
    # answer.
    words = ["run", "--no-wait", "--exec", *case.options, "--", "echo", "{uuids}"]
    answer = machine.berth(*words, env=env)
    return of_program(answer, lambda: answer.out.strip().split(","), case.code)


def of_library(what: str):
    def ask(machine, case, env) -> Said:
        answer = machine.run(machine.build / "faces_asker", what, case.count, *case.among, env=env)
        assert answer.status == 0, answer.err
        assert answer.err == ""
        return of_lines(answer.out)

    return ask


ASK = """
def field(text):
    return text.replace("\\n", "\\\\n")

def label(device):
    return str(device.index) if device.mig is None else f"{device.index}:{device.mig.slot}"

what, count = sys.argv[1], int(sys.argv[2])
among = {"devices": sys.argv[3:]} if sys.argv[3:] else {}
codes = {berth.NoDriver: "no_driver", berth.Impossible: "impossible", berth.NotNow: "not_now", berth.Usage: "usage", berth.Error: "failure"}
try:
    verdicts = ()
    if what == "why":
        verdicts = berth.why(count, **among)
    else:
        with contextlib.ExitStack() as stack:
            answer = berth.pick(count, **among) if what == "pick" else stack.enter_context(berth.lease(count, wait=0, **among))
            for device in answer.devices:
                say(f"device\\t{device.uuid}")
            for note in answer.notes:
                say(f"note\\t{field(note)}")
except berth.Error as error:
    verdicts = error.verdicts
    say(f"code\\t{codes[type(error)]}")
    say(f"message\\t{field(str(error))}")
for verdict in verdicts:
    say(f"verdict\\t{label(verdict.device)}\\t{verdict.clause or 'free'}\\t{field(verdict.reason)}")
"""


def of_python(what: str):
    def ask(machine, case, env) -> Said:
        return of_lines(
            "\n".join(Host(machine).says("import contextlib\n" + ASK, what, case.count, *case.among, env=env))
        )

    return ask


GRANTS = {
    "berth pick": pick_of_program,
    "berth run": run_of_program,
    "C++ pick": of_library("pick"),
    "C++ lease": of_library("lease"),
    "Python pick": of_python("pick"),
    "Python lease": of_python("lease"),
}


def each_of(labels: str) -> list[str]:
    """Of "0-2,7,4:0"."""
    found = []
    for part in labels.split(","):
        first, _, last = part.partition("-")
        found += [str(index) for index in range(int(first), int(last) + 1)] if last else [first]
    return found


def why_of_program(machine, case, env) -> Said:
    """The verdicts as people read them; those of the document are in the same order."""
    answer = machine.berth("why", *case.options, env=env)
    if answer.status != 0:
        return of_program(answer, list, case.code)
    said = Said()
    for labels, text in re.findall(r"^GPU (\S+) +(\S.*)$", answer.out, re.M):
        for label in each_of(labels):
            said.verdicts[label] = (text, "" if text.startswith("free") else text)
    said.verdicts = dict(sorted(said.verdicts.items(), key=lambda said: [int(n) for n in said[0].split(":")]))
    end_hung_probes(machine)
    document = machine.berth("why", *case.options, "--json", env=env).json
    assert len(document["devices"]) == len(said.verdicts)
    for label, row in zip(said.verdicts, document["devices"]):
        said.verdicts[label] = (row["verdict"]["clause"] or "free", said.verdicts[label][1])
    return said


EXPLAINS = {
    "berth why": why_of_program,
    "C++ why": of_library("why"),
    "Python why": of_python("why"),
}


def of_agent(machine: Machine, env: dict) -> Said:
    """What its document says of each device, by its place among those that are judged."""
    agent = Agent(machine, env=env)
    try:
        status, _, text = agent.get("/api/v1/snapshot")
    finally:
        agent.ends()
    document = json.loads(text)
    if status != 200:
        return Said(code=document["code"], message=document["message"])
    return Said(verdicts=verdicts_of(document))


def verdicts_of(document: dict) -> dict:
    """Of a listing or an explanation, by their place."""
    verdicts = [device["verdict"] for device in document["devices"] if device["verdict"] is not None]
    return {
        str(place): (verdict["clause"] or "free", verdict["reason"]) for place, verdict in enumerate(verdicts)
    }


def steady(text: str) -> str:
    """Without what passes between two questions: since when, and for how long."""
    text = re.sub(r"since \d\d:\d\d(:\d\d)?( \([^)]*\))?", "since TIME", text)
    return re.sub(r"not responding since [^;,\n]*", "not responding since TIME", text)


def hung_probes(machine: Machine) -> list[int]:
    return [pid for pid in machine.inhabitants() if is_probe(pid)]


def end_hung_probes(machine: Machine) -> None:
    """One that hangs keeps others from starting, and the next answer would be an older one."""
    for pid in hung_probes(machine):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: not hung_probes(machine))


@dataclasses.dataclass
class Scene:
    machine: Machine
    case: Case
    env: dict

    def hears(self, ask: Callable) -> Said:
        said = ask(self.machine, self.case, self.env)
        end_hung_probes(self.machine)
        return said

    def uuids(self) -> list:
        listing = self.machine.berth("list", "--json", env=self.case.env)
        end_hung_probes(self.machine)
        return [device["uuid"] for device in listing.json["devices"]]


@pytest.fixture(params=CASES, ids=lambda name: name.replace(" ", "-"))
def scene(request, make_machine) -> Scene:
    case = CASES[request.param]
    machine = make_machine(case.machine)
    return Scene(machine, case, case.env | case.prepare(machine))


def one(values) -> object:
    """What all faces say."""
    first, *others = values.items()
    for face, value in others:
        assert value == first[1], f"{face} says otherwise than {first[0]}"
    return first[1]


def failures(said: Said) -> dict:
    return {label: clause for label, (clause, _) in said.verdicts.items() if clause != "free"}


def test_whoever_asks_for_devices_is_given_the_same_or_refused_for_the_same_reasons(scene):
    case = scene.case
    answers = {face: scene.hears(ask) for face, ask in GRANTS.items()}
    assert one({face: said.code for face, said in answers.items()}) == case.code
    if case.code == "ok":
        uuids = scene.uuids()
        assert one({face: said.devices for face, said in answers.items()}) == [
            uuids[place] for place in case.devices
        ]
        notes = one({face: said.notes for face, said in answers.items()})
        assert len(notes) == len(case.notes), notes
        assert all(words in note for words, note in zip(case.notes, notes)), notes
        return
    assert case.message in one({face: steady(said.message) for face, said in answers.items()})
    told = {face: said for face, said in answers.items() if not face.startswith("berth ")}
    assert one({face: failures(said) for face, said in told.items()}) == (case.clauses or {})
    reasons = one(
        {
            face: {label: steady(reason) for label, (_, reason) in said.verdicts.items()}
            for face, said in told.items()
        }
    )
    # The sentences of the message are those of the verdicts.
    assert all(reason in steady(answers["berth pick"].message) for reason in reasons.values())


def test_whoever_asks_why_is_told_the_same_of_each_device(scene):
    case = scene.case
    answers = {face: scene.hears(ask) for face, ask in EXPLAINS.items()}
    assert one({face: said.code for face, said in answers.items()}) == ("ok" if case.seen else case.code)
    assert one({face: steady(said.message) for face, said in answers.items()}) == "" or not case.seen
    verdicts = one(
        {
            face: {label: (clause, steady(reason)) for label, (clause, reason) in said.verdicts.items()}
            for face, said in answers.items()
        }
    )
    assert bool(verdicts) == case.seen
    assert failures(Said(verdicts=verdicts)) == (case.clauses or {})


def test_the_agent_says_of_the_machine_what_why_says_without_a_mask(scene):
    case = scene.case
    said = of_agent(scene.machine, scene.env)
    end_hung_probes(scene.machine)
    answer = scene.machine.berth("why", "--mask", "ignore", "--json", env=scene.env)
    if not case.seen:
        assert said.code == case.code
        assert answer.err == f"berth: {said.message}\n"
        return
    told = verdicts_of(answer.json)
    assert {place: (clause, steady(reason or "")) for place, (clause, reason) in said.verdicts.items()} == {
        place: (clause, steady(reason or "")) for place, (clause, reason) in told.items()
    }
    of_machine = [clause for clause in (case.clauses or {}).values() if clause not in OF_THE_REQUEST]
    assert list(failures(said).values()) == of_machine
