"""berth claim: a lease for the shell or notebook that calls it."""

import os
import shutil
import re
import signal
import subprocess
import sys

import pytest
from lab import DEADLINE_S, Answer
from lease_jobs import USES_DEVICES, alive, eventually, holder, leases, only_lease, ready, waiting
from schemas import checked
from terminal import on_terminal

# Not run in a sanitized build yet.
pytestmark = pytest.mark.release_only

SHELLS = ["bash", "dash"]


def claimed(lab, shell="bash", options="", then=""):
    """A shell with a claim, which ends when its input does."""
    script = f'eval "$({lab.program} claim {options})"; echo ready; {then}\nread line'
    return ready(lab.start(shell, "-c", script, stdin=subprocess.PIPE, start_new_session=True))


def keeper(lab) -> int:
    (lease,) = lab.berth("list", "--json").json["leases"]
    return lease["pid"]


def test_it_prints_what_a_shell_has_to_set(lab):
    answer = lab.berth("claim", "--devices", "2,5")
    assert answer.status == 0
    lease = only_lease(lab)
    assert answer.out == (
        f"export CUDA_VISIBLE_DEVICES=2,5\nexport CUDA_DEVICE_ORDER=PCI_BUS_ID\nexport BERTH_LEASE={lease}\n"
    )
    assert answer.err == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_it_lasts_as_long_as_the_shell_that_evaluates_it(lab, shell):
    job = claimed(lab, shell, "-n 2", then="echo $CUDA_VISIBLE_DEVICES $BERTH_LEASE")
    visible, lease = job.stdout.readline().split()
    assert re.fullmatch(r"\d,\d", visible)
    assert leases(lab) == [lease]
    job.stdin.close()
    job.stdin = None
    assert job.wait(DEADLINE_S) in (0, 1)
    eventually(lambda: leases(lab) == [])


@pytest.mark.parametrize("shell", SHELLS)
def test_a_pipeline_inside_of_the_substitution_changes_nothing(lab, shell):
    script = f'eval "$({lab.program} claim 2>/dev/null | cat)"; echo ready; read line'
    job = ready(lab.start(shell, "-c", script, stdin=subprocess.PIPE))
    answer = lab.berth("list", "--json").json["leases"]
    assert [lease["job_pid"] for lease in answer] == [job.pid]


def test_it_ends_when_the_shell_is_killed(lab):
    job = claimed(lab)
    job.kill()
    eventually(lambda: leases(lab) == [])
    assert lab.berth("run", "-n", "8", "--no-wait", "--", "true").status == 0


def test_it_ends_when_the_keeper_is_killed(lab):
    job = claimed(lab)
    os.kill(keeper(lab), signal.SIGKILL)
    eventually(lambda: lab.berth("run", "-n", "8", "--no-wait", "--", "true").status == 0)
    assert job.poll() is None


def test_it_ends_by_release_and_leaves_the_shell(lab):
    job = claimed(lab, then=f"{lab.program} release >&2; echo status $?")
    assert job.stdout.readline() == "status 0\n"
    assert leases(lab) == []
    assert job.poll() is None


def test_it_ends_by_the_clock(lab):
    job = claimed(lab, options="--for 1s")
    eventually(lambda: leases(lab) == [])
    assert job.poll() is None


def test_clock_and_shell_combine(lab):
    job = claimed(lab, options="--for 4h")
    job.kill()
    eventually(lambda: leases(lab) == [])


@pytest.mark.parametrize("time", ["", "soon", "0", "-1s", "4 hours ago", "1e9"])
def test_a_malformed_time_is_a_wrong_use(lab, time):
    answer = lab.berth("claim", "--for", time)
    assert (answer.status, answer.out) == (2, "sh -c 'exit 2'\n")
    assert answer.err.startswith("berth: --for")
    assert leases(lab) == []


def test_json_has_it_for_a_notebook(lab):
    code = (
        "import json, os, subprocess\n"
        "answer = subprocess.check_output([os.environ['PROGRAM'], 'claim', '--json', '--for', '4h'])\n"
        "print(answer.decode().replace(chr(10), ' '), flush=True)\n"
        "input()\n"
    )
    notebook = lab.start(sys.executable, "-c", code, env={"PROGRAM": lab.program}, stdin=subprocess.PIPE)
    answer = checked(Answer(0, notebook.stdout.readline(), ""), "claim")
    assert answer["lease"] == answer["environment"]["BERTH_LEASE"] == only_lease(lab)
    assert answer["ends_with"] == notebook.pid
    assert answer["until_s"] is not None
    assert alive(answer["kept_by"])
    notebook.kill()
    eventually(lambda: leases(lab) == [])


