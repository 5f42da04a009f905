"""berth run: a command in a lease, as its user meets it."""

import contextlib
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys

import pytest
from jobs import FIRST_THREAD_ENDS, command_of, eventually, name_of
from lease_jobs import holder, ready
from simulated_machine import DEADLINE_S, Machine

SHOW = 'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"'

# Uses a gigabyte of the first visible device until it is ended.
USES_DEVICE = """
import ctypes, signal, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, address, device = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int()
assert cuda.cuInit(0) == 0
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 30)) == 0
print("ready", flush=True)
time.sleep(1000)
"""


def leases(machine: Machine) -> list:
    return sorted((machine.leases / "leases").iterdir())


def ticket(machine: Machine) -> dict:
    """The fields of the one lease there is."""
    (path,) = leases(machine)
    lines = path.read_text().splitlines()
    assert lines[0] == "berth-ticket 1" and lines[-1] == "end"
    return dict(line.split("=", 1) for line in lines[1:-1])


def free(machine: Machine) -> bool:
    """Whether one device can be had now."""
    return machine.berth("run", "--no-wait", "--", "true").status == 0


def state(pid) -> str:
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return "gone"


# What the command gets


def test_the_command_sees_exactly_the_devices_that_were_leased(machine):
    answer = machine.berth("run", "-n", "2", "--", "bash", "-c", SHOW)
    assert (answer.status, answer.err) == (0, "")
    assert re.fullmatch(r"\d,\d PCI_BUS_ID\n", answer.out)


def test_uuids_are_given_on_request(machine):
    answer = machine.berth("run", "--ids", "uuid", "--", "bash", "-c", SHOW)
    assert re.fullmatch(r"GPU-[0-9a-f-]{36} PCI_BUS_ID\n", answer.out)


def test_the_lease_is_named_in_the_environment_and_says_who_and_what(machine):
    job = holder(machine, "--note", "sweep 3", then="echo $BERTH_LEASE; sleep 1000")
    (path,) = leases(machine)
    assert job.stdout.readline().strip() == path.name
    fields = ticket(machine)
    assert fields["note"] == "sweep 3"
    assert fields["pid"] == str(job.pid)
    assert fields["command"].startswith("bash -c ")


def test_the_command_gets_the_lease_at_high_numbers_and_nothing_else(machine):
    code = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"
    bare = machine.run(sys.executable, "-c", code)
    leased = machine.berth("run", "--", sys.executable, "-c", code)
    assert set(eval(leased.out)) - set(eval(bare.out)) == {100, 101}


def test_standard_streams_are_the_commands_own(machine):
    answer = machine.berth("run", "--", "bash", "-c", "cat; echo two >&2", input="one")
    assert (answer.out, answer.err) == ("one", "two\n")


def test_a_mig_instance_goes_by_its_uuid(make_machine):
    machine = make_machine('[[device]]\nmodel = "A100"\nmig = ["1g.5gb", "1g.5gb"]\n')
    one = machine.berth("run", "--", "bash", "-c", SHOW)
    assert (one.status, one.err) == (0, "")
    assert re.fullmatch(r"MIG-[0-9a-f-]{36} PCI_BUS_ID\n", one.out)


# How it ends


@pytest.mark.parametrize("status", [0, 1, 42, 75])
def test_it_ends_with_the_status_of_the_command(machine, status):
    assert machine.berth("run", "--", "bash", "-c", f"exit {status}").status == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_it_is_killed_by_the_signal_that_killed_the_command(machine, number):
    assert machine.berth("run", "--", "bash", "-c", f"kill -{number.value} $$").status == -number.value
    assert leases(machine) == []


def test_a_command_that_does_not_exist_is_127_and_takes_no_lease(machine):
    answer = machine.berth("run", "--", "no-such-command")
    assert (answer.status, answer.out) == (127, "")
    assert answer.err == "berth: no-such-command: there is no such command on PATH\n"
    assert not machine.leases.joinpath("leases").exists()


