"""Fault rules and the call log."""

import ctypes as c
import os
import signal
import subprocess
import sys
import time

import pytest
from simulated import DEADLINE_S, eventually

TWO = '[[device]]\nmodel = "H100"\ncount = 2\n'
POWER = (
    "import ctypes as c; l=c.CDLL('libnvidia-ml.so.1'); l.nvmlInit_v2(); d=c.c_void_p(); "
    "l.nvmlDeviceGetHandleByIndex_v2({0}, c.byref(d)); print(l.nvmlDeviceGetPowerUsage(d, c.byref(c.c_uint())), flush=True)"
)


def power(machine, nvml, index=0):
    return nvml.nvmlDeviceGetPowerUsage(machine.device(nvml, index), c.byref(c.c_uint()))


def test_a_code_from_one_call_on_for_some_calls_on_one_device(machine):
    nvml = machine.write(
        TWO + '[[fault]]\ncall = "nvmlDeviceGetPower*"\ndevice = 1\nfrom_call = 2\ntimes = 2\nresult = 15\n'
    ).nvml()
    assert [power(machine, nvml, 1) for _ in range(5)] == [0, 15, 15, 0, 0]
    assert [power(machine, nvml, 0) for _ in range(5)] == [0] * 5


def test_a_rule_keeps_its_count_when_another_part_of_the_file_changes(machine):
    rule = '[[fault]]\ncall = "nvmlDeviceGetPowerUsage"\nfrom_call = 3\nresult = 999\n'
    nvml = machine.write(TWO + rule).nvml()
    assert [power(machine, nvml) for _ in range(2)] == [0, 0]
    machine.write(TWO + "temperature = 50\n" + rule)
    assert power(machine, nvml) == 999


def test_a_handle_look_up_can_fail_for_one_device(machine):
    nvml = machine.write(
        TWO + '[[fault]]\ncall = "nvmlDeviceGetHandleByIndex_v2"\ndevice = 0\nresult = 4\n'
    ).nvml()
    handle = c.c_void_p()
    assert [nvml.nvmlDeviceGetHandleByIndex_v2(i, c.byref(handle)) for i in (0, 1)] == [4, 0]


def test_a_lost_device_is_found_and_then_answers_15(machine):
    nvml = machine.write('[[device]]\nmodel = "T4"\nlost = true\n[[device]]\nmodel = "T4"\n').nvml()
    assert [power(machine, nvml, i) for i in (0, 1)] == [15, 0]
    done = machine.smi()
    assert done.returncode == 15 and "GPU is lost" in done.stdout


def test_a_device_without_a_reading_says_not_supported(machine):
    nvml = machine.write('[[device]]\nmodel = "A6000"\nunsupported = ["power", "utilization"]\n').nvml()
    assert power(machine, nvml) == 3
    out = machine.smi("--query-gpu=power.draw,utilization.gpu,fan.speed", "--format=csv,noheader").stdout
    assert out == "[N/A], [N/A], 0 %\n"


def test_unified_memory_has_no_memory_reading_but_the_others(machine):
    nvml = machine.write('[[device]]\nmodel = "GB10"\n').nvml("r580")
    device = machine.device(nvml)
    assert nvml.nvmlDeviceGetMemoryInfo(device, (c.c_uint64 * 3)()) == 3
    assert nvml.nvmlDeviceGetMemoryInfo_v2(device, (c.c_uint64 * 5)(0x02000028)) == 3
    assert nvml.nvmlDeviceGetUtilizationRates(device, (c.c_uint * 2)()) == 0
    assert power(machine, nvml) == 0
    assert nvml.nvmlDeviceGetEnforcedPowerLimit(device, c.byref(c.c_uint())) == 3
    out = machine.smi("--query-gpu=memory.total,memory.used,pci.bus_id", "--format=csv,noheader").stdout
    assert out == "[N/A], [N/A], 0000000F:01:00.0\n"


