"""`berth serve --own-jobs`: what its user has submitted, waiting, running and over, for those who have the token."""

import json
import os
import signal
import sys

import pytest
from agent import TOKEN, Agent
from jobs import eventually
from schemas import checked_document
from submitted import submit, wait_for

BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def machine(make_machine):
    return make_machine("1xH100")


@pytest.fixture
def agent(machine, token_file):
    return Agent(machine, "--own-jobs", "--token-file", token_file)


def jobs(agent) -> list[dict]:
    status, _, text = agent.get("/api/v1/jobs", **BEARER)
    assert status == 200, text
    return checked_document(json.loads(text), "jobs")["jobs"]


def log(agent, query: str):
    status, header, text = agent.get(f"/api/v1/job-log{query}", **BEARER)
    return status, header["Content-Type"], text


def test_it_wants_to_know_who_asks(machine):
    for options in ((), ("--insecure",)):
        answer = machine.berth("serve", "--own-jobs", *options)
        assert answer.status == 2
        assert "give --token-file or --tls-clients" in " ".join(answer.err.split())


# Prints the status and the text that the Unix socket answers with.
ASKS_SOCKET = """
import http.client, socket, sys
path, target, *token = sys.argv[1:]
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(path)
connection.request("GET", target, headers={"Authorization": f"Bearer {token[0]}"} if token else {})
response = connection.getresponse()
print(response.status, response.read().decode())
"""


def test_at_the_unix_socket_another_user_needs_the_token_and_its_owner_needs_none(
    open_machine, as_user, token_file
):
    machine = open_machine
    number = submit(machine, "--", "echo", "secret")
    wait_for(machine, number, "ended")
    agent = Agent(machine, "--own-jobs", "--token-file", token_file)

    def ask(user, *words):
        return machine.run(*user, sys.executable, "-c", ASKS_SOCKET, agent.socket, *words).out

    for target in ("/api/v1/jobs", f"/api/v1/job-log?job={number}", "/api/v1/snapshot", "/api/v1/events"):
        told = ask(as_user(20001), target)
        assert told.startswith("401 ") and "secret" not in told
    assert ask(as_user(20001), "/api/v1/jobs", "0" * 32).startswith("401 ")
    assert "secret" in ask(as_user(20001), f"/api/v1/job-log?job={number}", TOKEN)
    assert "secret" in ask([], f"/api/v1/job-log?job={number}")
    # It shows no more than the network does.
    assert ask(as_user(20001), "/healthz").startswith("200 ")


def test_a_connection_of_another_user_from_before_tells_no_jobs(open_machine, as_user, token_file):
    machine = open_machine
    settings = machine.directory / "serve.toml"
    settings.write_text(f'token-file = "{token_file}"\n')
    agent = Agent(machine, "--config", settings)
    script = (
        "import http.client, socket, sys\n"
        "connection = http.client.HTTPConnection('localhost')\n"
        "connection.sock = socket.socket(socket.AF_UNIX)\n"
        "connection.sock.connect(sys.argv[1])\n"
        "for line in sys.stdin:\n"
        "    try:\n"
        "        connection.request('GET', line.strip())\n"
        "        response = connection.getresponse()\n"
        "        print(response.status, response.read(), flush=True)\n"
        "    except OSError:\n"
        "        print('closed', flush=True)\n"
    )
    client = machine.start(*as_user(20001), sys.executable, "-c", script, agent.socket, stdin=-1)

    def ask(target):
        client.stdin.write(target + "\n")
        client.stdin.flush()
        return client.stdout.readline()

    assert ask("/api/v1/jobs").startswith("200 ")
    settings.write_text(f'token-file = "{token_file}"\nown-jobs = true\n')
    os.kill(agent.process.pid, signal.SIGHUP)
    assert eventually(lambda: agent.get("/api/v1/jobs", **BEARER)[2] != "null\n")
    assert ask("/api/v1/jobs").startswith(("closed", "401 "))


