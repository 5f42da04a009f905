"""From the arguments of Python to a request."""

from __future__ import annotations


from . import _berth, _request_fields
from ._errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Union

    from ._request_fields import Filters as Filters
    from ._request_fields import JobFilters as JobFilters
    from ._request_fields import Selectors as Selectors
    from ._request_fields import Size as Size
    from ._request_fields import Time as Time

    Where = Union[str, Callable[[_berth.Device], object]]
    Order = Union[str, Callable[[_berth.Device], Any]]


def number(argument: str, value: object, least: int) -> int:
    """`value`, when it is a whole number of at least `least`: an int, or what says that it is one, as numpy's do."""
    # As operator.index, whose module a program would load for this alone.
    index = getattr(type(value), "__index__", None)
    if index is None:
        raise TypeError(f"{argument} must be an int, not {value!r}")
    whole: int = index(value)
    if whole < least:
        raise ValueError(f"{argument} must be {least} or more, not {value}")
    return whole


def _text(argument: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise TypeError(f"{argument} must be a str or an int, not {value!r}")
    return str(value)


_LEAST_BYTES = 1 << 20


def size(argument: str, value: object) -> str:
    """`value` as Berth reads sizes: a text has its unit, an int is bytes. Nobody means so few bytes as 20."""
    if isinstance(value, int) and not isinstance(value, bool):
        if 0 < value < _LEAST_BYTES:
            raise Usage(
                f'{argument}: {value} of what? write "{value}G" or "{value}M", or a number of bytes from {_LEAST_BYTES} up'
            )
        return f"{value}B"
    return _text(argument, value)


def _selectors(argument: str, value: Selectors) -> list[str]:
    if isinstance(value, str):
        return [each.strip() for each in value.split(",")]
    try:
        return [_text(argument, each) for each in ([value] if isinstance(value, int) else value)]
    except TypeError:
        raise TypeError(f"{argument} must be an index, a UUID, or several in a list, not {value!r}") from None


def _named(argument: str, give: Callable[..., object], *values: object) -> None:
    """Calls give(*values); a complaint names the argument."""
    try:
        give(*values)
    except Usage as error:
        raise Usage(f"{argument}: {error}") from None


def _admit(request: _berth.Request, where: object, order: object) -> None:
    """Applies a predicate and a key of the caller's to the machine as it is now."""
    devices = [device for device in _berth.snapshot().devices if device.uuid and not device.mig_enabled]
    if callable(where):
        devices = [device for device in devices if where(device)]
    if callable(order):
        devices.sort(key=order)
        request.set("order", "listed")
    request.admitted = [device.uuid for device in devices]


def _text_for(argument: str, value: Any, kind: str, least: int) -> str | None:
    """The value as its option has it; None: it says nothing."""
    if kind == "number":
        return str(number(argument, value, least))
    if kind == "flag":
        return "" if value else None
    if kind == "size":
        return size(argument, value)
    if kind == "time":
        return f"{time_s(value)}s"
    if kind == "grace":
        return None if value is False else "" if value is True else f"{time_s(value)}s"
    if kind == "selectors":
        named = _selectors(argument, value)
        if argument == "devices" and not named:
            raise ValueError("devices must name at least one device")
        return ",".join(named) if named else None
    return _text(argument, value)


# What others call it; a word that may mean two has both.
_MEANT = {
    **dict.fromkeys(("count", "gpus", "n_gpus", "nb_gpus", "ngpus", "num", "num_gpus", "number"), ("n",)),
    **dict.fromkeys(("device", "device_ids", "gpu_ids", "ids", "indices"), ("devices",)),
    **dict.fromkeys(("cwd", "directory", "workdir"), ("folder",)),
    "environ": ("env",),
    "gpu": ("n", "devices"),
    "job_name": ("name",),
    "max_time": ("time",),
    "time_limit": ("time",),
    "timeout": ("wait",),
    "vram": ("memory",),
    "walltime": ("time",),
    "yields": ("yield_",),
}
# What is too far from a name is none.
_ALIKE = 0.75


def unknown(name: str, known: Iterable[str]) -> TypeError:
    """For an argument that there is not, with what may be meant of those that there are."""
    known = {*known}
    meant = [each for each in _MEANT.get(name, ()) if each in known]
    if not meant:
        import difflib

        meant = difflib.get_close_matches(name, sorted(known), 1, _ALIKE)
    return TypeError(
        f"there is no argument {name!r}" + (f": did you mean {' or '.join(meant)}?" if meant else "")
    )


def options(
    arguments: Mapping[str, object], table: Mapping[str, tuple[str, str, int]], beside: Iterable[str] = ()
) -> Iterator[tuple[str, str, str]]:
    """What these arguments say: the argument, the option that it stands for, and its value. None says nothing.

    `beside`: the names of other arguments that the caller has.
    """
    for name in arguments:
        if name not in table:
            raise unknown(name, {*table, *beside})
    for name, (option, kind, least) in table.items():
        value = arguments.get(name)
        if value is None:
            continue
        text = _text_for(name, value, kind, least)
        if text is not None:
            yield name, option, text


def request(
    n: int,
    where: Where | None,
    order: Order | None,
    memory: Size | None,
    shared: bool,
    filters: Filters,
    time: Time,
    beside: Iterable[str] = ("mask",),
) -> _berth.Request:
    """The request that these arguments make. Raises TypeError, ValueError and `Usage`, which name the argument.

    `beside`: the names of other arguments that the caller has.
    """
    made = _berth.Request()
    if where is not None and not isinstance(where, str) and not callable(where):
        raise TypeError(f"where must be an expression or a function of a device, not {where!r}")
    if order is not None and not isinstance(order, str) and not callable(order):
        raise TypeError(f"order must be the name of an order or a function of a device, not {order!r}")
    arguments = {**filters, "n": number("n", n, 1), "memory": memory, "shared": bool(shared), "time": time}
    # A function is called with the devices of this machine, which `_admit` does.
    arguments.update(
        where=None if callable(where) else where,
        order=None if callable(order) else order,
    )
    for name, option, text in options(arguments, _request_fields.ARGUMENTS, beside):
        _named(name, made.set, option, text)
    made.check()
    if callable(where) or callable(order):
        _admit(made, where, order)
    return made


def time_s(value: object) -> int:
    """Seconds for `time`: seconds, or a text like "2h"."""
    if isinstance(value, str):
        try:
            return _berth.seconds(value)
        except Usage as error:
            raise Usage(f"time: {error}") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"time must be None, seconds, or a time like '2h', not {value!r}")
    if not 1 <= value <= _LONGEST_S:
        raise ValueError(f"time must be a second or more and 365 days or less, not {value}")
    return int(value)


_LONGEST_S = 365 * 24 * 3600

# What people write for ever in seconds: math.inf, sys.maxsize. Thirty years are as good.
_FOR_EVER_S = 1e9


def wait_ms(value: object) -> int | None:
    """Milliseconds for `wait`: None for ever, seconds, or a text like "10m"."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = _berth.seconds(value)
        except Usage as error:
            raise Usage(f"wait: {error}") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"wait must be None, seconds, or a time like '10m', not {value!r}")
    if not value >= 0:
        raise ValueError(f"wait must be 0 or more, not {value}")
    return int(value * 1000) if value < _FOR_EVER_S else None
