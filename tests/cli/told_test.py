"""What people read: what a command that went well has done, why something waits, and what to do next."""

import re
import resource
import subprocess
import time

import pytest
from jobs import eventually, holder, waiter
from lease_jobs import only_lease
from schemas import checked
from submitted import fill, job, log, submit
from terminal import on_terminal, plain


def shell_on_terminal(lab, script: str, **env) -> str:
    """What a shell shows whose input is no terminal, but whose output is one."""
    shell = f"import sys, subprocess; sys.exit(subprocess.call(['bash', '-c', {script!r}]))"
    lab.program, berth = lab.directory / "shell", lab.program
    lab.program.write_text(f'#!/usr/bin/env python3\nBERTH = "{berth}"\n{shell}\n')
    lab.program.chmod(0o755)
    try:
        return plain(on_terminal(lab, columns=200, env={"BERTH": str(berth)} | env)[1])
    finally:
        lab.program = berth


def test_the_first_claim_says_on_a_terminal_which_gpu_and_until_when(lab):
    script = 'eval "$("$BERTH" claim --devices 3 --time 2h)"; echo "<$CUDA_VISIBLE_DEVICES>"'
    said = shell_on_terminal(lab, script)
    assert re.search(
        r"^berth: this shell now uses GPU 3 \(lease [0-9a-f]{6}\) until (\d+ \w+ )?\d\d:\d\d$", said, re.M
    )
    assert "<3>" in said


def test_the_shell_by_which_vs_code_reads_the_variables_gets_no_gpu(lab):
    answer = lab.berth("claim", env={"VSCODE_RESOLVING_ENVIRONMENT": "1"})
    assert (answer.status, answer.out, answer.err) == (0, "", "")
    assert lab.berth("list", "--json").json["leases"] == []


def test_an_extension_says_the_new_end(lab):
    lease = holder(lab, "--time", "2h")
    told = lab.berth("list", "--json").json["leases"][0]["id"]
    answer = lab.berth("extend", told, "1h")
    (now,) = lab.berth("list", "--json").json["leases"]
    clock = time.strftime("%H:%M", time.gmtime(now["until_s"]))
    assert re.fullmatch(rf"the lease {told[-6:]} now ends at (\d+ \w+ )?{clock}\n", answer.out)
    lease.ends()


def test_a_submit_says_on_a_terminal_what_to_do_with_the_job_and_a_pipe_gets_the_number(lab):
    assert lab.berth("submit", "--", "true").out == "1\n"
    status, said = on_terminal(lab, "submit", "--", "true", columns=200)
    assert status == 0
    assert "submitted job 2: `berth jobs` shows it, `berth log -f 2` what it prints" in said


def test_the_log_of_a_job_that_has_not_begun_says_so(make_lab):
    lab = make_lab("1xH100")
    fill(lab, 1)
    number = submit(lab, "--", "true")
    eventually(lambda: job(lab, number)["in_line"])
    answer = lab.berth("log", number)
    assert (answer.status, answer.out) == (0, "")
    assert answer.err == (
        f"berth: job {number} has not begun, so it has no log yet: it is in line; berth log -f {number} waits for it\n"
    )
    lab.berth("cancel", number)
    assert f"job {number} was cancelled before it began, so it has no log" in lab.berth("log", number).err
    array = submit(lab, "--array", "0-1", "--at", "1h", "--", "true")
    assert f"no task of job {array} has begun" in lab.berth("log", array).err
    silent = submit(lab, "--", "true")
    assert lab.berth("cancel", "1").status == 0
    lab.berth("wait", silent)
    assert (log(lab, silent), lab.berth("log", silent).err) == ("", "")


