"""--time: how long a lease lasts at most, who ends its job, and how."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from clock import Clock
from jobs import FIRST_THREAD_ENDS, eventually
from lease_jobs import alive, holder, leases, only_lease, ready
from simulated_machine import DEADLINE_S

HOUR_S = 3600
SLOW_CUDA = '[[device]]\nmodel = "A100"\n[[fault]]\ncall = "cuInit"\ndelay = "2s"\n'


def site(machine, text: str) -> dict:
    """The environment in which this is the site's file."""
    file = machine.directory / "site.toml"
    file.write_text(text)
    return {"BERTH_SITE_FILE": file}


def timed(machine, then: str, *options, time="1s", grace="1s") -> subprocess.Popen:
    return holder(
        machine, "--time", time, *options, then=then, env=site(machine, f'time_grace = "{grace}"\n')
    )


def fields(machine) -> dict:
    text = (machine.leases / "leases" / only_lease(machine)).read_text()
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def ended(job) -> tuple[int, str]:
    _, err = job.communicate(timeout=DEADLINE_S)
    return job.returncode, err


def look(job) -> None:
    """Has a holder look at its clock, and waits until it has."""
    job.send_signal(signal.SIGCHLD)
    bit = 1 << (signal.SIGCHLD - 1)

    def has_looked():
        try:
            status = pathlib.Path(f"/proc/{job.pid}/status").read_text()
        except FileNotFoundError:  # it has looked, and ended
            return True
        pending = int(re.search(r"ShdPnd:\s*(\w+)", status)[1], 16)
        # One that has ended has looked, and takes no signal any more.
        return re.search(r"State:\s*Z", status) or (not pending & bit and re.search(r"State:\s*S", status))

    eventually(has_looked)


def test_a_job_is_warned_and_ended_at_its_time(machine):
    job = timed(machine, "exec sleep 1000")
    lease = only_lease(machine)
    status, err = ended(job)
    assert status == -signal.SIGTERM
    assert err.splitlines() == [
        f"berth: the lease ends in 1 s: its time limit is 1s; to extend it: berth extend {lease[-6:]} TIME",
        "berth: the time of the lease (1s) is over: the job gets SIGTERM now, and SIGKILL in 1 s",
    ]
    assert leases(machine) == []


def test_the_ticket_says_the_time_and_the_boot_clocks_second_of_the_grant(machine):
    holder(machine, "--time", "2h")
    said = fields(machine)
    assert said["time"] == "7200"
    assert (
        0
        <= int(float(pathlib.Path("/proc/uptime").read_text().split()[0])) - int(said["granted_boot"])
        < HOUR_S
    )


def test_a_job_that_saves_its_work_at_sigterm_ends_as_it_likes(machine):
    job = timed(machine, "trap 'exit 7' TERM; while :; do sleep 0.1; done", grace="1h")
    assert ended(job)[0] == 7


def test_one_that_ignores_sigterm_is_killed(machine):
    job = timed(machine, "trap '' TERM; while :; do sleep 0.1; done")
    assert ended(job)[0] == -signal.SIGKILL
    assert leases(machine) == []


def test_one_that_is_stopped_at_its_end_ends(machine):
    job = timed(machine, "kill -STOP $$; exec sleep 1000", grace="1h")
    assert ended(job)[0] == -signal.SIGTERM


def test_children_in_a_group_and_session_of_their_own_end_too(machine):
    job = timed(
        machine, "setsid bash -c 'trap \"\" TERM; while :; do sleep 0.1; done' & echo $!; exec sleep 1000"
    )
    child = int(job.stdout.readline())
    assert ended(job)[0] == -signal.SIGTERM
    assert not alive(child)
    assert leases(machine) == []


@pytest.mark.parametrize("how", ["runs", "is stopped"])
def test_a_command_without_its_first_thread_ends_at_the_time(machine, how):
    job = timed(machine, f"exec {sys.executable} -c '{FIRST_THREAD_ENDS}'", time="2s", grace="1h")
    pid = int(job.stdout.readline())
    if how == "is stopped":
        os.kill(pid, signal.SIGSTOP)
    assert ended(job)[0] == -signal.SIGTERM
    assert leases(machine) == []


def test_what_a_command_has_left_behind_ends_at_the_time_too(machine):
    job = timed(machine, "setsid sleep 1000 & exit 3", time="2s")
    assert ended(job)[0] == 3
    assert leases(machine) == []


def test_the_time_counts_from_the_grant_as_berth_list_shows_also_while_cuda_is_tried(make_machine):
    machine = make_machine(SLOW_CUDA)
    assert machine.berth("run", "--", "sh", "-c", "exit 1").status == 1
    # CUDA is tried first, since a run on this GPU has failed, and the trial takes longer than that.
    # The command may end before it has printed anything.
    site_file = site(machine, 'time_grace = "1s"\n')
    words = ("run", "--time", "1s", "--quiet", "--", "sleep", "1000")
    status, err = ended(machine.start_berth(*words, env=site_file))
    assert status == -signal.SIGTERM
    assert err == "berth: the time of the lease (1s) is over: the job gets SIGTERM now, and SIGKILL in 1 s\n"


