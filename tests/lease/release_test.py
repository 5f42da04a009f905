"""berth release: the end of a lease, asked for from outside."""

import fcntl
import os
import pty
import signal
import subprocess
import sys

import pytest
from jobs import children_of, command_of, eventually, the_only
from lease_jobs import at_terminal, holder, leases, only_lease, ready, waiter, waiting
from simulated_machine import DEADLINE_S


def test_the_job_ends_and_with_it_the_lease(machine):
    job = holder(machine)
    lease = only_lease(machine)
    answer = machine.berth("release", lease)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == f"ended the lease {lease[-6:]} of root: bash\n"
    assert leases(machine) == []
    assert job.wait(DEADLINE_S) == -signal.SIGTERM


def test_the_last_digits_are_enough(machine):
    holder(machine)
    assert machine.berth("release", only_lease(machine)[-6:]).status == 0
    assert leases(machine) == []


def test_a_lease_that_does_not_exist_is_named(machine):
    answer = machine.berth("release", "00000000000000aa")
    assert (answer.status, answer.out) == (1, "")
    assert (
        answer.err
        == "berth: no live lease has the id 00000000000000aa; `berth list -l` shows the live leases\n"
    )


def test_what_is_no_id_is_a_wrong_use(machine):
    for word in ("nonsense", "0123456789abcdef0", "../../etc/passwd", "*"):
        answer = machine.berth("release", word)
        assert (answer.status, answer.out) == (2, "")
        assert "is not the id of a lease" in answer.err


def test_without_an_id_outside_a_lease_it_asks_which(machine):
    answer = machine.berth("release")
    assert answer.status == 2
    assert answer.err.startswith("berth: which lease? ")


def test_inside_a_lease_it_ends_that_one(machine):
    job = holder(machine, then=f"'{machine.program}' release; sleep 1000")
    assert job.wait(DEADLINE_S) == -signal.SIGTERM
    assert leases(machine) == []


def test_a_command_that_is_a_release_ends_its_own_lease(machine):
    job = machine.start_berth("run", "--", machine.program, "release")
    assert job.wait(DEADLINE_S) == -signal.SIGTERM
    assert leases(machine) == []


def test_a_process_of_the_job_may_ask_as_the_protocol_says(machine, tmp_path):
    asks = tmp_path / "asks"
    asker = f'echo $$; until [ -e {asks} ]; do sleep 0.01; done; kill -TERM "$1"; exec sleep 1000'
    job = holder(machine, then=f"bash -c '{asker}' asker $PPID & wait")
    lease = only_lease(machine)
    ticket = machine.leases / "leases" / lease
    lines = f"release_uid={os.getuid()}\nrelease_pid={job.stdout.readline().strip()}\nend\n"
    ticket.write_text(ticket.read_text().removesuffix("end\n") + lines)
    asks.touch()
    assert "was released by" in job.communicate(timeout=DEADLINE_S)[1]
    assert job.returncode == -signal.SIGTERM


def test_one_that_waits_is_left_alone(make_machine):
    machine = make_machine("1xH100")
    holder(machine)
    job = waiter(machine)
    request = waiting(machine)[0]
    answer = machine.berth("release", request)
    assert answer.status == 1
    assert (
        f"{request[-6:]} waits and holds nothing; berth cancel {request[-6:]} takes it out of the queue"
        in answer.err
    )
    assert job.poll() is None


def test_one_that_waits_is_cancelled_and_the_next_moves_up(make_machine):
    machine = make_machine("1xH100")
    holder(machine)
    first, second = waiter(machine), waiter(machine)
    answer = machine.berth("cancel", waiting(machine)[0][-6:])
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith("cancelled the request ") and answer.out.endswith(" of root: bash\n")
    assert first.wait(DEADLINE_S) == -signal.SIGTERM
    assert [row["position"] for row in machine.berth("queue", "--json").json["waiters"]] == [1]
    assert second.poll() is None


def test_what_has_its_gpus_is_not_cancelled(machine):
    holder(machine)
    lease = only_lease(machine)
    answer = machine.berth("cancel", lease)
    assert (answer.status, answer.out) == (1, "")
    assert f"waits no more, it has its GPUs; berth release {lease[-6:]} ends the lease" in answer.err
    assert leases(machine) == [lease]
    assert machine.berth("cancel").status == 2


def test_a_job_that_does_not_answer_is_named_with_its_pids(machine):
    job = holder(
        machine, then="trap '' TERM; echo deaf; while :; do sleep 1000; done", start_new_session=True
    )
    assert job.stdout.readline() == "deaf\n"
    lease = only_lease(machine)
    answer = machine.berth("release", lease, "--wait", "0s")
    assert (answer.status, answer.out) == (124, "")
    command = command_of(job)
    assert (
        f"the lease {lease[-6:]} has not ended yet: it got SIGTERM, and these processes still hold it: {command} ("
        in answer.err
    )
    assert f"to end them without asking: kill -KILL {command}" in answer.err
    assert leases(machine) == [lease]
    os.killpg(job.pid, signal.SIGKILL)


