#!/usr/bin/env python3
"""Measures Berth beside its peers and the limit, and writes docs/benchmarks.md, its charts and the README's table.

The page is replaced only by a run of all parts that came to its end; with parts named, or with --quick, the result
lies in build/bench. A part that is computed and not timed (line) replaces its own section, too. The status is 0 whatever the figures are, and 1 when something of ours could not be measured.
"""

from __future__ import annotations

import argparse
import datetime
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import charts
import collisions
import cycles
import hubs
import instructions
import labs
import look
import markdown
import ordering
import serving
import shelf
import submitting
import tenants
import waiting
from machines import has_driver
from results import OURS, Report, Row
from setting import ROOT, Bench

Part = Callable[[Bench], "Row | list[Row]"]
# The number of the (first) row of each.
PARTS: dict[str, tuple[int, Part]] = {
    "look": (1, look.look),
    "pick": (2, look.pick),
    "start": (3, look.start),
    "python": (4, look.import_and_pick),
    "handover": (5, waiting.hand_over),
    "cycles": (7, cycles.cycles),
    "idle": (8, waiting.idle),
    "collide": (9, collisions.collide),
    "serve": (10, serving.serve),
    "hub": (11, hubs.hub),
    "page": (13, serving.page),
    "instructions": (12, instructions.execute),
    "line": (14, ordering.line),
    "submit": (15, submitting.submit),
    "agents": (16, tenants.agents),
    "lab": (17, labs.lab),
}
# What is the same on every machine and needs no peer: its section can stand beside what another run
# measured.
COMPUTED = {"line"}
# What needs no peer but Debian's programs.
OF_DEBIAN = {"line", "lab"}
RUNS = 40
QUICK_RUNS, QUICK_SHARE = 6, 0.1
NEEDED_MEMORY_MIB = 6000  # 1,000 waiters of ours, 100 of Python's
NEEDED_DISK_MIB = 2000  # the peers
NEEDED_FILES = 8192  # pipes to 2,000 waiters, 1,000 event streams
PAGE, CHARTS, README = "benchmarks.md", "benchmarks", ROOT / "README.md"


# Before -------------------------------------------------------------------------------------------


def shortages() -> list[str]:
    """What is too little here, each with a remedy."""
    told = []
    available = int(re.search(r"MemAvailable:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) // 1024
    if available < NEEDED_MEMORY_MIB:
        told.append(
            f"{available} MiB of memory are free, {NEEDED_MEMORY_MIB} MiB are needed: end other programs"
        )
    for place in {pathlib.Path(tempfile.gettempdir()), ROOT}:
        free = shutil.disk_usage(place).free >> 20
        if free < NEEDED_DISK_MIB:
            told.append(f"{free} MiB of disk are free in {place}, {NEEDED_DISK_MIB} MiB are needed")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < NEEDED_FILES:
        told.append(f"a process may open {most} files, {NEEDED_FILES} are needed: ulimit -Hn {NEEDED_FILES}")
    return told


def allow_many_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED_FILES, most))


def machine_facts() -> list[tuple[str, str]]:
    cpu = re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = re.search(r'PRETTY_NAME="(.+)"', pathlib.Path("/etc/os-release").read_text())
    return [
        ("processors", f"{os.cpu_count()} × {cpu[1] if cpu else platform.machine()}"),
        ("memory", f"{memory:.0f} GiB"),
        ("system", f"{system[1] if system else 'Linux'}, kernel {platform.release()}"),
        ("Python", platform.python_version()),
        (
            "GPU",
            "its own, beside the simulated ones"
            if has_driver()
            else "none: rows 1 to 4 lack the real driver",
        ),
        ("load before", f"{os.getloadavg()[0]:.1f}"),
    ]


# The run ------------------------------------------------------------------------------------------


