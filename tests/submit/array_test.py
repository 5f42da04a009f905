"""Arrays, parameters and scripts."""

import subprocess

import pytest
from jobs import eventually
from lab import DEADLINE_S
from schemas import checked
from storm import processes
from submitted import fill, job, kill, log, spool, submit, told


def test_each_task_of_an_array_runs_once_with_its_index(lab):
    script = 'echo "$BERTH_ARRAY_INDEX $BERTH_JOB $1"; test $BERTH_ARRAY_INDEX != 7'
    number = submit(lab, "-J", "sweep", "--array", "2,5-8", "--", "sh", "-c", script, "sh", "i={index}")
    assert lab.berth("wait", number).status == 1
    assert log(lab, f"{number}.5") == "5 1.5 i=5\n"
    assert log(lab, number) == "".join(f"==> 1.{i} <==\n{i} 1.{i} i={i}\n" for i in (2, 5, 6, 7, 8))
    (found,) = checked(lab.berth("jobs", "--json"), "jobs")["jobs"]
    assert found["tasks"] == dict(waiting=0, running=0, done=4, failed=1, cancelled=0, interrupted=0)
    assert (found["state"], found["exit_status"], found["starts"]) == ("ended", 1, 5)
    tasks = checked(lab.berth("jobs", "--json", number), "jobs")["jobs"]
    assert [(task["id"], task["exit_status"]) for task in tasks] == [
        (f"1.{i}", 1 if i == 7 else 0) for i in (2, 5, 6, 7, 8)
    ]
    assert "4 done, 1 failed" in lab.berth("jobs").out
    assert lab.berth("wait", f"{number}.6").status == 0


def test_no_more_tasks_run_at_once_than_the_array_may(lab):
    mark = lab.directory / "mark"
    mark.mkdir()
    # A directory is made by one at a time: more than two at once would be seen.
    script = 'cd "$1" && { mkdir a 2>/dev/null && x=a || { mkdir b && x=b; }; } && sleep 0.02 && rmdir $x'
    number = submit(lab, "--array", "0-19%2", "--", "sh", "-c", script, "sh", mark)
    assert lab.berth("wait", number, timeout=2 * DEADLINE_S).status == 0


def test_parameters_are_crossed(lab):
    number = submit(
        lab, "--param", "lr=0.1,0.01", "--param", "seed=1,2", "--", "sh", "-c", "echo {lr} $BERTH_PARAM_seed"
    )
    assert lab.berth("wait", number).status == 0
    assert [log(lab, f"{number}.{i}") for i in range(4)] == ["0.1 1\n", "0.1 2\n", "0.01 1\n", "0.01 2\n"]


@pytest.mark.parametrize(
    "words",
    [
        ("--array", "3-1"),
        ("--array", "0-9%0"),
        ("--array", "0-1000000"),
        ("--param", "lr"),
        ("--param", "ids=1"),
        ("--param", "x=1,,2"),
        ("--param", "x=1,2,"),
        ("--array", "0-9", "--param", "lr=1"),
        ("--at-once", "0"),
    ],
)
def test_an_array_that_makes_no_sense_is_refused(lab, words):
    assert lab.berth("submit", *words, "--", "true").status == 2
    assert told(lab) == []


def test_an_array_is_cancelled_in_the_middle(make_lab):
    lab = make_lab("2xH100")
    script = f"echo $BERTH_ARRAY_INDEX >> {lab.directory}/ran; exec sleep 1000"
    number = submit(lab, "--array", "0-9", "--", "sh", "-c", script)
    eventually(lambda: job(lab, f"{number}.1")["state"] == "running" and job(lab, f"{number}.2")["in_line"])
    # A task is running before its command has begun.
    ran = lab.directory / "ran"
    eventually(lambda: ran.exists() and len(ran.read_text().split()) == 2)
    assert lab.berth("cancel", number).out == f"cancelled job {number}\n"
    assert {task["state"] for task in told(lab, number)} == {"cancelled"}
    eventually(lambda: processes(lab)["run"] == [])
    assert lab.berth("wait", submit(lab, "--", "true")).status == 0
    assert sorted(ran.read_text().split()) == ["0", "1"]


def test_one_task_is_cancelled_and_the_others_run(make_lab):
    lab = make_lab("1xH100")
    (holder,) = fill(lab, 1)
    number = submit(lab, "--array", "0-2", "--", "true")
    assert lab.berth("cancel", f"{number}.1").status == 0
    lab.berth("cancel", holder)
    answer = lab.berth("wait", number)
    assert (answer.status, answer.err) == (1, f"berth: job {number}.1 was cancelled\n")
    assert [task["state"] for task in told(lab, number)] == ["ended", "cancelled", "ended"]


