#!/usr/bin/env python3
"""The queue of a lab, with everything in it killed and stopped at random, for as long as asked.

Several hosts behind sshd, two or three desks with agents, an etcd of one member or of three, and many requests.
What looks for faults does not look at the store, but for the end: each job binds names that only one owner of a
GPU can have (job.c), each command writes its request's name when it starts and when it ends, and the kernel's
locks in the lease directories are read over and over. In the end each request that nobody has killed has run,
nothing is leased, and nothing is left in the store."""

import argparse
import collections
import contextlib
import dataclasses
import heapq
import itertools
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

if __name__ == "__main__":
    sys.path[:1] = [str(pathlib.Path(__file__).resolve().parents[1] / part) for part in ("", "machines")]
from chaos.lab_evidence import Request, command, faults_by_jobs, faults_of_requests, lines_of
from chaos.overlaps import leases_in, overlaps_in, place_of
from desks import Desk
from etcd import ETCD, Etcd, EtcdOfMembers
from fleet_of_hosts import SSHD, Machines, parent_of, words_of
from simulated_machine import BUILD, DEADLINE_S

HOSTS = ("gpu1", "gpu2", "gpu3")
GPUS = 2
NEIGHBOURS_AT_ONCE = 2
# Hang guard: how long nothing may end once all faults are over.
PATIENCE_S = 180
MARK = "CHAOS_REQUEST"
# Nobody loses patience with who is stopped for so long: an ssh must answer within 20 s.
HARMLESS_STOP_S = 6
# A host waits 30 s for the word of a request, and the lab 60 s for one that is to join.
LONG_STOP_S = (31, 75)
# About how long a request needs from its grant to its start.
STEPS_OF_START_S = 0.03
NEAR_SSH = BUILD / "chaos_near_ssh"


@dataclasses.dataclass(frozen=True)
class Pace:
    """How often things happen to requests. `parts`: the most that are killed or stopped at the same time."""

    at_once: int
    starts_a_second: float
    kills_a_second: float
    stops_a_second: float
    parts: int
    longest_ms: int  # that a command runs
    longest_aim_s: float  # how long a grant is waited for
    longest_stop_s: float  # but for the few that are long for a reason


# An ssh is a tenth of a second of a processor.
BY_SSH = Pace(
    at_once=12,
    starts_a_second=6,
    kills_a_second=0.5,
    stops_a_second=0.5,
    parts=1,
    longest_ms=8000,
    longest_aim_s=0.5,
    longest_stop_s=HARMLESS_STOP_S,
)
NEAR = Pace(
    at_once=24,
    starts_a_second=40,
    kills_a_second=8,
    stops_a_second=2,
    parts=5,
    longest_ms=1000,
    longest_aim_s=0.1,
    longest_stop_s=0.5,
)


class NearMachines(Machines):
    """Hosts that are called without ssh (near_ssh.c): in a minute many times as many requests come and are killed."""

    def ssh_words(self) -> list:
        return [NEAR_SSH, self.folder]

    def open(self, host) -> None:
        variables = (f"{name}={value}\0" for name, value in host.machine.env.items())
        (host.folder / "environ").write_text("".join(variables))


