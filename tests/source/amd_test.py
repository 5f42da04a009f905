"""A machine with AMD GPUs, and one with those of two makers, through the program."""

import pytest
from amd_tree import FIRST_ID, TOTAL, AmdTree
from jobs import eventually
from probing import end_probes, probes

MASKS = [
    "sh",
    "-c",
    'echo "${ROCR_VISIBLE_DEVICES-none} ${CUDA_VISIBLE_DEVICES-none} ${CUDA_DEVICE_ORDER-none}"',
]


@pytest.fixture
def amd(make_machine, tmp_path):
    """Four MI300X; the simulated NVIDIA driver is there and has no GPU."""
    machine = make_machine("driver = '550.54.15'\n[[device]]\nmodel = 'H100'\n")
    machine.tree = AmdTree(tmp_path / "amd", 4)
    machine.env["BERTH_SIM_ROOT"] = str(machine.tree.root)
    machine.source = ["--source", "amd"]
    return machine


@pytest.fixture
def mixed(make_machine, tmp_path):
    """Two H100 and two MI300X."""
    machine = make_machine("2xH100")
    machine.tree = AmdTree(tmp_path / "amd", 2)
    machine.env["BERTH_SIM_ROOT"] = str(machine.tree.root)
    return machine


def test_list_shows_amd_gpus(amd):
    listed = amd.berth("list", "--json", *amd.source).json
    assert listed["source"] == "amd"
    assert [device["uuid"] for device in listed["devices"]] == [f"GPU-{FIRST_ID + i:016x}" for i in range(4)]
    first = listed["devices"][0]
    assert (first["vendor"], first["name"]) == ("amd", "AMD Instinct MI300X OAM")
    assert first["memory"]["total_bytes"] == TOTAL
    assert first["verdict"]["free"]


def test_a_job_is_masked_by_rocms_variable_alone(amd):
    answer = amd.berth("run", "-n", "2", *amd.source, "--", *MASKS)
    assert answer.out == "0,1 none none\n"
    picked = amd.berth("pick", "-n", "1", "--ids", "uuid", "--json", *amd.source).json
    assert picked["environment"] == {"ROCR_VISIBLE_DEVICES": f"GPU-{FIRST_ID:016x}"}
    assert "cuda_visible_devices" not in picked


INNER = {"HIP_VISIBLE_DEVICES": "3", "GPU_DEVICE_ORDINAL": "3", "CUDA_VISIBLE_DEVICES": "3"}
SHOW_INNER = ["sh", "-c", "echo ${ROCR_VISIBLE_DEVICES-none}; env | grep -E '^(HIP|GPU|CUDA)_' || echo gone"]


def test_what_chooses_among_a_jobs_devices_is_taken_from_it(amd):
    """HIP reads these as indices among what ROCR_VISIBLE_DEVICES shows: the 3 of a whole machine is then none."""
    answer = amd.berth("run", "-n", "1", *amd.source, "--", *SHOW_INNER, env=INNER)
    assert (answer.status, answer.out) == (0, "0\ngone\n")
    claimed = amd.berth("claim", "-n", "1", "--time", "30s", *amd.source, env=INNER).out.splitlines()
    assert {*(f"unset {name}" for name in INNER), "export ROCR_VISIBLE_DEVICES=0"} <= {*claimed}


def test_what_hides_gpus_of_the_other_maker_stays(mixed):
    inner = INNER | {"CUDA_VISIBLE_DEVICES": "1"}
    amd = mixed.berth("run", "--where", "vendor=amd", "--", *SHOW_INNER, env=inner)
    assert amd.out == "0\nCUDA_VISIBLE_DEVICES=1\n"
    nvidia = mixed.berth(
        "run",
        "--where",
        "vendor=nvidia",
        "--",
        "sh",
        "-c",
        "echo $CUDA_VISIBLE_DEVICES $HIP_VISIBLE_DEVICES",
        env=inner,
    )
    assert nvidia.out == "1 3\n"


def test_the_mask_of_rocm_limits_a_request(amd):
    mask = {"ROCR_VISIBLE_DEVICES": "2,GPU-000000000000abc3,2"}
    answer = amd.berth("pick", "-n", "2", *amd.source, env=mask)
    assert answer.out == "2,3\n"
    assert 'ends before "2": it is named twice' in answer.err
    refused = amd.berth("pick", "-n", "3", *amd.source, env=mask)
    assert refused.status == 69
    assert "not in ROCR_VISIBLE_DEVICES=2,GPU-000000000000abc3,2" in refused.err


