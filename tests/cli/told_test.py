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


def shell_on_terminal(machine, script: str, **env) -> str:
    """What a shell shows whose input is no terminal, but whose output is one."""
    shell = f"import sys, subprocess; sys.exit(subprocess.call(['bash', '-c', {script!r}]))"
    machine.program, berth = machine.directory / "shell", machine.program
    machine.program.write_text(f'#!/usr/bin/env python3\nBERTH = "{berth}"\n{shell}\n')
    machine.program.chmod(0o755)
    try:
        return plain(on_terminal(machine, columns=200, env={"BERTH": str(berth)} | env)[1])
    finally:
        machine.program = berth


def test_the_first_claim_says_on_a_terminal_which_gpu_and_until_when(machine):
    script = 'eval "$("$BERTH" claim --devices 3 --time 2h)"; echo "<$CUDA_VISIBLE_DEVICES>"'
    said = shell_on_terminal(machine, script)
    assert re.search(
        r"^berth: this shell now uses GPU 3 \(lease [0-9a-f]{6}\) until (\d+ \w+ )?\d\d:\d\d$", said, re.M
    )
    assert "<3>" in said


def test_the_shell_by_which_vs_code_reads_the_variables_gets_no_gpu(machine):
    answer = machine.berth("claim", env={"VSCODE_RESOLVING_ENVIRONMENT": "1"})
    assert (answer.status, answer.out, answer.err) == (0, "", "")
    assert machine.berth("list", "--json").json["leases"] == []


def test_an_extension_says_the_new_end(machine):
    lease = holder(machine, "--time", "2h")
    told = machine.berth("list", "--json").json["leases"][0]["id"]
    answer = machine.berth("extend", told, "1h")
    (now,) = machine.berth("list", "--json").json["leases"]
    clock = time.strftime("%H:%M", time.gmtime(now["until_s"]))
    assert re.fullmatch(rf"the lease {told[-6:]} now ends at (\d+ \w+ )?{clock}\n", answer.out)
    lease.ends()


def test_a_submit_says_on_a_terminal_what_to_do_with_the_job_and_a_pipe_gets_the_number(machine):
    assert machine.berth("submit", "--", "true").out == "1\n"
    status, said = on_terminal(machine, "submit", "--", "true", columns=200)
    assert status == 0
    assert "submitted job 2: `berth jobs` shows it, `berth log -f 2` what it prints" in said


def test_the_log_of_a_job_that_has_not_begun_says_so(make_machine):
    machine = make_machine("1xH100")
    fill(machine, 1)
    number = submit(machine, "--", "true")
    eventually(lambda: job(machine, number)["in_line"])
    answer = machine.berth("log", number)
    assert (answer.status, answer.out) == (0, "")
    assert answer.err == (
        f"berth: job {number} has not begun, so it has no log yet: it is in line; berth log -f {number} waits for it\n"
    )
    machine.berth("cancel", number)
    assert f"job {number} was cancelled before it began, so it has no log" in machine.berth("log", number).err
    array = submit(machine, "--array", "0-1", "--at", "1h", "--", "true")
    assert f"no task of job {array} has begun" in machine.berth("log", array).err
    silent = submit(machine, "--", "true")
    following = subprocess.Popen(
        [machine.program, "log", "-f", silent], env=machine.env, stderr=subprocess.PIPE, text=True
    )
    machine.running.append(following)
    assert f"job {silent} has not begun: it is in line: first in line" in following.stderr.readline()
    assert machine.berth("cancel", "1").status == 0
    machine.berth("wait", silent)
    assert (log(machine, silent), machine.berth("log", silent).err) == ("", "")
    assert following.communicate()[1] == ""