def test_an_array_goes_on_where_it_was_when_all_of_it_was_killed(make_lab):
    lab = make_lab("1xH100")
    script = (
        f"echo $BERTH_ARRAY_INDEX >> {lab.directory}/ran; test $BERTH_ARRAY_INDEX != 1 || exec sleep 1000"
    )
    number = submit(lab, "--array", "0-4", "--", "sh", "-c", script)
    eventually(
        lambda: "1\n" in ((lab.directory / "ran").read_text() if (lab.directory / "ran").exists() else "")
    )
    kill(lab, "runner")
    kill(lab, "run", "job")
    assert lab.berth("wait", number).err == f"berth: job {number}.1 was interrupted\n"
    assert (lab.directory / "ran").read_text().split() == ["0", "1", "2", "3", "4"]


def test_an_array_of_10000_is_one_file_and_one_process_in_line(make_lab):
    lab = make_lab("1xH100")
    fill(lab, 1)
    number = submit(lab, "--array", "0-9999", "--", "true")
    eventually(lambda: job(lab, f"{number}.0")["in_line"])
    assert len(list((spool(lab) / number).iterdir())) < 6
    assert len(processes(lab)["run"]) == 2
    assert lab.berth("cancel", number).status == 0


# Scripts

SCRIPT = """#!/bin/sh
#BERTH -J night --array 0-1   # two of them
#BERTH --note "for the paper"
# a remark
echo "$1 $BERTH_ARRAY_INDEX"
#BERTH --array 0-9
"""


def test_a_script_says_its_options_itself_and_is_kept_as_it_is(make_lab):
    lab = make_lab("1xH100")
    (holder,) = fill(lab, 1)
    script = lab.directory / "night.sh"
    script.write_text(SCRIPT)
    number = submit(lab, script, "now")
    script.write_text("#!/bin/sh\nexit 1\n")
    lab.berth("cancel", holder)
    assert lab.berth("wait", number).status == 0
    tasks = told(lab, number)
    assert [task["name"] for task in tasks] == ["night"] * 2
    assert tasks[0]["request"] == ["--note=for the paper"]
    assert log(lab, f"{number}.1") == "now 1\n"


def test_the_command_line_says_more_than_the_script(lab):
    script = lab.directory / "night.sh"
    script.write_text(SCRIPT)
    number = submit(lab, "-J", "day", "--array", "5", script, "now")
    assert lab.berth("wait", number).status == 0
    assert [(task["id"], task["name"]) for task in told(lab, number)] == [(f"{number}.5", "day")]


def test_a_script_comes_from_the_input(lab):
    number = lab.berth("submit", "-", "now", input=SCRIPT).out.strip()
    assert lab.berth("wait", number).status == 0
    assert log(lab, f"{number}.0") == "now 0\n"
    answer = lab.berth("submit", "-", input="echo no\n")
    assert answer.status == 2 and "#!/bin/bash" in answer.err
    assert lab.berth("submit", "-", stdin=subprocess.DEVNULL).status == 2


def test_what_is_wrong_in_a_script_is_told_with_its_line(lab):
    answer = lab.berth("submit", "-", input='#!/bin/sh\n#BERTH -J "a\n')
    assert answer.status == 2 and "the script on the input, line 2: a quote does not end" in answer.err
    answer = lab.berth("submit", "-", input="#!/bin/sh\n#BERTH --nonsense\n")
    assert answer.status == 2 and "--nonsense" in answer.err


def test_a_program_or_a_script_without_such_lines_is_a_command(lab):
    script = lab.directory / "plain.sh"
    script.write_text("#!/bin/sh\necho plain $0\n")
    script.chmod(0o755)
    number = submit(lab, script)
    assert lab.berth("wait", number).status == 0
    assert log(lab, number) == f"plain {script}\n"


@pytest.mark.parametrize(
    "line, word", [("--gpu 2", "unknown option '--gpu'"), ("-n x", "whole number"), ("-n 1 python", "python")]
)
def test_a_line_of_a_script_that_is_wrong_is_named_with_the_script(lab, line, word):
    script = lab.directory / "night.sh"
    script.write_text(f"#!/bin/sh\n#BERTH -J night\n#BERTH {line}\n")
    answer = lab.berth("submit", script)
    assert answer.status == 2 and f"{script}, line 3: " in answer.err and word in answer.err
