#!/usr/bin/env python3
"""Measures berth against the least that any program must do, and against its peers, side by side.

Whole processes, from their start to their end, in rounds: each round runs every program once, so that a slow
moment of the machine slows all of them. Figures are medians and their ratios. The status is 0 whatever the
figures are, and 1 when something of ours could not be measured.
"""

import argparse
import contextlib
import ctypes
import dataclasses
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable

import handover
import package
import peers
from bounds import Bound, ratio
from machines import Machine, RealMachine

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ["pick", "list", "choose", "handover", "cycles", "python"]
MIB = 1024.0
# A peer takes up to a second; this many of its runs give its median well enough.
PEER_RUNS = 15
# Far beyond any of them: only against one that hangs.
PATIENCE_S = 60
IDLE_S = 60
WORKERS = 8
CYCLES = 100_000
COMPARED = CYCLES // 10  # enough for the rate of the others


@dataclasses.dataclass
class Program:
    name: str
    command: list[str]
    verify: Callable[[str], bool] = lambda output: True
    shown_by: list[str] | None = None  # the command whose output is verified, where it is another
    is_peer: bool = False
    is_peer_program: bool = False
    times_ms: list[float] = dataclasses.field(default_factory=list)
    peaks_kib: list[int] = dataclasses.field(default_factory=list)  # of each of its processes
    trouble: str = ""

    @property
    def ms(self):
        return statistics.median(self.times_ms) if self.times_ms else None


