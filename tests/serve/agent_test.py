"""What the agent answers, asked by clients that we did not write."""

import array
import fcntl
import json
import os
import pathlib
import pwd
import signal
import socket
import subprocess
import termios
import urllib.parse

from agent import Agent, curl
from jobs import eventually, holder, waiter
from openapi_spec_validator import validate
from probing import probes
from schemas import FOLDER, OPENAPI, check_described, checked_document, described_answer
from simulated_machine import DEADLINE_S


def documented(path: str, status: int, text: str) -> None:
    """The answer must be one that docs/openapi.yaml describes."""
    described = described_answer(path, status)
    assert described is not None, f"{status} of {path} is not in the document"
    if "application/json" in described.get("content", {}):
        check_described(described, json.loads(text))


def is_stream(described: dict) -> bool:
    return "text/event-stream" in described["get"]["responses"]["200"].get("content", {})


def test_the_document_is_openapi():
    validate(OPENAPI, base_uri=(FOLDER.parent / "openapi.yaml").as_uri())


def test_the_document_names_every_path_and_each_answers_as_it_says(agent):
    known = agent.get("/none")[2]
    real = {"device": agent.json("/api/v1/snapshot")["devices"][0]["uuid"]}
    for path, described in OPENAPI["paths"].items():
        address = path.format(name=socket.gethostname())
        assert address in known
        if is_stream(described):
            continue
        parameters = [each for each in described["get"].get("parameters", []) if each["in"] == "query"]
        query = urllib.parse.urlencode(
            {each["name"]: real.get(each["name"], each["example"]) for each in parameters}
        )
        status, _, text = agent.get(f"{address}?{query}" if query else address)
        documented(path, status, text)
        # It shows no jobs; own_jobs_test.py asks one that does.
        assert status == (404 if path == "/api/v1/job-log" else 200), path
    assert len(known.split("there are ")[1].split('"')[0].split()) == len(OPENAPI["paths"])


ODD_REQUESTS = {
    304: b"If-None-Match: *\r\n",
    400: b"Transfer-Encoding: gzip\r\n",
    413: b"Content-Length: 99999999999\r\n",
    431: b"X: " + b"x" * 20_000 + b"\r\n",
}


def test_the_document_names_every_status_that_a_request_can_provoke(agent):
    for path, described in OPENAPI["paths"].items():
        known = described["get"]["responses"]
        address = path.format(name=socket.gethostname())
        for host in (b"localhost", b"evil.example"):
            for query in ("", "?x=%", "?since=x&device=x&filter=x&by=x"):
                for header in (b"", *ODD_REQUESTS.values()):
                    if is_stream(described) and host == b"localhost" and header in (b"", ODD_REQUESTS[304]):
                        if not query:
                            continue
                    start = f"GET {address}{query} HTTP/1.1\r\nHost: ".encode() + host
                    answer = agent.raw(start + b"\r\nConnection: close\r\n" + header + b"\r\n")
                    assert answer.split()[1].decode() in known, (path, query, header[:40], answer[:200])


def test_an_agent_is_read_as_a_hub_with_one_host(machine, agent):
    job = holder(machine)
    hosts = eventually(
        lambda: [agent.json("/api/v1/hosts")] if agent.json("/api/v1/leases")["leases"] else []
    )[0]
    (host,) = hosts["hosts"]
    assert (hosts["hub"], host["state"], host["url"], host["name"]) == (
        False,
        "up",
        None,
        socket.gethostname(),
    )
    checked_document(host["snapshot"], "list")
    checked_document(host["queue"], "queue")
    (model,) = hosts["summary"]["models"]
    assert (model["devices"], model["free"], model["hosts_with_free"]) == (8, 7, 1)
    (user,) = hosts["summary"]["users"]
    assert (user["devices"], user["leases"], user["waiting"]) == (1, 1, 0)
    job.ends()


def test_what_is_new_of_a_host_comes_as_an_event(agent):
    events = agent.events("/api/v1/hosts/events")
    assert events.next("host")["snapshot"]["kind"] == "berth-list"
    summary = events.next("summary")
    assert summary["hosts"] == [socket.gethostname()]
    events.close()
    again = agent.events(f"/api/v1/hosts/events?since={summary['number']}")
    assert again.next("summary")["number"] > summary["number"]


