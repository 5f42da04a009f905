"""A job's number and its name mean it wherever something is named."""

import getpass
import re

import pexpect
import pytest
from jobs import DEADLINE_S, eventually, queue, waiter
from submitted import fill, job, log, submit, wait_for


@pytest.fixture
def one_that_runs(make_machine):
    machine = make_machine("2xH100")
    number = submit(machine, "-J", "train", "--time", "1h", "--", "sleep", "1000")
    wait_for(machine, number, "running")
    return machine, number


@pytest.mark.parametrize("by_name", [False, True])
def test_a_running_job_is_extended_and_released_by_its_number_or_name(one_that_runs, by_name):
    machine, number = one_that_runs
    named = "train" if by_name else number
    answer = machine.berth("extend", named, "1h")
    assert answer.status == 0 and answer.out.startswith(f"the lease of job {number} now ends at "), answer.err
    (lease,) = machine.berth("list", "--json").json["leases"]
    assert lease["time_s"] == 7200
    answer = machine.berth("release", named)
    assert answer.out == f"ended the lease of job {number} of root: sleep\n"
    eventually(lambda: job(machine, number)["state"] not in ("running", "waiting"))
    again = machine.berth("release", named)
    assert again.status == 1 and f"job {number} has no GPUs now, it is " in again.err


def test_of_several_tasks_that_run_one_is_to_be_named(make_machine):
    machine = make_machine("2xH100")
    number = submit(machine, "--array", "0-1", "--time", "1h", "--", "sleep", "1000")
    for index in (0, 1):
        eventually(lambda index=index: job(machine, f"{number}.{index}")["state"] == "running")
    answer = machine.berth("release", number)
    assert answer.status == 2
    assert f"several tasks of job {number} run: name one ({number}.7)" in answer.err
    assert machine.berth("release", f"{number}.1").out.startswith(
        f"ended the lease of job {number}.1 of root"
    )


def test_a_name_means_the_job_that_is_not_over_and_else_the_last(make_machine):
    machine = make_machine("1xH100")
    old = submit(machine, "-J", "eval", "--", "echo", "old")
    wait_for(machine, old, "ended")
    assert machine.berth("log", "eval").out == "old\n"
    first, second = (submit(machine, "-J", "eval", "--", "sleep", "1000") for _ in range(2))
    answer = machine.berth("cancel", "eval")
    assert answer.status == 2
    assert f"2 jobs of yours are called eval: name one by its number ({first}, {second})" in answer.err
    assert machine.berth("cancel", second).status == 0
    assert machine.berth("cancel", "eval").out == f"cancelled job {first}\n"
    # None of them lives: the last one.
    assert f"job {second} was cancelled" in machine.berth("wait", "eval").err