def test_a_command_that_cannot_be_executed_is_126(machine):
    answer = machine.berth("run", "--", "/etc/passwd")
    assert (answer.status, answer.out) == (126, "")
    assert answer.err == "berth: /etc/passwd: Permission denied\n"


def test_a_script_without_a_first_line_runs_as_a_shell_would_run_it(machine, tmp_path):
    script = tmp_path / "job"
    script.write_text("echo hello\n")
    script.chmod(0o755)
    assert machine.berth("run", "--", script).out == "hello\n"


def test_nothing_is_left_of_the_lease(machine):
    machine.berth("run", "-n", "8", "--", "true")
    assert leases(machine) == []
    assert list((machine.leases / "queue").iterdir()) == []


# Refusals


def test_when_all_is_leased_it_refuses_at_once_and_says_by_whom(make_machine):
    machine = make_machine("2xH100")
    holder(machine, "-n", "2")
    answer = machine.berth("run", "--no-wait", "--", "echo", "never")
    assert (answer.status, answer.out) == (75, "")
    assert "\nGPU 0,1  leased by " in answer.err
    assert len(leases(machine)) == 1


def test_more_than_the_machine_has_is_impossible(machine):
    answer = machine.berth("run", "-n", "9", "--", "echo", "never")
    assert (answer.status, answer.out) == (69, "")
    assert answer.err.startswith("berth: ")


def test_a_device_that_an_outsider_uses_is_not_given(make_machine):
    machine = make_machine("1xH100")
    outsider = ready(machine.start(sys.executable, "-c", USES_DEVICE))
    answer = machine.berth("run", "--no-wait", "--", "true")
    assert answer.status == 75
    assert str(outsider.pid) in answer.err


def test_a_bare_flock_holder_is_respected(make_machine):
    machine = make_machine("1xH100")
    assert free(machine)
    (device,) = (machine.leases / "devices").iterdir()
    citizen = ready(machine.start("bash", "-c", f"exec 9<{device}; flock 9; echo ready; exec sleep 1000"))
    assert machine.berth("run", "--no-wait", "--", "true").status == 75
    citizen.kill()
    eventually(lambda: free(machine))


@pytest.mark.parametrize(
    "prepare, reason",
    [
        (lambda path: path.write_text(""), "is not a directory"),
        (lambda path: path.symlink_to("/tmp"), "is not a directory"),
        (lambda path: (path.mkdir(), path.chmod(0o777)), "lacks the sticky bit"),
    ],
)
def test_an_unfit_lease_directory_is_refused_and_nothing_is_run(machine, tmp_path, prepare, reason):
    path = tmp_path / "unfit"
    prepare(path)
    answer = machine.berth("run", "--", "echo", "never", env={"BERTH_DIR": path})
    assert (answer.status, answer.out) == (1, "")
    assert reason in answer.err and str(path) in answer.err


# The life of the lease


def test_killing_berth_ends_the_job_and_frees_the_device(make_machine):
    machine = make_machine("1xH100")
    job = holder(machine)
    command = command_of(job)
    job.kill()
    eventually(lambda: state(command) in ("gone", "Z"))
    eventually(lambda: free(machine))


def test_what_survives_berth_still_holds_the_lease(make_machine):
    machine = make_machine("1xH100")
    job = ready(
        machine.start_berth(
            "run", "--", "bash", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done"
        )
    )
    command = command_of(job)
    job.kill()
    job.wait()
    assert not free(machine)
    os.kill(command, signal.SIGKILL)
    eventually(lambda: free(machine))


FORGETS = "setsid sleep 1000 >&- 2>&- & echo $!; exit 7"


