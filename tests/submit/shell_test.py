"""What a job gets from the shell that submitted it, whatever shell has started the runner."""

import os

import pytest
from jobs import eventually
from submitted import job, log, submit, wait_for

ALICE = 20001
NICE = os.nice(0)  # of these tests
WHAT_IT_HAS = "echo $(umask) $(nice) $(ulimit -n) $(ulimit -t) $(ulimit -c)"


def submit_in(machine, shell: str, *words, **more) -> str:
    """The number of a job that is submitted after these commands of a shell."""
    answer = machine.run(
        "bash", "-c", f'{shell}; exec "$@"', "bash", machine.program, "submit", *words, **more
    )
    assert answer.status == 0, answer.err
    return answer.out.strip()


def ended(machine, number: str) -> str:
    wait_for(machine, number, "ended")
    return log(machine, number)


@pytest.fixture
def holder(make_machine):
    """A lab with a runner that a shell with narrow limits has started, and a job that keeps it there."""

    def make(shell: str):
        machine = make_machine("2xH100")
        first = submit_in(machine, shell, "--rerun", "--", "sleep", "1000")
        wait_for(machine, first, "running")
        return machine

    return make


def nicer(steps: int) -> int:
    return min(NICE + steps, 19)


def test_a_job_has_the_umask_limits_and_nice_of_its_own_shell(holder):
    machine = holder("umask 077; ulimit -Sn 300; ulimit -St 500; ulimit -Sc 0")
    wide = submit_in(machine, "umask 002; ulimit -Sn 777; ulimit -St 600", "--", "bash", "-c", WHAT_IT_HAS)
    narrow = submit_in(
        machine,
        f"umask 027; ulimit -Sn 9; ulimit -t 700; renice -n {nicer(7)} $$ >/dev/null",
        "--",
        "bash",
        "-c",
        WHAT_IT_HAS,
    )
    assert ended(machine, wide).split()[:4] == ["0002", str(NICE), "777", "600"]
    assert ended(machine, narrow).split()[:4] == ["0027", str(nicer(7)), "9", "700"]


def test_all_tasks_of_each_and_what_sbatch_submits_have_them_too(holder):
    machine = holder("umask 077; ulimit -Sn 300")
    script = "umask 002; ulimit -Sn 555"
    lines = machine.directory / "lines"
    lines.write_text("echo $(umask) $(ulimit -n)\n")
    answer = machine.run("sh", "-c", f'{script}; exec "$@"', "sh", machine.program, "each", lines)
    assert answer.status == 0 and log(machine, "2.1") == "0002 555\n"
    file = machine.directory / "job.sh"
    file.write_text(f"#!/bin/sh\n#SBATCH --output={machine.directory}/out\numask; ulimit -n\n")
    answer = machine.run("sh", "-c", f'{script}; exec "$@"', "sh", machine.program, "sbatch", "--wait", file)
    assert answer.status == 0, answer.err
    out = machine.directory / "out"
    assert out.read_text().split() == ["0002", "555"]
    assert out.stat().st_mode & 0o777 == 0o664


def test_the_files_of_jobs_stay_private(holder):
    machine = holder("umask 000")
    number = submit_in(machine, "umask 000", "--", "true")
    assert ended(machine, number) == ""
    home = machine.directory / "home/.local/state/berth/jobs"
    assert [path for path in home.rglob("*") if path.stat().st_mode & 0o077] == []


def test_a_runner_with_lower_hard_limits_runs_the_job_and_says_so(holder):
    machine = holder("ulimit -n 400")
    number = submit_in(machine, "ulimit -Sn 500", "--", "bash", "-c", "ulimit -n")
    text = ended(machine, number)
    assert len(text.splitlines()) == 2, text
    told, had = text.splitlines()
    assert had == "400"
    assert told.startswith(
        "berth: the limit on open files (ulimit -n) is 400, not 500 as in the shell that submitted the job: "
    )


@pytest.mark.skipif(nicer(5) == NICE, reason="needs a nice value below 19")
def test_a_runner_that_is_nicer_runs_the_job_and_says_so(open_machine, as_user):
    machine = open_machine
    home = machine.directory / "alice"
    home.mkdir()
    os.chown(home, ALICE, ALICE)
    machine.berth("list")
    alice = {"user": ALICE, "group": ALICE, "extra_groups": [], "env": {"HOME": home}, "cwd": "/"}
    submit_in(machine, f"renice -n {nicer(5)} $$ >/dev/null", "--rerun", "--", "sleep", "1000", **alice)
    number = submit_in(machine, "true", "--", "bash", "-c", "nice", **alice)
    assert machine.berth("wait", number, **alice).status == 0
    said, had = machine.berth("log", number, **alice).out.splitlines()
    assert had == str(nicer(5))
    assert said.startswith(f"berth: nice is {nicer(5)}, not {NICE} as in the shell")


def test_a_shell_that_allows_too_few_files_starts_no_runner(make_machine):
    machine = make_machine("1xH100")
    answer = machine.run(
        "bash",
        "-c",
        'ulimit -n 8; exec "$@"',
        "bash",
        machine.program,
        "submit",
        "--",
        "bash",
        "-c",
        "ulimit -n",
    )
    assert (answer.status, answer.out) == (0, "1\n")
    assert answer.err == (
        "berth: job 1 is kept, and waits until `berth jobs` can start a runner: this shell allows 8 open files "
        "(ulimit -Hn), and a runner of jobs needs 256\n"
    )
    jobs = machine.run("bash", "-c", 'ulimit -n 20; exec "$@"', "bash", machine.program, "jobs")
    assert jobs.status == 0 and "waiting" in jobs.out and "this shell allows 20 open files" in jobs.err
    lines = machine.directory / "lines"
    lines.write_text("true\n")
    each = machine.run("bash", "-c", 'ulimit -n 20; exec "$@"', "bash", machine.program, "each", lines)
    assert (each.status, each.err) == (
        1,
        "berth: this shell allows 20 open files (ulimit -Hn), and a runner of jobs needs 256\n",
    )
    second = submit(machine, "--", "true")
    assert second == "2"
    wait_for(machine, second, "ended")
    assert ended(machine, "1") == "8\n"


def test_a_job_of_an_older_version_runs_without_them(make_machine):
    machine = make_machine("1xH100")
    first = submit(machine, "--", "sleep", "1000")
    wait_for(machine, first, "running")
    # Until then no process has its lock, which is one of the record's file.
    older = submit(machine, "--after", first, "--", "bash", "-c", "umask; echo ran")
    (record,) = (machine.directory / "home/.local/state/berth/jobs").glob(f"*/{older}/job")
    lines = record.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(("umask=", "nice=", "limit="))]
    assert len(lines) - len(kept) == 12
    kept.insert(-1, "limit=of a later version\n")
    kept.insert(-1, "limit=sorcery=7\n")
    # The runner reads it at any time: whole, or as it was.
    fresh = record.with_name("older")
    fresh.write_text("".join(kept))
    fresh.rename(record)
    machine.berth("cancel", first)
    assert eventually(lambda: job(machine, older)["state"] == "ended")
    assert log(machine, older) == "0022\nran\n"
