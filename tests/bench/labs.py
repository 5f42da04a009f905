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
from fleets import TICKETS, Etcd, Gateway, store
from markdown import number
from queues import readable
from results import LIMIT, OURS, Figure, Row, Table
from running import ended
from setting import Bench
from upkeep import observe

SIZES = (100, 300, 1000)  # agents
REQUESTS = 10  # of each agent
HOSTS = 20  # that each request names
PLACED_S, LEAST_PLACED_S = 900, 60  # until all know their places
PATIENCE_S = 30
IN_A_PROCESS = 250  # agents: a process may open some thousand files
WAITING = b"waiting\n"
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
SETTLED_S = 15  # more than an agent takes to renew its presence
OBSERVED_S = 30
CHANGE_S = 1.0
RENEWED_S, PRESENT_S = 10, 30  # as an agent does
MEMORY_MB, ETCD_PERCENT, AGENT_PERCENT = 200, 15, 0.2  # what we hold ourselves to
PLACED, IDLE, CHANGING = "all placed, s", "idle, % of a core", "a change a second, % of a core"
ONE_MEMORY = "an agent, MB"
ONE_IDLE, ONE_CHANGING = "an agent idle, % of a core", "an agent at a change a second, % of a core"


@dataclasses.dataclass
class Crowd:
    """What so many agents cost. Percents are of one core."""

    agents: int
    memory_mb: float = 0
    agents_mb: float = 0
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
            ONE_MEMORY: number(self.agents_mb / self.agents),
            ONE_IDLE: number(self.idle["agents"] / self.agents),
            ONE_CHANGING: number(self.changing["agents"] / self.agents),
        }
        return Figure(name, role, command, [self.memory_mb], "", note, more)


def line_of(process: subprocess.Popen, seconds: float) -> bytes:
    """What it says next; nothing where it says nothing in time."""
    if not readable(process.stdout.fileno(), seconds):
        return b""
    said = process.stdout.readline()
    if not said:
        raise OSError("the agents have ended")
    return said


def placed_by(process: subprocess.Popen) -> int:
    process.stdin.write(b"\n")
    said = line_of(process, PATIENCE_S)
    return int((line_of(process, PATIENCE_S) if said == WAITING else said or b"0 0").split()[1])


def await_places(processes: list[subprocess.Popen], crowd: Crowd, requests: int, seconds: float) -> None:
    """Until all that wait know their places, or all bare connections have been told of all."""
    begin = time.monotonic()
    late = [
        each for each in processes if line_of(each, max(0.0, begin + seconds - time.monotonic())) != WAITING
    ]
    if late:
        there = requests - len(late) * (requests // len(processes)) + sum(map(placed_by, late))
        crowd.placed = f"{there:,} of {requests:,} after {seconds:.0f} s"
    else:
        crowd.placed_s = time.monotonic() - begin


def commands(bench: Bench, crowd: Crowd, etcd: Etcd, folder: pathlib.Path, is_bare: bool) -> list[list[str]]:
    """Of the processes that are all the agents."""
    if is_bare:
        return [
            [
                bench.program("watchers"),
                str(etcd.port),
                *map(str, (crowd.agents, crowd.agents * REQUESTS, HOSTS)),
            ]
        ]
    count = -(-crowd.agents // IN_A_PROCESS)
    each = crowd.agents // count
    words = [bench.program("lab"), etcd.url, str(folder), *map(str, (each, each * REQUESTS, HOSTS))]
    return [[*words, str(number * each)] for number in range(count)]


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
            stack.enter_context(presence(etcd.port, agents))
        errors = stack.enter_context((folder / "errors").open("wb"))
        processes = [
            stack.enter_context(ended(subprocess.Popen(words, bufsize=0, stderr=errors, **PIPES)))
            for words in commands(bench, crowd, etcd, folder, is_bare)
        ]
        pids = {"etcd": [etcd.process.pid], "agents": [each.pid for each in processes]}
        await_places(processes, crowd, requests, max(LEAST_PLACED_S, PLACED_S * bench.share))
        time.sleep(SETTLED_S)
        crowd.idle = percents(bench, pids)
        crowd.memory_mb = resident_mb(etcd.process.pid)
        crowd.agents_mb = sum(resident_mb(each.pid) for each in processes)
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
              f"the agents' own code, {IN_A_PROCESS} of them in a process; an agent's share is that of all, divided by them")
    )  # fmt: skip
    bench.say(f"{agents} agents: {name}")
    try:
        crowd = crowd_of(bench, agents, is_bare)
    except (shelf.NotHad, OSError, ValueError, TimeoutError) as error:
        crowd = Crowd(agents, trouble=str(error))
    return crowd, crowd.figure(name, role, command, note)


def bars(crowd: Crowd, bare: Crowd, title: str) -> list[str]:
    """Whether what was measured is within what we hold ourselves to."""
    if crowd.trouble:
        return []
    said = []
    for what, measured, limit, bar, unit in (
        ("etcd's memory", crowd.memory_mb, bare.memory_mb, MEMORY_MB, "MB"),
        ("etcd at rest", crowd.idle["etcd"], bare.idle.get("etcd", 0.0), ETCD_PERCENT, "% of a core"),
        ("an agent at rest", crowd.idle["agents"] / crowd.agents, 0.0, AGENT_PERCENT, "% of a core"),
    ):
        verdict = "keeps to" if measured <= bar else "misses"
        beside = f"; with bare watches {number(limit)}" if measured > bar and limit else ""
        said.append(f"{what} {verdict} its {number(bar)} {unit} (it takes {number(measured)} {unit}{beside})")
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
        row.facts += bars(crowd, bare, title)
    row.facts.insert(0, WHY_SQUARE)
    return row


WHY_SQUARE = (
    "All requests come at once here, and every agent is told of each of them. So the time until all are placed grows"
    " with the square of the number of agents, for bare watches too. In a lab, requests come one after another."
)


def lab(bench: Bench) -> list[Row]:
    return [anywhere.free_host(bench), anywhere.hand_over(bench), many_agents(bench)]