# Tells each SIGTERM that it gets in a file of its name, and goes on; the first one ends who is
# called "ends…".
COUNTS = """
import os, signal, sys, time
name = sys.argv[1]
def told(*_):
    with open(name, "a") as file: file.write("SIGTERM\\n")
    if os.path.basename(name).startswith("ends"): os._exit(0)
signal.signal(signal.SIGTERM, told)
print("ready", flush=True)
while True: time.sleep(1000)
"""


def counting(machine, *names) -> tuple[str, list]:
    """A command line that starts such processes, and their files."""
    files = [machine.directory / name for name in names]
    script = machine.directory / "counts.py"
    script.write_text(COUNTS)
    return " ".join(f"{sys.executable} {script} {file} &" for file in files), files


def test_what_the_command_leaves_when_it_dies_by_the_signal_ends_by_the_same_call(make_machine):
    """As `conda run` does, or `sh -c` with more than one command."""
    machine = make_machine("1xH100")
    job = machine.start_berth("run", "--", "bash", "-c", "setsid sleep 1000 & echo ready; wait")
    ready(job)
    assert machine.berth("release", only_lease(machine)).status == 0
    assert job.wait(DEADLINE_S) == -signal.SIGTERM
    assert machine.berth("run", "--no-wait", "--", "true").status == 0


def test_nobody_gets_the_signal_twice_and_what_is_left_is_named(make_machine):
    machine = make_machine("1xH100")
    start, (ends, stays) = counting(machine, "ends", "stays")
    # Its trap does not end it: the rest is asked without it.
    job = machine.start_berth(
        "run", "--", "bash", "-c", f"trap 'echo asked' TERM; {start} while :; do wait; done"
    )
    for _ in range(2):
        ready(job)
    command = command_of(job)
    job.send_signal(signal.SIGTERM)
    for file in (ends, stays):
        eventually(file.exists)
    stayed = the_only(lambda: children_of(command))
    os.kill(command, signal.SIGKILL)
    assert "still hold the lease: " in (line := job.stderr.readline())
    assert f"they got SIGTERM; to end them and the lease: kill -KILL {stayed}\n" in line
    os.kill(stayed, signal.SIGKILL)
    out, _ = job.communicate(timeout=DEADLINE_S)
    assert (job.returncode, out) == (-signal.SIGKILL, "asked\n")
    assert [file.read_text() for file in (ends, stays)] == ["SIGTERM\n"] * 2


def test_what_an_exec_command_leaves_is_asked_when_it_has_ended(make_machine):
    machine = make_machine("1xH100")
    job = machine.start_berth("run", "--exec", "--", "bash", "-c", "sleep 1000 & echo ready; wait")
    ready(job)
    assert machine.berth("release", only_lease(machine)).status == 0
    assert job.wait(DEADLINE_S) == -signal.SIGTERM
    assert machine.berth("run", "--no-wait", "--", "true").status == 0


def test_a_stopped_holder_goes_on_and_ends(machine):
    job = holder(machine)
    job.send_signal(signal.SIGSTOP)
    assert machine.berth("release", only_lease(machine)).status == 0
    assert leases(machine) == []


def test_a_holder_that_stops_again_is_called_stopped(machine):
    script = "trap '' TERM; echo deaf; while :; do kill -STOP $$; done"
    assert machine.start_berth("run", "--", "bash", "-c", script).stdout.readline() == "deaf\n"
    answer = machine.berth("release", only_lease(machine), "--wait", "2s")
    assert answer.status == 124
    assert ", stopped)" in answer.err


def test_a_held_pick_ends_with_its_keeper(machine):
    assert machine.berth("pick", "--hold", "1h").status == 0
    assert machine.berth("release", only_lease(machine)).status == 0
    assert machine.berth("run", "-n", "8", "--no-wait", "--", "true").status == 0


def test_an_exec_job_is_asked_itself(machine):
    job = holder(machine, "--exec")
    assert machine.berth("release", only_lease(machine)).status == 0
    assert job.wait(DEADLINE_S) == -signal.SIGTERM


def test_another_users_lease_is_his(open_machine, as_user):
    machine = open_machine
    machine.berth("run", "--", "true")
    alice = ready(
        machine.start(
            *as_user(20001), machine.program, "run", "--", "bash", "-c", "echo ready; exec sleep 1000"
        )
    )
    lease = only_lease(machine)
    bob = machine.run(*as_user(20002), machine.program, "release", lease)
    assert (bob.status, bob.out) == (1, "")
    assert bob.err == f"berth: the lease {lease[-6:]} is of uid 20001: only its owner and root may end it\n"
    assert alice.poll() is None
    assert machine.run(*as_user(20001), machine.program, "release", lease).status == 0


def test_root_may_end_any(open_machine, as_user):
    machine = open_machine
    machine.berth("run", "--", "true")
    ready(
        machine.start(
            *as_user(20001), machine.program, "run", "--", "bash", "-c", "echo ready; exec sleep 1000"
        )
    )
    assert machine.berth("release", only_lease(machine)).status == 0


