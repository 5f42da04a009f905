"""berth each: the commands of a file, in the foreground, and on where it was."""

import contextlib
import fcntl
import os
import pathlib
import pty
import signal
import subprocess

from jobs import eventually
from lab import DEADLINE_S
from storm import processes
from submitted import job, log, spool, submit, told


def commands(lab, *lines) -> pathlib.Path:
    file = lab.directory / "commands.txt"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def ran(lab) -> list[str]:
    marks = lab.directory / "ran"
    return sorted(marks.read_text().split()) if marks.exists() else []


def mark(lab, word: str) -> str:
    return f"echo {word} >> {lab.directory}/ran"


def test_each_line_runs_on_gpus_of_its_own_and_the_status_says_whether_all_went_well(lab):
    file = commands(lab, "# a comment", "", "echo a, $CUDA_VISIBLE_DEVICES", "echo b; exit 3", "kill -9 $$")
    answer = lab.berth("each", "-n", "2", file, cwd=lab.directory)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.splitlines()[0] == "berth: job 1: 3 commands"
    assert sorted(answer.err.splitlines()[1:-1]) == [
        "done 1.3: echo a, $CUDA_VISIBLE_DEVICES",
        "failed 1.4 (exit status 3): echo b; exit 3",
        "failed 1.5 (signal 9): kill -9 $$",
    ]
    assert "2 of 3 commands did not end with status 0 (`berth jobs 1`)" in answer.err.splitlines()[-1]
    assert len(log(lab, "1.3").split(",")) == 3


def test_what_ended_well_is_not_run_again(lab):
    file = commands(lab, mark(lab, "one"), f"test -e {lab.directory}/mended && {mark(lab, 'two')}")
    assert lab.berth("each", file).status == 1
    (lab.directory / "mended").touch()
    with file.open("a") as text:
        text.write(mark(lab, "three") + "\n")
    answer = lab.berth("each", file)
    assert answer.status == 0 and "2 of 3 commands; the others have ended with status 0 before" in answer.err
    assert ran(lab) == ["one", "three", "two"]
    answer = lab.berth("each", file)
    assert (answer.status, ran(lab)) == (0, ["one", "three", "two"])
    assert "all 3 commands have ended with status 0 before" in answer.err
    assert lab.berth("each", "--again", file).status == 0
    assert ran(lab) == ["one", "one", "three", "three", "two", "two"]


def test_the_same_line_twice_runs_twice_and_another_folder_is_another_matter(lab):
    lines = "\n".join([mark(lab, "x")] * 2)
    assert lab.berth("each", input=lines, cwd=lab.directory).status == 0
    assert lab.berth("each", "-", input=lines, cwd=lab.directory).status == 0
    assert ran(lab) == ["x", "x"]
    assert lab.berth("each", input=lines, cwd=lab.directory / "home").status == 0
    assert ran(lab) == ["x"] * 4


def test_ctrl_c_ends_what_runs_and_the_same_command_goes_on(make_lab):
    lab = make_lab("1xH100")
    go = lab.directory / "go"
    file = commands(lab, mark(lab, "a"), f"{mark(lab, 'b')}; test -e {go} || exec sleep 1000", mark(lab, "c"))
    each = lab.start_berth("each", file)
    eventually(lambda: ran(lab) == ["a", "b"])
    each.send_signal(signal.SIGINT)
    _, err = each.communicate(timeout=DEADLINE_S)
    assert each.returncode == -signal.SIGINT and "the same command goes on" in err
    eventually(lambda: processes(lab)["run"] == [])
    assert {found["state"] for found in told(lab, "1.2", "1.3")} == {"cancelled"}
    go.touch()
    assert lab.berth("each", file).status == 0
    assert ran(lab) == ["a", "b", "b", "c"]


