"""Rows 17 and 18: a command starts on one of several hosts, and a GPU goes from one desk to another."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import time

import shelf
from contest import PATIENCE_S, Contest, Contestant, is_due
from fleets import BARE, TICKETS, Desk, Fleet, Gateway, busy, fleet, place_of
from machines import Machine
from markdown import number
from queues import JobQueue, ProcessQueue
from remarks import SSH_FACTOR
from results import FLOOR, LIMIT, OURS, PEER, Figure, Row, Table
from running import run
from servers import Servers, servers
from setting import Bench

HOSTS = (1, 4)
ROUND_TRIPS, WATCHES = 3, 10  # what we hold ourselves to
LENGTHS = (10, 100, 1000)
SLURM_NODES = 10
SLURM_LENGTHS = (10, 100)
ALL_REAL = 10  # so many are processes, each with its ssh
SPARE = 2
SETTLED_S = 0.3
ROUNDS = 24
SLURM_ROUNDS = 4
# A command that says when it began, and its launcher, which says it just before.
NOW = ["date", "+%s%N"]
LAUNCHER = ["sh", "-c", 'date +%s%N; exec "$@"', "sh"]


# Row 17: a free host ------------------------------------------------------------------------------


class Starts(Contest):
    """From the call of a command until the command that it starts has begun, by the same clock: all hosts are here."""

    def take_ms(self, each: Contestant) -> float:
        done = run([*LAUNCHER, *each.command], self.environment | each.environment, PATIENCE_S)
        before, after = map(int, done.stdout.split()[:2])
        return (after - before) / 1e6

    def peaks_kib(self, each: Contestant) -> list[int]:
        return []


def contestants(bench: Bench, lab: Fleet, hosts: int, words: list[str], started: Servers) -> list[Contestant]:
    names = ",".join(host.name for host in lab.hosts[:hosts])
    anywhere = [bench.berth, "run", "--anywhere", "--hosts", names, "--", *words]
    shown = f"berth run --anywhere --hosts {names} -- true"
    found = [
        Contestant("ssh", LIMIT, lambda: lab.ssh("gpu1", *words), shown="ssh gpu1 true"),
        Contestant("berth run --anywhere", OURS, lambda: anywhere, shown=shown, note="by ssh alone"),
        Contestant("the same with a store", OURS, lambda: anywhere, shown=shown,
                   note="in the queue of the lab, which etcd keeps", environment=lab.desks[0].env()),
        Contestant("Slurm srun", PEER, lambda: ["srun", "-Q", "-n1", "--gres=gpu:1", *words],
                   shown="srun -Q -n1 --gres=gpu:1 true",
                   note="four slurmds on this machine; no ssh, and no login: munge says who it is. It asks no driver",
                   environment=started.machine.environment),
    ]  # fmt: skip
    if hosts > 1:
        each = " ".join(f'ssh -F "$0" {host.name} "$@" &' for host in lab.hosts[:hosts])
        together = ["sh", "-c", f"{each} wait", str(lab.ssh_config), *words]
        found.insert(
            1,
            Contestant(f"ssh to all {hosts} at once", FLOOR, lambda: together,
                       shown="ssh gpu1 true & … ssh gpu4 true & wait",
                       note="all of it on the processors of this machine; the time of the first"),
        )  # fmt: skip
    return found


def free_host(bench: Bench) -> Row:
    row = Row(17, "lab", "Many machines: a free host",
              "From Enter to the command's start on a free host. Each host is an sshd on this machine, with a simulated GPU"
              " and a lease directory of its own. All of them share the processors of this machine, and the caller does"
              " too.")  # fmt: skip
    with (
        fleet(bench, "lab-start", hosts=max(HOSTS), desks=1) as lab,
        Machine(bench, "lab-slurm", devices=1) as machine,
        servers(machine, 1, max(HOSTS)) as started,
    ):
        with contextlib.suppress(shelf.NotHad):
            started.slurm()
        for hosts in HOSTS:
            bench.say(f"{hosts} hosts named")
            named = f"{hosts} host{'s' if hosts > 1 else ''} named"
            figures = Starts(bench.measure, lab.env, bench.runs).hold(
                contestants(bench, lab, hosts, NOW, started)
            )
            row.tables.append(
                Table(f"lab-start-{hosts}", f"{named}: until the command has begun", "ms", figures)
            )
        figures = Contest(bench.measure, lab.env, bench.runs).hold(
            contestants(bench, lab, 1, ["true"], started)
        )
        row.tables.append(Table("lab-whole", "1 host named: until all is over", "ms", figures))
        gateway = Gateway(lab.etcd.port)
        try:
            trips = [
                Figure("a write", LIMIT, "POST /v3/kv/put", [gateway.put_ms() for _ in range(bench.runs)],
                       note="etcd has it on its disk"),
                Figure("a read", FLOOR, "POST /v3/kv/range", [gateway.get_ms() for _ in range(bench.runs)]),
            ]  # fmt: skip
        finally:
            gateway.close()
    row.tables.append(Table("lab-etcd", "one round trip to etcd, bare", "ms", trips, compared=False))
    row.facts += [
        told
        for table in row.tables
        for told in bars_of_start(table, trips[0].median)
        if table.key != "lab-etcd"
    ]
    return row


def held(what: str, measured: float, bar: float, of: str, unit: str = "ms") -> str:
    """The sentence that compares what was measured with what we hold ourselves to."""
    verdict = (
        "keeps to that"
        if measured <= bar
        else f"misses it by {number(measured - bar)} {unit} ({number(measured / bar)} ×)"
    )
    return f"- We hold {what} to {of}, which is {number(bar)} {unit}. It takes {number(measured)} {unit} and {verdict}."


def bars_of_start(table: Table, trip_ms: float) -> list[str]:
    ssh, alone = table.first(LIMIT), table.named("berth run --anywhere")
    stored = table.named("the same with a store")
    told = []
    if ssh and alone:
        bar = SSH_FACTOR * ssh.median
        told.append(
            held(f"`berth run --anywhere` ({table.title})", alone.median, bar, f"{SSH_FACTOR} × `ssh`")
        )
    if ssh and stored:
        bar = SSH_FACTOR * ssh.median + ROUND_TRIPS * trip_ms
        of = f"{SSH_FACTOR} × `ssh` and {ROUND_TRIPS} writes to etcd"
        told.append(held(f"the same with a store ({table.title})", stored.median, bar, of))
    return told


# Row 18: from one desk to another -----------------------------------------------------------------


class Line(ProcessQueue):
    """The queue of the lab for the GPU of gpu1. Requests in front are `berth run --anywhere`, at one desk and the other
    in turn. Behind so many of them stand places that this run holds at the agents, as requests do that wait."""

    def __init__(self, bench: Bench, lab: Fleet, real: int):
        names = ",".join(host.name for host in lab.hosts)
        words = [bench.berth, "run", "--anywhere", "--hosts", names, "--", bench.program("handover"), "stamp"]
        super().__init__(words, lab.env, tree=True)
        self.lab, self.names, self.real = lab, names, real
        self.gateway = Gateway(lab.etcd.port)
        self.asked = self.standing = 0
        self.places: list = []

    def desk(self) -> Desk:
        return self.lab.desks[self.asked % len(self.lab.desks)]

    def spawn(self) -> subprocess.Popen:
        process = subprocess.Popen(
            self.command,
            env=self.environment | self.desk().env(),
            stdin=subprocess.DEVNULL,
            stdout=self.stamp_end,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        self.asked += 1
        return process

    def start(self, number: int) -> None:
        """One after another, so that neighbours in the line are of different desks."""
        for _ in range(number):
            self.standing += 1
            if not self.places and self.standing <= self.real:
                self.spawn()
                self.await_tickets(self.standing)
            else:
                self.places.append(place_of(self.desk(), secrets.token_hex(16), self.names))
                self.asked += 1
        self.await_tickets(self.standing)

    def await_tickets(self, number: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (there := self.gateway.count(TICKETS)) < number:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{there} of {number} requests stand in the line after {PATIENCE_S} s")
            time.sleep(0.005)

    def settle(self) -> None:
        """Until the next one stands in the own line of the host."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self.lab.hosts[0].tickets()) < 2:
            if time.monotonic() > deadline:
                raise TimeoutError("nobody stands in line for the GPU")
            time.sleep(0.02)
        time.sleep(SETTLED_S)

    def hand_over(self, killed: bool) -> float:
        took = super().hand_over(killed)
        self.standing -= 1
        return took

    def reap(self, holder: tuple[int, int]) -> None:
        """Its caller at the desk hears of it by ssh, in its own time."""

    def end(self) -> None:
        self.kill_holder()
        for asker, says in self.places:
            says.close()
            asker.close()
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.gateway.close()
        for end in (self.stamps, self.stamp_end):
            os.close(end)


