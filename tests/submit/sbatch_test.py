"""`berth sbatch`: scripts that were written for Slurm."""

import pytest
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


def sbatch(lab, *words, **more) -> str:
    answer = lab.berth("sbatch", *words, **more)
    assert answer.status == 0, answer.err
    assert answer.out.startswith("Submitted batch job ")
    return answer.out.split()[-1]


def script(lab, *lines: str, body: str = "true") -> str:
    file = lab.directory / "job.sh"
    file.write_text("\n".join(["#!/bin/sh", *(f"#SBATCH {line}" for line in lines), body, ""]))
    return str(file)


def test_a_script_for_slurm_runs_as_it_says(make_lab):
    lab = make_lab("2xH100")
    folder = lab.directory / "work"
    folder.mkdir()
    (folder / "night.sh").write_text(SCRIPT)
    answer = lab.berth("sbatch", "night.sh", "now", cwd=folder)
    assert answer.status == 0
    assert "--mem is not kept" in answer.err and "--cpus-per-task is not kept" in answer.err
    number = answer.out.removeprefix("Submitted batch job ").strip()
    assert lab.berth("wait", number).status == 0
    tasks = told(lab, number)
    assert [task["index"] for task in tasks] == [0, 2]
    assert tasks[0]["request"] == ["--count=1", "--name=H100", "--time=3600s"]
    output = (folder / f"night-{number}_2.out").read_text()
    assert output == f"now {number} {number} 2 night 4\n{folder} {number}.2\n"
    assert f"what the job prints is in night-{number}_2.out" in log(lab, f"{number}.2")


def test_the_command_line_counts_more_than_the_script(make_lab):
    lab = make_lab("2xH100")
    file = script(lab, "-J night", "--gpus=2", "-a 0-9", body="echo $BERTH_JOB_NAME $1")
    number = sbatch(lab, "--job-name", "day", "-a", "5", file, "x")
    assert lab.berth("wait", number).status == 0
    (task,) = told(lab, number)
    assert (task["name"], task["index"], task["request"]) == ("day", 5, ["--count=2"])
    assert log(lab, f"{number}.5") == "day x\n"


def test_a_script_comes_from_the_input_or_from_wrap(lab):
    number = sbatch(lab, "--gpus=1", input="#!/bin/sh\necho from $SLURM_JOB_NAME\n")
    assert lab.berth("wait", number).status == 0
    assert log(lab, number) == "from sbatch\n"
    answer = lab.berth("sbatch", "--parsable", "--gpus=1", "--wrap", "echo wrapped")
    assert lab.berth("wait", answer.out.strip()).status == 0
    assert log(lab, answer.out.strip()) == "wrapped\n"


def test_wait_ends_as_the_job_ends(lab):
    answer = lab.berth("sbatch", "--wait", "--gpus=1", script(lab, body="exit 7"))
    assert answer.status == 7 and answer.out.startswith("Submitted batch job ")


def test_errors_go_to_a_file_of_their_own_and_a_later_run_adds_to_it(lab):
    errors = lab.directory / "errors.txt"
    file = script(lab, f"-e {errors} --gpus=1", body="echo out; echo bad >&2; exit 3")
    number = sbatch(lab, file)
    assert lab.berth("wait", number).status == 3
    assert errors.read_text() == "bad\n"
    assert log(lab, number).endswith("out\n")
    assert lab.berth("retry", number).status == 0
    assert lab.berth("wait", number).status == 3
    assert errors.read_text() == "bad\nbad\n"


def test_a_job_whose_output_cannot_be_written_waits_and_says_why(lab):
    number = sbatch(lab, "--gpus=1", "-o", "missing/%j.out", "--chdir", lab.directory, script(lab))
    eventually(lambda: (job(lab, number)["reason"] or "").startswith("opening missing/"))
    (lab.directory / "missing").mkdir()
    assert lab.berth("wait", number).status == 0
    assert (lab.directory / f"missing/{number}.out").read_text() == ""


def test_of_the_environment_a_job_gets_what_export_says(lab):
    body = 'echo "${LR-none} ${OTHER-none} ${MORE-none}"'
    env = {"LR": "0.1", "OTHER": "x", "SLURM_ARRAY_TASK_ID": "9"}
    for export, line in [("ALL", "0.1 x none"), ("NONE", "none none none"), ("LR,MORE=2", "0.1 none 2")]:
        number = sbatch(lab, "--gpus=1", f"--export={export}", script(lab, body=body), env=env)
        assert lab.berth("wait", number).status == 0
        assert log(lab, number) == line + "\n"
    number = sbatch(lab, "--gpus=1", script(lab, body="echo ${SLURM_ARRAY_TASK_ID-none}"), env=env)
    assert lab.berth("wait", number).status == 0
    assert log(lab, number) == "none\n"


def test_a_job_waits_for_those_that_it_depends_on(make_lab):
    lab = make_lab("1xH100")
    (first,) = fill(lab, 1)
    number = sbatch(lab, "--gpus=1", "-d", f"afterok:{first}", script(lab))
    assert job(lab, number)["after_ok"] == [int(first)]
    lab.berth("cancel", first)
    assert lab.berth("wait", number).status == 1
    assert job(lab, number)["state"] == "cancelled"


@pytest.mark.parametrize(
    "line, words",
    [
        ("--nodes=2", "--nodes 2: Berth runs a job on one machine"),
        ("--ntasks=8", "torchrun"),
        ("--exclusive", "--gres=gpu:N"),
        ("-C a100", "--constraint"),
        ("--burst-buffer=x", "unknown option '--burst-buffer=x'"),
        ("--gres=gpu:1 python", "python is no option"),
        ("--output=%n", "--output %n"),
        ("--chdir=/nowhere/at/all", "there is no such folder"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(lab, line, words):
    answer = lab.berth("sbatch", script(lab, line))
    assert answer.status == 2 and words in answer.err and answer.out == ""
    assert told(lab) == []


def test_a_file_that_is_no_script_is_refused(lab):
    file = lab.directory / "plain"
    file.write_text("echo x\n")
    assert "#!/bin/bash" in lab.berth("sbatch", file).err
    answer = lab.berth("sbatch", lab.directory / "missing")
    assert answer.status != 0 and "missing" in answer.err
