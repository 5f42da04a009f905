"""The checks of Berth's program on the real driver, written as those of rows.py."""

import ctypes
import json
import os
import re
import signal
import statistics
import time

from machine import NotShown, last_line, milliseconds
from rows import NOT_SHOWN, SEEN, listed, seen_if

# Exit statuses of Berth.
NO_DRIVER = 69
NOT_NOW = 75
ROUNDS = 5


def lease(machine):
    """A process with a context inside of a lease, as `berth list` shows it, and another request beside it."""
    _, handle = machine.choose()
    uuid = machine.nvml.uuid(handle)
    words = [machine.berth, "run", "--devices", uuid, "--no-wait", "--quiet", "--"]
    holder = machine.hold(handle, before=words)
    by_driver = holder.pid in machine.nvml.process_list(handle).processes
    shown = machine.listed(uuid)
    ours = [process for process in shown["processes"] if process["pid"] == holder.pid]
    beside = machine.run(machine.berth, "run", "--devices", uuid, "--no-wait", "--", "true")
    status = holder.end()
    after = machine.listed(uuid)["leases"]
    faults = []
    if holder.uuids != [uuid]:
        faults.append("with the mask %s CUDA shows %s" % (holder.mask, listed(holder.uuids)))
    if len(shown["leases"]) != 1:
        faults.append("the GPU has %d leases" % len(shown["leases"]))
    if by_driver and [process["lease"] for process in ours] != shown["leases"]:
        faults.append("berth list shows the process %s" % ("of no lease" if ours else "not at all"))
    if beside.returncode != NOT_NOW:
        faults.append("a second request ends with %d" % beside.returncode)
    if status != 0 or after:
        faults.append("the job ends with %d and leaves %d leases" % (status, len(after)))
    listed_as = "is listed as the lease's" if by_driver else "is not listed by the driver"
    good = "the mask %s shows CUDA the GPU of the lease, its process %s, a second request is refused"
    yield "lease", seen_if(not faults), "; ".join(faults) or good % (holder.mask, listed_as)


def handover(machine):
    """From `kill -9` of a job to the start of the next one on the same GPU."""
    _, handle = machine.choose()
    uuid = machine.nvml.uuid(handle)
    on_it = [machine.berth, "run", "--devices", uuid, "--quiet"]
    holder = machine.hold(handle, before=[*on_it, "--no-wait", "--"], mib=512)
    os.kill(holder.pid, signal.SIGKILL)
    ms, done = machine.timed(*on_it, "--wait", "20s", "--", "true")
    holder.end()
    told = "the next job ran %d ms after the kill" % ms
    if done.returncode != 0:
        told = "the next request ended with %d: %s" % (done.returncode, last_line(done.stderr))
    yield "handover", seen_if(done.returncode == 0), told


def trial(machine):
    """The trial of CUDA by which Berth tells a GPU on which nothing starts."""
    ms, done = machine.timed(machine.berth, "doctor", "--json")
    findings = json.loads(done.stdout)["findings"]
    found = [finding for finding in findings if finding["check"] == "CUDA"]
    others = ["%s: %s" % (one["check"], one["found"]) for one in findings if one["level"] != "pass"]
    told = "berth doctor ends with %d after %d ms; CUDA %s; %s" % (
        done.returncode,
        ms,
        listed(one["found"] for one in found),
        "it also says " + listed(others) if others else "the rest is well",
    )
    yield "trial", seen_if(any(one["level"] == "pass" for one in found)), told


RUN_S = 11  # a run of ten seconds or more has its energy in the receipt


def receipt(machine):
    nvml = machine.nvml
    _, handle = machine.choose()
    uuid = nvml.uuid(handle)

    def energy():
        return nvml.number("nvmlDeviceGetTotalEnergyConsumption", handle, kind=ctypes.c_ulonglong)

    path = os.path.join(os.environ["HOME"], "receipt.json")
    words = [machine.berth, "run", "--devices", uuid, "--no-wait", "--quiet", "--"]
    before = energy()
    holder = machine.hold(handle, before=words, BERTH_RECEIPT=path)
    time.sleep(RUN_S)
    start = time.monotonic()
    holder.end()
    ended = milliseconds(start)
    growth = energy() - before
    with open(path) as file:
        (run,) = json.load(file)["runs"]
    told = "a run of %d ms: energy %s mJ, the counter grew by %d mJ; its end took %d ms" % (
        run["lasted_ms"],
        run["energy_mj"],
        growth,
        ended,
    )
    good = run["energy_mj"] is not None and 0 < run["energy_mj"] <= growth * 1.01
    yield "receipt", seen_if(good), told


