"""The table of GPUs, and what it is made from."""

from __future__ import annotations

import os
import sys
import time

from berth_dropin import cards

from nvgpu import boards

_COMMAND_WIDTH = 25
_COLOURS = ("grey", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_HEADINGS = ("", "status", "type", "util.", "mem. used", "temp.", "MHz", "users", "since", "pids", "cmd")
_NUMBERS = frozenset({"", "temp.", "MHz"})


class Memory(dict):
    """total, free and used in bytes, by key and by attribute; used has the driver's reserve in it."""

    def __init__(self, total, free, used):
        super().__init__(total=total, free=free, used=used)

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def parse_cmd_roughly(args: list[str]) -> str:
    """What a command is known by: "jupyter", its Python file, or its beginning."""
    if any("ipykernel" in arg for arg in args):
        return "jupyter"
    for arg in args:
        if arg.endswith(".py"):
            return arg
    text = " ".join(args)
    return text if len(text) <= _COMMAND_WIDTH else text[:_COMMAND_WIDTH] + "..."


_STEPS = (("minute", 60), ("hour", 3600), ("day", 86400), ("month", 30 * 86400), ("year", 365 * 86400))


def humanized(age_s: float) -> str:
    """ "just now", "46 seconds ago", "an hour ago", "7 days ago"."""
    if age_s < 10:
        return "just now"
    if age_s < 60:
        return f"{int(age_s)} seconds ago"
    unit, size = [step for step in _STEPS if step[1] <= age_s][-1]
    count = int(age_s // size)
    if count == 1:
        return f"{'an' if unit == 'hour' else 'a'} {unit} ago"
    return f"{count} {unit}s ago"


def _what_keeps_it(gpu):
    """Of a board that nobody can compute on as a whole: why."""
    if gpu.state != "ok":
        return gpu.state
    return "split by MIG" if gpu.mig_enabled else None


def _user(process) -> str:
    """A user that no directory knows has a number at least; "?" is who cannot be told at all."""
    if process.user:
        return process.user
    try:
        return str(os.stat(f"/proc/{process.pid}").st_uid)
    except OSError:
        return "?"


def _status(gpu, look: cards.Look) -> dict:
    processes = cards.computing(gpu)
    started = [process.started_at_s for process in processes if process.started_at_s is not None]
    commands = [process.command for process in processes if process.command is not None]
    memory = gpu.memory
    return {
        "type": gpu.name or "?",
        "is_available": not processes and look.is_on_offer(gpu),
        "pids": ",".join(str(process.pid) for process in processes),
        "users": ",".join([_user(process) for process in processes] or look.lessees(gpu)),
        "running_since": humanized(time.time() - min(started)) if started else None,
        "utilization": gpu.utilization_percent,
        "memory": Memory(memory.total_bytes, memory.free_bytes, cards.used_with_reserve(gpu)),
        "clock_mhz": gpu.sm_clock_mhz,
        "temperature": gpu.temperature_c,
        "cmd": parse_cmd_roughly(commands[0].split(" ")) if commands else _what_keeps_it(gpu),
    }


def device_statuses() -> list[dict]:
    """A dict a GPU, in the order of their indices. A leased one is not available, and its lease's owner uses it
    where no process shows; nor is one that is broken or split, and `cmd` then says so. Raises berth.NoDriver."""
    boards()
    look = cards.Look()
    return [_status(gpu, look) for gpu in look.gpus]


def device_status(device_index: int) -> dict:
    """The same of one."""
    return device_statuses()[device_index]


def device_table(rows: list[dict]) -> list[dict]:
    """The rows of the table, one a device."""
    return list(rows)


def colour_of(row: dict) -> str:
    if row["is_available"]:
        return "green"
    return "red" if not row["users"].replace("?", "").replace(",", "") else "blue"


_MARKS = {"green": "[ ]", "blue": "[~]", "red": "[!]"}


def cells(index: int, row: dict) -> list[str]:
    """What the table shows of a device, column by column."""
    used = (row.get("memory") or {}).get("used")
    utilization = row["utilization"]
    shown = {
        "": index,
        "status": _MARKS[colour_of(row)],
        "type": row["type"],
        "util.": "N/A" if utilization is None else f"{int(utilization):3d} %",
        "mem. used": "N/A" if used is None else f"{round(used / 1e9, 2)}GB",
        "temp.": row["temperature"],
        "MHz": row["clock_mhz"],
        "users": row["users"],
        "since": row["running_since"],
        "pids": row["pids"],
        "cmd": row["cmd"],
    }
    return ["" if shown[heading] is None else _printable(str(shown[heading])) for heading in _HEADINGS]


def _printable(text: str) -> str:
    """Names of users and commands are text of strangers: what would move the cursor is shown, not obeyed."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _coloured(text: str, colour: str) -> str:
    return f"\033[{30 + _COLOURS.index(colour)}m{text}\033[0m"


def _wants_colour() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def colored(text: object, color: str | None = None) -> str:
    """The text in this colour, where the table would have colours. The original has it from termcolor, and programs
    import it from here."""
    return _coloured(str(text), color) if color is not None and _wants_colour() else str(text)


def format_table(table: list[dict], colour=None) -> str:
    """The table as text; in colours on a terminal, or as `colour` says."""
    colour = _wants_colour() if colour is None else colour
    lines = [cells(index, row) for index, row in enumerate(table)]
    widths = [
        max(len(line[column]) for line in [list(_HEADINGS), *lines]) for column in range(len(_HEADINGS))
    ]

    def padded(line, paint=lambda text: text):
        parts = []
        for heading, text, width in zip(_HEADINGS, line, widths):
            pad = " " * (width - len(text))
            parts.append(pad + paint(text) if heading in _NUMBERS else paint(text) + pad)
        return "  ".join(parts).rstrip()

    text = [padded(_HEADINGS), "  ".join("-" * width for width in widths)]
    for line, row in zip(lines, table):
        hue = colour_of(row)
        text.append(
            padded(line, (lambda word, hue=hue: _coloured(word, hue)) if colour else lambda word: word)
        )
    return "\n".join(text)


def pretty_list_gpus() -> None:
    """Prints the table."""
    print(format_table(device_table(device_statuses())))


if __name__ == "__main__":
    pretty_list_gpus()
