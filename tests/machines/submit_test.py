"""berth submit --anywhere: a job that is kept here and runs on the first of several hosts that has the GPUs."""

import os
import re
import signal

import pytest
from jobs import eventually, is_fork, is_probe, the_only

JOB = 'echo "$BERTH_DIR $CUDA_VISIBLE_DEVICES job $BERTH_JOB"'


def busy(host):
    """Somebody there has its one GPU."""
    process = host.machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == "ready\n"
    return process


def submit(two, *words, **options) -> str:
    answer = two.run("submit", "--anywhere", "--hosts", two.names(), *words, **options)
    assert (answer.returncode, answer.stderr) == (0, "")
    return answer.stdout.strip()


def jobs(two, number):
    return two.run("jobs", number).stdout.splitlines()[1]


def test_it_runs_on_the_host_that_is_free_and_its_output_is_here(two):
    busy(two.hosts[0])
    number = submit(two, "--", "sh", "-c", JOB)
    assert two.run("wait", number).returncode == 0
    out = two.run("log", number).stdout
    assert "/gpu2/" in out and f" 0 job {number}" in out
    assert "gpu2:0" in jobs(two, number)
    eventually(lambda: two.hosts[1].tickets() == [] and two.hosts[1].envoys() == [])


def test_the_status_of_the_command_is_that_of_the_job(two):
    assert two.run("wait", submit(two, "--", "sh", "-c", "exit 7")).returncode == 7
    assert two.run("wait", submit(two, "--", "sh", "-c", "kill -9 $$")).returncode == 128 + signal.SIGKILL


def test_it_waits_in_the_line_of_each_host_and_leaves_them_when_it_is_cancelled(two):
    gpu1, gpu2 = two.hosts
    busy(gpu1)
    busy(gpu2)
    number = submit(two, "--", "touch", two.folder / "ran")
    # Another that asks for the same stands in no line: one of a user does.
    submit(two, "--", "true")
    eventually(lambda: len(gpu1.tickets()) == 2 and len(gpu2.tickets()) == 2)
    assert two.run("cancel", "1", "2").returncode == 0
    eventually(lambda: len(gpu1.tickets()) == 1 and len(gpu2.tickets()) == 1)
    assert " cancelled " in jobs(two, number) and not (two.folder / "ran").exists()


def test_one_that_runs_is_asked_to_end(two):
    mark = two.folder / "mark"
    script = f"trap 'echo asked >{mark}; exit 3' TERM; echo >{mark}; while :; do sleep 0.02; done"
    number = submit(two, "--", "sh", "-c", script)
    eventually(mark.exists)
    assert two.run("cancel", number).returncode == 0
    eventually(lambda: mark.read_text() == "asked\n")
    eventually(lambda: all(host.tickets() == [] for host in two.hosts))


@pytest.mark.parametrize("whom", ["berth run", "ssh"])
def test_one_whose_connection_is_lost_is_interrupted_and_not_run_again(two, whom):
    starts = two.folder / "starts"
    number = submit(two, "--retries", "3", "--", "sh", "-c", f"echo >>{starts}; exec sleep 1000")
    eventually(lambda: starts.exists() and starts.read_text())
    task = the_only(
        lambda: [
            pid
            for pid in two.at_the_desk()
            if f"/{number}\0" in command_of(pid) and not is_probe(pid) and not is_fork(pid)
        ]
    )
    for pid in [task] if whom == "berth run" else two.own_ssh():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: " interrupted " in jobs(two, number))
    eventually(lambda: all(host.tickets() == [] for host in two.hosts))
    assert starts.read_text() == "\n"
    if whom == "ssh":
        # The desk may not have heard yet that the command has begun.
        told = two.run("log", number).stdout
        assert re.search("was lost (while the command ran there|when the command was to start)", told)


def test_a_script_runs_where_its_file_is_not(two):
    script = two.folder / "work/train.sh"
    script.write_text(
        "#!/bin/bash -e\n#BERTH --array 3 -J sweep\n"
        'ids=mine; echo "${ids} $BERTH_ARRAY_INDEX $1 {ids} ${BERTH_JOB_SCRIPT-none}"\nfalse\necho not here\n'
    )
    number = submit(two, script, "word")
    script.unlink()
    assert two.run("wait", number).returncode == 1
    assert two.run("log", number).stdout.splitlines()[-1] == "mine 3 word {ids} none"


def test_what_could_never_start_is_refused_at_once(two):
    def refusal(*words):
        answer = two.run("submit", "--anywhere", *words)
        assert (answer.returncode, answer.stdout) == (2, "")
        return answer.stderr

    assert "which hosts?" in refusal("--", "true")
    assert "no host is called 'gpu9'" in refusal("--hosts", two.names(), "--host", "gpu9", "--", "true")
    assert "--env: NOT_SET is not set here" in refusal("--hosts", "gpu1", "--env", "NOT_SET", "--", "true")
    assert "exclude --anywhere" in refusal("--hosts", "gpu1", "--rerun", "--", "true")
    program = two.folder / "work/train.py"
    program.write_text("#!/usr/bin/python3\n#BERTH -n 1\n")
    assert "a script is one of a shell" in refusal("--hosts", "gpu1", program)


def test_while_no_host_answers_it_says_why_and_starts_when_one_does(two):
    for host in two.hosts:
        host.stop()
    number = submit(two, "--", "echo", "ran")
    eventually(lambda: "runs no ssh server" in two.run("jobs").stdout)
    for host in two.hosts:
        host.start()
    assert two.run("wait", number).returncode == 0
    assert two.run("log", number).stdout.endswith("ran\n")


def test_each_line_of_a_file_runs_on_whatever_host_is_free(two):
    lines = two.folder / "work/lines"
    lines.write_text("".join(f"echo line {number} on $BERTH_DIR\n" for number in range(4)))
    answer = two.run("each", "--anywhere", "--hosts", two.names(), lines)
    assert answer.returncode == 0, answer.stderr
    shown = two.run("log", "1").stdout
    assert all(f"line {number} on " in shown for number in range(4))


def test_a_notice_names_the_host(two):
    mark = two.folder / "told"
    answer = two.anywhere(
        *("--notify", f"cmd:echo $BERTH_MESSAGE >>{mark}", "--notify-on", "start", "--", "true"), hosts="gpu2"
    )
    assert answer.returncode == 0, answer.stderr
    eventually(lambda: mark.exists() and "gpu2" in mark.read_text())


def command_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read()
    except OSError:
        return ""
