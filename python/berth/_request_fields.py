"""What a request can say. Written by `./dev readings` from src/core/request/request_fields.cpp."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypedDict, Union

    Size = Union[str, int]
    Time = Union[None, int, float, str]
    Selectors = Union[str, int, Iterable[Union[str, int]]]

    class Filters(TypedDict, total=False):
        name: str
        devices: Selectors
        exclude: Selectors
        free: Size
        total: Size
        util: Size
        mem_util: Size
        processes: int
        clean: bool
        power: Size
        temp: Size
        seed: int
        mps_percent: int

    class JobFilters(TypedDict, total=False):
        devices: Selectors
        exclude: Selectors
        total: Size
        util: Size
        mem_util: Size
        processes: int
        clean: bool
        power: Size
        temp: Size
        shared: bool
        order: str
        seed: int
        mps_percent: int


# For each argument: the option that it stands for, how its value is written, and the least number.
ARGUMENTS = {
    "n": ("count", "number", 1),
    "where": ("where", "text", 0),
    "name": ("name", "text", 0),
    "devices": ("devices", "selectors", 0),
    "exclude": ("exclude", "selectors", 0),
    "free": ("free", "size", 0),
    "total": ("total", "size", 0),
    "util": ("util", "text", 0),
    "mem_util": ("mem-util", "text", 0),
    "processes": ("processes", "number", 0),
    "clean": ("clean", "flag", 0),
    "power": ("power", "text", 0),
    "temp": ("temp", "text", 0),
    "memory": ("memory", "size", 0),
    "shared": ("shared", "flag", 0),
    "order": ("order", "text", 0),
    "seed": ("seed", "number", 0),
    "time": ("time", "time", 0),
    "mps_percent": ("mps-percent", "number", 1),
}
JOB_ARGUMENTS = {
    "n": ("count", "number", 1),
    "where": ("where", "text", 0),
    "devices": ("devices", "selectors", 0),
    "exclude": ("exclude", "selectors", 0),
    "free": ("free", "size", 0),
    "total": ("total", "size", 0),
    "util": ("util", "text", 0),
    "mem_util": ("mem-util", "text", 0),
    "processes": ("processes", "number", 0),
    "clean": ("clean", "flag", 0),
    "power": ("power", "text", 0),
    "temp": ("temp", "text", 0),
    "memory": ("memory", "size", 0),
    "shared": ("shared", "flag", 0),
    "order": ("order", "text", 0),
    "seed": ("seed", "number", 0),
    "time": ("time", "time", 0),
    "mps_percent": ("mps-percent", "number", 1),
    "yield_": ("yield", "grace", 0),
}