def test_what_the_command_started_keeps_the_lease_and_is_named(make_machine):
    machine = make_machine("1xH100")
    job = machine.start_berth("run", "--", "bash", "-c", FORGETS)
    pid = int(job.stdout.readline())
    (lease,) = leases(machine)
    assert job.stderr.readline() == (
        "berth: the command has ended, but processes that it started still hold the lease: "
        f"{pid} (sleep 1000); to end them and the lease: berth release {lease.name[-6:]}\n"
    )
    assert not free(machine)
    os.kill(pid, signal.SIGKILL)
    assert job.wait(DEADLINE_S) == 7
    assert free(machine)


@pytest.mark.parametrize("form", ["with the command", "after it"])
def test_what_goes_on_in_a_child_again_and_again_keeps_the_lease(make_machine, build, tmp_path, form):
    """Each of them may have ended, and its child may not be there yet, when all processes are looked at."""
    machine = make_machine("1xH100")
    over = tmp_path / "over"
    hopping = f"{build}/run_hopping 700 {over} >/dev/null 2>&1"
    command = f"exec {hopping}" if form == "with the command" else f"{hopping} & sleep 0.1"
    assert machine.berth("run", "--", "sh", "-c", command).status == 0
    assert over.exists()


def test_what_goes_on_without_its_first_thread_keeps_the_lease(make_machine):
    machine = make_machine("1xH100")
    started = f"setsid {sys.executable} -c '{FIRST_THREAD_ENDS}' 2>&- & read; exit 7"
    job = machine.start_berth("run", "--", "bash", "-c", started, stdin=subprocess.PIPE)
    pid = int(job.stdout.readline())
    assert state(pid) == "Z"
    job.stdin.close()
    assert f"processes that it started still hold the lease: {pid} (" in job.stderr.readline()
    assert not free(machine)
    (lease,) = leases(machine)
    assert machine.berth("release", lease.name).status == 0
    job.stdin = None
    assert job.wait(DEADLINE_S) == 7
    assert free(machine)


IGNORES_SIGTERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"


def test_the_lease_of_one_without_its_first_thread_outlives_berth(make_machine):
    machine = make_machine("1xH100")
    job = machine.start_berth("run", "--", sys.executable, "-c", IGNORES_SIGTERM + FIRST_THREAD_ENDS)
    pid = int(job.stdout.readline())
    job.kill()
    job.wait()
    (lease,) = leases(machine)
    answer = machine.berth("release", "--wait", "0s", lease.name)
    assert (answer.status, f"{pid} (" in answer.err) == (124, True)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: free(machine))


def test_who_releases_the_lease_of_what_was_left_behind_ends_that(make_machine):
    machine = make_machine("1xH100")
    job = machine.start_berth("run", "--", "bash", "-c", FORGETS)
    pid = int(job.stdout.readline())
    assert "still hold the lease" in job.stderr.readline()
    (lease,) = leases(machine)
    answer = machine.berth("release", lease.name)
    assert (answer.status, answer.err) == (0, "")
    assert state(pid) in ("gone", "Z") and job.wait(DEADLINE_S) == 7


def test_the_lease_ends_with_the_command_where_that_is_asked_for(make_machine):
    machine = make_machine("1xH100")
    answer = machine.berth("run", "--end-with-command", "--", "bash", "-c", FORGETS)
    pid = int(answer.out)
    os.kill(pid, signal.SIGKILL)
    assert answer.status == 7
    assert answer.err == (
        "berth: the lease ends with the command (--end-with-command); what it started goes on without one: "
        f"{pid} (sleep 1000)\n"
    )
    assert leases(machine) == []


def test_a_site_may_end_the_lease_of_what_was_left_behind_and_computes_nothing(make_machine, tmp_path):
    machine = make_machine("1xH100")
    site = tmp_path / "site.toml"
    site.write_text('idle_leftovers = "1s"\n')
    answer = machine.berth("run", "--", "bash", "-c", FORGETS, env={"BERTH_SITE_FILE": site})
    pid = int(answer.out)
    os.kill(pid, signal.SIGKILL)
    assert (
        "has computed nothing for 1 s (idle_leftovers of the site)" in answer.err
        and f"{pid} (sleep 1000)" in answer.err
    )
    assert leases(machine) == []


