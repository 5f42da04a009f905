"""berth --sim with AMD cards: the whole machine from one word."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest
from schemas import checked_document
from simulated_machine import BUILD, DEADLINE_S

TOTAL = 206141652992
HOLD = 'echo "$ROCR_VISIBLE_DEVICES ${CUDA_VISIBLE_DEVICES-none}"; read line'


@pytest.fixture
def sim(tmp_path):
    """sim(MACHINE, words…): the output of berth on a machine that nobody else is on."""
    (tmp_path / "home").mkdir()
    (tmp_path / "site.toml").touch()
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "BERTH_SITE_FILE": str(tmp_path / "site.toml"),
    }
    running = []

    def start(machine, *words):
        scenario = tmp_path / f"{machine}.toml"
        if not scenario.exists():
            scenario.write_bytes(subprocess.check_output([BUILD / "sim/berth-sim", "--print", machine]))
        process = subprocess.Popen(
            [BUILD / "berth", "--sim", scenario, *words],
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        running.append(process)
        return process

    def run(machine, *words, status=0):
        process = start(machine, *words)
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == status, err
        return out

    run.start = start
    run.env = env
    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_amd_cards_are_a_machine_of_their_own(sim):
    listed = checked_document(json.loads(sim("4xMI300X", "list", "--json")), "list")
    assert listed["source"] == "amd"
    devices = listed["devices"]
    assert [(device["vendor"], device["name"]) for device in devices] == [
        ("amd", "AMD Instinct MI300X OAM")
    ] * 4
    assert all(device["memory"]["total_bytes"] == TOTAL for device in devices)
    assert all(device["verdict"]["free"] for device in devices)
    assert len({device["uuid"] for device in devices} | {device["pci_bus_id"] for device in devices}) == 8


def test_its_cards_have_readings_and_fabric(sim):
    device = json.loads(sim("2xMI300X", "list", "--json"))["devices"][1]
    assert (device["temperature_c"], device["power_limit_mw"]) == (42, 750_000)
    assert device["utilization_percent"] == 0


def test_pick_gives_rocms_mask(sim):
    assert sim("4xMI300X", "pick", "-n", "2") == "0,1\n"
    picked = json.loads(sim("4xMI300X", "pick", "-n", "2", "--json"))
    assert picked["environment"] == {"ROCR_VISIBLE_DEVICES": "0,1"}


def test_two_runs_never_have_one_card(sim):
    jobs = [sim.start("4xMI300X", "run", "-n", "2", "--", "sh", "-c", HOLD) for _ in range(2)]
    masks = [job.stdout.readline().split() for job in jobs]
    assert sorted(mask for mask, _ in masks) == ["0,1", "2,3"]
    assert {cuda for _, cuda in masks} == {"none"}
    sim("4xMI300X", "run", "-n", "1", "--no-wait", "--", "true", status=75)
    for job in jobs:
        assert job.communicate("\n", timeout=DEADLINE_S) and job.returncode == 0


def test_many_that_begin_at_once_are_on_one_machine(sim):
    jobs = [sim.start("8xMI300X", "run", "--", "sh", "-c", HOLD) for _ in range(8)]
    assert sorted(job.stdout.readline() for job in jobs) == [f"{i} none\n" for i in range(8)]


def test_there_is_no_nvidia_driver_beside_amd_cards_alone(sim):
    load = "import ctypes; ctypes.CDLL('libnvidia-ml.so.1')"
    failed = sim.start("4xMI300X", "run", "--", "python3", "-c", load)
    assert "OSError" in failed.communicate(timeout=DEADLINE_S)[1]
    listed = sim.start("4xMI300X", "list")
    listed.wait(timeout=DEADLINE_S)
    assert listed.stderr.read() == ""


def test_both_makers_are_in_one_machine(sim):
    devices = json.loads(sim("2xH100+2xMI300X", "list", "--json"))["devices"]
    assert [device["vendor"] for device in devices] == ["nvidia", "nvidia", "amd", "amd"]
    assert sim("2xH100+2xMI300X", "pick", "--where", "vendor=amd") == "0\n"
    show = 'echo "${ROCR_VISIBLE_DEVICES-none} $CUDA_VISIBLE_DEVICES"'
    assert sim("2xH100+2xMI300X", "run", "-n", "2", "--", "sh", "-c", show) == "none 0,1\n"


def test_a_machine_without_amd_cards_shows_none_of_another(sim):
    """What runs inside sees the machine that was asked for, not one around it."""
    root = sim("1xT4", "run", "--", "sh", "-c", 'ls "$BERTH_SIM_ROOT/sys"; echo "$BERTH_SIM_ROOT"').strip()
    assert "\n" not in root and os.path.isdir(root)
    assert [d["vendor"] for d in json.loads(sim("1xT4", "list", "--json"))["devices"]] == ["nvidia"]


def test_rocms_own_tool_reads_the_same_memory(sim):
    """rocm-smi knows only /sys: the tree takes its place, in a mount namespace of the tool's own."""
    if shutil.which("rocm-smi") is None:
        pytest.skip("needs rocm-smi")
    root = pathlib.Path(sim("4xMI300X", "run", "--", "sh", "-c", 'echo "$BERTH_SIM_ROOT"').strip())
    for card in range(4):
        (root / f"sys/class/drm/card{card}/device/mem_info_vram_used").write_text(f"{(card + 1) << 28}\n")
    ours = [device["memory"] for device in json.loads(sim("4xMI300X", "list", "--json"))["devices"]]
    mounts = 'mount --bind "$1" /sys && mount -t tmpfs none /dev/shm'
    if subprocess.run(["unshare", "-m", "sh", "-c", mounts, "sh", root / "sys"]).returncode != 0:
        pytest.skip("needs the right to mount")
    ask = f"{mounts} && exec rocm-smi --showmeminfo vram --json"
    said = subprocess.check_output(
        ["unshare", "-m", "sh", "-c", ask, "sh", root / "sys"], text=True, timeout=DEADLINE_S
    )
    theirs = [card for _, card in sorted(json.loads(said).items())]
    assert [int(card["VRAM Total Memory (B)"]) for card in theirs] == [m["total_bytes"] for m in ours]
    assert [int(card["VRAM Total Used Memory (B)"]) for card in theirs] == [m["used_bytes"] for m in ours]
    assert len({m["used_bytes"] for m in ours}) == 4


def test_the_word_alone_is_enough(sim):
    """As a user types it: the machine lies in a folder of the user's own."""
    done = subprocess.run(
        [BUILD / "berth", "--sim", "3xmi300x", "list", "--json"],
        env=sim.env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert [device["vendor"] for device in json.loads(done.stdout)["devices"]] == ["amd"] * 3


def test_an_unknown_amd_card_is_refused(sim, tmp_path):
    (tmp_path / "bad.toml").write_text('[[amd]]\nmodel = "MI9"\n')
    assert "bad.toml:2" in sim.start("bad", "list").communicate(timeout=DEADLINE_S)[1]
