"""The picture of the page in README.md: of the machine that ./dev demo --serve shows."""

import os
import pathlib
import re
import struct
import subprocess
import sys

import pytest
from jobs import Lines
from playwright.sync_api import expect
from simulated_machine import BUILD, DEADLINE_S

pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[2]
PICTURE = ROOT / "docs/images/page.png"
SIZE = {"width": 1280, "height": 860}


@pytest.fixture
def demo():
    """The address of its page."""
    process = subprocess.Popen(
        [sys.executable, ROOT / "tools/living_machine.py", BUILD / "berth", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        lines = Lines(process.stdout)
        while "http://" not in (line := lines.line()):
            assert line, "it ended"
        yield line.strip()
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def test_the_picture_of_the_page_is_of_what_the_demo_shows(demo, open_page):
    page = open_page(demo, viewport=SIZE, color_scheme="light")
    answers = page.locator(".answers")
    expect(answers).to_contain_text(re.compile(r"Next: GPU \d+, about \d\d:\d\d"))
    expect(answers).to_contain_text("berth run -- COMMAND")
    name = page.locator(".devices .holder b").first.inner_text()
    page.get_by_label("Your name").select_option(name)
    # Who has said who it is sees which rows are theirs.
    mine = page.locator(".devices tr.is-mine, .waiters li.is-mine")
    expect(mine.first).to_contain_text("you")
    expect(page.locator(".bar.is-over").first).to_be_attached()
    expect(page.locator(".waiters li").first).to_contain_text("4 whole GPUs")
    # Its programs have begun to compute.
    expect(page.locator(".devices .use").first).to_have_text(re.compile(r"[5-9]\d%|100%"))
    expect(answers).to_contain_text(re.compile(r"Leased and idle: GPU \d \(\w+, \d+ s\)\."))
    assert "docs/images/page.png" in (ROOT / "README.md").read_text()
    if os.environ.get("BERTH_WRITE_PICTURES"):
        page.screenshot(path=PICTURE)
    head = PICTURE.read_bytes()[:24]
    assert head[1:4] == b"PNG" and struct.unpack(">II", head[16:24]) == (SIZE["width"], SIZE["height"])
