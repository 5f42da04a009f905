"""The checks of the driver alone. Each is a generator of rows: (row, outcome, what came). docs/hardware.md says what a row is about."""

import ctypes
import pathlib
import re
import subprocess
import time

import driver
from driver import Cuda, Failed, MemoryV2
from machine import MIB, NotShown, last_line, milliseconds

SEEN, NOT_SHOWN, OTHERWISE = "seen", "not shown", "otherwise"
PATIENCE_S = 15  # for what a killed process has left
REFUSALS = (4, 17, 999)  # of a look-up, where a device cgroup hides the GPU


def seen_if(good):
    return SEEN if good else OTHERWISE


def listed(words, empty="none"):
    return ", ".join(map(str, words)) or empty


# Functions of which Berth takes the newest that the driver has, newest first.
FAMILIES = (
    ["nvmlDeviceGetComputeRunningProcesses" + end for end in ("_v3", "_v2", "")],
    ["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"],
    ["nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"],
    ["nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature"],
)


def answer(nvml, name, handle):
    if "RunningProcesses" in name:
        try:
            nvml.listing(name, handle)
        except Failed as failed:
            return failed.code
        return 0
    if name.endswith("MemoryInfo_v2"):
        return nvml.code(name, handle, ctypes.byref(MemoryV2(version=ctypes.sizeof(MemoryV2) | 2 << 24)))
    if name.endswith("TemperatureV"):
        temperature = (ctypes.c_uint * 3)(12 | 1 << 24, 0, 0)
        return nvml.code(name, handle, temperature)
    room = (ctypes.c_ulonglong * 8)()
    if name.endswith("Temperature"):
        return nvml.code(name, handle, ctypes.c_uint(0), room)
    return nvml.code(name, handle, room)


def symbols(machine):
    _, handle = machine.choose()
    told, good = [], True
    for family in FAMILIES:
        there = [name for name in family if machine.nvml.has(name)]
        codes = {name: answer(machine.nvml, name, handle) for name in there}
        told.append(listed("%s: %d" % (name[len("nvmlDeviceGet") :], code) for name, code in codes.items()))
        unusable = (driver.FUNCTION_NOT_FOUND, driver.VERSION_MISMATCH)
        good = good and bool(there) and not any(code in unusable for code in codes.values())
    yield "symbols", seen_if(good), "; ".join(told)


def start(machine):
    """In a process of its own: only the first look-up of a handle wakes a GPU."""
    nvml, slow, asleep = machine.nvml, [], []
    for index, handle in machine.handles.items():
        took = machine.look_up_ms[index]
        slow.append("GPU %d %d ms" % (index, took))
        persistence = ctypes.c_uint(1)
        if nvml.code("nvmlDeviceGetPersistenceMode", handle, ctypes.byref(persistence)) == 0:
            asleep += [index] if persistence.value == 0 else []
    told = "start of the library %d ms, first look-ups: %s" % (machine.start_ms, listed(slow))
    if asleep:
        yield "wake", SEEN, "no persistence mode: GPU %s; %s" % (listed(asleep), told)
    else:
        yield "wake", NOT_SHOWN, "persistence mode is on; " + told

    hidden = {index: code for code in REFUSALS for index in machine.refused.get(code, ())}
    told = listed("GPU %d answers %d" % item for item in hidden.items())
    if hidden:
        yield "cgroup", SEEN, "%d are counted; %s" % (nvml.count(), told)
    else:
        yield "cgroup", NOT_SHOWN, "each GPU that is counted can be looked up"
    yield from module_row(nvml)
    yield "reload", NOT_SHOWN, "needs a container, and `systemctl daemon-reload` on its host"
    if machine.refused.get(driver.GPU_IS_LOST):
        yield from lost_rows(machine)
    else:
        yield "lost", NOT_SHOWN, "no GPU is lost"


