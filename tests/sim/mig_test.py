"""MIG: sparse slots, both forms of UUID, what an instance answers and what its parent does."""

import ctypes as c
import re
import sys

import pytest
from simulated import as_nobody

MIG = (
    '[[device]]\nmodel = "A100"\nmig = ["1g.5gb", "", "3g.20gb"]\n'
    "[[device.process]]\npid = 77\nghost = true\nused_mib = 900\nmig = 2\n"
    '[[device]]\nmodel = "A100"\nmig = []\n[[device]]\nmodel = "A100"\n'
)


def slot(machine, nvml, index, device=0):
    handle = c.c_void_p()
    code = nvml.nvmlDeviceGetMigDeviceHandleByIndex(machine.device(nvml, device), index, c.byref(handle))
    return code, handle


def number(call, handle):
    value = c.c_uint(0xAAAAAAAA)
    code = call(handle, c.byref(value))
    return code or value.value


def text(call, handle):
    buffer = c.create_string_buffer(96)
    assert call(handle, buffer, 96) == 0
    return buffer.value.decode()


def test_slots_are_sparse(machine):
    nvml = machine.write(MIG).nvml()
    assert [slot(machine, nvml, i)[0] for i in range(8)] == [0, 6, 0, 6, 6, 6, 6, 2]
    assert [slot(machine, nvml, 0, device)[0] for device in (1, 2)] == [6, 3]
    assert [number(nvml.nvmlDeviceGetMaxMigDeviceCount, machine.device(nvml, i)) for i in range(3)] == [
        7,
        7,
        0,
    ]
    modes = []
    for i in range(3):
        now, later = c.c_uint(), c.c_uint()
        assert nvml.nvmlDeviceGetMigMode(machine.device(nvml, i), c.byref(now), c.byref(later)) == 0
        modes.append(now.value)
    assert modes == [1, 1, 0]


def test_an_instance_answers_for_itself(machine):
    nvml = machine.write(MIG).nvml()
    _, instance = slot(machine, nvml, 2)
    assert text(nvml.nvmlDeviceGetName, instance) == "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
    assert number(nvml.nvmlDeviceGetIndex, instance) == 2
    assert number(nvml.nvmlDeviceIsMigDeviceHandle, instance) == 1
    assert number(nvml.nvmlDeviceGetGpuInstanceId, instance) == 1
    memory = (c.c_uint64 * 3)()
    assert nvml.nvmlDeviceGetMemoryInfo(instance, memory) == 0
    assert [x >> 20 for x in memory] == [20224, 20224 - 900, 900]
    parent = c.c_void_p()
    assert nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(instance, c.byref(parent)) == 0
    assert parent.value == machine.device(nvml).value
    rows, count = (c.c_uint32 * 12)(), c.c_uint(2)
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(instance, c.byref(count), rows) == 0
    assert (count.value, rows[0], rows[4], rows[5]) == (1, 77, 1, 0)


@pytest.mark.parametrize(
    "call", ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetFanSpeed", "nvmlDeviceGetPerformanceState"]
)
def test_an_instance_has_no_reading_of_the_board(machine, call):
    nvml = machine.write(MIG).nvml()
    assert number(getattr(nvml, call), slot(machine, nvml, 0)[1]) == 3


def test_utilization_is_unknown_for_an_instance_and_for_its_parent(machine):
    nvml = machine.write(MIG).nvml()
    rates = (c.c_uint * 2)()
    handles = [slot(machine, nvml, 0)[1], machine.device(nvml, 0), machine.device(nvml, 2)]
    assert [nvml.nvmlDeviceGetUtilizationRates(handle, rates) for handle in handles] == [3, 3, 0]
    assert machine.smi(
        "--query-gpu=utilization.gpu,mig.mode.current", "--format=csv,noheader"
    ).stdout.splitlines() == ["[N/A], Enabled", "[N/A], Enabled", "0 %, Disabled"]


@pytest.mark.parametrize(
    "generation, form, found",
    [
        ("r450", r"MIG-GPU-[0-9a-f-]{36}/1/0", 6),
        ("r460", r"MIG-GPU-[0-9a-f-]{36}/1/0", 6),
        ("r470", r"MIG-[0-9a-f-]{36}", 0),
        ("r580", r"MIG-[0-9a-f-]{36}", 0),
    ],
)
def test_the_uuid_of_an_instance_has_the_form_of_its_generation(machine, generation, form, found):
    nvml = machine.write(f'generation = "{generation}"\n' + MIG).nvml(generation)
    uuid = text(nvml.nvmlDeviceGetUUID, slot(machine, nvml, 2)[1])
    assert re.fullmatch(form, uuid)
    assert nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), c.byref(c.c_void_p())) == found
    assert f"(UUID: {uuid})" in machine.smi("-L").stdout


def test_attributes_are_24_bytes_and_40_in_v2(machine):
    nvml = machine.write(MIG).nvml()
    _, instance = slot(machine, nvml, 2)
    for call, size in (("nvmlDeviceGetAttributes", 24), ("nvmlDeviceGetAttributes_v2", 40)):
        buffer = c.create_string_buffer(b"\xaa" * 64, 64)
        assert getattr(nvml, call)(instance, buffer) == 0
        assert buffer.raw[size:] == b"\xaa" * (64 - size) and buffer.raw[:4] == (42).to_bytes(4, "little")
    assert buffer.raw[24:40] == b"\x03\0\0\0\x03\0\0\0" + (20224).to_bytes(8, "little")
    assert nvml.nvmlDeviceGetAttributes_v2(machine.device(nvml), buffer) == 3


def test_a_handle_goes_stale_when_its_instance_is_gone(machine):
    nvml = machine.write(MIG).nvml()
    _, instance = slot(machine, nvml, 0)
    assert number(nvml.nvmlDeviceGetIndex, instance) == 0
    machine.write(MIG.replace('"1g.5gb"', '""'))
    assert number(nvml.nvmlDeviceGetIndex, instance) == 2


def test_the_parents_list_is_for_root(machine):
    nobody = as_nobody()
    machine.write(MIG)
    assert machine.pids(machine.nvml()) == [77]
    code = (
        "import ctypes as c; l=c.CDLL('libnvidia-ml.so.1'); l.nvmlInit_v2(); d=c.c_void_p(); n=c.c_uint(0)\n"
        "l.nvmlDeviceGetHandleByIndex_v2(0, c.byref(d)); print(l.nvmlDeviceGetComputeRunningProcesses_v3(d, c.byref(n), None))"
    )
    done = machine.run(*nobody, sys.executable, "-c", code)
    assert done.stdout == "4\n"
