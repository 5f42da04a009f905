"""Notices: what jobs and commands tell, to whom, and that a hook holds up nobody."""

import http.server
import json
import re
import shlex
import shutil
import subprocess
import threading

import pytest
from jobs import eventually, state
from schemas import checked
from simulated_machine import DEADLINE_S
from storm import processes
from submitted import fill, job, kill, submit, wait_for

HOOK = 'cmd:echo "$BERTH_EVENT|$BERTH_JOB|$BERTH_SUBJECT|$BERTH_MESSAGE|$BERTH_EXIT_STATUS" >> {0}/told'


@pytest.fixture
def hook(machine) -> str:
    return HOOK.format(machine.directory)


def told(machine) -> list[str]:
    file = machine.directory / "told"
    return file.read_text().splitlines() if file.exists() else []


def test_the_end_of_a_job_is_told_once_and_its_start_where_it_is_asked_for(machine, hook):
    number = submit(machine, "-J", "a b", "--notify", hook, "--notify-on", "start,end,fail", "--", "true")
    assert machine.berth("wait", number).status == 0
    eventually(lambda: len(told(machine)) == 2)
    assert sorted(told(machine)) == [
        "end|1|job 1 (a b)|ended with status 0|0",
        "start|1|job 1 (a b)|started on GPU 0|",
    ]
    number = submit(machine, "--notify", hook, "--retries", "1", "--", "sh", "-c", "exit 3")
    machine.berth("wait", number)
    eventually(lambda: len(told(machine)) == 3)
    assert told(machine)[-1] == "fail|2|job 2|failed: exit status 3|3"
    # Nobody tells it again.
    eventually(lambda: not processes(machine)["runner"])
    machine.berth("wait", submit(machine, "--", "true"))
    eventually(lambda: not processes(machine)["runner"])
    assert len(told(machine)) == 3


def test_an_array_is_told_of_as_one(machine, hook):
    number = submit(
        machine,
        "--array",
        "1-6",
        "--notify",
        hook,
        "--notify-on",
        "start,end,fail",
        "--",
        "test",
        "{index}",
        "!=",
        "3",
    )
    machine.berth("wait", number)
    eventually(lambda: len(told(machine)) == 2)
    assert sum(line.startswith("start|") for line in told(machine)) == 1
    assert "fail|1|job 1|ended: 1 of 6 tasks did not end with status 0|1" in told(machine)


def test_one_whose_run_and_runner_are_killed_is_told_of_by_the_next(machine, hook):
    number = submit(machine, "--notify", hook, "--", "sleep", "1000")
    wait_for(machine, number, "running")
    kill(machine, "runner")
    kill(machine, "run")
    wait_for(machine, number, "interrupted")
    assert told(machine) == []
    submit(machine, "--", "true")
    eventually(lambda: len(told(machine)) == 1)


def test_a_time_that_is_over_soon_is_told(machine, hook):
    number = submit(machine, "--notify", hook, "--notify-on", "time", "--time", "2s", "--", "sleep", "1000")
    machine.berth("wait", number)
    eventually(lambda: len(told(machine)) == 1)
    assert told(machine)[0].startswith(f"time|{number}|job {number}|its time is over in ")


def test_a_hook_that_hangs_delays_nothing_and_one_that_fails_is_named(make_machine):
    machine = make_machine("1xH100")
    hanging = submit(machine, "--notify", "cmd:sleep 1000", "--", "true")
    failing = submit(machine, "--notify", "cmd:echo no such thing >&2; exit 4", "--", "true")
    assert machine.berth("wait", hanging, failing).status == 0
    # The GPU is given to the next although the hook still hangs, for thirty seconds.
    assert machine.berth("run", "--wait", "15s", "--", "true").status == 0
    words = "the notice to cmd:echo no such thing >&2; exit 4 about its end was not sent: exit status 4: no such thing"
    eventually(lambda: job(machine, failing)["not_told"] == words)
    assert f"job {failing}: {words}" in machine.berth("jobs").out
    checked(machine.berth("jobs", "--json"), "jobs")


def test_a_hook_that_never_ends_is_killed_and_named(machine):
    never = "trap '' TERM; echo $$ >{0}/hook; while :; do sleep 0.1; done".format(machine.directory)
    number = submit(machine, "--notify", f"cmd:{never}", "--", "true")
    assert machine.berth("wait", number).status == 0
    words = "was not sent: it did not end within 30 s"
    eventually(lambda: words in (job(machine, number)["not_told"] or ""), 2 * DEADLINE_S)
    assert words in machine.berth("jobs", number).out
    pid = int((machine.directory / "hook").read_text())
    eventually(lambda: state(pid) == "gone")


def test_a_mail_goes_through_sendmail(machine):
    folder = machine.directory / "bin"
    folder.mkdir()
    mailer = folder / "sendmail"
    mailer.write_text(
        f'#!/bin/sh\necho "$@" > {machine.directory}/words\ncat > {machine.directory}/mail.new\nmv {machine.directory}/mail.new {machine.directory}/mail\n'
    )
    mailer.chmod(0o755)
    env = {"PATH": f"{folder}:{machine.env['PATH']}"}
    number = submit(
        machine, "-J", "x\nBcc: eve", "--notify", "mail:ada@example.org", "--", "sh", "-c", "exit 3", env=env
    )
    machine.berth("wait", number)
    eventually((machine.directory / "mail").exists)
    head, body = (machine.directory / "mail").read_text().split("\n\n", 1)
    assert head.splitlines()[:2] == [
        "To: ada@example.org",
        "Subject: berth: job 1 (x\\x0aBcc: eve): failed: exit status 3",
    ]
    assert "failed: exit status 3" in body and "`berth log 1`" in body
    assert (machine.directory / "words").read_text() == "-t -oi\n"


