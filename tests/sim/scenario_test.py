"""The file: how it is found, read, re-read and refused; and berth-sim itself."""

import ctypes as c
import os
import subprocess
import sys

import pytest
from simulated import SIM

BERTH_SIM = str(SIM / "berth-sim")
INIT = (
    "import ctypes,sys; l=ctypes.CDLL('libnvidia-ml.so.1'); l.nvmlErrorString.restype=ctypes.c_char_p\n"
    "print(l.nvmlInit_v2(), l.nvmlInit_v2(), l.nvmlErrorString(999).decode())"
)


@pytest.mark.parametrize(
    "text, line, what",
    [
        ('driver = "550.1"\nutilisation = 1\n', 2, 'unknown key "utilisation"'),
        ('[[device]]\nmodel = "H100"\n\nutilization = 101\n', 4, "from 0 to 100"),
        ('[[device]]\nmodel = "H1000"\n', 2, "unknown model"),
        ("[[device]]\ncount = 2\n", 1, 'needs "model"'),
        ('[[device]]\nmodel = "H100"\nfoo\n', 3, ""),
        ('model"H100"\n', 1, ""),
        ('driver = "new"\n', 1, "version"),
        ('generation = "r999"\n', 1, "r535.54"),
        ('[[device]]\nmodel = "T4"\nmig = ["1g.5gb"]\n', 3, "no MIG"),
        ('[[device]]\nmodel = "A100"\nmig = ["9x"]\n', 3, "MIG profile"),
        ('[[device]]\nmodel = "A100"\n[[device.process]]\nused_mib = 1\n', 3, '"pid"'),
        ('[[device]]\nmodel = "A100"\ncount = 2\nuuid = "GPU-1"\n', 4, "shared by several"),
        ('[[device]]\nmodel = "A100"\n[[link]]\na = 0\nb = 7\n', 5, "from 0 to 0"),
        ('[[fault]]\ncall = "nvmlInit_v2"\n', 1, "does nothing"),
        ('[[fault]]\ncall = "x"\ndelay = "2 parsecs"\n', 3, "duration"),
    ],
)
def test_a_malformed_file_names_its_line_and_every_call_gives_999(machine, text, line, what):
    machine.write(text)
    checked = subprocess.run([BERTH_SIM, "--check", machine.file], capture_output=True, text=True)
    assert checked.returncode == 2
    assert checked.stderr.startswith(f"{machine.file}:{line}: ") and what in checked.stderr
    called = machine.python(INIT)
    assert called.stdout == "999 999 Unknown Error\n"
    assert called.stderr == "berth-sim: " + checked.stderr  # once, not once a call
    assert machine.smi().returncode == 255


def test_without_a_scenario_init_gives_999_and_says_what_to_do(machine, monkeypatch):
    env = {k: v for k, v in os.environ.items() if k != "BERTH_SIM"} | {"LD_LIBRARY_PATH": str(SIM / "r550")}
    for value, what in ((None, "BERTH_SIM is not set"), ("/nonexistent.toml", "No such file")):
        done = subprocess.run(
            [sys.executable, "-c", INIT],
            capture_output=True,
            text=True,
            env=env | ({"BERTH_SIM": value} if value else {}),
        )
        assert done.stdout.startswith("999 999") and what in done.stderr and done.stderr.count("\n") == 1


def test_a_changed_file_is_read_again_at_the_next_call(machine):
    nvml = machine.write('[[device]]\nmodel = "H100"\n').nvml()
    device = machine.device(nvml)
    value = c.c_uint()
    for degrees in (40, 55, 99, 41, 42, 43):
        machine.write(f'[[device]]\nmodel = "H100"\ntemperature = {degrees}\n')
        assert nvml.nvmlDeviceGetTemperature(device, 0, c.byref(value)) == 0 and value.value == degrees
    for degrees in (50, 51, 52, 53, 54):  # in place, same size, within one tick of file times
        machine.file.write_text(f'[[device]]\nmodel = "H100"\ntemperature = {degrees}\n')
        assert nvml.nvmlDeviceGetTemperature(device, 0, c.byref(value)) == 0 and value.value == degrees


def test_a_file_that_becomes_malformed_and_well_again(machine, capfd):
    nvml = machine.write('[[device]]\nmodel = "H100"\n').nvml()
    count = c.c_uint()
    machine.write("[[device]\n")
    assert nvml.nvmlDeviceGetCount_v2(c.byref(count)) == 999
    assert nvml.nvmlDeviceGetCount_v2(c.byref(count)) == 999
    assert capfd.readouterr().err.count(f"{machine.file}:1: ") == 1
    machine.write('[[device]]\nmodel = "H100"\ncount = 3\n')
    assert nvml.nvmlDeviceGetCount_v2(c.byref(count)) == 0 and count.value == 3


