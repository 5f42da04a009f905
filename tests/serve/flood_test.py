"""What one user's tickets can make everybody's documents, tables and agents take."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
from agent import Agent
from jobs import eventually
from schemas import checked_document
from simulated_machine import DEADLINE_S

pytestmark = pytest.mark.long

MIB = 1 << 20
TICKETS = 5000
# Holds live tickets, as long as a ticket may be, of bytes that take the most room where they are
# escaped.
FLOOD = """
import fcntl, os, resource, struct, sys, time
folder, phase, number, devices = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split(",")
most = number + 100
resource.setrlimit(resource.RLIMIT_NOFILE, (most, max(most, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
first = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
grant = "".join(f"device={each}\\n" for each in devices) if phase == "leases" else ""
for i in range(number):
    name = f"{first + i:016x}"
    file = os.open(f"{folder}/{phase}/{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    text = f"berth-ticket 1\\nid={name}\\npid={os.getpid()}\\npid_start=1\\njoined_at=1795264953\\ncount=1\\n"
    text += "request=" + "q" * 500 + "\\ncommand=" + "\\x1b" * 1200 + "\\nnote=" + "\\x1b" * 1500 + "\\ncandidate=*\\n"
    os.write(file, (text + ("granted_at=1\\ngranted_boot=1\\n" if grant else "") + grant + "end\\n").encode())
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 1 if grant else 2, 0))
print("full", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["leases", "queue"])
def flooded(machine, request):
    machine.berth("run", "-n", "2", "--", "true")
    uuids = ",".join(
        device["uuid"] for device in json.loads(machine.berth("list", "--json").out)["devices"][:2]
    )
    words = (sys.executable, "-c", FLOOD, str(machine.leases), request.param, str(TICKETS), uuids)
    flood = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if flood.stdout.readline() != "full\n":
            pytest.skip("needs 5,100 descriptors")
        yield machine, request.param
    finally:
        flood.communicate(timeout=DEADLINE_S)


def most_resident_bytes(process) -> int:
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)[1]) * 1024


def total(document: dict, key: str) -> int:
    return sum(rest[key] for rest in document["unlisted"])


@pytest.mark.release_only  # a sanitizer keeps memory of its own
def test_an_agent_beside_five_thousand_tickets_of_one_user_stays_small(flooded):
    machine, part = flooded
    agent = Agent(machine, "--no-history")
    count = {"leases": lambda: agent.json("/api/v1/leases"), "queue": lambda: agent.json("/api/v1/queue")}
    eventually(lambda: bool(count[part]()["unlisted"]))
    _, _, text = agent.get("/api/v1/snapshot")
    assert len(text) < 2 * MIB
    snapshot = json.loads(text)
    checked_document(snapshot, "list")
    queue = agent.json("/api/v1/queue")
    checked_document(queue, "queue")
    if part == "leases":
        assert len(snapshot["leases"]) + total(snapshot, "leases") == TICKETS
        verdict = snapshot["devices"][0]["verdict"]
        assert len(verdict["culprits"]) + verdict["more_culprits"] == TICKETS
    else:
        assert snapshot["waiting"] == len(queue["waiters"]) + total(queue, "waiting") == TICKETS
    for path in ("/metrics", "/api/v1/queue", "/api/v1/hosts", "/api/v1/leases", "/gpu_status"):
        assert len(agent.get(path)[2]) < 5 * MIB
    assert most_resident_bytes(agent.process) < 80 * MIB


def test_tables_and_documents_say_how_many_more_there_are(flooded):
    machine, part = flooded
    table = machine.berth(*(("list", "-l") if part == "leases" else ("queue",))).out
    assert re.search(r"^and \d+ more (leases|requests) of \S+$", table, re.MULTILINE), table[-300:]
    document = machine.berth("list", "--json").out
    assert len(document) < 3 * MIB
