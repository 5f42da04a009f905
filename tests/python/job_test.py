"""berth.submit and berth.Job: jobs from a program."""


def test_a_job_is_submitted_waited_for_and_read(host):
    code = """
    job = berth.submit(["sh", "-c", "echo $CUDA_VISIBLE_DEVICES $BERTH_JOB_NAME; exit 3"], n=2, name="a b")
    say(job, job.wait(), job.state, job.exit_status, job.log().strip(), job.tasks == (job,))
    say(berth.Job(job.id) == job, berth.submit("true", time="1h", note="x", retries=1).wait("30s"))
    """
    assert host.says(code) == ["<berth.Job 1> 3 failed 3 0,1 a b True", "True 0"]


def test_a_job_may_yield_and_run_again(host):
    code = """
    say(berth.submit("true", yield_=True, requeue=True, rerun=True).wait(), berth.submit("true", yield_="2m").wait())
    try:
        berth.submit("true", requeue=True)
    except berth.Usage as error:
        say(error)
    """
    assert host.says(code)[0] == "0 0"
    assert host.says(code)[1].startswith("--requeue is for jobs that yield: add --yield")


def test_arrays_parameters_and_what_comes_after(host):
    code = """
    job = berth.submit("echo {index}; test {index} != 2", array=range(1, 4), at_once=2)
    later = berth.submit(["true"], after_ok=job)
    other = berth.submit(["echo", "{lr}", "{seed}"], params={"lr": [0.1], "seed": [1, 2]}, after=[job, 1])
    say(job.wait(), job.state, [task.state for task in job.tasks])
    say(later.wait(), later.state, other.wait(), [task.log() for task in other.tasks])
    """
    assert host.says(code) == [
        "1 failed ['done', 'failed', 'done']",
        "1 cancelled 0 ['0.1 1\\n', '0.1 2\\n']",
    ]


def test_a_job_that_waits_is_edited(host):
    code = """
    job = berth.submit("true", name="late", at="2h")
    job.edit(hold=True)
    say(job.state)
    job.edit(hold=False, n=2, time="1h")
    say(job.state, berth.Job(job.id)._told()[0]["request"])
    try:
        job.edit(n=9)
    except berth.Impossible:
        say("never")
    other = berth.submit("true", name="late", singleton=True)
    mends = berth.submit("true", after_fail=job)
    job.cancel()
    say(other.wait(), mends.wait())
    """
    assert host.says(code) == ["held", "waiting ['--count=2', '--time=1h']", "never", "0 0"]


def test_a_job_tells_the_receipts_of_its_runs(host):
    code = """
    job = berth.submit("exit {index}", array=range(2))
    job.wait()
    say([(each["job"], each["exit_status"]) for each in job.receipts])
    say(berth.submit("true", at="2h").receipts)
    try:
        berth.Job("77").receipts
    except berth.Error as error:
        say("77" in str(error))
    """
    assert host.says(code) == ["[('1.0', 0), ('1.1', 1)]", "()", "True"]


def test_only_some_statuses_make_a_job_run_again(host):
    code = """
    for status in (7, 9):
        job = berth.submit(["sh", "-c", "echo x; exit $0", str(status)], retries=1, retry_on=[7, 8])
        say(job.wait(), job.log().split())
    """
    assert host.says(code) == ["7 ['x', 'x']", "9 ['x']"]


def test_a_job_for_anywhere_goes_through_ssh(host):
    ssh = host.machine.directory / "ssh"
    ssh.write_text(
        f'#!/bin/sh\nfor last; do :; done\nPATH={host.machine.program.parent}:$PATH exec sh -c "$last"\n'
    )
    ssh.chmod(0o755)
    code = f"""
    os.environ["BERTH_SSH"] = {str(ssh)!r}
    job = berth.submit("echo $CUDA_VISIBLE_DEVICES", n=2, anywhere=["gpu1"])
    say(job.wait(), job.log().strip(), berth.submit("true", anywhere="gpu1,gpu2", near="/").wait())
    """
    assert host.says(code) == ["0 0,1 0"]


def test_a_wait_that_runs_out_leaves_the_job_and_cancel_ends_it(host):
    code = """
    job = berth.submit(["sleep", "1000"])
    try:
        job.wait(0.2)
    except berth.TimedOut as error:
        say(error)
    say(job.exit_status, job.state in ("waiting", "in line", "running"))
    job.cancel()
    say(job.state, job.exit_status, job.wait())
    job.retry()
    job.cancel(wait="20s")
    """
    assert host.says(code) == [
        "job 1 is not over after 0.2 (s, where no unit is given)",
        "None True",
        "cancelled 1 1",
    ]


