"""What a hub shows of good agents, and of bad ones."""

import json
import pathlib
import signal
import socket
import subprocess
import urllib.parse

import jsonpatch
import pytest
from agent import Agent
from fake_agent import answering, dripping, saying, silent
from hub import Hub, agents_file
from jobs import eventually, holder, waiter
from schemas import checked_document

TOKEN = "0123456789abcdef0123456789abcdef"


def test_it_shows_its_own_machine_and_others(make_machine):
    machine, other = make_machine("2xA100"), make_machine("8xH100")
    far = Agent(other)
    # Its end is known. If both were assumed, one more request would fit in before the waiter's
    # start as long as it came within the second in which this one was granted.
    job = holder(other, "-n", "3", "--time", "30m", "--note", "</script>\x1b[2J")
    waiting = waiter(other, "-n", "8")
    hub = Hub(machine, "self", f"far=http://127.0.0.1:{far.port}")
    eventually(lambda: hub.sees("far")["snapshot"]["leases"] and hub.sees("far")["queue"]["waiters"])
    hosts = checked_document(hub.json("/api/v1/hosts"), "hosts")
    assert [host["name"] for host in hosts["hosts"]] == [socket.gethostname(), "far"]
    for host in hosts["hosts"]:
        checked_document(host["snapshot"], "list")
        checked_document(host["queue"], "queue")
    assert hosts["hub"]
    assert hosts["hosts"][0]["url"] is None
    assert hosts["hosts"][1]["url"] == f"http://127.0.0.1:{far.port}"
    told, of_agent = hosts["hosts"][1]["snapshot"], far.json("/api/v1/snapshot")
    assert told["leases"] == of_agent["leases"]
    assert told["leases"][0]["note"] == r"</script>\x1b[2J"
    summary = hosts["summary"]
    assert (summary["devices"], summary["free"]) == (10, 2)  # five are kept for who waits
    assert [(each["devices"], each["free"], each["hosts_with_free"]) for each in summary["models"]] == [
        (2, 2, 1),
        (8, 0, 0),
    ]
    (user,) = summary["users"]
    assert (user["devices"], user["leases"], user["waiting"]) == (3, 1, 1)
    found = checked_document(hub.json("/api/v1/match?filter=name~A100+or+index%3D7"), "match")
    assert [device["host"] for device in found["devices"]] == [socket.gethostname()] * 2 + ["far"]
    assert [report["hostname"] for report in hub.json("/cluster_status")] == [socket.gethostname(), "far"]
    assert len(hub.json("/gpu_status")["gpus"]) == len(hub.json("/api/v1/snapshot")["devices"]) == 2
    job.ends()
    waiting.starts()
    waiting.ends()


def test_events_tell_what_is_new_of_each_host(make_machine):
    other = make_machine("2xT4")
    hub = Hub(make_machine("2xA100"), "self", f"far=http://127.0.0.1:{Agent(other).port}")
    hub.sees("far")
    events = hub.events("/api/v1/hosts/events")
    first = [events.next("host") for _ in range(2)]
    assert {host["name"] for host in first} == {socket.gethostname(), "far"}
    assert events.next("summary")["hosts"] == [socket.gethostname(), "far"]
    job = holder(other)
    eventually(lambda: (host := events.next("host"))["name"] == "far" and host["snapshot"]["leases"])
    assert [user["devices"] for user in events.next("summary")["summary"]["users"]] == [1]
    job.ends()
    events.close()


class Followed:
    """What a client makes of a stream about hosts, summary after summary."""

    def __init__(self, hub: Hub, path: str):
        document = hub.json("/api/v1/hosts")
        self.hosts = {host["name"]: host for host in document["hosts"]}
        self.number = document["number"]
        self.events = hub.events(f"/api/v1/hosts/{path}?since={self.number}")
        self.told: list[str] = []

    def follow(self) -> None:
        for name, number, data in self.events.all():
            self.told.append(name)
            if name == "summary":
                self.number = int(number)
                return
            if name == "host":
                self.hosts[data["name"]] = data
            else:
                assert number is None
                self.hosts[data["name"]] = jsonpatch.apply_patch(self.hosts[data["name"]], data["patch"])


