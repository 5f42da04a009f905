"""What the agent remembers, and what becomes of that when disk, clock or agent fail."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess

import pytest
from agent import Agent
from agent_test import documented
from history_kill import Killing, counts
from jobs import eventually, holder
from simulated_machine import DEADLINE_S, Machine

TWO = '[[device]]\nmodel = "H100"\ncount = 2\n'


@pytest.fixture
def machine(make_machine):
    return make_machine(TWO)


@pytest.fixture
def file(machine):
    return machine.directory / "history.db"


def usage(agent: Agent, by: str = "user") -> dict:
    told = agent.usage(by)
    documented("/api/v1/usage", 200, json.dumps(told))
    return told


def history(agent: Agent) -> dict:
    return agent.json("/api/v1/health")["history"]


def device(agent: Agent) -> str:
    return agent.json("/api/v1/snapshot")["devices"][0]["uuid"]


def asked(agent: Agent, uuid: str, **parameters) -> dict:
    words = "".join(f"&{name}={value}" for name, value in parameters.items())
    status, _, text = agent.get(f"/api/v1/history?device={uuid}{words}")
    documented("/api/v1/history", status, text)
    assert status == 200
    return agent.json(f"/api/v1/history?device={uuid}{words}")


def test_a_lease_and_its_use_are_remembered(machine, file):
    agent = Agent(machine, "--history", file)
    job = holder(machine, "-n", "1")
    eventually(lambda: agent.json("/api/v1/leases")["leases"])
    machine.change(TWO + f"process = [{{pid = {job.process.pid}, used_mib = 1000}}]\n")
    (row,) = eventually(lambda: [row for row in usage(agent)["rows"] if row["used_gpu_hours"] > 0])
    assert row["leases"] == 1
    assert row["leased_gpu_hours"] >= row["used_gpu_hours"]
    uuid = device(agent)
    (lease,) = asked(agent, uuid)["leases"]
    assert lease["id"] == agent.json("/api/v1/leases")["leases"][0]["id"]
    assert lease["ended_s"] is None
    job.ends()
    (lease,) = eventually(lambda: [each for each in asked(agent, uuid)["leases"] if each["ended_s"]])
    assert lease["end_seen"] and lease["ended_s"] >= lease["begun_s"]
    by_name = agent.json(f"/api/v1/hosts/{socket.gethostname()}/history?device={uuid}")
    assert by_name["leases"] == [lease]
    (row,) = usage(agent, "device")["rows"]
    assert (row["device"], row["gpu"], row["host"]) == (uuid, "0", None)
    assert agent.ends() == 0
    assert counts(file)["leases"] == 1


@pytest.mark.parametrize(
    ("question", "status", "words"),
    [
        ("history", 400, "device: must be the UUID of a device, as in /api/v1/snapshot"),
        ("history?device=x&since=soon", 400, "expected a number and s, m, h or d"),
        ("history?device=x&points=1", 400, "points: must be a number from 2 to 2000"),
        ("history?device=x&start=1", 400, "unknown parameter 'start'; allowed: device, since, points"),
        ("history?device=x", 404, "nothing is known of a device 'x'; there are GPU-"),
        ("usage?since=500d", 400, "since: must be from 1s to 400d"),
        ("usage?by=host", 400, "by: must be user, device or job"),
        ("hosts/other/history?device=x", 404, "no such path"),
    ],
)
def test_a_question_at_fault_is_told_what_is_allowed(one_agent, question, status, words):
    answer = one_agent.get(f"/api/v1/{question}")
    assert answer[0] == status
    assert words in answer[2]


@pytest.fixture(scope="module")
def one_agent(tmp_path_factory):
    machine = Machine(tmp_path_factory.mktemp("lab"), TWO)
    agent = Agent(machine)
    usage(agent)
    yield agent
    machine.close()


def test_it_lies_where_programs_keep_what_they_remember_and_is_its_owners_alone(machine):
    agent = Agent(machine)
    usage(agent)
    kept = machine.directory / "home/.local/state/berth/history.db"
    assert kept.stat().st_mode & 0o777 == 0o600
    agent.ends()
    state = machine.directory / "state"
    state.mkdir(0o700)
    agent = Agent(machine, env={"STATE_DIRECTORY": state})
    usage(agent)
    assert (state / "history.db").exists()


def test_who_wants_none_has_none(machine):
    agent = Agent(machine, "--no-history")
    assert history(agent) == {"status": "off", "reason": None, "lost_samples": 0}
    status, _, text = agent.get("/api/v1/usage")
    documented("/api/v1/usage", status, text)
    assert status == 503 and "the agent was started with --no-history" in text
    assert not (machine.directory / "home/.local").exists()


def test_an_agent_killed_at_any_time_leaves_a_whole_file_with_all_that_it_told(machine):
    killing = Killing(machine, seed=os.getpid())
    for _ in range(3):
        killing.round()
    assert killing.before["leases"] >= 1


def test_a_lease_that_ends_while_no_agent_runs_is_told_as_one_whose_end_nobody_saw(machine, file):
    agent = Agent(machine, "--history", file)
    job = holder(machine)
    eventually(lambda: usage(agent)["rows"])
    agent.process.kill()
    agent.process.wait()
    job.ends()
    agent = Agent(machine, "--history", file)
    (lease,) = eventually(lambda: [each for each in asked(agent, device(agent))["leases"] if each["ended_s"]])
    assert not lease["end_seen"]


def may_mount() -> bool:
    return (
        subprocess.run(
            ["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True
        ).returncode
        == 0
    )


@pytest.mark.skipif(not may_mount(), reason="needs a mount namespace of its own")
def test_on_a_full_disk_it_serves_on_and_goes_on_when_there_is_room(machine):
    disk = machine.directory / "disk"
    disk.mkdir()
    script = f'mount -t tmpfs -o size=256k,mode=700 none {disk} && exec "$@"'
    agent = Agent(
        machine, "--history", disk / "history.db", within=("unshare", "-Urm", "sh", "-c", script, "sh")
    )
    # The files beside the database are there once somebody has asked.
    eventually(lambda: history(agent)["status"] == "ok" and usage(agent))
    inside = pathlib.Path(f"/proc/{agent.process.pid}/root{disk}")
    with (inside / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    eventually(lambda: usage(agent) and history(agent)["status"] == "failing")
    assert "full" in history(agent)["reason"]
    (inside / "filler").unlink()
    eventually(lambda: usage(agent) and history(agent)["status"] == "ok")
    assert agent.get("/readyz")[0] == 200
    assert agent.err.line().startswith(f"berth: the history is not written: {disk}/history.db: ")
    assert agent.err.line() == "berth: the history is written again\n"


def test_a_read_only_disk_is_called_that(machine):
    disk = machine.directory / "disk"
    disk.mkdir()
    for before in ("", f"cp {machine.directory / 'whole.db'} {disk}/history.db && "):
        script = f'mount -t tmpfs -o mode=700 none {disk} && {before}mount -o remount,ro {disk} && exec "$@"'
        within = ("unshare", "-Urm", "sh", "-c", script, "sh")
        agent = Agent(machine, "--history", disk / "history.db", within=within)
        eventually(lambda agent=agent: history(agent)["status"] == "failing")
        assert history(agent)["reason"] == f"{disk}/history.db: its disk is mounted read-only"
        agent.ends()
        whole = Agent(machine, "--history", machine.directory / "whole.db")
        usage(whole)
        whole.ends()


@pytest.mark.parametrize("garbage", [b"no database", b"\0" * 5000], ids=["text", "zeros"])
def test_a_corrupt_file_is_kept_under_another_name_and_a_new_one_begins(machine, file, garbage):
    file.write_bytes(garbage)
    agent = Agent(machine, "--history", file)
    usage(agent)
    (aside,) = machine.directory.glob("history.db.corrupt-2*")
    assert aside.read_bytes() == garbage
    agent.ends()
    assert counts(file)["watched"] == 1
    told = "".join(agent.warnings) + agent.err.rest()
    assert f"berth: the history: {file} was corrupt" in told and str(aside) in told


def test_a_second_agent_serves_without_until_the_first_has_ended(machine, make_machine, file):
    first = Agent(machine, "--history", file)
    usage(first)
    second = Agent(make_machine(TWO), "--history", file)
    status, _, text = second.get("/api/v1/usage")
    assert status == 503 and "another agent has it: end that, or name another file" in text
    first.ends()
    eventually(lambda: second.get("/api/v1/usage")[0] == 200)


def test_a_file_of_a_newer_version_is_left_alone(machine, file):
    with contextlib.closing(sqlite3.connect(file)) as newer:
        newer.executescript("CREATE TABLE later (x); PRAGMA application_id=0x42727468; PRAGMA user_version=9")
    agent = Agent(machine, "--history", file)
    status, _, text = agent.get("/api/v1/usage")
    assert status == 503
    assert "it was written by another version of Berth (its tables are 9, ours 1)" in text
    agent.ends()
    with contextlib.closing(sqlite3.connect(file)) as newer:
        assert newer.execute("SELECT name FROM sqlite_schema").fetchall() == [("later",)]


def test_a_place_that_cannot_be_written_is_named(machine):
    agent = Agent(machine, "--history", "/sys/history.db")
    status, _, text = agent.get("/api/v1/usage")
    assert status == 503 and "/sys/history.db" in text
    assert agent.get("/api/v1/snapshot")[0] == 200


@pytest.mark.release_only  # the clock is preloaded, and a sanitizer would have to come before it
def test_a_clock_that_jumps_makes_no_hours(machine, file):
    clock = machine.directory / "clock"
    clock.write_text("0 0")
    agent = Agent(
        machine,
        "--history",
        file,
        env={"LD_PRELOAD": machine.build / "other_clock.so", "OTHER_CLOCK": clock},
    )
    job = holder(machine)
    eventually(lambda: usage(agent)["rows"])

    for seconds in (86_400, -3600):
        stopped = agent.json("/api/v1/health")["taken_at_s"]
        # Read at any moment, it must be whole.
        (fresh := clock.with_suffix(".new")).write_text(f"{seconds} 0")
        fresh.rename(clock)
        eventually(lambda: agent.json("/api/v1/health")["taken_at_s"] != stopped)
        usage(agent)
    hours = sum(row["leased_gpu_hours"] for row in usage(agent)["rows"])
    assert hours < DEADLINE_S / 3600 * 2
    job.ends()
    agent.ends()
    found = counts(file)
    assert found["hours"] == pytest.approx(found["leases_hours"])
    with contextlib.closing(sqlite3.connect(file)) as rows:
        assert rows.execute("SELECT count(*) FROM watched WHERE to_s < from_s").fetchone() == (0,)
        assert rows.execute("SELECT count(*) FROM lease WHERE ended_s < begun_s").fetchone() == (0,)
        assert rows.execute("SELECT count(*) FROM watched").fetchone()[0] >= 2


def test_another_file_after_sighup(machine, file):
    settings = machine.directory / "serve.toml"
    settings.write_text(f'history = "{file}"\n')
    agent = Agent(machine, "--config", settings)
    usage(agent)
    settings.write_text("no-history = true\n")
    agent.process.send_signal(signal.SIGHUP)
    assert agent.err.line() == "berth: read the settings again\n"
    eventually(lambda: agent.get("/api/v1/usage")[0] == 503)
    assert counts(file)["watched"] == 1
