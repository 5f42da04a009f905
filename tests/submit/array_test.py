"""Arrays, parameters and scripts."""

import subprocess

from jobs import eventually
from schemas import checked
from storm import processes
from submitted import fill, job, kill, log, spool, submit, told


def test_each_task_of_an_array_runs_once_with_its_index(machine):
    script = 'echo "$BERTH_ARRAY_INDEX $BERTH_JOB $1"; test $BERTH_ARRAY_INDEX != 7'
    number = submit(machine, "-J", "sweep", "--array", "2,5-8", "--", "sh", "-c", script, "sh", "i={index}")
    assert machine.berth("wait", number).status == 1
    assert log(machine, f"{number}.5") == "5 1.5 i=5\n"
    assert log(machine, number) == "".join(f"==> 1.{i} <==\n{i} 1.{i} i={i}\n" for i in (2, 5, 6, 7, 8))
    (found,) = checked(machine.berth("jobs", "--json"), "jobs")["jobs"]
    assert found["tasks"] == dict(waiting=0, running=0, done=4, failed=1, cancelled=0, interrupted=0)
    assert (found["state"], found["exit_status"], found["starts"]) == ("ended", 1, 5)
    tasks = checked(machine.berth("jobs", "--json", number), "jobs")["jobs"]
    assert [(task["id"], task["exit_status"]) for task in tasks] == [
        (f"1.{i}", 1 if i == 7 else 0) for i in (2, 5, 6, 7, 8)
    ]
    assert "4 done, 1 failed" in machine.berth("jobs").out
    assert machine.berth("wait", f"{number}.6").status == 0


def test_parameters_are_crossed(machine):
    number = submit(
        machine,
        "--param",
        "lr=0.1,0.01",
        "--param",
        "seed=1,2",
        "--",
        "sh",
        "-c",
        "echo {lr} $BERTH_PARAM_seed",
    )
    assert machine.berth("wait", number).status == 0
    assert [log(machine, f"{number}.{i}") for i in range(4)] == ["0.1 1\n", "0.1 2\n", "0.01 1\n", "0.01 2\n"]


def test_an_array_is_cancelled_in_the_middle(make_machine):
    machine = make_machine("2xH100")
    script = f"echo $BERTH_ARRAY_INDEX >> {machine.directory}/ran; exec sleep 1000"
    number = submit(machine, "--array", "0-9", "--", "sh", "-c", script)
    eventually(
        lambda: job(machine, f"{number}.1")["state"] == "running" and job(machine, f"{number}.2")["in_line"]
    )
    # A task is running before its command has begun.
    ran = machine.directory / "ran"
    eventually(lambda: ran.exists() and len(ran.read_text().split()) == 2)
    assert machine.berth("cancel", number).out == f"cancelled job {number}\n"
    assert {task["state"] for task in told(machine, number)} == {"cancelled"}
    eventually(lambda: processes(machine)["run"] == [])
    assert machine.berth("wait", submit(machine, "--", "true")).status == 0
    assert sorted(ran.read_text().split()) == ["0", "1"]


def test_an_array_goes_on_where_it_was_when_all_of_it_was_killed(make_machine):
    machine = make_machine("1xH100")
    script = (
        f"echo $BERTH_ARRAY_INDEX >> {machine.directory}/ran; test $BERTH_ARRAY_INDEX != 1 || exec sleep 1000"
    )
    number = submit(machine, "--array", "0-4", "--", "sh", "-c", script)
    eventually(
        lambda: "1\n"
        in ((machine.directory / "ran").read_text() if (machine.directory / "ran").exists() else "")
    )
    kill(machine, "runner")
    kill(machine, "run", "job")
    assert machine.berth("wait", number).err == f"berth: job {number}.1 was interrupted\n"
    assert (machine.directory / "ran").read_text().split() == ["0", "1", "2", "3", "4"]


def test_an_array_of_10000_is_one_file_and_one_process_in_line(make_machine):
    machine = make_machine("1xH100")
    fill(machine, 1)
    number = submit(machine, "--array", "0-9999", "--", "true")
    eventually(lambda: job(machine, f"{number}.0")["in_line"])
    assert len(list((spool(machine) / number).iterdir())) < 6
    assert len(processes(machine)["run"]) == 2
    assert machine.berth("cancel", number).status == 0


# Scripts

SCRIPT = """#!/bin/sh
#BERTH -J night --array 0-1   # two of them
#BERTH --note "for the paper"
# a remark
echo "$1 $BERTH_ARRAY_INDEX"
#BERTH --array 0-9
"""


def test_a_script_says_its_options_itself_and_is_kept_as_it_is(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    script = machine.directory / "night.sh"
    script.write_text(SCRIPT)
    number = submit(machine, script, "now")
    script.write_text("#!/bin/sh\nexit 1\n")
    machine.berth("cancel", holder)
    assert machine.berth("wait", number).status == 0
    tasks = told(machine, number)
    assert [task["name"] for task in tasks] == ["night"] * 2
    assert tasks[0]["request"] == ["--note=for the paper"]
    assert log(machine, f"{number}.1") == "now 1\n"


def test_the_command_line_says_more_than_the_script(machine):
    script = machine.directory / "night.sh"
    script.write_text(SCRIPT)
    number = submit(machine, "-J", "day", "--array", "5", script, "now")
    assert machine.berth("wait", number).status == 0
    assert [(task["id"], task["name"]) for task in told(machine, number)] == [(f"{number}.5", "day")]


def test_a_script_comes_from_the_input(machine):
    number = machine.berth("submit", "-", "now", input=SCRIPT).out.strip()
    assert machine.berth("wait", number).status == 0
    assert log(machine, f"{number}.0") == "now 0\n"
    answer = machine.berth("submit", "-", input="echo no\n")
    assert answer.status == 2 and "#!/bin/bash" in answer.err
    assert machine.berth("submit", "-", stdin=subprocess.DEVNULL).status == 2


def test_a_program_or_a_script_without_such_lines_is_a_command(machine):
    script = machine.directory / "plain.sh"
    script.write_text("#!/bin/sh\necho plain $0\n")
    script.chmod(0o755)
    number = submit(machine, script)
    assert machine.berth("wait", number).status == 0
    assert log(machine, number) == f"plain {script}\n"


def test_a_line_of_a_script_that_is_wrong_is_named_with_the_script(machine):
    script = machine.directory / "night.sh"
    for line, word in (
        ("--gpu 2", "--gpu is not there: -n 2 says how many GPUs"),
        ("-n x", "whole number"),
        ("-n 1 python", "python"),
    ):
        script.write_text(f"#!/bin/sh\n#BERTH -J night\n#BERTH {line}\n")
        answer = machine.berth("submit", script)
        assert answer.status == 2 and f"{script}, line 3: " in answer.err and word in answer.err
