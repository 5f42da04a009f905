"""Units of memory."""

from enum import Enum


class UnitSize(Enum):
    B = {"name": "byte", "multiplier": 1}
    KiB = {"name": "kibibyte", "multiplier": 1024}
    MiB = {"name": "mebibyte", "multiplier": 1024**2}
    GiB = {"name": "gibibyte", "multiplier": 1024**3}
    TiB = {"name": "tebibyte", "multiplier": 1024**4}
    PiB = {"name": "pebibyte", "multiplier": 1024**5}

    def multiplier(self) -> int:
        return self.value["multiplier"]

    def traditional_name(self) -> str:
        return self.value["name"]

    def to_bytes(self, bytes: int) -> int:
        """How many bytes so many of this unit are, rounded down."""
        return int(bytes * self.multiplier() // 1)

    def from_bytes(self, bytes: int) -> int:
        """How many of this unit are in so many bytes, rounded down."""
        return int(bytes // self.multiplier())


def convert(size: int, from_unit: UnitSize, target_unit: UnitSize) -> int:
    """The same amount in another unit, rounded down."""
    return target_unit.from_bytes(from_unit.to_bytes(size))
