"""berth each: the commands of a file, in the foreground, and on where it was."""

import contextlib
import fcntl
import os
import pathlib
import pty
import signal
import subprocess

from jobs import eventually
from simulated_machine import DEADLINE_S
from storm import processes
from submitted import job, log, spool, submit, told


def commands(machine, *lines) -> pathlib.Path:
    file = machine.directory / "commands.txt"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def ran(machine) -> list[str]:
    marks = machine.directory / "ran"
    return sorted(marks.read_text().split()) if marks.exists() else []


def mark(machine, word: str) -> str:
    return f"echo {word} >> {machine.directory}/ran"


def test_each_line_runs_on_gpus_of_its_own_and_the_status_says_whether_all_went_well(machine):
    file = commands(
        machine, "# a comment", "", "echo a, $CUDA_VISIBLE_DEVICES", "echo b; exit 3", "kill -9 $$"
    )
    answer = machine.berth("each", "-n", "2", file, cwd=machine.directory)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.splitlines()[0] == "berth: job 1: 3 commands"
    assert sorted(answer.err.splitlines()[1:-1]) == [
        "done 1.3: echo a, $CUDA_VISIBLE_DEVICES",
        "failed 1.4 (exit status 3): echo b; exit 3",
        "failed 1.5 (signal 9): kill -9 $$",
    ]
    assert "2 of 3 commands did not end with status 0 (`berth jobs 1`)" in answer.err.splitlines()[-1]
    assert len(log(machine, "1.3").split(",")) == 3


def test_what_ended_well_is_not_run_again(machine):
    file = commands(
        machine, mark(machine, "one"), f"test -e {machine.directory}/mended && {mark(machine, 'two')}"
    )
    assert machine.berth("each", file).status == 1
    (machine.directory / "mended").touch()
    with file.open("a") as text:
        text.write(mark(machine, "three") + "\n")
    answer = machine.berth("each", file)
    assert answer.status == 0 and "2 of 3 commands; the others have ended with status 0 before" in answer.err
    assert ran(machine) == ["one", "three", "two"]
    answer = machine.berth("each", file)
    assert (answer.status, ran(machine)) == (0, ["one", "three", "two"])
    assert "all 3 commands have ended with status 0 before" in answer.err
    assert machine.berth("each", "--again", file).status == 0
    assert ran(machine) == ["one", "one", "three", "three", "two", "two"]


def test_the_same_line_twice_runs_twice_and_another_folder_is_another_matter(machine):
    lines = "\n".join([mark(machine, "x")] * 2)
    assert machine.berth("each", input=lines, cwd=machine.directory).status == 0
    assert machine.berth("each", "-", input=lines, cwd=machine.directory).status == 0
    assert ran(machine) == ["x", "x"]
    assert machine.berth("each", input=lines, cwd=machine.directory / "home").status == 0
    assert ran(machine) == ["x"] * 4


def test_ctrl_c_ends_what_runs_and_the_same_command_goes_on(make_machine):
    machine = make_machine("1xH100")
    go = machine.directory / "go"
    file = commands(
        machine,
        mark(machine, "a"),
        f"{mark(machine, 'b')}; test -e {go} || exec sleep 1000",
        mark(machine, "c"),
    )
    each = machine.start_berth("each", file)
    eventually(lambda: ran(machine) == ["a", "b"])
    each.send_signal(signal.SIGINT)
    _, err = each.communicate(timeout=DEADLINE_S)
    assert each.returncode == -signal.SIGINT and "the same command goes on" in err
    eventually(lambda: processes(machine)["run"] == [])
    assert {found["state"] for found in told(machine, "1.2", "1.3")} == {"cancelled"}
    go.touch()
    assert machine.berth("each", file).status == 0
    assert ran(machine) == ["a", "b", "b", "c"]


def test_ctrl_c_ends_what_the_lines_have_started_too(make_machine):
    machine = make_machine("1xH100")
    file = commands(machine, f"{mark(machine, 'a')}; sleep 1000; true")
    each = machine.start_berth("each", file)
    eventually(lambda: ran(machine) == ["a"])
    each.send_signal(signal.SIGINT)
    each.communicate(timeout=DEADLINE_S)
    assert each.returncode == -signal.SIGINT
    assert machine.berth("run", "--no-wait", "--", "true").status == 0