class Bench:
    def __init__(self, build, runs):
        self.build = build
        self.runs = runs
        self.report = []
        self.failed = False

    def ours(self, name):
        return str(self.build / "bench" / name)

    def say(self, text=""):
        print(text, flush=True)
        self.report.append(text)

    # One program -----------------------------------------------------------------------------------------

    def check(self, program, environment):
        """Runs it once and looks whether it does what is to be measured."""
        try:
            done = subprocess.run(
                program.shown_by or program.command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
            )
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                program.trouble = f"crashes: {last[:70]}" if program.is_peer else last
            elif not program.verify(done.stdout):
                program.trouble = "answers wrongly"
        except FileNotFoundError:
            program.trouble = "is not there"
        except subprocess.TimeoutExpired:
            program.trouble = f"hangs: no answer in {PATIENCE_S} s"
        except (ValueError, KeyError) as error:
            program.trouble = f"answers what cannot be read: {error}"

    def measure(self, mode, program, environment):
        words = subprocess.run(
            [self.ours("measure"), mode, *program.command], env=environment, capture_output=True, text=True
        )
        return [int(word) for word in words.stdout.split()]

    def take_time(self, program, environment):
        nanoseconds, _ = self.measure("time", program, environment)
        program.times_ms.append(nanoseconds / 1e6)

    # Many ------------------------------------------------------------------------------------------------

    def run_all(self, programs, environment):
        for program in programs:
            if not program.trouble:
                self.check(program, environment)
        able = [program for program in programs if not program.trouble]
        self.failed |= any(program.trouble and not program.is_peer for program in programs)
        for turn in range(self.runs):
            for program in able:
                if not program.is_peer or turn < PEER_RUNS:
                    self.take_time(program, environment)
        for program in able:
            if not program.is_peer:
                program.peaks_kib = self.measure("memory", program, environment)

    def table(self, title, programs, unit):
        self.say(f"\n{title}")
        self.say(
            f"  {'':<22}{'median ms':>10}{'min':>9}{'max':>9}{'× ' + unit.name:>14}   peak MiB by process"
        )
        for program in programs:
            if program.trouble:
                self.say(f"  {program.name:<22}  {program.trouble}")
                continue
            ratio = f"{program.ms / unit.ms:.2f}" if unit.ms else "-"
            times = program.times_ms
            memory = " + ".join(f"{peak / MIB:.1f}" for peak in program.peaks_kib)
            self.say(
                f"  {program.name:<22}{program.ms:>10.2f}{min(times):>9.2f}{max(times):>9.2f}{ratio:>14}   {memory}"
            )

    def bounds(self, bounds):
        self.say()
        for bound in bounds:
            self.say(bound.line())

    def peers_of(self, listed, verify):
        programs = []
        for peer in listed:
            program = Program(
                peer.name,
                peer.command,
                lambda output, peer=peer: verify(peer.found(output)),
                is_peer=True,
                is_peer_program=peer.is_program,
            )
            try:
                program.command = peers.install(peer)
            except (OSError, subprocess.SubprocessError):
                program.trouble = f"{peer.package} does not install here"
            programs.append(program)
        return programs

    # The parts -------------------------------------------------------------------------------------------

    def pick(self, machine, title, real=False):
        def is_free(found):
            return machine.free is None or (bool(found) and found <= machine.free)

        empty = Program("empty", [self.ours("empty")])
        bare = Program("bare", [self.ours("bare")], lambda output: is_free(peers.numbers(output)))
        pick = Program(
            "berth pick", [str(self.build / "berth"), "pick"], lambda output: is_free(peers.numbers(output))
        )
        others = [
            Program("nvidia-smi", ["nvidia-smi"], is_peer=True),
            Program("python -c pass", ["/usr/bin/python3", "-c", "pass"], is_peer=True),
            *self.peers_of(peers.PICKERS, is_free),
        ]
        programs = [empty, bare, pick, *others]
        self.run_all(programs, machine.environment)
        self.table(title, programs, bare)
        extra = sum(pick.peaks_kib) - sum(bare.peaks_kib) if pick.peaks_kib and bare.peaks_kib else None
        fastest = min((p.ms for p in others if p.is_peer_program and p.ms), default=None)
        self.bounds(
            [
                Bound("berth pick, to bare", 1.1 if real else 2.5, ratio(pick.ms, bare.ms)),
                Bound("bare, to an empty program", 3, ratio(bare.ms, empty.ms)),
                Bound("fastest Python program, to berth pick", 20, ratio(fastest, pick.ms), at_least=True),
                Bound(
                    "memory of berth pick and its probe over bare's",
                    6,
                    None if extra is None else extra / MIB,
                    "MiB",
                ),
            ]
        )

    def list(self, machine, title, real=False):
        def shows_all(pids):
            return machine.pids is None or machine.pids <= pids

        berth = str(self.build / "berth")
        bare = Program("list_bare", [self.ours("list_bare")], lambda output: shows_all(peers.numbers(output)))
        listing = Program(
            "berth list",
            [berth, "list"],
            lambda output: shows_all({int(pid) for pid in re.findall(r'"pid":\s*(\d+)', output)}),
            shown_by=[berth, "list", "--json"],
        )
        others = [
            Program("nvidia-smi", ["nvidia-smi"], is_peer=True),
            *self.peers_of(peers.LISTERS, shows_all),
        ]
        programs = [bare, listing, *others]
        self.run_all(programs, machine.environment)
        self.table(title, programs, bare)
        self.bounds([Bound("berth list, to list_bare", 1.1 if real else 2, ratio(listing.ms, bare.ms))])

    def python(self, machine, title):
        def is_free(output):
            return machine.free is None or bool(peers.numbers(output) & machine.free)

        empty, bare, ours, pynvml = programs = package.programs(Program, self.build, is_free)
        self.run_all(programs, machine.environment)
        self.table(title, programs, empty)
        least = None if empty.ms is None or bare.ms is None else empty.ms + bare.ms
        added = [
            None if each.ms is None or empty.ms is None else each.ms - empty.ms for each in (pynvml, ours)
        ]
        try:
            loop, run = package.lease_loop_ms(self.build, machine.environment, max(1, self.runs // 20))
            self.say(f"  a lease and its release: {loop:.2f} ms in a loop, {run:.2f} ms by berth run")
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.failed, loop, run = True, None, None
            self.say(f"  a lease and its release: {error}")
        self.bounds(
            [
                Bound("berth.pick(), to python -I -c pass and bare", 1.5, ratio(ours.ms, least)),
                Bound("added to Python by pynvml, to what berth adds", 5, ratio(*added), at_least=True),
                Bound("lease and release in Python, to berth run", 2, ratio(loop, run)),
            ]
        )

    def choose(self):
        self.say("\nselection of 8 of 16 GPUs by topology, in one process")
        done = subprocess.run([self.ours("choose_bench")], capture_output=True, text=True)
        if done.returncode != 0:
            self.failed = True
            self.say("  choose_bench failed")
            return
        bounds = []
        for line in done.stdout.splitlines():
            nanoseconds, machine = line.split(" ", 1)
            bounds.append(Bound(machine, 1, int(nanoseconds) / 1e6, "ms"))
        self.bounds(bounds)

    # Queues ----------------------------------------------------------------------------------------------

    def hand_over(self, machines, directory):
        """`machines` has one for each length of a queue."""
        stamp = [self.ours("handover"), "stamp"]
        bare = [self.ours("handover"), "wait", f"{directory}/lock"]
        berth = [str(self.build / "berth"), "run", "--", *stamp]
        plain = next(iter(machines.values())).environment
        with contextlib.ExitStack() as stack:
            queues = {0: handover.Queue(bare, plain)}
            queues |= {
                size: handover.Queue(berth, machine.environment, tree=True)
                for size, machine in machines.items()
            }
            for size, queue in queues.items():
                stack.callback(queue.end)
                queue.start_holder()
                queue.start(size or 1)
            taken = dict(zip(queues, handover.compare(list(queues.values()), max(1, self.runs // 2))))
            medians = {size: statistics.median(times) for size, times in taken.items()}
            self.say("\nholder killed with SIGKILL -> next one's command runs; simulated machine with 1 H100")
            self.say(f"  {'waiters':>10}{'median ms':>12}{'min':>8}{'max':>8}{'× limit':>10}")
            for size, times in taken.items():
                self.say(
                    f"  {size or 'limit':>10}{medians[size]:>12.2f}{min(times):>8.2f}{max(times):>8.2f}"
                    f"{medians[size] / medians[0]:>10.2f}"
                )
            ours = queues[1000]
            quiet = handover.idle(ours, IDLE_S)
        self.bounds(
            [
                Bound("hand-over with 10 waiters, to the limit", 10, ratio(medians[10], medians[0])),
                Bound("hand-over with 1000 waiters, to 10", 1.5, ratio(medians[1000], medians[10])),
                Bound(f"{quiet.waiters} waiters, of one core in {IDLE_S} s", 1, quiet.core_share * 100, "%"),
                Bound("memory of its own, the median waiter", 3, quiet.mib, "MiB"),
                Bound("memory of its own, the largest waiter", 3, quiet.most_mib, "MiB"),
            ]
        )
        self.hand_over_of_peers(plain, pathlib.Path(directory), stamp, medians)

    def hand_over_of_peers(self, environment, directory, stamp, medians):
        self.say("\nthe same of others, one waiter")
        self.say(f"  {'':<22}{'median ms':>10}{'min':>10}{'max':>10}   looks every")
        self.say(f"  {'limit':<22}{medians[0]:>10.2f}")
        self.say(f"  {'berth run':<22}{medians[1]:>10.2f}{'':>20}   woken")
        with handover.peers_of(directory, environment, stamp) as others:
            for peer in others:
                if not peer.trouble:
                    peer.measure()
                times = peer.times_ms
                if not times or peer.trouble:
                    self.say(f"  {peer.name:<22}  {peer.trouble}")
                    continue
                middle = statistics.median(times)
                self.say(
                    f"  {peer.name:<22}{middle:>10.2f}{min(times):>10.2f}{max(times):>10.2f}   {peer.polls_s:g} s"
                )

    def cycles(self, machine, directory):
        self.say(f"\n{WORKERS} processes lease and release one device by turns")

        def take(name, words, count):
            done = subprocess.run(
                [str(word) for word in words], env=machine.environment, capture_output=True, text=True
            )
            told = [int(word) for word in done.stdout.split()]
            if done.returncode != 0 or not told:
                self.failed = True
                self.say(f"  {name:<44}  fails: {done.stdout} {done.stderr.strip()[:80]}")
                return None
            rate = count / told[0] * 1e9
            self.say(f"  {name:<44}{rate:>10.0f} a second")
            return rate, told

        bare = take(
            "limit: fork, flock, exit",
            [self.ours("bare_cycle"), f"{directory}/bare", WORKERS, COMPARED],
            COMPARED,
        )
        ours = take("berth", [self.ours("cycles"), self.build / "berth", WORKERS, CYCLES], CYCLES)
        try:
            words = handover.filelock_cycles(pathlib.Path(directory), WORKERS, COMPARED // 100)
            take("filelock, which looks every 50 ms", words, COMPARED // 100)
        except (OSError, subprocess.SubprocessError):
            self.say("  filelock does not install here")
        if ours and bare:
            _, (_, done, doubles, left) = ours
            self.say(
                f"  of {CYCLES} cycles {done} done, {doubles} with two owners, {left} tickets left at the end"
            )
            self.bounds([Bound("limit's rate, to berth's", 10, ratio(bare[0], ours[0]))])


def has_real_driver():
    try:
        driver = ctypes.CDLL("libnvidia-ml.so.1")
        return driver.nvmlInit_v2() == 0
    except (OSError, AttributeError):
        return False


def simulated(bench, parts, directory):
    with contextlib.ExitStack() as stack:
        if "pick" in parts:
            machine = Machine(bench.build, directory, "H100", devices=8, busy=4, process_count=4)
            stack.callback(machine.close)
            bench.pick(machine, "simulated machine with 8 H100, 4 of them in use")
        if "list" in parts:
            machine = Machine(bench.build, directory, "A100", devices=16, busy=16, process_count=200)
            stack.callback(machine.close)
            bench.list(machine, "simulated machine with 16 A100 and 200 processes")
        if "handover" in parts:
            machines = {size: one_device(bench, directory, str(size)) for size in (1, 10, 100, 1000)}
            bench.hand_over(machines, directory)
        if "cycles" in parts:
            bench.cycles(one_device(bench, directory, "cycles"), directory)
        if "python" in parts:
            machine = Machine(bench.build, directory, "L40S", devices=8, busy=4, process_count=4)
            stack.callback(machine.close)
            bench.python(machine, "the Python package, on a simulated machine with 8 L40S, 4 of them in use")


def one_device(bench, directory, name):
    place = pathlib.Path(directory) / name
    place.mkdir()
    return Machine(bench.build, place, "H100", devices=1, busy=0, process_count=0)


def real(bench, parts):
    machine = RealMachine()
    if "pick" in parts:
        bench.pick(machine, "this machine's own driver", real=True)
    if "list" in parts:
        bench.list(machine, "this machine's own driver, listing", real=True)
    if "python" in parts:
        bench.python(machine, "the Python package, on this machine's own driver")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="a release build")
    parser.add_argument("--runs", type=int, default=100, help="of each program (default 100; peers fewer)")
    parser.add_argument("--real", action="store_true", help="fail where no real driver is")
    parser.add_argument("--out", type=pathlib.Path, help="write the tables to this file too")
    options = parser.parse_args()
    parts = options.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")

    bench = Bench(options.build.resolve(), options.runs)
    if not (bench.build / "bench/measure").exists():
        sys.exit(f"{bench.build} holds no release build with its bench programs: ./dev build")
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as directory:
        simulated(bench, parts, directory)
    if has_real_driver():
        real(bench, parts)
    elif options.real:
        bench.failed = True
        bench.say("\nno real driver works here")
    if "choose" in parts:
        bench.choose()
    if options.out:
        options.out.write_text("\n".join(bench.report) + "\n")
    sys.exit(1 if bench.failed else 0)


if __name__ == "__main__":
    main()