def test_what_computes_keeps_its_lease_also_on_such_a_site(make_machine, tmp_path):
    machine = make_machine("1xH100")
    site = tmp_path / "site.toml"
    site.write_text('idle_leftovers = "1s"\n')
    script = f"setsid {sys.executable} -c '{USES_DEVICE}' 2>&- & read; echo $!; exit 0"
    # The command ends when its worker has the device.
    job = machine.start_berth(
        "run", "--", "bash", "-c", script, stdin=subprocess.PIPE, env={"BERTH_SITE_FILE": site}
    )
    ready(job)
    job.stdin.write("\n")
    job.stdin.flush()
    pid = int(job.stdout.readline())
    assert "processes that it started still hold the lease" in job.stderr.readline()
    assert len(leases(machine)) == 1
    os.kill(pid, signal.SIGKILL)
    assert job.wait(DEADLINE_S) == 0


def test_orphans_that_come_and_go_keep_the_lease_as_one_that_stays(make_machine):
    machine = make_machine("1xH100")
    restless = "(while :; do (sleep 0.05 &); sleep 0.2; done) >&- 2>&- & echo $!"
    job = machine.start_berth("run", "--", "bash", "-c", restless)
    pid = int(job.stdout.readline())
    assert "processes that it started still hold the lease" in job.stderr.readline()
    os.kill(pid, signal.SIGKILL)
    assert job.wait(DEADLINE_S) == 0
    assert free(machine)


def test_the_process_that_keeps_the_namespaces_of_podman_holds_no_lease(make_machine, tmp_path):
    machine = make_machine("1xH100")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # As podman leaves it behind, by its arguments: a shell takes the option too.
    script = f"(exec -a catatonit bash -P <>{pipe} >&- 2>&-) & echo $!"
    answer = machine.berth("run", "--", "bash", "-c", script)
    assert (answer.status, answer.err) == (0, "")
    assert state(answer.out.strip()) == "S"
    os.kill(int(answer.out), signal.SIGKILL)
    assert free(machine)


def test_children_of_a_script_that_has_become_berth_are_not_waited_for(make_machine):
    machine = make_machine("1xH100")
    script = f"sleep 1000 >&- 2>&- & echo $!; exec {machine.program} run -- true"
    answer = machine.run("bash", "-c", script)
    os.kill(int(answer.out), signal.SIGKILL)
    assert (answer.status, answer.err) == (0, "")


def test_what_a_command_leaves_is_seen_beside_a_child_of_the_script_before(make_machine):
    machine = make_machine("1xH100")
    leaves = "sleep 1000 >&- 2>&- & echo $!"
    script = f"sleep 1000 >&- 2>&- & exec {machine.program} run -- bash -c '{leaves}'"
    run = machine.start("bash", "-c", script)
    left = int(run.stdout.readline())
    assert "still hold the lease" in run.stderr.readline()
    assert not free(machine)
    os.kill(left, signal.SIGKILL)
    assert run.wait(DEADLINE_S) == 0
    assert free(machine)


def test_exec_of_a_program_that_closes_files_loses_the_lease_as_the_help_says(make_machine):
    machine = make_machine("1xH100")
    closes = "import os; os.closerange(3, 1000); print('closed', flush=True); input()"
    job = machine.start_berth("run", "--exec", "--", sys.executable, "-c", closes, stdin=subprocess.PIPE)
    assert job.stdout.readline() == "closed\n"
    assert machine.berth("run", "--no-wait", "--", "true").status == 0
    assert job.poll() is None
    job.communicate("\n")
    told = " ".join(machine.berth("run", "--help").out.split())
    assert "if COMMAND closes files that it did not open, the lease ends" in told