def times(machine):
    """In turn, so that what disturbs one disturbs all."""
    query = ["--query-gpu=index,memory.used,utilization.gpu", "--format=csv,noheader"]
    contestants = {
        "berth pick": [machine.berth, "pick"],
        "berth run": [machine.berth, "run", "--no-wait", "--quiet", "--", "true"],
        "berth list": [machine.berth, "list"],
        "nvidia-smi --query-gpu": ["nvidia-smi", *query],
    }
    took, failed, absent = {name: [] for name in contestants}, {}, set()
    for _ in range(ROUNDS):
        for name, words in contestants.items():
            try:
                ms, done = machine.timed(*words)
            except FileNotFoundError:
                absent.add(name)
                continue
            took[name].append(ms)
            if done.returncode != 0:
                failed[name] = "ends with %d: %s" % (
                    done.returncode,
                    last_line(done.stderr) or last_line(done.stdout),
                )
    told = [
        "%s %d ms" % (name, statistics.median(took[name]))
        for name in contestants
        if name not in failed and name not in absent
    ]
    told += ["%s %s" % item for item in failed.items()] + [
        "there is no %s" % name.split()[0] for name in absent
    ]
    yield "times", seen_if(not failed), "medians of %d: %s" % (ROUNDS, listed(told))


def topology(machine):
    if len(machine.whole()) < 2:
        raise NotShown("there are fewer than two whole GPUs")
    took = []
    for _ in range(2):
        ms, done = machine.timed(machine.berth, "pick", "-n", "2")
        if done.returncode not in (0, NOT_NOW):
            raise RuntimeError("berth pick -n 2 ends with %d: %s" % (done.returncode, last_line(done.stderr)))
        took.append(ms)
    links = {index: active_links(machine.nvml, handle) for index, handle in machine.whole().items()}
    told = "berth pick -n 2: %d ms, then %d ms" % tuple(took)
    if not any(links.values()):
        yield "nvlink", NOT_SHOWN, "no NVLink is active; " + told
        raise NotShown("no NVLink is active")
    yield "nvlink", SEEN, told
    if not any(switched for one in links.values() for switched in one):
        raise NotShown("no link leads to a switch")
    yield from switch_row(machine, {index: len(one) for index, one in links.items()})


def active_links(nvml, handle):
    """Of each active link, whether it leads to a switch."""
    found = []
    for link in map(ctypes.c_uint, range(18)):
        active, kind = ctypes.c_uint(), ctypes.c_uint()
        if nvml.code("nvmlDeviceGetNvLinkState", handle, link, ctypes.byref(active)) == 0 and active.value:
            nvml.code("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link, ctypes.byref(kind))
            found.append(kind.value == 2)
    return found


def switch_row(machine, links):
    """Against the matrix of `nvidia-smi topo -m`, which is in the order of the indices."""
    done = machine.run("nvidia-smi", "topo", "-m")
    plain = re.sub("\x1b\\[[0-9;]*m", "", done.stdout)
    rows = {
        int(row[1]): row[2].split() for row in re.finditer(r"^GPU(\d+)\s+(.*)$", plain, re.M) if "X" in row[2]
    }
    wrong = [
        "GPU %d and %d: %s" % (a, b, rows[a][b])
        for a in links
        for b in links
        if a != b and a in rows and b < len(rows[a]) and rows[a][b] != "NV%d" % min(links[a], links[b])
    ]
    told = "active links %s" % listed("GPU %d %d" % item for item in links.items())
    if not rows:
        yield "nvswitch", NOT_SHOWN, "nvidia-smi topo -m says nothing; " + told
        return
    yield "nvswitch", seen_if(not wrong), "%s; nvidia-smi topo -m says %s" % (told, listed(wrong, "the same"))


def hang(machine):
    """What Berth makes of a driver in which checks of this program hang."""
    if not machine.cut:
        raise NotShown("no call hung, and nobody can cause it at will")
    ms, done = machine.timed(machine.berth, "list", "--json")
    states = (
        ["GPU %s %s" % (device["label"], device["state"]) for device in json.loads(done.stdout)["devices"]]
        if done.returncode == 0
        else [last_line(done.stderr)]
    )
    told = "%s did not return; berth list answers after %d ms: %s" % (listed(machine.cut), ms, listed(states))
    yield "hang", seen_if(done.returncode in (0, NO_DRIVER)), told
