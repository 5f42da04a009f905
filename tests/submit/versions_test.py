"""Job files of the version before and of the next one, and a runner of an older Berth that still lives."""

import fcntl
import os
import signal
import struct
import subprocess
import sys

from jobs import DEADLINE_S, eventually, the_only
from storm import processes
from submitted import as_version_1, fill, job, log, spool, submit, told

# struct flock: type, whence, start, length, pid.
OFD_GET_LOCK, OFD_SET_LOCK = 36, 37


def edit(machine, *words) -> str:
    answer = machine.berth("edit", *words)
    assert answer.status == 0, answer.err
    return answer.out


def held(machine, *options) -> str:
    number = submit(machine, *options, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exit 3")
    edit(machine, number, "--hold", "--yes")
    eventually(lambda: not processes(machine)["run"] or not job(machine, number)["in_line"])
    return number


def test_the_file_of_a_job_has_its_request_as_a_record(make_machine):
    machine = make_machine("2xH100")
    number = submit(machine, "-n", "2", "--free", "20G", "--time", "90m", "--note", "x", "--", "true")
    _, _, request = (spool(machine) / number / "job").read_text().partition("\n[request]\n")
    assert request == "count=2\ncondition=free >= 20G\ntime_s=5400\nnote=x\nend\n"
    assert job(machine, number)["request"] == ["--count=2", "--free=20G", "--time=90m", "--note=x"]


def test_a_job_that_the_version_before_stored_is_told_edited_run_and_retried(make_machine):
    machine = make_machine("2xH100")
    holders = fill(machine, 2)
    number = held(machine, "-n", "1")
    as_version_1(spool(machine) / number / "job", "--count=2", "--time=7200", "--note=x")
    assert job(machine, number)["request"] == ["--count=2", "--time=2h", "--note=x"]
    assert "--no-hold" in machine.berth("why", number).out
    assert "has the new request" in edit(machine, number, "--time", "3h")
    assert job(machine, number)["request"] == ["--count=2", "--time=3h", "--note=x"]
    assert (spool(machine) / number / "job-1").read_text().startswith("berth-job 2\n")
    unedited = held(machine, "-n", "1")
    as_version_1(spool(machine) / unedited / "job", "--count=2")
    for each in (number, unedited):
        edit(machine, each, "--no-hold")
    machine.berth("cancel", *holders)
    for each in (number, unedited):
        assert machine.berth("wait", each).status == 3
        assert machine.berth("retry", each).status == 0
        assert machine.berth("wait", each).status == 3
        assert (job(machine, each)["starts"], log(machine, each)) == (2, "0,1\n0,1\n")


def test_a_job_of_a_newer_version_is_left_alone_and_named(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    number = held(machine, "-n", "1")
    file = spool(machine) / number / "job"
    ours = file.read_text()
    newer = ours.replace("berth-job 2\n", "berth-job 3\n")
    file.write_text(newer)
    edit_of_it = machine.berth("edit", number, "--no-hold")
    reason = f"{number}/job: written in version 3 of the job format; this program knows 2"
    assert edit_of_it.status != 0 and reason in edit_of_it.err
    other = submit(machine, "--", "true")
    machine.berth("cancel", holder)
    assert machine.berth("wait", other).status == 0
    listed = machine.berth("jobs")
    assert reason in listed.err and [each["id"] for each in told(machine)] == [holder, other]
    assert machine.berth("cancel", number).status != 0 and file.read_text() == newer
    # The newer Berth is back.
    file.write_text(ours)
    edit(machine, number, "--no-hold")
    assert machine.berth("wait", number).status == 3


RUNNER_OF_THE_VERSION_BEFORE = f"""
import fcntl, signal, struct, sys
file = open(sys.argv[1], "r+")
fcntl.fcntl(file, {OFD_SET_LOCK}, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))
print("runs", flush=True)
signal.pause()
"""


def test_a_runner_that_is_of_the_version_before_gives_way_to_one_that_can_read_the_job(make_machine):
    machine = make_machine("1xH100")
    assert machine.berth("wait", submit(machine, "--", "true")).status == 0
    eventually(lambda: not processes(machine)["runner"])
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER_OF_THE_VERSION_BEFORE, spool(machine) / "runner"],
        stdout=subprocess.PIPE,
    )
    assert runner.stdout.readline() == b"runs\n"
    number = submit(machine, "--", "true")
    assert runner.wait(DEADLINE_S) == -signal.SIGTERM
    assert machine.berth("wait", number).status == 0


def test_a_runner_of_this_version_stays(make_machine):
    machine = make_machine("1xH100")
    fill(machine, 1)
    submit(machine, "--", "true")
    runner = the_only(lambda: processes(machine)["runner"])
    submit(machine, "--", "true")
    assert processes(machine)["runner"] == [runner]
    with open(spool(machine) / "runner", "r+") as file:
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        kind, _, start, length, _ = struct.unpack("hhqqi4x", fcntl.fcntl(file, OFD_GET_LOCK, asked))
    assert (kind, start, length) == (fcntl.F_WRLCK, 0, 2)