def test_exec_leaves_no_parent_and_the_lease_ends_with_the_command(make_machine):
    machine = make_machine("1xH100")
    job = ready(machine.start_berth("run", "--exec", "--", "bash", "-c", "echo ready; exec sleep 1000"))
    eventually(lambda: name_of(job.pid) == "sleep")
    assert not free(machine)
    job.kill()
    job.wait()
    assert free(machine)


# Signals


# Waits for them instead of handling them: a signal just before a Python program falls asleep is
# handled when it wakes.
COUNT_SIGNALS = """
import os, signal
numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGCONT}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
os.write(1, b"ready\\n")
while True:
    os.write(1, signal.Signals(signal.sigwait(numbers)).name.encode() + b"\\n")
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGINT"])
def test_a_signal_sent_to_berth_reaches_the_command(machine, name):
    job = ready(machine.start_berth("run", "--", sys.executable, "-c", COUNT_SIGNALS))
    job.send_signal(signal.Signals[name])
    assert job.stdout.readline() == f"{name}\n"
    assert job.poll() is None
    os.kill(command_of(job), signal.SIGKILL)
    assert job.wait(DEADLINE_S) == -signal.SIGKILL


SENDS_TO_ITS_GROUP = """
import os, signal, subprocess, sys
numbers = {signal.SIGTERM, signal.SIGWINCH}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
subprocess.Popen([sys.executable, "-c", "import os, time; os.kill(0, 15); time.sleep(1000)"])
while True:
    os.write(1, signal.Signals(signal.sigwait(numbers)).name.encode() + b"\\n")
