"""docs/benchmarks.md as text: every number in it is of the report."""

from __future__ import annotations

import re
from collections.abc import Callable

import remarks
from results import LIMIT, OURS, Figure, Report, Row, Table

HEADLINES = "## In short"
MACHINE = "## The machine and the versions"
TIMES = ("ms", "s")
WAIT = "h of mean wait"
NOTICE = "<!-- ./dev bench writes this page. What is typed here is lost. -->"


def number(value: float) -> str:
    """Three digits that count, and the thousands apart."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}" if size >= 0.0995 else f"{value:.2g}"


def times(value: float | None) -> str:
    return f"{number(value)} ×" if value else "–"


def better_by(lead: float | None) -> str:
    return times(lead) if not lead or lead >= 1 else f"worse: {times(1 / lead)}"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def line(*cells: str) -> str:
    return "| " + " | ".join(map(cell, cells)) + " |"


# Tables -------------------------------------------------------------------------------------------


def columns(table: Table) -> list[tuple[str, Callable[[Figure], str]]]:
    """Heading and text of each column right of the name."""
    shown: list[tuple[str, Callable[[Figure], str]]] = [
        (f"{'' if table.counts else 'median '}{table.unit}", lambda figure: number(figure.median))
    ]
    if not table.counts:
        shown += [
            ("min – max", lambda figure: f"{number(min(figure.values))} – {number(max(figure.values))}"),
            ("runs", lambda figure: str(len(figure.values))),
        ]
    limit, ours = table.first(LIMIT), table.first(OURS)
    if table.compared and limit:
        shown.append(("× limit", lambda figure: times(table.worse_by(figure, limit)).rstrip(" ×")))
    if table.compared and ours:
        shown.append(("× Berth", lambda figure: times(table.worse_by(figure, ours)).rstrip(" ×")))
    for name in dict.fromkeys(name for figure in table.figures for name in figure.more):
        shown.append((name, lambda figure, name=name: figure.more.get(name, "–")))
    return shown


def name_of(figure: Figure) -> str:
    name = f"**{figure.name}**" if figure.role == OURS else figure.name
    return f"{name} ({figure.role})" if figure.role == LIMIT else name


def table_lines(table: Table) -> list[str]:
    shown = columns(table)
    lines = [f"**{table.title}**", "", line("", *(heading for heading, _ in shown))]
    lines.append("|" + "---|" + "---:|" * len(shown))
    order = sorted(
        (figure for figure in table.figures if figure.measured),
        key=lambda figure: figure.median * (-1 if table.more_is_better else 1),
    )
    lines += [line(name_of(figure), *(text(figure) for _, text in shown)) for figure in order]
    lines += [
        line(name_of(figure), figure.trouble or "not measured", *[""] * (len(shown) - 1))
        for figure in table.figures
        if not figure.measured
    ]
    return lines


def compared(table: Table, worse: str, ratio: float, better: str) -> str:
    """The sentence that says how many times worse one program's figure is than another's."""
    if table.more_is_better:
        said = f"{better} does {number(ratio)} times as much as {worse}."
    elif table.unit == WAIT:
        said = f"jobs wait {number(ratio)} times as long with {worse} as with {better}."
    else:
        said = (
            f"{worse} takes {number(ratio)} times as {'long' if table.unit in TIMES else 'much'} as {better}."
        )
    return said[0].upper() + said[1:]


def verdict(table: Table) -> str:
    """Where we stand in it."""
    said = []
    peer, ours = table.best_peer, table.first(OURS)
    if table.lead is not None and peer is not None and ours is not None:
        if table.lead > 1:
            said.append(compared(table, f"the best peer ({peer.name})", table.lead, "Berth"))
        elif table.lead:
            said.append(compared(table, "Berth", 1 / table.lead, peer.name))
        else:
            said.append(f"{peer.name}'s figure is 0, and Berth's is {number(ours.median)} {table.unit}.")
    elif peer is not None and ours_is_best(table):
        said.append("Berth is ahead of every peer.")
    if table.to_limit is not None:
        said.append(compared(table, "Berth", table.to_limit, "the limit"))
    return " ".join(said)


def ours_is_best(table: Table) -> bool:
    """Where a figure is 0 there is no ratio."""
    ours, peer = table.first(OURS), table.best_peer
    return bool(ours and peer and not table.more_is_better and ours.median < peer.median)


def falls_short(table: Table) -> bool:
    if not table.compared or table.first(OURS) is None:
        return False
    behind = table.lead is not None and table.lead <= 1
    return behind or (table.to_limit is not None and table.to_limit > remarks.NEAR_LIMIT)


def words_on(table: Table) -> list[str]:
    """The verdict, and why where we fall short."""
    why = remarks.on(table)
    if falls_short(table) and not why:
        why = ["No cause of that is known yet."]
    return [text for text in [verdict(table) if table.compared else "", *why] if text]


def commands(row: Row) -> list[str]:
    seen = {}
    for table in row.tables:
        for figure in table.figures:
            if figure.command:
                seen.setdefault((figure.name, figure.command), figure.note)
    if not seen:
        return []
    lines = ["<details><summary>What was run</summary>", "", line("", "command", ""), "|---|---|---|"]
    lines += [line(name, f"`{command}`", note) for (name, command), note in seen.items()]
    return [*lines, "", "</details>", ""]


def row_lines(row: Row, chart: str) -> list[str]:
    lines = [f"## {row.number}. {row.title}", "", f"{row.asks} `./dev bench {row.part}`", ""]
    if row.trouble:
        lines += [f"Not measured: {row.trouble}.", ""]
    if chart:
        lines += [f"![{row.title}]({chart})", ""]
    for table in row.tables:
        lines += [*table_lines(table), ""]
        if said := words_on(table):
            lines += [" ".join(said), ""]
    for fact in row.facts:
        lines += [fact] if fact.startswith("- ") else [fact, ""]
    return [*lines, "", *commands(row)] if row.facts else lines + commands(row)


# The whole ----------------------------------------------------------------------------------------


def headlines(report: Report) -> list[str]:
    """The tables that a newcomer asks about first, as a table: they stand in the README too."""
    lines = [
        line("", "Berth", "the best peer", "Berth is better by", "the limit"),
        "|---|---:|---|---:|---:|",
    ]
    tables = {table.key: table for row in report.rows for table in row.tables}
    for key, title in remarks.HEADLINES.items():
        table = tables.get(key)
        ours = table.first(OURS) if table else None
        if not table or not ours:
            continue
        peer, limit = table.best_peer, table.first(LIMIT)
        lines.append(
            line(
                title,
                f"{number(ours.median)} {table.unit}",
                f"{peer.name}: {number(peer.median)} {table.unit}" if peer else "–",
                better_by(table.lead) if peer else "–",
                f"{number(limit.median)} {table.unit}" if limit else "–",
            )
        )
    return lines


def page(report: Report, charts: dict[int, str]) -> str:
    """`charts`: for the number of a row the path of its picture, seen from the page."""
    lines = [NOTICE, "# Berth beside the field", "", remarks.INTRODUCTION, ""]
    lines += [HEADLINES, "", *headlines(report), ""]
    for row in report.rows:
        lines += row_lines(row, charts.get(row.number, ""))
    lines += [MACHINE, "", line("", ""), "|---|---|"]
    lines += [line(*pair) for pair in report.machine]
    lines += [line("measured", f"{report.made}, in {report.minutes:.0f} minutes, by `{report.command}`"), ""]
    lines += [line("", "version", "from"), "|---|---|---|", *(line(*words) for words in report.versions), ""]
    return "\n".join(lines)


def with_rows(page_text: str, rows: list[Row], charts: dict[int, str]) -> str:
    """A page that was written earlier, with these rows in place of those that it has of them."""
    for row in rows:
        fresh = "\n".join([*row_lines(row, charts.get(row.number, "")), ""])
        has_it = re.search(rf"^## {row.number}\. .*?(?=^## )", page_text, re.M | re.S)
        at, end = has_it.span() if has_it else (page_text.index(MACHINE),) * 2
        page_text = page_text[:at] + fresh + page_text[end:]
    return page_text


def headlines_of(page_text: str) -> str:
    """The table of headlines in a page that was written earlier."""
    return page_text.split(HEADLINES, 1)[1].split("\n## ", 1)[0].strip()


def with_headlines(readme: str, page_text: str) -> str:
    """The README with the page's headlines between its two marks."""
    before, rest = readme.split(remarks.README_BEGIN, 1)
    _, after = rest.split(remarks.README_END, 1)
    return f"{before}{remarks.README_BEGIN}\n{headlines_of(page_text)}\n{remarks.README_END}{after}"
