"""Clocks that are not the machine's, for programs that can be preloaded."""

from lab import Lab


class Clock:
    """For programs that are started with `env`: how far the wall clock and the boot clock are ahead, in seconds."""

    def __init__(self, lab: Lab, wall: int = 0, boot: int = 0):
        self.file = lab.directory / f"clock{wall}{boot}"
        self.env = {"LD_PRELOAD": lab.build / "other_clock.so", "OTHER_CLOCK": self.file}
        self.set(wall, boot)

    def set(self, wall: int, boot: int) -> None:
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{wall} {boot}\n")
        fresh.rename(self.file)
