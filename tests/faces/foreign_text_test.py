"""Text that somebody else made, through every face: names, notes, command lines, the site's file. Whoever reads it on a
terminal, or in a document by way of `jq -r` and the page, gets neither an escape, nor a line of somebody else's, nor
writing that is turned round."""

import json
import os
import re
import unicodedata

import pytest
from agent import Agent
from hub import Hub
from jobs import eventually
from lease_jobs import waiting
from screen import make_screen  # noqa: F401
from terminal import on_terminal

TITLE = "\x1b]0;owned\x07"
EVIL = f"x{TITLE}\x1b[2J\x1b[31m\x9b2J\u202egpj\u2066i\u2069\u200f\udcff\rr\nberth: a line of somebody else's"
SHOWN = r"x\x1b]0;owned\x07\x1b[2J\x1b[31m\xc2\x9b2J\xe2\x80\xaegpj"
# As TOML has it, which admits no byte that is no UTF-8.
QUOTED = '"' + "".join(f"\\u{ord(c):04x}" for c in EVIL.replace("\udcff", "")) + '"'

MACHINE = f"""
[[device]]
model = "T4"
name = {QUOTED}
[[device]]
model = "T4"
name = {QUOTED}
[[device.process]]
pid = 4204242
ghost = true
name = {QUOTED}
used_mib = 900
[[device]]
model = "T4"
"""
OWN = re.compile(r"\x1b\[[0-9]{1,2}m|\r\x1b\[K")


def assert_harmless(text: str, face: str) -> None:
    """Nothing but characters that show, line ends, tabs, and the colours of the program's own."""
    for at, character in enumerate(text):
        bad = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\n\t"
        assert not bad, f"{face} wrote {text[max(0, at - 40) : at + 20]!r}"
    assert not re.search(r"^berth: a line of somebody else", text, re.M), (
        f"{face} let a line through: {text!r}"
    )


def texts_in(document):
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        for key, value in document.items():
            yield from (key, *texts_in(value))
    elif isinstance(document, list):
        for value in document:
            yield from texts_in(value)


def assert_harmless_document(text: str, face: str) -> None:
    assert_harmless(text, face)
    for each in texts_in(json.loads(text)):
        assert_harmless(each.replace("\nberth: ", "\n"), f"a text of {face}")


@pytest.fixture
def evil_machine(make_machine):
    """A lease and a waiter of such words, deaf to a request to end; an outsider, names and a file of such words."""
    machine = make_machine(MACHINE)
    (machine.directory / "site.toml").write_text(f"[[excluded]]\ndevice = 2\nreason = {QUOTED}\n")
    deaf = ("bash", "-c", "trap '' TERM; echo ready; while :; do read -t 100 <> <(:); done")
    job = machine.start_berth(
        "run", "--note", EVIL, "--devices", "0", "--", *deaf, EVIL, errors="surrogateescape"
    )
    assert job.stdout.readline() == "ready\n", job.stderr.read()
    waits = machine.start_berth("run", "--note", EVIL, "--devices", "0", "--", "true", EVIL)
    eventually(lambda: waiting(machine))
    (machine.leases / "leases" / "x\x1b[2J\u202e").write_text(EVIL, errors="surrogateescape")
    yield machine
    waits.terminate()


FACES = {
    "list": ["list"],
    "list --json": ["list", "--json"],
    "queue": ["queue"],
    "queue --json": ["queue", "--json"],
    "why": ["why"],
    "why --json": ["why", "--json"],
    "a refusal": ["pick", "-n", "3"],
    "a refusal of pick --json": ["pick", "--devices", "0", "--json"],
    "a refusal because of the line": ["run", "--no-wait", "--devices", "0", "--", "true"],
    "a wait that runs out": ["run", "--wait", "0.3s", "--devices", "0", "--", "true"],
    "doctor": ["doctor"],
    "doctor --json": ["doctor", "--json"],
    "release in vain": ["release", "--wait", "1s", "{lease}"],
    "verify": ["verify", "{lease}"],
    "verify --json": ["verify", "--json", "{lease}"],
    "what completion offers": ["__leases"],
    "a wrong word": ["pick", "--devices", EVIL],
    "a wrong option": [f"--{EVIL}"],
    "a wrong command": [EVIL],
    "a wrong expression": ["pick", "--where", f"name~{EVIL!r}"],
    "a site file that is wrong": ["list"],
    "a lease that is no more": ["list"],
    "a mask that names nothing": ["pick"],
}
ENVIRONMENT = {
    "a site file that is wrong": {"BERTH_SITE_FILE": "{broken}"},
    "a lease that is no more": {"BERTH_LEASE": EVIL},
    "a mask that names nothing": {"CUDA_VISIBLE_DEVICES": EVIL},
}
# Faces that show the command line, the note or a name.
SHOWS = ("list", "queue", "why", "verify", "a refusal", "release in vain", "a wrong command")


