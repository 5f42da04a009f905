"""The page over a hundred machines of eight GPUs, in a real browser."""

import json
import re

import pytest
from fleet import Fleet
from jobs import eventually
from playwright.sync_api import expect
from schemas import checked_document

pytestmark = pytest.mark.release_only
# Of all that was loaded, compressed as it was.
TRANSFER = """performance.getEntries().filter(each => "transferSize" in each)
    .reduce((sum, each) => sum + each.transferSize, 0)"""


def longest_task_ms(trace: bytes) -> float:
    """Of the page's own thread, in the processor's time: what else runs on the machine does not count."""
    events = json.loads(trace)["traceEvents"]
    own = {(each["pid"], each["tid"]) for each in events if is_named(each, "CrRendererMain")}
    tasks = [
        each for each in events if each["name"].endswith("RunTask") and (each["pid"], each["tid"]) in own
    ]
    return max(each["tdur"] for each in tasks if "tdur" in each) / 1000


def is_named(event: dict, thread: str) -> bool:
    return event["name"] == "thread_name" and event["args"]["name"] == thread


def test_the_made_up_hub_speaks_as_a_real_one():
    hub = Fleet(range(10))
    hub.machines[3].down = hub.machines[4].stale = True
    document = hub.hosts()
    checked_document(document, "hosts")
    for host in document["hosts"]:
        checked_document(host["snapshot"], "list")
        checked_document(host["queue"], "queue")
    checked_document(hub.match("name~H100"), "match")
    checked_document(hub.timeline("node001"), "timeline")
    checked_document(hub.history("GPU-1", 86400), "history")
    checked_document(hub.usage(), "usage")


def test_a_hundred_machines_are_there_and_what_is_free_is_said(make_fleet, open_page):
    fleet = make_fleet(100)
    page = open_page(fleet.url)
    expect(page.get_by_role("region", name="node100")).to_be_attached()
    assert page.locator(".machine").count() == 100
    free = fleet.fleet.hosts()["summary"]["free"]
    expect(page.locator(".figure")).to_have_text(f"{free} of 800 free")
    expect(page.locator(".models")).to_contain_text("A100-40 free on")
    expect(page).to_have_title(f"{free} free – Berth")
    assert 20_000 < page.evaluate(TRANSFER) < 150_000


def test_updates_come_and_block_nothing(make_fleet, open_page, browser):
    fleet = make_fleet(100)
    page = open_page(fleet.url)
    browser.start_tracing(page=page, categories=["toplevel", "disabled-by-default-devtools.timeline"])
    tile = page.locator(".tile.is-leased").first
    for _ in range(3):
        before = tile.get_attribute("title")
        fleet.look()
        expect(tile).not_to_have_attribute("title", before)
    longest_ms = longest_task_ms(browser.stop_tracing())
    print(f"the longest task: {longest_ms} ms")
    # `./dev bench` has the bound that is promised; this one holds on a slow machine too.
    assert 0 < longest_ms < 100


def test_only_what_is_near_is_drawn(make_fleet, open_page):
    fleet = make_fleet(100)
    page = open_page(fleet.url)
    expect(page.locator(".tile").first).to_be_visible()
    assert page.locator(".tile").count() < 400
    last = page.get_by_role("region", name="node100")
    expect(last.locator(".tile")).to_have_count(0)
    last.scroll_into_view_if_needed()
    expect(last.locator(".tile")).to_have_count(8)


def test_a_machine_opens_to_its_table(fleet, open_page):
    page = open_page(fleet.url)
    opener = page.locator(".machines").get_by_role("button", name="node002")
    expect(opener).to_have_attribute("aria-expanded", "false")
    opener.click()
    table = page.get_by_role("table", name="GPUs of node002")
    expect(table.get_by_role("row")).to_have_count(9)
    expect(table.get_by_role("columnheader")).to_have_text(
        ["GPU", "Model", "State", "Until", "Load", "Memory (GiB)", "Temp", "Power", "Who, since, what"]
    )
    opener.click()
    expect(table).to_have_count(0)