class LabChaos:
    def __init__(self, folder: pathlib.Path, seed: int, members: int, is_near: bool = False):
        self.folder = folder
        self.random = random.Random(seed)
        self.began = time.monotonic()
        self.done: dict[str, int] = collections.Counter()
        self.requests: list[Request] = []
        self.waiting: list[Request] = []  # those that have not ended
        self.numbers = itertools.count(1)
        self.later: list = []  # (when, a number, what, with which words), a heap
        self.faults: list[str] = []
        self.looks = 0
        self.ended = threading.Event()
        self.trace = (folder / "trace").open("w")
        (folder / "errors").mkdir()
        self.pace = NEAR if is_near else BY_SSH
        self.machines = (NearMachines if is_near else Machines)(folder, passed=MARK)
        self.etcd = Etcd(folder) if members == 1 else EtcdOfMembers(folder, members)
        self.desks: list[Desk] = []
        self.busy: set = set()  # agents and members that are down or stopped now

    def open(self) -> None:
        for name in HOSTS:
            host = self.machines.add(name, f"{GPUS}xH100", CHAOS_HOST=name)
            (host.machine.directory / "site.toml").write_text('assumed_time = "2s"\n')
            host.machine.berth("run", "--", "true")  # which makes the lease directory
        self.etcd.start()
        backfill = self.random.choice(["", "backfill = false\n"])
        for number in range(self.random.choice([2, 3])):
            desk = Desk(self.machines, self.etcd, f"desk{number}")
            desk.site.write_text(desk.site.read_text() + backfill)
            desk.start_agent()
            self.desks.append(desk)

    def close(self) -> None:
        self.ended.set()
        for member in self.etcd.members:
            self.signal(member.process, signal.SIGCONT)
        for request in self.waiting:
            request.process.kill()
            request.process.wait(timeout=DEADLINE_S)
        self.machines.close()
        self.etcd.kill()
        self.trace.close()

    def run(self, seconds: float, spared: tuple) -> None:
        watcher = threading.Thread(target=self.watch)
        watcher.start()
        end = time.monotonic() + seconds
        a_second = {what: often for what, often in self.rates().items() if what.__name__ not in spared}
        try:
            while time.monotonic() < end:
                self.go_on()
                self.random.choices(list(a_second), list(a_second.values()))[0]()
                time.sleep(min(1, self.random.expovariate(sum(a_second.values()))))
            self.finish()
        finally:
            self.ended.set()
            watcher.join()

    def rates(self) -> dict:
        """How often what happens in a second, about."""
        of_members = 0.05 * len(self.etcd.members)  # with three the store is there all the same
        return {
            self.start: self.pace.starts_a_second,
            self.start_neighbour: 0.3,
            self.kill_parts: self.pace.kills_a_second,
            self.stop_parts: self.pace.stops_a_second,
            self.kill_an_agent: 0.05,
            self.stop_an_agent: 0.05,
            self.kill_a_member: of_members,
            self.stop_a_member: of_members,
            self.kill_the_store: 0.02,
            self.wipe: 0.01,
            self.compact: 0.2,
        }

    def watch(self) -> None:
        try:
            while not self.ended.wait(0.01):
                self.look()
        except Exception as error:
            self.faults.append(f"nobody looked at the locks any more: {error!r}")
            raise

    def look(self) -> None:
        self.looks += 1
        for host in self.machines.hosts:
            for overlap in overlaps_in(host.machine.leases / "leases"):
                self.faults.append(f"overlap of locks on {host.name}: {overlap}")

    def note(self, what: str, of: str = "") -> None:
        self.done[what] += 1
        self.write(f"{what} {of}")

    def write(self, text: str) -> None:
        self.trace.write(f"{time.monotonic() - self.began:.3f} {text}\n")
        self.trace.flush()

    def after(self, seconds: float, what, *words) -> None:
        heapq.heappush(self.later, (time.monotonic() + seconds, next(self.numbers), what, words))

    def go_on(self, all_at_once: bool = False) -> None:
        """What is due now, and whoever has ended."""
        until = float("inf") if all_at_once else time.monotonic()
        due = []
        while self.later and self.later[0][0] <= until:
            due.append(heapq.heappop(self.later))
        for *_, what, words in due:
            what(*words)
        for request in list(self.waiting):
            if (status := request.process.poll()) is not None:
                request.status = status
                self.waiting.remove(request)
                how = "turned away" if request.was_turned_away() else f"ended with {status}"
                self.note(how, request.name)
        for desk in self.desks:
            if desk.name not in self.busy and (status := desk.agent.poll()) is not None:
                self.faults.append(f"the agent of {desk.name} ended by itself, with {status}")
                self.start_agent(desk)
        for member in self.etcd.members:
            if member.name not in self.busy and member.process.poll() is not None:
                self.note("store member ended by itself", member.name)
                member.launch()

    @staticmethod
    def signal(process, number: int) -> None:
        if process is not None:
            process.send_signal(number)

    # Requests, and what there is of them

    def start(self) -> None:
        desk = self.agent()
        if len(self.waiting) >= self.pace.at_once or desk is None:
            return
        name = f"r{next(self.numbers)}"
        few = self.random.sample(HOSTS, self.random.randint(1, len(HOSTS)))
        hosts = self.random.choice([HOSTS, HOSTS, few])
        # Some are there for so long that much happens meanwhile.
        longest = self.pace.longest_ms
        lives_ms = [longest / 40, longest / 40, longest / 16, longest / 4, longest]
        life_ms = int(self.random.choice(lives_ms) * self.random.random())
        form = self.random.choice(["plain", "plain", "plain", "fork", "daemon", "exec"])
        words = ["run", "--anywhere", "--hosts", ",".join(hosts), "-n", self.random.choice([1, 1, 2]), "--"]
        env = self.machines.env | desk.env()
        self.launch(name, words, life_ms, form, hosts, env, self.folder / "work", desk.name)

    def start_neighbour(self) -> None:
        """One who sits at a host: in its own line, and in none of the lab."""
        if sum(each.name[0] == "n" for each in self.waiting) >= NEIGHBOURS_AT_ONCE:
            return
        host = self.random.choice(self.machines.hosts)
        life_ms, form = self.random.randint(10, 2000), self.random.choice(["plain", "fork", "exec"])
        words = ["run", "-n", self.random.choice([1, 1, 2]), "--"]
        name = f"n{next(self.numbers)}"
        self.launch(name, words, life_ms, form, (host.name,), host.machine.env, host.folder)

    def launch(self, name, words, life_ms, form, hosts, env, folder, desk="") -> None:
        errors = self.folder / "errors" / name
        process = subprocess.Popen(
            [str(word) for word in [BUILD / "berth", *words, *command(name, self.folder, life_ms, form)]],
            env=env | {MARK: f"{place_of(self.folder)}/{name}"},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors.open("w"),
            start_new_session=True,
        )
        request = Request(name, process, errors, tuple(hosts), desk)
        self.waiting.append(request)
        self.requests.append(request)
        self.note("requests", f"{name} {process.pid} {desk} {' '.join(map(str, words))} {life_ms} {form}")

    def parts(self) -> dict:
        """{kind: [(pid, request, host)]} of all that there is of requests that have not ended."""
        by_name = {f"{place_of(self.folder)}/{each.name}": each for each in self.waiting}
        found = collections.defaultdict(list)
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            text = ""
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                text = (entry / "environ").read_bytes().decode(errors="replace")
            variables = dict(word.partition("=")[::2] for word in text.split("\0"))
            if request := by_name.get(variables.get(MARK)):
                pid = int(entry.name)
                words = words_of(pid)
                kind = self.kind_of(pid, words, request)
                # ssh OPTION… -- HOST COMMAND
                host = words[-2] if kind == "ssh" else variables.get("CHAOS_HOST", "")
                found[kind].append((pid, request, host))
        return found

    @staticmethod
    def kind_of(pid: int, words: list, request: Request) -> str:
        if pid == request.process.pid:
            return "client"
        if words[:1] in (["ssh"], [str(NEAR_SSH)]):
            return "ssh"
        if words[1:2] == ["__envoy"]:
            # What it has forked is the command, which has not been executed yet.
            return "job" if words_of(parent_of(pid))[1:2] == ["__envoy"] else "envoy"
        return "job" if request.name in words or words[:1] == [str(BUILD / "chaos_job")] else ""

    def aim(self):
        """Often at the moment at which most may go wrong: a host has granted GPUs to this request, which asks to start."""
        if self.random.random() < 0.5:
            return None
        before = self.granted()
        end = time.monotonic() + self.pace.longest_aim_s
        while time.monotonic() < end:
            for path in self.granted() - before:
                if request := self.owner_of(path):
                    self.write(f"aimed at {request.name}")
                    time.sleep(self.random.uniform(0, STEPS_OF_START_S))
                    return request
            time.sleep(0.001)
        return None

    def granted(self) -> set:
        return {path for host in self.machines.hosts for path in (host.machine.leases / "leases").iterdir()}

    def owner_of(self, lease: pathlib.Path):
        """The request of the lab that has it."""
        with contextlib.suppress(OSError):
            asked_at = re.search(r"^asked_at=.*:(\d+)$", lease.read_text(), re.M)
            for each in self.waiting:
                if asked_at and each.process.pid == int(asked_at[1]):
                    return each
        return None

    def some_parts(self, weights: dict) -> list:
        """[(kind, pid, request, host)] of some, each of a kind drawn before."""
        aimed = self.aim()
        parts = self.parts()
        found = []
        for kind in self.random.choices(
            list(weights), list(weights.values()), k=self.random.randint(1, self.pace.parts)
        ):
            of_aimed = [each for each in parts[kind] if each[1] is aimed]
            if of_kind := of_aimed or parts[kind]:
                found.append((kind, *self.random.choice(of_kind)))
                parts[kind].remove(found[-1][1:])
        return found

    def kill_parts(self) -> None:
        for kind, pid, request, host in self.some_parts({"client": 4, "ssh": 2, "envoy": 2, "job": 3}):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.note(f"{kind} killed", f"{request.name} {pid} {host}")
                if kind in ("ssh", "envoy"):
                    request.cut_off.add(host)
                else:
                    request.killed.add(kind)

    def stop_parts(self) -> None:
        for kind, pid, request, host in self.some_parts({"client": 4, "ssh": 1, "envoy": 2, "job": 2}):
            seconds = self.stop_s(0.07 / self.pace.parts**2 if kind == "client" else 0)
            request.was_stopped_for_long |= seconds > HARMLESS_STOP_S
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                self.note(f"{kind} stopped", f"{request.name} {pid} {host} for {seconds:.1f} s")
                self.after(seconds, self.continue_part, pid)

    @staticmethod
    def continue_part(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def stop_for_a_while(self, what: str, name: str, process, seconds: float) -> None:
        """Whoever is stopped is busy until it goes on."""
        self.note(f"{what} stopped", f"{name} for {seconds:.1f} s")
        self.busy.add(name)
        self.signal(process, signal.SIGSTOP)
        self.after(seconds, self.continue_stopped, name, process)

    def continue_stopped(self, name: str, process) -> None:
        self.signal(process, signal.SIGCONT)
        self.busy.discard(name)

    def stop_s(self, long: float = 0) -> float:
        """`long`: how many of all are longer than what others have patience for."""
        if self.random.random() < long:
            return self.random.uniform(*LONG_STOP_S)
        return self.random.choice([0.3, self.pace.longest_stop_s]) * self.random.random()

    # Agents

    def agent(self):
        """A desk whose agent is well."""
        return self.random.choice([desk for desk in self.desks if desk.name not in self.busy] or [None])

    def agent_aimed_at(self):
        aimed = self.aim()
        wells = [desk for desk in self.desks if desk.name not in self.busy]
        return next((desk for desk in wells if aimed and desk.name == aimed.desk), None) or self.agent()

    def kill_an_agent(self) -> None:
        if desk := self.agent_aimed_at():
            self.note("agent killed", desk.name)
            self.busy.add(desk.name)
            desk.agent.kill()
            desk.agent.wait(timeout=DEADLINE_S)
            self.after(self.stop_s(0.07), self.start_agent, desk)

    def start_agent(self, desk: Desk) -> None:
        desk.launch_agent()
        self.after(0.2, self.await_agent, desk)

    def await_agent(self, desk: Desk) -> None:
        """Whether requests may come again. While the store is down it listens all the same."""
        if desk.listens() or desk.agent.poll() is not None:
            self.busy.discard(desk.name)
        else:
            self.after(0.2, self.await_agent, desk)

    def stop_an_agent(self) -> None:
        if desk := self.agent_aimed_at():
            self.stop_for_a_while("agent", desk.name, desk.agent, self.stop_s(0.07))

    # The store

    def member(self):
        """One, where all others are well: with three the store goes on without it."""
        if any(each.name in self.busy for each in self.etcd.members):
            return None
        return self.random.choice(self.etcd.members)

    def kill_a_member(self) -> None:
        self.aim()
        if member := self.member():
            self.note("store member killed", member.name)
            self.end_member(member)
            self.after(self.stop_s(0.02), self.launch_member, member)

    def end_member(self, member: Etcd) -> None:
        self.busy.add(member.name)
        member.kill()

    def launch_member(self, member: Etcd) -> None:
        member.launch()
        self.busy.discard(member.name)

    def stop_a_member(self) -> None:
        self.aim()
        if member := self.member():
            self.stop_for_a_while("store member", member.name, member.process, self.stop_s(0.02))

    def kill_the_store(self) -> None:
        """So many of its members that it cannot go on."""
        self.aim()
        if self.member():
            self.note("store killed")
            seconds = self.stop_s()
            members = self.etcd.members
            count = self.random.randint(len(members) // 2 + 1, len(members))
            for member in self.random.sample(members, count):
                self.end_member(member)
                self.after(seconds + self.random.random(), self.launch_member, member)

    def wipe(self) -> None:
        self.aim()
        if self.member():
            self.note("store wiped")
            seconds = self.stop_s()
            for member in self.etcd.members:
                self.end_member(member)
                shutil.rmtree(member.data)
                self.after(seconds, self.launch_member, member)

    def compact(self) -> None:
        """etcd forgets what was before, but for the last few changes at times."""
        if member := self.member():
            with contextlib.suppress(OSError):
                now = int(member.ask("kv/range", key="a")["header"]["revision"])
                then = max(1, now - self.random.choice([0, 0, 3]))
                member.post("kv/compaction", {"revision": str(then)})
                self.note("store compacted", f"at {then}")

    # The end

    def finish(self) -> None:
        """No more faults: everybody is served, and nothing is left."""
        self.write("the end begins")
        while self.later:
            self.go_on(all_at_once=True)
            time.sleep(0.05)
        self.wait_for(
            lambda: not self.waiting, lambda: f"lost: {[each.name for each in self.waiting]} never end"
        )
        for host in self.machines.hosts:
            self.wait_for(
                lambda host=host: self.left_on(host) == [],
                lambda host=host: f"left over on {host.name}: {self.left_on(host)}",
            )
            self.wait_for(
                lambda host=host: host.machine.berth("run", "--no-wait", "-n", GPUS, "--", "true").status
                == 0,
                lambda host=host: f"left over on {host.name}: its GPUs are granted to nobody",
            )
        for folder in ("ticket", "start"):
            self.wait_for(
                lambda folder=folder: self.in_store(folder) == [],
                lambda folder=folder: f"left over in the store: {folder} {self.in_store(folder)}",
            )
        self.faults += faults_by_jobs(self.folder) + faults_of_requests(self.folder, self.requests)

    def wait_for(self, condition, otherwise) -> None:
        end = time.monotonic() + PATIENCE_S
        waiting = len(self.waiting)
        while not condition():
            self.go_on()
            if len(self.waiting) != waiting:
                waiting = len(self.waiting)
                end = time.monotonic() + PATIENCE_S
            if time.monotonic() > end:
                self.faults.append(otherwise())
                return
            time.sleep(0.05)

    @staticmethod
    def left_on(host) -> list:
        """Tickets that live, as the kernel says, and envoys."""
        tickets = [
            each.name for part in ("leases", "queue") for each in leases_in(host.machine.leases / part)
        ]
        return tickets + host.envoys()

    def in_store(self, folder: str) -> list:
        with contextlib.suppress(OSError):
            return list(self.etcd.keys(folder))
        return ["it does not answer"]


def summary(done: dict, faults: list) -> str:
    def of(*kinds) -> str:
        found = {kind: done[kind] for kind in kinds if done[kind]}
        return ", ".join(f"{kind} {count}" for kind, count in found.items()) or "none"

    def count(kind: str) -> int:
        return sum(fault.startswith(kind) for fault in faults)

    ends = {kind: count for kind, count in sorted(done.items()) if kind.startswith("ended with")}
    return "\n".join(
        [
            f"  requests {done['requests']}, starts {done['starts']}, turned away {done['turned away']}, {ends}",
            f"  kills: {of('client killed', 'ssh killed', 'envoy killed', 'job killed', 'agent killed')}",
            f"  stops: {of('client stopped', 'ssh stopped', 'envoy stopped', 'job stopped', 'agent stopped')}",
            f"  store: {of('store member killed', 'store member stopped', 'store killed', 'store compacted')}, "
            f"wipes {done['store wiped']}",
            f"  looks {done['looks']}, overlaps {count('overlap')}, double starts {count('double start')}, "
            f"lost {count('lost')}, touched {count('touched')}, other faults "
            f"{len(faults) - sum(map(count, ('overlap', 'double start', 'lost', 'touched')))}",
        ]
    )


def run_lab_chaos(
    folder: pathlib.Path, seed: int, members: int, seconds: float, spared: tuple = (), is_near: bool = False
) -> LabChaos:
    """`spared`: what does not happen, as LabChaos.rates() names it."""
    chaos = LabChaos(folder, seed, members, is_near)
    try:
        chaos.open()
        chaos.run(seconds, spared)
    finally:
        chaos.close()
    chaos.done["starts"] = sum(words[0] == "start" for words in lines_of(folder / "starts"))
    chaos.done["looks"] = chaos.looks
    return chaos


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev chaos --lab", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, help="of the first round; each round has the next one")
    parser.add_argument("--members", type=int, choices=[1, 3], help="of etcd; unless given, 1 and 3 in turn")
    parser.add_argument("--round", type=float, default=120, help="seconds that faults are made in a round")
    parser.add_argument(
        "--near", action="store_true", help="without ssh between, and so with many more kills"
    )
    options = parser.parse_args()
    if ETCD is None or SSHD is None:
        parser.error("needs etcd-server and openssh-server: ./dev setup")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    end = time.monotonic() + 60 * options.minutes
    rounds, done, faults = 0, collections.Counter(), []
    while rounds == 0 or time.monotonic() < end:
        members = options.members or (3 if seed % 2 else 1)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="chaos-"))
        chaos = run_lab_chaos(folder, seed, members, options.round, is_near=options.near)
        done.update(chaos.done)
        faults += chaos.faults
        print(f"seed {seed}, etcd of {members}, {len(chaos.desks)} desks:", flush=True)
        print(summary(chaos.done, chaos.faults), flush=True)
        for fault in chaos.faults:
            print(f"seed {seed}: FAILED: {fault}", flush=True)
        if chaos.faults:
            print(f"seed {seed}: what it has left: {folder}", flush=True)
            again = f"--minutes 0 --round {options.round} --seed {seed} --members {members}"
            again += " --near" * options.near
            print(f"seed {seed}: again: ./dev chaos --lab {again}", flush=True)
        else:
            shutil.rmtree(folder)
        rounds += 1
        seed += 1
    print(f"{rounds} rounds in all:\n{summary(done, faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
