"""Rows 17 to 19: many machines. Row 19, here, is about what many agents cost the store, and themselves."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import secrets
import subprocess
import threading
import time
from collections.abc import Iterator

import anywhere
import shelf
from fleets import TICKETS, Gateway, store
from markdown import number
from queues import readable
from results import LIMIT, OURS, Figure, Row, Table
from running import ended
from setting import Bench
from upkeep import observe

SIZES = (100, 300, 1000)  # agents
REQUESTS = 10  # of each agent
HOSTS = 20  # that each request names
PLACED_S = 1500  # until all know their places
SETTLED_S = 15  # more than an agent takes to renew its presence
OBSERVED_S = 30
CHANGE_S = 1.0
RENEWED_S, PRESENT_S = 10, 30  # as an agent does
MEMORY_MB, ETCD_PERCENT, AGENT_PERCENT = 200, 15, 0.2  # what we hold ourselves to
PLACED, IDLE, CHANGING = "all placed, s", "idle, % of a core", "a change a second, % of a core"
ONE_IDLE, ONE_CHANGING = "an agent idle, % of a core", "an agent at a change a second, % of a core"


@dataclasses.dataclass
class Crowd:
    """What so many agents cost. Percents are of one core."""

    agents: int
    memory_mb: float = 0
    placed_s: float = 0
    placed: str = ""  # where not all were in time, how many
    idle: dict[str, float] = dataclasses.field(default_factory=dict)
    changing: dict[str, float] = dataclasses.field(default_factory=dict)
    trouble: str = ""

    def figure(self, name: str, role: str, command: str, note: str) -> Figure:
        if self.trouble:
            return Figure(name, role, command, [], self.trouble, note)
        more = {
            PLACED: self.placed or number(self.placed_s),
            IDLE: number(self.idle["etcd"]),
            CHANGING: number(self.changing["etcd"]),
            ONE_IDLE: number(self.idle["agents"] / self.agents),
            ONE_CHANGING: number(self.changing["agents"] / self.agents),
        }
        return Figure(name, role, command, [self.memory_mb], "", note, more)


def told(process: subprocess.Popen) -> list[int]:
    process.stdin.write(b"\n")
    process.stdin.flush()
    if not readable(process.stdout.fileno(), PLACED_S):
        raise TimeoutError("the agents say nothing")
    return list(map(int, process.stdout.readline().split()))


def await_places(process: subprocess.Popen, crowd: Crowd, requests: int, seconds: float) -> None:
    begin = time.monotonic()
    if readable(process.stdout.fileno(), seconds):
        if process.stdout.readline() != b"waiting\n":
            raise OSError("the agents have ended")
        crowd.placed_s = time.monotonic() - begin
    else:
        crowd.placed = f"{told(process)[1]:,} of {requests:,} after {seconds:.0f}"


@contextlib.contextmanager
def presence(port: int, agents: int) -> Iterator[None]:
    """What agents do to be known as alive, from one connection: a lease each, renewed as often as theirs are."""
    gateway, over = Gateway(port), threading.Event()
    leases = [json.loads(gateway.ask("lease/grant", f'{{"TTL":"{PRESENT_S}"}}'))["ID"] for _ in range(agents)]

    def renew() -> None:
        with contextlib.suppress(OSError):
            while True:
                for lease in leases:
                    gateway.ask("lease/keepalive", f'{{"ID":"{lease}"}}')
                    if over.wait(RENEWED_S / agents):
                        return

    renewing = threading.Thread(target=renew, daemon=True)
    renewing.start()
    try:
        yield
    finally:
        over.set()
        renewing.join()
        gateway.close()


@contextlib.contextmanager
def changes(port: int) -> Iterator[None]:
    """Once a second one more request comes, or that one goes, at a machine that is none of the agents'."""
    over = threading.Event()
    key = f"{TICKETS}other-{secrets.token_hex(16)}"
    hosts = [f"gpu{number}" for number in range(HOSTS)]
    ticket = json.dumps({"home": "other", "hosts": hosts, "joined": [], "lane": 1, "uid": 0})

    def change() -> None:
        gateway, is_there = Gateway(port), False
        while not over.wait(CHANGE_S):
            gateway.remove(key) if is_there else gateway.put(key, ticket)
            is_there = not is_there
        gateway.remove(key)
        gateway.close()

    changing = threading.Thread(target=change, daemon=True)
    changing.start()
    try:
        yield
    finally:
        over.set()
        changing.join()


