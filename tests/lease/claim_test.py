"""berth claim: a lease for the shell or notebook that calls it."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from lease_jobs import USES_DEVICES, alive, eventually, holder, leases, only_lease, ready, waiting
from schemas import checked
from simulated_machine import DEADLINE_S, Answer
from terminal import on_terminal

# Not run in a sanitized build yet.
pytestmark = pytest.mark.release_only

SHELLS = ["bash", "dash"]


def claimed(machine, shell="bash", options="", then=""):
    """A shell with a claim, which ends when its input does."""
    script = f'eval "$({machine.program} claim {options})"; echo ready; {then}\nread line'
    return ready(machine.start(shell, "-c", script, stdin=subprocess.PIPE, start_new_session=True))


def keeper(machine) -> int:
    (lease,) = machine.berth("list", "--json").json["leases"]
    return lease["pid"]


def test_it_prints_what_a_shell_has_to_set(machine):
    answer = machine.berth("claim", "--devices", "2,5")
    assert answer.status == 0
    lease = only_lease(machine)
    assert answer.out == (
        f"export CUDA_VISIBLE_DEVICES=2,5\nexport CUDA_DEVICE_ORDER=PCI_BUS_ID\nexport BERTH_LEASE={lease}\n"
    )
    assert answer.err == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_it_lasts_as_long_as_the_shell_that_evaluates_it(machine, shell):
    job = claimed(machine, shell, "-n 2", then="echo $CUDA_VISIBLE_DEVICES $BERTH_LEASE")
    visible, lease = job.stdout.readline().split()
    assert re.fullmatch(r"\d,\d", visible)
    assert leases(machine) == [lease]
    job.stdin.close()
    job.stdin = None
    assert job.wait(DEADLINE_S) in (0, 1)
    eventually(lambda: leases(machine) == [])


@pytest.mark.parametrize("shell", SHELLS)
def test_a_pipeline_inside_of_the_substitution_changes_nothing(machine, shell):
    script = f'eval "$({machine.program} claim 2>/dev/null | cat)"; echo ready; read line'
    job = ready(machine.start(shell, "-c", script, stdin=subprocess.PIPE))
    answer = machine.berth("list", "--json").json["leases"]
    assert [lease["job_pid"] for lease in answer] == [job.pid]


def test_it_ends_when_the_shell_is_killed(machine):
    job = claimed(machine)
    job.kill()
    eventually(lambda: leases(machine) == [])
    assert machine.berth("run", "-n", "8", "--no-wait", "--", "true").status == 0


def test_it_ends_when_the_keeper_is_killed(machine):
    job = claimed(machine)
    os.kill(keeper(machine), signal.SIGKILL)
    eventually(lambda: machine.berth("run", "-n", "8", "--no-wait", "--", "true").status == 0)
    assert job.poll() is None


def test_it_ends_by_release_and_leaves_the_shell(machine):
    job = claimed(machine, then=f"{machine.program} release >&2; echo status $?")
    assert job.stdout.readline() == "status 0\n"
    assert leases(machine) == []
    assert job.poll() is None


def test_it_ends_by_the_clock(machine):
    job = claimed(machine, options="--time 1s")
    eventually(lambda: leases(machine) == [])
    assert job.poll() is None


def test_clock_and_shell_combine(machine):
    job = claimed(machine, options="--time 4h")
    job.kill()
    eventually(lambda: leases(machine) == [])


def test_a_malformed_time_is_a_wrong_use(machine):
    for time in ("", "4 hours ago"):
        answer = machine.berth("claim", "--time", time)
        assert (answer.status, answer.out) == (2, "sh -c 'exit 2'\n")
        assert answer.err.startswith("berth: --time")
    assert leases(machine) == []


def test_json_has_it_for_a_notebook(machine):
    code = (
        "import json, os, subprocess\n"
        "answer = subprocess.check_output([os.environ['PROGRAM'], 'claim', '--json', '--time', '4h'])\n"
        "print(answer.decode().replace(chr(10), ' '), flush=True)\n"
        "input()\n"
    )
    notebook = machine.start(
        sys.executable, "-c", code, env={"PROGRAM": machine.program}, stdin=subprocess.PIPE
    )
    answer = checked(Answer(0, notebook.stdout.readline(), ""), "claim")
    assert answer["lease"] == answer["environment"]["BERTH_LEASE"] == only_lease(machine)
    assert answer["ends_with"] == notebook.pid
    assert answer["until_s"] is not None
    assert alive(answer["kept_by"])
    notebook.kill()
    eventually(lambda: leases(machine) == [])


def test_a_process_can_be_named(machine):
    other = machine.start("sleep", "1000")
    assert machine.berth("claim", "--pid", other.pid).status == 0
    assert len(leases(machine)) == 1
    other.kill()
    other.wait()
    eventually(lambda: leases(machine) == [])


def test_a_process_that_does_not_exist_is_named(machine):
    answer = machine.berth("claim", "--pid", "4194000")
    assert (answer.status, answer.out) == (1, "sh -c 'exit 1'\n")
    assert answer.err == "berth: there is no process 4194000\n"
    assert leases(machine) == []


def test_another_users_process_is_refused(open_machine, as_user):
    machine = open_machine
    other = machine.start(*as_user(20001), "sleep", "1000")
    eventually(lambda: os.stat(f"/proc/{other.pid}").st_uid == 20001)
    answer = machine.run(*as_user(20002), machine.program, "claim", "--pid", other.pid)
    assert (answer.status, answer.out, answer.err) == (
        1,
        "sh -c 'exit 1'\n",
        f"berth: process {other.pid} is another user's\n",
    )


def test_it_refuses_as_run_does_and_leaves_nothing(make_machine):
    machine = make_machine("1xT4")
    holder(machine)
    answer = machine.berth("claim", "--no-wait", "--json")
    assert (answer.status, answer.out) == (75, "")
    assert "leased by " in answer.err
    assert machine.berth("claim", "-n", "2").status == 69
    _, text = on_terminal(machine, "claim", "--no-wait")
    assert "exit" not in text
    assert len(leases(machine)) == 1 and waiting(machine) == []


def test_it_waits_in_line(make_machine):
    machine = make_machine("1xT4")
    first = holder(machine)
    claim = machine.start_berth("claim")
    assert claim.stderr.readline().startswith("berth: waiting for 1 whole GPU; ")
    first.kill()
    out, _ = claim.communicate(timeout=DEADLINE_S)
    assert out.startswith("export CUDA_VISIBLE_DEVICES=0\n")


def test_ending_a_claim_that_waits_leaves_the_queue(make_machine):
    machine = make_machine("1xT4")
    holder(machine)
    claim = machine.start_berth("claim")
    eventually(lambda: len(waiting(machine)) == 1)
    claim.kill()
    eventually(lambda: machine.berth("queue", "--json").json["waiters"] == [])


def test_what_the_shell_starts_belongs_to_the_claim(machine):
    # Its /proc says nothing of the lease, as that of a notebook that has set its own environment.
    job = claimed(machine, then=f"env -u BERTH_LEASE {sys.executable} -c '{USES_DEVICES}' 0")
    ready(job)
    (lease,) = machine.berth("list", "--json").json["leases"]
    processes = [p for d in machine.berth("list", "--json").json["devices"] for p in d["processes"]]
    assert [process["lease"] for process in processes] == [lease["id"]]
    os.killpg(job.pid, signal.SIGKILL)


def test_the_keeper_keeps_nothing_of_the_callers(machine, tmp_path):
    read, write = os.pipe()
    claim = machine.start_berth("claim", pass_fds=[write], cwd=tmp_path)
    out, _ = claim.communicate(timeout=DEADLINE_S)
    os.close(write)
    assert os.read(read, 1) == b""
    os.close(read)
    pid = keeper(machine)
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) == pid
    assert open(f"/proc/{pid}/comm").read() == "berth __keep\n"


EVALS = {
    "bash": 'eval "$({0})"; echo $?',
    "dash": 'eval "$({0})"; echo $?',
    "zsh": 'eval "$({0})"; echo $?',
    "fish": "{0} | source; echo $status",
}


@pytest.mark.parametrize("shell", EVALS)
def test_what_a_shell_evaluates_fails_as_the_claim_did(make_machine, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    machine = make_machine("1xT4")
    held = holder(machine)
    for options, status in (("--no-wait", 75), ("-n 2", 69), ("--fro 4h", 2)):
        answer = machine.run(shell, "-c", EVALS[shell].format(f"{machine.program} claim {options}"))
        assert answer.out == f"{status}\n", answer.err
    held.kill()
    script = EVALS[shell].format(f"{machine.program} claim") + "; echo $CUDA_VISIBLE_DEVICES"
    answer = machine.run(shell, "-c", script)
    assert answer.out == "0\n0\n", answer.err
