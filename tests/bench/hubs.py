"""Row 11: a hub over many agents."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import pathlib
import subprocess
import time
from collections.abc import Iterator

import pages
import shelf
from machines import Machine
from results import OURS, PEER, Figure, Row, Table
from servers import free_port
from setting import Bench
from upkeep import Upkeep, observe

SIZES = (10, 100, 1000)
NVGPU_SIZES = (10, 100)
FIRST_PORT = 21000  # below those that the kernel gives away
ROUNDS = 3
OBSERVED_S = 15
QUESTIONS = 3
QUESTION = "/cluster_status"
SLOW, SLOW_MS = 10, 200
PAGES = 60
PATIENCE_S = 30
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def await_status(port: int, path: str) -> float:
    """Milliseconds until it answers 200."""
    begin = time.monotonic()
    while time.monotonic() - begin < PATIENCE_S:
        with contextlib.suppress(OSError):
            if get(port, path)[0] == 200:
                return (time.monotonic() - begin) * 1000
        time.sleep(0.001)
    raise shelf.NotHad(f"{path} does not answer 200 in {PATIENCE_S} s")


@contextlib.contextmanager
def running(words: list[str], environment: dict[str, str], **more) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(words, env=environment, **(QUIET | more))
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def record(bench: Bench, machine: Machine) -> list[str]:
    """Files with what an agent of eight GPUs answers to a hub, and to nvgpu's master."""
    port = free_port()
    files = []
    with running([bench.berth, "serve", "--listen", f"127.0.0.1:{port}"], machine.environment):
        await_status(port, "/readyz")
        for path in ("/api/v1/hosts", "/gpu_status"):
            file = machine.directory / f"{path.rsplit('/', 1)[1]}.json"
            file.write_bytes(get(port, path)[1])
            files.append(str(file))
    return files


@contextlib.contextmanager
def many_agents(bench: Bench, machine: Machine, count: int, files: list[str]) -> Iterator[None]:
    words = [bench.program("agents"), str(FIRST_PORT), str(count), *files]
    with running(words, machine.environment, stdout=subprocess.PIPE) as process:
        if not process.stdout.readline():
            raise shelf.NotHad(f"{count} ports from {FIRST_PORT} on are not free")
        yield
    process.stdout.close()


# Berth's hub and nvgpu's --------------------------------------------------------------------------


class Hub:
    """`first`: ms from its start to its first answer with all machines; `later`: of a question after that."""

    def __init__(self, name: str, role: str, command: str):
        self.figure = Figure(name, role, command)
        self.first: list[float] = []
        self.later: list[float] = []
        self.cost: Upkeep | None = None

    def ask(
        self, words: list[str], environment: dict[str, str], port: int, count: int, observed_s: float
    ) -> None:
        """Starts it and asks it; watches what it costs to keep when there is time for that."""
        with running(words, environment) as process:
            try:
                self.first.append(await_all(port, count))
                for _ in range(QUESTIONS):
                    begin = time.monotonic()
                    get(port, QUESTION)
                    self.later.append((time.monotonic() - begin) * 1000)
            except (shelf.NotHad, OSError) as error:
                self.figure.trouble = str(error)
                return
            if observed_s:
                self.cost = observe({"hub": [process.pid]}, observed_s)["hub"]

    def of(self, values: list[float]) -> Figure:
        return dataclasses.replace(self.figure, values=values)


def await_all(port: int, count: int) -> float:
    """Milliseconds until it tells of all machines."""
    begin = time.monotonic()
    while time.monotonic() - begin < PATIENCE_S:
        with contextlib.suppress(OSError):
            status, text = get(port, QUESTION)
            if status == 200 and text.count(b'"gpus"') >= count:
                return (time.monotonic() - begin) * 1000
        time.sleep(0.001)
    raise shelf.NotHad(f"does not tell of all {count} machines in {PATIENCE_S} s")


def list_agents(machine: Machine, urls: list[str]) -> pathlib.Path:
    file = machine.directory / f"{len(urls)}.toml"
    file.write_text("".join(f'[[agent]]\nname = "n{i}"\nurl = "{url}"\n' for i, url in enumerate(urls)))
    return file


