"""Clients that we did not write must read the simulated machine correctly."""

import json
import sys

import pytest

pytest.importorskip("pynvml", reason="needs nvidia-ml-py")

LAB = (
    'driver = "{driver}"\n'
    '[[device]]\nmodel = "A100"\nutilization = 55\nmemory_utilization = 20\ntemperature = 61\npower_w = 250\n'
    "[[device.process]]\npid = {pid}\nused_mib = 30000\n"
    '[[device]]\nmodel = "1080Ti"\nhidden_mib = 700\nfan = 23\ncompute_mode = "prohibited"\n'
    '[[device.process]]\npid = {pid}\nused_mib = 120\ntype = "G"\n'
)

PYNVML = """
import json, pynvml as n
n.nvmlInit()
text = lambda x: x.decode() if isinstance(x, bytes) else x
out = {"driver": text(n.nvmlSystemGetDriverVersion()), "cuda": n.nvmlSystemGetCudaDriverVersion(), "devices": []}
def call(f, *a):
    try: return f(*a)
    except n.NVMLError as e: return e.value
for i in range(n.nvmlDeviceGetCount()):
    h = n.nvmlDeviceGetHandleByIndex(i)
    m = n.nvmlDeviceGetMemoryInfo(h)
    m2 = call(lambda: n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2))
    list_of = lambda f: [(p.pid, p.usedGpuMemory >> 20) for p in f(h)]
    out["devices"].append({
        "name": text(n.nvmlDeviceGetName(h)), "uuid": text(n.nvmlDeviceGetUUID(h)), "total": m.total >> 20, "used": m.used >> 20,
        "used2": m2 if isinstance(m2, int) else m2.used >> 20, "bus": text(n.nvmlDeviceGetPciInfo(h).busId),
        "cc": n.nvmlDeviceGetCudaComputeCapability(h), "power": n.nvmlDeviceGetPowerUsage(h), "minor": n.nvmlDeviceGetMinorNumber(h),
        "temperature": n.nvmlDeviceGetTemperature(h, 0), "gpu": n.nvmlDeviceGetUtilizationRates(h).gpu,
        "fan": call(n.nvmlDeviceGetFanSpeed, h), "mig": call(n.nvmlDeviceGetMigMode, h), "mode": n.nvmlDeviceGetComputeMode(h),
        "compute": call(list_of, n.nvmlDeviceGetComputeRunningProcesses if NEW else n.nvmlDeviceGetComputeRunningProcesses_v2),
        "graphics": call(list_of, n.nvmlDeviceGetGraphicsRunningProcesses if NEW else n.nvmlDeviceGetGraphicsRunningProcesses_v2),
        "remapped": call(n.nvmlDeviceGetRemappedRows, h), "limit": n.nvmlDeviceGetEnforcedPowerLimit(h)})
n.nvmlShutdown()
print(json.dumps(out))
"""


@pytest.mark.parametrize(
    "driver, cuda, new, prefix, reserve",
    [
        ("460.91.03", 11020, False, "", (424, 86)),
        ("470.256.02", 11040, False, "NVIDIA ", (424, 86)),
        ("510.108.03", 11060, True, "NVIDIA ", (0, 0)),
        ("535.98", 12020, False, "NVIDIA ", (0, 0)),
        ("535.104.05", 12020, True, "NVIDIA ", (0, 0)),
        ("550.163.01", 12040, True, "NVIDIA ", (0, 0)),
        ("570.124.06", 12080, True, "NVIDIA ", (0, 0)),
        ("580.65.06", 13000, True, "NVIDIA ", (0, 0)),
    ],
)
def test_the_official_bindings(machine, sleeper, driver, cuda, new, prefix, reserve):
    process = sleeper()
    done = machine.write(LAB.format(driver=driver, pid=process.pid)).python(f"NEW = {new}\n" + PYNVML)
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    assert (read["driver"], read["cuda"]) == (driver, cuda)
    first, second = read["devices"]
    assert first["name"] == prefix + "A100-SXM4-40GB" and second["name"] == prefix + "GeForce GTX 1080 Ti"
    assert [d["total"] for d in read["devices"]] == [40960 - reserve[0], 11264 - reserve[1]]
    if reserve[0]:
        assert [d["used"] for d in read["devices"]] == [30000, 820]
    else:
        assert [d["used"] for d in read["devices"]] == [30424, 906]
        assert [d["used2"] for d in read["devices"]] == [30000, 820]
    assert (first["compute"], first["graphics"]) == ([[process.pid, 30000]], [])
    assert (second["compute"], second["graphics"]) == ([], [[process.pid, 120]])
    assert (first["cc"], second["cc"]) == ([8, 0], [6, 1])
    assert (first["power"], first["limit"], first["temperature"], first["gpu"]) == (250000, 400000, 61, 55)
    assert (first["fan"], second["fan"], first["mig"], second["mig"]) == (3, 23, [0, 0], 3)
    assert (first["mode"], second["mode"], first["remapped"], second["remapped"]) == (0, 2, [0, 0, 0, 0], 3)
    assert first["bus"] == "00000000:01:00.0" and second["minor"] == 1


def test_the_official_bindings_miss_the_new_call_on_old_drivers(machine):
    code = (
        "import pynvml as n\nn.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0)\n"
        "for f in (n.nvmlDeviceGetComputeRunningProcesses_v2, n.nvmlDeviceGetComputeRunningProcesses_v3):\n"
        "    try: print(len(f(h)))\n    except n.NVMLError as e: print(type(e).__name__)"
    )
    outputs = {}
    for driver in ("450.51.06", "470.82", "535.98"):
        outputs[driver] = (
            machine.write(f'driver = "{driver}"\n[[device]]\nmodel = "T4"\n').python(code).stdout.split()
        )
    assert outputs["470.82"] == outputs["535.98"] == ["0", "NVMLError_FunctionNotFound"]
    assert outputs["450.51.06"] == ["NVMLError_FunctionNotFound"] * 2


