"""`berth sbatch`: scripts that were written for Slurm."""

import contextlib
import os
import shutil

from jobs import eventually
from submitted import fill, job, log, told

SCRIPT = """#!/bin/bash
#SBATCH --job-name=night      # what it is
#SBATCH --array=0-3:2%1
#SBATCH --gres=gpu:H100:1
#SBATCH -t 1:00:00
#SBATCH --mem=16G -c 4
#SBATCH --output=%x-%A_%a.out

echo "$1 $SLURM_JOB_ID $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_JOB_NAME $SLURM_CPUS_PER_TASK"
echo "$SLURM_SUBMIT_DIR $BERTH_JOB" >&2
#SBATCH --array=0-99
"""


def sbatch(machine, *words, **more) -> str:
    answer = machine.berth("sbatch", *words, **more)
    assert answer.status == 0, answer.err
    assert answer.out.startswith("Submitted batch job ")
    return answer.out.split()[-1]


def script(machine, *lines: str, body: str = "true") -> str:
    file = machine.directory / "job.sh"
    file.write_text("\n".join(["#!/bin/sh", *(f"#SBATCH {line}" for line in lines), body, ""]))
    return str(file)


def test_a_script_for_slurm_runs_as_it_says(make_machine):
    machine = make_machine("2xH100")
    folder = machine.directory / "work"
    folder.mkdir()
    (folder / "night.sh").write_text(SCRIPT)
    answer = machine.berth("sbatch", "night.sh", "now", cwd=folder)
    assert answer.status == 0
    assert "--mem is not kept" in answer.err and "--cpus-per-task is not kept" in answer.err
    number = answer.out.removeprefix("Submitted batch job ").strip()
    assert machine.berth("wait", number).status == 0
    tasks = told(machine, number)
    assert [task["index"] for task in tasks] == [0, 2]
    assert tasks[0]["request"] == ["--count=1", "--name=H100", "--time=1h"]
    output = (folder / f"night-{number}_2.out").read_text()
    assert output == f"now {number} {number} 2 night 4\n{folder} {number}.2\n"
    assert f"what the job prints is in night-{number}_2.out" in log(machine, f"{number}.2")


def test_the_command_line_counts_more_than_the_script(make_machine):
    machine = make_machine("2xH100")
    file = script(machine, "-J night", "--gpus=2", "-a 0-9", body="echo $BERTH_JOB_NAME $1")
    number = sbatch(machine, "--job-name", "day", "-a", "5", file, "x")
    assert machine.berth("wait", number).status == 0
    (task,) = told(machine, number)
    assert (task["name"], task["index"], task["request"]) == ("day", 5, ["--count=2"])
    assert log(machine, f"{number}.5") == "day x\n"


def test_a_script_comes_from_the_input_or_from_wrap(machine):
    number = sbatch(machine, "--gpus=1", input="#!/bin/sh\necho from $SLURM_JOB_NAME\n")
    assert machine.berth("wait", number).status == 0
    assert log(machine, number) == "from sbatch\n"
    answer = machine.berth("sbatch", "--parsable", "--gpus=1", "--wrap", "echo wrapped")
    assert machine.berth("wait", answer.out.strip()).status == 0
    assert log(machine, answer.out.strip()) == "wrapped\n"


def test_wait_ends_as_the_job_ends(machine):
    answer = machine.berth("sbatch", "--wait", "--gpus=1", script(machine, body="exit 7"))
    assert answer.status == 7 and answer.out.startswith("Submitted batch job ")


def test_errors_go_to_a_file_of_their_own_and_a_later_run_adds_to_it(machine):
    errors = machine.directory / "errors.txt"
    file = script(machine, f"-e {errors} --gpus=1", body="echo out; echo bad >&2; exit 3")
    number = sbatch(machine, file)
    assert machine.berth("wait", number).status == 3
    assert errors.read_text() == "bad\n"
    assert log(machine, number).endswith("out\n")
    assert machine.berth("retry", number).status == 0
    assert machine.berth("wait", number).status == 3
    assert errors.read_text() == "bad\nbad\n"


