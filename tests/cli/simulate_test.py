"""`berth simulate`: what becomes of jobs under these rules and under others, and what it says of wrong tables."""

import os
import pty
import re
import signal
import subprocess

import pytest
from schemas import checked
from terminal import on_terminal, plain

# A job of all GPUs waits for the first; whether a later small one fills the hole is a matter of the
# rules.
JOBS = """arrival,devices,duration,time,user
2026-11-20 14:00:00,1,100,100,ann
2026-11-20 14:00:01,2,50,50,bob
2026-11-20 14:00:02,1,90,98,carol
"""
FIRST = 1_795_183_200


@pytest.fixture
def machine(make_machine):
    machine = make_machine("2xH100")
    (machine.directory / "site.toml").write_text("backfill = true\n")
    return machine


@pytest.fixture
def jobs(tmp_path):
    file = tmp_path / "jobs.csv"
    file.write_text(JOBS)
    return file


def starts(policy) -> list:
    return [start - FIRST for start in policy["starts_s"]]


def test_it_says_who_waits_how_long_under_these_rules(machine, jobs):
    answer = machine.berth("simulate", "--jobs", jobs)
    assert (answer.status, answer.err) == (0, "")
    head, names, *lines = answer.out.splitlines()
    assert head == "3 jobs over 2.5 min on 2 GPUs"
    assert names.split() == ["WAIT", "OF", "JOBS", "MEAN", "MEDIAN", "99", "%"]
    assert [line.split()[:2] for line in lines[:6]] == [
        ["all", "jobs"], ["1", "GPU"], ["2", "GPUs"], ["ann", "1"], ["bob", "1"], ["carol", "1"]]  # fmt: skip
    assert lines[4].split() == ["bob", "1", "1.6", "min", "1.6", "min", "1.6", "min"]


def test_it_compares_other_rules_with_these(machine, jobs):
    document = checked(machine.berth("simulate", "--jobs", jobs, "--no-backfill", "--json"), "simulate")
    present, other = document["policies"]
    assert (starts(present), starts(other)) == ([0, 100, 2], [0, 100, 150])
    assert (present["backfill"], other["backfill"]) == (True, False)
    (carol,) = [row for row in document["waits"] if row["user"] == "carol"]
    assert (carol["sooner"], carol["later"]) == (0, 1)
    assert (carol["present"]["mean_s"], carol["other"]["mean_s"]) == (0, 148)
    assert (
        "then: no job starts before an earlier one"
        in machine.berth("simulate", "--jobs", jobs, "--no-backfill").out
    )


def test_the_fair_order_lets_the_user_who_has_fewer_gpus_start_first(machine, jobs):
    jobs.write_text("arrival,devices,duration,user\n0,2,100,ann\n1,2,100,ann\n2,2,100,ann\n3,2,100,bob\n")
    document = checked(machine.berth("simulate", "--jobs", jobs, "--order", "fair", "--json"), "simulate")
    present, other = document["policies"]
    assert present["starts_s"] == [0, 100, 200, 300]
    assert other["starts_s"] == [0, 200, 300, 100]
    assert (present["order"], other["order"]) == ("fifo", "fair")
    refused = machine.berth("simulate", "--jobs", jobs, "--order", "random")
    assert refused.status == 2 and 'must be "fifo" or "fair"' in refused.err


def test_a_time_that_is_assumed_opens_and_closes_holes(machine, jobs):
    jobs.write_text(JOBS.replace(",98,", ",,"))
    words = ["simulate", "--jobs", jobs, "--json", "--assumed-time"]
    assert starts(checked(machine.berth(*words, "98s"), "simulate")["policies"][1]) == [0, 100, 2]
    assert starts(checked(machine.berth(*words, "99s"), "simulate")["policies"][1]) == [0, 100, 150]
    assert starts(checked(machine.berth(*words, "2h"), "simulate")["policies"][0]) == [0, 100, 150]


def test_the_same_rules_are_compared_with_nothing(machine, jobs):
    document = checked(
        machine.berth("simulate", "--jobs", jobs, "--assumed-time", "1h", "--json"), "simulate"
    )
    assert len(document["policies"]) == 1 and document["waits"][0]["other"] is None


