"""run and shell --anywhere on a real terminal: of a shell with job control, and of tmux."""

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import signal
import struct
import termios

import pytest
from fleet_of_hosts import PATIENCE_S, children_of, words_of
from jobs import eventually
from screen import make_screen  # noqa: F401
from terminal_of_desk import ShellOfDesk, Terminal, settings_of_shell

ON_GPU1 = "berth run --anywhere --hosts gpu1"
# Tells what its terminal is, waits for a line, and tells what it got.
ASKS = "sh -c 'stty -g; echo be''gun; read line; echo \"got <$line>\"'"
# Ends by what its terminal sends, and by nothing else that this test does.
COUNTS = "sh -c \"trap 'echo inter''rupted; exit 3' INT; echo be''gun; while :; do sleep 0.02; done\""


@pytest.fixture
def shell(two):
    """A bash at the desk."""
    return ShellOfDesk(two)


def modes_in(text: str) -> list[str]:
    """What stty -g has printed there."""
    return re.findall(r"[0-9a-f]+(?::[0-9a-f]+){10,}", text)


def callers(machines) -> list[int]:
    """Every run --anywhere of the desk."""
    return [pid for pid in machines.at_the_desk() if "--anywhere" in words_of(pid)]


def keepers(machines) -> list[int]:
    return [pid for pid in machines.at_the_desk() if words_of(pid)[1:2] == ["__terminal"]]


def state_of(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def below(pid: int) -> list[int]:
    """Every process that this one has started, and that they have."""
    return [each for child in children_of(pid) for each in [child, *below(child)]]


def typed_at(pid: int) -> int:
    """How many bytes lie in the terminal of its standard input."""
    terminal = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        return struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, bytes(4)))[0]
    finally:
        os.close(terminal)


# The modes that the command finds


@pytest.mark.parametrize("settings", ["", "stty intr ^B -echoe -ixon; "])
def test_the_command_finds_the_modes_of_the_users_terminal(shell, settings):
    mine, there = modes_in(shell.says(f"{settings}stty -g; {ON_GPU1} -- stty -g"))
    assert there == mine


def test_a_berth_that_starts_itself_again_there_still_has_the_users_modes(machines):
    machines.add("gpu1", "1xH100", program='#!/bin/sh\nexec @BERTH@ --sim 1xH100 "$@"\n')
    mine, there = modes_in(ShellOfDesk(machines).says(f"stty -g; {ON_GPU1} -- stty -g"))
    assert there == mine


def test_in_the_background_it_finds_those_of_a_new_terminal_and_not_of_the_shells_prompt(two, shell):
    mine = modes_in(shell.says("stty -g"))
    shell.type(f"{ON_GPU1} -- {ASKS} &\n")
    assert modes_in(shell.until("begun")) == mine * 2


def test_a_window_that_changes_while_it_waits_has_its_new_size_there(two):
    (gpu1, _) = two.hosts
    holder = gpu1.machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert holder.stdout.readline() == "ready\n"
    terminal = Terminal(two, "run", "--anywhere", "--hosts", "gpu1", "--", "sh", "-c", "read line; stty size")
    terminal.until("first in line")
    terminal.resize(40, 120)
    holder.terminate()
    terminal.until("berth: gpu1: GPU 0")
    eventually(terminal.passes_every_key)
    terminal.type("go on\r")
    terminal.until("40 120")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0


def test_a_line_typed_before_the_command_has_the_terminal_is_a_line(machines):
    once = machines.folder / "stop_once"
    once.touch()
    preload = f"LD_PRELOAD={machines.build}/stops_at.so STOP_AT=terminal STOP_ONCE={once}"
    program = f'#!/bin/sh\n{preload} exec @BERTH@ --sim 1xH100 "$@"\n'
    gpu1 = machines.add("gpu1", "1xH100", program=program)
    terminal = Terminal(
        machines, "run", "--anywhere", "--hosts", "gpu1", "--", "sh", "-c", 'read line; echo "got <$line>"'
    )
    terminal.until("berth: gpu1: GPU 0")
    eventually(terminal.passes_every_key)
    (envoy,) = eventually(lambda: [pid for pid in below(gpu1.sshd.pid) if state_of(pid) == "T"])
    terminal.type("go on\r")
    eventually(lambda: typed_at(envoy) >= len("go on\n"))
    os.kill(envoy, signal.SIGCONT)
    terminal.until("got <go on>")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0