def test_what_became_of_each_is_said_and_one_that_is_none_keeps_no_other(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    number = submit(machine, "--", "true")
    waiting = waiter(machine)
    waiters = machine.berth("queue", "--json").json["waiters"]
    (request,) = [each["id"] for each in waiters if each["pid"] == waiting.process.pid]
    answer = machine.berth("cancel", "99", number, request, holder)
    assert answer.status == 1
    assert answer.err == "berth: there is no job 99 of yours on this machine (`berth jobs`)\n"
    lines = answer.out.splitlines()
    assert lines[0] == f"cancelled job {number}" and lines[1].startswith("cancelled the request ")
    assert lines[2] == f"cancelled job {holder}"
    assert job(machine, holder)["state"] == "cancelled"


def test_all_is_what_is_ones_own_and_asked_for_on_a_terminal_alone(make_machine):
    machine = make_machine("1xH100")
    fill(machine, 1)
    submit(machine, "--", "true")
    waiter(machine)
    eventually(lambda: len(queue(machine)) == 2)
    answer = machine.berth("cancel", "--all")
    assert answer.status == 2
    assert "--all would cancel 2 jobs and 1 other request of yours: add --yes" in answer.err
    assert len(queue(machine)) == 2
    terminal = pexpect.spawn(str(machine.program), ["cancel", "--all"], env=machine.env, timeout=DEADLINE_S)
    terminal.expect_exact("cancel 2 jobs and 1 other request of yours? [y/N]")
    terminal.send("n\n")
    terminal.expect_exact("nothing is cancelled")
    terminal.wait()
    assert len(queue(machine)) == 2
    answer = machine.berth("cancel", "--all", "--yes")
    assert (answer.status, answer.out.count("cancelled")) == (0, 3)
    eventually(lambda: machine.berth("queue", "--json").json["waiters"] == [])
    assert machine.berth("cancel", "--all").out == "nothing of yours waits or runs as a job\n"


def test_nothing_is_cancelled_unless_it_is_said_what(make_machine):
    answer = make_machine("1xH100").berth("cancel")
    assert answer.status == 2 and "cancel what? `berth jobs` has your jobs" in answer.err


@pytest.mark.parametrize(
    "lines, shown", [("2", "8\n9\n"), ("1", "9\n"), ("99", "".join(f"{n}\n" for n in range(10)))]
)
def test_the_end_of_a_log_is_shown(make_machine, lines, shown):
    machine = make_machine("1xH100")
    number = submit(machine, "--", "seq", "0", "9")
    wait_for(machine, number, "ended")
    assert machine.berth("log", "--tail", lines, number).out == shown
    assert machine.berth("log", "-n", lines, number).out == shown


def test_the_end_of_a_long_log_and_of_a_line_that_is_not_whole(make_machine):
    machine = make_machine("1xH100")
    number = submit(machine, "--", "sh", "-c", "seq 0 99999; printf end")
    wait_for(machine, number, "ended")
    assert machine.berth("log", "--tail", "2", number).out == "99999\nend"
    assert machine.berth("log", "--tail", "30000", number).out.startswith("70001\n")


def test_output_goes_into_a_file_of_its_own(make_machine):
    machine = make_machine("1xH100")
    number = submit(
        machine, "--array", "0-1", "-o", f"{machine.directory}/out-%A-%a", "--", "echo", "{index}"
    )
    for index in (0, 1):
        wait_for(machine, f"{number}.{index}", "ended")
        assert (machine.directory / f"out-{number}-{index}").read_text() == f"{index}\n"
    assert f"what the job prints is in {machine.directory}/out-{number}-0" in log(machine, f"{number}.0")
    for words, told in (
        (["-o", "%q"], "Berth knows %j, %A, %a, %x, %u and %% in the name of a file"),
        (["-o", "x", "--tty"], "--tty and --output exclude each other"),
    ):
        answer = machine.berth("submit", *words, "--", "true")
        assert answer.status == 2 and told in answer.err


@pytest.mark.parametrize(
    "words, told",
    [
        (["--exclusive"], "a GPU is yours alone unless you ask for a part"),
        (["--constraint", "a100"], "--name A100 wants a model"),
        (["-w", "gpu1"], "--anywhere --host HOST starts it on that host of the lab"),
        (["--pty"], "the command has your terminal"),
        (["--signal=USR1"], "--signal is Slurm's: at the end of its time a job gets SIGTERM"),
        (["--hold"], "--hold is Slurm's: write berth submit --hold"),
        (["--delay", "1h"], "`berth submit --at 2h` starts it later"),
        (["--depends-on", "3"], "`berth submit --after 12` waits for job 12"),
        (["--label", "x"], "--note TEXT is shown to all beside the lease"),
    ],
)
def test_an_option_of_another_tool_is_an_error_with_our_word(make_machine, words, told):
    answer = make_machine("1xH100").berth("run", *words, "--", "echo", "ran")
    assert (answer.status, answer.out) == (2, "") and told in answer.err


def test_where_there_is_such_an_option_it_is_named(make_machine):
    machine = make_machine("1xH100")
    for words, meant in ((["--delay", "1h"], "--at"), (["--depends-on", "3"], "--after")):
        assert f"did you mean {meant}?" in machine.berth("submit", *words, "--", "true").err


@pytest.mark.parametrize("by_name", [False, True])
def test_what_is_known_of_a_running_job_is_told_by_its_number_or_name(one_that_runs, by_name):
    machine, number = one_that_runs
    named = "train" if by_name else number
    answer = machine.berth("receipt", named)
    assert answer.status == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0] == f"run       job {number}, which still runs"
    assert lines[1] == "command   sleep 1000"
    assert re.fullmatch(r"started   \d\d:\d\d", lines[2]) and lines[3].endswith(" so far")
    assert lines[4] in ("GPUs      0", "GPUs      1")
    assert lines[5] == f"The rest is known when it ends: berth wait {number}"
    assert machine.berth("receipt", "--json", named).json["runs"] == []
    assert machine.berth("cancel", number).status == 0
    ended = machine.berth("receipt", named)
    assert ended.out.startswith(f"run       job {number} (lease "), ended.err
    (run,) = machine.berth("receipt", "--json", named).json["runs"]
    assert run["job"] == number


