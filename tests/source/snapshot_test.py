"""One suite over both sources: what a machine looks like through NVML and through nvidia-smi."""

import os
import subprocess

import pytest
from probing import LISTING, PICK, Reading

SOURCES = ["nvml", "nvidia-smi"]
GENERATIONS = ["r450", "r460", "r470", "r510", "r535.54", "r535.98", "r535.104", "r550", "r570", "r580"]
MIB = 1 << 20


@pytest.fixture
def sleeper():
    """A process that waits to be ended, with words of its own."""
    running = []

    def start():
        running.append(subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL))
        return running[-1].pid

    yield start
    for process in running:
        process.kill()
        process.wait()


def whole_mib(value: str) -> str:
    return str(int(value) // MIB)


def comparable(snapshot) -> list:
    """The devices, without what only one source can say and in the units of the coarser one."""
    devices = []
    for device in snapshot.devices:
        row = {k: v for k, v in device.items() if k != "energy_mj"}
        for key in ("total_bytes", "used_bytes", "free_bytes", "reserved_bytes"):
            if key in row:
                row[key] = whole_mib(row[key])
        for key in ("power_mw", "power_limit_mw"):
            if key in row:
                row[key] = str(int(row[key]) // 10)
        if "processes" in row:
            listed = [
                {k: whole_mib(v) if k == "used_bytes" else v for k, v in process.items()}
                for process in row["processes"]
            ]
            row["processes"] = sorted(listed, key=lambda process: int(process["pid"]))
        devices.append(row)
    return devices


def everything(pids) -> str:
    return f"""
[[device]]
model = "H100"
utilization = 93
memory_utilization = 40
power_w = 312.5
temperature = 61
throttle = ["sw_power_cap"]
[[device.process]]
pid = {pids[0]}
used_mib = 20000
[[device.process]]
pid = {pids[1]}
type = "G"
used_mib = 120
[[device.process]]
pid = {pids[2]}
type = "C+G"
[[device]]
model = "1080Ti"
fan = 44
pstate = 2
compute_mode = "exclusive_process"
persistence = false
display_active = true
[[device]]
model = "A100"
ecc_uncorrected = 3
mig = ["1g.5gb", "", "3g.20gb"]
[[device.process]]
pid = {pids[3]}
used_mib = 900
mig = 2
"""


def test_both_sources_see_the_same_machine(make_machine, probe, sleeper):
    machine = make_machine(everything([sleeper() for _ in range(4)]))
    nvml, smi = (probe(machine, LISTING, source) for source in SOURCES)
    assert comparable(nvml) == comparable(smi)
    assert nvml.fields["driver_version"] == smi.fields["driver_version"]
    assert [label(device) for device in nvml.devices] == ["0", "1", "2", "2:0", "2:2"]


def label(device) -> str:
    return device["index"] + (":" + device["mig_slot"] if "mig_slot" in device else "")


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_generation_lists_processes_with_their_kind_and_memory(
    make_machine, probe, sleeper, generation, source
):
    pids = [sleeper() for _ in range(3)]
    machine = make_machine(
        f'generation = "{generation}"\n[[device]]\nmodel = "A100"\n'
        f"[[device.process]]\npid = {pids[0]}\nused_mib = 100\n"
        f'[[device.process]]\npid = {pids[1]}\nused_mib = 200\ntype = "G"\n'
        f'[[device.process]]\npid = {pids[2]}\nused_mib = 300\ntype = "C+G"\n'
    )
    listed = {
        (int(p["pid"]), p.get("kind", "compute"), int(p["used_bytes"]) // MIB)
        for p in probe(machine, Reading.PROCESSES, source).devices[0]["processes"]
    }
    assert listed == {
        (pids[0], "compute", 100),
        (pids[1], "graphics", 200),
        (pids[2], "compute_and_graphics", 300),
    }


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation_has_memory_temperature_and_throttling(make_machine, probe, generation):
    machine = make_machine(
        f'generation = "{generation}"\n[[device]]\nmodel = "A100"\nhidden_mib = 1000\ntemperature = 50\n'
        'utilization = 5\nthrottle = ["hw_slowdown"]\n'
    )
    for source in SOURCES:
        device = probe(machine, LISTING, source).devices[0]
        assert device["temperature_c"] == "50"
        assert device["throttle_reasons"] == "8"
        assert int(device["used_bytes"]) // MIB >= 1000
        has_reserve = generation not in ("r450", "r460", "r470")
        assert ("reserved_bytes" in device) == has_reserve
        if has_reserve:
            assert int(device["used_bytes"]) // MIB == 1000


@pytest.mark.parametrize("source", SOURCES)
def test_a_process_is_told_by_user_command_and_start(make_machine, probe, sleeper, source):
    pid = sleeper()
    machine = make_machine(f'[[device]]\nmodel = "T4"\n[[device.process]]\npid = {pid}\nused_mib = 7\n')
    (process,) = probe(machine, Reading.PROCESSES | Reading.PROCESS_DETAILS, source).devices[0]["processes"]
    assert process["command"] == "sleep 1000"
    assert process["uid"] == str(os.getuid())
    assert process["user"]
    with open(f"/proc/{pid}/stat") as stat:
        assert process["start_ticks"] == stat.read().rsplit(")", 1)[1].split()[19]


@pytest.mark.parametrize("source", SOURCES)
def test_a_process_that_cannot_be_seen_keeps_its_memory(make_machine, probe, source):
    machine = make_machine(
        '[[device]]\nmodel = "T4"\n[[device.process]]\npid = 4194303\nghost = true\nused_mib = 900\n'
    )
    (process,) = probe(machine, LISTING, source).devices[0]["processes"]
    assert int(process["used_bytes"]) == 900 * MIB
    assert "uid" not in process and "command" not in process


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("answer", ["unsupported", "zero"])
def test_unified_memory_is_the_machines(make_machine, probe, sleeper, source, answer):
    if source == "nvidia-smi" and answer == "zero":
        pytest.skip("nvidia-smi has one way to say it")
    machine = make_machine(
        f'generation = "r580"\n[[device]]\nmodel = "GB10"\nunified_memory = "{answer}"\n'
        f"[[device.process]]\npid = {sleeper()}\nused_mib = 900\n"
    )
    device = probe(machine, PICK, source).devices[0]
    assert device["kind"] == "unified"
    assert int(device["total_bytes"]) == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert int(device["used_bytes"]) == 900 * MIB


@pytest.mark.parametrize("source", SOURCES)
def test_a_card_without_a_reading_is_well_and_lacks_it(make_machine, probe, source):
    machine = make_machine(
        '[[device]]\nmodel = "A100"\n'
        'unsupported = ["fan", "memory", "utilization", "power", "temperature", "clocks", "processes"]\n'
    )
    device = probe(machine, LISTING, source).devices[0]
    assert "state" not in device
    for key in (
        "fan_percent",
        "total_bytes",
        "utilization_percent",
        "power_mw",
        "temperature_c",
        "sm_clock_mhz",
    ):
        assert key not in device


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "fault, state",
    [("lost = true", "lost"), ("handle_result = 15", "lost"), ("handle_result = 4", "not_permitted"),
     ("handle_result = 999", "failed"), ("handle_result = 8", "failed")],
)  # fmt: skip
def test_a_bad_card_is_one_bad_row_and_the_others_keep_their_index(make_machine, probe, source, fault, state):
    machine = make_machine(
        f'[[device]]\nmodel = "T4"\n[[device]]\nmodel = "T4"\n{fault}\n[[device]]\nmodel = "T4"\ncount = 2\n'
    )
    devices = probe(machine, LISTING, source).devices
    assert [device["index"] for device in devices] == ["0", "1", "2", "3"]
    assert [device.get("state", "ok") for device in devices] == ["ok", state, "ok", "ok"]
    assert devices[1]["state_reason"]
    assert "total_bytes" in devices[3]


@pytest.mark.parametrize("source", SOURCES)
def test_a_machine_without_devices_is_an_empty_list(make_machine, probe, source):
    machine = make_machine('driver = "550.163.01"\n[[device]]\nmodel = "T4"\n')
    machine.change('driver = "550.163.01"\n#[[device]]\n')
    assert probe(machine, LISTING, source).devices == []


@pytest.mark.parametrize("source", SOURCES)
def test_mig_on_without_instances_is_a_gpu_without_rows_behind_it(make_machine, probe, source):
    machine = make_machine('[[device]]\nmodel = "A100"\nmig = []\n')
    (device,) = probe(machine, LISTING, source).devices
    assert device["mig_enabled"] == "1"
    assert "processes" not in device


@pytest.mark.parametrize("generation", ["r450", "r550"])
def test_instances_have_their_own_memory_and_the_boards_temperature(make_machine, probe, generation):
    machine = make_machine(
        f'generation = "{generation}"\n[[device]]\nmodel = "A100"\nmig = ["", "2g.10gb"]\ntemperature = 55\n'
    )
    parent, instance = probe(machine, LISTING).devices
    assert instance["mig_parent_uuid"] == parent["uuid"]
    assert instance["mig_slot"] == "1"
    assert instance["temperature_c"] == "55"
    assert int(instance["total_bytes"]) < int(parent["total_bytes"])
    assert "utilization_percent" not in instance
    assert instance["uuid"].startswith("MIG-GPU-" if generation == "r450" else "MIG-")
