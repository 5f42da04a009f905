"""Rows 1 to 4: whole programs that look, pick, and start a command."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable

import running
import shelf
from setting import Bench, ROOT
from contest import PATIENCE_S, Contest, Contestant
from machines import MODEL, Machine, RealMachine, has_driver
from markdown import number
from results import FLOOR, LIMIT, OURS, PEER, Row, Table
from servers import Servers, servers

SIZES = ((1, 2), (8, 32), (16, 200))  # devices, processes on them
Verify = Callable[[str], bool]


def numbers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"\d+", text)}


def python_with(package: str, script: str, *more: str) -> Callable[[], list[str]]:
    return lambda: [str(shelf.environment(package) / "bin/python"), *more, "-c", script]


def program_of(package: str, name: str, *words: str) -> Callable[[], list[str]]:
    return lambda: [str(shelf.environment(package) / "bin" / name), *words]


def scheduler_script(script: str) -> Callable[[], list[str]]:
    """gpu_scheduler from where it was put. Instead of PyTorch it gets standins/torch.py."""

    def prepare() -> list[str]:
        paths = [str(shelf.gpu_scheduler()), str(ROOT / "tests/bench/standins")]
        words = f"import sys; sys.path[:0] = {paths!r}; {script}"
        return [str(shelf.environment("gpu_scheduler") / "bin/python"), "-c", words]

    return prepare


# Row 1 --------------------------------------------------------------------------------------------

UTILITIES = "from gpu_utilities.obtainers.nvml import NvmlGPUInfoObtainer as N; found = N().gpus(); "


def listers(bench: Bench, machine: Machine) -> list[Contestant]:
    def shows_all(output: str) -> bool:
        return machine.pids is None or machine.pids <= numbers(output)

    def names_all(output: str) -> bool:
        return machine.devices is None or output.count(machine.title) >= machine.devices

    def has_line_each(output: str) -> bool:
        return machine.devices is None or len(output.strip().splitlines()) >= machine.devices

    berth = bench.berth
    return [
        Contestant("list_bare", LIMIT, lambda: [bench.program("list_bare")], shows_all,
                   note="a C program: the same driver calls, the same files of /proc"),
        Contestant("berth list", OURS, lambda: [berth, "list"], shows_all, shown_by=[berth, "list", "--json"]),
        Contestant("nvidia-smi", FLOOR, lambda: ["nvidia-smi"], note="the driver's own tool, on a simulated machine the simulator's: no peer"),
        Contestant("gpustat", PEER, program_of("gpustat", "gpustat", "--json"), shows_all),
        Contestant("nvitop", PEER, program_of("nvitop", "nvitop", "-1"), shows_all),
        Contestant("nvgpu", PEER, program_of("nvgpu", "nvgpu", "list"), shows_all),
        Contestant("GPUtil", PEER, python_with("GPUtil", "import GPUtil; GPUtil.showUtilization()"), has_line_each,
                   note="names no processes"),
        Contestant("gpuselect", PEER, python_with("gpuselect", "import gpuselect; print(gpuselect.gpustatus(False))"),
                   names_all, note="names no processes"),
        Contestant("gpu_utilities", PEER, python_with("gpu_utilities", UTILITIES + "print(found)", "-Wignore"),
                   names_all, note="names no processes"),
        Contestant("gpu_scheduler", PEER,
                   scheduler_script("from gpu_scheduler.gpu_info import get_gpu_info; print(get_gpu_info())"),
                   names_all, shown="get_gpu_info()", note="names no processes"),
    ]  # fmt: skip


def on_real_driver(
    bench: Bench, key: str, entrants: Callable[[Machine, Servers], list[Contestant]]
) -> list[Table]:
    """The same on this machine's own GPUs, where it has some."""
    if not has_driver():
        return []
    with RealMachine(bench, f"{key}-real") as machine, servers(machine, devices=8) as started:
        figures = Contest(bench.measure, machine.environment, bench.runs).hold(entrants(machine, started))
    return [Table(f"{key}-real", "this machine's own driver", "ms", figures)]


def look(bench: Bench) -> Row:
    row = Row(
        1, "look", "Look", "A program lists all devices once, with their readings and the processes on them."
    )
    for size, processes in SIZES:
        with Machine(bench, f"look{size}", devices=size, busy=size, process_count=processes) as machine:
            figures = Contest(bench.measure, machine.environment, bench.runs).hold(listers(bench, machine))
        row.tables.append(Table(f"look-{size}", f"{size} × {MODEL}, {processes} processes", "ms", figures))
    row.tables += on_real_driver(bench, "look", lambda machine, _: listers(bench, machine))
    return row


# Row 2 --------------------------------------------------------------------------------------------


def idle_in_gpustat(text: str) -> set[int]:
    return {gpu["index"] for gpu in json.loads(text)["gpus"] if not gpu["processes"]}


