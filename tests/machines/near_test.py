"""--near PATH: hosts on which the path is come first, without a store and with one."""

import json
import os
import signal

import pytest
from desks import lab_with
from jobs import eventually
from schemas import checked_document

# The hosts of a test share their file systems: what a path is here depends on where the envoy was started.
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


def test_it_runs_elsewhere_once_the_hosts_with_the_path_have_refused(machine_with_data):
    hold(machine_with_data.hosts[1])
    done = machine_with_data.anywhere("--near", HERE, "--no-wait", *SAY_WHERE)
    assert done.stdout == of_host(machine_with_data, 0), done.stderr
    done = machine_with_data.anywhere("--near", HERE, "-n", "2", *SAY_WHERE)
    assert done.stdout == of_host(machine_with_data, 0), done.stderr


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


@pytest.mark.store
def test_in_the_line_of_a_lab_it_runs_elsewhere_once_the_hosts_with_the_path_have_refused(store_with_data):
    lab = store_with_data
    hold(lab.hosts[1])
    for words in (("--no-wait",), ("--wait", "1s"), ("-n", "2")):
        done = lab.anywhere("--near", HERE, *words, *SAY_WHERE, env=lab.desks[0].env())
        assert done.stdout == of_host(lab, 0), done.stderr
    eventually(lambda: is_empty(lab))


@pytest.mark.store
def test_in_the_line_of_a_lab_it_runs_elsewhere_if_earlier_ones_keep_it_from_the_path(store_with_data):
    lab = store_with_data
    # Somebody who may join gpu2, and does not.
    ticket = {"home": "desk9", "uid": 1, "lane": 1, "hosts": ["gpu2"], "joined": []}
    lab.etcd.ask("kv/put", key="/berth/1/ticket/desk9-" + "ab" * 16, value=json.dumps(ticket))
    done = lab.anywhere("--near", HERE, "--no-wait", *SAY_WHERE, env=lab.desks[0].env())
    assert done.stdout == of_host(lab, 0), done.stderr


@pytest.mark.store
def test_in_the_line_of_a_lab_a_lost_host_with_the_path_gives_it_a_place_for_the_others(store_with_data):
    lab = store_with_data
    gpu1, gpu2 = lab.hosts
    for host in (gpu2, *[gpu1] * 4):
        hold(host)
    job = lab.desks[0].waits("--near", HERE, *SAY_WHERE)
    eventually(lambda: len(gpu2.tickets()) == 2)
    (before,) = lab.etcd.keys("ticket")
    for pid in gpu2.envoys():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: named_hosts(lab) == [["gpu1"]])
    (after,) = lab.etcd.keys("ticket")
    assert before != after
    eventually(lambda: len(gpu1.tickets()) == 5)
    job.terminate()
    eventually(lambda: is_empty(lab))


@pytest.mark.store
def test_in_the_line_of_a_lab_it_waits_for_all_where_no_host_has_the_path(store_with_data):
    lab = store_with_data
    for host in (lab.hosts[1], *[lab.hosts[0]] * 4):
        hold(host)
    lab.desks[0].waits("--near", f"{HERE}/none", *SAY_WHERE)
    assert named_hosts(lab) == [["gpu1", "gpu2"]]


@pytest.mark.store
def test_at_a_desk_with_a_store_all_that_can_be_said_of_no_host_is_said_once(store_with_data):
    lab = store_with_data
    done = lab.anywhere("--near", HERE, "-n", "8", *SAY_WHERE, env=lab.desks[0].env())
    assert done.returncode != 0
    assert "the command starts on none of the hosts" in done.stderr
    assert done.stderr.count("gpu1: ") == done.stderr.count("gpu2: ") == 1