def test_a_job_that_has_not_run_has_no_receipt_and_its_state_is_told(make_machine):
    machine = make_machine("1xH100")
    fill(machine, 1)
    number = submit(machine, "-J", "later", "--", "true")
    wait_for(machine, number, "waiting")
    for named in (number, "later"):
        answer = machine.berth("receipt", named)
        assert answer.status == 1
        assert f"job {number} has no receipt: it is " in answer.err
        assert f"`berth jobs {number}` shows it" in answer.err
    assert 'no run of yours is job, lease or program "other"' in machine.berth("receipt", "other").err


def test_of_a_job_in_line_jobs_has_the_start_that_the_queue_has(make_machine):
    machine = make_machine("1xH100")
    submit(machine, "--time", "2h", "--", "sleep", "1000")
    number = submit(machine, "--", "true")
    eventually(lambda: job(machine, number)["in_line"])

    def start_of(number: str) -> int | None:
        listed = machine.berth("jobs", "--json").json["jobs"]
        return next(each["starts_at_s"] for each in listed if each["id"] == number)

    (waits,) = machine.berth("queue", "--json").json["waiters"]
    assert start_of(number) == waits["starts_at_s"] is not None
    # Programs ask for one job again and again, and that wakes no driver.
    assert job(machine, number)["starts_at_s"] is None
    queued = machine.berth("queue").out
    (row,) = [
        line for line in machine.berth("jobs").out.splitlines() if line.lstrip().startswith(f"{number} ")
    ]
    (start,) = re.findall(r"~(\d\d:\d\d)", row)
    assert start in queued
    # Of one whose start nobody knows there is none.
    last = submit(machine, "-n", "1", "--memory", "10G", "--", "true")
    eventually(lambda: job(machine, last)["in_line"])
    assert start_of(last) is None


def test_a_job_that_is_submitted_held_starts_when_it_is_let_go(make_machine):
    machine = make_machine("1xH100")
    for words in (["submit"], ["sbatch", "--gpus=1", "--parsable", "--wrap"]):
        command = ["--", "echo", "ran"] if words == ["submit"] else ["echo ran"]
        # A runner is there, and would start it at once.
        holder = submit(machine, "--", "sleep", "1000")
        wait_for(machine, holder, "running")
        answer = machine.berth(*words[:1], "--hold", *words[1:], *command)
        assert answer.status == 0, answer.err
        number = answer.out.strip()
        told = job(machine, number)
        assert (told["state"], told["held"], told["in_line"]) == ("waiting", True, False)
        assert machine.berth("cancel", holder).status == 0
        later = submit(machine, "--", "true")
        wait_for(machine, later, "ended")
        assert job(machine, number)["held"] and job(machine, number)["starts"] == 0
        assert machine.berth("edit", number, "--no-hold").status == 0
        wait_for(machine, number, "ended")
        assert log(machine, number) == "ran\n"


def test_jobs_are_ones_own_whatever_user_is_named(make_machine):
    machine = make_machine("1xH100")
    submit(machine, "--", "true")
    me = getpass.getuser()
    for words in (["-u", me], ["--user", me], [f"--user={me}"]):
        assert "COMMAND" in machine.berth("jobs", *words).out
    answer = machine.berth("jobs", "-u", "nobody-else")
    assert answer.status == 2
    assert "each user sees their own jobs alone; `berth list -l` shows what others have leased" in answer.err


def test_what_is_forgotten_is_named(make_machine):
    machine = make_machine("1xH100")
    numbers = [submit(machine, "--", "true") for _ in range(2)]
    for number in numbers:
        wait_for(machine, number, "ended")
    assert machine.berth("forget", *numbers).out == "forgot job 1\nforgot job 2\n"