def pickers(bench: Bench, is_free: Verify) -> list[Contestant]:
    def idle(output: str) -> bool:
        return is_free(" ".join(map(str, idle_in_gpustat(output))))

    best_fit = (
        UTILITIES
        + "from gpu_utilities.gpu_selector import BestFitGPUSelector as S; print(S().select(found, 1).cuda_id)"
    )
    return [
        Contestant("empty C program", FLOOR, lambda: [bench.program("empty")]),
        Contestant("python3 -c pass", FLOOR, lambda: [shelf.PYTHON, "-c", "pass"]),
        Contestant("bare", LIMIT, lambda: [bench.program("bare")], is_free, note="a C program: the same driver calls"),
        Contestant("berth pick", OURS, lambda: [bench.berth, "pick"], is_free),
        Contestant("nvisel (nvitop)", PEER, program_of("nvitop", "nvisel", "-n", "1"), is_free),
        Contestant("nvgpu", PEER, program_of("nvgpu", "nvgpu", "available", "-l", "1"), is_free),
        Contestant("gpustat", PEER, program_of("gpustat", "gpustat", "--json"), idle,
                   note="the least question that it answers"),
        Contestant("gpuselect", PEER, program_of("gpuselect", "gpuselect"), is_free),
        Contestant("GPUtil", PEER,
                   python_with("GPUtil", "import GPUtil; print(GPUtil.getAvailable(maxMemory=0.1)[0])"), is_free),
        Contestant("gpu_utilities", PEER, python_with("gpu_utilities", best_fit, "-Wignore"), is_free),
        Contestant("safe-gpu", PEER,
                   python_with("safe-gpu", "from safe_gpu.safe_gpu import get_free_gpus; print(get_free_gpus()[0])"),
                   is_free),
        Contestant("gpu_scheduler", PEER,
                   scheduler_script("sys.argv[1:] = ['--no-wait']; from gpu_scheduler.cli import main; main()"),
                   is_free, shown="gpu-scheduler --no-wait"),
    ]  # fmt: skip


def free_of(machine: Machine) -> Verify:
    def is_free(output: str) -> bool:
        found = numbers(output)
        return machine.free is None or (bool(found) and found <= machine.free)

    return is_free


def pick(bench: Bench) -> Row:
    row = Row(
        2, "pick", "Pick", "Which one of eight GPUs is free? A whole process, from its start to its end."
    )
    with Machine(bench, "pick", devices=8, busy=4, process_count=4) as machine:
        figures = Contest(bench.measure, machine.environment, bench.runs).hold(
            [*pickers(bench, free_of(machine)), where_gpus_were_leased(bench, machine)]
        )
    row.tables.append(Table("pick", f"one of 8 × {MODEL}, 4 in use", "ms", figures))
    row.tables += on_real_driver(bench, "pick", lambda machine, _: pickers(bench, free_of(machine)))
    row.facts += choices(bench)
    return row


def where_gpus_were_leased(bench: Bench, machine: Machine) -> Contestant:
    """Once GPUs were leased, a look also asks the kernel for its locks."""
    environment = {"BERTH_DIR": str(machine.directory / "used")}

    def prepare() -> list[str]:
        lease_all = [bench.berth, "run", "-n", "4", "--", "true"]
        leased = running.run(lease_all, {**machine.environment, **environment}, PATIENCE_S)
        if leased.returncode != 0:
            raise shelf.NotHad(leased.stderr.strip())
        return [bench.berth, "pick"]

    return Contestant(
        "berth pick, GPUs were leased before",
        FLOOR,
        prepare,
        free_of(machine),
        note="Linux takes some milliseconds to tell its locks, unless it was asked right before",
        environment=environment,
    )


def choices(bench: Bench) -> list[str]:
    """What the choice by topology alone takes, in one process."""
    told = running.run([bench.program("choose_bench")], dict(os.environ), PATIENCE_S).stdout
    timed = [line.split(" ", 1) for line in told.splitlines()]
    parts = [f"{machine} in {number(int(nanoseconds) / 1e6)} ms" for nanoseconds, machine in timed]
    return [f"Berth alone, 8 of 16 GPUs chosen by topology: {'; '.join(parts)}."] if parts else []


# Row 3 --------------------------------------------------------------------------------------------

CLAIM = """
import subprocess, safe_gpu
safe_gpu.claim_gpus(1, placeholder_fn=lambda device: None)
subprocess.run(["true"], check=True)
"""
SCHEDULE = "import gpu_scheduler, subprocess\nwith gpu_scheduler.GPUScheduler(): subprocess.run(['true'], check=True)"


def shell(package: str, name: str, words: str) -> Callable[[], list[str]]:
    """As its users start a command on what it picks."""

    def prepare() -> list[str]:
        picker = shelf.environment(package) / "bin" / name
        return ["sh", "-c", f"CUDA_VISIBLE_DEVICES=$({picker} {words}) exec true"]

    return prepare