# In the background and back


def test_in_the_background_it_leaves_the_terminal_to_the_shell_and_in_the_foreground_it_has_it(two, shell):
    before = shell.says("stty -g")
    shell.type(f"{ON_GPU1} -- {ASKS} &\n")
    shell.until("begun")
    # Lines that are typed are the shell's, and do not stop the job that could read them.
    for number in range(3):
        assert shell.says(f"expr {number} + 40") == str(number + 40)
    assert "Running" in shell.jobs()
    assert not shell.passes_every_key()
    shell.type("fg\n")
    eventually(shell.passes_every_key)
    shell.resize(40, 120)
    shell.type("a word\r")
    shell.until("got <a word>")
    assert shell.after_it("stty -g") == before
    assert two.hosts[0].tickets() == [] == keepers(two)


def test_with_its_output_in_a_file_it_goes_on_in_the_background_whatever_is_typed(two, shell):
    (gpu1, _) = two.hosts
    shell.type(f"{ON_GPU1} -- sh -c 'echo begun; exec sleep 1000' > out 2>&1 &\n")
    out = two.folder / "work/out"
    eventually(lambda: out.exists() and "begun" in out.read_text())
    for number in range(3):
        assert shell.says(f"expr {number} + 40") == str(number + 40)
    assert "Running" in shell.jobs()
    shell.type("kill %1\n")
    eventually(lambda: gpu1.tickets() == [])


def test_where_nothing_may_write_from_the_background_its_output_waits_for_the_foreground(two, shell):
    shell.says("stty tostop")
    shell.type(f"{ON_GPU1} -- sh -c 'echo be''gun > mark; echo for the fore''ground; read line' &\n")
    eventually((two.folder / "work/mark").exists)
    assert "Running" in shell.jobs()
    assert "for the foreground" not in shell.seen
    shell.type("fg\n")
    shell.until("for the foreground")
    shell.type("\r")
    assert shell.after_it("expr 40 + 2") == "42"


@pytest.mark.parametrize("stop", [signal.SIGTSTP, signal.SIGSTOP])
def test_one_that_is_stopped_gives_the_terminal_back_and_has_it_again_in_the_foreground(two, shell, stop):
    before = shell.says("stty -g")
    shell.type(f"{ON_GPU1} -- {COUNTS}\n")
    shell.until("begun")
    eventually(shell.passes_every_key)
    (caller,) = callers(two)
    os.kill(caller, stop)
    shell.until("Stopped")
    assert shell.says("stty -g") == before
    shell.type("bg\n")
    assert "Running" in eventually(lambda: "Stopped" not in (jobs := shell.jobs()) and jobs)
    shell.type("fg\n")
    eventually(shell.passes_every_key)
    shell.type("\x03")
    shell.until("interrupted")
    assert shell.after_it("stty -g") == before


def test_ctrl_z_goes_to_the_command_and_stops_nothing_that_nobody_could_continue(two, shell):
    shell.type(f"{ON_GPU1} -- {COUNTS}\n")
    shell.until("begun")
    eventually(shell.passes_every_key)
    shell.type("\x1a")
    shell.until("^Z")
    assert len(two.hosts[0].tickets()) == 1
    shell.type("\x03")
    shell.until("interrupted")
    assert shell.after_it("expr 40 + 2") == "42"


def test_in_a_shell_there_ctrl_z_and_fg_are_that_shells(two):
    terminal = Terminal(two, "shell", "--anywhere", "--hosts", "gpu2", env={"SHELL": "/bin/bash"})
    terminal.until("this shell has GPU 0 until it ends")
    eventually(terminal.passes_every_key)
    terminal.type("set -m; sleep 1000\r")
    (sleeper,) = eventually(
        lambda: [pid for pid in two.hosts[1].machine.inhabitants() if words_of(pid)[:1] == ["sleep"]]
    )
    terminal.type("\x1a")
    terminal.until("Stopped")
    terminal.type("fg\r")
    eventually(lambda: state_of(sleeper) == "S")
    terminal.type("\x03")
    eventually(lambda: not words_of(sleeper))
    terminal.type("echo in-$((40+2)); exit 5\r")
    terminal.until("in-42")
    assert terminal.process.wait(timeout=PATIENCE_S) == 5


