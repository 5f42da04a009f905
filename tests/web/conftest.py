import contextlib
import pathlib

import pytest
from agent import Agent
from fleet import Fleet
from fleet_server import FleetServer
from playwright.sync_api import expect, sync_playwright
from simulated_machine import BUILD

ROOT = pathlib.Path(__file__).parents[2]
AXE = (ROOT / "web/node_modules/axe-core/axe.min.js").read_text()
# A hang guard: what is waited for comes with the next look, in a second.
DEADLINE_MS = 20_000
CHROMIUM = "/usr/bin/chromium"
# As root and in a container, without what asks Google's hosts.
SWITCHES = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --disable-dev-shm-usage""".split()


@pytest.fixture
def agent(machine) -> Agent:
    """Of eight H100."""
    return Agent(machine)


@pytest.fixture(scope="module")
def browser():
    """One for all tests of a module: no longer, because Playwright's loop would be in the way of other tests' own."""
    expect.set_options(timeout=DEADLINE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, make_machine, make_fleet):
    """open_page(URL, …): the page as a person sees it. Whatever the test is about, nothing is asked of another
    server, and nothing goes wrong unseen: `expected` is what the console may say. It is closed before its server is,
    and so asks nobody who has ended."""
    with contextlib.ExitStack() as stack:
        seen = []

        def open_one(url: str, expected: str = "", wait_for: str = ".machine", **options):
            context = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | options))
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(DEADLINE_MS)
            asked, wrong = [], []
            page.on("request", lambda request: asked.append(request.url))
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on(
                "console", lambda line: wrong.append(line.text) if line.type in ("error", "warning") else None
            )
            seen.append((url, expected, asked, wrong))
            page.goto(url)
            page.wait_for_selector(wait_for)
            return page

        yield open_one
    for url, expected, asked, wrong in seen:
        origin = "/".join(url.split("/")[:3]) + "/"
        assert [each for each in asked if not each.startswith((origin, "data:"))] == []
        assert [each for each in wrong if not expected or expected not in each] == []


@pytest.fixture
def make_fleet():
    """make_fleet(12): so many machines of eight GPUs, at one address, `url`."""
    with contextlib.ExitStack() as stack:

        def make(machines: int, **options) -> FleetServer:
            server = FleetServer(Fleet(range(machines)), BUILD / "page", **options)
            stack.callback(server.end)
            return server

        yield make


@pytest.fixture
def fleet(make_fleet):
    """A dozen machines: enough to be shown as many are."""
    return make_fleet(12)


@pytest.fixture
def violations():
    """What of WCAG 2.2 AA a page does not keep, as far as a program can see it."""

    def find(page) -> list:
        # What is still fading in has the colours of no moment.
        page.evaluate("Promise.allSettled(document.getAnimations().map(each => each.finished))")
        page.evaluate(AXE)
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        found = page.evaluate("tags => axe.run(document, {runOnly: tags})", tags)
        return [
            (rule["id"], rule["nodes"][0]["html"], rule["nodes"][0]["failureSummary"])
            for rule in found["violations"]
        ]

    return find