def test_a_request_that_waits_on_several_machines_is_there_once(fleet, open_page):
    for number in (1, 2, 4):
        fleet.fleet.machines[number].far = ["zoe"]
    document = fleet.fleet.hosts()
    checked_document(document["hosts"][1]["queue"], "queue")
    count = sum(user["waiting"] for user in document["summary"]["users"])
    page = open_page(fleet.url)
    expect(page.get_by_role("button", name=f"{count} waiting")).to_be_visible()
    waiting = page.get_by_role("region", name="Queue")
    expect(waiting.locator(".count")).to_have_text(f"{count}")
    far = waiting.get_by_role("listitem").filter(has_text="zoe")
    expect(far).to_have_count(1)
    expect(far.locator(".place")).to_have_text("node002, node003, node005")
    expect(far.locator(".why")).to_have_text("node005: 0 of 8 free; GPU 1 leased ada 2 h")
    # Each machine counts who waits in its own queue.
    expect(page.get_by_role("region", name="node002").locator(".host-counts")).to_contain_text("1 waiting")
    page.get_by_role("region", name="Users").get_by_role("button", name=re.compile("Show all")).click()
    page.locator(".users").get_by_role("button", name="zoe").click()
    drawer = page.get_by_role("dialog", name="zoe")
    expect(drawer).to_contain_text("0 GPUs in 0 leases, 1 waiting")
    expect(drawer.get_by_role("listitem")).to_have_count(1)
    expect(drawer.get_by_role("listitem")).to_contain_text("node002, node003, node005")


def test_who_waits_in_the_line_of_the_lab_stands_in_its_order(make_fleet, open_page):
    fleet = make_fleet(3)
    _, one, two = fleet.fleet.machines
    one.far, two.far = ["zoe", "yan"], ["yan"]
    fleet.fleet.line = ["desk1:yan", "desk1:zoe"]
    checked_document(fleet.fleet.hosts(), "hosts")
    page = open_page(fleet.url)
    labs = page.locator(".lab")
    waiting = page.get_by_role("region", name="Queue").get_by_role("listitem").filter(has=labs)
    expect(waiting.locator("b")).to_have_text(["yan", "zoe"])
    expect(labs).to_have_text(["lab no. 1", "lab no. 2"])
    fleet.fleet.line = ["desk1:zoe", "desk1:yan"]
    fleet.look()
    expect(waiting.locator("b")).to_have_text(["zoe", "yan"])
    # Of a long line a hub tells the first ones only.
    fleet.fleet.line = ["desk1:yan", *(f"desk2:{number}" for number in range(499))]
    fleet.look()
    expect(labs).to_have_text(["lab no. 1"])
    everybody = page.get_by_role("region", name="Queue").locator("b")
    expect(everybody.last).to_have_text("zoe")
    fleet.fleet.line = []
    fleet.look()
    expect(labs).to_have_count(0)


def test_a_machine_that_is_down_says_why_and_since_when(fleet, open_page):
    def count_free() -> int:
        return fleet.fleet.hosts()["summary"]["free"]

    free = count_free()
    fleet.fleet.machines[4].down = True
    assert count_free() < free
    page = open_page(fleet.url)
    down = page.get_by_role("region", name="node005")
    expect(down).to_contain_text("down")
    expect(down).to_contain_text("connection refused; last word 5 min ago")
    expect(page.locator(".figure")).to_have_text(f"{count_free()} of 96 free")
    page.get_by_role("group", name="Show only the GPUs that are").get_by_role(
        "button", name="in trouble"
    ).click()
    expect(page.locator(".machine")).to_have_count(1)
    fleet.fleet.machines[4].down = False
    fleet.look()
    expect(page.locator(".figure")).to_have_text(f"{free} of 96 free")


def test_a_machine_whose_driver_hangs_shows_old_readings_as_such(fleet, open_page):
    fleet.fleet.machines[2].stale = True
    page = open_page(fleet.url)
    expect(page.get_by_role("region", name="node003")).to_contain_text(
        "old readings: GPU 3: the driver does not respond since 14:02, from 5 min ago"
    )


# What a person could have seen: both numbers, at each frame.
SAMPLE = """window.samples = []; (function sample() {
    const number = text => parseInt(document.querySelector(text).innerText.replace(/,/g, ""));
    samples.push([number(".figure b"), number(".chips .chip b")]);
    requestAnimationFrame(sample); })()"""


def test_the_big_number_and_the_chip_never_disagree(fleet, open_page):
    page = open_page(fleet.url)
    page.evaluate(SAMPLE)
    for down in (4, 6, 7, 9):
        fleet.fleet.machines[down].down = True
        fleet.look()
        free = fleet.fleet.hosts()["summary"]["free"]
        expect(page.locator(".figure")).to_have_text(f"{free} of 96 free")
    samples = page.evaluate("samples")
    assert len({figure for figure, _ in samples}) > 1
    assert [each for each in samples if each[0] != each[1]] == []


def test_a_table_is_sorted_by_its_heads(fleet, open_page):
    page = open_page(fleet.url)
    page.locator(".machines").get_by_role("button", name="node002").click()
    table = page.get_by_role("table", name="GPUs of node002")
    gpus = table.locator("tbody .gpu")
    before = gpus.all_inner_texts()
    use = table.get_by_role("columnheader", name="Load")

    def uses() -> list[int]:
        texts = table.locator("tbody td.use").all_inner_texts()
        return [int(text.strip().rstrip("%")) for text in texts]

    use.get_by_role("button").click()
    expect(use).to_have_attribute("aria-sort", "descending")
    assert uses() == sorted(uses(), reverse=True) and len(set(uses())) > 2
    use.get_by_role("button").click()
    expect(use).to_have_attribute("aria-sort", "ascending")
    assert uses() == sorted(uses())
    table.get_by_role("columnheader", name="GPU", exact=True).get_by_role("button").click()
    assert gpus.all_inner_texts() == before


