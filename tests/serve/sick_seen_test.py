"""What an agent, a hub and `berth doctor` tell of GPUs that are not given to everybody."""

import getpass
import json
import os
import subprocess

import pytest
from agent import Agent
from hub import Hub
from jobs import eventually
from outcomes_told import blamed_by, file_of
from schemas import checked_document

WHY = "the last 3 runs on it ended badly within 1 s, and the same program lives on GPU 1"


@pytest.fixture
def blamed(make_machine):
    """GPU 0 is passed over for us, and GPU 2 is taken out."""
    machine = make_machine("3xA100")
    assert machine.berth("run", "--", "true").status == 0
    file_of(machine).write_text(blamed_by(machine, 7))
    assert machine.berth("exclude", "2", "--because", "its fan").status == 0
    return machine


def metrics(server) -> str:
    text = server.get("/metrics")[2]
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    return text


def series(text: str, name: str) -> dict[str, str]:
    """The values by the labels that are not of the device's identity."""
    lines = (line for line in text.splitlines() if line.startswith(f"berth_{name}{{"))
    return dict(line.rsplit(" ", 1) for line in lines)


def test_an_agent_tells_for_whom_a_gpu_is_passed_over_and_a_hub_counts_them(blamed):
    agent = Agent(blamed)
    devices = checked_document(agent.json("/api/v1/snapshot"), "list")["devices"]
    (mine,) = devices[0]["passed_over"]
    assert (mine["uid"], mine["user"], mine["reason"]) == (os.geteuid(), getpass.getuser(), WHY)
    assert mine["until_s"] > 0
    assert devices[0]["verdict"]["clause"] == "not_passed_over"
    assert [device["passed_over"] for device in devices[1:]] == [[], []]
    text = metrics(agent)
    assert list(series(text, "device_passed_over_users").values()) == ["1", "0", "0"]
    refused = list(series(text, "device_refused"))
    assert [('clause="not_passed_over"' in one, 'clause="not_excluded"' in one) for one in refused] == [
        (True, False),
        (False, True),
    ]
    hub = Hub(blamed, f"far=http://127.0.0.1:{agent.port}")
    hub.sees("far")
    text = metrics(hub)
    assert series(text, "hub_passed_over_devices") == {'berth_hub_passed_over_devices{host="far"}': "1"}
    assert series(text, "hub_refused_devices") == {
        'berth_hub_refused_devices{host="far",clause="not_excluded"}': "1",
        'berth_hub_refused_devices{host="far",clause="not_passed_over"}': "1",
    }
    # As it came, so it goes on.
    (host,) = [host for host in hub.json("/api/v1/hosts")["hosts"] if host["name"] == "far"]
    assert host["snapshot"]["devices"][0]["passed_over"] == [mine]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs files of other users")
def test_an_agent_of_root_tells_it_of_each_user_and_passes_the_gpu_over_for_nobody_else(make_machine):
    machine = make_machine("2xA100")
    assert machine.berth("run", "--", "true").status == 0
    theirs = file_of(machine).with_name("4001")
    theirs.write_text(blamed_by(machine, 7))
    os.chown(theirs, 4001, 4001)
    agent = Agent(machine)
    device = agent.json("/api/v1/snapshot")["devices"][0]
    assert [(each["uid"], each["user"], each["reason"]) for each in device["passed_over"]] == [
        (4001, "uid 4001", WHY)
    ]
    assert device["verdict"]["free"]
    said = " ".join(machine.berth("doctor").out.split())
    assert "WARN GPU 0: passed over until " in said and f" for uid 4001: {WHY}" in said


def test_doctor_says_which_gpus_are_passed_over_and_which_are_taken_out(blamed):
    answer = blamed.berth("doctor")
    said = " ".join(answer.out.split())
    assert answer.status == 0
    assert "WARN GPU 0: passed over until " in said and f" for {getpass.getuser()}: {WHY}" in said
    assert "`berth include 0` by this user, or by root" in said
    assert "GPU 2: excluded by the site: its fan: nobody gets it" in said
    assert blamed.berth("include", "0", "2").status == 0
    said = blamed.berth("doctor").out
    assert "passed over" not in said and "excluded" not in said


def test_an_agent_tells_an_xid_that_comes_while_it_looks(make_machine):
    scenario = '[[device]]\nmodel = "A100"\nxid_events = {}\n[[device]]\nmodel = "A100"\n'
    machine = make_machine(scenario.format([48]))
    agent = Agent(machine)

    def xids() -> list:
        return [device["health"]["last_xid"] for device in agent.json("/api/v1/snapshot")["devices"]]

    # What was before it looked, the driver does not tell.
    assert xids() == [None, None]
    machine.change(scenario.format([48, 79, 31]))
    eventually(lambda: xids() == [79, None])
    assert list(series(metrics(agent), "device_last_xid").values()) == ["79"]
    # Whoever looks once hears of none.
    assert json.loads(machine.berth("list", "--json").out)["devices"][0]["health"]["last_xid"] is None
