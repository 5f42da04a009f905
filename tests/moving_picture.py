"""What happens on several terminals, as an SVG that moves: text that can be read and searched, in light and dark.
Where somebody wants nothing to move, the end stands there."""

import dataclasses
import html

from terminal_picture import CELL_PX, EDGE_PX, LINE_PX, STYLE, spans

HEAD_PX = 24
REST_S = 5.0  # how long the end stands before it begins again
AT_ONCE = 0.3  # percent of all


@dataclasses.dataclass
class Step:
    """Lines that appear on a terminal."""

    terminal: int
    at_s: float
    text: str
    until_s: float | None = None  # when a line that is written over vanishes; the next takes its place


def keyframes(number: int, step: Step, all_s: float) -> str:
    begin = 100 * step.at_s / all_s
    end = 98 if step.until_s is None else 100 * step.until_s / all_s
    return (
        f"@keyframes s{number} {{ 0%, {begin:.1f}% {{ opacity: 0 }} {begin + AT_ONCE:.1f}%, {end:.1f}% "
        f"{{ opacity: 1 }} {end + AT_ONCE:.1f}%, 100% {{ opacity: 0 }} }} "
        f".s{number} {{ animation-name: s{number} }}"
    )


def moving_picture(names: list[str], steps: list[Step], columns: int, title: str) -> str:
    all_s = max(step.at_s for step in steps) + REST_S
    rows: list[list[tuple[int, int, str]]] = [[] for _ in names]
    heights = [0] * len(names)
    for number, step in enumerate(steps):
        lines = step.text.rstrip("\n").split("\n")
        rows[step.terminal] += [
            (number, heights[step.terminal] + row, spans(line)) for row, line in enumerate(lines)
        ]
        heights[step.terminal] += len(lines) if step.until_s is None else 0
    width, top, body = columns * CELL_PX + 2 * EDGE_PX, 0.0, []
    for name, count, texts in zip(names, heights, rows, strict=True):
        height = HEAD_PX + count * LINE_PX + EDGE_PX
        body.append(
            f'<rect x="0.5" y="{top + 0.5:g}" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>\n'
            f'<text x="{EDGE_PX}" y="{top + 17:g}"><tspan class="faint">{html.escape(name)}</tspan></text>'
        )
        for number, row, text in texts:
            gone = " gone" if steps[number].until_s is not None else ""
            y = top + HEAD_PX + (row + 0.75) * LINE_PX
            body.append(
                f'<text class="s s{number}{gone}" x="{EDGE_PX}" y="{y:g}" xml:space="preserve">{text}</text>'
            )
        top += height + EDGE_PX / 2
    top -= EDGE_PX / 2
    moves = "\n".join(keyframes(number, step, all_s) for number, step in enumerate(steps))
    drawn = "\n".join(body)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {top:g}" width="{width:g}" height="{top:g}" role="img">
<title>{html.escape(title)}</title>
<style>
{STYLE}
.gone {{ opacity: 0 }}
@media (prefers-reduced-motion: no-preference) {{
.s {{ animation: {all_s:g}s linear infinite }}
{moves}
}}
</style>
{drawn}
</svg>
"""
