"""The words of the page that go with figures: each appears only while what it explains is so."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Callable

from results import FLOOR, LIMIT, OURS, Table

NEAR_LIMIT = 2.0
NEAR_UNLEASED = 1.15  # what a pick may take where GPUs were leased before
SSH_FACTOR = 1.3  # what a start on another machine is held to
LIST_BAR_MS = 100  # what a list of 10,000 jobs is held to
README_BEGIN = "<!-- ./dev bench writes this table, from docs/benchmarks.md. -->"
README_END = "<!-- end of the table -->"

INTRODUCTION = (
    "This page compares Berth with the programs that people use instead, and with the limit: a bare program that"
    " does only what cannot be avoided. All of them run on the same simulated machine in the same run, in turn (A B A"
    " B …). Each is measured from its start to its end, as a user meets it, with the settings that suit it best. The"
    " simulated driver answers in about half a millisecond, where a real one may take tens. It is the same for all,"
    " `nvidia-smi` included. Berth's programs are copied once, as an installation has them. If a peer does not install, crashes, hangs or answers wrongly, its row says so. System"
    " calls and instructions are the same on every machine: the tests in `tests/counts/` count them."
)

# Key of a table -> what it is called in short.
HEADLINES = {
    "look-8": "list 8 GPUs and 32 processes",
    "pick": "pick one of 8 GPUs",
    "start": "pick one and start a command on it",
    "python": "import and pick in Python",
    "killed-1": "the holder is killed, the next one starts",
    "killed-1000": "the same with 1,000 waiting",
    "runs-8": "leases a second by 8 competitors",
    "idle-cpu-1000": "1,000 waiting: processor time",
    "collide": "two at once: how often both get the same GPU",
    "serve-rps": "requests to the agent",
    "hub-first-100": "a hub tells of 100 machines",
    "submit": "submit a job",
    "jobs-next": "a job ends, and the next one starts",
    "lab-start-1": "start a command on another machine",
    "lab-killed-10": "a GPU goes from one desk to another",
}


@dataclasses.dataclass(frozen=True)
class Remark:
    tables: str  # a pattern of keys
    when: Callable[[Table], bool]
    text: str


def far(table: Table) -> bool:
    """Over twice the limit."""
    return table.to_limit is not None and table.to_limit > NEAR_LIMIT


def behind_peer(name: str) -> Callable[[Table], bool]:
    def is_so(table: Table) -> bool:
        ours, peer = table.first(OURS), table.named(name)
        worse = table.worse_by(ours, peer) if ours and peer else None
        return worse is not None and worse >= 1

    return is_so


def behind_floor(name: str) -> Callable[[Table], bool]:
    return lambda table: any(each.role == FLOOR for each in table.figures) and behind_peer(name)(table)


def behind_best(table: Table) -> bool:
    return table.lead is not None and table.lead <= 1


def waits_for_locks(table: Table) -> bool:
    ours, leased = table.first(OURS), table.named("berth pick, GPUs were leased before")
    return bool(ours and leased and leased.median > NEAR_UNLEASED * ours.median)


def long_list_is_late(table: Table) -> bool:
    ours = table.first(OURS)
    return ours is not None and ours.median > LIST_BAR_MS


def ours_is_zero(table: Table) -> bool:
    ours = table.first(OURS)
    return ours is not None and ours.median == 0


def limit_is_zero(table: Table) -> bool:
    limit, ours = table.first(LIMIT), table.first(OURS)
    return limit is not None and ours is not None and limit.median == 0 < ours.median


REMARKS = [
    Remark(
        "look-*",
        far,
        "The rest of the difference is one more process: a probe of its own asks the driver, so that a driver that"
        " hangs or crashes does not take the user's program with it.",
    ),
    Remark(
        "pick*",
        far,
        "The rest of the difference is the probe: a second process, because a driver may hang or crash. `berth` forks"
        " it as soon as it knows its command, so the two work at once. The tests in tests/counts count the"
        " instructions of both.",
    ),
    Remark(
        "pick",
        waits_for_locks,
        "If a GPU was leased before and is free now, Berth also asks the kernel whether somebody has locked it without"
        " a ticket. Linux lists its locks only after an RCU grace period, about 10 ms, and nothing that a user may do"
        " shortens it. Berth waits for it while the driver answers. On an H200, whose driver takes longer than that,"
        " it costs nothing.",
    ),
    Remark(
        "start*",
        far,
        "The rest of the difference is the probe, the ticket with its locks, and `berth run` itself. It stays as the"
        " parent of the command, passes on signals, and names the processes that the command leaves behind. In a"
        " trace, 18 % of its time passes between the driver's answer and the start of the command: it reads the queue,"
        " writes its ticket and takes the locks. 11 % passes after the command's end: it notes what the command had and"
        " used, and ends the lease.",
    ),
    Remark(
        "killed-*",
        far,
        "The kernel wakes the next waiter in line, and it wakes the limit in the same way. Before the waiter starts"
        " its command, it asks the driver whether the device's memory is back. It starts a new probe for that, which"
        " takes 0.4 ms of 2.6 ms: its own is older than a second, and the driver may have been replaced meanwhile. The"
        " limit does not ask.",
    ),
    Remark(
        "ended-*",
        far,
        "Before the lease ends, the holder's `berth run` checks whether its command left processes behind. Then the"
        " next waiter asks the driver whether the device's memory is back. The limit does neither.",
    ),
    Remark(
        "killed-*", behind_floor("task-spooler"), "task-spooler forks its child at once: it asks no driver."
    ),
    Remark(
        "ended-*", behind_floor("task-spooler"), "task-spooler forks its child at once: it asks no driver."
    ),
    Remark(
        "cycles-*",
        far,
        "In each cycle, Berth asks the driver, writes a ticket, stands in the queue, and wakes exactly the next"
        " waiter in line. The limit keeps no order, and the kernel lets one process take the lock again and again.",
    ),
    Remark(
        "cycles-*",
        behind_floor("filelock"),
        "filelock's cycle is two system calls. It asks no driver and keeps no order. A process that finds the lock"
        " taken sleeps 50 ms.",
    ),
    Remark(
        "cycles-1",
        lambda table: table.named("Berth in Python") is not None,
        "In Python, a program of its own (`berth __lease`) takes each lease, so that the interpreter gets no thread, no"
        " signal handler and no driver. On this machine the start and end of an empty C program take about five times"
        " as long as the limit's cycle. Of the processor time of such a lease, 72 % goes to that program, 16 % to its"
        " probe, and 12 % to the library. A program that stayed would save its start. But it would stay beside each"
        " process that has ever had a lease.",
    ),
    Remark(
        "runs-*",
        far,
        "Each command starts a probe and asks the driver. It asks again when its turn has come, since only then can"
        " it know that the device's memory is back. That takes processor time, which the competitors share. flock(1)"
        " asks no driver.",
    ),
    Remark(
        "runs-*",
        behind_floor("task-spooler"),
        "task-spooler's server starts a client's command at once: it asks no driver.",
    ),
    Remark(
        "idle-cpu-*",
        lambda table: far(table) or limit_is_zero(table),
        "The first in line asks the driver now and then, because some changes have no event (an outsider's memory, a"
        " lock taken by hand). Each waiter checks every 5 s, far back in the queue every 30 s, whether the waiter"
        " before it was stopped. The limit sleeps in the kernel and would notice neither.",
    ),
    Remark(
        "idle-memory-*",
        far,
        "A waiter of Berth is a whole program with its standard library, ready to look, to explain, and to be the"
        " parent of its command. Before it sleeps behind others, it gives back the memory that it uses no longer. Of its"
        " own it keeps about 256 KiB: 72 of the C library and the loader, 64 of the program's addresses and data, which"
        " the loader writes because the program may lie anywhere, 60 of stack and 52 of heap. The limit is sixty lines of"
        " C.",
    ),
    Remark(
        "idle-memory-*",
        lambda table: behind_peer("Slurm")(table) or behind_peer("gflow")(table),
        "A server keeps a record for each waiter, and no process. The figure is the memory of the server, divided"
        " among its waiters.",
    ),
    Remark(
        "idle-wakeups-*",
        lambda table: far(table) or limit_is_zero(table),
        "Each waiter wakes every 5 s, far back in the queue every 30 s, to see whether the one before it was stopped by"
        " SIGSTOP, of which no event tells.",
    ),
    Remark(
        "idle-wakeups-*",
        lambda table: any(behind_peer(name)(table) for name in ("Slurm", "gflow", "canhazgpu")),
        "A server wakes once for all its jobs. In a queue without a server, each waiter wakes by itself.",
    ),
    Remark(
        "idle-cpu-*",
        lambda table: any(behind_peer(name)(table) for name in ("Slurm", "gflow", "canhazgpu")),
        "A server looks after all its jobs at once, and asks no driver while they wait.",
    ),
    Remark(
        "collide",
        ours_is_zero,
        "A lease is a lock of the kernel, which is taken before the command starts. So two scripts cannot both have"
        " it. If two programs only look, and look at the same moment, neither knows which GPU the other will take.",
    ),
    Remark(
        "instructions-*",
        far,
        "Berth starts two processes, and the limit is one. The other instructions pass messages between the two"
        " processes, and say why a device was not taken.",
    ),
    Remark(
        "instructions-lease",
        behind_floor("task-spooler"),
        "task-spooler's client only sends the command to its server.",
    ),
    Remark(
        "serve-p50",
        far,
        "Half of that time is the HTTP of a real server, which reads the header. The limit only skips it.",
    ),
    Remark(
        "serve-p99",
        far,
        "Once a second the probe and the look take time of the same processors. The limit gives one answer for ever.",
    ),
    Remark(
        "hub-first-*",
        lambda table: table.first(OURS) is not None,
        "A hub shows its hosts as soon as each has answered once or has failed, and else 200 ms after the first answer.",
    ),
    Remark(
        "line-*",
        behind_best,
        "Slurm plans a start for every job in line. Berth plans a start only for the first job and for jobs that"
        " compete for other GPUs, because each job's own process decides, in one pass.",
    ),
    Remark(
        "again-*",
        far,
        "The limit knows every run time and orders by response ratio. This is Berth without any time limit, in the order"
        " in which requests came. If the site file says `expect`, Berth orders by response ratio and earlier runs, as"
        " the row of that name shows.",
    ),
    Remark(
        "submit",
        far,
        "The rest of the difference is a program with its standard library, which also checks whether a runner is"
        " there.",
    ),
    Remark(
        "lab-start-*",
        behind_peer("Slurm srun"),
        "Slurm has a daemon of root's on each node, which starts the command, and munge says whose it is. Berth has no"
        " daemon there: ssh logs in as the user, which takes the most of the time, as it does for `ssh` alone.",
    ),
    Remark(
        "lab-whole",
        behind_peer("Slurm srun"),
        "Slurm has a daemon of root's on each node, which starts the command. Berth has none there: ssh logs in as the"
        " user, as it does for `ssh` alone.",
    ),
    Remark(
        "lab-start-[!1]*",
        lambda table: table.to_limit is not None and table.to_limit > SSH_FACTOR,
        "Each host that a request names is an ssh of its own, and all of them share the processors of this machine. When"
        " the first host has granted its GPU, Berth waits for the others a fifth as long as it waited for the first, 50 ms"
        " at most, to take the host where the fewest GPUs are free.",
    ),
    Remark(
        "lab-killed-*",
        far,
        "The next request stands in the queue of the host already, and its ssh is open. The kernel wakes its envoy, the"
        " envoy asks the driver whether the memory of the GPU is back, and asks by ssh whether to start. The agent at"
        " the desk writes the start into etcd, and then the envoy starts the command. The limit is a write to etcd and the news of it.",
    ),
    Remark(
        "jobs-1000",
        behind_peer("Slurm"),
        "Slurm's server has its jobs in memory. Berth has no such server: it reads each job from its files, by several"
        " threads. At least half of the processor time is the kernel's, for four calls a job.",
    ),
    Remark(
        "jobs-10000",
        long_list_is_late,
        f"The list is held to {LIST_BAR_MS} ms and misses it. At least half of the time is the kernel's: it opens,"
        " measures, reads and closes a file for each job. A single file with all jobs would be quicker to read. It"
        " would also be one more thing that each user, each runner and each kill can damage.",
    ),
    Remark(
        "jobs-processes",
        behind_peer("gflow"),
        "Berth has a runner for the jobs, and one process that stands in the queue of the machine for all of them."
        " Both end with the last job. A server stays.",
    ),
    Remark(
        "jobs-cpu",
        behind_best,
        "The first in line asks the driver now and then, because some changes have no event (an outsider's memory, a"
        " lock taken by hand). The best peer asks no driver.",
    ),
    Remark(
        "jobs-true",
        far,
        "Berth asks the driver for the lease of each job. It writes the start of a job to the disk before the"
        " command begins, so that nothing is run twice. The limit does neither. In a trace, the disk takes 0.3 ms from"
        " one start to the next. On one GPU no two jobs start at once, so one flush cannot serve several.",
    ),
    Remark(
        "jobs-true",
        behind_floor("task-spooler"),
        "task-spooler's server starts its child at once: it asks no driver, and keeps nothing on the disk.",
    ),
    Remark(
        "jobs-next",
        behind_floor("task-spooler"),
        "task-spooler forks its child at once: it asks no driver.",
    ),
]


def on(table: Table) -> list[str]:
    return [each.text for each in REMARKS if fnmatch.fnmatch(table.key, each.tables) and each.when(table)]