def test_other_machines_need_no_driver(make_machine, jobs):
    without = make_machine("2xH100")
    jobs.write_text("arrival,devices,duration\n0,16,60\n")
    environment = without.env | {"LD_LIBRARY_PATH": "/nonexistent", "PATH": "/usr/bin:/bin"}
    words = [str(without.program), "simulate", "--jobs", str(jobs)]
    done = subprocess.run([*words, "--devices", "16"], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "on 16 GPUs" in done.stdout
    answer = without.berth("simulate", "--jobs", jobs)
    assert answer.status == 1 and "it wants 16 of 2; --devices says how many there are" in answer.err


def test_a_pipe_is_read(machine, jobs):
    words = [str(machine.program), "simulate", "--jobs", "-"]
    done = subprocess.run(words, env=machine.env, input=JOBS, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == machine.berth("simulate", "--jobs", jobs).out
    done = subprocess.run(words, env=machine.env, input="", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "berth: standard input: it has no jobs\n")


def test_on_a_terminal_it_fits(machine, jobs):
    jobs.write_text(JOBS.replace("carol", "c" * 60))
    status, text = on_terminal(machine, "simulate", "--jobs", str(jobs), "--no-backfill", columns=80)
    assert status == 0
    assert max(len(line) for line in plain(text).splitlines()) <= 80


def test_a_long_replay_shows_how_far_it_is_on_a_terminal_alone(machine, jobs):
    # Each waits for all before it: nobody waits for the end of that.
    count = 200_000
    jobs.write_text("arrival,devices,duration\n" + "".join(f"{at},1,1000\n" for at in range(count)))
    ours, theirs = pty.openpty()
    words = [str(machine.program), "simulate", "--jobs", str(jobs), "--devices", "1"]
    process = subprocess.Popen(words, env=machine.env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while f" of {count}".encode() not in shown:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    assert process.wait() == -signal.SIGINT
    os.close(ours)
    assert re.match(rb"\r\x1b\[K\[=* +\] \d+ of 200000", shown)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("5,1,0,,", ':3: duration: "0" must be from 1 s to 3650 d'),
        ("5,1,-60,,", ':3: duration: "-60" is not a time'),
        ("5,1,nan,,", ':3: duration: "nan" is not a time'),
        ("5,1,1000000000h,,", ':3: duration: "1000000000h" must be from 1 s to 3650 d'),
        ("5,1,60,-1,", ':3: time: "-1" is not a time'),
        ("5,3,60,,", ":3: devices: it wants 3 of 2; --devices says how many there are"),
        ("5,1,60,,\n4,1,60,,", ":4: arrival: it comes before the job above it; sort the lines by arrival"),
        ("5,1,\x1b[31m,,", ':3: duration: "\\x1b[31m" is not a time'),
        ("5," + "9" * 5000 + ",60,,", ':3: devices: "9'),
    ],
)
def test_a_wrong_line_is_named(machine, jobs, line, said):
    jobs.write_text(f"arrival,devices,duration,time,user\n0,1,60,,ann\n{line}\n")
    answer = machine.berth("simulate", "--jobs", jobs)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.startswith(f"berth: {jobs}{said}") and answer.err.count("\n") == 1
    assert len(answer.err) < 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which jobs? Name a file with --jobs FILE"),
        (["jobs.csv"], "unexpected argument 'jobs.csv': `berth simulate` takes options only"),
        (["--jobs", "x", "--devices", "0"], "--devices 0: "),
        (["--jobs", "x", "--devices", "4000000000"], "--devices 4000000000: must be at most 4096"),
        (["--jobs", "x", "--assumed-time", "0"], "--assumed-time 0: must be from 1s to 3650d"),
        (["--jobs", "x", "--assumed-time", "1000000000h"], "--assumed-time 1000000000h: must be from 1s"),
        (["--jobs", "x", "--assumed-time", "-1h"], "--assumed-time -1h: "),
    ],
)
def test_wrong_words_are_2(machine, words, said):
    answer = machine.berth("simulate", *words)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"berth: {said}")


def test_a_file_that_cannot_be_read_is_said_to_be(machine, tmp_path):
    for path, why in ((tmp_path / "none.csv", "No such file"), (tmp_path, "Is a directory")):
        answer = machine.berth("simulate", "--jobs", path)
        assert (
            (answer.status, answer.out) == (1, "") and f"berth: {path}: " in answer.err and why in answer.err
        )
    huge = tmp_path / "huge.csv"
    os.truncate(os.open(huge, os.O_CREAT | os.O_RDWR), 1 << 30)
    assert "is longer than 64 MiB" in machine.berth("simulate", "--jobs", huge).err


def test_it_ends_where_a_job_lasts_longer_than_its_earlier_runs(machine, tmp_path):
    file = tmp_path / "runs.csv"
    rows = ["0,1,100s,ada,train", "200,1,2h,ada,train", "300,2,1h,bob,eval"]
    file.write_text("\n".join(["arrival,devices,duration,user,program", *rows]) + "\n")
    document = checked(machine.berth("simulate", "--jobs", file, "--expect", "runs", "--json"), "simulate")
    assert document["policies"][1]["starts_s"] == [0, 200, 200 + 2 * 3600]
