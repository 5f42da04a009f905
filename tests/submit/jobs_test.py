"""berth submit, jobs, log, forget: what a user sees of jobs that are left alone."""

import re

from jobs import eventually
from lease_jobs import waiting
from schemas import checked
from simulated_machine import DEADLINE_S
from submitted import fill, job, log, submit, told, wait_for


def test_a_job_runs_with_a_gpu_in_the_folder_and_environment_of_its_submit(machine, tmp_path):
    folder = tmp_path / "a folder\nof two lines"
    folder.mkdir()
    script = (
        'pwd; echo "$WORDS|$CUDA_VISIBLE_DEVICES|$BERTH_JOB|$BERTH_JOB_NAME" "$1"; echo wrong >&2; exit 3'
    )
    number = submit(
        machine,
        "--job-name",
        "train",
        "--",
        "sh",
        "-c",
        script,
        "sh",
        "a\nb",
        cwd=folder,
        env={"WORDS": "one two"},
    )
    assert number == "1"
    assert machine.berth("wait", number).status == 3
    assert log(machine, number) == f"{folder}\none two|0|1|train a\nb\nwrong\n"
    (found,) = checked(machine.berth("jobs", "--json", number), "jobs")["jobs"]
    assert (found["name"], found["state"], found["exit_status"]) == ("train", "ended", 3)
    assert found["devices"] == ["0"] and found["starts"] == 1
    table = machine.berth("jobs").out.splitlines()
    assert table[0].split() == "JOB NAME STATE SUBMITTED START END TIME GPU EXIT COMMAND".split()
    assert table[1].split()[:3] == ["1", "train", "failed"]


def test_an_environment_with_newlines_and_of_100_kb_arrives(machine):
    value = "line\n= \\n" * 12800
    number = submit(machine, "--", "sh", "-c", 'printf %s "$BIG"', env={"BIG": value, "EMPTY": ""})
    assert machine.berth("wait", number).status == 0
    assert log(machine, number) == value


def test_a_command_that_is_not_there_is_told_at_submit(machine):
    answer = machine.berth("submit", "--", "trian")
    assert (answer.status, answer.out) == (127, "")
    assert "trian: there is no such command on PATH" in answer.err
    assert told(machine) == []


def test_jobs_are_shown_by_their_state_and_arrays_task_by_task(machine):
    ended = submit(machine, "--", "true")
    failed = submit(machine, "-J", "bad", "--", "false")
    array = submit(machine, "--array", "0-2", "--", "sh", "-c", "exit $((BERTH_ARRAY_INDEX == 1))")
    later = submit(machine, "--at", "1h", "--", "true")
    machine.berth("wait", ended, failed, array)

    def shown(*words):
        table = machine.berth("jobs", *words).out.split("\n\n")[0].splitlines()[1:]
        ids = [line.split()[0] for line in table]
        assert [job["id"] for job in checked(machine.berth("jobs", "--json", *words), "jobs")["jobs"]] == ids
        return ids

    assert shown("--state", "failed") == [failed, f"{array}.1"]
    assert shown("--state", "failed", array) == [f"{array}.1"]
    assert shown("--state=waiting", "--state=failed", failed, later) == [failed, later]
    assert shown("--state", "done") == [ended, f"{array}.0", f"{array}.2"]
    assert machine.berth("jobs", "--state", "running").out == "no job of yours is running\n"
    assert (
        machine.berth("jobs", "--state", "in-line", "--state", "running").out
        == "no job of yours is in line or running\n"
    )
    assert machine.berth("jobs", "--state", "bad").status == 2


def test_a_job_that_waits_for_its_time_says_it(machine):
    number = submit(machine, "--at", "1h", "--", "true")
    at = job(machine, number)["not_before_s"]
    clock = machine.run("date", "-d", f"@{at}", "+%H:%M").out.strip()
    assert re.search(
        rf"^job {number}: starts at (\d+ \w+ )?{clock} at the earliest$", machine.berth("jobs").out, re.M
    )
    soon = submit(machine, "--at", "1s", "--", "true")
    assert machine.berth("wait", soon).status == 0
    assert "earliest" not in machine.berth("jobs", soon).out