@pytest.fixture
def webhook():
    """A server, and what it has got."""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            got.append((self.path, dict(self.headers), body))
            self.send_response(500 if self.path == "/broken" else 200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", got
    server.shutdown()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_webhooks_get_what_they_read(machine, webhook):
    url, got = webhook
    targets = [word for way in ("ntfy", "slack", "json") for word in ("--notify", f"{way}:{url}/{way}?a=b")]
    number = submit(
        machine, "-J", 'the "x"', *targets, "--notify", f"json:{url}/broken", "--", "sh", "-c", "exit 3"
    )
    machine.berth("wait", number)
    eventually(lambda: len(got) == 4)
    bodies = {path: body for path, _, body in got}
    assert re.fullmatch(
        r'job 1 \(the "x"\) on .*: failed: exit status 3; ran \d+ m?s on GPU 0', bodies["/ntfy?a=b"]
    )
    assert json.loads(bodies["/slack?a=b"]) == {"text": bodies["/ntfy?a=b"]}
    document = json.loads(bodies["/json?a=b"])
    assert (document["event"], document["job"], document["name"], document["exit_status"]) == (
        "fail",
        "1",
        'the "x"',
        3,
    )
    (title,) = (headers["Title"] for path, headers, _ in got if path.startswith("/ntfy"))
    assert title == "berth: fail"
    # Its URL may be a secret, and is told nobody.
    eventually(
        lambda: (job(machine, number)["not_told"] or "").startswith(
            "the notice to json about its failure was not sent"
        )
    )


def test_a_run_tells_as_well(machine, hook):
    answer = machine.berth(
        "run", "--notify", hook, "--notify-on", "start,end,fail", "--", "sh", "-c", "exit 3"
    )
    assert answer.status == 3
    eventually(lambda: len(told(machine)) == 2)
    assert sorted(told(machine)) == ["fail||sh|failed: exit status 3|3", "start||sh|started on GPU 0|"]


def test_the_end_is_told_with_what_the_run_had_and_used(machine):
    hook = f'cmd:echo "$BERTH_EVENT $BERTH_USED" >> {machine.directory}/told'
    assert machine.berth("run", "-n", "2", "--notify", hook, "--", "true").status == 0
    eventually(lambda: len(told(machine)) == 1)
    machine.berth("wait", submit(machine, "--notify", hook, "--", "true"))
    eventually(lambda: len(told(machine)) == 2)
    assert re.fullmatch(r"end ran \d+ m?s on GPU 0,1", told(machine)[0])
    assert re.fullmatch(r"end ran \d+ m?s on GPU \d", told(machine)[1])


def claim(machine, hook, *options):
    """A shell with a claim, which ends when its input does."""
    words = shlex.join(["claim", "--notify", hook, "--notify-on", "start,end,time", *options])
    job = machine.start(
        "bash", "-c", f'eval "$({machine.program} {words})"; echo ready; read line', stdin=subprocess.PIPE
    )
    assert job.stdout.readline() == "ready\n"
    (lease,) = machine.berth("list", "--json").json["leases"]
    return job, lease["id"]


def test_a_claim_tells_of_its_start_and_of_its_end_with_its_process(machine, hook):
    job, lease = claim(machine, hook, "--note", "notebook", "--devices", "2,5")
    eventually(lambda: told(machine) == [f"start||lease {lease[-6:]} (notebook)|began on GPU 2,5|"])
    job.communicate("")
    eventually(lambda: len(told(machine)) == 2)
    assert told(machine)[1] == f"end||lease {lease[-6:]} (notebook)|ended with its process|0"


def test_a_claim_tells_that_its_time_is_soon_over_and_then_that_it_is(machine, hook):
    job, lease = claim(machine, hook, "--time", "2s")
    eventually(lambda: len(told(machine)) == 3)
    # No hook waits for another: they may come in any order.
    end, start, soon = sorted(told(machine))
    assert start.startswith("start|") and soon.startswith(f"time||lease {lease[-6:]}|its time is over in ")
    assert end == f"end||lease {lease[-6:]}|has ended: its time of 2s is over|0"
    job.communicate("")
    # Its keeper has gone, and nobody tells of the end of the shell.
    assert len(told(machine)) == 3


def test_a_claim_tells_who_has_released_it(machine, hook):
    job, lease = claim(machine, hook)
    assert machine.berth("release", lease, "--because", "lunch").status == 0
    eventually(lambda: len(told(machine)) == 2)
    assert re.fullmatch(rf"end\|\|lease {lease[-6:]}\|was released by .*lunch.*\|0", min(told(machine)))
    job.communicate("")


def test_a_hook_of_a_claim_runs_in_the_folder_of_its_caller_and_holds_up_nothing(machine):
    folder = machine.directory / "here"
    folder.mkdir()
    words = shlex.join(["claim", "--notify", "cmd:pwd > where; exec sleep 1000", "--notify-on", "start,end"])
    shell = ("bash", "-c", f'eval "$({machine.program} {words})"; echo $?')
    assert machine.run(*shell, cwd=folder).out == "0\n"
    eventually(lambda: machine.berth("list", "--json").json["leases"] == [])
    where = folder / "where"
    eventually(lambda: where.exists() and where.read_text() == f"{folder}\n")


def test_mail_without_sendmail_is_refused_at_submit(machine):
    if shutil.which("sendmail", path="/usr/sbin:/usr/lib:/usr/bin:/usr/local/bin:/bin"):
        pytest.skip("needs a machine without sendmail")
    answer = machine.berth("submit", "--notify", "mail", "--", "true")
    assert answer.status == 2 and "there is no program sendmail on this machine" in answer.err
    assert fill(machine, 1) == ["1"]
