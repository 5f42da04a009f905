"""berth submit --tty and berth attach: the terminal of a job, and those of its user."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import stat
import struct
import subprocess
import sys
import termios
import time

import pytest
from jobs import eventually, state
from simulated_machine import DEADLINE_S
from submitted import fill, job, kill, log, spool, submit, wait_for

DETACH = "\x1c"


class Terminal:
    """A terminal of its own for a program, of which a test reads what it shows."""

    def __init__(self, machine, *words, size=(24, 80)):
        self.ours, self.theirs = pty.openpty()
        self.resize(*size)
        self.modes = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen(
            [str(word) for word in words],
            env=machine.env | {"TERM": "dumb"},
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)),
        )
        machine.running.append(self.process)
        self.text = ""

    def until(self, expected: str) -> str:
        """Waits for it. What was shown up to there."""
        end = time.monotonic() + DEADLINE_S
        while expected not in self.text:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.ours], [], [], left)[0], self.text[-1000:]
            self.text += os.read(self.ours, 65536).decode(errors="replace")
        shown, _, self.text = self.text.partition(expected)
        return shown + expected

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def is_as_before(self) -> bool:
        return termios.tcgetattr(self.theirs) == self.modes

    def ends(self) -> int:
        status = self.process.wait(DEADLINE_S)
        while select.select([self.ours], [], [], 0)[0]:
            self.text += os.read(self.ours, 65536).decode(errors="replace")
        return status


def attach(machine, number: str, *words, **more) -> Terminal:
    terminal = Terminal(machine, machine.program, "attach", *words, number, **more)
    terminal.until("the job goes on\r\n")
    return terminal


def running(machine, *words) -> str:
    """A job with a terminal that runs and has said that it is ready."""
    number = submit(machine, "--tty", "--", *words)
    eventually(lambda: "ready" in log(machine, number))
    return number


ECHOES = 'stty -echo; echo ready; while read line; do echo "got $line"; done'


@pytest.fixture
def echoes(machine) -> str:
    return running(machine, "sh", "-c", ECHOES)


def test_a_job_with_a_terminal_sees_one_and_its_log_is_whole(machine):
    script = "tty; test -t 0 -a -t 1 -a -t 2 && echo all; seq 20000; echo wrong >&2; exit 3"
    number = submit(machine, "--tty", "--", "sh", "-c", script)
    assert machine.berth("wait", number).status == 3
    lines = log(machine, number).splitlines()
    assert lines[0].startswith("/dev/pts/") and lines[1] == "all"
    assert lines[2:] == [str(i) for i in range(1, 20001)] + ["wrong"]
    assert job(machine, number)["exit_status"] == 3


def test_without_tty_there_is_none(machine):
    number = submit(machine, "--", "sh", "-c", "test -t 0 -o -t 1 -o -t 2; echo $?")
    machine.berth("wait", number)
    assert log(machine, number) == "1\n"


def test_one_sees_what_was_shown_types_and_detaches(machine, echoes):
    terminal = attach(machine, echoes)
    terminal.until("ready\r\n")
    terminal.type("hello\n")
    terminal.until("got hello\r\n")
    assert not terminal.is_as_before()
    terminal.type(DETACH)
    terminal.until(f"detached from job {echoes}, which goes on")
    assert terminal.ends() == 0
    assert terminal.is_as_before()
    again = attach(machine, echoes)
    again.until("got hello\r\n")
    again.type("there\n")
    again.until("got there\r\n")
    assert "got hello\ngot there\n" in log(machine, echoes)
    # Ctrl-D: the job ends, and this with its status.
    again.type("\x04")
    again.until("is over: done, exit status 0")
    assert again.ends() == 0 and again.is_as_before()
    assert job(machine, echoes)["exit_status"] == 0


def test_ctrl_c_is_for_the_job_and_its_status_is_told(machine):
    number = running(
        machine, "sh", "-c", "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.1; done"
    )
    terminal = attach(machine, number)
    terminal.type("\x03")
    terminal.until("caught")
    terminal.until("is over: failed, exit status 7")
    assert terminal.ends() == 7


def test_the_job_has_the_size_of_the_window(machine):
    script = "trap 'stty size' WINCH; stty size; echo ready; while :; do sleep 0.1; done"
    number = running(machine, "sh", "-c", script)
    assert log(machine, number).startswith("24 80")
    terminal = attach(machine, number, size=(30, 100))
    terminal.until("30 100\r\n")
    terminal.resize(41, 132)
    terminal.until("41 132\r\n")
    terminal.type(DETACH)
    terminal.ends()
    # Who comes with the same size: what paints its screen is asked to paint it again.
    again = attach(machine, number, size=(41, 132))
    again.until("41 132\r\n")
    again.until("41 132\r\n")


def test_all_that_are_attached_see_the_same_and_may_type(machine, echoes):
    terminals = [attach(machine, echoes) for _ in range(3)]
    for i, terminal in enumerate(terminals):
        terminal.type(f"line {i}\n")
        for each in terminals:
            each.until(f"got line {i}\r\n")
    terminals[0].type(DETACH)
    assert terminals[0].ends() == 0
    terminals[1].type("still\n")
    terminals[2].until("got still\r\n")


@pytest.mark.parametrize("how", ["kill -9", "the terminal closes", "SIGTERM"])
def test_an_attached_terminal_that_is_gone_changes_nothing_for_the_job(machine, echoes, how):
    terminal = attach(machine, echoes)
    terminal.type("one\n")
    terminal.until("got one\r\n")
    if how == "kill -9":
        terminal.process.kill()
    elif how == "SIGTERM":
        terminal.process.terminate()
    else:
        os.close(terminal.theirs)
        os.close(terminal.ours)
    assert terminal.process.wait(DEADLINE_S) != 0
    if how != "the terminal closes":
        eventually(terminal.is_as_before)
    assert job(machine, echoes)["state"] == "running"
    again = attach(machine, echoes)
    again.until("got one\r\n")
    again.type("two\n")
    again.until("got two\r\n")


def test_killed_at_any_moment_it_leaves_the_job_and_the_terminal_as_they_were(machine, echoes):
    for i in range(40):
        terminal = Terminal(machine, machine.program, "attach", echoes)
        # At any point of its way: before it is connected, while it is, in the middle of a line.
        if i % 2:
            terminal.type("half a li")
        time.sleep(i / 400)
        terminal.process.kill()
        terminal.process.wait(DEADLINE_S)
        eventually(terminal.is_as_before)
    last = attach(machine, echoes)
    last.type("\x15whole\n")
    last.until("got whole\r\n")
    assert job(machine, echoes)["state"] == "running"


COUNTS = "import itertools\nfor i in itertools.count(): print(i, 'x' * 70, flush=True)"


def size_of_log(machine, number: str) -> int:
    return (spool(machine) / number / "out").stat().st_size


def grows(machine, number: str, by: int = 4 << 20) -> None:
    before = size_of_log(machine, number)
    eventually(lambda: size_of_log(machine, number) > before + by)


def test_a_job_never_waits_for_a_terminal_that_does_not_read(machine):
    number = submit(machine, "--tty", "--output-limit", "1M", "--", sys.executable, "-c", COUNTS)
    wait_for(machine, number, "running")
    # Nobody reads what it shows.
    unread = Terminal(machine, machine.program, "attach", number)
    stopped = attach(machine, number)
    os.kill(stopped.process.pid, signal.SIGSTOP)
    eventually(lambda: state(stopped.process.pid) == "T")
    grows(machine, number)
    reads = attach(machine, number)
    reads.until("x" * 70)
    # It is told that it has missed some, and goes on at the end.
    os.kill(stopped.process.pid, signal.SIGCONT)
    stopped.until("more was shown than this terminal could take")
    grows(machine, number)
    assert unread.process.poll() is None
    # The bound of the log is that of any job.
    out = spool(machine) / number / "out"
    eventually(lambda: out.stat().st_blocks * 512 < 2 << 20 and "bytes" in log(machine, number)[: 2 << 20])
    machine.berth("cancel", number)


def test_ctrl_s_of_somebody_who_is_gone_does_not_hold_the_job(machine):
    # The job lets Ctrl-S stop its output.
    number = submit(machine, "--tty", "--", "sh", "-c", f'stty ixon; exec {sys.executable} -c "$0"', COUNTS)
    wait_for(machine, number, "running")
    terminal = attach(machine, number)
    terminal.until("x" * 70)
    terminal.type("\x13")
    sizes = []

    def stands_still() -> bool:
        sizes.append(size_of_log(machine, number))
        return len(sizes) > 40 and sizes[-1] == sizes[-40]

    eventually(stands_still)
    terminal.process.kill()
    grows(machine, number, 1 << 16)
    machine.berth("cancel", number)


def test_keys_that_the_job_does_not_read_keep_nobody(machine):
    number = running(machine, "sh", "-c", "stty raw -echo; echo ready; exec sleep 1000")
    terminal = attach(machine, number)
    for _ in range(100):
        terminal.type("x" * 4000)
    terminal.type(DETACH)
    terminal.until("detached from job")
    assert terminal.ends() == 0
    assert job(machine, number)["state"] == "running"


def test_who_cannot_be_attached_to_is_told_why(machine):
    def refused(number: str) -> str:
        terminal = Terminal(machine, machine.program, "attach", number)
        assert terminal.ends() != 0
        return terminal.text

    plain = submit(machine, "--", "sleep", "1000")
    wait_for(machine, plain, "running")
    assert f"job {plain} was submitted without --tty, so it has no terminal" in refused(plain)
    done = submit(machine, "--tty", "--", "true")
    machine.berth("wait", done)
    assert f"job {done} is over (done)" in refused(done)
    assert "there is no job 99 of yours" in refused("99")
    array = submit(machine, "--tty", "--array", "3-4", "--", "true")
    assert f"{array} is an array: berth attach {array}.3" in refused(array)
    answer = machine.berth("attach", plain)
    assert (answer.status, answer.out) == (2, "")
    assert "berth attach needs a terminal" in answer.err
    answer = machine.berth("submit", "--tty", "--anywhere", "--hosts", "gpu1", "--", "true")
    assert answer.status == 2 and "--tty and --anywhere exclude each other" in answer.err


def test_a_job_that_has_not_begun_is_waited_for(make_machine):
    machine = make_machine("1xH100")
    (before,) = fill(machine, 1)
    number = submit(machine, "--tty", "--", "sh", "-c", "echo ready; read line; echo got $line")
    eventually(lambda: machine.berth("queue", "--json").json["waiters"])
    given_up = Terminal(machine, machine.program, "attach", number, size=(24, 300))
    given_up.until(f"job {number} has not begun: it is in line: first in line")
    given_up.type("\x03")
    assert given_up.ends() != 0
    assert job(machine, number)["in_line"]
    terminal = Terminal(machine, machine.program, "attach", number, size=(24, 300))
    terminal.until("This waits until it begins; Ctrl-C ends the wait, and the job stays")
    machine.berth("cancel", before)
    terminal.until("attached to job")
    terminal.until("ready")
    terminal.type("x\n")
    terminal.until("got x")
    assert terminal.ends() == 0
    later = submit(machine, "--tty", "--at", "1h", "--", "true")
    waits = Terminal(machine, machine.program, "attach", later, size=(24, 300))
    waits.until(f"job {later} has not begun: it is waiting: starts at ")
    assert machine.berth("cancel", later).status == 0
    waits.until(f"job {later} is over (cancelled)")
    assert waits.ends() != 0


def test_what_is_said_last_has_a_line_of_its_own(machine):
    number = running(machine, "sh", "-c", "echo ready; printf 'name? '; read line; printf bye")
    terminal = attach(machine, number)
    terminal.until("name? ")
    terminal.type(DETACH)
    assert terminal.until("berth: detached from job") == "\r\nberth: detached from job"
    assert terminal.ends() == 0
    again = attach(machine, number)
    again.until("name? ")
    again.type("x\n")
    again.until("bye\r\nberth: job")
    assert again.ends() == 0


def test_a_task_of_an_array_has_its_own(machine):
    number = submit(
        machine, "--tty", "--array", "3-4", "--", "sh", "-c", "echo ready {index}; read line; echo got $line"
    )
    for index in (3, 4):
        eventually(lambda task=f"{number}.{index}": "ready" in log(machine, task))
        terminal = attach(machine, f"{number}.{index}")
        terminal.until(f"ready {index}\r\n")
        terminal.type(f"{index}\n")
        terminal.until(f"got {index}\r\n")
        assert terminal.ends() == 0


def test_only_its_user_can_open_the_socket(machine, echoes):
    path = spool(machine) / echoes / "tty"
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    machine.berth("cancel", echoes)
    eventually(lambda: not path.exists())
    assert machine.berth("forget", echoes).status == 0


def test_a_process_of_the_task_that_is_killed_ends_the_job_as_without_a_terminal(machine, echoes):
    terminal = attach(machine, echoes)
    kill(machine, "run")
    assert terminal.ends() != 0
    wait_for(machine, echoes, "interrupted")
    assert terminal.is_as_before()


def test_a_job_that_runs_again_has_a_new_terminal(make_machine):
    machine = make_machine("1xH100")
    script = "stty -echo raw; echo ready; trap 'exit 3' TERM; while :; do sleep 0.1; done"
    number = submit(machine, "--tty", "--yield=5s", "--requeue", "--", "sh", "-c", script)
    eventually(lambda: "ready" in log(machine, number))
    terminal = attach(machine, number)
    terminal.until("ready")
    assert machine.berth("run", "--", "true").status == 0
    terminal.until("is to run again")
    assert terminal.ends() == 0 and terminal.is_as_before()
    eventually(lambda: log(machine, number).count("ready") == 2)
    terminal = attach(machine, number)
    terminal.until("ready")
    machine.berth("cancel", number)
    terminal.until("is over: cancelled")
    assert terminal.ends() == 1


def test_attach_says_that_a_job_has_no_terminal_any_more(machine):
    number = running(machine, "sh", "-c", ECHOES)
    (spool(machine) / number / "tty").unlink()
    terminal = Terminal(machine, machine.program, "attach", number)
    assert terminal.ends() == 1
    assert f"job {number} runs without a terminal: the process that kept its" in terminal.text


@pytest.fixture
def small_home(machine, small_disk):
    """A home on a file system of its own."""
    return small_disk(machine.directory / "home", "4m", "700")


def test_on_a_full_disk_the_terminal_goes_on_and_the_log_says_what_it_lacks(machine, small_home):
    script = 'stty -echo; echo ready; while read n; do head -c $n /dev/zero | tr "\\0" x; echo; echo "done $n"; done'
    number = running(machine, "sh", "-c", script)
    with contextlib.suppress(OSError), (small_home / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    terminal = attach(machine, number)
    terminal.type("100000\n")
    terminal.until("done 100000\r\n")
    (small_home / "filler").unlink()
    terminal.type("10\n")
    terminal.until("done 10\r\n")
    eventually(lambda: "done 10\n" in log(machine, number))
    assert "bytes are missing here: the log could not be written]" in log(machine, number)
    machine.berth("cancel", number)