def test_what_makes_no_sense_is_refused(machine):
    for words in ([], ["-n", "0", "--", "true"], ["--after", "7", "--", "true"]):
        assert machine.berth("submit", *words).status in (1, 2)
    assert told(machine) == []


def test_what_this_machine_can_never_grant_is_refused_at_once_as_by_run(machine):
    submit(machine, "--at", "1h", "--", "true")
    refused = machine.berth("run", "-n", "9", "--", "true")
    assert refused.status == 69 and refused.out == ""
    for more in ([], ["--at", "1h"], ["--after", "1"], ["--array", "0-3"]):
        assert machine.berth("submit", "-n", "9", *more, "--", "true") == refused
    assert len(told(machine)) == 1


def test_a_time_that_the_site_never_allows_is_refused_at_once(machine):
    (machine.directory / "site.toml").write_text('time = "1h"\n[limits]\ngpus = 4\n')
    assert "a lease here lasts 1h at most" in machine.berth("submit", "--time", "2h", "--", "true").err
    assert "limit is 4 GPUs" in machine.berth("submit", "-n", "5", "--", "true").err
    assert told(machine) == []


def test_a_device_that_is_lost_now_may_be_back_for_a_job_that_starts_later(make_machine):
    machine = make_machine('[[device]]\nmodel = "H100"\n[[device]]\nmodel = "H100"\nlost = true\n')
    answer = machine.berth("submit", "-n", "2", "--", "true")
    assert (answer.status, answer.out) == (69, "")
    assert "GPU 1  lost" in answer.err
    first = submit(machine, "-n", "2", "--at", "1h", "--", "true")
    submit(machine, "-n", "2", "--after-ok", first, "--", "true")
    assert machine.berth("submit", "-n", "3", "--at", "1h", "--", "true").status == 69


def test_a_machine_that_cannot_be_looked_at_takes_every_job(make_machine):
    machine = make_machine('[[fault]]\ncall = "nvmlInit*"\nresult = 9\n[[device]]\nmodel = "H100"\n')
    assert machine.berth("run", "-n", "9", "--", "true").status == 69
    submit(machine, "--at", "1h", "-n", "9", "--", "true")


def test_what_is_submitted_in_a_lease_is_for_the_whole_machine(machine):
    inside = machine.berth("run", "--", machine.program, "submit", "--at", "1h", "-n", "8", "--", "true")
    assert (inside.status, inside.err) == (0, "")


def test_a_request_that_nothing_can_satisfy_any_more_ends_the_job_with_the_reason(machine):
    first = submit(machine, "--", "sleep", "1000")
    number = submit(machine, "-n", "8", "--after", first, "--", "true")
    wait_for(machine, first, "running")
    machine.change("4xH100")
    assert machine.berth("cancel", first).status == 0
    assert machine.berth("wait", number).status == 69
    assert "8 whole GPUs" in job(machine, number)["reason"]
    assert "8 whole GPUs" in log(machine, number)


def test_a_job_is_the_machines_and_not_of_the_lease_that_it_was_submitted_in(machine):
    answer = machine.berth(
        "run", "--", machine.program, "submit", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; sleep 1000"
    )
    assert (answer.status, answer.out, answer.err) == (0, "1\n", "")
    wait_for(machine, "1", "running")
    assert [len(lease["devices"]) for lease in machine.berth("list", "--json").json["leases"]] == [1]


def test_a_mask_that_no_lease_made_holds_for_the_job(machine):
    number = submit(
        machine, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES", env={"CUDA_VISIBLE_DEVICES": "5"}
    )
    assert machine.berth("wait", number).status == 0
    assert log(machine, number) == "5\n"


def test_list_and_queue_show_the_job(make_machine):
    machine = make_machine("1xH100")
    fill(machine, 1)
    submit(machine, "--job-name", "tune", "--note", "for the paper", "--", "sh", "-c", "true")
    eventually(lambda: len(waiting(machine)) == 1)
    assert '"job 1 holder"' in machine.berth("list").out
    assert '"job 2 tune: for the paper"' in machine.berth("queue").out