def test_a_filter_is_an_expression_and_a_wrong_one_is_told_where(agent):
    def ask(filter_text: str):
        status, _, text = agent.get("/api/v1/match?" + urllib.parse.urlencode({"filter": filter_text}))
        documented("/api/v1/match", status, text)
        return status, json.loads(text)

    status, found = ask("name~H100 and (index=3 or index=5)")
    assert (status, len(found["devices"])) == (200, 2)
    status, error = ask("free>=20G and colour=red")
    assert (status, "column 15" in error["message"]) == (400, True)
    assert agent.get("/api/v1/match")[0] == 400


def test_who_takes_it_gets_a_long_answer_compressed(agent):
    url = f"http://127.0.0.1:{agent.port}/api/v1/snapshot"
    plain = curl("-D-", url).stdout
    packed = curl("--compressed", "-D-", "-w", "%{size_download}", url).stdout
    assert "Content-Encoding" not in plain
    assert "Content-Encoding" not in curl("-D-", "-H", "Accept-Encoding: br, gzip;q=0.0", url).stdout
    assert "Content-Encoding: gzip" in packed
    assert '"kind":"berth-list"' in packed
    assert int(packed.rsplit("\n", 1)[1]) < len(plain) / 4


def test_it_says_what_the_command_line_says(machine, agent):
    job = holder(machine)
    waiting = waiter(machine, "-n", "8")
    eventually(lambda: agent.json("/api/v1/queue")["waiters"])
    served, listed = agent.json("/api/v1/snapshot"), machine.berth("list", "--json").json
    assert [device["uuid"] for device in served["devices"]] == [
        device["uuid"] for device in listed["devices"]
    ]
    assert served["leases"] == listed["leases"] == agent.json("/api/v1/leases")["leases"]
    (row,) = agent.json("/api/v1/queue")["waiters"]
    assert row["pid"] == waiting.pid
    assert "1 of 8 free" in row["reason"] or "7 of 8 free" in row["reason"]
    text = agent.get("/metrics")[2]
    assert f'lease="{served["leases"][0]["id"]}"' in text
    assert "\nberth_queue_waiters 1\n" in text
    job.ends()
    waiting.starts()
    eventually(lambda: "\nberth_leases_granted_total 2\n" in agent.get("/metrics")[2])
    assert "\nberth_leases_ended_total 1\n" in agent.get("/metrics")[2]
    waiting.ends()


def test_who_has_the_newest_is_told_so_in_no_bytes(agent):
    status, headers, _ = agent.get("/api/v1/leases")
    again = agent.get("/api/v1/leases", If_None_Match=headers["ETag"])
    assert (status, again[0], again[2]) == (200, 304, "")
    assert agent.get("/api/v1/leases", method="HEAD")[2] == ""


def test_events_come_with_each_look(machine, agent):
    events = agent.events()
    first, second = events.next("snapshot"), events.next("snapshot")
    assert first["taken_at_s"] < second["taken_at_s"]
    job = holder(machine)
    eventually(lambda: events.next("snapshot")["leases"])
    job.ends()
    events.close()


def test_curl_reads_it_on_the_port_and_on_the_socket(agent):
    assert curl(f"http://127.0.0.1:{agent.port}/healthz").stdout == "ok\n"
    assert curl("--unix-socket", agent.socket, "http://berth/readyz").stdout == "ready\n"


def test_nvgpu_answers_as_it_did(make_machine):
    machine = make_machine(
        f'[[device]]\nmodel = "T4"\nprocess = [{{pid = {os.getpid()}, used_mib = 1000}}]\n'
    )
    agent = Agent(machine)
    report = agent.json("/gpu_status")
    assert report["hostname"] == socket.gethostname()
    (gpu,) = report["gpus"]
    assert list(gpu) == [
        *("type", "is_available", "pids", "users", "running_since", "utilization", "memory", "clock_mhz"),
        *("temperature", "cmd"),
    ]
    assert (gpu["type"], gpu["is_available"], gpu["pids"]) == ("Tesla T4", False, str(os.getpid()))
    assert agent.json("/cluster_status") == [agent.json("/gpu_status")]