def test_a_job_whose_output_cannot_be_written_waits_and_says_why(machine):
    number = sbatch(
        machine, "--gpus=1", "-o", "missing/%j.out", "--chdir", machine.directory, script(machine)
    )
    eventually(lambda: (job(machine, number)["reason"] or "").startswith("opening missing/"))
    (machine.directory / "missing").mkdir()
    assert machine.berth("wait", number).status == 0
    assert (machine.directory / f"missing/{number}.out").read_text() == ""


def test_of_the_environment_a_job_gets_what_export_says(machine):
    body = 'echo "${LR-none} ${OTHER-none} ${MORE-none}"'
    env = {"LR": "0.1", "OTHER": "x", "SLURM_ARRAY_TASK_ID": "9"}
    for export, line in [("ALL", "0.1 x none"), ("NONE", "none none none"), ("LR,MORE=2", "0.1 none 2")]:
        number = sbatch(machine, "--gpus=1", f"--export={export}", script(machine, body=body), env=env)
        assert machine.berth("wait", number).status == 0
        assert log(machine, number) == line + "\n"
    number = sbatch(machine, "--gpus=1", script(machine, body="echo ${SLURM_ARRAY_TASK_ID-none}"), env=env)
    assert machine.berth("wait", number).status == 0
    assert log(machine, number) == "none\n"


def test_a_job_waits_for_those_that_it_depends_on(make_machine):
    machine = make_machine("1xH100")
    (first,) = fill(machine, 1)
    number = sbatch(machine, "--gpus=1", "-d", f"afterok:{first}", script(machine))
    assert job(machine, number)["after_ok"] == [int(first)]
    machine.berth("cancel", first)
    assert machine.berth("wait", number).status == 1
    assert job(machine, number)["state"] == "cancelled"


def test_what_cannot_be_done_is_refused_by_name(machine):
    for line, words in (
        ("--nodes=2", "--nodes 2: Berth runs a job on one machine"),
        ("-C a100", "--constraint"),
        ("--burst-buffer=x", "unknown option '--burst-buffer=x'"),
        ("--gres=gpu:1 python", "python is no option"),
        ("--chdir=/nowhere/at/all", "there is no such folder"),
    ):
        answer = machine.berth("sbatch", script(machine, line))
        assert answer.status == 2 and words in answer.err and answer.out == "", line
    assert told(machine) == []


def test_a_file_that_is_no_script_is_refused(machine):
    file = machine.directory / "plain"
    file.write_text("echo x\n")
    assert "#!/bin/bash" in machine.berth("sbatch", file).err
    answer = machine.berth("sbatch", machine.directory / "missing")
    assert answer.status != 0 and "missing" in answer.err


def without_slurm(machine) -> dict:
    """The environment of a machine on which Slurm is not installed."""
    folder = machine.directory / "programs"
    folder.mkdir(exist_ok=True)
    for name in ("sh", "env", "true"):
        with contextlib.suppress(FileExistsError):
            (folder / name).symlink_to(shutil.which(name))
    return {"PATH": str(folder)}


def test_a_script_that_calls_srun_is_refused_at_submit_where_there_is_none(machine):
    file = script(machine, "--gpus=1", body="true && srun -n 1 python train.py")
    answer = machine.berth("sbatch", file, env=without_slurm(machine))
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"berth: {file}, line 3: srun would fail, because this machine has no Slurm")
    assert told(machine) == []


def test_a_script_that_says_what_srun_is_runs_with_and_without_slurm(machine):
    body = 'command -v srun >/dev/null || srun() { "$@"; }\nsrun echo ran'
    number = sbatch(machine, script(machine, "--gpus=1", body=body), env=without_slurm(machine))
    assert machine.berth("wait", number).status == 0
    assert log(machine, number) == "ran\n"
    programs = machine.directory / "programs"
    (programs / "srun").write_text('#!/bin/sh\necho "by Slurm: $*"\n')
    (programs / "srun").chmod(0o755)
    number = sbatch(machine, script(machine, "--gpus=1", body="srun echo ran"), env={"PATH": programs})
    assert machine.berth("wait", number).status == 0
    assert log(machine, number) == "by Slurm: echo ran\n"