def test_changes_tell_what_has_become_of_each_host(make_machine):
    other = make_machine("2xT4")
    hub = Hub(make_machine("2xA100"), "self", f"far=http://127.0.0.1:{Agent(other).port}")
    hub.sees("far")
    whole, changes = Followed(hub, "events"), Followed(hub, "changes")

    def far_at_once() -> dict:
        """At the same moment by both streams."""
        for each in (whole, changes):
            each.follow()
        while whole.number != changes.number:
            min(whole, changes, key=lambda each: each.number).follow()
        assert changes.hosts == whole.hosts
        return changes.hosts["far"]

    job = holder(other)
    eventually(lambda: far_at_once()["snapshot"]["leases"])
    job.ends()
    eventually(lambda: not far_at_once()["snapshot"]["leases"])
    assert set(changes.told) >= {"change", "summary"} and "change" not in whole.told
    for each in (whole, changes):
        each.events.close()


def test_metrics_tell_who_answers(make_machine, agent):
    hub = Hub(make_machine("2xA100"), "self", f"far=http://127.0.0.1:{agent.port}", "gone=http://127.0.0.1:1")
    hub.sees("far")
    hub.error("gone")
    text = hub.get("/metrics")[2]
    assert '\nberth_host_up{host="far"} 1\n' in text
    assert '\nberth_host_up{host="gone"} 0\n' in text
    assert '\nberth_host_seen_timestamp_seconds{host="far"} ' in text
    assert 'seen_timestamp_seconds{host="gone"}' not in text
    assert '\nberth_hub_free_devices{name="NVIDIA H100 80GB HBM3"} 8\n' in text
    assert text.count("\nberth_device_up{") == 2  # its own
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    health = checked_document(hub.json("/api/v1/health"), "health")
    assert (health["status"], health["reason"]) == ("stale", "1 of 3 hosts gives no answer")
    assert health["warnings"][0].startswith("gone: nobody listens at http://127.0.0.1:1; start `berth serve`")


def test_no_bad_agent_is_more_than_a_row_with_its_error(machine, agent, document, fake):
    good = json.dumps(document)
    later = json.dumps(document | {"version": 2})
    hub_itself = json.dumps(document | {"hub": True})
    nobody = json.dumps(document | {"hosts": []})
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(good)}\r\n\r\n".encode()
    worlds = {
        "bytes": (saying(b"\0\xff" * 50 + b"\r\n\r\n"), "what it answers is no HTTP"),
        "page": (answering("<html>"), "its answer: it is not JSON"),
        "other": (answering('{"kind": "dog"}'), 'document.kind must be "berth-hosts"'),
        "later": (answering(later), "document.version is 2, and this Berth reads 1"),
        "deep": (answering("[" * 100_000), "nested too deep"),
        "huge": (answering(b" " * 10_000_000), "its answer is longer than 1024 KiB, and was not read"),
        "half": (saying(head + good[:1000].encode()), "it ended the connection before its answer was whole"),
        "short": (saying(b""), "it ended the connection before its answer was whole"),
        "silent": (silent, "no answer within 1 s (connected, and waiting for the answer)"),
        "dripping": (dripping, "no answer within 1 s"),
        "locked": (answering("", "401 Unauthorized"), "it wants a token"),
        "nvgpu": (answering("", "404 Not Found"), "no agent of this version of Berth answers there"),
        "broken": (answering("", "500 Oops"), "it answers with the HTTP status 500"),
        "hub": (answering(hub_itself), "that is a hub; name the agents"),
        "nobody": (answering(nobody), "it tells not of one host"),
        "moved": (answering("", "302 Found", "Location: http://127.0.0.1:1/\r\n"), "HTTP status 302"),
        "unasked": (answering("", "304 Not Modified"), "HTTP status 304"),
    }
    bad = [f"{name}={fake(reply).url}" for name, (reply, _) in worlds.items()]
    hub = Hub(machine, *bad, f"good=http://127.0.0.1:{agent.port}")
    seen = hub.sees("good")["seen_s"]
    for name, (_, words) in worlds.items():
        error = hub.error(name, is_late=words.startswith("no answer"))
        assert words in error, name
        assert hub.row(name)["state"] == "down"
        assert hub.row(name)["snapshot"] is None
    # All that has held up nobody.
    eventually(lambda: hub.row("good")["seen_s"] > seen)
    assert hub.row("good")["state"] == "up"
    assert hub.get("/readyz")[0] == 200
    checked_document(hub.json("/api/v1/hosts"), "hosts")
    assert [("error" in each) for each in hub.json("/cluster_status")] == [True] * len(worlds) + [False]


