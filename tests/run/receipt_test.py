"""What is kept of a run that has ended, and what its user is told of it."""

import json
import pathlib
import re
import signal
import time

import pytest
from clock import Clock
from jobs import eventually, has_told_energy
from lease_jobs import only_lease, waiting
from schemas import checked_document
from simulated_machine import DEADLINE_S
from submitted import log, submit, wait_for
from terminal import on_terminal

HOUR_S = 3600
# 100 W for an hour are 100 Wh.
POWERED = 'call_log = true\n[[device]]\nmodel = "A100"\ncount = 2\npower_w = 100\n'


def kept(machine, *words) -> list[dict]:
    answer = machine.berth("receipt", "--json", *words)
    assert answer.status == 0, answer.err
    return checked_document(answer.json, "receipt")["runs"]


def record(machine) -> pathlib.Path:
    """The file of this machine."""
    (file,) = (machine.directory / "home/.local/state/berth/receipts").iterdir()
    return file


def lasting(machine, *options, ahead=(0, HOUR_S), asked=has_told_energy, meanwhile=lambda: None):
    """A run during which the wall clock and the boot clock are set ahead by so much, once it is `asked`."""
    clock = Clock(machine)
    run = machine.start_berth(
        "run", *options, "--", "sh", "-c", "echo begun; read line", env=clock.env, stdin=-1
    )
    assert run.stdout.readline() == "begun\n"
    eventually(lambda: asked(machine))
    meanwhile()
    clock.set(*ahead)
    assert run.communicate("\n", timeout=DEADLINE_S)
    return run


def test_a_run_is_kept(machine):
    assert machine.berth("run", "-n", "2", "--", "sh", "-c", "exit 3").status == 3
    (run,) = kept(machine)
    assert run["ending"] == "badly" and run["exit_status"] == 3 and run["signal"] is None
    assert [device["label"] for device in run["devices"]] == ["0", "1"]
    assert run["job"] is None
    assert run["energy_mj"] is None, "so short a run is not asked about"
    assert record(machine).stat().st_mode & 0o777 == 0o600
    text = machine.berth("receipt", run["lease"][-6:]).out
    assert "exit status 3" in text and "NVIDIA H100" in text


def test_the_energy_is_what_the_counter_of_the_card_says(make_machine):
    machine = make_machine(POWERED)
    lasting(machine, "-n", "2", ahead=(0, 10 * HOUR_S))
    (run,) = kept(machine)
    assert 10 * HOUR_S * 1000 <= run["lasted_ms"] < (10 * HOUR_S + DEADLINE_S) * 1000
    assert run["driver_version"]
    # 2 x 100 W, for as long as it ran: but for a moment at its start, and a moment more at its end.
    # A hundredth of ten hours is more than all that a test may take.
    counted_mj = 2 * 100 * run["lasted_ms"]
    assert abs(run["energy_mj"] - counted_mj) <= counted_mj / 100
    assert re.search(r"energy +20\d\d Wh", machine.berth("receipt", run["lease"]).out)


@pytest.mark.parametrize(
    "meanwhile",
    [
        POWERED.replace(
            "power_w = 100", "power_w = 1"
        ),  # the counter goes back, as after a reload of the driver
        POWERED + 'unsupported = ["energy"]\n',
        POWERED.replace("count = 2", "count = 1"),  # of two cards one has gone
        "init_result = 999\n" + POWERED,
    ],
    ids=["back", "silent", "gone", "broken"],
)
def test_a_counter_that_says_nothing_makes_no_figure(make_machine, meanwhile):
    machine = make_machine(POWERED)
    run = lasting(machine, "-n", "2", meanwhile=lambda: machine.change(meanwhile))
    assert run.returncode == 0
    (told,) = kept(machine)
    assert told["energy_mj"] is None
    assert told["lasted_ms"] >= HOUR_S * 1000


def test_the_energy_of_a_share_is_not_known(make_machine):
    machine = make_machine(POWERED)
    # Five times as long as it takes until a whole card is asked.
    lasting(machine, "--memory", "1G", asked=lambda _: True, meanwhile=lambda: time.sleep(0.5))
    assert not has_told_energy(machine)
    (run,) = kept(machine)
    assert run["energy_mj"] is None and run["promised_bytes"] == 1 << 30