def test_a_log_is_followed_until_the_job_is_over(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    number = submit(machine, "--", "sh", "-c", "echo one; sleep 0.2; echo two")
    follower = machine.start_berth("log", "-f", number)
    machine.berth("cancel", holder)
    out, err = follower.communicate(timeout=DEADLINE_S)
    assert (out, follower.returncode) == ("one\ntwo\n", 0)
    # Said only where it takes longer than a moment.
    assert err == "" or f"job {number} has not begun" in err


def test_a_log_of_which_somebody_reads_only_the_beginning_ends_without_a_word(machine):
    number = submit(machine, "--", "seq", "200000")
    machine.berth("wait", number)
    answer = machine.run("bash", "-c", f"{machine.program} log {number} | head -n 2; echo ${{PIPESTATUS[0]}}")
    assert (answer.out, answer.err) == ("1\n2\n141\n", "")


def test_a_job_that_is_over_is_forgotten_and_its_number_with_it(machine):
    numbers = [submit(machine, "--", "true"), submit(machine, "--", "sleep", "1000")]
    machine.berth("wait", numbers[0])
    answer = machine.berth("forget", *numbers)
    assert answer.status == 1 and f"berth cancel {numbers[1]} ends it" in answer.err
    machine.berth("cancel", numbers[1])
    assert machine.berth("forget", *numbers).status == 0
    assert machine.berth("jobs").out.startswith("no jobs;")
    assert submit(machine, "--", "true") == "3"


def test_completion_offers_the_jobs(machine):
    submit(machine, "--job-name", "train", "--", "sleep", "1000")
    submit(machine, "--", "sleep", "999")
    assert machine.berth("__tasks").out == "1\ttrain\n2\tsleep 999\n"


def test_a_question_makes_no_spool(machine):
    home = machine.directory / "home"
    assert machine.berth("jobs").out.startswith("no jobs;")
    for words in (["jobs", "1"], ["wait", "1"], ["cancel", "1"], ["log", "1"], ["__tasks"]):
        machine.berth(*words)
    assert list(home.iterdir()) == []


def test_a_long_argument_is_cut_in_the_table_and_whole_in_json(machine):
    word = "x" * 130_000
    number = submit(machine, "--", "true", word)
    assert max(map(len, machine.berth("jobs").out.splitlines())) < 400
    assert job(machine, number)["words"] == ["true", word]


def test_a_name_leaves_as_one_line(machine):
    number = submit(machine, "-J", "a\nb\x1b[31m", "--", "true")
    assert job(machine, number)["name"] == "a\\x0ab\\x1b[31m"


def test_a_number_that_is_no_job_is_called_so(machine):
    for words in (["cancel", "99"], ["cancel", "99", "98"]):
        answer = machine.berth(*words)
        assert answer.status == 1 and "there is no job 99 of yours on this machine" in answer.err


def test_a_number_that_cannot_be_written_is_told_with_the_failure(machine):
    with open("/dev/full", "w") as full:
        answer = machine.berth("submit", "--", "true", stdout=full)
    (stored,) = told(machine)
    assert answer.status == 1
    assert answer.err == (
        f"berth: writing the answer: No space left on device; all the same, job {stored['id']} is submitted\n"
    )


def test_a_command_without_a_name_is_said_to_have_none(machine):
    for words in (["submit"], ["run"]):
        answer = machine.berth(*words, "--", "")
        assert (answer.status, answer.err) == (127, "berth: the name of the command is empty\n")


def test_what_is_refused_is_shown_but_not_all_of_it(machine):
    answer = machine.berth("submit", "--job-name", "x" * 5000, "--", "true")
    assert answer.status == 2
    assert answer.err == f"berth: --job-name {'x' * 100}…: must have 1 to 100 characters\n"
    assert "berth: --state: must be one of waiting, held," in machine.berth("jobs", "--state", "").err
