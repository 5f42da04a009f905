"""Clocks that are not the machine's, for programs that can be preloaded."""

from simulated_machine import Machine


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
