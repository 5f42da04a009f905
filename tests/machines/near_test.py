"""--near PATH: hosts on which the path is come first, without a store and with one."""

import json

import pytest
from desks import lab_with
from jobs import eventually
from schemas import checked_document

# The hosts of a test share their file systems: what a path is here depends on where the envoy was
# started.
HERE = "/proc/self/cwd/data"


@pytest.fixture
def machine_with_data(machines):
    """gpu1 has more free GPUs, and gpu2 the data."""
    for name, machine in {"gpu1": "4xH100", "gpu2": "1xH100"}.items():
        host = machines.folder / name
        machines.add(name, machine, program=f'#!/bin/sh\ncd {host} && exec @BERTH@ "$@"\n')
    (machines.folder / "gpu2" / "data").mkdir()
    return machines


@pytest.fixture
def store_with_data(machine_with_data):
    """The same, with an etcd and two desks."""
    with lab_with(machine_with_data) as made:
        yield made


def of_host(lab, number: int) -> str:
    return f"{lab.hosts[number].machine.env['BERTH_DIR']}\n"


SAY_WHERE = ("--", "sh", "-c", "echo $BERTH_DIR")


def hold(host):
    holder = host.machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert holder.stdout.readline() == "ready\n"
    return holder


def test_the_command_runs_where_the_path_is(machine_with_data):
    done = machine_with_data.anywhere("--near", HERE, *SAY_WHERE)
    assert done.stdout == of_host(machine_with_data, 1), done.stderr
    (machine_with_data.folder / "gpu2" / "data").rmdir()
    done = machine_with_data.anywhere("--near", HERE, *SAY_WHERE)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_it_waits_where_the_path_is_although_another_host_is_free(machine_with_data):
    gpu1, gpu2 = machine_with_data.hosts
    holder = hold(gpu2)
    waiting = machine_with_data.start_anywhere("--near", HERE, *SAY_WHERE)
    eventually(lambda: len(gpu2.tickets()) == 2)
    assert gpu1.tickets() == []
    holder.terminate()
    assert waiting.communicate(timeout=60)[0] == of_host(machine_with_data, 1)


def test_why_says_of_each_host_whether_the_path_is_there(machine_with_data):
    machine_with_data.add_down("gpu3")
    words = ("why", "--anywhere", "--hosts", "gpu1,gpu2,gpu3", "--near", HERE)
    lines = [" ".join(line.split()) for line in machine_with_data.run(*words).stdout.split("\ngpu")]
    assert lines[0].startswith("gpu2 in line") and lines[0].endswith("; the path of --near is there")
    assert lines[1].startswith("1 reserve") and lines[1].endswith("; the path of --near is not there")
    document = json.loads(machine_with_data.run(*words, "--json").stdout)
    checked_document(document, "why-hosts")
    told = [(host["host"], host["standing"], (host["offer"] or {}).get("near")) for host in document["hosts"]]
    assert told == [("gpu2", "in line", True), ("gpu1", "reserve", False), ("gpu3", "left out", None)]


def test_a_submitted_job_runs_where_the_path_is(machine_with_data):
    lab = machine_with_data
    words = ("submit", "--anywhere", "--hosts", lab.names(), "--near", HERE)
    assert lab.run(*words, *SAY_WHERE).returncode == 0
    assert lab.run("wait", "1").returncode == 0
    assert lab.run("log", "1").stdout == of_host(lab, 1)


def test_a_path_must_be_whole_and_needs_anywhere(machine_with_data):
    assert "must be a whole path" in machine_with_data.anywhere("--near", "data", "--", "true").stderr
    for words in (("run", "--near", HERE, "--", "true"), ("why", "--near", HERE)):
        assert "--near need" in machine_with_data.run(*words).stderr


def named_hosts(lab) -> list[list[str]]:
    return [json.loads(value)["hosts"] for value, _ in lab.etcd.keys("ticket").values()]


def is_empty(lab) -> bool:
    return lab.etcd.keys("ticket") == {} == lab.etcd.keys("start")


@pytest.mark.store
def test_in_the_line_of_a_lab_it_waits_for_the_hosts_with_the_path(store_with_data):
    lab = store_with_data
    gpu1, gpu2 = lab.hosts
    holder = hold(gpu2)
    jobs = [lab.desks[number].waits("--near", HERE, *SAY_WHERE) for number in (0, 1)]
    assert named_hosts(lab) == [["gpu2"], ["gpu2"]]
    eventually(lambda: len(gpu2.tickets()) == 3)
    assert gpu1.tickets() == []
    eventually(lambda: gpu1.envoys() == [])
    holder.terminate()
    for job in jobs:
        assert job.communicate(timeout=60)[0] == of_host(lab, 1)
    eventually(lambda: is_empty(lab))
