"""Clocks that are not the machine's, for programs that can be preloaded; and times as people are told them."""

import datetime

from simulated_machine import Machine


def told_time(epoch_s: int) -> str:
    """As people are told it on a machine of the tests, whose zone is UTC: with the day, if that is not today."""
    moment = datetime.datetime.fromtimestamp(epoch_s, datetime.UTC)
    is_today = moment.date() == datetime.datetime.now(datetime.UTC).date()
    return moment.strftime("%H:%M") if is_today else f"{moment.day} {moment:%b %H:%M}"


class Clock:
    """For programs that are started with `env`: how far the wall clock and the boot clock are ahead, in seconds."""

    def __init__(self, machine: Machine, wall: int = 0, boot: int = 0):
        self.file = machine.directory / f"clock{wall}{boot}"
        self.env = {"LD_PRELOAD": machine.build / "other_clock.so", "OTHER_CLOCK": self.file}
        self.set(wall, boot)

    def set(self, wall: int, boot: int) -> None:
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{wall} {boot}\n")
        fresh.rename(self.file)