# Afterwards


@pytest.mark.parametrize("kind", ["bash", "dash"])
@pytest.mark.parametrize("whom", ["berth", "ssh", "connection", "envoy"])
def test_whoever_is_killed_the_terminal_is_as_it_was(two, kind, whom):
    if shutil.which(kind) is None:
        pytest.skip(f"needs {kind}")
    (gpu1, _) = two.hosts
    shell = ShellOfDesk(two, kind)
    before = shell.says("stty -g")
    shell.type(f"{ON_GPU1} -- {COUNTS}\n")
    shell.until("begun")
    eventually(shell.passes_every_key)
    victims = {
        "berth": lambda: callers(two),
        "ssh": two.own_ssh,
        "connection": gpu1.sessions,
        "envoy": gpu1.envoys,
    }
    for pid in victims[whom]():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert shell.after_it("stty -g") == before
    eventually(lambda: keepers(two) == [] and gpu1.tickets() == [])


def test_modes_that_a_shell_has_set_since_are_left_when_berth_is_killed(two):
    shell = ShellOfDesk(two, "dash")
    shell.type(f"{ON_GPU1} -- {COUNTS}\n")
    shell.until("begun")
    eventually(shell.passes_every_key)
    modes = shell.modes()
    modes[3] |= termios.ISIG
    termios.tcsetattr(shell.ours, termios.TCSANOW, modes)
    (caller,) = callers(two)
    os.kill(caller, signal.SIGKILL)
    eventually(lambda: keepers(two) == [])
    assert shell.modes() == modes


def test_a_hang_up_that_is_ignored_ends_nothing(two):
    script = (
        "trap 'echo hung up' HUP; trap 'echo asked; exit 7' TERM; echo ready; while :; do sleep 0.02; done"
    )
    job = two.start_anywhere(
        *("--", "sh", "-c", script),
        hosts="gpu1",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert job.stdout.readline() == "ready\n"
    job.send_signal(signal.SIGHUP)
    job.send_signal(signal.SIGTERM)
    out, _ = job.communicate(timeout=PATIENCE_S)
    assert (out, job.returncode) == ("asked\n", 7)


# tmux


# It says itself when it is there: a Ctrl-C that comes before it has been started ends nothing.
SLEEPER = "sh -c 'echo as\"\"leep; exec sleep 1000'"


class Desk:
    def __init__(self, machines):
        self.env = settings_of_shell(machines) | {"TERM": "screen"}


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_in_tmux_lines_begin_at_the_left_and_the_window_and_the_prompt_are_right(two, make_screen):  # noqa: F811
    screen = make_screen(Desk(two), "berth", "shell", "--anywhere", "--hosts", "gpu1")
    screen.shows("this shell has GPU 0 until it ends")
    screen.type("PS1='there> '\n")
    screen.shows("^there>$")
    screen.type("printf 'one\\ntwo\\n'; stty size\n")
    screen.shows(r"^one\ntwo\n24 80$")
    screen.resize(100, 30)
    screen.type("stty size\n")
    screen.shows("^30 100$")
    screen.type(f"{SLEEPER}\n")
    screen.shows("^asleep$")
    screen.press("C-c")
    screen.shows(r"^asleep\n\^C\nthere>$")
    screen.type("exit\n")
    screen.shows(r"^\$$")
    screen.type(f"clear; printf 'three\\nfour\\n'; {SLEEPER}\n")
    screen.shows(r"^three\nfour\nasleep$")
    screen.press("C-c")
    screen.shows(r"^asleep\n\^C\n\$$")
    screen.type(
        'clear; berth run --anywhere --hosts gpu1 -- sh -c \'printf "five\\nsix\\n"; read line; echo en""ded\' &\n'
    )
    screen.shows(r"^five\nsix$")
    screen.type("\n\nfg\n")
    screen.shows("^berth run --anywhere --hosts gpu1 -- sh -c")
    screen.type("\n")
    screen.shows(r"^ended\n\$$")
    screen.type("clear; echo done\n")
    screen.shows("^done$")
