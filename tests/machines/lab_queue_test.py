"""The queue of a lab with a store: each request once, in the order of the queue of the lab."""

import json
import re
import socket
import threading

import pytest
from agent import Agent
from desks import busy, lab_with
from hub import Hub
from jobs import eventually
from schemas import checked_document
from simulated_machine import DEADLINE_S

pytestmark = [pytest.mark.store, pytest.mark.long]

# As many of the line as an agent tells in one answer.
PART = 500


@pytest.fixture
def lab(two):
    """gpu1 and gpu2 with one GPU each, an etcd, and two desks."""
    with lab_with(two) as made:
        yield made


@pytest.fixture
def line(lab):
    """Both hosts are busy. In the line: first for gpu2, second for gpu1, third for both. Local came to gpu1 itself,
    before the third."""
    gpu1, gpu2 = lab.hosts
    for host in lab.hosts:
        busy(host)
    first, second = lab.desks
    first.waits("--note", "first", "--", "true", hosts="gpu2")
    eventually(lambda: len(gpu2.tickets()) == 2)
    second.waits("--note", "second", "--", "true", hosts="gpu1")
    eventually(lambda: len(gpu1.tickets()) == 2)
    gpu1.machine.start_berth("run", "--note", "local", "--", "true")
    eventually(lambda: len(gpu1.tickets()) == 3)
    first.waits("--note", "third", "--", "true")
    eventually(lambda: len(gpu1.tickets()) == 4 and len(gpu2.tickets()) == 3)
    eventually(lambda: all(json.loads(value)["joined"] for value, _ in lab.etcd.keys("ticket").values()))
    return lab


def queue(lab, *words, env=None):
    env = lab.desks[1].env() if env is None else env
    return lab.run("queue", "--anywhere", "--hosts", "gpu1,gpu2", *words, env=env)


def rows(answer):
    """(host, place in the lab, note) of each."""
    head, *lines = answer.stdout.split("\n\n")[0].splitlines()
    has_place = head.split()[1] == "LAB"
    told = []
    for row in lines:
        host, place = re.match(r"(\d+ hosts|\S+) +(\S+)", row).groups()
        note = next(each for each in ("first", "second", "third", "local") if each in row)
        told.append((host, place if has_place else None, note))
    return told


HOSTS_ONLY = [
    ("gpu1", None, "second"),
    ("gpu1", None, "local"),
    ("2 hosts", None, "third"),
    ("gpu2", None, "first"),
]


def test_the_queue_of_a_lab_has_the_order_of_the_store(line):
    answer = queue(line)
    assert answer.stderr == ""
    assert rows(answer) == [
        ("gpu2", "1", "first"),
        ("gpu1", "1", "second"),
        ("gpu1", "-", "local"),
        ("2 hosts", "3", "third"),
    ]
    # Where the machine has no store, the order is that of the hosts.
    assert rows(queue(line, env={})) == HOSTS_ONLY
    document = json.loads(queue(line, "--json").stdout)
    checked_document(document, "hosts")
    assert places(document) == ALL_THREE
    assert "line" not in json.loads(queue(line, "--json", env={}).stdout)
    ticket = {"home": "desk9", "uid": 1, "lane": 1, "gpus": 1, "hosts": ["gpu1"], "joined": []}
    line.etcd.ask("kv/put", key="/berth/1/ticket/desk9-" + "ab" * 16, value=json.dumps(ticket))
    eventually(
        lambda: "\n\n1 more request in the queue of the lab, not yet in the queue of" in queue(line).stdout
    )


def places(document):
    """(note, place in the lab) of those who stand there."""
    notes = {
        waiter["asked_at"]: waiter["note"]
        for host in document["hosts"]
        if host["queue"]
        for waiter in host["queue"]["waiters"]
    }
    return [(notes.get(each["asked_at"]), each["place"]) for each in document.get("line", [])]


ALL_THREE = [("first", 1), ("second", 1), ("third", 3)]