def test_a_clock_that_is_set_back_spoils_nothing(machine):
    lasting(machine, ahead=(-10 * HOUR_S, 30), asked=lambda _: True)
    (told,) = kept(machine)
    assert 30_000 <= told["lasted_ms"] < (30 + DEADLINE_S) * 1000
    assert told["waited_ms"] >= 0


def test_a_job_has_a_receipt_by_its_number(machine):
    number = submit(machine, "--", "true")
    machine.berth("wait", number)
    (run,) = kept(machine, number)
    assert run["job"] == number and run["ending"] == "well"
    array = submit(machine, "--array", "0-1", "--", "true")
    machine.berth("wait", array)
    assert len(kept(machine, array)) == 2
    assert [run["job"] for run in kept(machine, f"{array}.1")] == [f"{array}.1"]


def test_a_job_tells_its_energy(make_machine):
    machine = make_machine(POWERED)
    clock = Clock(machine)
    ready = machine.directory / "ready"
    go_on = machine.directory / "go"
    script = f"touch {ready}; until [ -e {go_on} ]; do sleep 0.02; done"
    number = submit(machine, "--", "sh", "-c", script, env=clock.env)
    eventually(ready.exists)
    assert "ENERGY" not in machine.berth("jobs").out
    eventually(lambda: has_told_energy(machine))
    clock.set(0, HOUR_S)
    go_on.touch()
    told = wait_for(machine, number, "ended")
    assert told["energy_mj"] >= 100 * (HOUR_S - DEADLINE_S) * 1000
    heads, line = machine.berth("jobs").out.splitlines()
    assert heads.split()[-2:] == ["ENERGY", "COMMAND"] and " Wh " in line


def test_alone_it_shows_a_line_for_each_program(machine):
    assert "no runs yet" in machine.berth("receipt").out
    script = machine.directory / "train.sh"
    script.write_text("exit 0\n")
    for words in (["sh", script, "1"], ["sh", script, "2"], ["true"]):
        assert machine.berth("run", "--", *words).status == 0
    heads, *lines = machine.berth("receipt").out.splitlines()
    assert heads.split() == ["PROGRAM", "RUNS", "FAILED", "TIME", "PEAK", "ENERGY", "LAST", "COMMAND"]
    assert [line.split()[:3] for line in lines] == [["true", "1", "0"], ["train.sh", "2", "0"]]


def test_the_command_of_the_page_finds_the_newest_of_several_runs(machine):
    for status in (3, 4):
        machine.berth("run", "--", "sh", "-c", f"exit {status}")
    page = (pathlib.Path(__file__).parents[2] / "docs/tasks/receipt.md").read_text()
    (line,) = (line for line in page.splitlines() if line.startswith("lease=$("))
    script = f'berth() {{ {machine.program} "$@"; }}; {line}; berth receipt "$lease"'
    answer = machine.run("bash", "-c", script)
    assert answer.status == 0, answer.err
    assert answer.out.count("ended") == 1 and "exit status 4" in answer.out


def test_of_many_runs_the_last_are_shown_and_all_of_them_in_a_line(machine):
    script = machine.directory / "train.sh"
    script.write_text('exit "$1"\n')
    for status in range(5):
        assert machine.berth("run", "--", "sh", script, str(status)).status == status
    shown = machine.berth("receipt", "train.sh").out
    assert re.findall("^ended .*exit status (.)$", shown, re.M) == ["2", "3", "4"]
    heads, line, rest = shown.splitlines()[-3:]
    assert heads.split()[:3] == ["PROGRAM", "RUNS", "FAILED"] and line.split()[:3] == ["train.sh", "5", "4"]
    assert rest == "the last 3 of 5 runs are shown in full; --all shows all of them"
    for words in (["train.sh"], []):
        every = machine.berth("receipt", "--all", *words).out
        assert every.count("\nended ") == 5 and "RUNS" not in every and "--all" not in every
    assert len(kept(machine, "train.sh")) == 5, "a program reads all of them"
    for words, named in ((["--last"], "leave out --all"), (["--forget", "train.sh"], "--forget and --all")):
        answer = machine.berth("receipt", "--all", *words)
        assert answer.status == 2 and named in answer.err
    assert len(kept(machine)) == 5