def test_the_bindings_report_faults_as_exceptions(machine):
    machine.write('[[device]]\nmodel = "T4"\nlost = true\n')
    done = machine.python(
        "import pynvml as n\nn.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0)\n"
        "try: n.nvmlDeviceGetPowerUsage(h)\nexcept n.NVMLError_GpuIsLost as e: print(e)"
    )
    assert done.stdout == "GPU is lost\n"


def test_gpustat(machine, sleeper):
    pytest.importorskip("gpustat", reason="needs gpustat")
    process = sleeper()
    done = machine.write(LAB.format(driver="550.163.01", pid=process.pid)).run(
        sys.executable, "-m", "gpustat", "--json"
    )
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)["gpus"]
    assert (
        first["name"] == "NVIDIA A100-SXM4-40GB" and first["index"] == 0 and first["uuid"].startswith("GPU-")
    )
    assert (first["temperature.gpu"], first["utilization.gpu"], first["power.draw"], first["fan.speed"]) == (
        61,
        55,
        250,
        None,
    )
    assert (first["memory.used"], first["memory.total"]) == (30000, 40960)
    assert [(p["pid"], p["gpu_memory_usage"], p["command"]) for p in first["processes"]] == [
        (process.pid, 30000, "sleep")
    ]
    assert (second["memory.used"], second["fan.speed"]) == (820, 23)


NVITOP = """
import json
from nvitop import Device
out = []
for d in Device.all():
    out.append([d.name(), d.memory_used() >> 20, d.memory_total() >> 20, str(d.gpu_utilization()), d.temperature(),
                sorted((p.pid, p.type, p.gpu_memory() >> 20) for p in d.processes().values())])
print(json.dumps(out))
"""


@pytest.mark.parametrize(
    "driver",
    ["450.51.06", "470.82", "510.47.03", "535.54.03", "535.98", "535.104.05", "550.163.01", "580.65.06"],
)
def test_nvitop_on_every_way_of_listing_processes(machine, sleeper, driver):
    pytest.importorskip("nvitop", reason="needs nvitop")
    processes = sorted(sleeper().pid for _ in range(3))
    text = f'driver = "{driver}"\n[[device]]\nmodel = "H100"\nutilization = 7\ntemperature = 44\n'
    text += "".join(
        f"[[device.process]]\npid = {pid}\nused_mib = {100 + i}\n" for i, pid in enumerate(processes)
    )
    done = machine.write(text).python(NVITOP)
    assert done.returncode == 0, done.stderr
    ((name, used, total, utilization, temperature, rows),) = json.loads(done.stdout)
    assert name.endswith("H100 80GB HBM3") and used == 303 and (utilization, temperature) == ("7", 44)
    assert total == 81559 - (551 if int(driver.split(".")[0]) < 510 else 0)
    assert rows == [[pid, "C", 100 + i] for i, pid in enumerate(processes)]


def test_nvitop_sees_mig_instances(machine):
    pytest.importorskip("nvitop", reason="needs nvitop")
    machine.write('[[device]]\nmodel = "A100"\nmig = ["3g.20gb", "2g.10gb"]\n')
    done = machine.python(
        "from nvitop import Device\nfor m in Device(0).mig_devices(): "
        "print(m.name(), m.memory_total() >> 20, m.gpu_instance_id(), m.compute_instance_id())"
    )
    assert done.stdout.splitlines() == [
        "NVIDIA A100-SXM4-40GB MIG 3g.20gb 20224 1 0",
        "NVIDIA A100-SXM4-40GB MIG 2g.10gb 9984 3 0",
    ]


ACCOUNTING = """
import json, pynvml as n
n.nvmlInit()
h = n.nvmlDeviceGetHandleByIndex(0)
def told(pid):
    try: s = n.nvmlDeviceGetAccountingStats(h, pid)
    except n.NVMLError as e: return e.value
    return [s.gpuUtilization, s.maxMemoryUsage >> 20, s.time, s.startTime, s.isRunning]
try: pids = n.nvmlDeviceGetAccountingPids(h)
except n.NVMLError as e: pids = e.value
print(json.dumps({"mode": n.nvmlDeviceGetAccountingMode(h), "pids": pids, "ended": told(4000001), "lives": told(LIVES), "none": told(9)}))
"""


def test_the_official_bindings_read_the_accounting(machine, sleeper):
    pid = sleeper().pid
    scenario = (
        '[[device]]\nmodel = "A100"\naccounting = ON\n'
        "[[device.accounted]]\npid = 4000001\nutilization = 80\npeak_mib = 3072\nstarted_us = 7\nlasted_ms = 900\n"
        f"[[device.process]]\npid = {pid}\nused_mib = 500\nsm = 40\n"
    )
    program = ACCOUNTING.replace("LIVES", str(pid))
    told = json.loads(machine.write(scenario.replace("ON", "true")).python(program).stdout)
    assert told["mode"] == 1 and sorted(told["pids"]) == sorted([4000001, pid])
    assert told["ended"] == [80, 3072, 900, 7, 0]
    use, peak, lasted_ms, started_us, runs = told["lives"]
    assert (use, peak, lasted_ms, runs) == (40, 500, 0, 1) and started_us > 0
    assert told["none"] == 6
    told = json.loads(machine.write(scenario.replace("ON", "false")).python(program).stdout)
    assert (told["mode"], told["pids"], told["ended"]) == (0, [], 6)
