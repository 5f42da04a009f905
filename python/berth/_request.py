"""From the arguments of Python to a request."""

from __future__ import annotations

from . import _berth
from ._errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Union

    Size = Union[str, int]
    Selectors = Union[str, int, Iterable[Union[str, int]]]
    Where = Union[str, Callable[[_berth.Device], object]]
    Order = Union[str, Callable[[_berth.Device], Any]]

_FILTERS = ("name", "free", "total", "util", "mem_util", "power", "temp")


def number(argument: str, value: object, least: int) -> int:
    """`value`, when it is a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{argument} must be an int, not {value!r}")
    if value < least:
        raise ValueError(f"{argument} must be {least} or more, not {value}")
    return value


def _text(argument: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise TypeError(f"{argument} must be a str or an int, not {value!r}")
    return str(value)


def _selectors(argument: str, value: Selectors) -> list[str]:
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        value = str(value).split(",") if isinstance(value, str) else [value]
    try:
        return [_text(argument, each).strip() for each in value]
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
        request.order("listed")
    request.admitted = [device.uuid for device in devices]


def request(n: int, where: Where | None, order: Order | None, options: dict[str, Any]) -> _berth.Request:
    """The request that these arguments make. Raises TypeError, ValueError and `Usage`, which name the argument."""
    made = _berth.Request()
    made.count = number("n", n, 1)
    for name in _FILTERS:
        if (value := options.pop(name, None)) is not None:
            _named(name, made.filter, name, _text(name, value))
    for name in ("devices", "exclude"):
        if (value := options.pop(name, None)) is not None:
            setattr(made, name, _selectors(name, value))
    if (value := options.pop("processes", None)) is not None:
        made.allowed_processes = number("processes", value, 0)
    if (value := options.pop("seed", None)) is not None:
        made.seed = number("seed", value, 0)
    made.shared = bool(options.pop("shared", False))
    if (value := options.pop("memory", None)) is not None:
        _named("memory", made.promise, _text("memory", value))
    if isinstance(where, str):
        _named("where", made.where, where)
    elif where is not None and not callable(where):
        raise TypeError(f"where must be an expression or a function of a device, not {where!r}")
    if isinstance(order, str):
        _named("order", made.order, order)
    elif order is not None and not callable(order):
        raise TypeError(f"order must be the name of an order or a function of a device, not {order!r}")
    if options:
        raise TypeError(f"there is no argument {next(iter(options))!r}")
    made.check()
    if callable(where) or callable(order):
        _admit(made, where, order)
    return made


def wait_ms(value: object) -> int | None:
    """Milliseconds for `wait`: None for ever, seconds, or a text like "10m"."""
    if value is None:
        return None
    if isinstance(value, str):
        return _berth.seconds(value) * 1000
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"wait must be None, seconds, or a time like '10m', not {value!r}")
    if not 0 <= value < 1e12:
        raise ValueError(f"wait must be 0 or more, not {value}")
    return int(value * 1000)
