"""A figure beside what it should be."""

import dataclasses


@dataclasses.dataclass
class Bound:
    what: str
    limit: float
    value: float | None  # None: not measured
    unit: str = "×"
    at_least: bool = False

    def line(self):
        sign = "≥" if self.at_least else "≤"
        if self.value is None:
            return f"  {self.what:<52} {'-':>12}   {sign} {self.limit:g} {self.unit}   not measured"
        met = self.value >= self.limit if self.at_least else self.value <= self.limit
        number = f"{self.value:.2f} {self.unit}"
        return f"  {self.what:<52} {number:>12}   {sign} {self.limit:g} {self.unit}   {'met' if met else 'MISSED'}"


def ratio(a, b):
    return a / b if a is not None and b else None
