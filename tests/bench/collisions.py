"""Row 9: two scripts that start in the same instant."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable

import shelf
from look import UTILITIES, python_with, scheduler_script
from machines import MODEL, Machine
from results import FLOOR, OURS, PEER, Figure, Row, Table
from running import run
from servers import servers
from setting import Bench

ROUNDS = 1000
PEER_BUDGET_S = 6
OUR_BUDGET_S = 60
NOBODY = "-"
PATIENCE_S = 60

# Claims in its own process, where its lock and its placeholder are.
SAFE_GPU = """
import ctypes, safe_gpu, subprocess
def placeholder(device):
    cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
    if cuda.cuInit(0) or cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device): raise RuntimeError("no context")
    if cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 30)): raise RuntimeError("no memory")
    return context
safe_gpu.claim_gpus(1, placeholder_fn=placeholder)
subprocess.run([{take!r}])
"""
SCHEDULER = """
import gpu_scheduler, os, subprocess
with gpu_scheduler.GPUScheduler(num_gpus=1) as ids:
    os.environ["CUDA_VISIBLE_DEVICES"] = str(ids[0])
    subprocess.run([{take!r}])
"""
PICKED = "import os; {pick}; os.environ['CUDA_VISIBLE_DEVICES'] = str(found); os.execv({take!r}, [{take!r}])"


@dataclasses.dataclass
class Script:
    name: str
    role: str
    prepare: Callable[[], list[str]]
    command: str
    note: str = ""


def scripts(bench: Bench, started) -> list[Script]:
    take = bench.program("take")

    def masked(package: str, name: str, words: str) -> Callable[[], list[str]]:
        def prepare() -> list[str]:
            return [
                "sh",
                "-c",
                f"CUDA_VISIBLE_DEVICES=$({shelf.environment(package)}/bin/{name} {words}) exec {take}",
            ]

        return prepare

    def picked(package: str, pick: str, *more: str) -> Callable[[], list[str]]:
        return python_with(package, PICKED.format(pick=pick, take=take), *more)

    best_fit = f"{UTILITIES}from gpu_utilities.gpu_selector import BestFitGPUSelector as S; found = S().select(found, 1).cuda_id"
    return [
        Script("berth run", OURS, lambda: [bench.berth, "run", "--", take], "berth run -- JOB"),
        Script("CUDA's own choice", FLOOR, lambda: [take], "JOB", "asks no program: takes the first GPU"),
        Script("nvisel (nvitop)", PEER, masked("nvitop", "nvisel", "-n 1"), "CUDA_VISIBLE_DEVICES=$(nvisel -n 1) JOB"),
        Script("nvgpu", PEER, masked("nvgpu", "nvgpu", "available -l 1"),
               "CUDA_VISIBLE_DEVICES=$(nvgpu available -l 1) JOB"),
        Script("gpuselect", PEER, masked("gpuselect", "gpuselect", ""), "CUDA_VISIBLE_DEVICES=$(gpuselect) JOB",
               "chooses at random: one time in eight both choose the same GPU"),
        Script("GPUtil", PEER, picked("GPUtil", "import GPUtil; found = GPUtil.getAvailable(maxMemory=0.1)[0]"),
               "getAvailable()[0]"),
        Script("gpu_utilities", PEER, picked("gpu_utilities", best_fit, "-Wignore"), "BestFitGPUSelector().select"),
        Script("safe-gpu", PEER, python_with("safe-gpu", SAFE_GPU.format(take=take)), "claim_gpus(1)",
               "its placeholder opens a context under its lock"),
        Script("gpu_scheduler", PEER, scheduler_script(SCHEDULER.format(take=take)), "with GPUScheduler()",
               "a stand-in for PyTorch"),
        Script("canhazgpu", PEER, lambda: started.canhazgpu().run([take]), "canhazgpu run --gpus 1 -- JOB"),
        Script("Slurm srun", PEER, lambda: started.slurm().srun([take]), "srun --gres=gpu:1 JOB"),
    ]  # fmt: skip


def play(bench: Bench, script: Script, machine: Machine) -> Figure:
    """How many in a hundred rounds gave the same GPU to both."""
    bench.say(f"two at once: {script.name}")
    figure = Figure(script.name, script.role, script.command, note=script.note)
    budget = bench.seconds(OUR_BUDGET_S if script.role == OURS else PEER_BUDGET_S)
    try:
        words = [bench.program("pair"), str(bench.times(ROUNDS, 5)), str(budget), *script.prepare()]
        done = run(words, machine.environment, budget + 60)
    except (shelf.NotHad, OSError) as error:
        figure.trouble = str(error)
        return figure
    except subprocess.TimeoutExpired:
        figure.trouble = f"hangs: no answer in {budget + 60:.0f} s"
        return figure
    rounds = [line.split() for line in done.stdout.splitlines()]
    got = [pair for pair in rounds if len(pair) == 2 and NOBODY not in pair]
    if not got:
        alone = run(script.prepare(), machine.environment, PATIENCE_S)
        figure.trouble = f"gets none, not even alone: {(alone.stderr.strip().splitlines() or ['-'])[-1][:80]}"
        return figure
    doubled = sum(first == second for first, second in got)
    figure.values = [100 * doubled / len(got)]
    figure.more = {
        "both got the same": f"{doubled:,} of {len(got):,}",
        "one got none": f"{len(rounds) - len(got):,}",
    }
    return figure


def collide(bench: Bench) -> Row:
    row = Row(9, "collide", "Two at once",
              "Two scripts start in the same instant. Each asks for a GPU, and takes a context and 1 GiB on it. How"
              " often do both get the same GPU?")  # fmt: skip
    with Machine(bench, "collide", devices=8) as machine, servers(machine, 8) as started:
        figures = [play(bench, script, machine) for script in scripts(bench, started)]
    row.tables.append(
        Table("collide", f"8 × {MODEL}, all free", "% of the trials", figures, counts=True, compared=False)
    )
    return row
