"""Jobs outlive what becomes of their session, their runner, their run, their machine and their disk."""

import contextlib
import os
import pathlib
import resource
import select
import shutil
import signal
import subprocess

import pytest
from clock import Clock
from jobs import eventually, state, the_only
from simulated_machine import DEADLINE_S
from storm import processes
from submitted import cmdline, fill, job, kill, log, spool, submit, told, wait_for


def test_a_job_outlives_the_session_that_submitted_it(machine):
    script = f"{machine.program} submit -- sh -c 'sleep 0.3; echo done'; sleep 1000"
    session = machine.start("sh", "-c", script, start_new_session=True)
    assert session.stdout.readline() == "1\n"
    os.killpg(session.pid, signal.SIGHUP)
    session.wait(DEADLINE_S)
    assert machine.berth("wait", "1").status == 0
    assert log(machine, "1") == "done\n"


def test_with_its_runner_killed_a_job_that_starts_brings_up_the_next(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    for i in range(3):
        submit(machine, "--", "touch", machine.directory / f"ran{i}")
    eventually(lambda: job(machine, "2")["in_line"])
    kill(machine, "runner")
    run = the_only(
        lambda: [pid for pid in processes(machine)["run"] if f"/{holder}".encode() in cmdline(pid)]
    )
    os.kill(run, signal.SIGTERM)
    # Nobody asks for jobs meanwhile.
    eventually(lambda: len(list(machine.directory.glob("ran*"))) == 3)


def test_one_killed_in_line_gets_in_line_again(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    number = submit(machine, "--", "sh", "-c", "echo ran")
    eventually(lambda: job(machine, number)["in_line"])
    first = the_only(
        lambda: [pid for pid in processes(machine)["run"] if cmdline(pid).endswith(f"/{number}".encode())]
    )
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
    runner = the_only(lambda: processes(machine)["runner"])
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


def test_a_spool_that_could_not_be_listed_for_a_while_is_listed_by_the_same_runner(machine, tmp_path):
    submit(machine, "--at", "1h", "--", "true")
    runner = the_only(lambda: processes(machine)["runner"])
    eventually(lambda: is_asleep(runner))
    _, most = resource.prlimit(runner, resource.RLIMIT_NOFILE)
    os.kill(runner, signal.SIGSTOP)
    eventually(lambda: state(runner) == "T")
    with open(spool(machine) / "bell", "rb+", buffering=0) as bell:
        # So much that the runner has to list the jobs: the news of the next one is lost.
        bell.write(b"0\n" * 4096)
        submit(machine, "--", "touch", tmp_path / "ran")
        resource.prlimit(runner, resource.RLIMIT_NOFILE, (2, most))
        os.kill(runner, signal.SIGCONT)
        eventually(lambda: not select.select([bell], [], [], 0)[0] and is_asleep(runner))
    resource.prlimit(runner, resource.RLIMIT_NOFILE, (most, most))
    # Whoever asks for the job would start a runner.
    eventually((tmp_path / "ran").exists)
    assert processes(machine)["runner"] == [runner]


def test_while_the_runner_is_stopped_no_command_hangs_and_whoever_asks_is_told(machine):
    submit(machine, "--at", "1h", "--", "true")
    runner = the_only(lambda: processes(machine)["runner"])
    eventually(lambda: is_asleep(runner))
    assert "which starts your jobs" not in machine.berth("jobs").err
    os.kill(runner, signal.SIGSTOP)
    eventually(lambda: state(runner) == "T")
    number, unwanted = submit(machine, "--", "true"), submit(machine, "--", "true")
    words = f"process {runner}, which starts your jobs, is stopped; `kill -CONT {runner}` lets it go on"
    assert words in machine.berth("jobs").err
    assert words in machine.berth("why", number).out
    assert machine.berth("cancel", unwanted).out == f"cancelled job {unwanted}\n"
    waiting = machine.start_berth("wait", number)
    assert words in waiting.stderr.readline()
    answer = machine.berth("wait", "--wait", "1s", number)
    assert answer.status == 124 and f"job {number} is not over yet" in answer.err
    os.kill(runner, signal.SIGCONT)
    assert waiting.wait(DEADLINE_S) == 0
    assert job(machine, unwanted)["state"] == "cancelled"
    assert "which starts your jobs" not in machine.berth("jobs").err


def is_asleep(pid: int) -> bool:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


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
    for file in spool(machine).glob("*/state"):
        # Of another boot, in which our processes have the pids of that one's.
        text = "".join(
            "boot=another\n"
            if line.startswith("boot=")
            else f"pid={os.getpid()}\n"
            if line.startswith("pid=")
            else line
            for line in file.read_text().splitlines(keepends=True)
        )
        file.write_text(text)
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
