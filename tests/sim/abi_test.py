"""The raw binary interface: sizes, canaries, codes. Buffers are filled with 0xAA to see what is written."""

import ctypes as c

import pytest

TWO = '[[device]]\nmodel = "H100"\ncount = 2\n'
FOUR_GHOSTS = '[[device]]\nmodel = "H100"\n' + "".join(
    f"[[device.process]]\npid = {1000 + i}\nghost = true\nused_mib = {100 + i}\n" for i in range(4)
)


def canary(size):
    return c.create_string_buffer(b"\xaa" * size, size)


def written(buffer):
    """How far the buffer was changed."""
    return len(buffer.raw.rstrip(b"\xaa"))


def words(buffer):
    return list((c.c_uint32 * (len(buffer) // 4)).from_buffer_copy(buffer))


def test_calls_before_init_and_after_the_last_shutdown_are_uninitialized(machine):
    nvml = machine.write(TWO).load()
    count = c.c_uint()
    assert nvml.nvmlDeviceGetCount_v2(c.byref(count)) == 1
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlInitWithFlags(0) == 0
    assert nvml.nvmlShutdown() == 0
    assert nvml.nvmlDeviceGetCount_v2(c.byref(count)) == 0 and count.value == 2
    assert nvml.nvmlShutdown() == 0
    assert nvml.nvmlDeviceGetCount_v2(c.byref(count)) == 1


def test_a_text_that_does_not_fit_is_refused_and_nothing_is_written(machine):
    nvml = machine.write(TWO).nvml()
    device = machine.device(nvml)
    buffer = canary(96)
    assert nvml.nvmlDeviceGetUUID(device, buffer, 40) == 7
    assert written(buffer) == 0
    assert nvml.nvmlDeviceGetUUID(device, buffer, 41) == 0
    assert written(buffer) == 41 and buffer.value.startswith(b"GPU-") and len(buffer.value) == 40
    assert nvml.nvmlDeviceGetName(device, buffer, 5) == 7


@pytest.mark.parametrize(
    "call",
    [
        "nvmlDeviceGetCount_v2",
        "nvmlSystemGetCudaDriverVersion",
    ],
)
def test_a_null_pointer_is_an_invalid_argument(machine, call):
    assert getattr(machine.write(TWO).nvml(), call)(None) == 2


@pytest.mark.parametrize(
    "call, nulls",
    [
        ("nvmlDeviceGetMemoryInfo", 1),
        ("nvmlDeviceGetMemoryInfo_v2", 1),
        ("nvmlDeviceGetUtilizationRates", 1),
        ("nvmlDeviceGetPowerUsage", 1),
        ("nvmlDeviceGetPciInfo_v3", 1),
        ("nvmlDeviceGetMigMode", 2),
        ("nvmlDeviceGetEccMode", 2),
        ("nvmlDeviceGetComputeRunningProcesses_v3", 2),
        ("nvmlDeviceGetIndex", 1),
    ],
)
def test_a_null_pointer_to_a_device_call_is_an_invalid_argument(machine, call, nulls):
    nvml = machine.write(TWO).nvml()
    assert getattr(nvml, call)(machine.device(nvml), *[None] * nulls) == 2


def test_a_foreign_handle_an_index_past_the_end_and_an_unknown_uuid(machine):
    nvml = machine.write(TWO).nvml()
    out = c.c_void_p()
    assert nvml.nvmlDeviceGetIndex(c.c_void_p(0x1234), c.byref(c.c_uint())) == 2
    assert nvml.nvmlDeviceGetHandleByIndex_v2(2, c.byref(out)) == 2
    assert nvml.nvmlDeviceGetHandleByUUID(b"GPU-00000000-0000-0000-0000-000000000000", c.byref(out)) == 6


@pytest.mark.parametrize(
    "call, size",
    [
        ("nvmlDeviceGetMemoryInfo", 24),
        ("nvmlDeviceGetBAR1MemoryInfo", 24),
        ("nvmlDeviceGetUtilizationRates", 8),
        ("nvmlDeviceGetPciInfo", 32),
        ("nvmlDeviceGetPciInfo_v2", 36),
        ("nvmlDeviceGetPciInfo_v3", 68),
    ],
)
def test_a_struct_is_written_to_its_size_and_not_past_it(machine, call, size):
    nvml = machine.write(TWO).nvml()
    buffer = canary(128)
    assert getattr(nvml, call)(machine.device(nvml), buffer) == 0
    assert buffer.raw[size:] == b"\xaa" * (128 - size)
    assert buffer.raw[size - 4 : size] != b"\xaa" * 4


def test_pci_info_has_both_forms_of_the_bus_id(machine):
    nvml = machine.write('[[device]]\nmodel = "H100"\npci = "0001:3b:00.0"\n').nvml()
    buffer = canary(68)
    assert nvml.nvmlDeviceGetPciInfo_v3(machine.device(nvml), buffer) == 0
    assert buffer.raw[:16].split(b"\0")[0] == b"0001:3B:00.0"
    assert buffer.raw[36:].split(b"\0")[0] == b"00000001:3B:00.0"
    assert words(buffer)[4:8] == [1, 0x3B, 0, 0x233010DE]
    for text in (b"1:3b:0.0", b"00000001:3B:00.0", b"0001:3b:00"):
        handle = c.c_void_p()
        assert nvml.nvmlDeviceGetHandleByPciBusId_v2(text, c.byref(handle)) == 0
        assert handle.value == machine.device(nvml).value


@pytest.mark.parametrize("generation, code", [("r510", 13), ("r535.104", 25), ("r580", 25)])
def test_a_wrong_struct_version_is_refused_as_the_branch_does(machine, generation, code):
    nvml = machine.write(TWO).nvml(generation)
    buffer = canary(64)
    c.memmove(buffer, (2).to_bytes(4, "little"), 4)
    assert nvml.nvmlDeviceGetMemoryInfo_v2(machine.device(nvml), buffer) == code
    assert written(buffer) == 4
    c.memmove(buffer, (0x02000028).to_bytes(4, "little"), 4)
    assert nvml.nvmlDeviceGetMemoryInfo_v2(machine.device(nvml), buffer) == 0
    assert written(buffer) <= 40 and buffer.raw[40:] == b"\xaa" * 24


def test_the_reserve_is_used_in_v1_and_apart_in_v2_and_no_part_of_an_old_total(machine):
    machine.write('[[device]]\nmodel = "A100"\nhidden_mib = 1000\n')
    v1, v2 = (c.c_uint64 * 3)(), (c.c_uint64 * 5)(0x02000028)
    nvml = machine.nvml("r510")
    assert nvml.nvmlDeviceGetMemoryInfo(machine.device(nvml), v1) == 0
    assert nvml.nvmlDeviceGetMemoryInfo_v2(machine.device(nvml), v2) == 0
    assert [x >> 20 for x in v1] == [40960, 40960 - 424 - 1000, 1424]
    assert [x >> 20 for x in v2[1:]] == [40960, 424, 40960 - 424 - 1000, 1000]
    nvml = machine.nvml("r470")
    assert nvml.nvmlDeviceGetMemoryInfo(machine.device(nvml), v1) == 0
    assert [x >> 20 for x in v1] == [40536, 39536, 1000]


@pytest.mark.parametrize(
    "generation, suffix, stride",
    [
        ("r450", "", 16),
        ("r550", "", 16),
        ("r460", "_v2", 24),
        ("r535.54", "_v2", 24),
        ("r535.98", "_v2", 24),
        ("r510", "_v3", 24),
        ("r535.54", "_v3", 32),
        ("r535.104", "_v3", 24),
        ("r550", "_v3", 24),
        ("r580", "_v3", 24),
    ],
)
def test_the_stride_of_a_process_list(machine, generation, suffix, stride):
    nvml = machine.write(FOUR_GHOSTS).nvml(generation)
    call = getattr(nvml, "nvmlDeviceGetComputeRunningProcesses" + suffix)
    buffer, count = canary(4 * stride + 64), c.c_uint(4)
    assert call(machine.device(nvml), c.byref(count), buffer) == 0
    assert count.value == 4
    assert buffer.raw[4 * stride :] == b"\xaa" * 64
    rows = [words(buffer)[i * stride // 4 : (i + 1) * stride // 4] for i in range(4)]
    assert [row[0] for row in rows] == [1000, 1001, 1002, 1003]
    assert [row[2] >> 20 for row in rows] == [100, 101, 102, 103]
    if stride > 16:
        assert {(row[4], row[5]) for row in rows} == {(0xFFFFFFFF, 0xFFFFFFFF)}


def test_the_two_call_protocol_of_a_process_list(machine):
    nvml = machine.write(FOUR_GHOSTS).nvml()
    device, count, buffer = machine.device(nvml), c.c_uint(0), canary(24 * 4)
    call = nvml.nvmlDeviceGetComputeRunningProcesses_v3
    assert call(device, c.byref(count), None) == 7 and count.value == 4
    count.value = 3
    assert call(device, c.byref(count), buffer) == 7 and count.value == 4 and written(buffer) == 0
    assert call(device, c.byref(count), buffer) == 0
    count.value = 0
    assert (
        nvml.nvmlDeviceGetGraphicsRunningProcesses_v3(device, c.byref(count), None) == 0 and count.value == 0
    )


def test_temperature_v_checks_its_version_and_keeps_to_12_bytes(machine):
    nvml = machine.write('[[device]]\nmodel = "H100"\ntemperature = 61\n').nvml("r570")
    buffer = canary(32)
    c.memmove(buffer, (0x0100000C).to_bytes(4, "little") + bytes(4), 8)
    assert nvml.nvmlDeviceGetTemperatureV(machine.device(nvml), buffer) == 0
    assert words(buffer)[2] == 61 and written(buffer) <= 12


def test_field_values_have_a_status_each(machine):
    nvml = machine.write('[[device]]\nmodel = "H100"\nremap_failure = true\npower_w = 333\n').nvml("r570")
    values = canary(40 * 3)
    for i, field in enumerate((145, 186, 9999)):
        c.memmove(c.byref(values, 40 * i), field.to_bytes(4, "little") + bytes(4), 8)
    assert nvml.nvmlDeviceGetFieldValues(machine.device(nvml), 3, values) == 0
    w = words(values)
    assert [w[i * 10 + 7] for i in range(3)] == [0, 0, 3]
    assert w[8] == 1 and w[18] == 333000


def test_what_the_double_does_not_play_is_not_supported_and_not_missing(machine):
    nvml = machine.write(TWO).nvml()
    assert nvml.nvmlDeviceGetVgpuMetadata(machine.device(nvml), None, None) == 3


def test_every_code_has_a_text(machine):
    nvml = machine.write(TWO).load()
    nvml.nvmlErrorString.restype = c.c_char_p
    assert nvml.nvmlErrorString(0) == b"Success"
    assert nvml.nvmlErrorString(15) == b"GPU is lost"
    assert nvml.nvmlErrorString(999) == b"Unknown Error" == nvml.nvmlErrorString(31337)


def test_the_event_set_waits_as_long_as_it_is_told(machine):
    import time

    nvml = machine.write(TWO).nvml()
    events, data = c.c_void_p(), canary(32)
    assert nvml.nvmlEventSetCreate(c.byref(events)) == 0
    assert nvml.nvmlDeviceRegisterEvents(machine.device(nvml), c.c_ulonglong(8), events) == 0
    begin = time.monotonic()
    assert nvml.nvmlEventSetWait_v2(events, data, 30) == 10
    assert time.monotonic() - begin >= 0.03
    assert nvml.nvmlEventSetFree(events) == 0


@pytest.mark.parametrize("init_result", [4, 9, 18, 999])
def test_init_fails_as_the_scenario_says(machine, init_result):
    nvml = machine.write(f"init_result = {init_result}\n" + TWO).load()
    assert nvml.nvmlInit_v2() == init_result == nvml.nvmlInitWithFlags(0)
    assert nvml.nvmlDeviceGetCount_v2(c.byref(c.c_uint())) == 1


def test_init_v1_fails_where_one_device_is_bad_and_v2_does_not(machine):
    machine.write('[[device]]\nmodel = "T4"\n[[device]]\nmodel = "T4"\nhandle_result = 8\n')
    nvml = machine.load()
    assert nvml.nvmlInit() == 8
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetHandleByIndex_v2(1, c.byref(c.c_void_p())) == 8
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, c.byref(c.c_void_p())) == 0
