"""berth submit, jobs, log, wait, cancel, forget: what a user sees of jobs that are left alone."""

import contextlib
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import subprocess
import sys

import pytest
from clock import Clock
from jobs import eventually
from lease_jobs import waiting
from schemas import checked
from simulated_machine import DEADLINE_S
from storm import processes
from submitted import fill, job, kill, log, spool, submit, told, wait_for


def test_a_job_runs_with_a_gpu_in_the_folder_and_environment_of_its_submit(machine, tmp_path):
    folder = tmp_path / "a folder\nof two lines"
    folder.mkdir()
    script = (
        'pwd; echo "$WORDS|$CUDA_VISIBLE_DEVICES|$BERTH_JOB|$BERTH_JOB_NAME" "$1"; echo wrong >&2; exit 3'
    )
    number = submit(
        machine,
        "--job-name",
        "train",
        "--",
        "sh",
        "-c",
        script,
        "sh",
        "a\nb",
        cwd=folder,
        env={"WORDS": "one two"},
    )
    assert number == "1"
    assert machine.berth("wait", number).status == 3
    assert log(machine, number) == f"{folder}\none two|0|1|train a\nb\nwrong\n"
    (found,) = checked(machine.berth("jobs", "--json", number), "jobs")["jobs"]
    assert (found["name"], found["state"], found["exit_status"]) == ("train", "ended", 3)
    assert found["devices"] == ["0"] and found["starts"] == 1
    table = machine.berth("jobs").out.splitlines()
    assert table[0].split() == "JOB NAME STATE SUBMITTED START END TIME GPU EXIT COMMAND".split()
    assert table[1].split()[:3] == ["1", "train", "failed"]


def test_an_environment_with_newlines_and_of_100_kb_arrives(machine):
    value = "line\n= \\n" * 12800
    number = submit(machine, "--", "sh", "-c", 'printf %s "$BIG"', env={"BIG": value, "EMPTY": ""})
    assert machine.berth("wait", number).status == 0
    assert log(machine, number) == value


def test_a_command_that_is_not_there_is_told_at_submit(machine):
    answer = machine.berth("submit", "--", "trian")
    assert (answer.status, answer.out) == (127, "")
    assert "trian: there is no such command on PATH" in answer.err
    assert told(machine) == []


def test_jobs_are_shown_by_their_state_and_arrays_task_by_task(machine):
    ended = submit(machine, "--", "true")
    failed = submit(machine, "-J", "bad", "--", "false")
    array = submit(machine, "--array", "0-2", "--", "sh", "-c", "exit $((BERTH_ARRAY_INDEX == 1))")
    later = submit(machine, "--at", "1h", "--", "true")
    machine.berth("wait", ended, failed, array)

    def shown(*words):
        table = machine.berth("jobs", *words).out.split("\n\n")[0].splitlines()[1:]
        ids = [line.split()[0] for line in table]
        assert [job["id"] for job in checked(machine.berth("jobs", "--json", *words), "jobs")["jobs"]] == ids
        return ids

    assert shown("--state", "failed") == [failed, f"{array}.1"]
    assert shown("--state", "failed", array) == [f"{array}.1"]
    assert shown("--state=waiting", "--state=failed", failed, later) == [failed, later]
    assert shown("--state", "done") == [ended, f"{array}.0", f"{array}.2"]
    assert machine.berth("jobs", "--state", "running").out == "no job of yours is running\n"
    assert (
        machine.berth("jobs", "--state", "in-line", "--state", "running").out
        == "no job of yours is in line or running\n"
    )
    assert machine.berth("jobs", "--state", "bad").status == 2


def test_a_job_that_waits_for_its_time_says_it(machine):
    number = submit(machine, "--at", "1h", "--", "true")
    at = job(machine, number)["not_before_s"]
    clock = machine.run("date", "-d", f"@{at}", "+%H:%M").out.strip()
    assert re.search(
        rf"^job {number}: starts at (\d+ \w+ )?{clock} at the earliest$", machine.berth("jobs").out, re.M
    )
    soon = submit(machine, "--at", "1s", "--", "true")
    assert machine.berth("wait", soon).status == 0
    assert "earliest" not in machine.berth("jobs", soon).out