def test_killed_itself_it_is_shown_again_by_the_same_command(make_machine):
    machine = make_machine("1xH100")
    go = machine.directory / "go"
    file = commands(
        machine,
        mark(machine, "a"),
        f"{mark(machine, 'b')}; while test ! -e {go}; do sleep 0.05; done",
        mark(machine, "c"),
    )
    each = machine.start_berth("each", file)
    eventually(lambda: ran(machine) == ["a", "b"])
    each.kill()
    each.wait(DEADLINE_S)
    text = file.read_text()
    commands(machine, "true")
    answer = machine.berth("each", file)
    assert answer.status == 1 and "`berth cancel 1` ends them" in answer.err
    file.write_text(text)
    again = machine.start_berth("each", file)
    assert "job 1 of an earlier call goes on" in again.stderr.readline()
    go.touch()
    again.communicate(timeout=DEADLINE_S)
    assert (again.returncode, ran(machine)) == (0, ["a", "b", "c"])


@contextlib.contextmanager
def numbers_held(machine):
    """As by another process that adds a job and does not come to an end."""
    with (spool(machine) / "numbers").open("r+") as numbers:
        fcntl.flock(numbers, fcntl.LOCK_EX)
        yield (spool(machine) / "numbers").stat().st_ino


def waiters(inode: int) -> int:
    """How many processes wait for the lock of this file."""
    locks = pathlib.Path("/proc/locks").read_text().splitlines()
    return sum(" -> FLOCK " in line and f":{inode} " in line for line in locks)


def test_two_calls_at_the_same_moment_run_each_line_once(machine):
    submit(machine, "--", "true")
    file = commands(machine, mark(machine, "a"), f"{mark(machine, 'b')}; sleep 0.5", mark(machine, "c"))
    with numbers_held(machine) as inode:
        calls = [machine.start_berth("each", file) for _ in range(2)]
        eventually(lambda: waiters(inode) == 2)
    told_by = sorted(call.communicate(timeout=DEADLINE_S)[1].splitlines()[0] for call in calls)
    assert [call.returncode for call in calls] == [0, 0]
    assert told_by == ["berth: job 2 of an earlier call goes on", "berth: job 2: 3 commands"]
    assert ran(machine) == ["a", "b", "c"]


def test_one_that_is_stopped_while_it_adds_its_job_stops_others_for_ten_seconds_only(machine):
    submit(machine, "--", "true")
    with numbers_held(machine):
        answer = machine.berth("each", commands(machine, mark(machine, "a")))
    assert answer.status == 1 and "if it is stopped, continue it or end it" in answer.err
    assert ran(machine) == []
    assert machine.berth("each", machine.directory / "commands.txt").status == 0


def test_one_that_fails_is_tried_again_as_often_as_said(machine):
    file = commands(machine, f"{mark(machine, 'x')}; exit 1")
    assert machine.berth("each", "--retries", "2", file).status == 1
    assert ran(machine) == ["x"] * 3
    assert job(machine, "1.1")["starts"] == 3


def test_on_a_terminal_there_is_a_bar(machine):
    file = commands(machine, "true", "exit 1")
    terminal, other = pty.openpty()
    each = machine.start_berth("each", file, stderr=other, stdin=other, start_new_session=True)
    os.close(other)
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:
            break
    assert each.wait(DEADLINE_S) == 1
    assert b"] 0/2: 2 waiting" in shown and b"failed 1.2 (exit status 1): exit 1" in shown
    assert b"done 1.1" not in shown


def test_a_file_without_a_command_and_one_that_is_not_there(machine):
    assert "there is no command in" in machine.berth("each", commands(machine, "# nothing")).err
    answer = machine.berth("each", machine.directory / "missing")
    assert answer.status == 1 and "No such file" in answer.err
    answer = machine.berth("each", stdin=subprocess.DEVNULL)
    assert answer.status == 2
    assert answer.err.startswith("berth: there is no command in the input (without FILE, or with -): each")
    assert submit(machine, "--", "true") == "1"
