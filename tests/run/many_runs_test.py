"""What it costs to look at the GPUs of very many runs."""

import itertools
import os
import pathlib
import resource
import socket
import statistics
import time

import pytest
from jobs import children_of, eventually, samplers, the_only

pytestmark = [pytest.mark.lasting, pytest.mark.release_only]

RUNS = 1000
EVERY_S = 10
LOOKS = 8
MIB = 1 << 20
CARD = '[[device]]\nmodel = "H100"\ncontext_mib = 0\n'
FOREVER = ["sleep", "100000"]
# They do nothing, and do not descend from this process, which speaks for all runs.
COMMANDS = f"i=0; while [ $i -lt {RUNS} ]; do i=$((i+1)); sleep 100000 >/dev/null 2>&1 & echo $!; done"


class Run:
    """What `berth run` does to have its command sampled. A thousand real ones would spend minutes
    in the queue before there is a sample."""

    def __init__(self, machine, number: int, uuid: str, pid: str):
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        lease = f"{0xF000 + number:016x}"
        self.wish = (
            f"berth-sampled-lease 1\nlease={lease}\nshared=1\npath={lease}\nmachine={machine.leases}\n"
            f"device={uuid}\nevery_ms={EVERY_S * 1000}\njob_pid={pid}\n"
            f"job_start={stat.rpartition(')')[2].split()[19]}\nend\n"
        )
        self.seen = os.memfd_create("berth-samples")
        self.connection = socket.socket(socket.AF_UNIX)

    def asks(self, name: str) -> None:
        self.connection.connect(name)
        socket.send_fds(self.connection, [self.wish.encode()], [self.seen])

    def samples(self) -> dict:
        lines = os.pread(self.seen, 4096, 0).decode().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)


def name_of_sampler(machine) -> str:
    status = machine.leases.stat()
    lines = pathlib.Path("/proc/net/unix").read_text().splitlines()
    names = {line.split(None, 7)[7] for line in lines if f" {status.st_dev}:{status.st_ino} " in line}
    (name,) = (name for name in names if name.startswith("@berth-sampler "))
    return "\0" + name.removeprefix("@")


def processor_s(pid: int) -> float:
    """User and system time of a process, to the nanosecond (its CPUCLOCK_SCHED)."""
    return time.clock_gettime((~pid << 3) | 2)


def test_one_sampler_looks_for_a_thousand_runs_and_takes_a_thousandth_of_a_core_at_most(make_machine):
    # By the processor's time of each look: a machine with other work does not decide.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    machine = make_machine(8 * CARD)
    uuids = [device["uuid"] for device in machine.berth("list", "--json").json["devices"]]
    for _ in range(2):
        machine.start_berth("run", "--clean", "--", *FOREVER, env={"BERTH_SAMPLE": f"{EVERY_S}s"})
    (sampler,) = eventually(lambda: len(found := samplers(machine)) == 1 and found)
    pids = machine.run("sh", "-c", COMMANDS).out.split()
    runs = [Run(machine, number, uuids[number % 8], pid) for number, pid in enumerate(pids)]
    assert len(runs) == RUNS
    # The simulated driver does not look whether a ghost lives: that would count as the probe's.
    listed = "[[device.process]]\nghost = true\nused_mib = 64\npid = "
    machine.change("".join(CARD + "".join(f"{listed}{pid}\n" for pid in pids[card::8]) for card in range(8)))
    # What has only just changed is read anew at every call of the simulated driver.
    long_ago = time.time() - 60
    os.utime(machine.file, (long_ago, long_ago))
    name = name_of_sampler(machine)
    for run in runs:
        run.asks(name)
    eventually(lambda: all("samples" in run.samples() for run in runs))
    assert samplers(machine) == [sampler]
    probe = the_only(lambda: children_of(sampler))
    spent, at = [], int(runs[-1].samples()["samples"])
    for _ in range(LOOKS + 2):
        at = eventually(lambda before=at: (now := int(runs[-1].samples()["samples"])) > before and now)
        spent.append([processor_s(pid) for pid in (sampler, probe)])
    # The first look after the last run has come finds out whose each process is.
    of_looks = [
        [end - begin for begin, end in zip(*both, strict=True)] for both in itertools.pairwise(spent[1:])
    ]
    shares = [100 * sum(each) / EVERY_S for each in of_looks]
    print("percent of a core, look by look:", ", ".join(f"{share:.4f}" for share in shares))
    print("of these the sampler:", ", ".join(f"{100 * each[0] / EVERY_S:.4f}" for each in of_looks))
    assert all(run.samples()["peak_bytes"] == str(64 * MIB) for run in runs)
    assert samplers(machine) == [sampler] and children_of(sampler) == [probe]
    assert statistics.median(shares) <= 0.1
