"""--near PATH: hosts on which the path is come first."""

import json

import pytest
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


def of_host(lab, number: int) -> str:
    return f"{lab.hosts[number].machine.env['BERTH_DIR']}\n"


SAY_WHERE = ("--", "sh", "-c", "echo $BERTH_DIR")


def test_the_command_runs_where_the_path_is(machine_with_data):
    done = machine_with_data.anywhere("--near", HERE, *SAY_WHERE)
    assert done.stdout == of_host(machine_with_data, 1), done.stderr
    (machine_with_data.folder / "gpu2" / "data").rmdir()
    done = machine_with_data.anywhere("--near", HERE, *SAY_WHERE)
    assert done.returncode == 0 and done.stdout, done.stderr


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


def test_a_path_must_be_whole_and_needs_anywhere(machine_with_data):
    assert "must be a whole path" in machine_with_data.anywhere("--near", "data", "--", "true").stderr
    for words in (("run", "--near", HERE, "--", "true"), ("why", "--near", HERE)):
        assert "--near need" in machine_with_data.run(*words).stderr