def test_a_job_with_a_terminal_is_attached_to_from_a_terminal_only(host):
    code = """
    job = berth.submit("test -t 0 && echo yes", tty=True)
    say(job.wait(), job.log().strip())
    try:
        job.attach()
    except berth.Usage as error:
        say(error)
    """
    assert host.says(code) == [
        "0 yes",
        "job 1 cannot be attached to without a terminal; job.log() is what it has printed",
    ]


def test_what_makes_no_sense_is_refused_with_its_reason(host):
    code = """
    for wrong in (
        lambda: berth.submit([]),
        lambda: berth.submit("true", n=0),
        lambda: berth.submit("true", array="x"),
        lambda: berth.submit(["no-such-program"]),
        lambda: berth.Job("77").state,
        lambda: berth.Job("77").wait(),
        lambda: berth.submit("true", after=77),
    ):
        try:
            say("nothing was wrong", wrong())
        except (berth.Error, ValueError) as error:
            say(type(error).__name__, str(error)[:40])
    """
    assert host.says(code) == [
        "ValueError command must have at least one word",
        "ValueError n must be 1 or more, not 0",
        "Usage --array x: must be indices like 0-99 or ",
        "Error no-such-program: there is no such comman",
        "Error there is no job 77 of yours on this mach",
        "Error there is no job 77 of yours on this mach",
        "Error there is no job 77 to come after; `berth",
    ]


def test_who_is_told_and_when_it_may_start(host, tmp_path):
    code = f"""
    job = berth.submit("exit 3", at="1s", notify=["cmd:echo $BERTH_MESSAGE > {tmp_path}/told.new; mv {tmp_path}/told.new {tmp_path}/told"])
    say(job.state, job.wait())
    while not os.path.exists("{tmp_path}/told"): time.sleep(0.01)
    say(open("{tmp_path}/told").read().strip())
    """  # noqa: E501
    assert host.says(code) == ["waiting 3", "failed: exit status 3"]


def test_the_folder_and_the_environment_are_those_that_were_said(host, tmp_path):
    code = f"""
    env = {{**os.environ, "MARK": "seen"}}
    job = berth.submit("pwd; echo $MARK", folder="{tmp_path}", env=env)
    say(job.wait(), job.log().split())
    """
    assert host.says(code) == [f"0 ['{tmp_path}', 'seen']"]


def test_jobs_are_listed_with_what_became_of_them(host):
    code = """
    say(berth.jobs())
    berth.submit("exit 3", name="bad").wait()
    berth.submit("exit {index}", array=range(2)).wait()
    late = berth.submit("true", at="2h", n=2)
    for each in berth.jobs():
        say(each.id, each.name, each.state, each.exit_status, each.command, each.devices, each.job == berth.Job(each.id))
    say([each.id for each in berth.jobs("failed")], [each.id for each in berth.jobs("waiting", "done")])
    first = berth.jobs()[0]
    say(first.submitted_s <= first.started_s <= first.ended_s, first.starts_at_s, first.reason, late.state)
    """
    assert host.says(code) == [
        "()",
        "1 bad failed 3 sh -c exit 3 ('0',) True",
        "2 None failed None sh -c exit {index} () True",
        "3 None waiting None sh -c true () True",
        "['1', '2.1'] ['2.0', '3']",
        "True None None waiting",
    ]


def test_who_waits_is_listed_and_a_job_is_cancelled_by_name_number_or_itself(host):
    code = """
    say(berth.queue())
    holder = berth.submit("sleep 1000", n=2, name="holder", time="1h")
    while holder.state != "running": pass
    jobs = [berth.submit("true", name=name, note="mine", memory=size) for name, size in (("a", "1G"), ("b", "2G"), ("c", "3G"))]
    while len(berth.queue()) < 3: pass
    first, second, _ = berth.queue()
    say(first.position, first.n, first.job, first.behind, first.starts_at_s == berth.jobs()[1].starts_at_s, first.reason != "")
    say(second.behind == first.id, second.pid > 1, second.since_s > 0, second.request)
    berth.cancel("a", jobs[1])
    berth.cancel(berth.jobs("in line")[0], wait="20s")
    say([job.state for job in jobs])
    try:
        berth.cancel(99, holder)
    except berth.Error as error:
        say(error)
    say(holder.state)
    """
    assert host.says(code) == [
        "()",
        "1 1 2 None True True",
        "True True True 1 shared GPU, 2 GiB of memory each",
        "['cancelled', 'cancelled', 'cancelled']",
        "there is no job 99 of yours on this machine (`berth jobs`)",
        "cancelled",
    ]