def test_a_process_can_be_named(lab):
    other = lab.start("sleep", "1000")
    assert lab.berth("claim", "--pid", other.pid).status == 0
    assert len(leases(lab)) == 1
    other.kill()
    other.wait()
    eventually(lambda: leases(lab) == [])


def test_a_process_that_does_not_exist_is_named(lab):
    answer = lab.berth("claim", "--pid", "4194000")
    assert (answer.status, answer.out) == (1, "sh -c 'exit 1'\n")
    assert answer.err == "berth: there is no process 4194000\n"
    assert leases(lab) == []


def test_another_users_process_is_refused(open_lab, as_user):
    lab = open_lab
    other = lab.start(*as_user(20001), "sleep", "1000")
    eventually(lambda: os.stat(f"/proc/{other.pid}").st_uid == 20001)
    answer = lab.run(*as_user(20002), lab.program, "claim", "--pid", other.pid)
    assert (answer.status, answer.out, answer.err) == (
        1,
        "sh -c 'exit 1'\n",
        f"berth: process {other.pid} is another user's\n",
    )


def test_it_refuses_as_run_does_and_leaves_nothing(make_lab):
    lab = make_lab("1xT4")
    holder(lab)
    answer = lab.berth("claim", "--no-wait", "--json")
    assert (answer.status, answer.out) == (75, "")
    assert "leased by " in answer.err
    assert lab.berth("claim", "-n", "2").status == 69
    _, text = on_terminal(lab, "claim", "--no-wait")
    assert "exit" not in text
    assert len(leases(lab)) == 1 and waiting(lab) == []


def test_it_waits_in_line(make_lab):
    lab = make_lab("1xT4")
    first = holder(lab)
    claim = lab.start_berth("claim")
    assert claim.stderr.readline().startswith("berth: waiting for 1 whole GPU; ")
    first.kill()
    out, _ = claim.communicate(timeout=DEADLINE_S)
    assert out.startswith("export CUDA_VISIBLE_DEVICES=0\n")


def test_ending_a_claim_that_waits_leaves_the_queue(make_lab):
    lab = make_lab("1xT4")
    holder(lab)
    claim = lab.start_berth("claim")
    eventually(lambda: len(waiting(lab)) == 1)
    claim.kill()
    eventually(lambda: lab.berth("queue", "--json").json["waiters"] == [])


def test_what_the_shell_starts_belongs_to_the_claim(lab):
    # Its /proc says nothing of the lease, as that of a notebook that has set its own environment.
    job = claimed(lab, then=f"env -u BERTH_LEASE {sys.executable} -c '{USES_DEVICES}' 0")
    ready(job)
    (lease,) = lab.berth("list", "--json").json["leases"]
    processes = [p for d in lab.berth("list", "--json").json["devices"] for p in d["processes"]]
    assert [process["lease"] for process in processes] == [lease["id"]]
    os.killpg(job.pid, signal.SIGKILL)


def test_the_keeper_keeps_nothing_of_the_callers(lab, tmp_path):
    read, write = os.pipe()
    claim = lab.start_berth("claim", pass_fds=[write], cwd=tmp_path)
    out, _ = claim.communicate(timeout=DEADLINE_S)
    os.close(write)
    assert os.read(read, 1) == b""
    os.close(read)
    pid = keeper(lab)
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
def test_what_a_shell_evaluates_fails_as_the_claim_did(make_lab, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    lab = make_lab("1xT4")
    held = holder(lab)
    for options, status in (("--no-wait", 75), ("-n 2", 69), ("--fro 4h", 2)):
        answer = lab.run(shell, "-c", EVALS[shell].format(f"{lab.program} claim {options}"))
        assert answer.out == f"{status}\n", answer.err
    held.kill()
    script = EVALS[shell].format(f"{lab.program} claim") + "; echo $CUDA_VISIBLE_DEVICES"
    answer = lab.run(shell, "-c", script)
    assert answer.out == "0\n0\n", answer.err