def of_slurm(bench: Bench, length: int, stack: contextlib.ExitStack) -> JobQueue:
    """So many nodes with a GPU each, of which all but one stay busy."""
    machine = stack.enter_context(Machine(bench, f"lab-slurm-{length}", devices=1))
    server = stack.enter_context(servers(machine, 1, SLURM_NODES)).slurm()
    queue = JobQueue(server, [bench.program("handover"), "stamp"], machine.directory)
    stack.callback(queue.end)
    busy_one = machine.directory / "busy.sh"
    busy_one.write_text("#!/bin/sh\nexec sleep 10000\n")
    busy_one.chmod(0o755)
    server.submit(busy_one, SLURM_NODES - 1)
    queue.start_holder()
    queue.start(length)
    return queue


def ssh_ms(bench: Bench, lab: Fleet) -> float:
    told = run([str(bench.measure), "time", *lab.ssh("gpu1", "true")], lab.env, PATIENCE_S).stdout
    return int(told.split()[0]) / 1e6


def hand_over_at(bench: Bench, length: int) -> Table:
    waiting = bench.times(length, 10)
    bench.say(f"{waiting} wait for a GPU of the lab")
    both = Figure("a bare watch, then ssh", FLOOR, "POST /v3/watch, then ssh gpu1 true",
                  note="what a hand-over would take whose ssh began only then")  # fmt: skip
    watch = Figure(
        "a bare watch", LIMIT, "POST /v3/watch", note="a write to etcd, until a watcher is told of it"
    )
    ours = Figure("berth run --anywhere", OURS, "berth run --anywhere -- COMMAND",
                  note="the holder's envoy and its command are killed on the host")  # fmt: skip
    slurm = Figure(
        "Slurm",
        PEER,
        "sbatch --gres=gpu:1 JOB",
        note=f"{SLURM_NODES} nodes, all but one of which stay busy; sched/builtin, without its pauses",
    )
    rounds = bench.times(ROUNDS)
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(fleet(bench, f"lab-killed-{length}", hosts=2, desks=2))
        busy(lab.hosts[1])
        line = Line(bench, lab, real=waiting if waiting <= ALL_REAL else rounds + SPARE)
        stack.callback(line.end)
        line.start_holder()
        line.start(waiting)
        gateway = Gateway(lab.etcd.port)
        stack.callback(gateway.close)
        watcher = stack.enter_context(gateway.watch(BARE))
        theirs = None
        if length in SLURM_LENGTHS:
            try:
                theirs = of_slurm(bench, length, stack)
            except (shelf.NotHad, OSError, TimeoutError) as error:
                slurm.trouble = str(error)
        for turn in range(rounds):
            try:
                line.settle()
                watch.values.append(gateway.told_ms(watcher))
                both.values.append(watch.values[-1] + ssh_ms(bench, lab))
                ours.values.append(line.hand_over(killed=True))
                line.start(1)
            except (OSError, TimeoutError) as error:
                ours.trouble = str(error)
                break
            if theirs and is_due(turn, min(rounds, bench.times(SLURM_ROUNDS, 1)), rounds):
                slurm.values.append(theirs.hand_over(killed=True))
                theirs.start(1)
    figures = [watch, both, ours] + ([slurm] if length in SLURM_LENGTHS else [])
    return Table(f"lab-killed-{length}", f"{waiting:,} wait", "ms", figures)


