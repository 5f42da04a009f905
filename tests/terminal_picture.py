"""What a terminal shows, as an SVG: text that can be read and searched, in light and dark."""

import html
import re

CELL_PX, LINE_PX, EDGE_PX = 8.4, 19, 16
CLASSES = {
    "1": "bold",
    "2": "faint",
    "31": "red",
    "32": "green",
    "33": "yellow",
    "35": "magenta",
    "36": "cyan",
}
STYLE = """text { font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #1f2328 }
rect { fill: #f6f8fa; stroke: #d0d7de }
.bold { font-weight: bold } .faint { fill: #59636e } .red { fill: #c4232b } .green { fill: #1a7f37 }
.yellow { fill: #8a5a00 } .magenta { fill: #8250df } .cyan { fill: #0969da }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } rect { fill: #0d1117; stroke: #30363d } .faint { fill: #9198a1 } .red { fill: #ff7b72 }
.green { fill: #3fb950 } .yellow { fill: #d29922 } .magenta { fill: #d2a8ff } .cyan { fill: #58a6ff } }"""


def spans(line: str) -> str:
    """A line with the colours of a terminal, as parts of an SVG text."""
    made, colour, weight = "", None, None
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            for code in part[2:-1].split(";"):
                if code in ("", "0"):
                    colour = weight = None
                elif code == "39":
                    colour = None
                elif code in ("1", "2"):
                    weight = CLASSES[code]
                else:
                    colour = CLASSES.get(code, colour)
        elif part:
            text = html.escape(part, quote=False)
            shown = colour or weight
            made += f'<tspan class="{shown}">{text}</tspan>' if shown else text
    return made


def picture(text: str, title: str) -> str:
    lines = text.rstrip("\n").split("\n")
    columns = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
    width, height = columns * CELL_PX + 2 * EDGE_PX, len(lines) * LINE_PX + 2 * EDGE_PX
    rows = "\n".join(
        f'<text x="{EDGE_PX}" y="{EDGE_PX + (number + 0.75) * LINE_PX:g}" xml:space="preserve">{spans(line)}</text>'
        for number, line in enumerate(lines)
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img">
<title>{html.escape(title)}</title>
<style>
{STYLE}
</style>
<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>
{rows}
</svg>
"""


def text_of(svg: str) -> str:
    """The lines that a picture shows."""
    rows = re.findall(r"<text [^>]*>(.*)</text>", svg)
    return "".join(html.unescape(re.sub(r"</?tspan[^>]*>", "", row)) + "\n" for row in rows)
