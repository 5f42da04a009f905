"""What gpu_scheduler tells of the GPUs. Ids count as PyTorch counts; MiB, W and percent; what a board cannot
tell is 0."""

from __future__ import annotations

import importlib.util
import logging
from typing import Optional

import berth
from berth_dropin import cards, cuda_order, scheduler_locks

from gpu_scheduler.banned import load_banned

logger = logging.getLogger("gpu_scheduler")

LOCK_DIR = scheduler_locks.DIRECTORY
# Ids, and parts of names, that are never taken. A program may change both lists.
BANNED_GPUS, BANNED_GPU_NAMES = load_banned()


def numbered() -> dict:
    """Id -> device. Where PyTorch is not installed, in PCI bus order, which CUDA is then told to count in."""
    gpus = cards.usable()
    if importlib.util.find_spec("torch") is None:
        cuda_order.count_by_bus()
    by_cuda = cuda_order.ordinals(gpus)
    return dict(enumerate(gpus)) if by_cuda is None else by_cuda


# As the original, which has 0 for what a board does not tell.


def _mib(amount: Optional[int]) -> int:
    return (amount or 0) >> 20


def _watts(amount_mw: Optional[int]) -> float:
    return (amount_mw or 0) / 1000


def described(gpu_id: int, gpu) -> dict:
    return {
        "gpu_id": gpu_id,
        "name": gpu.name,
        "memory_used": _mib(gpu.memory.used_bytes),
        "memory_total": _mib(gpu.memory.total_bytes),
        "memory_free": _mib(gpu.memory.free_bytes),
        "power_draw": _watts(gpu.power_mw),
        "power_limit": _watts(gpu.power_limit_mw),
        "utilization": gpu.utilization_percent or 0,
    }


def _numbered_or_none() -> dict:
    """{} where there is no driver: a program asks, is told of no GPU, and goes on without."""
    try:
        return numbered()
    except berth.NoDriver as error:
        logger.error("CUDA is not available: %s", error)
        return {}


def get_gpu_info() -> list[dict]:
    """A dict a GPU: gpu_id, name, memory_used, memory_total, memory_free, power_draw, power_limit, utilization. []
    where there is no driver, as with all that follows."""
    infos = {gpu_id: described(gpu_id, gpu) for gpu_id, gpu in _numbered_or_none().items()}
    for part in _replaced(_PARTS):
        for info in part():
            infos.setdefault(info["gpu_id"], {}).update(info)
    return list(infos.values())


def _parts(*keys: str) -> list[dict]:
    return [
        {key: value for key, value in described(gpu_id, gpu).items() if key in ("gpu_id", *keys)}
        for gpu_id, gpu in _numbered_or_none().items()
    ]


def get_gpu_memory_usage() -> list[dict]:
    return _parts("memory_used", "memory_total", "memory_free")


def get_gpu_names() -> list[dict]:
    return _parts("name")


def get_gpu_power_usage() -> list[dict]:
    return _parts("power_draw", "power_limit")


def get_gpu_utilization() -> list[dict]:
    return _parts("utilization")


# A program, such as a test of one, may put functions of its own in place of these.
_PARTS = {
    each.__name__: each
    for each in (get_gpu_memory_usage, get_gpu_power_usage, get_gpu_utilization, get_gpu_names)
}
_OURS = {**_PARTS, "get_gpu_info": get_gpu_info}


def _replaced(ours: dict) -> list:
    return [globals()[name] for name, function in ours.items() if globals()[name] is not function]


def are_told_otherwise() -> bool:
    """Whether a program says itself what its GPUs are."""
    return bool(_replaced(_OURS))


def is_there(info: dict) -> bool:
    """Whether this is a GPU of this machine, as far as the name tells; a name may be missing."""
    gpu = _numbered_or_none().get(info["gpu_id"])
    return gpu is not None and info.get("name", gpu.name) == gpu.name


def get_total_num_gpus() -> int:
    return len(_numbered_or_none())


def is_banned(gpu_id: int, name: str) -> bool:
    return gpu_id in BANNED_GPUS or any(part in name for part in BANNED_GPU_NAMES)


def _at_most(value: Optional[float], bound: Optional[float]) -> bool:
    """A reading that is not there is not held against the card, nor is one that nobody asked for."""
    return value is None or bound is None or value <= bound


def _passes(info: dict, memory_gb: float, power_w: Optional[float], utilization: Optional[float]) -> bool:
    return (
        not is_banned(info["gpu_id"], info.get("name", ""))
        and info.get("memory_free", 0) >= memory_gb * 1024
        and _at_most(info.get("power_draw"), power_w)
        and _at_most(info.get("utilization"), utilization)
    )


def find_free_gpus(
    memory_free_threshold_gb: float = 1,
    power_threshold_w: Optional[float] = None,
    utilization_threshold_percent: Optional[float] = 1,
) -> list[dict]:
    """Those of `get_gpu_info()` with at least so many GiB free, that draw at most so many W, are busy to at most so
    many percent (None: not asked), and that nobody has leased or locked. It holds nothing."""
    try:
        return free_gpus(memory_free_threshold_gb, power_threshold_w, utilization_threshold_percent)
    except berth.NoDriver as error:
        logger.error("CUDA is not available: %s", error)
        return []


def free_gpus(memory_gb: float, power_w: Optional[float], utilization: Optional[float]) -> list[dict]:
    """As `find_free_gpus`. Raises berth.NoDriver."""
    if are_told_otherwise():
        told = [info for info in get_gpu_info() if _passes(info, memory_gb, power_w, utilization)]
        return [info for info in told if not is_gpu_locked(info["gpu_id"])]
    look = cards.Look()
    return [
        info
        for info, gpu in ((described(gpu_id, gpu), gpu) for gpu_id, gpu in numbered().items())
        if gpu.memory.free_bytes is not None
        and _passes(info, memory_gb, power_w, utilization)
        and look.is_on_offer(gpu)
        and not scheduler_locks.is_held(info["gpu_id"], LOCK_DIR)
    ]


def get_lock_path(gpu_id: int) -> str:
    return scheduler_locks.path_in(LOCK_DIR, gpu_id)


def is_gpu_locked(gpu_id: int) -> bool:
    """Whether somebody holds one of its lock files, or a lease of it."""
    if scheduler_locks.is_held(gpu_id, LOCK_DIR):
        return True
    gpu = _numbered_or_none().get(gpu_id)
    return gpu is not None and not cards.Look().is_on_offer(gpu)


def cleanup_stale_locks() -> None:
    """Nothing is ever stale: a lock ends with its holder. A file that is removed could be held by two."""