def test_ctrl_c_ends_what_the_lines_have_started_too(make_lab):
    lab = make_lab("1xH100")
    file = commands(lab, f"{mark(lab, 'a')}; sleep 1000; true")
    each = lab.start_berth("each", file)
    eventually(lambda: ran(lab) == ["a"])
    each.send_signal(signal.SIGINT)
    each.communicate(timeout=DEADLINE_S)
    assert each.returncode == -signal.SIGINT
    assert lab.berth("run", "--no-wait", "--", "true").status == 0


def test_killed_itself_it_is_shown_again_by_the_same_command(make_lab):
    lab = make_lab("1xH100")
    go = lab.directory / "go"
    file = commands(
        lab, mark(lab, "a"), f"{mark(lab, 'b')}; while test ! -e {go}; do sleep 0.05; done", mark(lab, "c")
    )
    each = lab.start_berth("each", file)
    eventually(lambda: ran(lab) == ["a", "b"])
    each.kill()
    each.wait(DEADLINE_S)
    text = file.read_text()
    commands(lab, "true")
    answer = lab.berth("each", file)
    assert answer.status == 1 and "`berth cancel 1` ends them" in answer.err
    file.write_text(text)
    again = lab.start_berth("each", file)
    assert "job 1 of an earlier call goes on" in again.stderr.readline()
    go.touch()
    again.communicate(timeout=DEADLINE_S)
    assert (again.returncode, ran(lab)) == (0, ["a", "b", "c"])


@contextlib.contextmanager
def numbers_held(lab):
    """As by another process that adds a job and does not come to an end."""
    with (spool(lab) / "numbers").open("r+") as numbers:
        fcntl.flock(numbers, fcntl.LOCK_EX)
        yield (spool(lab) / "numbers").stat().st_ino


def waiters(inode: int) -> int:
    """How many processes wait for the lock of this file."""
    locks = pathlib.Path("/proc/locks").read_text().splitlines()
    return sum(" -> FLOCK " in line and f":{inode} " in line for line in locks)


def test_two_calls_at_the_same_moment_run_each_line_once(lab):
    submit(lab, "--", "true")
    file = commands(lab, mark(lab, "a"), f"{mark(lab, 'b')}; sleep 0.5", mark(lab, "c"))
    with numbers_held(lab) as inode:
        calls = [lab.start_berth("each", file) for _ in range(2)]
        eventually(lambda: waiters(inode) == 2)
    told_by = sorted(call.communicate(timeout=DEADLINE_S)[1].splitlines()[0] for call in calls)
    assert [call.returncode for call in calls] == [0, 0]
    assert told_by == ["berth: job 2 of an earlier call goes on", "berth: job 2: 3 commands"]
    assert ran(lab) == ["a", "b", "c"]


def test_one_that_is_stopped_while_it_adds_its_job_stops_others_for_ten_seconds_only(lab):
    submit(lab, "--", "true")
    with numbers_held(lab):
        answer = lab.berth("each", commands(lab, mark(lab, "a")))
    assert answer.status == 1 and "if it is stopped, continue it or end it" in answer.err
    assert ran(lab) == []
    assert lab.berth("each", lab.directory / "commands.txt").status == 0


def test_one_that_fails_is_tried_again_as_often_as_said(lab):
    file = commands(lab, f"{mark(lab, 'x')}; exit 1")
    assert lab.berth("each", "--retries", "2", file).status == 1
    assert ran(lab) == ["x"] * 3
    assert job(lab, "1.1")["starts"] == 3


def test_on_a_terminal_there_is_a_bar(lab):
    file = commands(lab, "true", "exit 1")
    terminal, other = pty.openpty()
    each = lab.start_berth("each", file, stderr=other, stdin=other, start_new_session=True)
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


def test_a_file_without_a_command_and_one_that_is_not_there(lab):
    assert "there is no command in" in lab.berth("each", commands(lab, "# nothing")).err
    answer = lab.berth("each", lab.directory / "missing")
    assert answer.status == 1 and "No such file" in answer.err
    assert lab.berth("each", stdin=subprocess.DEVNULL).status == 2
    assert submit(lab, "--", "true") == "1"