@pytest.mark.parametrize("words", [(), ("-n", "0", "--", "true"), ("--job-name", "", "--", "true")])
def test_what_makes_no_sense_is_refused(machine, words):
    assert machine.berth("submit", *words).status == 2
    assert told(machine) == []


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "9"],
        ["-n", "9", "--at", "1h"],
        ["-n", "9", "--after", "1"],
        ["-n", "9", "--array", "0-3"],
        ["--name", "A100"],
        ["--devices", "8"],
    ],
)
def test_what_this_machine_can_never_grant_is_refused_at_once_as_by_run(machine, words):
    submit(machine, "--at", "1h", "--", "true")
    request = words[:2]
    refused = machine.berth("run", *request, "--", "true")
    assert refused.status in (2, 69) and refused.out == ""
    assert machine.berth("submit", *words, "--", "true") == refused
    assert len(told(machine)) == 1


def test_a_time_that_the_site_never_allows_is_refused_at_once(machine):
    (machine.directory / "site.toml").write_text('time = "1h"\n[limits]\ngpus = 4\n')
    assert "a lease here lasts 1h at most" in machine.berth("submit", "--time", "2h", "--", "true").err
    assert "limit is 4 GPUs" in machine.berth("submit", "-n", "5", "--", "true").err
    assert told(machine) == []


def test_a_device_that_is_lost_now_may_be_back_for_a_job_that_starts_later(make_machine):
    machine = make_machine('[[device]]\nmodel = "H100"\n[[device]]\nmodel = "H100"\nlost = true\n')
    answer = machine.berth("submit", "-n", "2", "--", "true")
    assert (answer.status, answer.out) == (69, "")
    assert "GPU 1  lost" in answer.err
    first = submit(machine, "-n", "2", "--at", "1h", "--", "true")
    submit(machine, "-n", "2", "--after-ok", first, "--", "true")
    assert machine.berth("submit", "-n", "3", "--at", "1h", "--", "true").status == 69


def test_a_machine_that_cannot_be_looked_at_takes_every_job(make_machine):
    machine = make_machine('[[fault]]\ncall = "nvmlInit*"\nresult = 9\n[[device]]\nmodel = "H100"\n')
    assert machine.berth("run", "-n", "9", "--", "true").status == 69
    submit(machine, "--at", "1h", "-n", "9", "--", "true")


def test_what_is_submitted_in_a_lease_is_for_the_whole_machine(machine):
    inside = machine.berth("run", "--", machine.program, "submit", "--at", "1h", "-n", "8", "--", "true")
    assert (inside.status, inside.err) == (0, "")


def test_a_request_that_nothing_can_satisfy_any_more_ends_the_job_with_the_reason(machine):
    first = submit(machine, "--", "sleep", "1000")
    number = submit(machine, "-n", "8", "--after", first, "--", "true")
    wait_for(machine, first, "running")
    machine.change("4xH100")
    assert machine.berth("cancel", first).status == 0
    assert machine.berth("wait", number).status == 69
    assert "8 whole GPUs" in job(machine, number)["reason"]
    assert "8 whole GPUs" in log(machine, number)


def test_the_time_of_a_job_ends_it(machine):
    number = submit(machine, "--time", "1s", "--", "sleep", "1000")
    assert machine.berth("wait", number).status == 128 + signal.SIGTERM


def test_a_job_is_the_machines_and_not_of_the_lease_that_it_was_submitted_in(machine):
    answer = machine.berth(
        "run", "--", machine.program, "submit", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; sleep 1000"
    )
    assert (answer.status, answer.out, answer.err) == (0, "1\n", "")
    wait_for(machine, "1", "running")
    assert [len(lease["devices"]) for lease in machine.berth("list", "--json").json["leases"]] == [1]


def test_a_mask_that_no_lease_made_holds_for_the_job(machine):
    number = submit(
        machine, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES", env={"CUDA_VISIBLE_DEVICES": "5"}
    )
    assert machine.berth("wait", number).status == 0
    assert log(machine, number) == "5\n"


def test_list_and_queue_show_the_job(make_machine):
    machine = make_machine("1xH100")
    fill(machine, 1)
    submit(machine, "--job-name", "tune", "--note", "for the paper", "--", "sh", "-c", "true")
    eventually(lambda: len(waiting(machine)) == 1)
    assert '"job 1 holder"' in machine.berth("list").out
    assert '"job 2 tune: for the paper"' in machine.berth("queue").out


# Cancelling


def test_one_that_is_cancelled_just_as_it_starts_leaves_no_ticket(machine):
    for _ in range(10):
        number = submit(machine, "--", "sleep", "1000")
        state = spool(machine) / number / "state"
        while "[started]" not in (state.read_text() if state.exists() else ""):
            pass
        assert machine.berth("cancel", number).status == 0
        assert job(machine, number)["state"] == "cancelled"
        eventually(lambda: list((machine.leases / "leases").iterdir()) == [])


