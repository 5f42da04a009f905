"""Bar charts as SVG, with colours of their own for a dark page. The text is the reader's own sans-serif."""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

from markdown import number
from results import FLOOR, LIMIT, OURS, PEER, Figure, Table

WIDTH, NAMES, VALUES = 760, 210, 130
BAR, GAP, HEAD, FOOT = 16, 8, 34, 14
# Past it, small bars would not be seen on a linear scale.
LOG_FROM = 20
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 } .quiet { fill: #59636e }
.page { fill: #ffffff } .grid { stroke: #d1d9e0 } .spread { stroke: #1f2328 }
.ours { fill: #0969da } .peer { fill: #bf8700 } .limit { fill: #1a7f37 } .floor { fill: #818b98 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .quiet { fill: #9198a1 }
  .page { fill: #0d1117 } .grid { stroke: #3d444d } .spread { stroke: #f0f6fc }
  .ours { fill: #4493f8 } .peer { fill: #d29922 } .limit { fill: #3fb950 } .floor { fill: #656c76 }
}"""


class Scale:
    """Where a value lies between the names and the figures."""

    def __init__(self, values: list[float]):
        self.high = max(values)
        low = min(value for value in values if value > 0)
        self.is_log = self.high / low > LOG_FROM
        self.low = 10 ** math.floor(math.log10(low * 0.999)) if self.is_log else 0.0
        self.room = WIDTH - NAMES - VALUES

    def at(self, value: float) -> float:
        if self.is_log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = value / self.high
        return NAMES + self.room * share

    def grid(self) -> list[float]:
        if not self.is_log:
            return []
        first, last = round(math.log10(self.low)), math.floor(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


def bar(figure: Figure, top: float, scale: Scale) -> list[str]:
    middle = top + BAR / 2
    end = scale.at(figure.median)
    least, most = scale.at(min(figure.values)), scale.at(max(figure.values))
    text_at = max(end, most) + 6
    parts = [
        f'<text x="{NAMES - 8}" y="{middle + 4.5:.1f}" text-anchor="end">{escape(figure.name)}</text>',
        f'<rect class="{figure.role}" x="{NAMES}" y="{top:.1f}" width="{max(end - NAMES, 1):.1f}"'
        f' height="{BAR}" rx="2"/>',
        f'<text x="{text_at:.1f}" y="{middle + 4.5:.1f}">{number(figure.median)}</text>',
    ]
    if most - least > 1:
        parts.append(f'<path class="spread" d="M{least:.1f} {middle:.1f}H{most:.1f}"/>')
    return parts


def panel(table: Table, top: float) -> tuple[list[str], float]:
    """The bars of one table, and where they end."""
    figures = sorted((each for each in table.figures if each.measured), key=lambda each: each.median)
    positive = [value for figure in figures for value in figure.values if value > 0]
    parts = [
        f'<text class="title" x="12" y="{top + 20:.1f}">{escape(table.title)}, {escape(table.unit)}</text>'
    ]
    begin, end = top + HEAD, top + HEAD + len(figures) * (BAR + GAP)
    if not positive:
        return parts, top + HEAD
    scale = Scale(positive)
    for value in scale.grid():
        at = scale.at(value)
        parts.append(f'<path class="grid" d="M{at:.1f} {begin - 4:.1f}V{end:.1f}"/>')
        parts.append(
            f'<text class="quiet" x="{at:.1f}" y="{end + 12:.1f}" text-anchor="middle">{value:,g}</text>'
        )
    for index, figure in enumerate(figures):
        parts += bar(figure, begin + index * (BAR + GAP), scale)
    return parts, end + (FOOT if scale.is_log else 0)


def legend(tables: list[Table], top: float) -> list[str]:
    words = {OURS: "Berth", LIMIT: "the limit", PEER: "peers", FLOOR: "for comparison"}
    parts, at = [], 12.0
    for role, text in words.items():
        if any(figure.role == role and figure.measured for table in tables for figure in table.figures):
            parts.append(f'<rect class="{role}" x="{at}" y="{top}" width="11" height="11" rx="2"/>')
            parts.append(f'<text class="quiet" x="{at + 16}" y="{top + 10}">{text}</text>')
            at += 34 + 7.2 * len(text)
    parts.append(f'<text class="quiet" x="{at}" y="{top + 10}">line: from least to most</text>')
    return parts


def draw(tables: list[Table]) -> str:
    """One picture of these tables, one below the other; "" when nothing in them was measured."""
    tables = [table for table in tables if any(figure.measured for figure in table.figures)]
    if not tables:
        return ""
    parts: list[str] = []
    top = 4.0
    for table in tables:
        more, end = panel(table, top)
        parts += more
        top = end + GAP
    parts += legend(tables, top + 6)
    height = top + 30
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}">'
    page = f'<rect class="page" width="{WIDTH}" height="{height:.0f}" rx="6"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", page, *parts, "</svg>", ""])