def test_a_job_that_the_terminal_has_stopped_together_with_berth_ends(machine):
    job = timed(machine, "exec sleep 1000", time="3s", grace="1h")
    job.send_signal(signal.SIGSTOP)
    assert ended(job)[0] == -signal.SIGTERM


@pytest.mark.release_only  # what is preloaded comes before the sanitizer
def test_setting_the_wall_clock_ends_nothing_and_time_asleep_counts(machine):
    clock = Clock(machine)
    job = holder(machine, "--time", "1h", env=clock.env)
    clock.set(wall=2 * HOUR_S, boot=0)
    look(job)
    assert leases(machine) != []
    assert job.poll() is None
    clock.set(wall=0, boot=2 * HOUR_S)
    look(job)
    assert ended(job)[0] == -signal.SIGTERM


@pytest.mark.release_only  # what is preloaded comes before the sanitizer
def test_a_lease_that_says_no_time_is_ended_by_none(machine):
    clock = Clock(machine)
    job = holder(machine, env=clock.env)
    clock.set(wall=0, boot=1000 * HOUR_S)
    look(job)
    assert job.poll() is None and leases(machine) != []


@pytest.mark.parametrize("command", ["run", "shell", "claim"])
@pytest.mark.parametrize("time", ["0", "-1s", "soon", "366d", "1000000000h", "1e30", ""])
def test_a_time_that_nobody_can_mean_is_a_wrong_use(machine, command, time):
    answer = machine.berth(command, "--time", time, *(["--", "true"] if command == "run" else []))
    assert answer.status == 2
    assert answer.err.startswith("berth: --time")
    assert leases(machine) == []


def test_with_exec_nobody_stays_who_could_end_it(machine):
    answer = machine.berth("run", "--time", "1h", "--exec", "--", "true")
    assert answer.status == 2 and "--time and --exec exclude each other" in answer.err


# The site's limit


def test_a_time_beyond_the_sites_is_refused_with_the_figures(machine):
    answer = machine.berth("run", "--time", "3d", "--", "true", env=site(machine, 'time = "2d"\n'))
    assert answer.status not in (0, 2)
    assert "says 3d, and a lease here lasts 2d at most (time in the site file)" in answer.err


def test_one_that_says_no_time_has_the_sites(machine):
    holder(machine, env=site(machine, 'time = "2d"\n'))
    assert fields(machine)["time"] == "172800"


# berth extend


def test_a_lease_is_extended_and_its_holder_finds_it(machine):
    job = timed(machine, "exec sleep 1000", time="2s")
    lease = only_lease(machine)
    assert machine.berth("extend", lease[-6:], "1h").status == 0
    assert fields(machine)["time"] == "3602"
    assert machine.berth("extend", lease, "1h").status == 0
    assert fields(machine)["time"] == "7202"
    ready_after = holder(machine, "--time", "3s")  # granted later, it ends later than the first would have
    assert ended(ready_after)[0] == -signal.SIGTERM
    assert job.poll() is None
    assert leases(machine) == [lease]


def test_a_claim_is_extended_too(machine):
    script = (
        f'eval "$({machine.program} claim --time 2s)"; {machine.program} extend 1h >&2; echo ready; read line'
    )
    shell = ready(machine.start("bash", "-c", script, stdin=subprocess.PIPE))
    lease = only_lease(machine)
    assert fields(machine)["time"] == "3602"
    assert ended(holder(machine, "--time", "3s"))[0] == -signal.SIGTERM
    assert leases(machine) == [lease]
    shell.kill()


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        ((), 2, "extend which lease by how long?"),
        (("0",), 2, "at least 1s"),
        (("soon",), 2, "is not a time"),
        (("1000000000h",), 2, "at most 365d"),
        (("365d",), 1, "would have 31536001s: a lease with a time lasts 365d at most"),
    ],
)
def test_an_extension_that_makes_no_sense_is_refused(machine, words, status, says):
    holder(
        machine,
        "--time",
        "1s",
        env=site(machine, 'time_grace = "1h"\n'),
        then="trap '' TERM; while :; do sleep 0.1; done",
    )
    answer = machine.berth("extend", *([only_lease(machine)] if words else []), *words)
    assert says in answer.err
    assert (answer.status != 0) if status == 1 else (answer.status == status)


def test_a_lease_without_a_time_needs_no_extension(machine):
    holder(machine)
    answer = machine.berth("extend", only_lease(machine), "1h")
    assert answer.status == 1 and "has no time limit, so there is nothing to extend" in answer.err