def compare(bench: Bench, machine: Machine, count: int, watch: bool) -> list[Hub]:
    """Both in turn, each started anew."""
    urls = [f"http://127.0.0.1:{FIRST_PORT + index}" for index in range(count)]
    listed, settings = list_agents(machine, urls), machine.directory / f"{count}.cfg"
    settings.write_text(f"AGENTS = {urls}\n")
    ours = Hub("berth serve --hub", OURS, "berth serve --hub --agents FILE")
    nvgpu = Hub("nvgpu", PEER, "NVGPU_CLUSTER_CFG=FILE FLASK_APP=nvgpu.webapp flask run")
    flask = ""
    try:
        flask = str(shelf.environment("nvgpu") / "bin/flask")
    except shelf.NotHad as reason:
        nvgpu.figure.trouble = str(reason)
    rounds = bench.times(ROUNDS)
    for turn in range(rounds):
        port = free_port()
        words = [bench.berth, "serve", "--hub", "--agents", str(listed), "--listen", f"127.0.0.1:{port}"]
        observed_s = bench.seconds(OBSERVED_S) if watch and turn == rounds - 1 else 0
        ours.ask(words, machine.environment, port, count, observed_s)
        if flask and count in NVGPU_SIZES and not nvgpu.figure.trouble:
            port = free_port()
            environment = machine.environment | {
                "FLASK_APP": "nvgpu.webapp",
                "NVGPU_CLUSTER_CFG": str(settings),
            }
            nvgpu.ask([flask, "run", "--host", "127.0.0.1", "--port", str(port)], environment, port, count, 0)
    return [ours, nvgpu] if count in NVGPU_SIZES else [ours]


def beside_pages(bench: Bench, machine: Machine, count: int) -> list[Table]:
    """What a hub takes, and how soon it answers, while pages are open and everything changes."""
    file = pages.write_machines(machine.directory / "changing", count)
    port = free_port()
    listed = list_agents(machine, [f"http://127.0.0.1:{FIRST_PORT + index}" for index in range(count)])
    words = [bench.berth, "serve", "--hub", "--agents", str(listed), "--listen", f"127.0.0.1:{port}"]
    with many_agents(bench, machine, count, [file]), running(words, machine.environment) as process:
        await_all(port, count)
        seen = pages.beside(port, PAGES, bench.seconds(OBSERVED_S))
        memory = pages.most_resident_mib(process.pid)
    title = f"{count:,} agents whose readings change, and {PAGES} pages open"
    return [
        Table(
            f"hub-pages-{key}",
            f"{title}: {what}",
            unit,
            [Figure("berth serve --hub", OURS, values=values)],
            compared=False,
        )  # fmt: skip
        for key, what, unit, values in (
            ("health", "/healthz, median", "ms", [pages.percentile(seen.waits_ms, 0.5)]),
            ("health-99", "/healthz, 99 of 100 within", "ms", [pages.percentile(seen.waits_ms, 0.99)]),
            ("bytes", "what a page is sent", "kB/s", [seen.bytes_a_second / 1000]),
            ("memory", "the most memory that it has had", "MiB", [memory]),
        )
    ]


def hub(bench: Bench) -> Row:
    row = Row(11, "hub", "The hub",
              "How long does it take until a hub shows all machines, of eight GPUs each? One C program plays all"
              " agents. It answers at once, except where the table says otherwise. Both hubs are asked for"
              f" {QUESTION}.")  # fmt: skip
    later: list[Table] = []
    costs: dict[int, Upkeep] = {}
    with Machine(bench, "hub", devices=8, busy=4, process_count=4) as machine:
        files = record(bench, machine)
        for count in SIZES:
            bench.say(f"{count} agents")
            with many_agents(bench, machine, count, files):
                hubs = compare(bench, machine, count, watch=True)
            title = f"{count:,} agents"
            row.tables.append(
                table(f"hub-first-{count}", f"{title}: from its start to the first answer", hubs, "first")
            )
            later.append(table(f"hub-later-{count}", f"{title}: a question after that", hubs, "later"))
            if hubs[0].cost:
                costs[count] = hubs[0].cost
        bench.say("slow agents")
        with many_agents(bench, machine, 100, [*files, str(SLOW), str(SLOW_MS)]):
            hubs = compare(bench, machine, 100, watch=False)
        title = f"100 agents, {SLOW} of which answer after {SLOW_MS} ms: from its start to the first answer"
        row.tables.append(table("hub-slow", title, hubs, "first"))
        bench.say("pages")
        row.tables += beside_pages(bench, machine, SIZES[-1])
    row.tables += [*later, *cost_tables(costs)]
    return row


def table(key: str, title: str, hubs: list[Hub], what: str) -> Table:
    return Table(key, title, "ms", [each.of(getattr(each, what)) for each in hubs])


def cost_tables(costs: dict[int, Upkeep]) -> list[Table]:
    tables = []
    for key, title, unit, value in (
        ("hub-cpu", "asking every 5 s: processor time", "% of a core", lambda cost: cost.core_percent),
        ("hub-memory", "memory (PSS)", "MiB", lambda cost: cost.pss_mib),
    ):
        figures = [Figure(f"{count:,} agents", OURS, values=[value(cost)]) for count, cost in costs.items()]
        tables.append(Table(key, title, unit, figures, counts=True, compared=False))
    return tables