@pytest.mark.parametrize(
    "answer, total", [("zero", 0), ("system", os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE"))]
)
def test_unified_memory_as_other_drivers_have_answered(machine, answer, total):
    nvml = machine.write(f'[[device]]\nmodel = "GB10"\nunified_memory = "{answer}"\nhidden_mib = 100\n').nvml(
        "r580"
    )
    memory = (c.c_uint64 * 3)()
    assert nvml.nvmlDeviceGetMemoryInfo(machine.device(nvml), memory) == 0
    used = min(total, 100 << 20)
    assert list(memory) == [total, total - used, used]


def test_a_call_can_take_time(machine):
    nvml = machine.write(
        TWO + '[[fault]]\ncall = "nvmlDeviceGetPowerUsage"\ntimes = 1\ndelay = "80ms"\n'
    ).nvml()
    begin = time.monotonic()
    assert power(machine, nvml) == 0
    assert time.monotonic() - begin >= 0.08


def test_a_call_can_hang_and_only_sigkill_ends_it(machine, sleeper):
    machine.write(
        "call_log = true\n" + TWO + '[[fault]]\ncall = "nvmlDeviceGetPowerUsage"\ndevice = 1\nhang = true\n'
    )
    assert machine.python(POWER.format(0)).stdout == "0\n"
    process = sleeper(
        machine.command(
            sys.executable, "-c", "import signal,os; print(os.getpid(), flush=True); " + POWER.format(1)
        ),
        stdout=subprocess.PIPE,
        text=True,
    )
    pid = int(process.stdout.readline())

    def deaf():
        mask = open(f"/proc/{pid}/status").read().split("SigBlk:")[1].split()[0]
        return int(mask, 16) >> (signal.SIGTERM - 1) & 1

    eventually(deaf)
    process.send_signal(signal.SIGTERM)
    assert process.poll() is None
    process.kill()
    assert process.wait(DEADLINE_S) == -signal.SIGKILL


def test_a_call_can_crash_its_process(machine):
    machine.write(TWO + '[[fault]]\ncall = "nvmlDeviceGetPowerUsage"\ncrash = true\n')
    assert machine.python(POWER.format(0)).returncode == -signal.SIGSEGV


def test_a_list_can_grow_between_two_calls(machine):
    nvml = machine.write(
        TWO + '[[fault]]\ncall = "nvmlDeviceGetComputeRunningProcesses_v3"\ngrow = 3\n'
    ).nvml()
    device, count, rows = machine.device(nvml), c.c_uint(0), c.create_string_buffer(24 * 64)
    call = nvml.nvmlDeviceGetComputeRunningProcesses_v3
    assert call(device, c.byref(count), None) == 7 and count.value == 3
    assert call(device, c.byref(count), rows) == 7 and count.value == 6
    count.value = 6 * 2 + 5
    assert call(device, c.byref(count), rows) == 0 and count.value == 9


def test_an_old_driver_can_leave_the_count_as_it_was(machine):
    nvml = machine.write(
        TWO + "[[device.process]]\npid = 7\nghost = true\n"
        '[[fault]]\ncall = "nvmlDeviceGetCompute*"\nstale_count = true\n'
    ).nvml()
    count = c.c_uint(0)
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(machine.device(nvml, 1), c.byref(count), None) == 7
    assert count.value == 0


@pytest.mark.parametrize("shared, codes", [("false", "0000"), ("true", "00ff")])
def test_a_count_is_of_one_process_or_of_all(machine, shared, codes):
    machine.write(
        TWO + f'[[fault]]\ncall = "nvmlDeviceGetPowerUsage"\nfrom_call = 3\nresult = 15\nshared = {shared}\n'
    )
    got = [int(machine.python(POWER.format(0)).stdout) for _ in range(4)]
    assert "".join("%x" % code for code in got) == codes


def test_nvidia_smi_has_faults_of_its_own(machine):
    machine.write(TWO + '[[fault]]\ncall = "nvidia-smi"\nresult = 9\n')
    done = machine.smi()
    assert done.returncode == 9 and "couldn't communicate with the NVIDIA driver" in done.stdout


def test_the_call_log_has_a_line_a_call(machine):
    nvml = machine.write("call_log = true\n" + TWO).nvml()
    power(machine, nvml, 1)
    nvml.nvmlDeviceGetUtilizationRates(machine.device(nvml, 0), None)
    machine.smi()
    lines = (machine.file.parent / "machine.toml.d" / "calls.log").read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == [
        "nvmlInit_v2 - 0",
        "nvmlDeviceGetHandleByIndex_v2 1 0",
        "nvmlDeviceGetPowerUsage 1 0",
        "nvmlDeviceGetHandleByIndex_v2 0 0",
        "nvmlDeviceGetUtilizationRates 0 2",
        "nvidia-smi - 0",
    ]
    assert {int(line.split()[0]) for line in lines[:5]} == {os.getpid()}