def without(document, *keys):
    """The document without these keys, wherever they stand."""
    if isinstance(document, dict):
        return {key: without(value, *keys) for key, value in document.items() if key not in keys}
    return [without(each, *keys) for each in document] if isinstance(document, list) else document


def with_more(document):
    """With a key in each object that nobody knows yet."""
    if isinstance(document, dict):
        return {key: with_more(value) for key, value in document.items()} | {"spin": {"up": [1]}}
    return [with_more(each) for each in document] if isinstance(document, list) else document


def test_agents_of_the_previous_and_of_the_next_version_are_shown(machine, document, fake):
    older = without(document, "pcie_width", "health", "idle", "idle_since_s", "kept", "assumed", "summary")
    newer = with_more(document)
    newer["hosts"][0]["snapshot"]["devices"][0] |= {
        "temperature_c": 30.5,
        "power_mw": {"gpu": 1, "memory": 2},
        "fan_percent": 10**30,
        "memory": [],
        "compute_mode": "psychic",
    }
    newer["hosts"][0]["snapshot"]["devices"][1]["state"] = "enchanted"
    newer["hosts"][0]["snapshot"]["devices"][2]["verdict"] |= {
        "free": False,
        "clause": "no_ghost",
        "reason": "a ghost",
    }
    nameless = without(document, "uuid")
    worlds = {"older": older, "newer": newer, "nameless": nameless}
    hub = Hub(
        machine, *(f"{name}={fake(answering(json.dumps(world))).url}" for name, world in worlds.items())
    )
    for name in ("older", "newer"):
        hub.sees(name)
        assert hub.row(name)["state"] == "up", hub.row(name)["error"]
    assert (
        hub.error("nameless")
        == "its answer: it is no document of Berth's: document.hosts.snapshot.devices.uuid is missing"
    )
    hosts = checked_document(hub.json("/api/v1/hosts"), "hosts")
    for host in hosts["hosts"][:2]:
        checked_document(host["snapshot"], "list")
    told = {host["name"]: host["snapshot"]["devices"] for host in hosts["hosts"][:2]}
    was = document["hosts"][0]["snapshot"]["devices"]
    assert told["older"][0]["pcie_width"] is None
    assert told["older"][0]["health"]["ecc_uncorrected"] is None
    assert told["older"][0]["power_mw"] == was[0]["power_mw"] > 0
    assert [device["verdict"]["free"] for device in told["older"]] == [True] * 8
    first, second, third, fourth = told["newer"][:4]
    for key in ("temperature_c", "power_mw", "fan_percent", "compute_mode"):
        assert first[key] is None, key
    assert first["memory"]["total_bytes"] is None
    assert first["utilization_percent"] == was[0]["utilization_percent"] is not None
    assert second["state"] == "failed"
    assert (third["verdict"]["clause"], third["verdict"]["reason"]) == ("unknown", "a ghost")
    assert fourth["power_mw"] == was[3]["power_mw"]
    assert [device["verdict"]["free"] for device in told["newer"]] == [True, True, False] + [True] * 5
    listed = machine.berth("list", "--hub", f"http://127.0.0.1:{hub.port}")
    assert listed.status == 0, listed.err
    assert "older" in listed.out and "newer" in listed.out


def test_a_host_that_goes_keeps_its_last_word_and_comes_back(make_machine):
    other = make_machine("2xT4")
    far = Agent(other)
    hub = Hub(make_machine("1xA100"), f"far=http://127.0.0.1:{far.port}")
    seen = hub.sees("far")["seen_s"]
    far.process.kill()
    far.process.wait()
    host = eventually(lambda: (host := hub.row("far"))["state"] == "down" and host)
    assert "nobody listens" in host["error"] or "ended the connection" in host["error"]
    assert len(host["snapshot"]["devices"]) == 2
    assert host["seen_s"] >= seen
    summary = hub.json("/api/v1/hosts")["summary"]
    assert (summary["devices"], summary["free"]) == (2, 0)
    again = Agent(other, listen=f"127.0.0.1:{far.port}")
    assert hub.sees("far")["seen_s"] >= host["seen_s"]
    assert hub.json("/api/v1/hosts")["summary"]["free"] == 2
    again.ends()