def starters(bench: Bench, started: Servers) -> list[Contestant]:
    lock = str(bench.directory / "start.lock")
    mask = "CUDA_VISIBLE_DEVICES=$({}) true"
    return [
        Contestant("true", FLOOR, lambda: ["true"]),
        Contestant("bare, flock, exec", LIMIT, lambda: [bench.program("bare"), lock, "true"],
                   shown="bare FILE true", note="a C program: the same driver calls, one lock, exec"),
        Contestant("berth run", OURS, lambda: [bench.berth, "run", "--", "true"], note="holds a lease"),
        Contestant("berth run --exec", OURS, lambda: [bench.berth, "run", "--exec", "--", "true"],
                   note="becomes the command"),
        Contestant("nvisel (nvitop)", PEER, shell("nvitop", "nvisel", "-n 1"), shown=mask.format("nvisel -n 1"),
                   note="holds nothing"),
        Contestant("nvgpu", PEER, shell("nvgpu", "nvgpu", "available -l 1"), shown=mask.format("nvgpu available -l 1"),
                   note="holds nothing"),
        Contestant("gpuselect", PEER, program_of("gpuselect", "gpuselect", "--", "true"), note="holds nothing"),
        Contestant("safe-gpu", PEER, python_with("safe-gpu", CLAIM), shown="claim_gpus(1), subprocess.run",
                   note="without the CUDA context that its placeholder opens"),
        Contestant("gpu_scheduler", PEER, scheduler_script(SCHEDULE), shown="with GPUScheduler(): subprocess.run",
                   note="a stand-in for PyTorch, whose import takes a second and more"),
        Contestant("canhazgpu", PEER, lambda: started.canhazgpu().run(["true"]), note="asks no driver: its fake provider"),
        Contestant("Slurm srun", PEER, lambda: started.slurm().srun(["true"]), note="asks no driver"),
        Contestant("task-spooler", FLOOR, lambda: started.spooler().wait(["true"]), note="knows no GPUs"),
    ]  # fmt: skip


def start(bench: Bench) -> Row:
    row = Row(3, "start", "Pick and start a command", "A free GPU is picked, and `true` runs on it.")
    with (
        Machine(bench, "start", devices=8, busy=4, process_count=4) as machine,
        servers(machine, devices=8) as started,
    ):
        figures = Contest(bench.measure, machine.environment, bench.runs).hold(starters(bench, started))
    row.tables.append(Table("start", f"on one of 8 × {MODEL}, 4 in use", "ms", figures))
    row.tables += on_real_driver(bench, "start", lambda _, started: starters(bench, started))
    return row


# Row 4 --------------------------------------------------------------------------------------------

# Which device is free by what pynvml tells: the least that answers what pick answers.
PYNVML = """
import pynvml
pynvml.nvmlInit()
for index in range(pynvml.nvmlDeviceGetCount()):
    device = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(device)
    pynvml.nvmlDeviceGetGraphicsRunningProcesses(device)
    mode = pynvml.nvmlDeviceGetComputeMode(device)
    if not pynvml.nvmlDeviceGetComputeRunningProcesses(device) and memory.used < 1 << 30 and mode == 0:
        print(index)
        break
"""
NVITOP = "import nvitop; print(nvitop.select_devices(format='index', min_count=1, max_count=1)[0])"


def importers(bench: Bench, is_free: Verify) -> list[Contestant]:
    python = bench.python
    bare = ["sh", "-c", f"{python} -I -c pass; exec {bench.program('bare')}"]
    return [
        Contestant("python -I -c pass", FLOOR, lambda: [python, "-I", "-c", "pass"]),
        Contestant("Python, then bare", LIMIT, lambda: bare, is_free, shown="python -I -c pass; bare",
                   note="an interpreter that imports nothing, and the C program of row 2, by a shell"),
        Contestant("berth.pick()", OURS, lambda: [python, "-c", "import berth; berth.pick()"], is_free,
                   shown_by=[python, "-c", "import berth; print(berth.pick())"]),
        Contestant("pynvml", PEER, python_with("pynvml", PYNVML), is_free, shown="the same question, by hand"),
        Contestant("nvitop", PEER, python_with("nvitop", NVITOP), is_free),
        Contestant("gpuselect", PEER,
                   python_with("gpuselect", "import gpuselect; print(gpuselect.gpuselect(silent=True))"), is_free),
        Contestant("GPUtil", PEER,
                   python_with("GPUtil", "import GPUtil; print(GPUtil.getAvailable(maxMemory=0.1)[0])"), is_free),
        Contestant("nvgpu", PEER, python_with("nvgpu", "import nvgpu; print(nvgpu.available_gpus()[0])"), is_free),
        Contestant("safe-gpu", PEER,
                   python_with("safe-gpu", "from safe_gpu.safe_gpu import get_free_gpus; print(get_free_gpus()[0])"),
                   is_free),
        Contestant("gpu_utilities", PEER, pickers(bench, is_free)[9].prepare, is_free),
    ]  # fmt: skip


def import_and_pick(bench: Bench) -> Row:
    row = Row(
        4, "python", "Pick in Python", "A new interpreter imports the package and picks one of eight GPUs."
    )
    with Machine(bench, "python", devices=8, busy=4, process_count=4) as machine:
        figures = Contest(bench.measure, machine.environment, bench.runs).hold(
            importers(bench, free_of(machine))
        )
    row.tables.append(Table("python", f"one of 8 × {MODEL}, 4 in use", "ms", figures))
    row.tables += on_real_driver(bench, "python", lambda machine, _: importers(bench, free_of(machine)))
    return row