def test_waiting_running_and_ended_jobs_are_told_to_who_has_the_token(machine, agent):
    assert jobs(agent) == []
    done = submit(machine, "-J", "short", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    wait_for(machine, done, "ended")
    running = submit(machine, "--", "sh", "-c", "echo begun; exec sleep 1000")
    wait_for(machine, running, "running")
    waiting = submit(machine, "--", "true")
    found = eventually(lambda: len(told := jobs(agent)) == 3 and told[2]["in_line"] and told)
    assert [(each["id"], each["state"], each["exit_status"]) for each in found] == [
        (done, "ended", 3),
        (running, "running", None),
        (waiting, "waiting", None),
    ]
    assert log(agent, f"?job={done}") == (200, "text/plain; charset=utf-8", "out\nerr\n")
    assert eventually(lambda: log(agent, f"?job={running}")[2]) == "begun\n"
    assert log(agent, f"?job={waiting}")[2] == ""
    for path in ("/api/v1/jobs", f"/api/v1/job-log?job={done}"):
        assert agent.get(path)[0] == 401
    assert machine.berth("cancel", running).status == 0


def test_of_a_long_output_the_end_is_told(machine, agent):
    number = submit(machine, "--", "sh", "-c", "seq 100000; seq 100 | tr -d '\\n' ; echo; seq 200")
    wait_for(machine, number, "ended")
    text = log(agent, f"?job={number}")[2]
    assert text == "".join(f"{each}\n" for each in range(1, 201))
    wide = submit(machine, "--", "sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x")
    wait_for(machine, wide, "ended")
    assert log(agent, f"?job={wide}")[2] == "x" * 65536


def test_an_array_is_one_job_and_its_tasks_have_their_logs(machine, agent):
    sweep = submit(machine, "--array", "0-1", "--", "sh", "-c", "echo task $BERTH_ARRAY_INDEX")
    eventually(lambda: (found := jobs(agent)) and found[0]["tasks"] and found[0]["tasks"]["done"] == 2)
    assert log(agent, f"?job={sweep}.1")[2] == "task 1\n"
    assert log(agent, f"?job={sweep}")[0] == 400
    assert log(agent, f"?job={sweep}.2")[0] == 404


@pytest.mark.parametrize("query", ["", "?job=", "?job=../1", "?job=0", "?job=1&lines=3", "?jobs=1"])
def test_what_names_no_job_is_refused(agent, query):
    status, kind, text = log(agent, query)
    assert (status, kind) == (400, "application/json")
    assert "job must be the number of a job" in text


def test_without_it_no_job_is_told_and_sighup_changes_that(machine, token_file, tmp_path):
    number = submit(machine, "--", "echo", "secret")
    wait_for(machine, number, "ended")
    settings = tmp_path / "serve.toml"
    settings.write_text(f'token-file = "{token_file}"\n')
    agent = Agent(machine, "--config", settings)
    assert agent.get("/api/v1/jobs", **BEARER)[2] == "null\n"
    status, _, text = log(agent, f"?job={number}")
    assert status == 404 and "--own-jobs" in text and "secret" not in text
    settings.write_text(f'token-file = "{token_file}"\nown-jobs = true\n')
    os.kill(agent.process.pid, signal.SIGHUP)
    assert eventually(lambda: log(agent, f"?job={number}")[0] == 200)
    assert [each["id"] for each in jobs(agent)] == [number]


def test_a_spool_that_cannot_be_read_is_said_and_the_agent_serves_on(machine, agent):
    wait_for(machine, submit(machine, "--", "true"), "ended")
    home = machine.directory / "home/.local/state/berth/jobs"
    (folder,) = home.iterdir()
    folder.chmod(0o777)
    status, _, text = eventually(lambda: (got := agent.get("/api/v1/jobs", **BEARER))[0] == 503 and got)
    assert "others may write there" in text
    folder.chmod(0o700)
    assert eventually(lambda: agent.get("/api/v1/jobs", **BEARER)[0] == 200)
    assert agent.get("/healthz")[0] == 200