def test_a_process_of_rocms_is_an_outsider(amd):
    amd.tree.compute(0, 999_999_999, 8 << 30)
    assert amd.berth("pick", *amd.source).out == "1\n"
    assert "used without a lease by an unknown user (pid 999999999)" in amd.berth("why", *amd.source).out


def test_memory_that_nobody_explains_is_a_hidden_holder(amd):
    amd.tree.put("sys/class/drm/renderD128/device/mem_info_vram_used", f"{2 << 30}\n")
    assert amd.berth("pick", *amd.source).out == "1\n"


def test_a_card_whose_use_is_not_known_is_not_given_away(amd):
    amd.tree.put("sys/class/drm/renderD128/device/mem_info_vram_used", "lies\n")
    assert amd.berth("pick", *amd.source).out == "1\n"
    assert "its memory in use is not available" in amd.berth("why", *amd.source).out


def test_both_makers_are_listed_and_counted_on(mixed):
    devices = mixed.berth("list", "--json").json["devices"]
    assert [(device["index"], device["vendor"], device["verdict"]["free"]) for device in devices] == [
        (0, "nvidia", True),
        (1, "nvidia", True),
        (2, "amd", True),
        (3, "amd", True),
    ]


def test_a_request_gets_devices_of_one_maker(mixed):
    assert mixed.berth("run", "-n", "2", "--", *MASKS).out == "none 0,1 PCI_BUS_ID\n"
    assert mixed.berth("run", "-n", "2", "--where", "vendor=amd", "--", *MASKS).out == "0,1 none none\n"
    refused = mixed.berth("pick", "-n", "3")
    assert refused.status == 69
    assert "made by AMD: a request gets GPUs of one maker, here NVIDIA" in refused.err


def test_a_request_that_names_devices_of_two_makers_is_refused(mixed):
    refused = mixed.berth("pick", "-n", "1", "--devices", "0,2")
    assert (refused.status, refused.out) == (2, "-1\n")
    assert "device 0 is made by NVIDIA and device 2 by AMD" in refused.err


def test_a_job_for_one_maker_waits_for_it_and_takes_no_other(mixed):
    assert mixed.berth("pick", "-n", "2", "--hold", "60s").out == "0,1\n"
    assert mixed.berth("pick").status == 75
    assert mixed.berth("pick", "--where", "vendor=amd").out == "0\n"


def test_the_driver_of_one_maker_that_fails_hides_no_other(mixed):
    mixed.change("init_result = 18\n[[device]]\nmodel = 'H100'\n")
    answer = mixed.berth("list", "--json")
    assert [device["vendor"] for device in answer.json["devices"]] == ["amd", "amd"]
    assert answer.err


@pytest.mark.parametrize(
    ("fault", "nvidia"),
    [("nvmlInit*", []), ("nvmlDeviceGetMemoryInfo*", ["unresponsive", "unresponsive"])],
)
def test_the_driver_of_one_maker_that_hangs_hides_no_other(mixed, fault, nvidia):
    mixed.change(f"[[device]]\nmodel = 'H100'\ncount = 2\n[[fault]]\ncall = '{fault}'\nhang = true\n")
    mixed.leases.mkdir(exist_ok=True)
    env = {"BERTH_DRIVER_DEADLINE_MS": "300"}
    # The first finds that it hangs, the second knows it from the first.
    for _ in range(2):
        answer = mixed.berth("list", "--json", env=env)
        devices = answer.json["devices"]
        assert [device["state"] for device in devices] == [*nvidia, "ok", "ok"]
        assert [device["index"] for device in devices] == list(range(len(devices)))
        assert [device["verdict"]["free"] for device in devices][-2:] == [True, True]
        assert "driver not responding since" in answer.out
        env = {"BERTH_DRIVER_DEADLINE_MS": "3600000"}
    assert mixed.berth("run", "-n", "2", "--no-wait", "--", *MASKS, env=env).out == "0,1 none none\n"
    # The others end by themselves, a little after who asked them.
    eventually(lambda: len(probes(mixed)) == 1)
    end_probes(mixed)