def bar_of_hand_over(table: Table) -> list[str]:
    watch, both, ours = table.first(LIMIT), table.named("a bare watch, then ssh"), table.first(OURS)
    if not (watch and both and ours):
        return []
    bar = both.median + (WATCHES - 1) * watch.median
    return [held(f"a hand-over ({table.title})", ours.median, bar, f"one `ssh` and {WATCHES} × a bare watch")]


def hand_over(bench: Bench) -> Row:
    row = Row(18, "lab", "Many machines: a GPU goes from one desk to another",
              "Two hosts have one GPU each. The holder of the GPU of gpu1 is killed with SIGKILL there, while gpu2 stays"
              " busy. The next request waits in the queue of the lab at another desk. How long until its command runs?")  # fmt: skip
    row.tables = [hand_over_at(bench, length) for length in LENGTHS]
    row.facts.append(
        f"Where more than {ALL_REAL} wait, only the first {bench.times(ROUNDS) + SPARE} are processes of `berth run"
        " --anywhere`. The others are places that this run holds at the agents, by the lines that a request says there:"
        " for the store and the agents they are requests that wait."
    )
    ten, most = row.tables[0].first(OURS), row.tables[-1].first(OURS)
    if ten and most:
        row.facts.append(
            f"Where {row.tables[-1].title} it takes {most.median / ten.median:.2f} × what it takes where"
            f" {row.tables[0].title}."
        )
    row.facts += [told for table in row.tables for told in bar_of_hand_over(table)]
    return row