def test_a_driver_that_fails_is_told_in_the_words_of_its_agent(make_machine):
    far = Agent(make_machine("2xT4"), env={"LD_LIBRARY_PATH": None, "PATH": "/usr/bin:/bin"})
    hub = Hub(make_machine("1xA100"), f"far=http://127.0.0.1:{far.port}")
    assert "driver" in hub.error("far")
    assert hub.row("far")["seen_s"] is None


def test_connections_are_kept_and_what_has_not_changed_is_not_sent_again(machine, document, fake):
    whole = answering(json.dumps(document), header='ETag: "7"\r\n')
    unchanged = answering("", "304 Not Modified", 'ETag: "7"\r\n')

    def reply(agent, connection, request):
        (unchanged if b'If-None-Match: "7"' in request else whole)(agent, connection, request)

    agent = fake(reply)
    hub = Hub(machine, f"far={agent.url}")
    events = hub.events("/api/v1/hosts/events")
    eventually(lambda: events.next("host")["state"] == "up")
    eventually(lambda: len(agent.requests) >= 3)
    assert agent.connections == 1
    assert all(b"If-None-Match" in request for request in agent.requests[1:])
    assert hub.row("far")["state"] == "up"
    events.connection.settimeout(0.3)
    with pytest.raises(TimeoutError):
        events.next("host")


def test_a_kept_connection_that_the_agent_has_ended_is_no_failure(machine, document, fake):
    answer = answering(json.dumps(document))

    def once_a_connection(agent, connection, request):
        answer(agent, connection, request)
        connection.shutdown(socket.SHUT_RDWR)

    agent = fake(once_a_connection)
    hub = Hub(machine, f"far={agent.url}")
    events = hub.events("/api/v1/hosts/events")
    eventually(lambda: events.next("host")["state"] == "up")
    for _ in range(2):
        assert events.next("host")["state"] == "up"
    assert agent.connections >= 3
    events.close()


def test_plain_http_over_the_network_needs_a_token_or_a_word(machine, tmp_path):
    file = agents_file(
        tmp_path / "agents.toml",
        {"name": "bare", "url": "http://192.0.2.1:8420"},
        {"name": "meant", "url": "http://192.0.2.2:8420", "insecure": True},
    )
    hub = Hub(machine, "near=http://127.0.0.1:1", options=["--agents", file])
    assert "not asked: http://192.0.2.1:8420 is plain HTTP" in hub.error("bare")
    assert "insecure = true, or --agent-insecure" in hub.error("bare")
    assert "nobody listens" in hub.error("near")
    assert "not asked" not in hub.error("meant")


def test_the_token_is_shown_and_never_told(machine, make_machine, tmp_path):
    token, wrong = tmp_path / "token", tmp_path / "wrong"
    token.write_text(TOKEN + "\n")
    wrong.write_text(TOKEN[::-1] + "\n")
    for file in (token, wrong):
        file.chmod(0o600)
    far = Agent(make_machine("2xT4"), "--token-file", token)
    file = agents_file(
        tmp_path / "agents.toml",
        {"name": "right", "url": f"http://127.0.0.1:{far.port}", "token-file": token},
        {"name": "wrong", "url": f"http://127.0.0.1:{far.port}", "token-file": wrong},
        {"name": "none", "url": f"http://127.0.0.1:{far.port}"},
    )
    hub = Hub(machine, options=["--agents", file])
    hub.sees("right")
    assert "it wants a token" in hub.error("wrong")
    assert "it wants a token" in hub.error("none")
    told = "".join(hub.get(path)[2] for path in ("/api/v1/hosts", "/metrics", "/api/v1/health"))
    assert TOKEN not in told
    assert TOKEN[::-1] not in told


def test_a_file_at_fault_is_named_with_its_line(machine, tmp_path):
    (tmp_path / "a.toml").write_text('[[agent]]\nurl = "self"\nurk = 1\n')
    answer = machine.berth("serve", "--hub", "--agents", "a.toml", cwd=tmp_path)
    assert answer.status in (1, 2)
    assert "a.toml:3: unknown key 'urk' in [[agent]], did you mean url?" in " ".join(answer.err.split())