def ask(bench: Bench, names: list[str]) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        begin = time.monotonic()
        number, part = PARTS[name]
        try:
            asked = part(bench)
        except (OSError, ValueError, subprocess.SubprocessError, shelf.NotHad) as error:
            asked = Row(number, name, name.capitalize(), "It could not be asked.", trouble=str(error))
        rows += asked if isinstance(asked, list) else [asked]
        print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return sorted(rows, key=lambda row: row.number)


def draw_charts(rows: list[Row], folder: pathlib.Path) -> dict[int, str]:
    """The picture of each row, as the page names it."""
    shown: dict[int, str] = {}
    for row in rows:
        if picture := charts.draw(row.tables):
            path = folder / CHARTS / f"{row.number:02}-{row.part}.svg"
            path.write_text(picture)
            shown[row.number] = f"{CHARTS}/{path.name}"
    return shown


def put(text: str, folder: pathlib.Path) -> pathlib.Path:
    fresh = folder / f"{PAGE}.new"
    fresh.write_text(text)
    return fresh.rename(folder / PAGE)


def write(report: Report, folder: pathlib.Path) -> pathlib.Path:
    """The page and its charts; the page last, so that it is never there without them."""
    shutil.rmtree(folder / CHARTS, ignore_errors=True)
    (folder / CHARTS).mkdir(parents=True)
    return put(markdown.page(report, draw_charts(report.rows, folder)), folder)


def replace_sections(rows: list[Row], folder: pathlib.Path) -> pathlib.Path:
    """Those of the rows in the page that is there."""
    shown = draw_charts(rows, folder)
    return put(markdown.with_rows((folder / PAGE).read_text(), rows, shown), folder)


def failures_of_ours(rows: list[Row]) -> list[str]:
    return [f"{row.part}: {row.trouble}" for row in rows if row.trouble] + [
        f"{row.part}: {figure.name}: {figure.trouble}"
        for row in rows
        for table in row.tables
        for figure in table.figures
        if figure.role == OURS and not figure.measured
    ]


def options_of(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--real", action="store_true", help="fail where no real driver works")
    parser.add_argument("--quick", action="store_true", help="few runs: to see that it works")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="a release build")
    parser.add_argument("--out", type=pathlib.Path, help="the folder for the page and its charts")
    options = parser.parse_args(words)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    return options


def main(words: list[str]) -> int:
    options = options_of(words)
    if options.real and not has_driver():
        sys.exit("no real driver works here")
    names = options.parts or list(PARTS)
    is_computed = set(names) <= COMPUTED
    if not is_computed:
        if short := shortages():
            sys.exit("\n".join(["too little for a run:", *short]))
        allow_many_files()
        if not set(names) <= OF_DEBIAN:
            shelf.install_all()
    # So that all that was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended; the page is as it was"))
    begin = time.monotonic()
    facts, made = machine_facts(), datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as directory:
        pathlib.Path(directory).chmod(0o755)
        runs, share = (QUICK_RUNS, QUICK_SHARE) if options.quick else (RUNS, 1.0)
        bench = Bench(options.build.resolve(), pathlib.Path(directory), runs, share)
        rows = ask(bench, names)
    command = " ".join(["./dev bench", *words])
    if is_computed and not options.quick and not options.out and not failures_of_ours(rows):
        print(f"{replace_sections(rows, ROOT / 'docs')}: replaced what {', '.join(names)} computes")
        return 0
    versions = shelf.versions_of_debian() if set(names) <= OF_DEBIAN else shelf.versions()
    report = Report(made, facts, versions, rows, (time.monotonic() - begin) / 60, command)
    is_whole = not options.parts and not options.quick
    page = write(report, options.out or (ROOT / "docs" if is_whole else ROOT / "build/bench"))
    if is_whole and not options.out:
        README.write_text(markdown.with_headlines(README.read_text(), page.read_text()))
    print(f"{page}, after {report.minutes:.1f} minutes")
    for failure in (failed := failures_of_ours(rows)):
        print(failure, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