def test_the_use_of_the_last_looks_is_drawn(fleet, open_page):
    page = open_page(fleet.url)
    page.locator(".machines").get_by_role("button", name="node002").click()
    line = page.get_by_role("table", name="GPUs of node002").locator("polyline").first
    for points in (2, 3, 4):
        fleet.look()
        expect(line).to_have_attribute("points", re.compile(rf"^(\S+ ){{{points - 1}}}\S+$"))


def test_what_is_not_of_now_is_not_called_live(fleet, open_page):
    page = open_page(fleet.url)
    said = page.locator(".connection")
    expect(said).to_have_text("live")
    fleet.fleet.machines[2].stale = fleet.fleet.machines[3].down = True
    fleet.look()
    expect(said).to_have_text("live, but for 2 machines")
    for machine in fleet.fleet.machines:
        machine.down = True
    fleet.look()
    expect(said).to_have_text("no machine answers")
    expect(said).to_have_class(re.compile("is-lost"))


def test_the_history_of_a_device(fleet, open_page):
    page = open_page(fleet.url)
    page.locator(".tile").first.click()
    drawer = page.get_by_role("dialog", name="GPU 0 of node001")
    expect(drawer).to_contain_text("Leased 63% of the time (shaded)")
    expect(drawer.locator(".chart svg")).to_have_count(4)
    drawer.get_by_role("button", name="7 days").click()
    expect(drawer.get_by_role("button", name="7 days")).to_have_attribute("aria-pressed", "true")
    expect(drawer.locator(".chart svg")).to_have_count(4)


def test_a_history_that_is_odd_costs_its_own_place_and_not_the_page(fleet, open_page):
    whole = fleet.fleet.history
    fleet.fleet.history = lambda *words: whole(*words) | {"rows": [[0, 1, 2, 3, 4, 5], None]}
    page = open_page(fleet.url, expected="Error")
    page.locator(".tile").first.click()
    drawer = page.get_by_role("dialog", name="GPU 0 of node001")
    expect(drawer.get_by_role("alert")).to_contain_text("This cannot be shown")
    expect(drawer).to_contain_text("Memory")
    expect(page.locator(".machine").first).to_be_visible()
    fleet.fleet.history = whole
    drawer.get_by_role("button", name="7 days").click()
    expect(drawer.locator(".chart svg")).to_have_count(4)


def test_who_looks_says_so_once_and_is_told_where_they_are(fleet, open_page):
    page = open_page(fleet.url)
    name = fleet.fleet.hosts()["summary"]["users"][0]["user"]
    page.get_by_label("Your name").select_option(name)
    expect(page.locator(".answers")).to_contain_text(re.compile(rf"{name} (has|is)"))
    page.reload()
    expect(page.get_by_label("Your name")).to_have_value(name)


def test_a_command_is_copied_and_the_page_says_that_it_changes_nothing(fleet, open_page):
    fleet.fleet.machines[1].far = ["zoe"]
    page = open_page(fleet.url)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    command = page.get_by_role("region", name="Queue").get_by_role("button", name="berth cancel").first
    words = command.locator("code").inner_text()
    command.click()
    expect(command).to_contain_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == words
    assert re.fullmatch(r"berth cancel [0-9a-f]{6}", words)
    expect(page.locator("footer")).to_have_count(1)
    expect(page.locator("footer")).to_contain_text("changes nothing")


def test_a_lost_connection_is_said_and_mends_itself(fleet, open_page):
    page = open_page(fleet.url, expected="ERR_")
    expect(page.locator(".connection")).to_have_text("live")
    page.context.set_offline(True)
    fleet.ended = True
    fleet.look()
    expect(page.locator("header [role=status]")).to_have_text("Connection lost.")
    expect(page.locator(".connection")).to_contain_text("connection lost, last data")
    assert page.locator(".machine").count() == 12
    fleet.ended = False
    page.context.set_offline(False)
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.locator(".connection")).to_have_text("live")


def test_a_server_without_news_is_not_taken_for_lost(fleet, open_page):
    """It breaks a silence of 15 s with a comment."""
    page = open_page(fleet.url)
    connection = page.locator(".connection")
    # The page's clock stands, so that no time passes but what the test lets pass.
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now()") + 3_600_000)
    tile = page.locator(".tile.is-leased").first
    before = tile.get_attribute("title")
    fleet.look()

    def has_heard() -> bool:
        page.clock.run_for(1)
        return tile.get_attribute("title") != before

    eventually(has_heard)
    page.clock.fast_forward(16_000)
    expect(connection).to_have_attribute("title", re.compile(r"data 1[67] s old"))
    page.clock.fast_forward(10_000)
    expect(connection).to_contain_text("connection lost, last data 2")