def test_options_at_fault_are_named(machine):
    for options, words in (
        (["--hub"], "--hub needs to know whom to ask: --agents FILE, or --agent URL"),
        (["--agent", "self"], "--agent and --agents are for a hub: add --hub"),
        (["--hub", "--agents", "/none"], "reading the agents in /none: No such file or directory"),
        (["--hub", "--agent", "ftp://x"], "--agent ftp://x: url: 'ftp://x' must be a URL"),
        (["--hub", "--agent", "x=y"], "--agent x=y: url: 'y' must be a URL"),
    ):
        answer = machine.berth("serve", *options)
        assert answer.status in (1, 2)
        assert words in " ".join(answer.err.split())


def test_sighup_reads_the_agents_again_and_a_bad_file_changes_nothing(
    machine, agent, fake, document, tmp_path
):
    near = fake(answering(json.dumps(document)))
    stays = {"name": "stays", "url": near.url}
    file = agents_file(tmp_path / "agents.toml", stays, {"name": "goes", "url": "http://127.0.0.1:1"})
    hub = Hub(machine, options=["--agents", file])
    hub.sees("stays")
    file.write_text("[[agent]]\n")
    hub.process.send_signal(signal.SIGHUP)
    assert f"went on with the old settings: {file}:1: [[agent]] needs url" in hub.err.line()
    agents_file(file, {"name": "comes", "url": f"http://127.0.0.1:{agent.port}"}, stays)
    events = hub.events("/api/v1/hosts/events")
    hub.process.send_signal(signal.SIGHUP)
    assert hub.err.line() == "berth: read the settings again\n"
    hub.sees("comes")
    assert hub.row("stays")["snapshot"]
    assert list(hub.hosts()) == ["comes", "stays"]
    eventually(lambda: events.next("summary")["hosts"] == ["comes", "stays"])
    events.close()


@pytest.mark.release_only  # the resolver is preloaded, and a sanitizer would have to come before it
def test_a_name_that_is_looked_up_for_ever_holds_up_nobody(machine, agent, build):
    preload = build / "slow_names.so"
    inherited = machine.env.get("LD_PRELOAD", "")
    hub = Hub(
        machine,
        f"slow=http://slow.example:{agent.port}",
        f"good=http://localhost:{agent.port}",
        options=["--agent-insecure"],
        env={"SLOW_NAME": "slow.example", "LD_PRELOAD": f"{preload} {inherited}".strip()},
    )
    assert "the name service does not say in time where 'slow.example' is" in hub.error("slow")
    assert hub.sees("good")
    assert hub.ends() == 0