def test_for_nvgpu_a_leased_gpu_is_not_available_and_its_lessee_uses_it(make_machine):
    machine = make_machine("2xT4")
    holder(machine, "--devices", "1")
    free, leased = Agent(machine).json("/gpu_status")["gpus"]
    assert (free["is_available"], free["users"]) == (True, "")
    user = pwd.getpwuid(os.getuid()).pw_name
    assert (leased["is_available"], leased["users"], leased["pids"]) == (False, user, "")


HANG = '[[fault]]\ncall = "nvmlDeviceGetMemoryInfo*"\nhang = true\n'
TWO = '[[device]]\nmodel = "H100"\ncount = 2\n'


def test_the_driver_hangs_and_comes_back(make_machine):
    machine = make_machine(TWO)
    agent = Agent(machine, env={"BERTH_DRIVER_DEADLINE_MS": 200})
    # On a slow machine the first look alone can take that long.
    eventually(lambda: agent.get("/readyz")[0] == 200)
    machine.change(HANG + TWO)
    eventually(lambda: agent.get("/readyz")[0] == 503)
    health = agent.json("/api/v1/health")
    assert health["status"] == "stale"
    assert "not responding since" in health["reason"]
    assert len(agent.json("/api/v1/snapshot")["devices"]) == 2
    assert "\nberth_up 0\n" in agent.get("/metrics")[2]
    machine.change(TWO)
    # The real driver lets its caller go when it is mended; the simulated one does not.
    subprocess.run(["pkill", "-KILL", "-P", str(agent.process.pid)], check=True)
    eventually(lambda: agent.get("/readyz")[0] == 200)


def test_a_driver_that_is_not_there_is_an_answer(machine):
    agent = Agent(machine, env={"LD_LIBRARY_PATH": None, "PATH": "/usr/bin:/bin"})
    status, _, text = agent.get("/api/v1/snapshot")
    documented("/api/v1/snapshot", status, text)
    assert (status, json.loads(text)["code"]) == (503, "no_driver")
    assert agent.get("/healthz")[0] == 200
    assert agent.json("/api/v1/health")["status"] == "failed"
    assert "error" in agent.json("/cluster_status")[0]


def test_sigterm_ends_it_cleanly_also_its_streams(agent):
    events = agent.events()
    events.next("snapshot")
    assert agent.ends() == 0
    assert events.stream.read() is not None
    assert not agent.socket.exists()


def test_between_two_looks_that_are_far_apart_the_driver_is_closed(machine):
    """Else no GPU can be reset while an agent runs."""
    often = Agent(machine, "--every", "1")
    assert eventually(lambda: probes(machine))
    often.process.terminate()
    often.process.wait(DEADLINE_S)
    eventually(lambda: not probes(machine))
    agent = Agent(machine, "--every", "3600")
    assert len(agent.json("/api/v1/snapshot")["devices"]) == 8
    eventually(lambda: not probes(machine))


def test_sighup_reads_the_file_again_and_a_bad_one_changes_nothing(machine):
    file = machine.directory / "serve.toml"
    file.write_text("every = 1\n")
    agent = Agent(machine, "--config", file)
    other = machine.directory / "other.sock"
    file.write_text("evry = 1\n")
    agent.process.send_signal(signal.SIGHUP)
    assert (
        f"went on with the old settings: {file}:1: unknown key 'evry', did you mean every?"
        in agent.err.line()
    )
    file.write_text(f'socket = "{other}"\n')
    agent.process.send_signal(signal.SIGHUP)
    assert agent.err.line() == "berth: read the settings again\n"
    assert curl("--unix-socket", other, "http://berth/readyz").stdout == "ready\n"
    assert not agent.socket.exists()
    assert pathlib.Path(f"/proc/{agent.process.pid}").exists()


def test_who_ends_slowly_leaves_the_socket_of_a_successor_alone(agent):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(agent.socket))
        client.sendall(b"GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
        pending = array.array("i", [0])

        def is_full() -> bool:
            fcntl.ioctl(client, termios.FIONREAD, pending)
            return pending[0] > 50_000

        # An answer that nobody reads is under way: it is given some time.
        eventually(is_full)
        agent.process.send_signal(signal.SIGTERM)
        eventually(lambda: not agent.socket.exists())
        with socket.socket(socket.AF_UNIX) as successor:
            successor.bind(str(agent.socket))
            assert agent.process.wait(DEADLINE_S) == 0
            assert agent.socket.exists()