def test_a_job_knows_its_part_as_a_task_of_slurm_does(machine):
    body = 'echo "$SLURM_NTASKS $SLURM_PROCID $SLURM_GPUS_ON_NODE $SLURM_JOB_NODELIST"'
    stale = {
        "SLURM_NTASKS": "8",
        "SLURM_PROCID": "3",
        "SLURM_GPUS_ON_NODE": "4",
        "SLURM_JOB_NODELIST": "a[1-2]",
    }
    number = sbatch(machine, "--export=NONE", script(machine, "--gpus=2", body=body), env=stale)
    assert machine.berth("wait", number).status == 0
    assert log(machine, number) == f"1 0 2 {os.uname().nodename}\n"


def test_what_means_nothing_here_is_taken_and_told(machine):
    options = (
        "--cpus-per-gpu=4",
        "--kill-on-invalid-dep=yes",
        "--gpu-freq=high",
        "--deadline=2030-01-01",
        "-v",
    )
    answer = machine.berth("sbatch", "--gpus=1", *options, script(machine))
    assert answer.status == 0
    for name in ("cpus-per-gpu", "kill-on-invalid-dep", "gpu-freq", "deadline", "verbose"):
        assert f"--{name} is not kept: " in answer.err


def test_words_of_slurm_are_answered_with_ours(machine):
    for words, answer in (
        (["submit", "--gres", "gpu:a100:2", "--", "true"], "--gres is Slurm's: write -n 2 --name=a100"),
        (["run", "-G", "2", "true"], "-G is Slurm's: write -n 2"),
        (["submit", "-t2:00:00", "--", "true"], "-t is Slurm's: write --time=2h"),
        (["submit", "--dependency=afterok:7", "--", "true"], "--dependency is Slurm's: write --after-ok=7"),
        (["run", "--dependency=afterok:7", "--", "true"], "--dependency is Slurm's: write berth submit --after-ok=7"),
        (["run", "--n", "2", "--", "true"], "unknown option '--n', did you mean -n (--count)?; `berth run --help` lists them"),
        (["list", "--gres=gpu:1"], "unknown option '--gres=gpu:1'; `berth list --help` lists them"),
    ):  # fmt: skip
        asked = machine.berth(*words)
        assert (asked.status, asked.err.splitlines()[0]) == (2, f"berth: {answer}")


SCRIPTS_HERE = [
    ("plain.sh", 0o644, "#!/bin/bash\ntrue\n", "submit",
     "plain.sh is here but is not executable and has no #BERTH line: berth submit -- bash plain.sh 7"),
    ("plain.sh", 0o644, "true\n", "run", "plain.sh is here but is not executable: berth run -- bash plain.sh 7"),
    ("./train", 0o644, "#!/usr/bin/env python3\n", "run",
     "./train is here but is not executable: berth run -- python3 ./train 7"),
    ("train.py", 0o644, "import os\n", "submit",
     "train.py is here but is not executable and has no #BERTH line: berth submit -- python3 train.py 7"),
    ("job.sbatch", 0o644, "#!/bin/bash\n#SBATCH --gpus=1\n", "submit",
     "job.sbatch is here and has lines for sbatch: berth sbatch job.sbatch 7"),
    ("there.sh", 0o755, "#!/bin/sh\n", "submit", "there.sh is here: berth submit -- ./there.sh 7"),
]  # fmt: skip


def test_a_script_that_is_here_and_cannot_be_started_is_named_with_the_line_that_can(machine):
    for name, mode, text, verb, hint in SCRIPTS_HERE:
        (machine.directory / name).write_text(text)
        (machine.directory / name).chmod(mode)
        answer = machine.berth(verb, name, "7", cwd=machine.directory)
        assert answer.status in (126, 127)
        assert answer.err.endswith(f"; {hint}\n")
    assert told(machine) == []
