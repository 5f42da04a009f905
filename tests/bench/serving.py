"""Row 10: the agent and its clients."""

from __future__ import annotations

import contextlib
import http.client
import os
import pathlib
import re
import selectors
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import shelf
from machines import MODEL, Machine
from results import LIMIT, OURS, PEER, Figure, Row, Table
from running import run
from servers import free_port
from setting import ROOT, Bench
from upkeep import observe

ROUNDS = 3
WINDOW_S = 3
CLIENTS = 8
IDLE_S = 10
STREAMS = 1000
STREAMED_S = 8
PATIENCE_S = 20
WATCHED = ("berth serve", "nvgpu")
UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


class Agent:
    """A server under test. `path` is what its clients ask for."""

    def __init__(
        self, name: str, role: str, words: list[str], path: str, port: int, environment: dict[str, str]
    ):
        self.name, self.role, self.path, self.port = name, role, path, port
        self.figures = {"rps": [], "p50": [], "p99": []}
        self.trouble = ""
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(words, env=environment, stdin=quiet, stdout=quiet, stderr=quiet)

    def get(self) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", self.path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def await_answer(self, is_right: Callable[[bytes], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                status, text = self.get()
                break
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    self.trouble = "does not start"
                    return
                time.sleep(0.05)
        if status != 200:
            self.trouble = f"answers {status}"
        elif not is_right(text):
            self.trouble = "answers wrongly"

    def pids(self) -> list[int]:
        """It and what it has started."""
        found = [self.process.pid]
        for pid in found:
            with contextlib.suppress(OSError):
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    found += map(int, (task / "children").read_text().split())
        return found

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def in_ms(text: str) -> float:
    found = re.fullmatch(r"([\d.]+)(us|ms|s)", text)
    if not found:
        raise ValueError(f"wrk says {text!r}")
    return float(found[1]) * UNITS_MS[found[2]]


def load(bench: Bench, agent: Agent, environment: dict[str, str]) -> None:
    """Some seconds of wrk."""
    seconds = max(1, round(bench.seconds(WINDOW_S)))
    url = f"http://127.0.0.1:{agent.port}{agent.path}"
    words = [shelf.program("wrk"), "-t1", f"-c{CLIENTS}", f"-d{seconds}s", "--latency", url]
    said = run(words, environment, seconds + PATIENCE_S).stdout
    if errors := re.search(r"Non-2xx.*: (\d+)", said):
        agent.trouble = f"answers {errors[1]} requests with an error"
    agent.figures["rps"].append(float(re.search(r"Requests/sec:\s*([\d.]+)", said)[1]))
    for share in ("50", "99"):
        agent.figures[f"p{share}"].append(in_ms(re.search(rf"^\s+{share}%\s+(\S+)", said, re.M)[1]))


@contextlib.contextmanager
def agents(bench: Bench, machine: Machine) -> Iterator[list[Agent]]:
    started: list[Agent] = []

    def start(name: str, role: str, path: str, command: Callable[[int], list[str]], **more: str) -> Agent:
        port = free_port()
        agent = Agent(name, role, command(port), path, port, machine.environment | more)
        started.append(agent)
        agent.await_answer(lambda text: text.count(b"GeForce") >= (machine.devices or 0))
        return agent

    try:
        serve = [bench.berth, "serve", "--listen"]
        ours = start("berth serve", OURS, "/api/v1/snapshot", lambda port: [*serve, f"127.0.0.1:{port}"])
        answer = machine.directory / "answer.json"
        answer.write_bytes(ours.get()[1] if not ours.trouble else b"{}")
        start("bare_http", LIMIT, "/", lambda port: [bench.program("bare_http"), str(port), str(answer)])
        start("berth serve, nvgpu's path", OURS, "/gpu_status", lambda port: [*serve, f"127.0.0.1:{port}"])
        try:
            flask = str(shelf.environment("nvgpu") / "bin/flask")
        except shelf.NotHad as reason:
            flask, missing = "false", str(reason)
        else:
            missing = ""
        for name, path in (("nvgpu", "/"), ("nvgpu, its JSON", "/gpu_status")):
            nvgpu = start(
                name,
                PEER,
                path,
                lambda port: [flask, "run", "--host", "127.0.0.1", "--port", str(port)],
                FLASK_APP="nvgpu.webapp",
            )
            nvgpu.trouble = missing or nvgpu.trouble
        yield started
    finally:
        for agent in started:
            agent.close()


# Event streams ------------------------------------------------------------------------------------