def test_one_that_waits_is_cancelled_and_never_runs(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    first, second = (submit(machine, "--", "touch", machine.directory / f"ran{i}") for i in range(2))
    eventually(lambda: job(machine, first)["in_line"])
    assert machine.berth("cancel", first, second).out == f"cancelled job {first}\ncancelled job {second}\n"
    eventually(lambda: machine.berth("queue", "--json").json["waiters"] == [])
    machine.berth("cancel", holder)
    last = submit(machine, "--", "true")
    assert machine.berth("wait", last).status == 0
    assert list(machine.directory.glob("ran*")) == []
    answer = machine.berth("wait", first)
    assert (answer.status, answer.err) == (1, f"berth: job {first} was cancelled\n")


def test_one_that_runs_is_asked_to_end(machine):
    number = submit(
        machine, "--", "sh", "-c", "trap 'echo saved; exit 0' TERM; echo on; while :; do sleep 0.05; done"
    )
    eventually(lambda: log(machine, number) == "on\n")
    assert machine.berth("cancel", number).status == 0
    assert log(machine, number) == "on\nsaved\n"
    assert job(machine, number)["state"] == "cancelled"


def test_one_that_does_not_end_is_named(machine):
    number = submit(machine, "--", "sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.05; done")
    eventually(lambda: log(machine, number) == "on\n")
    answer = machine.berth("cancel", "--wait", "1s", number)
    assert answer.status == 124 and f"this still runs: {processes(machine)['job'][0]} (sh -c" in answer.err
    assert "it gets SIGKILL 30 s after SIGTERM" in answer.err


# A script that leaves what it has started when it gets SIGTERM, as most scripts do.
LEAVES = "echo on; sleep 1000; echo done"
# And one whose child ignores SIGTERM.
LEAVES_DEAF = "(trap '' TERM; echo on; while :; do sleep 0.05; done); echo done"


def test_what_a_script_has_started_ends_with_it(make_machine):
    machine = make_machine("1xH100")
    number = submit(machine, "--", "sh", "-c", LEAVES)
    eventually(lambda: log(machine, number) == "on\n")
    assert machine.berth("cancel", number).out == f"cancelled job {number}\n"
    assert processes(machine)["job"] == [] and log(machine, number) == "on\n"
    assert machine.berth("run", "--no-wait", "--", "true").status == 0


@pytest.mark.parametrize("run", ["lives", "is dead"])
def test_what_ignores_sigterm_is_killed_after_the_grace_and_cancelled_is_said_then(machine, run):
    site = machine.directory / "site.toml"
    site.write_text('time_grace = "1s"\n')
    env = {"BERTH_SITE_FILE": site}
    number = submit(machine, "--", "sh", "-c", LEAVES_DEAF, env=env)
    eventually(lambda: log(machine, number) == "on\n")
    if run == "is dead":
        kill(machine, "run")
    # Else the grace may be over before all has been asked.
    stopped = processes(machine)["run"]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    answer = machine.berth("cancel", "--wait", "0s", number, env=env)
    assert answer.status == 124 and "this still runs: " in answer.err
    if stopped:
        assert machine.berth("forget", number).status == 1
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    answer = machine.berth("cancel", "--wait", f"{DEADLINE_S}s", number, env=env)
    # On a slow machine the grace is over before this asks.
    is_over = f"job {number} is over already (cancelled)" in answer.err
    assert is_over or answer.out == f"cancelled job {number}\n"
    assert processes(machine)["job"] == []
    assert job(machine, number)["state"] == "cancelled"


def test_what_a_job_that_has_ended_left_behind_is_told_of_and_cancelled(machine, tmp_path):
    told_of = tmp_path / "told"
    number = submit(
        machine, "--notify", f"cmd:echo $BERTH_EVENT $BERTH_MESSAGE >>{told_of}", "--", "sh", "-c",
        "(trap '' TERM HUP; echo on; while :; do sleep 0.05; done) & sleep 0.1; exit 3",
    )  # fmt: skip
    assert machine.berth("wait", number).status == 3
    (left, *_) = processes(machine)["job"]
    words = f"has ended, and processes that it started still have its GPUs: {left} (sh -c"
    assert f"job {number}: {words}" in machine.berth("jobs").out
    assert job(machine, number)["left_behind"].startswith(f"{left} (sh -c")
    eventually(lambda: f"left {words}" in told_of.read_text())
    answer = machine.berth("forget", number)
    assert answer.status == 1 and words in answer.err
    os.kill(left, signal.SIGKILL)
    eventually(lambda: job(machine, number)["left_behind"] is None)
    assert machine.berth("forget", number).status == 0


def test_what_a_job_that_has_ended_left_behind_can_be_cancelled(make_machine):
    machine = make_machine("1xH100")
    number = submit(machine, "--", "sh", "-c", "setsid sleep 1000 & exit 0")
    assert machine.berth("wait", number).status == 0
    assert machine.berth("cancel", number).out == f"ended what job {number} had left behind\n"
    assert job(machine, number)["state"] == "ended"
    assert machine.berth("run", "--no-wait", "--", "true").status == 0


def test_what_a_job_has_left_behind_without_its_descriptors_is_told_of_and_cancelled(make_machine):
    machine = make_machine("1xH100")
    closes = "import os, time; os.closerange(0, 256); os.execvp('sleep', ['sleep', '1000'])"
    number = submit(machine, "--", "sh", "-c", f'setsid {sys.executable} -c "{closes}" & exit 0')
    assert machine.berth("wait", number).status == 0
    eventually(lambda: "(sleep 1000)" in (job(machine, number)["left_behind"] or ""))
    assert machine.berth("cancel", number).out == f"ended what job {number} had left behind\n"
    assert machine.berth("run", "--no-wait", "--", "true").status == 0


def test_what_is_over_or_was_never_there_is_no_job_to_cancel(machine):
    number = submit(machine, "--", "true")
    machine.berth("wait", number)
    answer = machine.berth("cancel", number)
    assert answer.status == 1 and "is over already (ended)" in answer.err
    assert machine.berth("cancel", "77").status == 1
    for command in ("log", "wait", "forget", "jobs"):
        answer = machine.berth(command, "77")
        assert answer.status == 1 and "there is no job 77" in answer.err
        assert machine.berth(command, "x").status == 2


# Logs, and forgetting


def test_a_log_is_followed_until_the_job_is_over(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    number = submit(machine, "--", "sh", "-c", "echo one; sleep 0.2; echo two")
    follower = machine.start_berth("log", "-f", number)
    machine.berth("cancel", holder)
    out, err = follower.communicate(timeout=DEADLINE_S)
    assert (out, follower.returncode) == ("one\ntwo\n", 0)
    # Said only where it takes longer than a moment.
    assert err == "" or f"job {number} has not begun" in err


def test_a_log_of_which_somebody_reads_only_the_beginning_ends_without_a_word(machine):
    number = submit(machine, "--", "seq", "200000")
    machine.berth("wait", number)
    answer = machine.run("bash", "-c", f"{machine.program} log {number} | head -n 2; echo ${{PIPESTATUS[0]}}")
    assert (answer.out, answer.err) == ("1\n2\n141\n", "")


def test_a_job_that_is_over_is_forgotten_and_its_number_with_it(machine):
    numbers = [submit(machine, "--", "true"), submit(machine, "--", "sleep", "1000")]
    machine.berth("wait", numbers[0])
    answer = machine.berth("forget", *numbers)
    assert answer.status == 1 and f"berth cancel {numbers[1]} ends it" in answer.err
    machine.berth("cancel", numbers[1])
    assert machine.berth("forget", *numbers).status == 0
    assert machine.berth("jobs").out.startswith("no jobs;")
    assert submit(machine, "--", "true") == "3"


def test_completion_offers_the_jobs(machine):
    submit(machine, "--job-name", "train", "--", "sleep", "1000")
    submit(machine, "--", "sleep", "999")
    assert machine.berth("__tasks").out == "1\ttrain\n2\tsleep 999\n"


# What breaks such things elsewhere


def test_a_job_outlives_the_session_that_submitted_it(machine):
    script = f"{machine.program} submit -- sh -c 'sleep 0.3; echo done'; sleep 1000"
    session = machine.start("sh", "-c", script, start_new_session=True)
    assert session.stdout.readline() == "1\n"
    os.killpg(session.pid, signal.SIGHUP)
    session.wait(DEADLINE_S)
    assert machine.berth("wait", "1").status == 0
    assert log(machine, "1") == "done\n"


def test_a_killed_runner_loses_nothing_and_comes_back_with_the_next_command(make_machine):
    machine = make_machine("1xH100")
    fill(machine, 1)
    numbers = [submit(machine, "--", "sh", "-c", "echo ran") for _ in range(3)]
    eventually(lambda: job(machine, numbers[0])["in_line"])
    kill(machine, "runner")
    assert len(processes(machine)["run"]) == 2  # what runs, and what is in line
    machine.berth("cancel", "1")
    assert machine.berth("wait", *numbers).status == 0
    assert [log(machine, number) for number in numbers] == ["ran\n"] * 3


def test_with_its_runner_killed_a_job_that_starts_brings_up_the_next(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    for i in range(3):
        submit(machine, "--", "touch", machine.directory / f"ran{i}")
    eventually(lambda: job(machine, "2")["in_line"])
    kill(machine, "runner")
    (run,) = (pid for pid in processes(machine)["run"] if f"/{holder}".encode() in cmdline(pid))
    os.kill(run, signal.SIGTERM)
    # Nobody asks for jobs meanwhile.
    eventually(lambda: len(list(machine.directory.glob("ran*"))) == 3)


def cmdline(pid: int) -> bytes:
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0")


def test_one_killed_in_line_gets_in_line_again(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    number = submit(machine, "--", "sh", "-c", "echo ran")
    eventually(lambda: job(machine, number)["in_line"])
    (first,) = (pid for pid in processes(machine)["run"] if cmdline(pid).endswith(f"/{number}".encode()))
    os.kill(first, signal.SIGKILL)
    eventually(lambda: job(machine, number)["in_line"] and first not in processes(machine)["run"])
    machine.berth("cancel", holder)
    assert machine.berth("wait", number).status == 0
    assert log(machine, number) == "ran\n"
    assert job(machine, number)["starts"] == 1


def test_one_whose_run_is_killed_is_interrupted_and_not_run_again(machine):
    number = submit(machine, "--", "sh", "-c", "echo ran; exec sleep 1000")
    eventually(lambda: log(machine, number) == "ran\n")
    kill(machine, "run")
    wait_for(machine, number, "interrupted")
    other = submit(machine, "--", "true")
    assert machine.berth("wait", other).status == 0
    assert log(machine, number) == "ran\n"
    assert machine.berth("wait", number).status == 1


def test_while_anything_of_a_job_lives_it_runs_whatever_became_of_its_run(machine):
    number = submit(machine, "--", "sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.05; done")
    eventually(lambda: log(machine, number) == "on\n")
    kill(machine, "run")
    assert job(machine, number)["state"] == "running"
    for pid in processes(machine)["job"]:
        os.kill(pid, signal.SIGKILL)
    wait_for(machine, number, "interrupted")


def end_all(machine) -> None:
    """At once, as far as that goes: none is there to start another."""
    while left := machine.inhabitants():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_one_that_was_interrupted_is_run_again_when_its_user_says_so(machine, tmp_path):
    script = f"echo start >>{tmp_path}/starts; test -e {tmp_path}/twice || exec sleep 1000"
    number = submit(machine, "--", "sh", "-c", script)
    # "running" is told a moment before its command runs.
    eventually(lambda: (tmp_path / "starts").exists() and (tmp_path / "starts").read_text() == "start\n")
    kill(machine, "run")
    wait_for(machine, number, "interrupted")
    (tmp_path / "twice").touch()
    answer = machine.berth("retry", number)
    assert answer.status == 0, answer.err
    assert machine.berth("wait", number).status == 0
    assert (tmp_path / "starts").read_text() == "start\nstart\n"


def test_one_that_is_retried_while_the_runner_is_about_to_leave_is_run_again(machine, tmp_path):
    number = submit(machine, "--", "sh", "-c", f"test -e {tmp_path}/twice && touch {tmp_path}/again")
    assert wait_for(machine, number, "ended")["exit_status"] == 1
    eventually(lambda: not processes(machine)["runner"])
    # A runner that has read this job, and is held up at the next.
    held_up = spool(machine) / str(int(number) + 1)
    held_up.mkdir()
    os.mkfifo(held_up / "job")
    runner = machine.start_berth("__jobs", spool(machine))
    gate = eventually(lambda: opened_to_write(held_up / "job"))
    (tmp_path / "twice").touch()
    answer = machine.berth("retry", number)
    assert answer.status == 0, answer.err
    shutil.rmtree(held_up)
    os.close(gate)
    # Whoever asks for the job would start a runner.
    eventually((tmp_path / "again").exists)
    runner.communicate(timeout=DEADLINE_S)


def opened_to_write(fifo: pathlib.Path) -> int | None:
    """None: nobody reads it yet."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def test_one_that_could_not_be_read_for_a_while_is_run_all_the_same(machine):
    submit(machine, "--at", "1h", "--", "true")
    (runner,) = eventually(lambda: processes(machine)["runner"])
    eventually(lambda: is_asleep(runner))
    # It can wait as before, and open nothing.
    _, most = resource.prlimit(runner, resource.RLIMIT_NOFILE)
    resource.prlimit(runner, resource.RLIMIT_NOFILE, (2, most))
    number = submit(machine, "--", "true")
    with open(spool(machine) / "bell", "rb+", buffering=0) as bell:
        eventually(lambda: not select.select([bell], [], [], 0)[0] and is_asleep(runner))
    assert job(machine, number)["state"] == "waiting"
    resource.prlimit(runner, resource.RLIMIT_NOFILE, (most, most))
    wait_for(machine, number, "ended")
    assert processes(machine)["runner"] == [runner]


def is_asleep(pid: int) -> bool:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_one_that_cannot_begin_holds_up_nobody_else(machine, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    broken = submit(machine, "--at", "5s", "--", "true", cwd=gone)
    others = [submit(machine, "--at", "5s", "--", "true") for _ in range(2)]
    gone.rmdir()
    for number in others:
        assert machine.berth("wait", number).status == 0
    assert job(machine, broken)["state"] == "waiting"
    assert "No such file" in job(machine, broken)["reason"]
    assert machine.berth("cancel", broken).status == 0


def test_a_script_with_the_line_ends_of_windows_is_refused_at_submit(machine, tmp_path):
    script = tmp_path / "night.sh"
    script.write_bytes(b"#!/bin/sh\r\n#BERTH -J night\r\necho x\r\n")
    answer = machine.berth("submit", script)
    assert answer.status == 2
    assert f"the lines of {script} end as on Windows; `sed -i 's/\\r$//' {script}` mends that" in answer.err
    assert told(machine) == []


def test_after_a_reboot_those_that_wait_run_and_those_that_ran_are_interrupted(make_machine):
    machine = make_machine("1xH100")
    (ran,) = fill(machine, 1)
    numbers = [submit(machine, "--", "sh", "-c", "echo ran") for _ in range(2)]
    eventually(lambda: job(machine, numbers[0])["in_line"])
    end_all(machine)
    for state in spool(machine).glob("*/state"):
        # Of another boot, in which our processes have the pids of that one's.
        text = "".join(
            "boot=another\n"
            if line.startswith("boot=")
            else f"pid={os.getpid()}\n"
            if line.startswith("pid=")
            else line
            for line in state.read_text().splitlines(keepends=True)
        )
        state.write_text(text)
    assert machine.berth("wait", *numbers).status == 0
    assert job(machine, ran)["state"] == "interrupted"
    assert [log(machine, number) for number in numbers] == ["ran\n"] * 2
    assert job(machine, ran)["starts"] == 1


@pytest.mark.release_only  # what is preloaded comes before the sanitizer
def test_a_clock_that_is_set_back_changes_nothing(make_machine):
    machine = make_machine("1xH100")
    clock = Clock(machine)
    (holder,) = fill(machine, 1)
    first = submit(machine, "--", "sh", "-c", f"echo first >> {machine.directory}/order")
    clock.set(wall=-40_000_000, boot=0)
    second = submit(machine, "--", "sh", "-c", f"echo second >> {machine.directory}/order", env=clock.env)
    assert job(machine, second)["submitted_s"] < job(machine, first)["submitted_s"]
    machine.berth("cancel", holder)
    assert machine.berth("wait", first, second).status == 0
    assert (machine.directory / "order").read_text() == "first\nsecond\n"


@pytest.fixture
def small_home(machine, small_disk):
    """A home on a file system of its own, of which little is left."""
    return small_disk(machine.directory / "home", "256k", "700")


def test_on_a_full_disk_a_submit_is_refused_whole(machine, small_home):
    first = submit(machine, "--", "true")
    machine.berth("wait", first)
    with contextlib.suppress(OSError), (small_home / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    answer = machine.berth("submit", "--", "true")
    assert (answer.status, answer.out) == (1, "")
    assert "nothing was submitted" in answer.err and "No space left on device; make room" in answer.err
    assert [found["id"] for found in told(machine)] == [first]
    assert not (spool(machine) / "new").exists()
    (small_home / "filler").unlink()
    assert machine.berth("wait", submit(machine, "--", "true")).status == 0


def test_jobs_that_a_full_disk_keeps_waiting_are_told_of(machine, small_home):
    holder = submit(machine, "-n", "8", "--", "sleep", "1000")
    wait_for(machine, holder, "running")
    number = submit(machine, "--", "true")
    words = f"the disk of {spool(machine)} takes nothing more (it is full, or read-only), so no job of yours can start"
    assert words not in machine.berth("jobs").err
    with contextlib.suppress(OSError), (small_home / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    answer = machine.berth("jobs")
    assert answer.status == 0 and words in answer.err
    (small_home / "filler").unlink()
    machine.berth("cancel", holder)
    assert machine.berth("wait", number).status == 0


def test_a_disk_that_fills_up_while_a_job_runs_keeps_how_it_ended(machine, small_home):
    number = submit(machine, "--", "sh", "-c", f"cat /dev/zero > {small_home}/filler 2>/dev/null; exit 7")
    assert machine.berth("wait", number).status == 7
    assert job(machine, number)["reason"] == "when it ended, the disk that its output is on was full"


@pytest.mark.parametrize("array", [[], ["--array", "1-20"]])
def test_on_a_full_disk_jobs_that_wait_and_run_are_cancelled_and_forgotten(machine, small_home, array):
    number = submit(machine, "-n", "8", *array, "--", "sleep", "1000")
    wait_for(machine, f"{number}.1" if array else number, "running")
    waits = submit(machine, "-n", "8", "--", "true")
    with contextlib.suppress(OSError), (small_home / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    for each in (waits, number):
        answer = machine.berth("cancel", each)
        assert (answer.status, answer.out) == (0, f"cancelled job {each}\n"), answer.err
    assert processes(machine)["job"] == []
    for each in (waits, number):
        assert machine.berth("forget", each).status == 0
    assert told(machine) == []


def test_two_machines_with_one_home_have_jobs_of_their_own(machine):
    if subprocess.run(["unshare", "--uts", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("needs the right to have another host name")
    (machine.directory / "machine-id").write_text(f"{'5' * 32}\n")
    another = f'hostname other; [ ! -e /etc/machine-id ] || mount --bind {machine.directory}/machine-id /etc/machine-id; exec "$@"'
    there = ["unshare", "--uts", "--mount", "sh", "-ec", another, "sh", machine.program]
    submit(machine, "--job-name", "here", "--", "true")
    assert machine.run(*there, "submit", "--job-name", "there", "--", "true").out == "1\n"
    assert machine.run(*there, "wait", "1").status == 0
    assert [found["name"] for found in machine.run(*there, "jobs", "--json").json["jobs"]] == ["there"]
    assert [found["name"] for found in told(machine)] == ["here"]


def test_a_machine_that_gets_another_name_keeps_its_jobs_and_their_numbers(machine):
    """Not where it has no machine-id, as in many containers: nobody could tell it from another machine."""
    machine_id = pathlib.Path("/etc/machine-id")
    if not machine_id.exists() or len(machine_id.read_text()) < 8:
        pytest.skip("needs a machine-id")
    if subprocess.run(["unshare", "--uts", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("needs the right to have another host name")
    renamed = ["unshare", "--uts", "sh", "-c", 'hostname other; exec "$@"', "sh", machine.program]
    assert submit(machine, "--job-name", "before", "--", "true") == "1"
    machine.berth("wait", "1")
    assert machine.run(*renamed, "submit", "--job-name", "after", "--", "true").out == "2\n"
    assert machine.run(*renamed, "wait", "2").status == 0
    assert [found["name"] for found in machine.run(*renamed, "jobs", "--json").json["jobs"]] == [
        "before",
        "after",
    ]
    assert [found["name"] for found in told(machine)] == ["before", "after"]


def test_one_that_was_cut_off_while_it_was_written_is_no_job(machine):
    submit(machine, "--", "true")
    machine.berth("wait", "1")
    draft = spool(machine) / "new"
    draft.mkdir()
    (draft / "job").write_text("berth-job 1\nname=ha")
    assert [found["id"] for found in told(machine)] == ["1"]
    assert submit(machine, "--", "true") == "2"
    assert not draft.exists()


def test_a_job_that_cannot_be_read_is_named_and_stops_no_other(machine):
    submit(machine, "--", "true")
    machine.berth("wait", "1")
    (spool(machine) / "1/job").write_text("nonsense")
    assert machine.berth("wait", submit(machine, "--", "true")).status == 0
    answer = machine.berth("jobs")
    assert "1/job: malformed" in answer.err and answer.out.splitlines()[1].split()[0] == "2"


def test_a_folder_of_jobs_that_others_may_write_to_is_refused(machine):
    submit(machine, "--", "true")
    spool(machine).chmod(0o777)
    answer = machine.berth("submit", "--", "true")
    assert answer.status == 1 and "others may write there" in answer.err


# What an attack found


def test_what_a_killed_run_has_left_is_cancelled(machine):
    # It hears SIGTERM only once: the kernel sends one when its `berth __job` is killed.
    script = "trap 'test -e {0}/again && exit 0; touch {0}/again' TERM; echo on; while :; do sleep 0.05; done"
    number = submit(machine, "--", "sh", "-c", script.format(machine.directory))
    eventually(lambda: log(machine, number) == "on\n")
    kill(machine, "run")
    eventually((machine.directory / "again").exists)
    assert machine.berth("cancel", number).out == f"cancelled job {number}\n"
    assert processes(machine)["job"] == []


def test_of_an_array_only_the_task_whose_run_was_killed_is_cancelled(machine):
    script = "trap 'test -e {0}/again && exit 0; touch {0}/again' TERM; echo on; while :; do sleep 0.05; done"
    number = submit(machine, "--array", "1-2", "--", "sh", "-c", script.format(machine.directory))
    for i in (1, 2):
        eventually(lambda i=i: log(machine, f"{number}.{i}") == "on\n")
    (run,) = (pid for pid in processes(machine)["run"] if cmdline(pid).endswith(f"/{number}.1".encode()))
    os.kill(run, signal.SIGKILL)
    eventually((machine.directory / "again").exists)
    assert machine.berth("cancel", f"{number}.1").status == 0
    assert [job(machine, f"{number}.{i}")["state"] for i in (1, 2)] == ["cancelled", "running"]


def test_one_that_does_not_end_and_whose_run_is_dead_is_named(machine):
    number = submit(machine, "--", "sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.05; done")
    eventually(lambda: log(machine, number) == "on\n")
    kill(machine, "run")
    answer = machine.berth("cancel", "--wait", "1s", number)
    assert answer.status == 124 and f"still runs: {processes(machine)['job'][0]} (sh -c" in answer.err


@pytest.mark.parametrize("end", ["cancel", "release"])
def test_a_stopped_job_is_ended(machine, end):
    number = submit(machine, "--", "sh", "-c", "echo on; while :; do sleep 0.05; done")
    eventually(lambda: log(machine, number) == "on\n")
    # All of its group, as `kill -STOP -PGID` does: its `berth __job` as well.
    os.killpg(os.getpgid(processes(machine)["run"][0]), signal.SIGSTOP)
    (lease,) = machine.berth("list", "--json").json["leases"]
    answer = machine.berth(end, number if end == "cancel" else lease["id"])
    assert answer.status == 0, answer.err
    wait_for(machine, number, "cancelled" if end == "cancel" else "ended")


def test_a_question_makes_no_spool(machine):
    home = machine.directory / "home"
    assert machine.berth("jobs").out.startswith("no jobs;")
    for words in (["jobs", "1"], ["wait", "1"], ["cancel", "1"], ["log", "1"], ["__tasks"]):
        machine.berth(*words)
    assert list(home.iterdir()) == []


def test_who_waits_for_a_job_whose_spool_is_removed_is_told_and_makes_none(make_machine):
    machine = make_machine("1xH100")
    fill(machine, 1)
    number = submit(machine, "--", "true")
    waiter = machine.start_berth("wait", number)
    eventually(lambda: job(machine, number)["in_line"])
    folder = spool(machine)
    shutil.rmtree(folder)
    _, err = waiter.communicate(timeout=DEADLINE_S)
    # Whoever comes to look only then finds none.
    told = (
        f"berth: job {number} was forgotten\n",
        f"berth: there is no job {number} of yours on this machine",
    )
    assert waiter.returncode == 1 and err.startswith(told)
    assert not folder.exists()


def test_a_home_that_cannot_be_written_is_called_so(machine):
    home = machine.directory / "home"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(home)], check=False).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        answer = machine.berth("submit", "--", "true")
        assert answer.status == 1
        assert "Read-only file system" in answer.err and "set XDG_STATE_HOME to a folder" in answer.err
        assert machine.berth("jobs").status == 0
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)


def test_a_long_argument_is_cut_in_the_table_and_whole_in_json(machine):
    word = "x" * 130_000
    number = submit(machine, "--", "true", word)
    assert max(map(len, machine.berth("jobs").out.splitlines())) < 400
    assert job(machine, number)["words"] == ["true", word]


def test_a_name_leaves_as_one_line(machine):
    number = submit(machine, "-J", "a\nb\x1b[31m", "--", "true")
    assert job(machine, number)["name"] == "a\\x0ab\\x1b[31m"


def test_a_number_that_is_no_job_is_called_so(machine):
    for words in (["cancel", "99"], ["cancel", "99", "98"]):
        answer = machine.berth(*words)
        assert answer.status == 1 and "there is no job 99 of yours on this machine" in answer.err