def test_jobs_says_why_each_one_waits_and_how_long_each_one_ran(make_lab):
    lab = make_lab("1xH100")
    first = holder(lab, "-n", "1")
    in_line = submit(lab, "--", "true")
    eventually(lambda: job(lab, in_line)["in_line"])
    same = submit(lab, "--", "true")
    later = [submit(lab, "--after", in_line, "--", "true") for _ in range(3)]
    said = lab.berth("jobs").out
    assert f"job {in_line}: first in line; `berth queue` says for which GPUs it waits\n" in said
    assert (
        f"job {same}: an earlier job of yours asks for the same, and one at a time stands in the queue\n"
        in said
    )
    # What is true of several jobs is one line.
    assert f"jobs {later[0]}-{later[-1]}: comes after job {in_line}\n" in said
    first.ends()
    lab.berth("wait", in_line, same, *later)
    header, row = lab.berth("jobs", in_line).out.splitlines()[:2]
    assert re.search(r"END +TIME +GPU", header)
    assert re.search(r" \d+ (ms|s) +0 +0 +true$", row), row


def test_a_job_behind_somebody_says_behind_whom(make_lab):
    lab = make_lab("1xH100")
    holder(lab)
    waiter(lab)
    number = submit(lab, "--", "true")
    eventually(lambda: "behind" in lab.berth("jobs").out)
    assert re.search(rf"^job {number}: no. 2 in line, behind \w+ \(bash\)$", lab.berth("jobs").out, re.M)


def test_on_a_terminal_the_same_about_a_job_that_is_over_is_said_once(lab):
    failed = submit(lab, "--", "true")
    lab.berth("wait", failed)
    number = submit(lab, "--after-ok", failed, "--", "true")
    broken = submit(lab, "--", "false")
    lab.berth("wait", broken)
    refused = submit(lab, "--after-ok", broken, "--", "true")
    lab.berth("wait", number, refused)
    why = f"job {refused}: job {broken} did not end with status 0"
    # In a pipe, each time.
    assert all(why in lab.berth("jobs").out for _ in range(2))
    began = int(time.time())
    assert why in plain(on_terminal(lab, "jobs", columns=200)[1])
    # What happened in the second of the look may not have been seen.
    eventually(lambda: int(time.time()) > began + 1)
    on_terminal(lab, "jobs", columns=200)
    assert why not in plain(on_terminal(lab, "jobs", columns=200)[1])
    assert why in plain(on_terminal(lab, "jobs", refused, columns=200)[1])
    assert why in lab.berth("jobs").out


def test_a_job_of_each_is_called_by_its_file(lab):
    file = lab.directory / "lines.sh"
    file.write_text("true\ntrue\n")
    assert lab.berth("each", file, "--job-name", "x").status == 0
    (found,) = checked(lab.berth("jobs", "--json"), "jobs")["jobs"]
    assert found["command"] == f"the lines of {file}" and found["words"] == ["sh", "-c"]


def test_messages_name_leases_as_the_tables_do(lab):
    lease = holder(lab, "--note", "mine")
    whole = only_lease(lab)
    assert lab.berth("list").out.count(whole) == 0
    for words in (["extend", whole, "1h"], ["cancel", whole]):
        answer = lab.berth(*words)
        assert answer.status != 0
        assert whole[-6:] in answer.err and whole not in answer.err
    answer = lab.berth("release", whole)
    assert f"ended the lease {whole[-6:]} of " in answer.out
    lease.process.wait(30)


def test_who_is_to_start_before_an_earlier_one_fills_a_gap(make_lab):
    lab = make_lab("2xH100")
    long = holder(lab, "--time", "3h")
    short = holder(lab, "--time", "1h")
    waiter(lab, "-n", "2", "--time", "1h")
    waiter(lab, "--time", "90m")
    waiters = checked(lab.berth("queue", "--json"), "queue")["waiters"]
    assert waiters[0]["fills_gap_until_s"] is None
    assert abs(waiters[1]["fills_gap_until_s"] - waiters[0]["starts_at_s"]) <= 1
    row = lab.berth("queue").out.splitlines()[2]
    assert re.search(r" -  +1 whole GPU .* fills a gap until (\d+ \w+ )?\d\d:\d\d on GPU 1$", row), row
    for each in (long, short):
        each.ends()


