#!/usr/bin/env python3
"""Measures the page of `berth serve --hub` over a hundred machines of eight GPUs, in Debian's Chromium.

The hub and the page are real; the agents that it asks are made up (tests/web/fleet.py), and all have news each second.
Each visit is a first one: an empty cache, a new profile. The status is 0 whatever the figures are, and 1 when
something could not be measured.
"""

import argparse
import contextlib
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests/web")]

from fleet import Fleet  # noqa: E402
from fleet_server import FleetServer  # noqa: E402

VISITS = 10
SECONDS = 30
MACHINES = 100
PATIENCE_MS = 60_000  # far beyond any of them: only against one that hangs
SWITCHES = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --disable-dev-shm-usage""".split()
# When the first device is painted: the frame after the one in which it came to be.
WATCH = """
new MutationObserver((_, observer) => {
  if (!document.querySelector(".tile")) return;
  observer.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.shownAtMs = performance.now();
  }));
}).observe(document, {childList: true, subtree: true});
window.longTasks = [];
new PerformanceObserver(list => window.longTasks.push(...list.getEntries().map(each => each.duration)))
  .observe({type: "longtask"});
"""
FIGURES = """
() => ({
  paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
  shown: Number(document.documentElement.dataset.shownAtMs),
  transfer: performance.getEntries().filter(each => "transferSize" in each)
      .reduce((sum, each) => sum + each.transferSize, 0),
})"""


@contextlib.contextmanager
def lab(build: pathlib.Path, machines: int):
    """The address of a hub over so many machines, all of which it has seen."""
    agents = [FleetServer(Fleet([number], is_hub=False), build / "page") for number in range(machines)]
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(1):
            for agent in agents:
                agent.look()

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "agents.toml")
        file.write_text(
            "".join(
                f'[[agent]]\nname = "node{number + 1:03}"\nurl = "{agent.url[:-1]}"\ninsecure = true\n'
                for number, agent in enumerate(agents)
            )
        )
        hub = subprocess.Popen(
            [build / "berth", "serve", "--hub", "--agents", file, "--every", "1", "--no-history"]
            + ["--listen", "127.0.0.1:0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        clock = threading.Thread(target=go_on)
        clock.start()
        try:
            line = hub.stderr.readline()
            found = re.search(r"serving (\S+)", line)
            if not found:
                raise RuntimeError(line.strip())
            time.sleep(5)  # it asks each machine within its first seconds
            yield found[1] + "/"
        finally:
            ended.set()
            hub.terminate()
            hub.wait()
            clock.join()
            for agent in agents:
                agent.end()


def visit(browser: Browser, url: str) -> tuple[Page, dict]:
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.add_init_script(WATCH)
    page.goto(url)
    page.wait_for_selector("html[data-shown-at-ms]")
    return page, page.evaluate(FIGURES)


def updates(page: Page) -> tuple[float, float]:
    """The longest task while news of all machines comes, and the share of a core that the page takes."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def busy_s() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    page.wait_for_timeout(2000)
    page.evaluate("window.longTasks = []")
    busy, start = busy_s(), time.monotonic()
    page.wait_for_timeout(1000 * SECONDS)
    share = (busy_s() - busy) / (time.monotonic() - start)
    return max(page.evaluate("window.longTasks"), default=0), share


def measure(url: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=SWITCHES)
        visits = []
        for _ in range(VISITS):
            page, figures = visit(browser, url)
            visits.append(figures)
            page.context.close()
        page, _ = visit(browser, url)
        longest, share = updates(page)
        browser.close()
    for words, key in ("first paint", "paint"), ("first devices shown", "shown"):
        times = sorted(each[key] for each in visits)
        spread = f"{times[0]:.0f} to {times[-1]:.0f} ms in {VISITS} visits"
        print(measured(words, statistics.median(times), "ms", 1000), spread, sep="; ")
    print(measured("transfer, compressed", visits[0]["transfer"] / 1000, "kB", 150))
    print(measured("longest task, updates", longest, "ms", 50) + f", in {SECONDS} s; 0 if none was longer")
    print(f"{'the page, updates':<24} {100 * share:6.1f} %    of a core")


def measured(words: str, figure: float, unit: str, most: float) -> str:
    kept = "" if figure <= most else ", **missed**"
    decimals = 1 if unit == "kB" else 0
    return f"{words:<24} {figure:6.{decimals}f} {unit}   (wanted: at most {most:g} {unit}{kept})"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--url", help="of an agent or hub that runs, instead")
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    options.add_argument("--machines", type=int, default=MACHINES)
    chosen = options.parse_args()
    try:
        with contextlib.nullcontext(chosen.url) if chosen.url else lab(chosen.build, chosen.machines) as url:
            measure(url)
    except (OSError, RuntimeError) as error:
        print(f"page: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
