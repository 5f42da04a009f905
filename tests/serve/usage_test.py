"""`berth usage`: whom it asks, and what it says when nobody answers."""

import getpass
import subprocess

import pytest
from agent import Agent
from jobs import eventually, holder
from schemas import checked

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def machine(make_machine):
    return make_machine("2xH100")


@pytest.fixture
def file(machine):
    return machine.directory / "history.db"


@pytest.fixture
def used(machine, file):
    """An agent that has seen a lease."""
    agent = Agent(machine, "--history", file)
    agent.url = f"http://127.0.0.1:{agent.port}"
    job = holder(machine, "-n", "2")
    # The first look that sees it knows of no time yet.
    eventually(lambda: sum(row["leased_gpu_hours"] for row in agent.usage()["rows"]))
    job.ends()
    return agent


def refusal(answer) -> str:
    assert answer.status in (1, 2) and answer.out == ""
    return " ".join(answer.err.split())


def test_an_agent_is_asked_over_the_network_and_on_its_socket(machine, used):
    for url in (used.url, f"unix:{used.socket}"):
        document = checked(machine.berth("usage", "--json", "--url", url), "usage")
        (row,) = document["rows"]
        assert row["leases"] == 1 and row["leased_gpu_hours"] > 0
    devices = checked(machine.berth("usage", "--json", "--by", "device", "--hub", used.url), "usage")["rows"]
    assert [row["gpu"] for row in devices] == ["0", "1"]
    table = machine.berth("usage", "--url", used.url)
    assert table.status == 0 and table.err == ""
    head, line, last, *notes = table.out.splitlines()
    assert head.split() == ["USER", "LEASES", "LEASED", "USED", "%"]
    assert line.split()[:2] == [row["user"], "1"]
    assert "leased on all GPUs" in last and "Nobody looked for 7 d of it" in notes[0]


def test_a_file_is_read_when_no_agent_has_it(machine, used, file):
    assert "an agent has it; ask that one, without --file" in refusal(machine.berth("usage", "--file", file))
    used.ends()
    assert checked(machine.berth("usage", "--json", "--file", file), "usage")["rows"][0]["leases"] == 1


def test_a_letter_is_the_same_of_an_agent_and_of_its_file(machine, used, file):
    """But for the GPUs' health, of which no history tells."""
    of_agent = machine.berth("usage", "--letter", "--url", used.url)
    assert of_agent.status == 0 and of_agent.err == ""
    head, _, *rest = of_agent.out.splitlines()
    assert head.startswith("GPUs of ") and rest[0].startswith("Nobody looked for 7 d of it")
    assert any(line.startswith("The agent looked for ") for line in rest)
    assert " %" not in of_agent.out.replace("IDLE %", "")
    assert any(line.startswith("1 request waited for ") for line in rest)
    assert "No GPU is sick now." in rest
    (row,) = [line.split() for line in rest if line.startswith(getpass.getuser())]
    assert row[1] == "1"
    assert all(len(line) <= 80 for line in of_agent.out.splitlines())
    used.ends()
    of_file = machine.berth("usage", "--letter", "--file", file)
    assert of_file.status == 0
    assert "The agent looked for " in of_file.out and "no agent was asked" in of_file.out


def test_a_letter_names_a_sick_gpu(make_machine):
    machine = make_machine('[[device]]\nmodel = "H100"\n[[device]]\nmodel = "H100"\nlost = true\n')
    agent = Agent(machine)
    answer = machine.berth("usage", "--letter", "--url", f"http://127.0.0.1:{agent.port}")
    assert "Sick now:\n  GPU 1: " in answer.out, answer


@pytest.mark.parametrize("words", [["--json"], ["--by", "job"], ["--anywhere"]])
def test_a_letter_is_of_one_machine_and_text(machine, words):
    assert "--letter is " in refusal(machine.berth("usage", "--letter", *words))


def test_a_token_is_asked_for_and_given(machine, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    agent = Agent(machine, "--token-file", token)
    url = f"http://127.0.0.1:{agent.port}"
    assert "it wants a token; give it with --token-file FILE" in refusal(machine.berth("usage", "--url", url))
    assert machine.berth("usage", "--url", url, "--token-file", token).status == 0


def test_what_is_wrong_is_named_with_what_to_do(machine):
    for words, said in (
        (["--since", "soon"], '"soon" is not a time'),
        (["--since", "500d"], "since: must be from 1s to 400d"),
        (["--by", "host"], "--by host: must be one of user, device, job"),
        (["--url", "node01"], "'node01' must be a URL like http://node01:8420"),
        (["--url", "http://192.0.2.1:1"], "plain HTTP over the network"),
        (["--url", "http://127.0.0.1:1"], "nobody listens at http://127.0.0.1:1; start `berth serve` there"),
        (["--url", "unix:/none"], "nobody listens at unix:/none"),
        (["--file", "/none"], "reading /none: No such file or directory"),
        (["--file", "x", "--url", "http://x"], "--file and --url contradict each other"),
    ):
        assert said in refusal(machine.berth("usage", *words))


def test_the_agent_that_keeps_no_history_says_so(machine):
    agent = Agent(machine, "--no-history")
    said = refusal(machine.berth("usage", "--url", f"http://127.0.0.1:{agent.port}"))
    assert "no history is kept here: the agent was started with --no-history" in said


def can_leave_the_network() -> bool:
    return subprocess.run(["unshare", "-Urn", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_leave_the_network(), reason="needs a network namespace of its own")
def test_unless_told_otherwise_it_asks_the_agent_of_this_machine(machine):
    said = refusal(machine.run("unshare", "-Urn", machine.program, "usage"))
    assert "asking http://127.0.0.1:8420: " in said
    assert "read the file of an agent that does not run with --file FILE" in said
