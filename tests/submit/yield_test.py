"""Jobs that end for others or are cut off, and go on by themselves."""

import contextlib
import os
import signal

from jobs import Job, eventually, holder
from storm import processes as all_processes
from submitted import job, log, submit, wait_for

GOES_ON = "echo begins; trap 'echo asked; kill $!; exit 7' TERM; sleep 1000 & wait"
PLAIN = "echo begins; exec sleep 1000"


def test_a_job_that_yields_ends_for_somebody_who_waits(make_machine):
    machine = make_machine("1xH100")
    number = submit(machine, "--yield", "--", "sh", "-c", GOES_ON)
    wait_for(machine, number, "running")
    person = Job(machine)
    assert person.starts() == "0"
    person.ends()
    ended = wait_for(machine, number, "ended")
    assert ended["exit_status"] == 7 and ended["starts"] == 1
    assert ended["reason"].endswith("waits for this GPU, and this job yields (--yield)")
    assert "--yield" in ended["request"]


def test_a_job_that_yields_waits_until_as_many_gpus_as_the_site_says_stay_free(make_machine):
    machine = make_machine("3xH100")
    (machine.directory / "site.toml").write_text("leave_free = 1\n")
    user = machine.directory / "home/.config/berth.toml"
    user.parent.mkdir()
    user.write_text("leave_free = 2\n")
    person = holder(machine)
    words = "a request that yields starts only if 2 GPUs stay free beside it (leave_free in the site file)"
    refused = machine.berth("run", "--yield", "--no-wait", "--", "true")
    assert refused.status == 75 and words in " ".join(refused.err.split())
    assert words in " ".join(machine.berth("why", "--yield").out.split())
    number = submit(machine, "--yield", "--", "true")
    eventually(lambda: "2 GPUs are free now" in " ".join(machine.berth("queue").out.split()))
    # Whoever does not yield goes past it.
    assert machine.berth("run", "--no-wait", "--", "true").status == 0
    user.unlink()
    assert machine.berth("run", "--yield", "--no-wait", "--", "true").status == 0
    person.ends()
    wait_for(machine, number, "ended")
    assert "can never be satisfied" in machine.berth("run", "--yield", "-n", "3", "--", "true").err


def test_a_job_that_yields_and_stands_in_line_again_runs_when_the_other_has_ended(make_machine):
    machine = make_machine("1xH100")
    number = submit(machine, "--yield=5s", "--requeue", "--retries", "1", "--", "sh", "-c", GOES_ON)
    wait_for(machine, number, "running")
    person = Job(machine)
    assert person.starts() == "0"
    assert wait_for(machine, number, "waiting")["starts"] == 1
    person.ends()
    assert eventually(lambda: (now := job(machine, number))["state"] == "running" and now)["starts"] == 2
    assert eventually(lambda: log(machine, number).count("begins") == 2)
    machine.berth("cancel", number)
    assert job(machine, number)["state"] == "cancelled"


def test_it_stands_in_line_again_only_where_it_yields(machine):
    (machine.directory / "commands").write_text("true\n")
    for words in (["submit", "--requeue", "true"], ["each", "--requeue", f"{machine.directory}/commands"]):
        answer = machine.berth(*words)
        assert answer.status == 2
        assert answer.err.startswith("berth: --requeue is for jobs that yield: add --yield; --rerun ")


def processes(machine) -> dict:
    found = all_processes(machine)
    for pid in machine.inhabitants():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as words:
            if words.read().startswith(b"sleep\0"):
                found["sleep"].append(pid)
    return found


def cut_off(machine, *kinds) -> None:
    """kill -9 of those there are now. Does not wait until there are none: a runner that lives starts the next at once."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in [pid for kind in kinds for pid in processes(machine)[kind]]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def test_a_job_that_was_cut_off_runs_again_by_itself_where_that_was_said(make_machine):
    machine = make_machine("2xH100")
    once, again = (submit(machine, *more, "--", "sh", "-c", PLAIN) for more in ((), ("--rerun",)))

    def runs_for_the(time: int) -> bool:
        now = job(machine, again)
        return now["state"] == "running" and now["starts"] == time

    # The command too, which shares the lock of its task.
    eventually(lambda: len(processes(machine)["sleep"]) == 2)
    cut_off(machine, "run", "sleep")
    wait_for(machine, once, "interrupted")
    eventually(lambda: runs_for_the(2) and len(processes(machine)["sleep"]) == 1)
    # Also where all is gone: the user's next look starts it.
    cut_off(machine, "runner", "run", "sleep")
    eventually(lambda: runs_for_the(3))
    assert eventually(lambda: log(machine, again).count("begins") == 3)
