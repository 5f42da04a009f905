"""The simulated libcuda, and that NVML and nvidia-smi see what it does under the real pid."""

import ctypes as c
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from simulated import as_nobody, eventually

TWO = '[[device]]\nmodel = "H100"\ncount = 2\n'
MIB = 1 << 20

# Allocates, says so, does what it is told on standard input.
HOLDER = """
import ctypes as c, os, sys
cuda = c.CDLL("libcuda.so.1")
def must(code):
    if code: print("failed", code, flush=True); sys.exit(code)
must(cuda.cuInit(0))
device, context, address = c.c_int(), c.c_void_p(), c.c_uint64()
must(cuda.cuDeviceGet(c.byref(device), 0))
must(cuda.cuDevicePrimaryCtxRetain(c.byref(context), device))
must(cuda.cuCtxSetCurrent(context))
must(cuda.cuMemAlloc_v2(c.byref(address), c.c_size_t({mib} << 20)))
must(cuda.cuMemsetD8_v2(address, 0, c.c_size_t({mib} << 20)))
print("holding", os.getpid(), flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Holder:
    def __init__(self, machine, sleeper, mib=1000, prefix=(), **env):
        command = machine.command(*prefix, sys.executable, "-c", HOLDER.format(mib=mib))
        self.process = sleeper(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=machine.env(**env)
        )
        self.answer = self.process.stdout.readline().split()
        self.pid = int(self.answer[1])

    def do(self, code):
        self.process.stdin.write(code + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


def cuda(machine, generation="r550", visible=None, order=None):
    """A fresh libcuda in this process, initialised."""
    for name, value in (("CUDA_VISIBLE_DEVICES", visible), ("CUDA_DEVICE_ORDER", order)):
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    library = machine.load(generation, "libcuda.so.1")
    code = library.cuInit(0)
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    os.environ.pop("CUDA_DEVICE_ORDER", None)
    return library, code


def names(library):
    out, count = [], c.c_int()
    assert library.cuDeviceGetCount(c.byref(count)) == 0
    for i in range(count.value):
        bus = c.create_string_buffer(20)
        assert library.cuDeviceGetPCIBusId(bus, 20, i) == 0
        out.append(bus.value.decode()[5:7])
    return out


def test_an_allocation_shows_in_nvml_and_nvidia_smi_until_it_is_freed(machine, sleeper):
    nvml = machine.write(TWO).nvml()
    assert machine.used(nvml) == 0
    holder = Holder(machine, sleeper)
    assert machine.pids(nvml) == [holder.pid] == [holder.process.pid]
    assert (machine.used(nvml, 0), machine.used(nvml, 1)) == (1400, 0)  # a context of 400 MiB
    out = machine.smi(
        "--query-compute-apps=pid,used_memory,process_name", "--format=csv,noheader,nounits"
    ).stdout
    assert out.startswith(f"{holder.pid}, 1400, ") and "python" in out
    assert f"{holder.pid}      C" in machine.smi().stdout
    holder.do("must(cuda.cuMemFree_v2(address))")
    assert machine.used(nvml) == 400 and machine.pids(nvml) == [holder.pid]
    holder.do("must(cuda.cuDevicePrimaryCtxRelease_v2(0))")
    assert machine.used(nvml) == 0 and machine.pids(nvml) == []


def test_a_killed_process_leaves_nothing_behind(machine, sleeper):
    nvml = machine.write(TWO).nvml()
    holders = [Holder(machine, sleeper, 100 * (i + 1)) for i in range(3)]
    assert machine.pids(nvml) == sorted(holder.pid for holder in holders)
    assert machine.used(nvml) == 600 + 3 * 400
    holders[0].kill()  # and nobody waits for it: a zombie
    eventually(lambda: machine.pids(nvml) == sorted(holder.pid for holder in holders[1:]))
    assert machine.used(nvml) == 500 + 2 * 400
    for holder in holders[1:]:
        holder.kill()
        holder.process.wait()
    assert eventually(lambda: machine.pids(nvml) == []) and machine.used(nvml) == 0
    assert [p.name for p in pathlib.Path(f"{machine.file}.d/alloc").glob("*-*")] == []


def test_a_forked_child_neither_keeps_its_parents_memory_nor_can_use_cuda(machine, sleeper):
    nvml = machine.write(TWO).nvml()
    holder = Holder(machine, sleeper)
    holder.do("child = os.fork() or os._exit(cuda.cuInit(0) * 10 + cuda.cuDeviceGetCount(c.byref(device)))")
    holder.do("assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 33")
    holder.do("idle = os.fork() or sys.stdin.read()")  # inherits every descriptor, and stays
    assert machine.pids(nvml) == [holder.pid]
    holder.kill()
    eventually(lambda: machine.pids(nvml) == [])
    assert machine.used(nvml) == 0


def test_a_process_that_executes_another_program_has_lost_its_memory(machine, sleeper):
    nvml = machine.write(TWO).nvml()
    holder = Holder(machine, sleeper)
    assert machine.used(nvml) == 1400
    holder.process.stdin.write("os.execvp('sleep', ['sleep', '1000'])\n")
    holder.process.stdin.flush()
    eventually(lambda: machine.pids(nvml) == [])
    assert machine.used(nvml) == 0


def test_memory_of_an_ended_process_returns_after_the_delay(machine, sleeper):
    nvml = machine.write('memory_return_delay = "1000s"\n' + TWO).nvml()
    holder = Holder(machine, sleeper)
    holder.kill()
    eventually(lambda: machine.pids(nvml) == [])
    assert machine.used(nvml) == 1400
    assert machine.smi("--query-gpu=memory.used", "--format=csv,noheader,nounits").stdout.split() == [
        "1400",
        "0",
    ]
    machine.write('memory_return_delay = "10ms"\n' + TWO)
    eventually(lambda: machine.used(nvml) == 0)


def test_memory_runs_out_for_all_processes_together(machine, sleeper):
    machine.write('[[device]]\nmodel = "T4"\n')
    first = Holder(machine, sleeper, 14000)
    assert first.answer[0] == "holding"
    second = Holder(machine, sleeper, 600)
    assert second.answer == ["failed", "2"]
    assert Holder(machine, sleeper, 100).answer[0] == "holding"


def test_free_memory_counts_everybody(machine):
    machine.write('[[device]]\nmodel = "T4"\nhidden_mib = 5000\ncontext_mib = 300\n')
    library, code = cuda(machine)
    assert code == 0
    context, free, total = c.c_void_p(), c.c_size_t(), c.c_size_t()
    assert library.cuMemGetInfo_v2(c.byref(free), c.byref(total)) == 201
    assert library.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
    assert library.cuCtxSetCurrent(context) == 0
    assert library.cuMemGetInfo_v2(c.byref(free), c.byref(total)) == 0
    assert (free.value // MIB, total.value // MIB) == (15360 - 251 - 5300, 15360 - 251)
    assert library.cuDevicePrimaryCtxRelease_v2(0) == 0
    assert library.cuDevicePrimaryCtxRelease_v2(0) == 201


@pytest.mark.parametrize(
    "mode, codes", [("default", (0, 0)), ("exclusive_process", (0, 46)), ("prohibited", (46, 46))]
)
def test_compute_modes_refuse_contexts(machine, sleeper, mode, codes):
    machine.write(f'[[device]]\nmodel = "T4"\ncompute_mode = "{mode}"\n')
    answers = [Holder(machine, sleeper, 10).answer for _ in range(2)]
    assert tuple(0 if a[0] == "holding" else int(a[1]) for a in answers) == codes


def test_an_exclusive_device_with_a_listed_process_is_refused(machine, sleeper):
    other = sleeper()
    machine.write(
        '[[device]]\nmodel = "T4"\ncompute_mode = "exclusive_process"\n'
        f"[[device.process]]\npid = {other.pid}\nused_mib = 1\n"
    )
    assert Holder(machine, sleeper, 10).answer == ["failed", "46"]


def test_nothing_works_before_cuinit(machine):
    library = machine.write(TWO).load("r550", "libcuda.so.1")
    assert library.cuDeviceGetCount(c.byref(c.c_int())) == 3
    version = c.c_int()
    assert library.cuDriverGetVersion(c.byref(version)) == 0 and version.value == 12040


FOUR = (
    '[[device]]\nmodel = "T4"\nuuid = "GPU-aaaa0000-0000-0000-0000-000000000000"\npci = "0000:01:00.0"\n'
    '[[device]]\nmodel = "H100"\nuuid = "GPU-aabb0000-0000-0000-0000-000000000000"\npci = "0000:02:00.0"\n'
    '[[device]]\nmodel = "T4"\nuuid = "GPU-cccc0000-0000-0000-0000-000000000000"\npci = "0000:03:00.0"\n'
    '[[device]]\nmodel = "A100"\nuuid = "GPU-dddd0000-0000-0000-0000-000000000000"\npci = "0000:04:00.0"\n'
)


@pytest.mark.parametrize(
    "visible, order, expected",
    [
        (None, "PCI_BUS_ID", "01 02 03 04"),
        (None, None, "02 04 01 03"),
        (None, "FASTEST_FIRST", "02 04 01 03"),
        ("0", "PCI_BUS_ID", "01"),
        ("0", None, "02"),
        ("3,1", "PCI_BUS_ID", "04 02"),
        ("", None, ""),
        ("0,2,-1,1", "PCI_BUS_ID", "01 03"),
        ("-1", None, ""),
        ("NoDevFiles", None, ""),
        ("none", None, ""),
        ("0,9,1", "PCI_BUS_ID", "01"),
        (" 2 , 0", "PCI_BUS_ID", "03 01"),
        ("1,1", "PCI_BUS_ID", ""),
        ("GPU-cccc", None, "03"),
        ("GPU-cccc0000-0000-0000-0000-000000000000,GPU-dddd", None, "03 04"),
        ("GPU-aa", None, ""),
        ("GPU-aab", None, "02"),
        ("GPU-CCCC", None, "03"),
        ("GPU-eeee,0", None, ""),
    ],
)
def test_the_devices_that_a_process_sees(machine, visible, order, expected):
    machine.write(FOUR)
    library, code = cuda(machine, visible=visible, order=order)
    assert code == (0 if expected else 100)
    if expected:
        assert names(library) == expected.split()


def test_lost_devices_are_not_seen(machine):
    machine.write(
        '[[device]]\nmodel = "T4"\nlost = true\npci = "0000:01:00.0"\n[[device]]\nmodel = "T4"\npci = "0000:02:00.0"\n'
    )
    assert names(cuda(machine)[0]) == ["02"]


def test_a_mig_instance_is_a_device_of_its_own(machine, sleeper):
    machine.write('[[device]]\nmodel = "A100"\nmig = ["1g.5gb", "", "3g.20gb"]\n')
    listing = machine.smi("-L").stdout
    uuids = [line.split("UUID: ")[1][:-1] for line in listing.splitlines()[1:]]
    library, code = cuda(machine, visible=uuids[1])
    assert code == 0
    raw, count, total = (c.c_ubyte * 16)(), c.c_int(), c.c_size_t()
    assert library.cuDeviceGetCount(c.byref(count)) == 0 and count.value == 1
    assert library.cuDeviceGetUuid_v2(raw, 0) == 0 and bytes(raw).hex() == uuids[1][4:].replace("-", "")
    assert library.cuDeviceTotalMem_v2(c.byref(total), 0) == 0 and total.value == (20 * 1024 - 256) * MIB
    nvml = machine.nvml()
    holder = Holder(machine, sleeper, 100, CUDA_VISIBLE_DEVICES=uuids[1])
    instance, memory = c.c_void_p(), (c.c_uint64 * 3)()
    assert nvml.nvmlDeviceGetHandleByUUID(uuids[1].encode(), c.byref(instance)) == 0
    assert nvml.nvmlDeviceGetMemoryInfo(instance, memory) == 0 and memory[2] == 500 * MIB
    assert machine.pids(nvml) == [holder.pid]
    assert names(cuda(machine)[0]) and cuda(machine, visible="0")[1] == 0
    parent = listing.split("UUID: ")[1].split(")")[0]
    assert cuda(machine, visible=f"MIG-{parent}/1/0")[1] == 0
    assert cuda(machine, visible=parent)[1] == 100


@pytest.mark.parametrize("nvml_code, cuda_code", [(9, 100), (18, 803), (999, 999)])
def test_cuinit_fails_with_the_driver(machine, nvml_code, cuda_code):
    machine.write(f"init_result = {nvml_code}\n" + TWO)
    assert cuda(machine)[1] == cuda_code


def test_faults_apply_to_cuda_calls(machine):
    machine.write(TWO + '[[fault]]\ncall = "cuMemAlloc*"\ndevice = 1\nresult = 2\n')
    library, _ = cuda(machine, order="PCI_BUS_ID")
    codes = []
    for ordinal in (0, 1):
        context, address = c.c_void_p(), c.c_uint64()
        assert library.cuDevicePrimaryCtxRetain(c.byref(context), ordinal) == 0
        assert library.cuCtxSetCurrent(context) == 0
        codes.append(library.cuMemAlloc_v2(c.byref(address), c.c_size_t(MIB)))
        library.cuDevicePrimaryCtxRelease_v2(ordinal)
    assert codes == [0, 2]


def test_two_users_see_each_other(machine, sleeper):
    nobody = as_nobody()
    machine.write(TWO)
    holder = Holder(machine, sleeper, 1000, prefix=nobody)
    assert os.stat(f"/proc/{holder.pid}").st_uid == 65534
    nvml = machine.nvml()
    assert machine.pids(nvml) == [holder.pid] and machine.used(nvml) == 1400
    own = Holder(machine, sleeper, 500)
    out = machine.run(
        *nobody, "nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"
    ).stdout
    assert sorted(out.split("\n")[:2]) == sorted([f"{holder.pid}, 1400", f"{own.pid}, 900"])
    holder.kill()
    eventually(lambda: machine.pids(nvml) == [own.pid])
