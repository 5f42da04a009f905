"""Requests inside of a lease, as real processes."""

import collections
import os
import signal
import subprocess

import pytest
from chaos.overlaps import place_of
from jobs import DEADLINE_S, Job, Lines, close_input, eventually, state

# Sixteen at once live by speed.
pytestmark = pytest.mark.release_only

INNER = 16


def outer(machine, script: str, *options) -> subprocess.Popen:
    return machine.start_berth("run", *options, "--", "bash", "-c", script, stdin=subprocess.PIPE)


# Starts each line of its input as a command of its own.
EACH_LINE = 'while read -r line; do eval "$line" </dev/null & done; wait'


def say(process: subprocess.Popen, line: str) -> None:
    process.stdin.write(line + "\n")
    process.stdin.flush()


def is_free(machine, *options) -> bool:
    return machine.berth("run", "--no-wait", *options, "--", "true").status == 0


def test_sixteen_inside_of_a_lease_of_four_never_overlap_and_all_run(machine, tmp_path):
    """Two witnesses: what each job binds as its own (chaos/job.c), and the order of the lines that all append."""
    bound, lines = tmp_path / "bound", tmp_path / "lines"
    lines.touch()
    job = f"{machine.build}/chaos_job {place_of(tmp_path)} 1 {bound} 1 30 plain"
    inner = f"echo + $CUDA_VISIBLE_DEVICES >>{lines}; {job}; echo - $CUDA_VISIBLE_DEVICES >>{lines}"
    script = f"for i in {{1..{INNER}}}; do {machine.program} run -n 1 -- bash -c '{inner}' & done; wait"
    process = outer(machine, script, "--devices", "1,2,5,6")
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    assert bound.read_text().count("pid ") == INNER
    assert "OVERLAP" not in bound.read_text()
    running, most = set(), 0
    runs = collections.Counter()
    for line in lines.read_text().splitlines():
        what, device = line.split()
        assert (device in running) == (what == "-"), line
        running ^= {device}
        runs[device] += what == "+"
        most = max(most, len(running))
    assert sum(runs.values()) == INNER and set(runs) <= {"1", "2", "5", "6"}
    assert most > 1, "they ran one after the other"
    assert list((machine.leases / "inside").iterdir()) == []


def test_the_death_of_one_inside_hands_its_device_to_the_next_inside(make_machine):
    machine = make_machine("2xH100")
    process = outer(machine, EACH_LINE, "--devices", "1")
    out = Lines(process.stdout)
    say(process, f"{machine.program} run -- bash -c 'echo $PPID; exec sleep 1000'")
    inner = int(out.line())
    say(process, f"{machine.program} run -- echo second")
    (inside,) = (machine.leases / "inside").iterdir()
    eventually(lambda: os.listdir(inside / "queue"))
    os.kill(inner, signal.SIGKILL)
    assert out.line() == "second\n"
    close_input(process)
    assert process.wait(DEADLINE_S) == 0


def test_a_lease_lasts_as_long_as_what_runs_inside_of_it(make_machine):
    machine = make_machine("1xH100")
    script = f"trap '' TERM; {machine.program} run -- bash -c 'echo $$; trap \"\" TERM; while :; do sleep 0.01; done'; read"
    process = outer(machine, script)
    inner = int(Lines(process.stdout).line())
    process.kill()
    process.wait()
    assert state(inner) != "gone"
    assert not is_free(machine)
    (lease,) = (machine.leases / "inside").iterdir()
    assert len(list((lease / "leases").iterdir())) == 1
    close_input(process)
    os.kill(inner, signal.SIGKILL)
    eventually(lambda: is_free(machine))
    eventually(lambda: is_free(machine) and list((machine.leases / "inside").iterdir()) == [])


def test_one_who_waits_inside_waits_for_those_inside_only(make_machine):
    machine = make_machine("2xH100")
    outside = Job(machine, "--devices", "0")
    outside.starts()
    process = outer(machine, EACH_LINE, "--devices", "1")
    out = Lines(process.stdout)
    say(process, f"{machine.program} run -- bash -c 'echo $$; exec sleep 1000'")
    inner = int(out.line())
    say(process, f"{machine.program} run --no-wait -n 1 -- true; echo $?")
    assert out.line() == "75\n"
    say(process, f"{machine.program} run -- echo next")
    (inside,) = (machine.leases / "inside").iterdir()
    eventually(lambda: os.listdir(inside / "queue"))
    assert machine.berth("queue", "--json").json["waiters"] == []
    assert outside.ends() == 0
    assert is_free(machine) and not out.has_more()
    os.kill(inner, signal.SIGKILL)
    assert out.line() == "next\n"
    close_input(process)
    assert process.wait(DEADLINE_S) == 0
