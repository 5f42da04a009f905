"""nvgpu on Berth: which GPUs are available, who uses them, and a page for many machines.

    >>> import nvgpu
    >>> nvgpu.available_gpus()  # doctest: +SKIP
    ['0', '2']

It only looks: nothing is held for the caller, and a GPU that somebody leased is not available.
"""

from __future__ import annotations

import berth
from berth_dropin import cards
from berth_dropin.beside import warn_of_original

__all__ = ["available_gpus", "gpu_info"]

warn_of_original("nvgpu")


def _run_cmd(cmd: list[str]) -> list[str]:
    """The lines that a command prints, which programs of the original ask for; ours runs none."""
    import subprocess

    return subprocess.check_output(cmd).decode("UTF-8").split("\n")


def _described(gpu) -> dict:
    used, total = gpu.memory.used_bytes >> 20, gpu.memory.total_bytes >> 20
    return {
        "index": str(gpu.index),
        "type": gpu.name,
        "uuid": gpu.uuid,
        "mem_used": used,
        "mem_total": total,
        "mem_used_percent": 100.0 * used / total,
    }


def boards() -> list:
    """All of this machine. Raises berth.NoDriver, also where the driver knows none: nobody can compute there."""
    found = cards.gpus()
    if not found:
        raise berth.NoDriver("the driver knows no GPU on this machine")
    return found


def _known(gpus) -> list:
    return [gpu for gpu in gpus if gpu.memory.total_bytes and gpu.memory.used_bytes is not None]


def gpu_info() -> list[dict]:
    """A dict a GPU: index (str), type, uuid, mem_used and mem_total (MiB), mem_used_percent. One that does not
    answer is left out. Raises berth.NoDriver."""
    return [_described(gpu) for gpu in _known(boards())]


def _priority(gpu, idle: bool) -> tuple:
    return (idle, gpu.compute_capability or (0, 0), gpu.memory.free_bytes or 0, -gpu.index)


def available_gpus(max_used_percent: float = 20.0) -> list[str]:
    """Indices of the GPUs whose memory is used to at most `max_used_percent` and that nobody leased: those that
    nobody uses first, of them the most capable, then those with the most free memory. Raises berth.NoDriver."""
    boards()
    look = cards.Look()
    best_first = sorted(
        _known(look.on_offer()), key=lambda gpu: _priority(gpu, look.is_idle(gpu)), reverse=True
    )
    return [str(gpu.index) for gpu in best_first if _described(gpu)["mem_used_percent"] <= max_used_percent]