def lost_rows(machine):
    all_of_them, one = machine.run("nvidia-smi"), []
    for index in machine.handles:
        done = machine.run("nvidia-smi", "-i", str(index), "--query-gpu=uuid", "--format=csv,noheader")
        one.append("-i %d ends with %d" % (index, done.returncode))
    good = all_of_them.returncode != 0 and all(word.endswith(" 0") for word in one)
    yield "lost", seen_if(good), "nvidia-smi ends with %d, %s" % (all_of_them.returncode, listed(one))


def module_row(nvml):
    try:
        text = pathlib.Path("/proc/driver/nvidia/version").read_text()
    except OSError as error:
        yield "module", NOT_SHOWN, "no /proc/driver/nvidia/version: " + error.strerror
        return
    found = re.search(r"\b\d{3}\.\d+(?:\.\d+)?\b", text)
    module = found[0] if found else text.strip()
    yield "module", seen_if(module == nvml.driver), "module %s, library %s" % (module, nvml.driver)


def memory(machine):
    nvml = machine.nvml
    index, handle = machine.choose()
    old = nvml.memory(handle)
    if not nvml.has("nvmlDeviceGetMemoryInfo_v2"):
        raise NotShown(
            "the driver has only the older call: %d MiB of %d used" % (old.used // MIB, old.total // MIB)
        )
    new = nvml.memory_v2(handle)
    try:
        nvml.memory_v2(handle, version=2)
        plain = 0
    except Failed as failed:
        plain = failed.code
    told = (
        "GPU %d: reserved %d MiB, used %d MiB, by the older call %d MiB, of %d MiB; a plain version of 2 answers %d"
        % (
            index,
            *(number // MIB for number in (new.reserved, new.used, old.used, new.total)),
            plain,
        )
    )
    sums = abs(new.reserved + new.used + new.free - new.total) <= 2 * MIB
    yield "memory", seen_if(sums and abs(old.used - new.used - new.reserved) <= 2 * MIB), told


def integrated(machine):
    there = {device.bus_id for device in Cuda().devices() if device.integrated}
    told, good = [], True
    for index, handle in machine.handles.items():
        if machine.nvml.pci(handle).text not in there:
            continue
        try:
            total = machine.nvml.memory(handle).total
        except Failed as failed:
            total, why = 0, str(failed)
        else:
            why = "total of %d MiB" % (total // MIB)
        good = good and total == 0
        told.append("%s: %s" % (machine.nvml.name(handle), why))
    if told:
        yield "integrated", seen_if(good), listed(told)
    else:
        yield "integrated", NOT_SHOWN, "no GPU is integrated"


def order(machine):
    nvml, whole = machine.nvml, machine.whole()
    places = {nvml.pci(handle).place: index for index, handle in machine.handles.items()}
    cuda = Cuda(CUDA_DEVICE_ORDER="PCI_BUS_ID").devices()
    known = {nvml.uuid(handle): nvml.pci(handle).text for handle in whole.values()}
    same = len(cuda) > 0 and all(known.get(device.uuid) == device.bus_id for device in cuda)
    names = listed("%s at %s" % (device.uuid[:12], device.bus_id) for device in cuda)
    if len(whole) < len(machine.handles):
        raise NotShown("a GPU is split by MIG, of which CUDA shows one instance alone")
    yield "uuids", seen_if(same), "CUDA shows %s" % names
    if len(whole) < 2:
        yield "order", NOT_SHOWN, "there is one GPU"
        return
    in_order = [places[place] for place in sorted(places)] == sorted(places.values())
    ordinals = [device.uuid for device in cuda] == list(known)
    models = len({nvml.name(handle) for handle in whole.values()})
    told = "%d GPUs, models: %d; NVML counts %s PCI bus order, CUDA %s" % (
        len(whole),
        models,
        "in" if in_order else "not in",
        "the same" if ordinals else "another way",
    )
    yield "order", seen_if(in_order and ordinals), told


def processes(machine):
    """Two processes whose pids are known, on one GPU."""
    nvml = machine.nvml
    _, handle = machine.choose()
    holders = [machine.hold(handle), machine.hold(handle, mib=128)]
    pids = {holder.pid for holder in holders}
    told, sizes, known, odd = [], [], set(), ""
    for name in FAMILIES[0]:
        if nvml.has(name):
            listing = nvml.listing(name, handle)
            end = name[len("nvmlDeviceGetComputeRunningProcesses") :] or "unsuffixed"
            told.append("%s %s" % (end.strip("_"), listing.entry_bytes))
            sizes.append(listing.entry_bytes)
            known |= set(listing.processes) & pids if listing.entry_bytes else set()
            if listing.entry_bytes not in (16, 24, 32) and not odd:
                odd = "; %d bytes for %d: %s" % (listing.written, listing.count, listing.raw[:96].hex())
    used = nvml.process_list(handle).processes
    shown = {process["pid"]: process for process in machine.listed(nvml.uuid(handle))["processes"]}
    for holder in holders:
        holder.end()
    told = "bytes of an entry: " + listed(told) + odd
    if known != pids:
        yield (
            "pids",
            SEEN,
            "of the pids %s the driver lists %s; berth lists %d processes"
            % (
                listed(sorted(pids)),
                listed(sorted(known)),
                len(shown),
            ),
        )
        yield "entries", NOT_SHOWN, told + "; the list has none of the two pids, or one"
        return
    yield "pids", NOT_SHOWN, "the driver lists the pids of this process's namespace"
    bytes_of = listed(
        "%s MiB" % (used[pid] // MIB if used.get(pid) is not None else "unknown") for pid in pids
    )
    by_berth = pids <= set(shown) and all(shown[pid]["used_bytes"] == used.get(pid) for pid in pids)
    good = not odd and by_berth
    yield (
        "entries",
        seen_if(good),
        "%s; the processes have %s%s"
        % (
            told,
            bytes_of,
            "" if by_berth else ", and berth list does not show both so",
        ),
    )


def draining(machine):
    """How long a killed process stays in the list, and its memory in use."""
    nvml = machine.nvml
    _, handle = machine.choose()
    before = nvml.used(handle)
    holder = machine.hold(handle, mib=512)
    during = nvml.used(handle)
    was_listed = holder.pid in nvml.process_list(handle).processes
    start = time.monotonic()
    holder.kill()
    ended, gone, back = milliseconds(start), None, None
    while (gone is None or back is None) and milliseconds(start) < PATIENCE_S * 1000:
        if gone is None and holder.pid not in nvml.process_list(handle).processes:
            gone = milliseconds(start)
        if back is None and nvml.used(handle) <= before + 2 * MIB:
            back = milliseconds(start)
        time.sleep(0.005)
    words = ["over after %d ms" % ended]
    if was_listed:
        words.append(
            "off the list after %d ms" % gone
            if gone is not None
            else "still on the list after %d s" % PATIENCE_S
        )
    words.append(
        "memory back after %d ms" % back if back is not None else "memory not back after %d s" % PATIENCE_S
    )
    told = "%d MiB by a process that was killed: %s" % ((during - before) // MIB, listed(words))
    yield "draining", seen_if(gone is not None and back is not None and during - before >= 512 * MIB), told


def counters(machine):
    nvml = machine.nvml
    index, handle = machine.choose()

    def energy():
        return nvml.number("nvmlDeviceGetTotalEnergyConsumption", handle, kind=ctypes.c_ulonglong)

    mode = ctypes.c_uint()
    code = nvml.code("nvmlDeviceGetAccountingMode", handle, ctypes.byref(mode))
    told = "GPU %d: accounting is %s" % (index, "on" if mode.value else "off")
    yield (
        "accounting",
        *((SEEN, told) if code == 0 else (NOT_SHOWN, "nvmlDeviceGetAccountingMode answers %d" % code)),
    )
    first, start = energy(), time.monotonic()
    steps = []
    while time.monotonic() - start < 2.2:
        time.sleep(0.2)
        steps.append(energy())
    watts = (steps[-1] - first) / (time.monotonic() - start) / 1000
    power = ctypes.c_uint()
    nvml.code("nvmlDeviceGetPowerUsage", handle, ctypes.byref(power))
    told = "GPU %d: %d mJ since the driver's start, by its growth %.0f W, power draw %.0f W" % (
        index,
        steps[-1],
        watts,
        power.value / 1000,
    )
    yield "energy", seen_if([first, *steps] == sorted([first, *steps]) and steps[-1] > first), told


# What Berth asks of a GPU's health and energy in one call.
ENERGY, RECOVERY_ACTION = 83, 230
FIELDS = {
    4: "uncorrected errors since the driver's start",
    31: "retired pages pending",
    144: "row remap pending",
    145: "row remap failed",
    RECOVERY_ACTION: "recovery action",
    ENERGY: "energy",
}


def health(machine):
    nvml = machine.nvml
    index, handle = machine.choose()
    start = time.monotonic()
    values = nvml.fields(handle, list(FIELDS))
    took = milliseconds(start)
    counter = nvml.number("nvmlDeviceGetTotalEnergyConsumption", handle, kind=ctypes.c_ulonglong)
    told = listed(
        "%s %s" % (FIELDS[field], value.value if value.code == 0 else "answers %d" % value.code)
        for field, value in values.items()
        if field != ENERGY
    )
    energy = values[ENERGY]
    same = energy.code != 0 or 0 <= counter - energy.value <= 100_000
    told += "; energy %s" % (
        "%d mJ, and %d mJ by its own call" % (energy.value, counter)
        if energy.code == 0
        else "answers %d" % energy.code
    )
    sick = values[RECOVERY_ACTION].code == 0 and values[RECOVERY_ACTION].value > 4
    by_berth = machine.listed(nvml.uuid(handle))["health"]
    words = listed("%s %s" % item for item in by_berth.items() if item[1] is not None)
    told = "GPU %d, in %d ms: %s; berth list says %s" % (index, took, told, words)
    yield "health", seen_if(same and not sick), told


XID_EVENT = 8  # nvmlEventTypeXidCriticalError


def kernel(machine):
    """The two ways to a Xid: the kernel's log, and the driver's events."""
    try:
        text = subprocess.run(["dmesg"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except FileNotFoundError:
        log = "there is no dmesg"
    else:
        lines = text.stdout.decode(errors="replace").splitlines()
        xids = [line for line in lines if "NVRM: Xid" in line]
        log = (
            "the kernel's log has %d lines, %d of a Xid%s"
            % (len(lines), len(xids), ": " + xids[-1].strip() if xids else "")
            if text.returncode == 0
            else "the kernel's log cannot be read: " + last_line(text.stderr)
        )
    nvml = machine.nvml
    _, handle = machine.choose()
    kinds = nvml.number("nvmlDeviceGetSupportedEventTypes", handle, kind=ctypes.c_ulonglong)
    events = ctypes.c_void_p()
    nvml.ask("nvmlEventSetCreate", ctypes.byref(events))
    code = nvml.code("nvmlDeviceRegisterEvents", handle, ctypes.c_ulonglong(kinds & XID_EVENT), events)
    nvml.code("nvmlEventSetFree", events)
    told = "%s; event types %#x, and an event set for Xids answers %d" % (log, kinds, code)
    yield "xid", seen_if(kinds & XID_EVENT and code == 0), told


def mig(machine):
    nvml, told, good = machine.nvml, [], True
    split = {index: handle for index, handle in machine.handles.items() if nvml.is_split(handle)}
    for index, handle in split.items():
        codes = []
        for one in (handle, *nvml.instances(handle)):
            try:
                codes.append("%d processes" % nvml.process_list(one).count)
            except Failed as failed:
                codes.append(str(failed.code))
        told.append("GPU %d: the whole answers %s, its instances %s" % (index, codes[0], listed(codes[1:])))
        good = good and all(code.endswith("processes") for code in codes[1:])
    if not split:
        raise NotShown("no GPU is split")
    yield "mig", seen_if(good), listed(told)


def smi(machine):
    absent = machine.run("nvidia-smi", "-i", "4095")
    said = last_line(absent.stdout) or last_line(absent.stderr)
    yield (
        "smi",
        seen_if(absent.returncode == 6),
        "for an index that is not there it ends with %d: %s"
        % (
            absent.returncode,
            said,
        ),
    )
