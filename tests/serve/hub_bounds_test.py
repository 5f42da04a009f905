"""What agents and clients can make a hub do is bounded."""

import contextlib
import gzip
import itertools
import json
import pathlib
import re
import signal
import socket
import zlib

import pytest
from agent import Agent
from fake_agent import FakeAgent, answering
from hub import NOT_YET, Hub, agents_file
from jobs import eventually, holder
from schemas import checked_document
from simulated_machine import DEADLINE_S

pytestmark = pytest.mark.long

KIB = 1024


def most_resident_kib(hub: Hub) -> int:
    status = pathlib.Path(f"/proc/{hub.process.pid}/status").read_text()
    return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)[1])


def endless_line(agent: FakeAgent, connection: socket.socket, request: bytes) -> None:
    """What says how long a piece of the answer is goes on and on."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;")
    while not agent.ended.is_set():
        connection.sendall(b"a" * (64 * KIB))


@pytest.mark.release_only  # a sanitizer keeps memory of its own
def test_a_line_without_an_end_is_not_kept(machine, fake):
    hub = Hub(machine, f"far={fake(endless_line).url}")
    assert "what it answers is no HTTP" in hub.error("far")
    assert most_resident_kib(hub) < 48 * KIB


@pytest.mark.release_only  # a sanitizer keeps memory of its own
def test_a_bad_agent_costs_a_hub_neither_memory_nor_another_row(machine, fake, document):
    listing = document["hosts"][0]["snapshot"]
    good = fake(answering(json.dumps(document)))
    device = {"index": 0, "uuid": "GPU-1"}
    lease = {"id": "0" * 16, "uid": 1, "devices": ["GPU-1"]}
    bad = {
        "again": (listing | {"devices": [device] * 5000, "leases": [lease] * 5000}, "comes twice|more than"),
        "twice": (listing | {"devices": [device] * 2}, "document.hosts.snapshot.devices.uuid comes twice"),
        "lost": (listing | {"devices": [device | {"uuid": None}] * 4000}, "KiB, and is not shown"),
        "brackets": (listing | {"notes": [[]] * 300_000}, "more than 16384 things"),
    }
    agents = {}
    for name, (snapshot, _) in bad.items():
        host = document["hosts"][0] | {"snapshot": snapshot}
        agents[name] = fake(answering(json.dumps(document | {"hosts": [host]}, separators=(",", ":"))))
    hub = Hub(machine, f"good={good.url}", *(f"{name}={agent.url}" for name, agent in agents.items()))
    for name, (_, words) in bad.items():
        assert re.search(words, hub.error(name)), hub.error(name)
    assert hub.sees("good")
    for agent in agents.values():
        eventually(lambda agent=agent: len(agent.requests) > 3)
    assert most_resident_kib(hub) < 64 * KIB


@pytest.mark.release_only  # a sanitizer would have to be preloaded first
def test_a_hub_that_lacks_memory_for_an_answer_goes_on_and_asks_again(
    machine, build, fake, document, tmp_path
):
    full = tmp_path / "full"
    text = json.dumps(document)
    good, long = fake(answering(text)), fake(answering(text + " " * (900 * KIB)))
    preload = f"{build / 'no_memory.so'} {machine.env.get('LD_PRELOAD', '')}".strip()
    env = {"NO_MEMORY": str(full), "LD_PRELOAD": preload}
    hub = Hub(machine, f"good={good.url}", f"far={long.url}", env=env)
    assert hub.sees("far")
    full.touch()
    eventually(lambda: hub.row("far")["state"] == "down")
    assert "for want of memory" in hub.row("far")["error"]
    eventually(lambda: "agent far: what it answers cannot be dealt with here" in hub.err.line())
    assert hub.row("good")["state"] == "up"
    full.unlink()
    assert hub.sees("far")


@pytest.mark.release_only  # a sanitizer keeps memory of its own
def test_long_answers_of_many_agents_are_bounded_together(machine, fake, document):
    # Each of them alone is a machine with thousands of processes.
    device = document["hosts"][0]["snapshot"]["devices"][0]
    whole = {
        "kind": "compute",
        "used_bytes": 1,
        "uid": 1,
        "user": "u",
        "command": "x" * 40,
        "container": None,
    }
    rest = {"started_at_s": None, "ending": False, "lease": None, "assumed": False}
    device["processes"] = [{"pid": pid} | whole | rest for pid in range(1, 4500)]
    text = json.dumps(document, separators=(",", ":"))
    agents = [fake(answering(text)) for _ in range(30)]
    hub = Hub(machine, *(f"n{i}={agent.url}" for i, agent in enumerate(agents)))

    def all_asked() -> dict:
        hosts = hub.hosts()
        return all(host["error"] != NOT_YET for host in hosts.values()) and hosts

    hosts = eventually(all_asked, 4 * DEADLINE_S)
    down = [host["error"] for host in hosts.values() if host["state"] == "down"]
    assert 0 < len(down) < 30
    assert set(down) == {"what it tells is not shown: with that of all others it would take more than 64 MiB"}
    assert most_resident_kib(hub) < 160 * KIB


def test_a_compressed_stream_and_page_are_what_they_are_plain(machine, fake, document):
    agents = [fake(answering(json.dumps(document))) for _ in range(3)]
    hub = Hub(machine, *(f"n{i}={agent.url}" for i, agent in enumerate(agents)), "gone=http://127.0.0.1:1")
    eventually(lambda: all(each["error"] != NOT_YET for each in hub.hosts().values()))
    for path in ("/api/v1/hosts", "/api/v1/health", "/cluster_status"):
        asked = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        plain = hub.raw(f"{asked}\r\n".encode()).partition(b"\r\n\r\n")[2]
        head, _, packed = hub.raw(f"{asked}Accept-Encoding: gzip\r\n\r\n".encode()).partition(b"\r\n\r\n")
        text = gzip.decompress(packed) if b"Content-Encoding: gzip" in head else packed
        assert without_times(text) == without_times(plain)
        assert f"Content-Length: {len(packed)}\r\n".encode() in head + b"\r\n"
    with hub.connect() as connection:
        connection.sendall(
            b"GET /api/v1/hosts/events HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
        )
        stream, text, head = zlib.decompressobj(31), b"", b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1)
        assert b"Content-Encoding: gzip" in head
        while text.count(b"event: host\n") < 4 or b"event: summary" not in text:
            text += stream.decompress(connection.recv(1 << 16))
        assert json.loads(re.search(rb"data: (.*)\n", text)[1])["name"] in ("n0", "n1", "n2", "gone")
        hub.process.send_signal(signal.SIGTERM)
        while more := connection.recv(1 << 16):
            text += stream.decompress(more)
        assert stream.eof  # the checksum is right too


def test_a_page_that_is_open_gets_what_is_new_compressed_after_what_it_has(machine, fake, document):
    """Machines resemble each other, and each answer the one before."""
    answers = itertools.count(20)

    def reply(agent: FakeAgent, connection: socket.socket, request: bytes) -> None:
        document["hosts"][0]["snapshot"]["devices"][0]["temperature_c"] = next(answers)
        answering(json.dumps(document))(agent, connection, request)

    hub = Hub(machine, *(f"n{i}={fake(reply).url}" for i in range(3)))
    for i in range(3):
        hub.sees(f"n{i}")
    with hub.connect() as connection:
        connection.sendall(
            b"GET /api/v1/hosts/events HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
        )
        stream, head, text, followed = zlib.decompressobj(31), b"", b"", []
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        while len(followed) < 20:
            packed = connection.recv(1 << 16)
            shown = stream.decompress(packed)
            if text.count(b"event: summary") > 1:
                followed.append((len(packed), len(gzip.compress(shown))))
            text += shown
        hub.process.send_signal(signal.SIGTERM)
        while more := connection.recv(1 << 16):
            text += stream.decompress(more)
    assert stream.eof  # the checksum is right too
    hosts = [json.loads(each) for each in re.findall(rb"^event: host\nid: \d+\ndata: (.*)$", text, re.M)]
    told = [host["snapshot"]["devices"][0]["temperature_c"] for host in hosts if host["snapshot"]]
    assert len(told) == len(set(told))
    assert sum(size for size, _ in followed) < sum(alone for _, alone in followed) / 2


def without_times(text: bytes) -> bytes:
    return re.sub(rb"\d{9,}(\.\d+)?(e\+\d+)?", b"0", text)


def test_the_more_agents_the_less_is_read_of_each(machine, fake):
    long = answering(b" " * (1024 * KIB))
    hub = Hub(machine, f"far={fake(long).url}", *(f"n{i}=http://127.0.0.1:1" for i in range(600)))
    assert hub.error("far") == "its answer is longer than 256 KiB, and was not read"


@pytest.mark.release_only  # a sanitizer keeps memory of its own
def test_a_compressed_answer_is_forgotten_also_while_nothing_new_is_told(machine):
    agents = [f"n{i}=http://127.0.0.1:1" for i in range(300)]
    hub = Hub(machine, *agents)
    eventually(lambda: hub.get("/readyz")[0] == 200)

    def ask(times: int) -> int:
        for _ in range(times):
            hub.raw(b"GET /api/v1/hosts HTTP/1.0\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
        return most_resident_kib(hub)

    before = ask(50)
    assert ask(400) - before < 4 * KIB


def test_a_machine_that_is_no_agent_any_more_is_not_shown(machine, tmp_path):
    file = agents_file(tmp_path / "agents.toml", {"name": "own", "url": "self"})
    hub = Hub(machine, options=["--agents", file])
    hub.sees("own")
    assert hub.get("/api/v1/snapshot")[0] == 200
    agents_file(file, {"name": "gone", "url": "http://127.0.0.1:1"})
    hub.process.send_signal(signal.SIGHUP)
    assert hub.err.line() == "berth: read the settings again\n"
    eventually(lambda: hub.get("/api/v1/snapshot")[0] == 404)
    assert "berth_device_up" not in hub.get("/metrics")[2]


def test_a_time_that_no_browser_could_show_is_no_answer(machine, fake, document):
    document["hosts"][0]["seen_s"] = 9_000_000_000_000_000_000
    hub = Hub(machine, f"far={fake(answering(json.dumps(document))).url}")
    assert "document.hosts.seen_s is no time" in hub.error("far")


def test_cards_of_one_name_are_one_series(machine, fake, document):
    devices = document["hosts"][0]["snapshot"]["devices"]
    devices[0]["memory"]["total_bytes"] //= 2
    hub = Hub(machine, f"far={fake(answering(json.dumps(document))).url}")
    hub.sees("far")
    text = hub.get("/metrics")[2]
    lines = [line for line in text.splitlines() if line.startswith("berth_hub_devices{")]
    assert lines == ['berth_hub_devices{name="NVIDIA H100 80GB HBM3"} 8']


def test_numbers_of_events_are_exact_in_javascript_and_rise_with_each_start(machine):
    hub = Hub(machine, "gone=http://127.0.0.1:1")
    hosts = hub.json("/api/v1/hosts")
    assert hosts["time_s"] - 60 < hosts["number"] / 1_000_000 <= hosts["time_s"] + 1
    assert hosts["number"] < 2**53


def test_hours_that_are_none_are_missing(machine, fake, document):
    usage = {"kind": "berth-usage", "version": 1, "by": "user", "from_s": 1, "to_s": 2, "unwatched_s": 0}
    row = {"user": "u", "leases": 1, "leased_gpu_hours": 1e300, "used_gpu_hours": 0}
    healthy = answering(json.dumps(document))
    told = answering(json.dumps(usage | {"missing": [], "rows": [row]}))
    agent = fake(lambda *words: (told if b"/usage" in words[2] else healthy)(*words))
    hub = Hub(machine, f"far={agent.url}")
    hub.sees("far")
    answer = checked_document(hub.json("/api/v1/usage?since=1h"), "usage")
    assert (answer["missing"], answer["rows"]) == (["far"], [])


@pytest.mark.release_only  # a sanitizer would have to be preloaded first
def test_a_disk_that_hangs_leaves_its_machine_out_of_the_hours_and_no_other(machine, build, tmp_path):
    hangs = tmp_path / "hangs"
    inherited = machine.env.get("LD_PRELOAD", "")
    preload = f"{build / 'slow_disk.so'} {inherited}".strip()
    hub = Hub(machine, "own=self", env={"SLOW_DISK": str(hangs), "LD_PRELOAD": preload})
    hub.sees("own")
    job = holder(machine)  # of whom there is something to write
    eventually(lambda: hub.usage()["rows"])
    hangs.touch()
    eventually(lambda: hub.usage()["missing"] == ["own"])
    assert hub.usage()["missing"] == ["own"]
    device = hub.row("own")["snapshot"]["devices"][0]["uuid"]
    status, _, text = hub.get(f"/api/v1/hosts/own/history?device={device}")
    assert (status, "does not answer in time" in text) == (502, True)
    hangs.unlink()
    eventually(lambda: hub.usage()["missing"] == [])
    job.ends()


@pytest.mark.release_only  # a sanitizer would have to be preloaded first
def test_an_address_that_is_silent_leaves_time_for_the_next(machine, build):
    agent = Agent(machine, "--insecure")
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.2", agent.port), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        preload = f"{build / 'slow_names.so'} {machine.env.get('LD_PRELOAD', '')}".strip()
        env = {"TWO_NAME": "two.example", "LD_PRELOAD": preload}
        url = f"far=http://two.example:{agent.port}"
        hub = Hub(machine, url, options=["--agent-insecure"], env=env)
        assert hub.sees("far")
