"""The hours of machines on the page: what it draws, what it says in words, and what it leaves out."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.release_only


def test_the_hours_of_a_machine_open_and_say_in_words_what_they_draw(fleet, open_page, violations):
    page = open_page(fleet.url)
    hours = page.get_by_role("region", name="Hours")
    band = hours.get_by_role("button", name="node002")
    band.click()
    rows = hours.get_by_role("list", name="Hours of the GPUs of node002").get_by_role("button")
    expect(rows).to_have_count(8)
    line = fleet.fleet.timeline("node002")
    for row, told in zip(rows.all(), line["rows"], strict=True):
        said = row.get_attribute("aria-label")
        assert said.startswith(f"GPU {told['gpu']}: ")
        assert all(bar["user"] in said for bar in told["bars"])
        assert said.count(" until about ") >= sum(bar["expected_s"] is not None for bar in told["bars"])
        assert said.count(", at most 31.0 GiB in use, mean use 72 %, 214 Wh, clean") == 1, (
            "of the lease that is over"
        )
        assert row.locator("xpath=..").locator(".bar").count() == len(told["bars"])
    assert any(bar["expected_s"] for row in line["rows"] for bar in row["bars"])
    assert violations(page) == []
    rows.first.click()
    expect(page.get_by_role("dialog", name="GPU 0 of node002")).to_be_visible()
    page.keyboard.press("Escape")
    expect(rows.first).to_be_focused()
    band.click()
    expect(rows).to_have_count(0)


# The least contrast of a name on its plate, over the paint of its bar, as WCAG reckons it.
LEAST_CONTRAST = """() => {
    const brush = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
    const light = colours => {
        for (const colour of colours) { brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); }
        const [r, g, b] = [...brush.getImageData(0, 0, 1, 1).data].map(each => {
            const part = each / 255;
            return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return Math.min(...[...document.querySelectorAll(".bar .who:not(:empty)")].map(name => {
        const { color, backgroundColor } = getComputedStyle(name);
        const ground = light([getComputedStyle(name.parentElement).borderTopColor, backgroundColor]);
        const ink = light([color]);
        return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    }));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_name_in_the_hours_can_be_read_on_its_bar(fleet, open_page, scheme):
    page = open_page(fleet.url)
    page.emulate_media(color_scheme=scheme)
    hours = page.get_by_role("region", name="Hours")
    for name in ("node001", "node002", "node003"):
        hours.get_by_role("button", name=name).click()
        expect(hours.get_by_role("list", name=f"Hours of the GPUs of {name}")).to_be_visible()
    assert page.locator(".bar .who:not(:empty)").count() > 10
    assert page.evaluate(LEAST_CONTRAST) >= 4.5


def test_a_lease_that_outlasts_the_hours_has_no_edge_of_a_limit(fleet, open_page):
    told = fleet.fleet.timeline

    def longer(name: str) -> dict:
        line = told(name)
        limited = [bar for row in line["rows"] for bar in row["bars"] if bar["end"] == "limit"]
        limited[0]["until_s"] = line["to_s"] + 60
        return line

    fleet.fleet.timeline = longer
    page = open_page(fleet.url)
    hours = page.get_by_role("region", name="Hours")
    hours.get_by_role("button", name="node002").click()
    edges = hours.locator(".bar.is-lease.is-limit:not(.tl-legend *)")
    expect(edges.first).to_be_visible()
    widths = edges.evaluate_all("bars => bars.map(bar => getComputedStyle(bar).borderRightWidth)")
    assert widths.count("0px") == 1 and set(widths) == {"0px", "3px"}


def test_a_filter_for_a_user_leaves_the_others_out_of_the_queue_of_the_hours(make_fleet, open_page):
    fleet = make_fleet(100)

    def users(host: dict, what: str) -> list[str]:
        return [each["user"] for each in (host["queue"] | host["snapshot"])[what]]

    host, user = next(
        (host, user)
        for host in fleet.fleet.hosts()["hosts"]
        for user in users(host, "leases")
        if 0 < users(host, "waiters").count(user) < len(users(host, "waiters"))
    )
    page = open_page(f"{fleet.url}#filter={user}")
    hours = page.get_by_role("region", name="Hours")
    hours.get_by_role("button", name=host["name"]).click()
    waiters = hours.get_by_role("list", name="From about when the requests that wait start")
    rows = waiters.get_by_role("listitem")
    expect(rows).to_have_count(users(host, "waiters").count(user))
    for row in rows.all():
        expect(row).to_contain_text(f"{user}, ")


def test_a_server_that_is_too_old_to_tell_hours_costs_their_place_alone(fleet, open_page):
    def unknown(_):
        raise LookupError

    fleet.fleet.timeline = unknown
    page = open_page(fleet.url, expected="404")
    hours = page.get_by_role("region", name="Hours")
    hours.get_by_role("button", name="node002").click()
    expect(hours).to_contain_text("The Berth of node002 is too old to tell its hours.")
    expect(page.locator(".machine")).to_have_count(12)
