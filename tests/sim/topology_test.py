"""How devices are connected."""

import ctypes as c

import pytest


def level(machine, nvml, a, b):
    value = c.c_uint()
    assert (
        nvml.nvmlDeviceGetTopologyCommonAncestor(
            machine.device(nvml, a), machine.device(nvml, b), c.byref(value)
        )
        == 0
    )
    return value.value


def links(machine, nvml, device):
    """(remote type, remote bus) of the active links; the walk ends at code 2 or 3, as a client's does."""
    found = []
    for link in range(36):
        state, kind, pci = c.c_uint(), c.c_uint(), (c.c_uint32 * 17)()
        code = nvml.nvmlDeviceGetNvLinkState(machine.device(nvml, device), link, c.byref(state))
        if code in (2, 3):
            return code, found
        if code == 0 and state.value:
            assert (
                nvml.nvmlDeviceGetNvLinkRemoteDeviceType(machine.device(nvml, device), link, c.byref(kind))
                == 0
            )
            assert nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2(machine.device(nvml, device), link, pci) == 0
            found.append((kind.value, pci[4], pci[5]))
    return None, found


def nvlink_p2p(machine, nvml, a, b):
    value = c.c_uint()
    assert (
        nvml.nvmlDeviceGetP2PStatus(machine.device(nvml, a), machine.device(nvml, b), 2, c.byref(value)) == 0
    )
    return value.value


@pytest.mark.parametrize("model, count, switches", [("H100", 18, 4), ("A100", 12, 6), ("B200", 18, 4)])
def test_switched_boards_have_all_their_links_to_switches(machine, model, count, switches):
    nvml = machine.write(f'[[device]]\nmodel = "{model}"\ncount = 8\n').nvml()
    end, found = links(machine, nvml, 0)
    assert end == 2 and len(found) == count
    assert {kind for kind, _, _ in found} == {2} and len({bus for _, _, bus in found}) == switches
    assert nvlink_p2p(machine, nvml, 0, 7) == 0
    assert (level(machine, nvml, 0, 1), level(machine, nvml, 0, 4), level(machine, nvml, 3, 3)) == (40, 50, 0)
    assert machine.smi("topo", "-m").stdout.splitlines()[1].split()[:4] == [
        "GPU0",
        "X",
        f"NV{count}",
        f"NV{count}",
    ]


def test_cards_have_no_links_unless_bridged(machine):
    text = '[[device]]\nmodel = "A6000"\ncount = 8\n'
    nvml = machine.write(text).nvml()
    assert links(machine, nvml, 0) == (2, [])
    assert (level(machine, nvml, 0, 3), level(machine, nvml, 0, 4)) == (30, 50)
    assert nvlink_p2p(machine, nvml, 0, 1) == 5
    machine.write('topology = "bridges"\n' + text)
    _, found = links(machine, nvml, 0)
    assert found == [(0, 0, 0x0A)] * 4
    assert [nvlink_p2p(machine, nvml, 0, i) for i in (1, 2)] == [0, 5]
    machine.write('[[device]]\nmodel = "T4"\n')
    assert links(machine, nvml, 0) == (3, [])


def test_the_cube_mesh_of_eight_v100(machine):
    nvml = machine.write('[[device]]\nmodel = "V100"\ncount = 8\n').nvml()
    for device in range(8):
        assert len(links(machine, nvml, device)[1]) == 6
    row = machine.smi("topo", "-m").stdout.splitlines()[1].split()
    assert row[2:9] == ["NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS"]


def test_links_and_levels_that_the_scenario_gives(machine):
    nvml = machine.write(
        '[[device]]\nmodel = "3090"\ncount = 3\n[[link]]\na = 0\nb = 2\nnvlinks = 3\n'
        '[[pcie]]\na = 1\nb = 0\nlevel = "PIX"\n[[pcie]]\na = 1\nb = 2\nlevel = "PXB"\n'
    ).nvml()
    assert [len(links(machine, nvml, i)[1]) for i in range(3)] == [3, 0, 3]
    assert [level(machine, nvml, *p) for p in ((0, 1), (1, 2), (0, 2))] == [10, 20, 30]
    count, near = c.c_uint(8), (c.c_void_p * 8)()
    assert nvml.nvmlDeviceGetTopologyNearestGpus(machine.device(nvml, 0), 10, c.byref(count), near) == 0
    assert count.value == 1 and near[0] == machine.device(nvml, 1).value


def test_old_branches_know_twelve_links(machine):
    nvml = machine.write('generation = "r510"\n[[device]]\nmodel = "H100"\ncount = 2\n').nvml("r510")
    assert len(links(machine, nvml, 0)[1]) == 12