def percents(bench: Bench, pids: dict[str, list[int]]) -> dict[str, float]:
    return {
        name: cost.core_percent
        for name, cost in observe(pids, max(RENEWED_S, bench.seconds(OBSERVED_S))).items()
    }


def crowd_of(bench: Bench, agents: int, is_bare: bool) -> Crowd:
    crowd, requests = Crowd(agents), agents * REQUESTS
    folder = bench.directory / f"lab-{agents}-{'bare' if is_bare else 'agents'}"
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        etcd = store(folder)
        stack.callback(etcd.kill)
        if is_bare:
            words = [bench.program("watchers"), etcd.port, agents, requests, HOSTS]
            stack.enter_context(presence(etcd.port, agents))
        else:
            words = [bench.program("lab"), etcd.url, folder, agents, requests, HOSTS]
        errors = stack.enter_context((folder / "errors").open("wb"))
        process = stack.enter_context(
            ended(
                subprocess.Popen(
                    list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
                )
            )
        )
        pids = {"etcd": [etcd.process.pid], "agents": [process.pid]}
        await_places(process, crowd, requests, max(60, PLACED_S * bench.share))
        time.sleep(SETTLED_S)
        crowd.idle = percents(bench, pids)
        crowd.memory_mb = resident_mb(etcd.process.pid)
        with changes(etcd.port):
            time.sleep(CHANGE_S)
            crowd.changing = percents(bench, pids)
    return crowd


def resident_mb(pid: int) -> float:
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024 / 1e6


def figure_of(bench: Bench, agents: int, is_bare: bool) -> tuple[Crowd, Figure]:
    name, role, command, note = (
        ("bare watches", LIMIT, "watchers PORT AGENTS REQUESTS HOSTS",
         "a C program: each of so many connections is told of every request, and understands nothing")
        if is_bare
        else ("berth serve --store", OURS, "lab URL FOLDER AGENTS REQUESTS HOSTS",
              "all agents in one process, with their own code; an agent's share is that of the process, divided by them")
    )  # fmt: skip
    bench.say(f"{agents} agents: {name}")
    try:
        crowd = crowd_of(bench, agents, is_bare)
    except (shelf.NotHad, OSError, ValueError, TimeoutError) as error:
        crowd = Crowd(agents, trouble=str(error))
    return crowd, crowd.figure(name, role, command, note)


def bars(crowd: Crowd, title: str) -> list[str]:
    """Whether what was measured is within what we hold ourselves to."""
    if crowd.trouble:
        return []
    said = []
    for what, measured, bar, unit in (
        ("etcd's memory", crowd.memory_mb, MEMORY_MB, "MB"),
        ("etcd at rest", crowd.idle["etcd"], ETCD_PERCENT, "% of a core"),
        ("an agent at rest", crowd.idle["agents"] / crowd.agents, AGENT_PERCENT, "% of a core"),
    ):
        verdict = "keeps to" if measured <= bar else "misses"
        said.append(f"{what} {verdict} its {number(bar)} {unit} (it takes {number(measured)} {unit})")
    return [f"- {title}: {'; '.join(said)}."]


def many_agents(bench: Bench) -> Row:
    row = Row(19, "lab", "Many machines: many agents",
              f"Agents of a lab on an etcd, at each of which {REQUESTS} requests wait that name {HOSTS} hosts. What does etcd"
              " cost, and what does an agent cost?")  # fmt: skip
    for size in SIZES:
        agents = bench.times(size, 10)
        title = f"{agents:,} agents, {agents * REQUESTS:,} requests"
        bare, limit = figure_of(bench, agents, is_bare=True)
        crowd, ours = figure_of(bench, agents, is_bare=False)
        row.tables.append(
            Table(f"lab-agents-{size}", f"{title}: memory of etcd", "MB", [limit, ours], counts=True)
        )
        row.facts += bars(crowd, title)
    row.facts.insert(0, WHY_SQUARE)
    return row


WHY_SQUARE = (
    "All requests come at once here, and every agent is told of each of them. So the time until all are placed grows"
    " with the square of the number of agents, for bare watches too."
)


def lab(bench: Bench) -> list[Row]:
    return [anywhere.free_host(bench), anywhere.hand_over(bench), many_agents(bench)]