@pytest.fixture
def hub(line):
    """A hub of both hosts, which has the store too."""
    agents = [f"{host.name}=http://127.0.0.1:{Agent(host.machine).port}" for host in line.hosts]
    store = ("--store", line.etcd.url, "--store-socket", line.folder / "hub-store.sock")
    return Hub(line.hosts[0].machine, *agents, options=store)


def test_a_hub_with_the_store_tells_the_line_and_what_becomes_of_it(line, hub):
    def told():
        return places(hub.json("/api/v1/hosts"))

    eventually(lambda: told() == ALL_THREE)
    checked_document(hub.json("/api/v1/hosts"), "hosts")
    events = hub.events("/api/v1/hosts/changes")
    assert [each["place"] for each in events.next("line")["line"]] == [1, 1, 3]
    (third,) = [each for each in line.running if "third" in each.args]
    third.kill()
    assert [each["place"] for each in events.next("line")["line"]] == [1, 1]
    eventually(lambda: told() == ALL_THREE[:2])
    # While the store is away all keep their places.
    line.etcd.kill()
    eventually(lambda: line.run("store", "status", env=line.desks[0].env()).returncode == 1)
    assert told() == ALL_THREE[:2]
    line.etcd.start()
    for job in line.running:
        job.kill()
    assert next(each for _, _, each in events.all() if each == {"line": []})
    eventually(lambda: told() == [])


def test_a_store_that_is_silent_or_no_agent_costs_the_order_and_no_row(line):
    line.etcd.kill()
    answer = eventually(lambda: (told := queue(line)).stderr and told)
    assert "the store of the lab does not answer" in answer.stderr
    assert rows(answer) == HOSTS_ONLY
    desk = line.desks[1]
    desk.agent.kill()
    desk.agent.wait(timeout=DEADLINE_S)
    answer = queue(line)
    assert "is `berth serve --store URL` running here?" in answer.stderr
    assert rows(answer) == HOSTS_ONLY


def test_an_agent_that_is_too_old_to_tell_the_line_costs_nothing(line):
    path = line.folder / "old.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=answer_as_an_old_agent, args=(listener,), daemon=True).start()
        site = line.folder / "old.toml"
        site.write_text(f'store = "{path}"\n')
        answer = queue(line, env={"BERTH_SITE_FILE": str(site)})
    assert answer.stderr == "" and rows(answer) == HOSTS_ONLY


def answer_as_an_old_agent(listener):
    asker, _ = listener.accept()
    with asker, asker.makefile("r") as words:
        if words.readline() == "line 0\n":
            asker.sendall(b"no it was asked what this version does not know\n")


def test_a_long_line_is_told_in_parts(lab):
    for number in range(PART + 1):
        ticket = {
            **{"home": "desk9", "uid": 1, "lane": 1, "gpus": 1, "asked_at": f"desk9:{number}"},
            **{"hosts": ["gpu1"], "joined": ["gpu1"]},
        }
        lab.etcd.ask("kv/put", key=f"/berth/1/ticket/desk9-{number:032x}", value=json.dumps(ticket))
    # Nobody waits here, so the agent knows nothing of the line yet, and reads it in parts as well.
    assert told(lab, 0) == [
        *(f"stands {number + 1} desk9:{number}" for number in range(PART)),
        *("outside 0", f"more {PART}", "end"),
    ]
    assert told(lab, PART) == [f"stands {PART + 1} desk9:{PART}", "outside 0", "end"]
    assert told(lab, 1 << 63) == ["outside 0", "end"]


def told(lab, number):
    with socket.socket(socket.AF_UNIX) as asker:
        asker.settimeout(DEADLINE_S)
        asker.connect(str(lab.desks[0].socket))
        asker.sendall(f"line {number}\n".encode())
        with asker.makefile("r") as says:
            lines = []
            while lines[-1:] != ["end"]:
                lines.append(says.readline().rstrip("\n"))
            return lines


def test_a_ticket_tells_where_it_was_asked_for_and_nobody_can_say_otherwise(lab):
    busy(lab.hosts[0])
    job = lab.desks[0].waits("--", "true", hosts="gpu1")
    ((value, _),) = lab.etcd.keys("ticket").values()
    assert json.loads(value)["asked_at"] == f"{socket.gethostname()}:{job.pid}"