def test_what_is_forgotten_is_gone(machine):
    for words in (["true"], ["true"], ["false"]):
        machine.berth("run", "--", *words)
    assert machine.berth("receipt", "--forget", "true").out == "2 runs forgotten\n"
    assert [run["program"] for run in kept(machine)] == ["false"]
    assert machine.berth("receipt", "--forget", "true").status == 1
    assert machine.berth("receipt", "--forget").out == "1 run forgotten\n"
    assert kept(machine) == []


def test_it_is_told_on_a_terminal_and_never_in_a_pipe(machine):
    status, text = on_terminal(machine, "run", "--", "sh", "-c", "exit 3")
    assert status == 3
    assert re.search(r"^berth: ran \d+ m?s on GPU 0$", text, re.M)
    assert "ran" not in on_terminal(machine, "run", "-q", "--", "true")[1]
    assert machine.berth("run", "--", "true").err == ""
    assert "ran" not in machine.berth("run", "-v", "--", "true").err


def test_a_file_is_written_where_one_is_named(machine):
    file = machine.directory / "receipt.json"
    assert machine.berth("run", "--", "true", env={"BERTH_RECEIPT": file}).status == 0
    (run,) = checked_document(json.loads(file.read_text()), "receipt")["runs"]
    assert run == kept(machine)[0]
    answer = machine.berth("run", "--", "true", env={"BERTH_RECEIPT": "/no/such/folder/file"})
    assert answer.status == 0
    assert "the receipt is not written to /no/such/folder/file (BERTH_RECEIPT)" in answer.err


def test_a_run_that_is_killed_has_a_receipt(machine):
    assert machine.berth("run", "--", "sh", "-c", "kill -SEGV $$").status == -signal.SIGSEGV
    (run,) = kept(machine)
    assert run["signal"] == signal.SIGSEGV and run["exit_status"] is None and run["ending"] == "badly"


@pytest.mark.parametrize("home", ["missing", "file", "none"])
def test_a_home_that_takes_nothing_changes_nothing(machine, home):
    env = {"HOME": machine.directory / "nowhere"}
    if home == "file":
        env["HOME"].touch()
    if home == "none":
        env["HOME"] = None
    answer = machine.berth("run", "--", "sh", "-c", "exit 3", env=env)
    assert (answer.status, answer.err) == (3, "")


def test_a_home_that_does_not_answer_holds_nobody_up(machine):
    env = {"LD_PRELOAD": machine.build / "slow_home.so", "SLOW_HOME": machine.directory / "home"}
    assert machine.berth("run", "--", "sh", "-c", "exit 3", env=env).status == 3
    assert kept(machine) == []


@pytest.mark.parametrize("holder", ["claim", "job"])
def test_a_home_that_does_not_answer_keeps_no_gpu_from_the_next(make_machine, holder):
    machine = make_machine('[[device]]\nmodel = "H100"\n')
    home = machine.directory / "home"
    env = {"LD_PRELOAD": machine.build / "slow_home.so", "SLOW_HOME": home}

    def handed_over_s() -> float:
        """From the end of what holds the GPU to the start of the next."""
        go = machine.directory / "go"
        go.unlink(missing_ok=True)
        script = f"while [ ! -e {go} ]; do sleep 0.01; done; date +%s.%N"
        if holder == "job":
            number = submit(machine, "--", "sh", "-c", script, env=env)
            wait_for(machine, number, "running")
        else:
            assert machine.berth("claim", env=env).status == 0
        following = machine.start_berth("run", "--", "date", "+%s.%N")
        eventually(lambda: len(waiting(machine)) == 1)
        if holder == "job":
            go.touch()
            begun = float(following.communicate(timeout=DEADLINE_S)[0])
            wait_for(machine, number, "ended")
            ended = float(log(machine, number))
        else:
            ended = time.time()
            assert machine.berth("release", only_lease(machine)).status == 0
            begun = float(following.communicate(timeout=DEADLINE_S)[0])
        return begun - ended

    # A slow machine takes its time too. Whoever waits for the home never takes less than a second.
    assert any(handed_over_s() < 1 for _ in range(10))
