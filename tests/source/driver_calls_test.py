"""What is asked of the driver, and what is not: counted from the simulated driver's log."""

import collections
import re

import pytest
from probing import PICK, Reading

LOGGED = "call_log = true\n"


def test_a_pick_makes_the_calls_of_a_bare_program(make_machine, probe, calls):
    machine = make_machine(LOGGED + '[[device]]\nmodel = "H100"\ncount = 8\n')
    probe(machine, PICK)
    per_device = [
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetComputeMode",
    ]
    expected = [("nvmlInit_v2", "-"), ("nvmlDeviceGetCount_v2", "-")]
    expected += [(call, str(index)) for index in range(8) for call in per_device]
    assert calls(machine) == expected


def test_a_lost_card_is_asked_once(make_machine, probe, calls):
    machine = make_machine(LOGGED + '[[device]]\nmodel = "H100"\nlost = true\n')
    probe(machine)
    assert (
        collections.Counter(device for _, device in calls(machine))["0"] == 2
    )  # its handle, and one question


def test_a_split_gpu_is_not_asked_for_what_only_its_instances_have(make_machine, probe, calls):
    machine = make_machine(LOGGED + '[[device]]\nmodel = "A100"\nmig = ["1g.5gb"]\n')
    probe(machine)
    of_the_gpu = {call for call, device in calls(machine) if device == "0"}
    assert not any("Utilization" in call or "RunningProcesses" in call for call in of_the_gpu)


def test_a_list_that_grows_between_calls_is_read_whole(make_machine, probe, calls):
    ghosts = "".join(
        f"[[device.process]]\npid = {4000000 + i}\nghost = true\nused_mib = 1\n" for i in range(70)
    )
    machine = make_machine(
        LOGGED + f'[[device]]\nmodel = "H100"\n{ghosts}'
        '[[fault]]\ncall = "nvmlDeviceGetComputeRunningProcesses*"\ngrow = 100\ntimes = 2\n'
    )
    listed = probe(machine, Reading.PROCESSES).devices[0]["processes"]
    assert len(listed) >= 70
    assert len({process["pid"] for process in listed}) == len(listed)


def test_a_list_that_never_stops_growing_is_unknown(make_machine, probe, calls):
    machine = make_machine(
        LOGGED + '[[device]]\nmodel = "H100"\n'
        '[[fault]]\ncall = "nvmlDeviceGetComputeRunningProcesses*"\nresult = 7\n'
    )
    assert "processes" not in probe(machine, Reading.PROCESSES).devices[0]
    assert len([call for call, _ in calls(machine) if "Compute" in call]) <= 8


def topology_calls(calls, machine):
    return [call for call, _ in calls(machine) if "Topology" in call or "NvLink" in call]


def test_switched_gpus_are_joined_by_all_their_links(make_machine, probe):
    snapshot = probe(make_machine("8xH100"), Reading.TOPOLOGY)
    assert snapshot.uuids == [device["uuid"] for device in snapshot.devices]
    for a in range(8):
        for b in range(8):
            if a != b:
                assert snapshot.links_between(a, b).endswith(" 18")


def test_direct_links_are_counted_between_the_gpus_that_they_join(make_machine, probe):
    machine = make_machine(
        '[[device]]\nmodel = "A6000"\ncount = 4\n[[link]]\na = 0\nb = 1\nnvlinks = 4\n'
        '[[pcie]]\na = 0\nb = 1\nlevel = "PIX"\n[[pcie]]\na = 2\nb = 3\nlevel = "SYS"\n'
    )
    snapshot = probe(machine, Reading.TOPOLOGY)
    assert snapshot.links_between(0, 1) == snapshot.links_between(1, 0) == "10 4"
    assert snapshot.links_between(2, 3) == "50 0"


@pytest.fixture
def kept(make_machine, tmp_path):
    machine = make_machine(LOGGED + '[[device]]\nmodel = "H100"\ncount = 4\n')
    state = tmp_path / "state"
    state.mkdir()
    return machine, state


def test_topology_is_read_once_and_kept(kept, probe, calls):
    machine, state = kept
    first = probe(machine, Reading.TOPOLOGY, state_directory=state)
    made = topology_calls(calls, machine)
    assert made
    assert [file.stat().st_mode & 0o777 for file in state.iterdir()] == [0o600]
    second = probe(machine, Reading.TOPOLOGY, state_directory=state)
    assert second.links == first.links
    assert topology_calls(calls, machine) == made


def test_a_kept_topology_of_other_devices_or_another_driver_is_not_believed(kept, probe, calls):
    machine, state = kept
    probe(machine, Reading.TOPOLOGY, state_directory=state)
    before = len(topology_calls(calls, machine))
    machine.change(LOGGED + '[[device]]\nmodel = "H100"\ncount = 3\n')
    assert len(probe(machine, Reading.TOPOLOGY, state_directory=state).uuids) == 3
    after = len(topology_calls(calls, machine))
    assert after > before
    machine.change(LOGGED + 'driver = "550.54.15"\n[[device]]\nmodel = "H100"\ncount = 3\n')
    probe(machine, Reading.TOPOLOGY, state_directory=state)
    assert len(topology_calls(calls, machine)) > after


def test_a_kept_topology_that_is_a_link_or_nonsense_is_read_anew(kept, probe, tmp_path):
    machine, state = kept
    links = probe(machine, Reading.TOPOLOGY, state_directory=state).links
    (file,) = state.iterdir()
    for spoil in (
        lambda: file.write_text("berth-snapshot 1\n"),
        lambda: file.chmod(0o666),
        lambda: (file.rename(tmp_path / "elsewhere"), file.symlink_to(tmp_path / "elsewhere")),
    ):
        spoil()
        assert probe(machine, Reading.TOPOLOGY, state_directory=state).links == links


def test_a_topology_that_cannot_be_kept_is_still_told(kept, probe):
    machine, _ = kept
    assert probe(machine, Reading.TOPOLOGY, state_directory="/nowhere").links


@pytest.mark.parametrize("driver, most", [("450.51.06", 3), ("550.163.01", 1), ("570.124.06", 1)])
def test_the_health_of_a_card_is_one_call_and_of_another_one_more_than_before(
    make_machine, probe, calls, driver, most
):
    machine = make_machine(LOGGED + f'driver = "{driver}"\n[[device]]\nmodel = "A100"\n')
    probe(machine, Reading.HEALTH)
    of_health = [call for call, _ in calls(machine) if re.search("Field|Remapped|Ecc|Retired", call)]
    assert len(of_health) <= most
    geforce = make_machine(LOGGED + f'driver = "{driver}"\n[[device]]\nmodel = "RTX4090"\n')
    probe(geforce, Reading.HEALTH)
    of_health = [call for call, _ in calls(geforce) if re.search("Field|Remapped|Ecc|Retired", call)]
    assert len(of_health) == len(set(of_health)) <= 4