def test_the_keyboard_alone_reaches_a_device_and_comes_back(fleet, open_page):
    page = open_page(fleet.url)
    page.locator(".machines").get_by_role("button", name="node001").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tile").nth(2)).to_be_focused()
    page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog", name="GPU 2 of node001")
    expect(drawer).to_be_visible()
    expect(drawer.locator(":focus")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    expect(page.locator(".tile").nth(2)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".machines").get_by_role("button", name="node002")).to_be_focused()


@pytest.mark.parametrize(("colours", "width"), [("light", 1440), ("dark", 390)])
def test_nothing_bars_those_who_see_or_hear_it_otherwise(fleet, open_page, violations, colours, width):
    fleet.fleet.machines[4].down = True
    fleet.fleet.machines[2].stale = True
    page = open_page(
        fleet.url, color_scheme=colours, viewport={"width": width, "height": 850}, reduced_motion="reduce"
    )
    page.locator(".machines").get_by_role("button", name="node002").click()
    expect(page.get_by_role("table", name="GPUs of node002")).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator(".tile").first.click()
    expect(page.locator(".chart svg")).to_have_count(4)
    assert violations(page) == []


def test_it_has_the_colours_of_the_system_until_others_are_chosen(fleet, open_page):
    page = open_page(fleet.url, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(14, 18, 23)"
    page.get_by_role("button", name="Use light colours").click()
    assert page.evaluate(background) == "rgb(243, 245, 248)"
    page.reload()
    page.wait_for_selector(".machine")
    assert page.evaluate(background) == "rgb(243, 245, 248)"


def test_none_free_is_no_good_news(make_fleet, open_page):
    fleet = make_fleet(1)
    hosts = fleet.fleet.hosts

    def without_free() -> dict:
        document = hosts()
        for device in document["hosts"][0]["snapshot"]["devices"]:
            device["verdict"] = device["verdict"] | {"free": False, "clause": "not_excluded"}
        return document

    colour = "element => getComputedStyle(element).color"
    some = open_page(fleet.url).locator(".figure b")
    green = some.evaluate(colour)
    fleet.fleet.hosts = without_free
    none = open_page(fleet.url).locator(".figure b")
    expect(none).to_have_text("0")
    assert none.evaluate(colour) != green


def test_a_time_that_is_none_costs_its_own_words_and_not_the_page(make_fleet, open_page):
    """Whoever has a ticket writes into it what he likes."""
    fleet = make_fleet(1)
    lease = fleet.fleet.machines[0]._lease
    fleet.fleet.machines[0]._lease = lambda *words: lease(*words) | {"since_s": 9 * 10**18}
    page = open_page(fleet.url)
    expect(page.locator(".devices tbody tr")).to_have_count(8)
    fleet.look()
    expect(page.locator(".devices tbody tr")).to_have_count(8)


def test_a_token_that_no_header_can_carry_is_not_the_token(make_fleet, open_page):
    page = open_page(make_fleet(2, token="right").url, expected="40", wait_for=".token")
    field = page.get_by_label("Token")
    field.fill("right\u200b")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("That is not the token.")
    field.fill("right")
    page.keyboard.press("Enter")
    expect(page.locator(".machine")).to_have_count(2)


def test_a_browser_that_keeps_nothing_shows_the_page_and_takes_a_token(make_fleet, browser):
    context = browser.new_context()
    context.add_init_script(
        """for (const name of ["localStorage", "sessionStorage"])
             Object.defineProperty(window, name, {get() { throw new DOMException("no", "SecurityError"); }});"""
    )
    page = context.new_page()
    page.goto(make_fleet(2, token="right").url)
    page.get_by_label("Token").fill("right")
    page.keyboard.press("Enter")
    expect(page.locator(".machine")).to_have_count(2)
    page.get_by_role("button", name="colours").click()
    context.close()


def test_an_open_drawer_gives_way_to_the_question_for_a_token(make_fleet, open_page):
    fleet = make_fleet(2, token="first")
    page = open_page(fleet.url, expected="40", wait_for=".token")
    page.get_by_label("Token").fill("first")
    page.keyboard.press("Enter")
    page.locator(".devices tbody").get_by_role("button").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    fleet.token = "second"
    fleet.hang_up()
    field = page.get_by_label("Token")
    expect(field).to_be_focused()
    field.fill("second")
    page.keyboard.press("Enter")
    expect(page.locator(".machine")).to_have_count(2)
