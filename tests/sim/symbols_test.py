"""What each generation exports, judged by nm on the built files."""

import pathlib
import re
import subprocess

import pytest
from simulated import GENERATIONS, SIM

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "sim"


def exported(generation, library="libnvidia-ml.so.1"):
    out = subprocess.run(
        ["nm", "-D", "--defined-only", SIM / generation / library], capture_output=True, text=True, check=True
    ).stdout
    return {line.split()[-1] for line in out.splitlines()}


def listed(file, generation):
    branch = int(re.match(r"r(\d+)", generation).group(1))
    names = set()
    for line in (SOURCE / file).read_text().splitlines():
        if line.startswith("#"):
            continue
        name, since, _, *absent = line.split()
        if int(since) <= branch and generation not in "".join(absent).lstrip("-").split(","):
            names.add(name)
    return names


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_generation_exports_what_its_list_says_and_nothing_else(generation):
    assert exported(generation) == listed("nvml_symbols.txt", generation)
    assert exported(generation, "libcuda.so.1") == listed("cuda_symbols.txt", generation)


V2 = "nvmlDeviceGetComputeRunningProcesses_v2"
V3 = "nvmlDeviceGetComputeRunningProcesses_v3"
MEMORY_V2 = "nvmlDeviceGetMemoryInfo_v2"
CONFIDENTIAL = "nvmlDeviceGetConfComputeMemSizeInfo"
DETAIL = "nvmlDeviceGetRunningProcessDetailList"
REASONS = "nvmlDeviceGetCurrentClocksEventReasons"
TEMPERATURE_V = "nvmlDeviceGetTemperatureV"


@pytest.mark.parametrize(
    "generation, has, lacks",
    [
        ("r450", [], [V2, V3, MEMORY_V2, "nvmlDeviceGetAttributes_v2"]),
        ("r460", [V2], [V3, MEMORY_V2]),
        ("r470", [V2], [V3, MEMORY_V2]),
        ("r510", [V2, V3, MEMORY_V2], [CONFIDENTIAL, REASONS]),
        ("r535.54", [V2, V3, CONFIDENTIAL, REASONS], [DETAIL]),
        ("r535.98", [V2, CONFIDENTIAL], [V3, DETAIL]),
        ("r535.104", [V2, V3, CONFIDENTIAL, DETAIL], [TEMPERATURE_V]),
        ("r550", [V3, DETAIL], [TEMPERATURE_V]),
        ("r570", [TEMPERATURE_V], []),
        ("r580", [TEMPERATURE_V], []),
    ],
)
def test_the_symbols_that_clients_decide_by(generation, has, lacks):
    names = exported(generation)
    assert [n for n in has if n not in names] == []
    assert [n for n in lacks if n in names] == []


@pytest.mark.release_only
@pytest.mark.parametrize("library", ["libnvidia-ml.so.1", "libcuda.so.1"])
def test_a_library_needs_only_the_c_library_and_goes_by_its_own_name(library):
    out = subprocess.run(
        ["readelf", "-d", SIM / "r550" / library], capture_output=True, text=True, check=True
    ).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", out))
    assert needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert re.findall(r"SONAME.*\[(.*)\]", out) == [library]


def test_nvtop_finds_its_first_name():
    assert (SIM / "r550" / "libnvidia-ml.so").resolve() == (SIM / "r550" / "libnvidia-ml.so.1").resolve()