def test_a_mask_that_hides_gpus_is_named_with_what_to_do(lab):
    for words in (["run", "--", "true"], ["why"]):
        answer = lab.berth(*words, env={"CUDA_VISIBLE_DEVICES": "foo"})
        assert "unset CUDA_VISIBLE_DEVICES, or --mask ignore" in " ".join((answer.out + answer.err).split())
    assert "unset" not in lab.berth("why", env={"CUDA_VISIBLE_DEVICES": "1"}).out


def test_a_site_file_that_is_not_there_is_no_leave_to_do_anything(lab):
    env = {"BERTH_SITE_FILE": str(lab.directory / "sight.toml")}
    for words in (["run", "--", "true"], ["pick"], ["claim"]):
        answer = lab.berth(*words, env=env)
        assert answer.status == 1
        assert f"BERTH_SITE_FILE={lab.directory}/sight.toml names a file that is not there" in answer.err
    listed = lab.berth("list", env=env)
    assert listed.status == 0 and "names a file that is not there" in listed.err
    assert "nothing is granted until it is corrected" in lab.berth("doctor", env=env).out.replace(
        "\n      ", " "
    )
    assert lab.berth("run", "--", "true", env={"BERTH_SITE_FILE": "/dev/null"}).status == 0


def test_the_doctor_names_a_rule_for_a_gpu_that_is_not_there(lab):
    (lab.directory / "site.toml").write_text('[[excluded]]\ndevice = 99\nreason = "on loan"\n')
    said = " ".join(lab.berth("doctor").out.split())
    assert "WARN site file: [[excluded]] names device 99, and this machine has no such GPU" in said
    (lab.directory / "site.toml").write_text('[[excluded]]\ndevice = 7\nreason = "on loan"\n')
    assert "no such GPU" not in lab.berth("doctor").out


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ('model = "T4"\nunsupported = ["processes"]', "which processes use it"),
        ('model = "T4"\nname = "NVIDIA N1X"\nunified_memory = "unsupported"', "its memory in use"),
    ],
)
def test_a_gpu_that_can_never_be_had_is_a_finding_of_the_doctor(make_lab, keys, what):
    lab = make_lab(f"[[device]]\n{keys}\n")
    answer = lab.berth("doctor")
    assert answer.status == 1
    assert f"FAIL GPU 0: the driver does not tell {what}, so nobody can say that it is idle" in " ".join(
        answer.out.split()
    )
    why = " ".join(lab.berth("why").out.split())
    assert "so nobody can say that it is idle: `berth doctor` says more" in why


@pytest.mark.parametrize("most", [0, 1, 50, 100, 300])
def test_a_limit_on_file_sizes_is_called_so(lab, most):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    lab.berth("run", "--", "true")
    for words in (["run", "--", "true"], ["submit", "--", "true"], ["claim"]):
        process = subprocess.run(
            [lab.program, *words], env=lab.env, preexec_fn=limited, capture_output=True, text=True, timeout=60
        )
        assert process.returncode == 1, (words, process)
        assert f"the limit on file sizes (ulimit -f) is {most} byte" in process.stderr, (words, process)


def test_a_command_keeps_the_limit_on_file_sizes_and_what_it_does(lab):
    script = (
        f"ulimit -S -f 8; cd {lab.directory}; {lab.program} run -- sh -c 'head -c 100000 /dev/zero > big'"
    )
    answer = lab.run("bash", "-c", script + "; echo $?; ls -s big >/dev/null")
    # The shell's status of what SIGXFSZ has ended.
    assert str(128 + 25) in answer.out, answer


def test_sbatch_without_a_script_asks_for_one(lab):
    assert "which script? The input is empty: name a file, as in berth sbatch FILE" in lab.berth("sbatch").err