def test_uuids_and_bus_ids_do_not_change_between_runs_and_given_ones_win(machine):
    machine.write(
        '[[device]]\nmodel = "H100"\ncount = 2\n'
        '[[device]]\nmodel = "T4"\nuuid = "GPU-11111111-2222-3333-4444-555555555555"\npci = "0000:f1:00.0"\n'
    )
    first, second = machine.smi("-L").stdout, machine.smi("-L").stdout
    assert first == second and len(set(first.split("UUID: ")[1:])) == 3
    assert "Tesla T4 (UUID: GPU-11111111-2222-3333-4444-555555555555)" in first
    bus = machine.smi("--query-gpu=pci.bus_id", "--format=csv,noheader").stdout.split()
    assert bus == sorted(set(bus)) and bus[2] == "00000000:F1:00.0"


@pytest.mark.parametrize(
    "driver, generation",
    [
        ("450.51.06", "r450"),
        ("460.32.03", "r460"),
        ("495.29.05", "r470"),
        ("525.60.13", "r510"),
        ("535.86.05", "r535.54"),
        ("535.98", "r535.98"),
        ("535.183.01", "r535.104"),
        ("560.35.03", "r550"),
        ("570.86.15", "r570"),
        ("590.1", "r580"),
    ],
)
def test_the_driver_version_chooses_the_generation(machine, driver, generation):
    machine.write(f'driver = "{driver}"\n[[device]]\nmodel = "A100"\n')
    path = machine.run("printenv", "LD_LIBRARY_PATH").stdout.strip().split(":")[0]
    assert path == str(SIM / generation)
    assert machine.smi("--query-gpu=driver_version", "--format=csv,noheader").stdout.strip() == driver


def test_a_command_runs_inside_the_machine(machine):
    machine.write('[[device]]\nmodel = "H100"\n')
    script = 'echo "$BERTH_SIM $BERTH_DIR"; command -v nvidia-smi; exit 7'
    done = machine.run("sh", "-c", script)
    assert done.returncode == 7
    assert done.stdout.split() == [
        str(machine.file),
        f"{machine.file}.d/leases",
        str(SIM / "bin" / "nvidia-smi"),
    ]
    for directory in ("", "leases", "alloc"):
        assert os.stat(f"{machine.file}.d/{directory}").st_mode & 0o7777 == 0o1777


def test_a_machine_by_name(machine):
    done = subprocess.run(
        [BERTH_SIM, "2xa100+1xT4", "--", "nvidia-smi", "-L"], capture_output=True, text=True
    )
    assert [line.split(" (")[0] for line in done.stdout.splitlines()] == [
        "GPU 0: NVIDIA A100-SXM4-40GB",
        "GPU 1: NVIDIA A100-SXM4-40GB",
        "GPU 2: Tesla T4",
    ]
    printed = subprocess.run([BERTH_SIM, "--print", "2xa100+1xT4"], capture_output=True, text=True).stdout
    assert open(f"/tmp/berth-sim-{os.geteuid()}/2xA100+1xT4.toml").read() == printed


@pytest.mark.parametrize(
    "arguments, status, what",
    [
        (["--list-models"], 0, "NVIDIA H100 80GB HBM3"),
        (["--help"], 0, "Usage"),
        (["--version"], 0, "berth-sim"),
        ([], 2, "which machine"),
        (["8xH100"], 2, "which command"),
        (["8xNothing", "--", "true"], 2, "unknown model"),
        (["/nonexistent.toml", "--", "true"], 2, "No such file"),
        (["1xT4", "--", "/no/such/program"], 127, "No such file"),
        (["--print", "0xT4"], 2, "1 to 256"),
    ],
)
def test_berth_sim_says_what_is_wrong(arguments, status, what):
    done = subprocess.run([BERTH_SIM, *arguments], capture_output=True, text=True)
    assert done.returncode == status and what in done.stdout + done.stderr


def test_every_model_makes_a_machine(machine):
    known = subprocess.run([BERTH_SIM, "--list-models"], capture_output=True, text=True).stdout.splitlines()
    models = [line for line in known if "AMD" not in line]
    text = "".join(f'[[device]]\nmodel = "{line.split()[0]}"\n' for line in models)
    nvml = machine.write(text).nvml()
    name = c.create_string_buffer(96)
    for index, line in enumerate(models):
        assert nvml.nvmlDeviceGetName(machine.device(nvml, index), name, 96) == 0
        assert name.value.decode() in line
    assert len(machine.smi("-L").stdout.splitlines()) == len(models) >= 20


def test_a_machine_without_the_library(machine):
    machine.write('library_missing = true\n[[device]]\nmodel = "T4"\n')
    done = machine.python(
        "import ctypes\ntry: ctypes.CDLL('libnvidia-ml.so.1'); print('found')\nexcept OSError: print('missing')"
    )
    assert done.stdout == "missing\n"
    assert machine.smi().returncode == 12


def test_a_machine_without_devices(machine):
    machine.write('driver = "535.104.05"\n')
    nvml = machine.nvml("r535.104")
    count = c.c_uint(9)
    assert nvml.nvmlDeviceGetCount_v2(c.byref(count)) == 0 and count.value == 0
    done = machine.smi()
    assert (done.returncode, done.stdout) == (6, "No devices were found\n")
