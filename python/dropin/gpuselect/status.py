"""What gpuselect tells of a GPU."""

from __future__ import annotations

import opcode
import os
import sys
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


class _Fields(NamedTuple):
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


class _Kind(type):
    """A GpuStatus is a GpuInfo to `isinstance`. It does not derive from it, since json and data frames write down every
    tuple as a list."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or type(instance) is GpuStatus


class GpuInfo(_Fields, metaclass=_Kind):
    """A GPU at one instant. What the board cannot tell is None, as the fan speed of one that has no fan. The types are
    those of the original, with which selectors were written."""

    __slots__ = ()


_UNPACKING = (opcode.opmap["UNPACK_SEQUENCE"], opcode.opmap["UNPACK_EX"])


class GpuStatus(dict):
    """A GPU at one instant, as the document has it: a dict. It is also used as the tuple that the original gives: it has
    the fields of a GpuInfo by attribute and by position, and it can be unpacked, sorted and hashed."""

    def __init__(self, info: GpuInfo):
        super().__init__((key, getattr(info, field)) for key, field in _KEYS.items())
        self._info = info

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
        # `device, name, *rest = gpu` is a program that knows the tuple. A loop over a dict is about
        # its keys.
        asks = sys._getframe(1)
        if asks.f_lasti >= 0 and asks.f_code.co_code[asks.f_lasti] in _UNPACKING:
            return iter(self._info)
        return super().__iter__()

    def __eq__(self, other: object) -> bool:
        if type(other) is GpuStatus:
            return self._info == other._info
        return self._info == other if isinstance(other, tuple) else super().__eq__(other)

    def __lt__(self, other: tuple) -> bool:
        return self._info < _tuple_of(other)

    def __le__(self, other: tuple) -> bool:
        return self._info <= _tuple_of(other)

    def __gt__(self, other: tuple) -> bool:
        return self._info > _tuple_of(other)

    def __ge__(self, other: tuple) -> bool:
        return self._info >= _tuple_of(other)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self._info)


def _tuple_of(other: Any) -> tuple:
    return other._info if type(other) is GpuStatus else other


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