def test_jobs_says_why_each_one_waits_and_how_long_each_one_ran(make_machine):
    machine = make_machine("1xH100")
    first = holder(machine, "-n", "1")
    in_line = submit(machine, "--", "true")
    eventually(lambda: job(machine, in_line)["in_line"])
    same = submit(machine, "--", "true")
    later = [submit(machine, "--after", in_line, "--", "true") for _ in range(3)]
    said = machine.berth("jobs").out
    assert f"job {in_line}: first in line; `berth queue` says for which GPUs it waits\n" in said
    assert (
        f"job {same}: another job of yours asks for the same, and one at a time stands in the queue\n" in said
    )
    # What is true of several jobs is one line.
    assert f"jobs {later[0]}-{later[-1]}: comes after job {in_line}\n" in said
    first.ends()
    machine.berth("wait", in_line, same, *later)
    header, row = machine.berth("jobs", in_line).out.splitlines()[:2]
    assert re.search(r"END +TIME +GPU", header)
    assert re.search(r" \d+ (ms|s) +0 +0 +true$", row), row


def test_a_job_behind_somebody_says_behind_whom(make_machine):
    machine = make_machine("1xH100")
    holder(machine)
    waiter(machine)
    number = submit(machine, "--", "true")
    eventually(lambda: "behind" in machine.berth("jobs").out)
    assert re.search(rf"^job {number}: no. 2 in line, behind \w+ \(bash\)$", machine.berth("jobs").out, re.M)


def test_on_a_terminal_the_same_about_a_job_that_is_over_is_said_once(machine):
    failed = submit(machine, "--", "true")
    machine.berth("wait", failed)
    number = submit(machine, "--after-ok", failed, "--", "true")
    broken = submit(machine, "--", "false")
    machine.berth("wait", broken)
    refused = submit(machine, "--after-ok", broken, "--", "true")
    machine.berth("wait", number, refused)
    why = f"job {refused}: job {broken} did not end with status 0"
    # In a pipe, each time.
    assert all(why in machine.berth("jobs").out for _ in range(2))
    began = int(time.time())
    assert why in plain(on_terminal(machine, "jobs", columns=200)[1])
    # What happened in the second of the look may not have been seen.
    eventually(lambda: int(time.time()) > began + 1)
    on_terminal(machine, "jobs", columns=200)
    assert why not in plain(on_terminal(machine, "jobs", columns=200)[1])
    assert why in plain(on_terminal(machine, "jobs", refused, columns=200)[1])
    assert why in machine.berth("jobs").out


def test_a_job_of_each_is_called_by_its_file(machine):
    file = machine.directory / "lines.sh"
    file.write_text("true\ntrue\n")
    assert machine.berth("each", file, "--job-name", "x").status == 0
    (found,) = checked(machine.berth("jobs", "--json"), "jobs")["jobs"]
    assert found["command"] == f"the lines of {file}" and found["words"] == ["sh", "-c"]


def test_messages_name_leases_as_the_tables_do(machine):
    lease = holder(machine, "--note", "mine")
    whole = only_lease(machine)
    assert machine.berth("list").out.count(whole) == 0
    for words in (["extend", whole, "1h"], ["cancel", whole]):
        answer = machine.berth(*words)
        assert answer.status != 0
        assert whole[-6:] in answer.err and whole not in answer.err
    answer = machine.berth("release", whole)
    assert f"ended the lease {whole[-6:]} of " in answer.out
    lease.process.wait(30)


def test_who_is_to_start_before_an_earlier_one_fills_a_gap(make_machine):
    machine = make_machine("2xH100")
    long = holder(machine, "--time", "3h")
    short = holder(machine, "--time", "1h")
    waiter(machine, "-n", "2", "--time", "1h")
    waiter(machine, "--time", "90m")
    waiters = checked(machine.berth("queue", "--json"), "queue")["waiters"]
    assert waiters[0]["fills_gap_until_s"] is None
    assert abs(waiters[1]["fills_gap_until_s"] - waiters[0]["starts_at_s"]) <= 1
    row = machine.berth("queue").out.splitlines()[2]
    assert re.search(r" -  +1 whole GPU .* fills a gap until (\d+ \w+ )?\d\d:\d\d on GPU 1$", row), row
    for each in (long, short):
        each.ends()


