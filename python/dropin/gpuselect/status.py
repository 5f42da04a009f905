"""What gpuselect tells of a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from berth_dropin import cards

# The keys that the document gives to what `gpustatus` returns, and the fields that they stand for.
_KEYS = {
    "device": "device",
    "name": "name",
    "utilization": "util",
    "mem_utilization": "mem_util",
    "processes": "processes",
    "performance_state": "performance_state",
    "power_usage": "power_usage",
    "temperature": "temperature",
}

# Reasons for a lower clock that are no throttling: idle, and clocks that somebody has set.
_NOT_THROTTLING = 0x1 | 0x2 | 0x100


class GpuInfo(NamedTuple):
    """A GPU at one instant. What the board cannot tell is None, as the fan speed of one that has no fan. The types are
    those of the original, with which selectors were written."""

    device: int  # index in PCI bus order
    name: str
    util: int  # percent
    mem_util: int  # percent of time with memory traffic
    mem_free: int  # bytes, as the next two
    mem_used: int
    mem_total: int
    processes: int  # that compute
    fan_speed: int  # percent
    effective_power_limt: int  # mW
    performance_state: int  # 0 is the fastest
    power_usage: int  # mW
    temperature: int  # °C
    is_throttling: int  # 0 or 1


class GpuStatus(dict):
    """A GPU at one instant, as the document has it: a dict. It is also the tuple that the original gives: a GpuInfo has its
    fields by attribute and by position, can be unpacked and is hashable."""

    def __init__(self, info: GpuInfo):
        super().__init__((key, getattr(info, field)) for key, field in _KEYS.items())
        self._info = info

    # For isinstance; what it is otherwise, json and data frames see.
    @property
    def __class__(self) -> type:
        return GpuInfo

    def __reduce__(self) -> tuple:
        return GpuStatus, (self._info,)

    def __getattr__(self, name: str) -> Any:
        # A copy that is still being made has no info, and must not ask itself for it.
        if name == "_info":
            raise AttributeError(name)
        return getattr(self._info, name)

    def __getitem__(self, key: Any) -> Any:
        return self._info[key] if isinstance(key, (int, slice)) else super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._info)

    def __len__(self) -> int:
        return len(self._info)

    def __eq__(self, other: object) -> bool:
        if type(other) is GpuStatus:
            return self._info == other._info
        return self._info == other if isinstance(other, tuple) else super().__eq__(other)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self._info)


def describe(gpu) -> GpuInfo:
    throttling = gpu.throttle_reasons
    return GpuInfo(
        device=gpu.index,
        name=gpu.name,
        util=gpu.utilization_percent,
        mem_util=gpu.memory_utilization_percent,
        mem_free=gpu.memory.free_bytes,
        mem_used=cards.used_with_reserve(gpu),
        mem_total=gpu.memory.total_bytes,
        processes=len(cards.computing(gpu)),
        fan_speed=gpu.fan_percent,
        effective_power_limt=gpu.power_limit_mw,
        performance_state=gpu.performance_state,
        power_usage=gpu.power_mw,
        temperature=gpu.temperature_c,
        is_throttling=None if throttling is None else int(throttling & ~_NOT_THROTTLING != 0),
    )


def _visible(gpus: list) -> list:
    """Those in CUDA_VISIBLE_DEVICES: indices, or UUIDs and their beginnings. All when it says nothing, or "all"."""
    mask = os.environ.get("CUDA_VISIBLE_DEVICES", "").strip()
    if mask in ("", "all"):
        return gpus
    words = [word.strip() for word in mask.split(",")]
    return [
        gpu
        for gpu in gpus
        if str(gpu.index) in words or any(word[:4] == "GPU-" and gpu.uuid.startswith(word) for word in words)
    ]


def gpustatus(only_cvd: bool = True) -> list[GpuStatus]:
    """All GPUs, or with `only_cvd` those that CUDA_VISIBLE_DEVICES names. One that is lost or split is left out. Raises
    berth.NoDriver."""
    gpus = cards.usable()
    return [GpuStatus(describe(gpu)) for gpu in (_visible(gpus) if only_cvd else gpus)]