def test_berth_list_shows_the_machines_of_a_hub(make_machine):
    other = make_machine("2xT4")
    far = Agent(other)
    job = holder(other)
    hub = Hub(
        make_machine("1xA100"), "own=self", f"far=http://127.0.0.1:{far.port}", "gone=http://127.0.0.1:1"
    )
    eventually(lambda: hub.sees("far")["snapshot"]["leases"])
    hub.sees("own")
    hub.error("gone")
    machine, url = make_machine("1xT4"), f"http://127.0.0.1:{hub.port}"
    answer = machine.berth("list", "--hub", url)
    assert (answer.status, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "3 hosts (1 down): 3 GPUs, 2 free"
    assert lines[1:3] == ["1 × A100-SXM4-40GB free on 1 host", "1 × Tesla T4 free on 1 host"]
    assert [line.split()[0] for line in lines[4:8]] == ["HOST", "own", "far", "gone"]
    assert lines[7].split(maxsplit=4)[4] == "down, never seen"
    assert lines[9].startswith("gone: nobody listens at")
    checked_document(machine.berth("list", "--json", "--hub", url).json, "hosts")
    # An agent is asked in the same way, also at its socket.
    assert machine.berth("list", "--hub", f"unix:{far.socket}").out.startswith("1 host: 2 GPUs, 1 free\n")
    job.ends()


def test_berth_list_says_why_a_hub_cannot_be_asked(machine, fake, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    hub = Hub(machine, "gone=http://127.0.0.1:1", options=["--token-file", token])
    url = f"http://127.0.0.1:{hub.port}"
    assert machine.berth("list", "--hub", url, "--token-file", token).status == 0
    for words, status, text in (
        ([url], 1, "it wants a token; give it with --token-file FILE"),
        (["http://127.0.0.1:1"], 1, "nobody listens at http://127.0.0.1:1"),
        (["http://192.0.2.1"], 2, "plain HTTP over the network"),
        (["node01"], 2, "must be a URL like"),
        ([fake(answering("<html>")).url], 1, "it is not JSON"),
    ):
        answer = machine.berth("list", "--hub", *words)
        assert (answer.status, answer.out) == (status, "")
        assert text in " ".join(answer.err.split())


def test_history_and_usage_are_asked_of_the_agents(make_machine, fake, document):
    other, own = make_machine("2xT4"), make_machine("1xA100")
    far = Agent(other)
    jobs = [holder(other), holder(own)]
    silly = fake(answering(json.dumps(document)))
    gone = "gone=http://127.0.0.1:1"
    hub = Hub(own, "own=self", f"far=http://127.0.0.1:{far.port}", f"silly={silly.url}", gone)
    device = hub.sees("far")["snapshot"]["devices"][0]["uuid"]
    silly.reply = answering("{}")
    eventually(lambda: len(far.usage()["rows"]) == 1)

    usage = eventually(
        lambda: (
            (usage := checked_document(hub.usage(), "usage"))
            and sum(row["leases"] for row in usage["rows"]) == 2
            and usage
        )
    )
    assert (usage["complete"], usage["missing"]) == (False, ["gone", "silly"])
    assert len(usage["rows"]) == 1
    rows = hub.usage("device")["rows"]
    assert {row["host"] for row in rows} == {"own", "far"}

    asked = f"history?device={device}&since=1h&points=10"
    history = checked_document(hub.json(f"/api/v1/hosts/far/{asked}"), "history")
    assert history["device"] == device
    mine = hub.sees("own")["snapshot"]["devices"][0]["uuid"]
    assert hub.json(f"/api/v1/hosts/own/history?device={mine}")["device"] == mine
    for path, status, words in (
        (f"/api/v1/hosts/gone/{asked}", 502, "gone: nobody listens"),
        (
            f"/api/v1/hosts/silly/{asked}",
            502,
            "silly: its answer: what came is not a document of this Berth's",
        ),
        (f"/api/v1/hosts/none/{asked}", 404, "no host has this name"),
        ("/api/v1/hosts/far/leases", 404, "of a host there are"),
        ("/api/v1/hosts/far/history?since=x", 400, "device"),
        ("/api/v1/usage?by=colour", 400, "by"),
    ):
        answer = hub.get(path)
        assert (answer[0], words in json.loads(answer[2])["message"]) == (status, True), answer
    for job in jobs:
        job.ends()


def test_a_host_is_named_in_a_path_as_browsers_write_it(make_machine):
    agents = [Agent(make_machine("1xT4")) for _ in range(2)]
    hub = Hub(make_machine("1xT4"), *(f"http://127.0.0.1:{agent.port}" for agent in agents))
    name = f"127.0.0.1:{agents[1].port}"
    device = hub.sees(name)["snapshot"]["devices"][0]["uuid"]
    path = f"/api/v1/hosts/{urllib.parse.quote(name, safe='')}/history?device={device}"
    assert "%3A" in path
    assert eventually(lambda: (found := hub.get(path))[0] == 200 and json.loads(found[2]))["device"] == device
    assert hub.get("/api/v1/hosts/%/history")[0] == 404


def test_many_who_ask_for_hours_cost_an_agent_one_question(make_machine, fake, document):
    healthy = answering(json.dumps(document))
    agent = fake(lambda *words: (silent if b"/usage" in words[2] else healthy)(*words))
    hub = Hub(make_machine("1xT4"), f"slow={agent.url}")
    hub.sees("slow")
    asked = [hub.connect() for _ in range(20)]
    for connection in asked:
        connection.sendall(
            b"GET /api/v1/usage?since=1h HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
    for connection in asked:
        with connection, connection.makefile("rb") as answer:
            assert b'"missing":["slow"]' in answer.read()
    assert sum(b"/api/v1/usage" in request for request in agent.requests) == 1


def test_it_needs_no_driver_where_it_is_no_machine_of_its_own(machine, agent):
    hub = Hub(
        machine, f"far=http://127.0.0.1:{agent.port}", env={"LD_LIBRARY_PATH": None, "PATH": "/usr/bin:/bin"}
    )
    assert hub.sees("far")
    assert hub.get("/api/v1/snapshot")[0] == 404
    children = f"/proc/{hub.process.pid}/task/{hub.process.pid}/children"
    assert pathlib.Path(children).read_text() == ""
