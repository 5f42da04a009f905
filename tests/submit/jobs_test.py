"""berth submit, jobs, log, wait, cancel, forget: what a user sees of jobs that are left alone."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import sys
import subprocess

import pytest
from clock import Clock
from jobs import eventually
from lab import DEADLINE_S
from lease_jobs import waiting
from schemas import checked
from storm import processes
from submitted import fill, job, kill, log, spool, submit, told, wait_for


def test_a_job_runs_with_a_gpu_in_the_folder_and_environment_of_its_submit(lab, tmp_path):
    folder = tmp_path / "a folder\nof two lines"
    folder.mkdir()
    script = (
        'pwd; echo "$WORDS|$CUDA_VISIBLE_DEVICES|$BERTH_JOB|$BERTH_JOB_NAME" "$1"; echo wrong >&2; exit 3'
    )
    number = submit(
        lab,
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
    assert lab.berth("wait", number).status == 3
    assert log(lab, number) == f"{folder}\none two|0|1|train a\nb\nwrong\n"
    (found,) = checked(lab.berth("jobs", "--json", number), "jobs")["jobs"]
    assert (found["name"], found["state"], found["exit_status"]) == ("train", "ended", 3)
    assert found["devices"] == ["0"] and found["starts"] == 1
    table = lab.berth("jobs").out.splitlines()
    assert table[0].split() == "JOB NAME STATE SUBMITTED START END TIME GPU EXIT COMMAND".split()
    assert table[1].split()[:3] == ["1", "train", "failed"]


def test_an_environment_with_newlines_and_of_100_kb_arrives(lab):
    value = "line\n= \\n" * 12800
    number = submit(lab, "--", "sh", "-c", 'printf %s "$BIG"', env={"BIG": value, "EMPTY": ""})
    assert lab.berth("wait", number).status == 0
    assert log(lab, number) == value


def test_a_command_that_is_not_there_is_told_at_submit(lab):
    answer = lab.berth("submit", "--", "trian")
    assert (answer.status, answer.out) == (127, "")
    assert "trian: there is no such command on PATH" in answer.err
    assert told(lab) == []


def test_jobs_are_shown_by_their_state_and_arrays_task_by_task(lab):
    ended = submit(lab, "--", "true")
    failed = submit(lab, "-J", "bad", "--", "false")
    array = submit(lab, "--array", "0-2", "--", "sh", "-c", "exit $((BERTH_ARRAY_INDEX == 1))")
    later = submit(lab, "--at", "1h", "--", "true")
    lab.berth("wait", ended, failed, array)

    def shown(*words):
        table = lab.berth("jobs", *words).out.split("\n\n")[0].splitlines()[1:]
        ids = [line.split()[0] for line in table]
        assert [job["id"] for job in checked(lab.berth("jobs", "--json", *words), "jobs")["jobs"]] == ids
        return ids

    assert shown("--state", "failed") == [failed, f"{array}.1"]
    assert shown("--state", "failed", array) == [f"{array}.1"]
    assert shown("--state=waiting", "--state=failed", failed, later) == [failed, later]
    assert shown("--state", "done") == [ended, f"{array}.0", f"{array}.2"]
    assert lab.berth("jobs", "--state", "running").out == "no job of yours is running\n"
    assert (
        lab.berth("jobs", "--state", "in-line", "--state", "running").out
        == "no job of yours is in line or running\n"
    )
    assert lab.berth("jobs", "--state", "bad").status == 2


def test_a_job_that_waits_for_its_time_says_it(lab):
    number = submit(lab, "--at", "1h", "--", "true")
    at = job(lab, number)["not_before_s"]
    clock = lab.run("date", "-d", f"@{at}", "+%H:%M").out.strip()
    assert re.search(
        rf"^job {number}: starts at (\d+ \w+ )?{clock} at the earliest$", lab.berth("jobs").out, re.M
    )
    soon = submit(lab, "--at", "1s", "--", "true")
    assert lab.berth("wait", soon).status == 0
    assert "earliest" not in lab.berth("jobs", soon).out


@pytest.mark.parametrize("words", [(), ("-n", "0", "--", "true"), ("--job-name", "", "--", "true")])
def test_what_makes_no_sense_is_refused(lab, words):
    assert lab.berth("submit", *words).status == 2
    assert told(lab) == []


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
def test_what_this_machine_can_never_grant_is_refused_at_once_as_by_run(lab, words):
    submit(lab, "--at", "1h", "--", "true")
    request = words[:2]
    refused = lab.berth("run", *request, "--", "true")
    assert refused.status in (2, 69) and refused.out == ""
    assert lab.berth("submit", *words, "--", "true") == refused
    assert len(told(lab)) == 1


def test_a_time_that_the_site_never_allows_is_refused_at_once(lab):
    (lab.directory / "site.toml").write_text('time = "1h"\n[limits]\ngpus = 4\n')
    assert "a lease here lasts 1h at most" in lab.berth("submit", "--time", "2h", "--", "true").err
    assert "limit is 4 GPUs" in lab.berth("submit", "-n", "5", "--", "true").err
    assert told(lab) == []


def test_a_device_that_is_lost_now_may_be_back_for_a_job_that_starts_later(make_lab):
    lab = make_lab('[[device]]\nmodel = "H100"\n[[device]]\nmodel = "H100"\nlost = true\n')
    answer = lab.berth("submit", "-n", "2", "--", "true")
    assert (answer.status, answer.out) == (69, "")
    assert "GPU 1  lost" in answer.err
    first = submit(lab, "-n", "2", "--at", "1h", "--", "true")
    submit(lab, "-n", "2", "--after-ok", first, "--", "true")
    assert lab.berth("submit", "-n", "3", "--at", "1h", "--", "true").status == 69


def test_a_machine_that_cannot_be_looked_at_takes_every_job(make_lab):
    lab = make_lab('[[fault]]\ncall = "nvmlInit*"\nresult = 9\n[[device]]\nmodel = "H100"\n')
    assert lab.berth("run", "-n", "9", "--", "true").status == 69
    submit(lab, "--at", "1h", "-n", "9", "--", "true")


def test_what_is_submitted_in_a_lease_is_for_the_whole_machine(lab):
    inside = lab.berth("run", "--", lab.program, "submit", "--at", "1h", "-n", "8", "--", "true")
    assert (inside.status, inside.err) == (0, "")


def test_a_request_that_nothing_can_satisfy_any_more_ends_the_job_with_the_reason(lab):
    first = submit(lab, "--", "sleep", "1000")
    number = submit(lab, "-n", "8", "--after", first, "--", "true")
    wait_for(lab, first, "running")
    lab.change("4xH100")
    assert lab.berth("cancel", first).status == 0
    assert lab.berth("wait", number).status == 69
    assert "8 whole GPUs" in job(lab, number)["reason"]
    assert "8 whole GPUs" in log(lab, number)


def test_the_time_of_a_job_ends_it(lab):
    number = submit(lab, "--time", "1s", "--", "sleep", "1000")
    assert lab.berth("wait", number).status == 128 + signal.SIGTERM


def test_a_job_is_the_machines_and_not_of_the_lease_that_it_was_submitted_in(lab):
    answer = lab.berth(
        "run", "--", lab.program, "submit", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; sleep 1000"
    )
    assert (answer.status, answer.out, answer.err) == (0, "1\n", "")
    wait_for(lab, "1", "running")
    assert [len(lease["devices"]) for lease in lab.berth("list", "--json").json["leases"]] == [1]


def test_a_mask_that_no_lease_made_holds_for_the_job(lab):
    number = submit(lab, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES", env={"CUDA_VISIBLE_DEVICES": "5"})
    assert lab.berth("wait", number).status == 0
    assert log(lab, number) == "5\n"


def test_list_and_queue_show_the_job(make_lab):
    lab = make_lab("1xH100")
    fill(lab, 1)
    submit(lab, "--job-name", "tune", "--note", "for the paper", "--", "sh", "-c", "true")
    eventually(lambda: len(waiting(lab)) == 1)
    assert '"job 1 holder"' in lab.berth("list").out
    assert '"job 2 tune: for the paper"' in lab.berth("queue").out


# Cancelling


def test_one_that_is_cancelled_just_as_it_starts_leaves_no_ticket(lab):
    for _ in range(10):
        number = submit(lab, "--", "sleep", "1000")
        state = spool(lab) / number / "state"
        while "[started]" not in (state.read_text() if state.exists() else ""):
            pass
        assert lab.berth("cancel", number).status == 0
        assert job(lab, number)["state"] == "cancelled"
        eventually(lambda: list((lab.leases / "leases").iterdir()) == [])


def test_one_that_waits_is_cancelled_and_never_runs(make_lab):
    lab = make_lab("1xH100")
    (holder,) = fill(lab, 1)
    first, second = (submit(lab, "--", "touch", lab.directory / f"ran{i}") for i in range(2))
    eventually(lambda: job(lab, first)["in_line"])
    assert lab.berth("cancel", first, second).out == f"cancelled job {first}\ncancelled job {second}\n"
    eventually(lambda: lab.berth("queue", "--json").json["waiters"] == [])
    lab.berth("cancel", holder)
    last = submit(lab, "--", "true")
    assert lab.berth("wait", last).status == 0
    assert list(lab.directory.glob("ran*")) == []
    answer = lab.berth("wait", first)
    assert (answer.status, answer.err) == (1, f"berth: job {first} was cancelled\n")


def test_one_that_runs_is_asked_to_end(lab):
    number = submit(
        lab, "--", "sh", "-c", "trap 'echo saved; exit 0' TERM; echo on; while :; do sleep 0.05; done"
    )
    eventually(lambda: log(lab, number) == "on\n")
    assert lab.berth("cancel", number).status == 0
    assert log(lab, number) == "on\nsaved\n"
    assert job(lab, number)["state"] == "cancelled"


def test_one_that_does_not_end_is_named(lab):
    number = submit(lab, "--", "sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.05; done")
    eventually(lambda: log(lab, number) == "on\n")
    answer = lab.berth("cancel", "--wait", "1s", number)
    assert answer.status == 124 and f"this still runs: {processes(lab)['job'][0]} (sh -c" in answer.err
    assert "it gets SIGKILL 30 s after SIGTERM" in answer.err


# A script that leaves what it has started when it gets SIGTERM, as most scripts do.
LEAVES = "echo on; sleep 1000; echo done"
# And one whose child ignores SIGTERM.
LEAVES_DEAF = "(trap '' TERM; echo on; while :; do sleep 0.05; done); echo done"


def test_what_a_script_has_started_ends_with_it(make_lab):
    lab = make_lab("1xH100")
    number = submit(lab, "--", "sh", "-c", LEAVES)
    eventually(lambda: log(lab, number) == "on\n")
    assert lab.berth("cancel", number).out == f"cancelled job {number}\n"
    assert processes(lab)["job"] == [] and log(lab, number) == "on\n"
    assert lab.berth("run", "--no-wait", "--", "true").status == 0


@pytest.mark.parametrize("run", ["lives", "is dead"])
def test_what_ignores_sigterm_is_killed_after_the_grace_and_cancelled_is_said_then(lab, run):
    site = lab.directory / "site.toml"
    site.write_text('time_grace = "1s"\n')
    env = {"BERTH_SITE_FILE": site}
    number = submit(lab, "--", "sh", "-c", LEAVES_DEAF, env=env)
    eventually(lambda: log(lab, number) == "on\n")
    if run == "is dead":
        kill(lab, "run")
    # Else the grace may be over before all has been asked.
    stopped = processes(lab)["run"]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    answer = lab.berth("cancel", "--wait", "0s", number, env=env)
    assert answer.status == 124 and "this still runs: " in answer.err
    assert lab.berth("forget", number).status == 1
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    assert lab.berth("cancel", "--wait", f"{DEADLINE_S}s", number, env=env).out == f"cancelled job {number}\n"
    assert processes(lab)["job"] == []
    assert job(lab, number)["state"] == "cancelled"


def test_what_a_job_that_has_ended_left_behind_is_told_of_and_cancelled(lab, tmp_path):
    told_of = tmp_path / "told"
    number = submit(
        lab, "--notify", f"cmd:echo $BERTH_EVENT $BERTH_MESSAGE >>{told_of}", "--", "sh", "-c",
        "(trap '' TERM HUP; echo on; while :; do sleep 0.05; done) & sleep 0.1; exit 3",
    )  # fmt: skip
    assert lab.berth("wait", number).status == 3
    (left, *_) = processes(lab)["job"]
    words = f"has ended, and processes that it started still have its GPUs: {left} (sh -c"
    assert f"job {number}: {words}" in lab.berth("jobs").out
    assert job(lab, number)["left_behind"].startswith(f"{left} (sh -c")
    eventually(lambda: f"left {words}" in told_of.read_text())
    answer = lab.berth("forget", number)
    assert answer.status == 1 and words in answer.err
    os.kill(left, signal.SIGKILL)
    eventually(lambda: job(lab, number)["left_behind"] is None)
    assert lab.berth("forget", number).status == 0


def test_what_a_job_that_has_ended_left_behind_can_be_cancelled(make_lab):
    lab = make_lab("1xH100")
    number = submit(lab, "--", "sh", "-c", "setsid sleep 1000 & exit 0")
    assert lab.berth("wait", number).status == 0
    assert lab.berth("cancel", number).out == f"ended what job {number} had left behind\n"
    assert job(lab, number)["state"] == "ended"
    assert lab.berth("run", "--no-wait", "--", "true").status == 0


def test_what_a_job_has_left_behind_without_its_descriptors_is_told_of_and_cancelled(make_lab):
    lab = make_lab("1xH100")
    closes = "import os, time; os.closerange(0, 256); os.execvp('sleep', ['sleep', '1000'])"
    number = submit(lab, "--", "sh", "-c", f'setsid {sys.executable} -c "{closes}" & exit 0')
    assert lab.berth("wait", number).status == 0
    eventually(lambda: "(sleep 1000)" in (job(lab, number)["left_behind"] or ""))
    assert lab.berth("cancel", number).out == f"ended what job {number} had left behind\n"
    assert lab.berth("run", "--no-wait", "--", "true").status == 0


def test_what_is_over_or_was_never_there_is_no_job_to_cancel(lab):
    number = submit(lab, "--", "true")
    lab.berth("wait", number)
    answer = lab.berth("cancel", number)
    assert answer.status == 1 and "is over already (ended)" in answer.err
    assert lab.berth("cancel", "77").status == 1
    for command in ("log", "wait", "forget", "jobs"):
        answer = lab.berth(command, "77")
        assert answer.status == 1 and "there is no job 77" in answer.err
        assert lab.berth(command, "x").status == 2


# Logs, and forgetting


def test_a_log_is_followed_until_the_job_is_over(make_lab):
    lab = make_lab("1xH100")
    (holder,) = fill(lab, 1)
    number = submit(lab, "--", "sh", "-c", "echo one; sleep 0.2; echo two")
    follower = lab.start_berth("log", "-f", number)
    lab.berth("cancel", holder)
    out, err = follower.communicate(timeout=DEADLINE_S)
    assert (out, err, follower.returncode) == ("one\ntwo\n", "", 0)


def test_a_log_of_which_somebody_reads_only_the_beginning_ends_without_a_word(lab):
    number = submit(lab, "--", "seq", "200000")
    lab.berth("wait", number)
    answer = lab.run("bash", "-c", f"{lab.program} log {number} | head -n 2; echo ${{PIPESTATUS[0]}}")
    assert (answer.out, answer.err) == ("1\n2\n141\n", "")


def test_a_job_that_is_over_is_forgotten_and_its_number_with_it(lab):
    numbers = [submit(lab, "--", "true"), submit(lab, "--", "sleep", "1000")]
    lab.berth("wait", numbers[0])
    answer = lab.berth("forget", *numbers)
    assert answer.status == 1 and f"berth cancel {numbers[1]} ends it" in answer.err
    lab.berth("cancel", numbers[1])
    assert lab.berth("forget", *numbers).status == 0
    assert lab.berth("jobs").out.startswith("no jobs;")
    assert submit(lab, "--", "true") == "3"


def test_completion_offers_the_jobs(lab):
    submit(lab, "--job-name", "train", "--", "sleep", "1000")
    submit(lab, "--", "sleep", "999")
    assert lab.berth("__tasks").out == "1\ttrain\n2\tsleep 999\n"


# What breaks such things elsewhere


def test_a_job_outlives_the_session_that_submitted_it(lab):
    script = f"{lab.program} submit -- sh -c 'sleep 0.3; echo done'; sleep 1000"
    session = lab.start("sh", "-c", script, start_new_session=True)
    assert session.stdout.readline() == "1\n"
    os.killpg(session.pid, signal.SIGHUP)
    session.wait(DEADLINE_S)
    assert lab.berth("wait", "1").status == 0
    assert log(lab, "1") == "done\n"


def test_a_killed_runner_loses_nothing_and_comes_back_with_the_next_command(make_lab):
    lab = make_lab("1xH100")
    fill(lab, 1)
    numbers = [submit(lab, "--", "sh", "-c", "echo ran") for _ in range(3)]
    eventually(lambda: job(lab, numbers[0])["in_line"])
    kill(lab, "runner")
    assert len(processes(lab)["run"]) == 2  # what runs, and what is in line
    lab.berth("cancel", "1")
    assert lab.berth("wait", *numbers).status == 0
    assert [log(lab, number) for number in numbers] == ["ran\n"] * 3


def test_with_its_runner_killed_a_job_that_starts_brings_up_the_next(make_lab):
    lab = make_lab("1xH100")
    (holder,) = fill(lab, 1)
    for i in range(3):
        submit(lab, "--", "touch", lab.directory / f"ran{i}")
    eventually(lambda: job(lab, "2")["in_line"])
    kill(lab, "runner")
    (run,) = (pid for pid in processes(lab)["run"] if f"/{holder}".encode() in cmdline(pid))
    os.kill(run, signal.SIGTERM)
    # Nobody asks for jobs meanwhile.
    eventually(lambda: len(list(lab.directory.glob("ran*"))) == 3)


def cmdline(pid: int) -> bytes:
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0")


def test_one_killed_in_line_gets_in_line_again(make_lab):
    lab = make_lab("1xH100")
    (holder,) = fill(lab, 1)
    number = submit(lab, "--", "sh", "-c", "echo ran")
    eventually(lambda: job(lab, number)["in_line"])
    (first,) = (pid for pid in processes(lab)["run"] if cmdline(pid).endswith(f"/{number}".encode()))
    os.kill(first, signal.SIGKILL)
    eventually(lambda: job(lab, number)["in_line"] and first not in processes(lab)["run"])
    lab.berth("cancel", holder)
    assert lab.berth("wait", number).status == 0
    assert log(lab, number) == "ran\n"
    assert job(lab, number)["starts"] == 1


def test_one_whose_run_is_killed_is_interrupted_and_not_run_again(lab):
    number = submit(lab, "--", "sh", "-c", "echo ran; exec sleep 1000")
    eventually(lambda: log(lab, number) == "ran\n")
    kill(lab, "run")
    wait_for(lab, number, "interrupted")
    other = submit(lab, "--", "true")
    assert lab.berth("wait", other).status == 0
    assert log(lab, number) == "ran\n"
    assert lab.berth("wait", number).status == 1


def test_while_anything_of_a_job_lives_it_runs_whatever_became_of_its_run(lab):
    number = submit(lab, "--", "sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.05; done")
    eventually(lambda: log(lab, number) == "on\n")
    kill(lab, "run")
    assert job(lab, number)["state"] == "running"
    for pid in processes(lab)["job"]:
        os.kill(pid, signal.SIGKILL)
    wait_for(lab, number, "interrupted")


def end_all(lab) -> None:
    """At once, as far as that goes: none is there to start another."""
    while left := lab.inhabitants():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_one_that_was_interrupted_is_run_again_when_its_user_says_so(lab, tmp_path):
    script = f"echo start >>{tmp_path}/starts; test -e {tmp_path}/twice || exec sleep 1000"
    number = submit(lab, "--", "sh", "-c", script)
    # "running" is told a moment before its command runs.
    eventually(lambda: (tmp_path / "starts").exists() and (tmp_path / "starts").read_text() == "start\n")
    kill(lab, "run")
    wait_for(lab, number, "interrupted")
    (tmp_path / "twice").touch()
    answer = lab.berth("retry", number)
    assert answer.status == 0, answer.err
    assert lab.berth("wait", number).status == 0
    assert (tmp_path / "starts").read_text() == "start\nstart\n"


def test_one_that_cannot_begin_holds_up_nobody_else(lab, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    broken = submit(lab, "--at", "5s", "--", "true", cwd=gone)
    others = [submit(lab, "--at", "5s", "--", "true") for _ in range(2)]
    gone.rmdir()
    for number in others:
        assert lab.berth("wait", number).status == 0
    assert job(lab, broken)["state"] == "waiting"
    assert "No such file" in job(lab, broken)["reason"]
    assert lab.berth("cancel", broken).status == 0


def test_a_script_with_the_line_ends_of_windows_is_refused_at_submit(lab, tmp_path):
    script = tmp_path / "night.sh"
    script.write_bytes(b"#!/bin/sh\r\n#BERTH -J night\r\necho x\r\n")
    answer = lab.berth("submit", script)
    assert answer.status == 2
    assert f"the lines of {script} end as on Windows; `sed -i 's/\\r$//' {script}` mends that" in answer.err
    assert told(lab) == []


def test_after_a_reboot_those_that_wait_run_and_those_that_ran_are_interrupted(make_lab):
    lab = make_lab("1xH100")
    (ran,) = fill(lab, 1)
    numbers = [submit(lab, "--", "sh", "-c", "echo ran") for _ in range(2)]
    eventually(lambda: job(lab, numbers[0])["in_line"])
    end_all(lab)
    for state in spool(lab).glob("*/state"):
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
    assert lab.berth("wait", *numbers).status == 0
    assert job(lab, ran)["state"] == "interrupted"
    assert [log(lab, number) for number in numbers] == ["ran\n"] * 2
    assert job(lab, ran)["starts"] == 1


@pytest.mark.release_only  # what is preloaded comes before the sanitizer
def test_a_clock_that_is_set_back_changes_nothing(make_lab):
    lab = make_lab("1xH100")
    clock = Clock(lab)
    (holder,) = fill(lab, 1)
    first = submit(lab, "--", "sh", "-c", f"echo first >> {lab.directory}/order")
    clock.set(wall=-40_000_000, boot=0)
    second = submit(lab, "--", "sh", "-c", f"echo second >> {lab.directory}/order", env=clock.env)
    assert job(lab, second)["submitted_s"] < job(lab, first)["submitted_s"]
    lab.berth("cancel", holder)
    assert lab.berth("wait", first, second).status == 0
    assert (lab.directory / "order").read_text() == "first\nsecond\n"


@pytest.fixture
def small_home(lab):
    """A home on a file system of its own, of which little is left."""
    home = lab.directory / "home"
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(home)]
    if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("needs the right to mount")
    yield home
    subprocess.run(["umount", "-l", str(home)], check=True)


def test_on_a_full_disk_a_submit_is_refused_whole(lab, small_home):
    first = submit(lab, "--", "true")
    lab.berth("wait", first)
    with contextlib.suppress(OSError), (small_home / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    answer = lab.berth("submit", "--", "true")
    assert (answer.status, answer.out) == (1, "")
    assert "nothing was submitted" in answer.err and "No space left" in answer.err
    assert [found["id"] for found in told(lab)] == [first]
    assert not (spool(lab) / "new").exists()
    (small_home / "filler").unlink()
    assert lab.berth("wait", submit(lab, "--", "true")).status == 0


def test_jobs_that_a_full_disk_keeps_waiting_are_told_of(lab, small_home):
    holder = submit(lab, "-n", "8", "--", "sleep", "1000")
    wait_for(lab, holder, "running")
    number = submit(lab, "--", "true")
    words = f"the disk of {spool(lab)} takes nothing more (it is full, or read-only), so no job of yours can start"
    assert words not in lab.berth("jobs").err
    with contextlib.suppress(OSError), (small_home / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    answer = lab.berth("jobs")
    assert answer.status == 0 and words in answer.err
    (small_home / "filler").unlink()
    lab.berth("cancel", holder)
    assert lab.berth("wait", number).status == 0


def test_a_disk_that_fills_up_while_a_job_runs_keeps_how_it_ended(lab, small_home):
    number = submit(lab, "--", "sh", "-c", f"cat /dev/zero > {small_home}/filler 2>/dev/null; exit 7")
    assert lab.berth("wait", number).status == 7
    assert job(lab, number)["reason"] == "when it ended, the disk that its output is on was full"


@pytest.mark.parametrize("array", [[], ["--array", "1-20"]])
def test_on_a_full_disk_jobs_that_wait_and_run_are_cancelled_and_forgotten(lab, small_home, array):
    number = submit(lab, "-n", "8", *array, "--", "sleep", "1000")
    wait_for(lab, f"{number}.1" if array else number, "running")
    waits = submit(lab, "-n", "8", "--", "true")
    with contextlib.suppress(OSError), (small_home / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    for each in (waits, number):
        answer = lab.berth("cancel", each)
        assert (answer.status, answer.out) == (0, f"cancelled job {each}\n"), answer.err
    assert processes(lab)["job"] == []
    for each in (waits, number):
        assert lab.berth("forget", each).status == 0
    assert told(lab) == []


def test_two_machines_with_one_home_have_jobs_of_their_own(lab):
    if subprocess.run(["unshare", "--uts", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("needs the right to have another host name")
    (lab.directory / "machine-id").write_text(f"{'5' * 32}\n")
    another = f'hostname other; [ ! -e /etc/machine-id ] || mount --bind {lab.directory}/machine-id /etc/machine-id; exec "$@"'
    there = ["unshare", "--uts", "--mount", "sh", "-ec", another, "sh", lab.program]
    submit(lab, "--job-name", "here", "--", "true")
    assert lab.run(*there, "submit", "--job-name", "there", "--", "true").out == "1\n"
    assert lab.run(*there, "wait", "1").status == 0
    assert [found["name"] for found in lab.run(*there, "jobs", "--json").json["jobs"]] == ["there"]
    assert [found["name"] for found in told(lab)] == ["here"]


def test_a_machine_that_gets_another_name_keeps_its_jobs_and_their_numbers(lab):
    """Not where it has no machine-id, as in many containers: nobody could tell it from another machine."""
    machine_id = pathlib.Path("/etc/machine-id")
    if not machine_id.exists() or len(machine_id.read_text()) < 8:
        pytest.skip("needs a machine-id")
    if subprocess.run(["unshare", "--uts", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("needs the right to have another host name")
    renamed = ["unshare", "--uts", "sh", "-c", 'hostname other; exec "$@"', "sh", lab.program]
    assert submit(lab, "--job-name", "before", "--", "true") == "1"
    lab.berth("wait", "1")
    assert lab.run(*renamed, "submit", "--job-name", "after", "--", "true").out == "2\n"
    assert lab.run(*renamed, "wait", "2").status == 0
    assert [found["name"] for found in lab.run(*renamed, "jobs", "--json").json["jobs"]] == [
        "before",
        "after",
    ]
    assert [found["name"] for found in told(lab)] == ["before", "after"]


def test_one_that_was_cut_off_while_it_was_written_is_no_job(lab):
    submit(lab, "--", "true")
    lab.berth("wait", "1")
    draft = spool(lab) / "new"
    draft.mkdir()
    (draft / "job").write_text("berth-job 1\nname=ha")
    assert [found["id"] for found in told(lab)] == ["1"]
    assert submit(lab, "--", "true") == "2"
    assert not draft.exists()


def test_a_job_that_cannot_be_read_is_named_and_stops_no_other(lab):
    submit(lab, "--", "true")
    lab.berth("wait", "1")
    (spool(lab) / "1/job").write_text("nonsense")
    assert lab.berth("wait", submit(lab, "--", "true")).status == 0
    answer = lab.berth("jobs")
    assert "1/job: malformed" in answer.err and answer.out.splitlines()[1].split()[0] == "2"


def test_a_folder_of_jobs_that_others_may_write_to_is_refused(lab):
    submit(lab, "--", "true")
    spool(lab).chmod(0o777)
    answer = lab.berth("submit", "--", "true")
    assert answer.status == 1 and "others may write there" in answer.err


# What an attack found


def test_what_a_killed_run_has_left_is_cancelled(lab):
    # It hears SIGTERM only once: the kernel sends one when its `berth __job` is killed.
    script = "trap 'test -e {0}/again && exit 0; touch {0}/again' TERM; echo on; while :; do sleep 0.05; done"
    number = submit(lab, "--", "sh", "-c", script.format(lab.directory))
    eventually(lambda: log(lab, number) == "on\n")
    kill(lab, "run")
    eventually((lab.directory / "again").exists)
    assert lab.berth("cancel", number).out == f"cancelled job {number}\n"
    assert processes(lab)["job"] == []


def test_of_an_array_only_the_task_whose_run_was_killed_is_cancelled(lab):
    script = "trap 'test -e {0}/again && exit 0; touch {0}/again' TERM; echo on; while :; do sleep 0.05; done"
    number = submit(lab, "--array", "1-2", "--", "sh", "-c", script.format(lab.directory))
    for i in (1, 2):
        eventually(lambda i=i: log(lab, f"{number}.{i}") == "on\n")
    (run,) = (pid for pid in processes(lab)["run"] if cmdline(pid).endswith(f"/{number}.1".encode()))
    os.kill(run, signal.SIGKILL)
    eventually((lab.directory / "again").exists)
    assert lab.berth("cancel", f"{number}.1").status == 0
    assert [job(lab, f"{number}.{i}")["state"] for i in (1, 2)] == ["cancelled", "running"]


def test_one_that_does_not_end_and_whose_run_is_dead_is_named(lab):
    number = submit(lab, "--", "sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.05; done")
    eventually(lambda: log(lab, number) == "on\n")
    kill(lab, "run")
    answer = lab.berth("cancel", "--wait", "1s", number)
    assert answer.status == 124 and f"still runs: {processes(lab)['job'][0]} (sh -c" in answer.err


@pytest.mark.parametrize("end", ["cancel", "release"])
def test_a_stopped_job_is_ended(lab, end):
    number = submit(lab, "--", "sh", "-c", "echo on; while :; do sleep 0.05; done")
    eventually(lambda: log(lab, number) == "on\n")
    # All of its group, as `kill -STOP -PGID` does: its `berth __job` as well.
    os.killpg(os.getpgid(processes(lab)["run"][0]), signal.SIGSTOP)
    (lease,) = lab.berth("list", "--json").json["leases"]
    answer = lab.berth(end, number if end == "cancel" else lease["id"])
    assert answer.status == 0, answer.err
    wait_for(lab, number, "cancelled" if end == "cancel" else "ended")


def test_a_question_makes_no_spool(lab):
    home = lab.directory / "home"
    assert lab.berth("jobs").out.startswith("no jobs;")
    for words in (["jobs", "1"], ["wait", "1"], ["cancel", "1"], ["log", "1"], ["__tasks"]):
        lab.berth(*words)
    assert list(home.iterdir()) == []


def test_who_waits_for_a_job_whose_spool_is_removed_is_told_and_makes_none(make_lab):
    lab = make_lab("1xH100")
    fill(lab, 1)
    number = submit(lab, "--", "true")
    waiter = lab.start_berth("wait", number)
    eventually(lambda: job(lab, number)["in_line"])
    folder = spool(lab)
    shutil.rmtree(folder)
    _, err = waiter.communicate(timeout=DEADLINE_S)
    # Whoever comes to look only then finds none.
    told = (
        f"berth: job {number} was forgotten\n",
        f"berth: there is no job {number} of yours on this machine",
    )
    assert waiter.returncode == 1 and err.startswith(told)
    assert not folder.exists()


def test_a_home_that_cannot_be_written_is_called_so(lab):
    home = lab.directory / "home"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(home)], check=False).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        answer = lab.berth("submit", "--", "true")
        assert answer.status == 1
        assert "Read-only file system" in answer.err and "set XDG_STATE_HOME to a folder" in answer.err
        assert lab.berth("jobs").status == 0
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)


def test_a_long_argument_is_cut_in_the_table_and_whole_in_json(lab):
    word = "x" * 130_000
    number = submit(lab, "--", "true", word)
    assert max(map(len, lab.berth("jobs").out.splitlines())) < 400
    assert job(lab, number)["words"] == ["true", word]


def test_a_name_leaves_as_one_line(lab):
    number = submit(lab, "-J", "a\nb\x1b[31m", "--", "true")
    assert job(lab, number)["name"] == "a\\x0ab\\x1b[31m"


def test_a_number_that_is_no_job_is_called_so(lab):
    for words in (["cancel", "99"], ["cancel", "99", "98"]):
        answer = lab.berth(*words)
        assert answer.status == 1 and "there is no job 99 of yours on this machine" in answer.err