@pytest.fixture
def asked(evil_machine):
    """The words and the environment of a face."""
    broken = evil_machine.directory / "broken.toml"
    broken.write_text(f"unknown = {QUOTED}\n[{QUOTED}]\n")

    def words(face: str):
        fill = {"{lease}": only_of_a_process(evil_machine), "{broken}": str(broken)}
        return (
            [fill.get(word, word) for word in FACES[face]],
            {name: fill.get(text, text) for name, text in ENVIRONMENT.get(face, {}).items()},
        )

    return words


def only_of_a_process(machine) -> str:
    return next(name for name in os.listdir(machine.leases / "leases") if "\x1b" not in name)


@pytest.mark.parametrize("face", FACES)
def test_a_pipe_gets_nothing_that_acts(evil_machine, asked, face):
    words, env = asked(face)
    answer = evil_machine.berth(*words, env=env)
    assert_harmless(answer.err, f"the error stream of {face}")
    if "--json" in words and answer.out:
        assert_harmless_document(answer.out, face)
    assert_harmless(answer.out, face)
    if face in SHOWS:
        assert r"\x1b" in answer.out + answer.err, answer


@pytest.mark.parametrize("face", [face for face in FACES if "json" not in face])
def test_a_terminal_gets_our_colours_and_nothing_else_that_acts(evil_machine, asked, face):
    words, env = asked(face)
    _, text = on_terminal(evil_machine, *words, columns=200, env=env)
    assert_harmless(OWN.sub("", text), face)


def test_the_agent_its_metrics_and_a_hub_tell_it_so(evil_machine, make_machine):
    agent = Agent(evil_machine)
    hub = Hub(make_machine("1xT4"), f"far=http://127.0.0.1:{agent.port}")
    hub.sees("far")
    paths = (
        "/api/v1/snapshot",
        "/api/v1/hosts",
        "/api/v1/queue",
        "/api/v1/leases",
        "/healthz",
        "/gpu_status",
    )
    for server in (agent, hub):
        for path in (*paths, f"/api/v1/match?filter={'%1b%c2%9b%ff'}"):
            status, headers, text = server.get(path)
            if "json" in headers["Content-Type"]:
                assert_harmless_document(text, f"{path} ({status})")
        for path in ("/metrics", "/%1b%c2%9b", "/"):
            assert_harmless(server.get(path)[2].replace("\ufeff", ""), path)
        assert SHOWN in server.json("/api/v1/hosts")["hosts"][0]["snapshot"]["leases"][0]["note"]
    events = agent.events()
    assert_harmless_document(json.dumps(events.next("snapshot"), ensure_ascii=False), "an event")
    events.close()
    listed = evil_machine.berth("list", "--hub", f"http://127.0.0.1:{hub.port}")
    assert_harmless(listed.out + listed.err, "list --hub")


def test_what_shows_it_shows_all_of_it(evil_machine):
    (lease,) = evil_machine.berth("list", "--json").json["leases"]
    assert lease["note"].startswith(SHOWN) and r"\xff" in lease["note"]
    assert SHOWN in lease["command"]
    assert SHOWN in evil_machine.berth("list").out
    assert only_of_a_process(evil_machine) == lease["id"]


def test_a_screen_shows_it_and_does_nothing_else(evil_machine, make_screen):  # noqa: F811
    screen = make_screen(evil_machine, evil_machine.program, "top", columns=200, lines=50)
    text = screen.shows("QUEUE  1")
    assert text.count(SHOWN) >= 2 and "PROCESSES" in text
    assert_harmless(text, "top")
    assert screen.tmux("display-message", "-p", "#{pane_title}").strip() != "owned"


@pytest.mark.python
def test_python_is_refused_in_words_that_do_not_act(evil_machine):
    from hosts import Host

    (said,) = Host(evil_machine).says(
        "try:\n    berth.lease(3, wait=0)\nexcept berth.Error as error:\n    say(ascii(str(error)))\n"
    )
    assert_harmless(eval(said), "an exception")
    assert r"\x1b" in eval(said)