def test_who_asked_and_why_is_the_last_line_of_run(machine):
    job = holder(machine, then="trap 'exit 3' TERM; while :; do sleep 0.01; done")
    lease = only_lease(machine)
    assert machine.berth("release", lease, "--because", "the machine goes down at 18:00").status == 0
    _, err = job.communicate(timeout=DEADLINE_S)
    assert job.returncode == 3
    assert (
        err.splitlines()[-1]
        == f"berth: the lease {lease[-6:]} was released by root: the machine goes down at 18:00"
    )


def test_without_a_reason_it_says_who_asked(machine):
    job = holder(machine)
    lease = only_lease(machine)
    assert machine.berth("release", lease).status == 0
    assert job.communicate(timeout=DEADLINE_S)[1] == f"berth: the lease {lease[-6:]} was released by root\n"


def test_a_signal_that_is_no_release_is_told_as_none(machine):
    then = "n=0; trap 'n=$((n + 1)); echo asked >&2; [ $n = 1 ] || exit 3' TERM; while :; do sleep 0.01; done"
    job = holder(machine, then=then)
    lease = only_lease(machine)
    assert machine.berth("release", "--wait", "0", "--because", "first", lease).status == 124
    assert job.stderr.readline() == "asked\n"
    # Another one's signal, with the words of before still in the ticket.
    os.kill(job.pid, signal.SIGTERM)
    assert job.communicate(timeout=DEADLINE_S)[1] == "asked\n"
    assert job.returncode == 3


def test_a_reason_cannot_act_on_the_terminal_that_it_is_told_on(machine):
    job = holder(machine)
    reason = "\x1b]0;title\x07 \x9b2J \u202e one\ntwo"
    assert machine.berth("release", only_lease(machine), "--because", reason).status == 0
    (line,) = job.communicate(timeout=DEADLINE_S)[1].splitlines()
    assert "\\x1b" in line and "one\\x0atwo" in line
    assert not set(line) & set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize("kind", ["claim", "exec"])
def test_who_sits_at_the_terminal_of_the_lease_reads_it(machine, kind):
    ours, theirs = pty.openpty()
    script = {
        "claim": f'eval "$({machine.program} claim)"; echo ready; read line',
        "exec": f"exec {machine.program} run --exec -- sh -c 'echo ready; exec sleep 1000'",
    }[kind]
    job = machine.start("bash", "-c", script, stdin=subprocess.PIPE, stderr=theirs, **at_terminal(theirs))
    os.close(theirs)
    assert job.stdout.readline() == "ready\n"
    lease = only_lease(machine)
    assert machine.berth("release", lease, "--because", "it idles").status == 0
    text = ""
    while "it idles" not in text:
        text += os.read(ours, 4096).decode()
    assert f"berth: the lease {lease[-6:]} was released by root: it idles" in text
    os.close(ours)


def test_a_gate_that_somebody_keeps_shut_keeps_nobody_from_ending_a_lease(machine):
    job = holder(machine)
    gate = os.open(machine.leases, os.O_RDONLY)
    fcntl.flock(gate, fcntl.LOCK_EX)
    try:
        answer = machine.berth("release", only_lease(machine), "--because", "hurry")
        assert answer.status == 0
        assert "the reason cannot be handed over" in answer.err
    finally:
        os.close(gate)
    assert job.wait(DEADLINE_S) == -signal.SIGTERM


@pytest.mark.parametrize(
    "how",
    [
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    ],
)
@pytest.mark.parametrize("kind", [["run"], ["run", "--exec"]])
def test_a_command_hears_the_release_whatever_its_caller_has_blocked_or_ignores(machine, how, kind):
    code = f"import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); {how}; os.execv(sys.argv[1], sys.argv[1:])"
    says = "echo ready; grep -E 'Sig(Blk|Ign)' /proc/self/status; exec sleep 1000"
    job = machine.start(sys.executable, "-c", code, machine.program, *kind, "--", "bash", "-c", says)
    ready(job)
    blocked, ignored = (int(job.stdout.readline().split()[1], 16) for _ in range(2))
    hang_up, term = (1 << (number - 1) for number in (signal.SIGHUP, signal.SIGTERM))
    assert (blocked, ignored & hang_up, ignored & term) == (0, hang_up, 0)
    assert machine.berth("release", only_lease(machine)).status == 0
    assert job.wait(DEADLINE_S) == -signal.SIGTERM


def test_a_request_hears_its_cancel_whatever_its_caller_has_blocked(make_machine):
    machine = make_machine("1xH100")
    holder(machine)
    code = "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); os.execv(sys.argv[1], sys.argv[1:])"
    request = machine.start(sys.executable, "-c", code, machine.program, "run", "--", "true")
    eventually(lambda: waiting(machine))
    assert machine.berth("cancel", waiting(machine)[0]).status == 0
    assert request.wait(DEADLINE_S) == -signal.SIGTERM