def test_a_mask_that_hides_gpus_is_named_with_what_to_do(machine):
    for words in (["run", "--", "true"], ["why"]):
        answer = machine.berth(*words, env={"CUDA_VISIBLE_DEVICES": "foo"})
        assert "unset CUDA_VISIBLE_DEVICES, or --mask ignore" in " ".join((answer.out + answer.err).split())
    assert "unset" not in machine.berth("why", env={"CUDA_VISIBLE_DEVICES": "1"}).out


def test_a_site_file_that_is_not_there_is_no_leave_to_do_anything(machine):
    env = {"BERTH_SITE_FILE": str(machine.directory / "sight.toml")}
    for words in (["run", "--", "true"], ["pick"], ["claim"]):
        answer = machine.berth(*words, env=env)
        assert answer.status == 1
        assert f"BERTH_SITE_FILE={machine.directory}/sight.toml names a file that is not there" in answer.err
    listed = machine.berth("list", env=env)
    assert listed.status == 0 and "names a file that is not there" in listed.err
    assert "nothing is granted until it is corrected" in machine.berth("doctor", env=env).out.replace(
        "\n      ", " "
    )
    assert machine.berth("run", "--", "true", env={"BERTH_SITE_FILE": "/dev/null"}).status == 0


def test_the_doctor_names_a_rule_for_a_gpu_that_is_not_there(machine):
    (machine.directory / "site.toml").write_text('[[excluded]]\ndevice = 99\nreason = "on loan"\n')
    said = " ".join(machine.berth("doctor").out.split())
    assert "WARN site file: [[excluded]] names device 99, and this machine has no such GPU" in said
    (machine.directory / "site.toml").write_text('[[excluded]]\ndevice = 7\nreason = "on loan"\n')
    assert "no such GPU" not in machine.berth("doctor").out


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ('model = "T4"\nunsupported = ["processes"]', "which processes use it"),
        ('model = "T4"\nname = "NVIDIA N1X"\nunified_memory = "unsupported"', "its memory in use"),
    ],
)
def test_a_gpu_that_can_never_be_had_is_a_finding_of_the_doctor(make_machine, keys, what):
    machine = make_machine(f"[[device]]\n{keys}\n")
    answer = machine.berth("doctor")
    assert answer.status == 1
    assert f"FAIL GPU 0: the driver does not tell {what}, so nobody can say that it is idle" in " ".join(
        answer.out.split()
    )
    why = " ".join(machine.berth("why").out.split())
    assert "so nobody can say that it is idle: `berth doctor` says more" in why


@pytest.mark.parametrize("most", [0, 1, 50, 100, 300])
def test_a_limit_on_file_sizes_is_called_so(machine, most):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    machine.berth("run", "--", "true")
    for words in (["run", "--", "true"], ["submit", "--", "true"], ["claim"]):
        process = subprocess.run(
            [machine.program, *words],
            env=machine.env,
            preexec_fn=limited,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert process.returncode == 1, (words, process)
        assert f"the limit on file sizes (ulimit -f) is {most} byte" in process.stderr, (words, process)


def test_a_command_keeps_the_limit_on_file_sizes_and_what_it_does(machine):
    script = f"ulimit -S -f 8; cd {machine.directory}; {machine.program} run -- sh -c 'head -c 100000 /dev/zero > big'"
    answer = machine.run("bash", "-c", script + "; echo $?; ls -s big >/dev/null")
    # The shell's status of what SIGXFSZ has ended.
    assert str(128 + 25) in answer.out, answer


def test_sbatch_without_a_script_asks_for_one(machine):
    assert (
        "which script? The input is empty: name a file, as in berth sbatch FILE"
        in machine.berth("sbatch").err
    )
