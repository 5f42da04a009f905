"""Queues of processes that hand one device over, for `run.py handover`, `queue` and `cycles`."""

import contextlib
import dataclasses
import os
import pathlib
import random
import re
import select
import signal
import statistics
import subprocess
import time

import peers

# Far beyond any figure: only against what hangs.
PATIENCE_S = 120
# Until a waiter has said something. Not all do.
SAYING_S = 5
# How many are started at once: more would only wait for a processor.
AT_ONCE = 16
STAMP = re.compile(rb"^(\d+) (\d+) (\d+)\n", re.M)


class Queue:
    """Processes that wait for one device. Each says when it has it, and holds it until it is killed.

    `tree`: the parent of what says so is the holder too, and is killed with it."""

    def __init__(self, command, environment, tree=False):
        self.command = [str(word) for word in command]
        self.environment = environment
        self.tree = tree
        self.stamps, self.stamp_end = os.pipe()
        self.heard = b""
        self.processes = []
        self.holder = []

    def start(self, number=1):
        """So many more. Those that say on stderr that they wait are in the queue when this returns."""
        while number > 0:
            batch = [self._start() for _ in range(min(number, AT_ONCE))]
            number -= len(batch)
            for process in batch:
                readable(process.stderr.fileno(), SAYING_S)
                process.stderr.close()

    def start_holder(self):
        self._start()
        self._take_stamp(PATIENCE_S)

    def hand_over(self, patience=PATIENCE_S):
        """Kills the holder. Milliseconds until the next one's command ran."""
        before = time.monotonic_ns()
        for pid in self.holder:
            os.kill(pid, signal.SIGKILL)
        # Some take a zombie for alive.
        for process in self.processes:
            if process.pid in self.holder:
                process.wait()
        return (self._take_stamp(patience) - before) / 1e6

    def waiting(self):
        return [each.pid for each in self.processes if each.poll() is None and each.pid not in self.holder]

    def end(self):
        for pid in self.holder:
            os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        os.close(self.stamps)
        os.close(self.stamp_end)

    def _start(self):
        process = subprocess.Popen(
            self.command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.stamp_end,
            stderr=subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    def _take_stamp(self, patience):
        while not (found := STAMP.search(self.heard)):
            if not readable(self.stamps, patience):
                raise TimeoutError(f"nobody got it in {patience:.0f} s")
            self.heard += os.read(self.stamps, 4096)
        self.heard = self.heard[found.end() :]
        pid, parent, at = map(int, found.groups())
        self.holder = [parent, pid] if self.tree else [pid]
        return at


def readable(file, seconds):
    return bool(select.select([file], [], [], seconds)[0])


def state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


def settle(pids):
    """Until all of them sleep: what they do after they have said that they wait is not to be measured."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and any(state(pid) == "R" for pid in pids):
        time.sleep(0.01)
    time.sleep(0.1)  # the first in line looks once more a moment after its first look


# In turns with the limit, so that a slow moment of the machine slows both ------------------------------------


def compare(queues, rounds):
    """Milliseconds of so many hand-overs of each. Each keeps the length that it has."""
    times = [[] for _ in queues]
    for _ in range(rounds):
        for queue, took in zip(queues, times):
            settle(queue.waiting())
            took.append(queue.hand_over())
            queue.start()
    return times


@dataclasses.dataclass
class Idle:
    waiters: int
    core_share: float  # of one core, by all of them and their probes
    mib: float  # of its own, the median
    most_mib: float


def idle(queue, seconds):
    pids = queue.waiting()
    pids += [child for pid in pids for child in children(pid)]
    start, before = time.monotonic(), sum(map(cpu_seconds, pids))
    time.sleep(seconds)
    share = (sum(map(cpu_seconds, pids)) - before) / (time.monotonic() - start)
    own = [own_mib(pid) for pid in queue.waiting()]
    return Idle(len(own), share, statistics.median(own), max(own))


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_seconds(pid):
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def own_mib(pid):
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


# Peers -------------------------------------------------------------------------------------------------------

FILELOCK = "filelock==3.20.0"
SAY = "print(os.getpid(), os.getppid(), time.monotonic_ns(), flush=True); time.sleep(1e6)"
WAIT = "import os, sys, time; os.write(2, b'waiting\\n'); "
REDIS_PORT = 7399


@dataclasses.dataclass
class Peer:
    """Another queue for a device. `polls_s`: how often its waiters look, by its own account."""

    name: str
    polls_s: float
    rounds: int
    command: list[str] = dataclasses.field(default_factory=list)
    environment: dict = dataclasses.field(default_factory=dict)
    trouble: str = ""
    times_ms: list[float] = dataclasses.field(default_factory=list)

    def measure(self):
        """Each holder is killed at some point of the waiter's period."""
        queue = Queue(self.command, self.environment)
        try:
            queue.start_holder()
            queue.start()
            for _ in range(self.rounds):
                time.sleep(1 + random.random() * self.polls_s)
                self.times_ms.append(queue.hand_over())
                queue.start()
        except (TimeoutError, OSError) as error:
            self.trouble = str(error)
        finally:
            queue.end()


def python_with(*packages):
    return peers.install(peers.Peer("", " ".join(packages), ["python"], peers.numbers))


def filelock(directory):
    script = f"{WAIT}import filelock; lock = filelock.FileLock({str(directory / 'filelock')!r}); lock.acquire(); {SAY}"
    return [*python_with(FILELOCK), "-c", script]


def filelock_cycles(directory, workers, count):
    """A command that takes and gives back one lock so often in all, and says how many nanoseconds it took."""
    script = f"""
import filelock, os, time
lock = filelock.FileLock({str(directory / "cycles.lock")!r})
begin = time.monotonic_ns()
for _ in range({workers}):
    if os.fork() == 0:
        for _ in range({count // workers}):
            with lock:
                pass
        os._exit(0)
for _ in range({workers}):
    os.wait()
print(time.monotonic_ns() - begin)
"""
    return [*python_with(FILELOCK), "-c", script]


def gpu_scheduler():
    """Not on PyPI. Instead of PyTorch, which it asks for the number of devices, it gets standins/torch.py."""
    home = peers.HOME / "gpu_scheduler"
    if not (home / "gpu_scheduler").exists():
        url = "https://github.com/konpatp/gpu_scheduler"
        words = ["git", "clone", "-q", url, home / "gpu_scheduler"]
        subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE_S)
    paths = [str(home), str(pathlib.Path(__file__).parent / "standins")]
    script = f"import sys; sys.path[:0] = {paths!r}; {WAIT}import gpu_scheduler; "
    script += f"held = gpu_scheduler.GPUScheduler(); held.__enter__(); {SAY}"
    return [*python_with(FILELOCK, "pyyaml==6.0.3"), "-c", script]


