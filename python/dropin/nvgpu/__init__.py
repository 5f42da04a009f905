"""nvgpu on Berth: which GPUs are available, who uses them, and a page for many machines.

    >>> import nvgpu
    >>> nvgpu.available_gpus()  # doctest: +SKIP
    ['0', '2']

It only looks: nothing is held for the caller, and a GPU that somebody leased is not available.
"""

from __future__ import annotations

import subprocess

import berth
from berth_dropin import cards
from berth_dropin.beside import warn_of_original

__all__ = ["available_gpus", "gpu_info"]

warn_of_original("nvgpu")


def _run_cmd(cmd: list[str]) -> list[str]:
    """The lines that a command prints, which programs of the original ask for; ours runs none."""
    return subprocess.check_output(cmd).decode("UTF-8").split("\n")


class NoGpu(berth.NoDriver, FileNotFoundError, subprocess.CalledProcessError):
    """No GPU here. The original starts `nvidia-smi`, and programs catch what comes of that: there is no such program, or
    it fails."""

    def __init__(self, message: str):
        berth.NoDriver.__init__(self, message)
        self.returncode, self.cmd, self.output, self.stderr = 1, ["nvidia-smi"], None, message

    def __str__(self) -> str:
        return str(self.args[0])


def _described(gpu) -> dict:
    """A board that does not answer counts as full."""
    used, total = (gpu.memory.used_bytes or 0) >> 20, (gpu.memory.total_bytes or 0) >> 20
    known = total and gpu.memory.used_bytes is not None
    return {
        "index": str(gpu.index),
        "type": gpu.name or "?",
        "uuid": gpu.uuid,
        "mem_used": used,
        "mem_total": total,
        "mem_used_percent": 100.0 * used / total if known else 100.0,
    }


def boards() -> list:
    """All of this machine. Raises NoGpu, also where the driver knows none: nobody can compute there."""
    try:
        found = cards.gpus()
    except berth.NoDriver as error:
        raise NoGpu(str(error)) from error
    if not found:
        raise NoGpu("the driver knows no GPU on this machine")
    return found


def gpu_info() -> list[dict]:
    """A dict a GPU: index (str), type, uuid, mem_used and mem_total (MiB), mem_used_percent. In the order of
    `list_gpus.device_statuses()`, and the same GPUs. Raises berth.NoDriver, which here is a FileNotFoundError, too."""
    return [_described(gpu) for gpu in boards()]


_our_gpu_info = gpu_info


def _priority(gpu, idle: bool) -> tuple:
    return (idle, gpu.compute_capability or (0, 0), gpu.memory.free_bytes or 0, -gpu.index)


def available_gpus(max_used_percent: float = 20.0) -> list[str]:
    """Indices of the GPUs whose memory is used to at most `max_used_percent` and that nobody leased: those that
    nobody uses first, of them the most capable, then those with the most free memory. Raises berth.NoDriver."""
    if gpu_info is not _our_gpu_info:  # a program has put its own in its place
        return [gpu["index"] for gpu in gpu_info() if gpu["mem_used_percent"] <= max_used_percent]
    boards()
    look = cards.Look()
    best_first = sorted(look.on_offer(), key=lambda gpu: _priority(gpu, look.is_idle(gpu)), reverse=True)
    return [str(gpu.index) for gpu in best_first if _described(gpu)["mem_used_percent"] <= max_used_percent]
