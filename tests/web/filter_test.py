"""What of many machines the page shows: filters, chips, users, and the address that has them."""

import json
import time

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.release_only


def test_one_glance_at_the_idle_ones_and_back(fleet, open_page):
    page = open_page(fleet.url)
    chip = page.get_by_role("group", name="Show only the GPUs that are").get_by_role(
        "button", name="leased, idle"
    )
    count = int(chip.locator("b").inner_text())
    chip.click()
    expect(chip).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".narrowed")).to_contain_text(f"Shown: {count} GPUs of 96 on")
    assert page.locator(".machine").count() < 12
    assert page.locator(".tile:not(.gap):not(.is-idle)").count() == 0
    assert page.url.endswith("#state=idle")
    page.get_by_role("button", name="Show all", exact=True).click()
    expect(page.locator(".machine")).to_have_count(12)


def test_a_user_and_what_is_theirs(fleet, open_page):
    page = open_page(fleet.url)
    user = page.locator(".users").get_by_role("button").first
    name = user.inner_text()
    user.click()
    drawer = page.get_by_role("dialog", name=name)
    expect(drawer).to_contain_text("GPU-hours leased")
    expect(drawer.get_by_role("heading", name="Leases")).to_be_visible()
    drawer.get_by_role("button", name="Show only these GPUs").click()
    expect(drawer).to_have_count(0)
    expect(page.locator(".narrowed")).to_contain_text(f"{name}'s")
    assert set(page.locator(".tile .word").all_inner_texts()) == {name}
    # Whoever gets the address sees the same.
    assert page.url.endswith(f"#user={name}")
    expect(open_page(page.url).locator(".narrowed")).to_contain_text(f"{name}'s")


def test_the_filter_finds_who_waits_by_each_machine_that_they_wait_on(fleet, open_page):
    for number in (1, 2, 3, 4):
        fleet.fleet.machines[number].far = ["zoe"]
    page = open_page(fleet.url)
    page.get_by_role("searchbox").fill("node003 zoe")
    waiting = page.get_by_role("region", name="Queue")
    expect(waiting.get_by_role("listitem")).to_have_count(1)
    expect(waiting.locator(".place")).to_have_text("4 hosts")
    expect(waiting.locator(".place")).to_have_attribute("title", "node002, node003, node004, node005")


def test_a_filter_stands_in_the_address(fleet, open_page):
    page = open_page(fleet.url)
    page.get_by_role("searchbox", name="Filter the GPUs").fill("name~L40S")
    expect(page.locator(".narrowed")).to_contain_text("Shown: 24 GPUs of 96 on 3 machines")
    again = open_page(page.url)
    expect(again.get_by_role("searchbox")).to_have_value("name~L40S")
    expect(again.locator(".narrowed")).to_contain_text("Shown: 24 GPUs of 96 on 3 machines")


def test_plain_words_find_machines_users_notes_and_commands(fleet, open_page):
    page = open_page(fleet.url)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    field = page.get_by_role("searchbox", name="Filter the GPUs")
    devices = [
        (host, device, [lease for lease in host["snapshot"]["leases"] if lease["id"] in device["leases"]])
        for host in fleet.fleet.hosts()["hosts"]
        for device in host["snapshot"]["devices"]
    ]

    def has(words: str) -> int:
        texts = [
            json.dumps([host["name"], device["name"], device["processes"], leases])
            for host, device, leases in devices
        ]
        return sum(all(word in text.lower() for word in words.lower().split()) for text in texts)

    for words in ("node003", "Hanna", "pretrain.py", "deadline", "hanna h100"):
        field.fill(words)
        assert has(words) > 0
        expect(page.locator(".narrowed")).to_contain_text(f"Shown: {has(words)} GPUs of 96 on")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert [each for each in asked if "match" in each] == []
    field.fill("nobody-has-this")
    expect(page.locator(".machines")).to_contain_text("No GPU matches this filter.")
    field.fill("")
    expect(page.locator(".machine")).to_have_count(12)


def test_an_answer_that_is_slower_than_the_news_still_narrows(fleet, open_page):
    answer = fleet.fleet.match

    def slow(expression: str) -> dict:
        for _ in range(4):
            time.sleep(0.5)
            fleet.look()
        return answer(expression)

    fleet.fleet.match = slow
    page = open_page(fleet.url)
    page.get_by_role("searchbox").fill("name~H100")
    expect(page.locator(".narrowed")).to_contain_text("Shown: 24 GPUs of 96")
    # Of the news that came meanwhile is asked as soon as there is an answer.
    fleet.fleet.match = lambda _: answer("name~none")
    expect(page.locator(".narrowed")).to_contain_text("Shown: 0 GPUs of 96")


def test_a_filter_outlives_a_server_that_is_away(fleet, open_page):
    page = open_page(f"{fleet.url}#filter=name~H100", expected="status of")
    expect(page.locator(".narrowed")).to_contain_text("Shown: 24 GPUs of 96")
    answer = fleet.fleet.match

    def away(expression: str) -> dict:
        raise LookupError(expression)

    fleet.fleet.match = away
    with page.expect_response(lambda response: response.status == 502):
        fleet.look()
    expect(page.locator(".narrowed")).to_contain_text("Shown: 24 GPUs of 96")
    expect(page.get_by_role("alert")).to_have_count(0)
    fleet.fleet.match = lambda _: answer("name~L40S")
    fleet.look()
    expect(page.locator(".narrowed")).to_contain_text("Shown: 24 GPUs of 96 on 3 machines")