def hold_streams(agent: Agent, count: int, seconds: float) -> tuple[list[int], float, dict]:
    """Events that each stream got, the longest time that one waited for its next, and what the agent cost."""
    streams = selectors.DefaultSelector()
    opened = []
    request = f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:{agent.port}\r\n\r\n".encode()
    for index in range(count):
        stream = socket.create_connection(("127.0.0.1", agent.port), timeout=PATIENCE_S)
        stream.sendall(request)
        stream.setblocking(False)
        streams.register(stream, selectors.EVENT_READ, index)
        opened.append(stream)
    hear(streams, [[] for _ in range(count)], time.monotonic() + 2)
    at: list[list[float]] = [[] for _ in range(count)]
    begin = time.monotonic()
    costs = observe_while(agent, lambda: hear(streams, at, begin + seconds), seconds)
    for stream in opened:
        stream.close()
    gaps = [later - earlier for times in at for earlier, later in zip(times, times[1:])]
    return [len(times) for times in at], max(gaps, default=float("nan")), costs


def observe_while(agent: Agent, work: Callable[[], None], seconds: float) -> dict:
    """What it costs while something is done beside it, for so many seconds."""
    thread = threading.Thread(target=work)
    thread.start()
    costs = observe({"agent": agent.pids()}, seconds)
    thread.join()
    return costs


def hear(streams: selectors.BaseSelector, at: list[list[float]], until: float) -> None:
    """Notes when each stream had an event."""
    while (left := until - time.monotonic()) > 0:
        for key, _ in streams.select(left):
            text = key.fileobj.recv(1 << 16)
            if b"event: snapshot" in text:
                at[key.data].append(time.monotonic())


# The row ------------------------------------------------------------------------------------------


def figure(agent: Agent, values: list[float], **more: str) -> Figure:
    return Figure(agent.name, agent.role, f"GET {agent.path}", values, agent.trouble, more=more)


def serve(bench: Bench) -> Row:
    row = Row(10, "serve", "The agent",
              f"wrk asks for the state of eight GPUs over {CLIENTS} connections: one thread, on loopback.")  # fmt: skip
    with (
        Machine(bench, "serve", devices=8, busy=4, process_count=4) as machine,
        agents(bench, machine) as started,
    ):
        for _ in range(bench.times(ROUNDS, 1)):
            for agent in started:
                if not agent.trouble:
                    bench.say(f"wrk: {agent.name}")
                    load(bench, agent, machine.environment)
        on = f"8 × {MODEL}"
        for key, title, unit, more in (
            ("rps", f"{on}: requests", "a second", True),
            ("p50", f"{on}: half of the answers within", "ms", False),
            ("p99", f"{on}: 99 % of the answers within", "ms", False),
        ):
            figures = [figure(agent, agent.figures[key]) for agent in started]
            row.tables.append(Table(f"serve-{key}", title, unit, figures, more))
        watched = [agent for agent in started if not agent.trouble and agent.name in WATCHED]
        costs = observe({agent.name: agent.pids() for agent in watched}, bench.seconds(IDLE_S))
        row.tables += [
            Table("serve-memory", "after it: memory (PSS) of all its processes", "MiB",
                  [figure(agent, [costs[agent.name].pss_mib]) for agent in watched], counts=True),
            Table("serve-cpu", "asked by nobody: processor time", "% of a core",
                  [figure(agent, [costs[agent.name].core_percent]) for agent in watched], counts=True, compared=False),
        ]  # fmt: skip
        row.facts.append("Berth looks once a second, also if no client asks. nvgpu looks at each request.")
        if not started[0].trouble:
            row.tables.append(streams_table(bench, started[0]))
    return row


def streams_table(bench: Bench, agent: Agent) -> Table:
    bench.say(f"{STREAMS} event streams")
    counts, gap, costs = hold_streams(agent, STREAMS, bench.seconds(STREAMED_S))
    cost = costs["agent"]
    more = {
        "events each": f"{min(counts)} – {max(counts)}",
        "memory MiB": f"{cost.pss_mib:.1f}",
        "longest gap s": f"{gap:.2f}",
    }
    one = Figure(agent.name, OURS, "GET /api/v1/events", [cost.core_percent], more=more)
    return Table("serve-streams", f"{STREAMS:,} event streams held, one event a second", "% of a core", [one], counts=True,
                 compared=False)  # fmt: skip


# Row 13 -------------------------------------------------------------------------------------------

PAGE_PATIENCE_S = 180
# "what    figure   how it came", as tests/bench/page.py says it.
PAGE_LINE = re.compile(r"(\S.*?)\s{2,}([\d.]+ \S+)\s{2,}(.+)")


def page(bench: Bench) -> Row:
    row = Row(
        13,
        "page",
        "The page",
        "The page shows 100 machines of eight GPUs in Debian's Chromium. No peer has such a page.",
    )
    python = ROOT / ".venv/bin/python"
    done = run(
        [str(python), str(ROOT / "tests/bench/page.py"), "--build", str(bench.build)],
        dict(os.environ),
        PAGE_PATIENCE_S,
    )
    row.facts = [f"- {what}: **{figure}** {how}" for what, figure, how in PAGE_LINE.findall(done.stdout)]
    if done.returncode != 0 or not row.facts:
        row.trouble = shelf.last_line(ValueError(done.stderr))
    return row