"""


def test_what_a_child_of_the_command_sends_to_its_group_does_not_come_back_to_it(machine):
    run = ["run", "--", sys.executable, "-c", SENDS_TO_ITS_GROUP]
    job = machine.start_berth(*run, start_new_session=True)
    assert job.stdout.readline() == "SIGTERM\n"
    # berth takes the signal with the lower number first.
    job.send_signal(signal.SIGWINCH)
    assert job.stdout.readline() == "SIGWINCH\n"
    os.killpg(job.pid, signal.SIGKILL)
    assert job.wait(DEADLINE_S) == -signal.SIGKILL


def test_berth_does_not_stop_with_a_command_that_somebody_stops(make_machine):
    """Whoever continues the command knows nothing of berth: stopped as well, it would hold the lease for ever."""
    machine = make_machine("1xH100")
    job = holder(machine)
    command = command_of(job)
    os.kill(command, signal.SIGSTOP)
    eventually(lambda: state(command) == "T")
    answer = machine.berth("list", "--json")
    assert answer.status == 0 and state(job.pid) != "T"
    os.kill(command, signal.SIGCONT)
    os.kill(command, signal.SIGTERM)
    assert job.wait(DEADLINE_S) == -signal.SIGTERM
    assert free(machine)


def test_a_job_that_is_stopped_and_continued_process_by_process_goes_on(make_machine):
    machine = make_machine("1xH100")
    for _ in range(20):
        job = holder(machine)
        tree = [job.pid, command_of(job)]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in tree:
                os.kill(pid, number)
        os.kill(tree[-1], signal.SIGKILL)
        assert job.wait(DEADLINE_S) == -signal.SIGKILL
    assert free(machine)


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, machine: Machine, *command):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.execve(str(command[0]), [str(word) for word in command], machine.env)
        self.text = ""

    def until(self, expected: str) -> str:
        while expected not in self.text:
            self.text += os.read(self.descriptor, 4096).decode()
        return self.text

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def end(self) -> int:
        with contextlib.suppress(OSError):
            while chunk := os.read(self.descriptor, 4096):
                self.text += chunk.decode()
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_ctrl_c_reaches_the_command_once(machine):
    terminal = Terminal(machine, machine.program, "run", "--", sys.executable, "-c", COUNT_SIGNALS)
    terminal.until("ready")
    terminal.type("\x03")
    terminal.until("SIGINT")
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.until("SIGTERM")
    command = command_of(terminal)
    os.kill(command, signal.SIGKILL)
    assert terminal.end() == -signal.SIGKILL
    assert terminal.text.count("SIGINT") == 1
    assert terminal.text.count("SIGTERM") == 1


class Session:
    """A program that leads the session of a terminal, which closes: `ssh -t`, a window that runs it."""

    def __init__(self, machine: Machine, *command):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.execve(str(command[0]), [str(word) for word in command], machine.env)

    def closes(self) -> int:
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


TELLS_ITS_START = "import os, sys; os.open(sys.argv[1], os.O_CREAT); os.execvp(sys.argv[2], sys.argv[2:])"


@pytest.mark.parametrize("berth", [False, True])
def test_a_terminal_that_closes_ends_the_job_as_without_berth(make_machine, tmp_path, berth):
    machine = make_machine("1xH100")
    begun = tmp_path / "begun"
    command = [sys.executable, "-c", TELLS_ITS_START, begun, "sleep", "1000"]
    session = Session(machine, *([machine.program, "run", "--", *command] if berth else command))
    eventually(begun.exists)
    assert session.closes() == -signal.SIGHUP
    if berth:
        assert leases(machine) == [] and free(machine)


def test_what_the_command_started_ends_too_when_the_terminal_closes(make_machine, tmp_path):
    machine = make_machine("1xH100")
    begun = tmp_path / "begun"
    script = f"sleep 1000 & echo $! >{begun}.new; mv {begun}.new {begun}; wait"
    session = Session(machine, machine.program, "run", "--", "bash", "-c", script)
    eventually(begun.exists)
    assert session.closes() == -signal.SIGHUP
    assert state(begun.read_text().strip()) in ("gone", "Z")
    assert free(machine)


def test_nohup_keeps_its_meaning(make_machine, tmp_path):
    machine = make_machine("1xH100")
    begun, goes_on = tmp_path / "begun", tmp_path / "goes on"
    os.mkfifo(goes_on)
    script = f"trap '' HUP; touch {begun}; read <{str(goes_on)!r}; exit 7"
    session = Session(machine, machine.program, "run", "--", "bash", "-c", script)
    eventually(begun.exists)
    os.close(session.descriptor)
    # Opened once the command, or nobody, reads it.
    with open(goes_on, "w") as file:
        assert len(leases(machine)) == 1
        file.write("on\n")
    assert os.waitstatus_to_exitcode(os.waitpid(session.pid, 0)[1]) == 7


def test_ctrl_z_stops_the_job_for_the_shell_and_fg_goes_on(machine):
    terminal = Terminal(machine, "/bin/bash", "--norc", "-i")
    terminal.type("PS1=; unset PROMPT_COMMAND; stty -echo; echo pro''mpt\n")
    terminal.until("prompt\r\n")
    terminal.type(f"{machine.program} run -- bash -c 'echo rea''dy; read x; echo got $x'\n")
    terminal.until("ready\r\n")
    terminal.type("\x1a")
    terminal.until("Stopped")
    assert len(leases(machine)) == 1
    terminal.type("fg\n")
    terminal.until("run -- bash")
    terminal.type("hello\n")
    terminal.until("got hello")
    terminal.type("exit 3\n")
    assert terminal.end() == 3


# Masks and leases inside leases


def test_an_inherited_mask_limits_what_can_be_leased(machine):
    env = {"CUDA_VISIBLE_DEVICES": "5,3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert machine.berth("run", "-n", "2", "--", "bash", "-c", SHOW, env=env).out == "3,5 PCI_BUS_ID\n"
    assert machine.berth("run", "-n", "3", "--", "true", env=env).status == 69
    assert machine.berth("run", "-n", "3", "--mask", "ignore", "--", "true", env=env).status == 0


def test_inside_a_lease_only_its_devices_exist(machine):
    program = machine.program
    script = f"""
        {program} run -n 2 -- bash -c 'echo $CUDA_VISIBLE_DEVICES'
        {program} run -n 3 -- echo never; echo "three: $?"
        {program} run -- bash -c '
            {program} run -- echo never; echo "none left: $?"
            {program} run --mask ignore -n 2 -- echo never; echo "not twice: $?"'
        {program} run -n 2 -- true; echo "again: $?"
    """
    answer = machine.berth("run", "--devices", "2,6", "--", "bash", "-c", script)
    assert answer.status == 0, answer.err
    assert "2,6" in answer.out and "three: 69" in answer.out
    assert "again: 0" in answer.out
    assert list((machine.leases / "inside").iterdir()) == []


def test_two_inside_a_lease_of_two_never_overlap(machine):
    program = machine.program
    script = (
        f"mkfifo $HOME/go; exec 3<>$HOME/go\n"
        f"for i in 1 2; do {program} run -- bash -c 'echo $CUDA_VISIBLE_DEVICES; read <&3' & done\n"
        f"read; {program} run --no-wait -- echo never; echo status $?\n"
        f"echo >&3; echo >&3; wait\n"
    )
    job = machine.start_berth("run", "--devices", "2,6", "--", "bash", "-c", script, stdin=subprocess.PIPE)
    assert sorted([job.stdout.readline(), job.stdout.readline()]) == ["2\n", "6\n"]
    job.stdin.write("\n")
    job.stdin.flush()
    assert job.stdout.readline() == "status 75\n"
    assert job.wait(DEADLINE_S) == 0


def test_a_stale_lease_in_the_environment_is_ignored_with_its_mask_and_one_warning(machine):
    env = {"BERTH_LEASE": "00000000000000aa", "CUDA_VISIBLE_DEVICES": "1"}
    answer = machine.berth("run", "-n", "8", "--", "true", env=env)
    assert answer.status == 0
    assert answer.err == (
        "berth: the lease in BERTH_LEASE=00000000000000aa has ended, or is not yours; "
        "Berth ignores this variable and CUDA_VISIBLE_DEVICES\n"
    )


def test_a_command_is_found_before_it_has_a_process(machine):
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    # If Ctrl-Z stopped its process before the exec, `berth run` would not know.
    log = machine.directory / "calls"
    traced = ["strace", "-f", "-e", "trace=execve", "-o", log, machine.program, "run", "--", "true"]
    assert machine.run(*traced, env={"PATH": f"/nowhere:/neither:{machine.env['PATH']}"}).status == 0
    assert len(re.findall(r'execve\("[^"]*/true"', log.read_text())) == 1


def test_ctrl_z_before_the_exec_holds_nobody(machine):
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    # Only the process of a command asks for its parent here. Ctrl-Z comes before it is told.
    keys = ["-f", "-o", "/dev/null", "-e", "trace=getppid", "-e", "inject=getppid:signal=SIGTSTP"]
    run = [machine.program, "run", "--", "true"]
    # The group of a session's leader would not be stopped.
    traced = machine.start("strace", *keys, *run, process_group=0)
    assert traced.wait(DEADLINE_S) == 0


# Several users


def test_two_users_compete_and_each_gets_one(open_machine, as_user):
    machine = open_machine
    machine.berth("run", "--", "true")
    alice = ready(
        machine.start(
            *as_user(20001),
            machine.program,
            "run",
            "--",
            "bash",
            "-c",
            "umask 077; echo ready; read",
            stdin=subprocess.PIPE,
        )
    )
    bob = machine.run(*as_user(20002), machine.program, "run", "-n", "2", "--no-wait", "--", "true")
    assert bob.status == 75
    assert "uid 20001" in bob.err
    assert machine.run(*as_user(20002), machine.program, "run", "--", "true").status == 0
    alice.stdin.write("\n")
    alice.stdin.flush()
    assert alice.wait(DEADLINE_S) == 0
    assert machine.run(*as_user(20002), machine.program, "run", "-n", "2", "--", "true").status == 0
