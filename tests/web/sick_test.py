"""What the page says of GPUs that are not given to everybody."""

import getpass

import pytest
from agent import Agent
from outcomes_told import blamed_by, file_of
from playwright.sync_api import expect

pytestmark = pytest.mark.release_only


def test_a_gpu_that_is_passed_over_or_taken_out_says_so_for_whom_and_why(make_machine, open_page):
    machine = make_machine("3xA100")
    assert machine.berth("run", "--", "true").status == 0
    file_of(machine).write_text(blamed_by(machine, 7))
    assert machine.berth("exclude", "2", "--because", "its fan").status == 0
    page = open_page(f"http://127.0.0.1:{Agent(machine).port}/")
    rows = page.locator(".devices tbody tr")
    expect(rows.nth(0)).to_contain_text(f"passed over for {getpass.getuser()}")
    expect(rows.nth(0)).to_contain_text("passed over until ")
    expect(rows.nth(1)).not_to_contain_text("passed over")
    expect(rows.nth(2)).to_contain_text("excluded by the site: its fan")
    page.get_by_role("button", name="GPU 0, details").click()
    details = page.get_by_role("dialog")
    expect(details.get_by_role("heading", name="Passed over")).to_be_visible()
    expect(details).to_contain_text("the same program lives on GPU 1")
