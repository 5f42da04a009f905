#!/usr/bin/env python3
"""Measures the page of `berth serve` over a hundred machines of eight GPUs, in Debian's Chromium.

The machines are made up (tests/web/fleet.py) and all have news each second; the page is that of the build. Each visit
is a first one: an empty cache, a new profile. The status is 0 whatever the figures are, and 1 when something could not be measured.
"""

import argparse
import pathlib
import statistics
import sys
import time

from playwright.sync_api import Page, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests"), str(ROOT / "tests/web")]

from fleet import Fleet, FleetServer  # noqa: E402

VISITS = 10
SECONDS = 30
MACHINES = 100
SWITCHES = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --disable-dev-shm-usage""".split()
# When the first device is painted: the frame after the one in which it came to be.
WATCH = """
new MutationObserver((_, observer) => {
  if (!document.querySelector(".tile")) return;
  observer.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => { window.shownAtMs = performance.now(); }));
}).observe(document, {childList: true, subtree: true});
window.longTasks = [];
new PerformanceObserver(list => window.longTasks.push(...list.getEntries().map(each => each.duration)))
  .observe({type: "longtask"});
"""
FIGURES = """
() => ({
  paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
  shown: window.shownAtMs,
  transfer: performance.getEntries().filter(each => "transferSize" in each)
      .reduce((sum, each) => sum + each.transferSize, 0),
})"""


def visit(browser, url: str) -> tuple[Page, dict]:
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(WATCH)
    page.goto(url)
    page.wait_for_function("window.shownAtMs")
    return page, page.evaluate(FIGURES)


def updates(page: Page, look) -> tuple[float, float]:
    """The longest task of many updates of all machines, and the share of a core that the page took."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def busy_s() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    page.evaluate("window.longTasks = []")
    busy, start = busy_s(), time.monotonic()
    for _ in range(SECONDS):
        if look:
            look()
        page.wait_for_timeout(1000)
    share = (busy_s() - busy) / (time.monotonic() - start)
    return max(page.evaluate("window.longTasks"), default=0), share


def measure(url: str, look) -> None:
    """`look`: makes news of all machines, or None where they have some by themselves."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=SWITCHES)
        visits = []
        for _ in range(VISITS):
            page, figures = visit(browser, url)
            visits.append(figures)
            page.context.close()
        page, _ = visit(browser, url)
        longest, share = updates(page, look)
        browser.close()
    for words, key in ("first paint", "paint"), ("first devices shown", "shown"):
        times = sorted(each[key] for each in visits)
        spread = f"{times[0]:.0f} to {times[-1]:.0f} ms of {VISITS} visits"
        print(f"{words:<24} {statistics.median(times):6.0f} ms   below 1000 ms; {spread}")
    print(f"{'transfer, compressed':<24} {visits[0]['transfer'] / 1000:6.1f} kB   below 150 kB")
    print(
        f"{'longest task, updates':<24} {longest:6.0f} ms   at most 50 ms, in {SECONDS} s; 0: none was as long"
    )
    print(f"{'the page, updates':<24} {100 * share:6.1f} %    of a core")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--url", help="of a real agent or hub, instead of the made-up one")
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    options.add_argument("--machines", type=int, default=MACHINES)
    chosen = options.parse_args()
    if chosen.url:
        measure(chosen.url, None)
        return 0
    if not (chosen.build / "page/index.html").is_file():
        print(f"page: {chosen.build} has no page: build berth-serve", file=sys.stderr)
        return 1
    server = FleetServer(Fleet(chosen.machines), chosen.build / "page")
    measure(server.url, server.look)
    server.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
