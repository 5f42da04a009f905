"""Jobs that end for others or are cut off, and go on by themselves."""

import contextlib
import os
import signal

from jobs import Job, eventually, holder
from storm import processes as all_processes
from submitted import fill, job, kill, log, submit, wait_for

GOES_ON = "echo begins; trap 'echo asked; kill $!; exit 7' TERM; sleep 1000 & wait"
PLAIN = "echo begins; exec sleep 1000"


def test_a_job_that_yields_ends_for_somebody_who_waits(make_lab):
    lab = make_lab("1xH100")
    number = submit(lab, "--yield", "--", "sh", "-c", GOES_ON)
    wait_for(lab, number, "running")
    person = Job(lab)
    assert person.starts() == "0"
    person.ends()
    ended = wait_for(lab, number, "ended")
    assert ended["exit_status"] == 7 and ended["starts"] == 1
    assert ended["reason"].endswith("waits for this GPU, and this job yields (--yield)")
    assert "--yield" in ended["request"]


def test_a_job_that_yields_waits_until_as_many_gpus_as_the_site_says_stay_free(make_lab):
    lab = make_lab("3xH100")
    (lab.directory / "site.toml").write_text("leave_free = 1\n")
    user = lab.directory / "home/.config/berth.toml"
    user.parent.mkdir()
    user.write_text("leave_free = 2\n")
    person = holder(lab)
    words = "a request that yields starts only if 2 GPUs stay free beside it (leave_free in the site file)"
    refused = lab.berth("run", "--yield", "--no-wait", "--", "true")
    assert refused.status == 75 and words in " ".join(refused.err.split())
    assert words in " ".join(lab.berth("why", "--yield").out.split())
    number = submit(lab, "--yield", "--", "true")
    eventually(lambda: "2 GPUs are free now" in " ".join(lab.berth("queue").out.split()))
    # Whoever does not yield goes past it.
    assert lab.berth("run", "--no-wait", "--", "true").status == 0
    user.unlink()
    assert lab.berth("run", "--yield", "--no-wait", "--", "true").status == 0
    person.ends()
    wait_for(lab, number, "ended")
    assert "can never be satisfied" in lab.berth("run", "--yield", "-n", "3", "--", "true").err


def test_a_job_that_yields_and_stands_in_line_again_runs_when_the_other_has_ended(make_lab):
    lab = make_lab("1xH100")
    number = submit(lab, "--yield=5s", "--requeue", "--retries", "1", "--", "sh", "-c", GOES_ON)
    wait_for(lab, number, "running")
    person = Job(lab)
    assert person.starts() == "0"
    assert wait_for(lab, number, "waiting")["starts"] == 1
    person.ends()
    assert eventually(lambda: (now := job(lab, number))["state"] == "running" and now)["starts"] == 2
    assert eventually(lambda: log(lab, number).count("begins") == 2)
    lab.berth("cancel", number)
    assert job(lab, number)["state"] == "cancelled"


def test_it_stands_in_line_again_only_where_it_yields(lab):
    (lab.directory / "commands").write_text("true\n")
    for words in (["submit", "--requeue", "true"], ["each", "--requeue", f"{lab.directory}/commands"]):
        answer = lab.berth(*words)
        assert answer.status == 2
        assert answer.err.startswith("berth: --requeue is for jobs that yield: add --yield\n")


def processes(lab) -> dict:
    found = all_processes(lab)
    for pid in lab.inhabitants():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as words:
            if words.read().startswith(b"sleep\0"):
                found["sleep"].append(pid)
    return found


def cut_off(lab, *kinds) -> None:
    """kill -9 of those there are now. Does not wait until there are none: a runner that lives starts the next at once."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in [pid for kind in kinds for pid in processes(lab)[kind]]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def test_a_job_that_was_cut_off_runs_again_by_itself_where_that_was_said(make_lab):
    lab = make_lab("2xH100")
    once, again = (submit(lab, *more, "--", "sh", "-c", PLAIN) for more in ((), ("--rerun",)))

    def runs_for_the(time: int) -> bool:
        now = job(lab, again)
        return now["state"] == "running" and now["starts"] == time

    # The command too, which shares the lock of its task.
    eventually(lambda: len(processes(lab)["sleep"]) == 2)
    cut_off(lab, "run", "sleep")
    wait_for(lab, once, "interrupted")
    eventually(lambda: runs_for_the(2) and len(processes(lab)["sleep"]) == 1)
    # Also where all is gone: the user's next look starts it.
    cut_off(lab, "runner", "run", "sleep")
    eventually(lambda: runs_for_the(3))
    assert eventually(lambda: log(lab, again).count("begins") == 3)


def test_one_that_was_cancelled_when_it_was_cut_off_does_not_run_again(make_lab):
    lab = make_lab("1xH100")
    (holder,) = fill(lab, 1)
    number = submit(lab, "--rerun", "--", "sh", "-c", PLAIN)
    lab.berth("cancel", holder)
    wait_for(lab, number, "running")
    kill(lab, "runner", "run", "job")
    assert lab.berth("cancel", number).status == 0
    assert lab.berth("jobs").status == 0
    assert job(lab, number)["state"] == "cancelled"
