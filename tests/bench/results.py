"""What was measured, as plain values: what the page, the charts and the README are made from."""

from __future__ import annotations

import dataclasses
import statistics

OURS = "ours"
PEER = "peer"
LIMIT = "limit"  # the least that any program must do
FLOOR = "floor"  # what cannot be compared, but explains: an empty program, Python alone, a server that looks at no GPU


@dataclasses.dataclass
class Figure:
    """One program's answer to one question. Without values, `trouble` says why."""

    name: str
    role: str
    command: str = ""
    values: list[float] = dataclasses.field(default_factory=list)
    trouble: str = ""
    note: str = ""
    more: dict[str, str] = dataclasses.field(default_factory=dict)  # further columns

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def measured(self) -> bool:
        return bool(self.values) and not self.trouble


@dataclasses.dataclass
class Table:
    """One question, asked of all of them in the same run."""

    key: str
    title: str
    unit: str
    figures: list[Figure]
    more_is_better: bool = False
    counts: bool = False  # values that do not vary: no spread is shown
    compared: bool = True  # else no ratio is shown

    def first(self, role: str) -> Figure | None:
        return next((each for each in self.figures if each.role == role and each.measured), None)

    def named(self, name: str) -> Figure | None:
        return next((each for each in self.figures if each.name == name and each.measured), None)

    @property
    def peers(self) -> list[Figure]:
        return [each for each in self.figures if each.role == PEER and each.measured]

    def worse_by(self, figure: Figure, than: Figure) -> float | None:
        """How many times worse a figure is than another."""
        worse, better = figure.median, than.median
        if self.more_is_better:
            worse, better = better, worse
        return worse / better if better else None

    @property
    def best_peer(self) -> Figure | None:
        return min(
            self.peers, key=lambda each: each.median * (-1 if self.more_is_better else 1), default=None
        )

    @property
    def lead(self) -> float | None:
        """How many times better we are than the best peer; below 1 we are not ahead of it."""
        ours, peer = self.first(OURS), self.best_peer
        return self.worse_by(peer, ours) if ours and peer else None

    @property
    def to_limit(self) -> float | None:
        """How many times worse we are than the limit."""
        ours, limit = self.first(OURS), self.first(LIMIT)
        return self.worse_by(ours, limit) if ours and limit else None


@dataclasses.dataclass
class Row:
    """A numbered question of the page, with the part of `./dev bench` that asks it."""

    number: int
    part: str
    title: str
    asks: str
    tables: list[Table] = dataclasses.field(default_factory=list)
    facts: list[str] = dataclasses.field(default_factory=list)  # sentences with further figures
    trouble: str = ""


@dataclasses.dataclass
class Report:
    made: str
    machine: list[tuple[str, str]]
    versions: list[tuple[str, str, str]]  # name, version, where from or why not
    rows: list[Row]
    minutes: float = 0
    command: str = "./dev bench"