def canhazgpu(directory, stamp):
    """Needs Go, and a Redis server, which is started for it. Gives the command, its environment and the server."""
    home = peers.HOME / "canhazgpu"
    program = home / "canhazgpu"
    if not program.exists():
        home.mkdir(parents=True, exist_ok=True)
        words = ["go", "install", "github.com/russellb/canhazgpu@v1.1.3"]
        environment = os.environ | {"GOBIN": str(home)}
        subprocess.run(words, env=environment, check=True, capture_output=True, timeout=PATIENCE_S)
    (directory / ".canhazgpu.yaml").write_text(f"redis:\n  port: {REDIS_PORT}\n")
    words = ["redis-server", "--port", str(REDIS_PORT), "--save", "", "--dir", str(directory)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    environment = os.environ | {"HOME": str(directory)}
    start = time.monotonic()
    words = [str(program), "admin", "--gpus", "1", "--provider", "fake"]
    while subprocess.run(words, env=environment, capture_output=True).returncode != 0:
        if time.monotonic() - start > PATIENCE_S:
            raise TimeoutError("its Redis server does not answer")
        time.sleep(0.1)
    return [str(program), "run", "--gpus", "1", "--", *stamp], environment, server


@contextlib.contextmanager
def peers_of(directory, environment, stamp):
    """All of them, ready to be measured or with the trouble that there is with them."""
    found = [Peer("filelock", 0.05, 20), Peer("canhazgpu", 2, 5), Peer("gpu_scheduler", 10, 3)]
    for peer in found:
        peer.environment = environment
    lock, redis_based, scheduler = found
    with contextlib.ExitStack() as stack:
        for peer, prepare in (
            (lock, lambda: (filelock(directory), environment, None)),
            (redis_based, lambda: canhazgpu(directory, stamp)),
            (scheduler, lambda: (gpu_scheduler(), environment, None)),
        ):
            try:
                peer.command, peer.environment, server = prepare()
            except FileNotFoundError as error:
                peer.trouble = f"needs {error.filename}, which is not there"
            except (OSError, subprocess.SubprocessError):
                peer.trouble = "does not install here"
            else:
                if server is not None:
                    stack.callback(server.wait)
                    stack.callback(server.terminate)
        yield found
