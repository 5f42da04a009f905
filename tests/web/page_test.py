"""The page of a real agent on a simulated machine, in a real browser: what a person sees and does."""

import getpass
import re
import shutil
import subprocess

import pytest
from agent import Agent
from hub import Hub
from jobs import holder, waiter
from playwright.sync_api import expect
from submitted import submit

pytestmark = pytest.mark.release_only
SCRIPT = "<script>document.title='broken'</script><img src=x>"
BUSY = """
[[device]]
model = "H100"
utilization = 97
temperature = 61
power_w = 512.4
[[device.process]]
pid = {pid}
used_mib = 40960

[[device]]
model = "H100"

[[device]]
model = "L40S"
lost = true

[[device]]
model = "L40S"
hidden_mib = 700
remap_pending = true
"""


def url(agent: Agent) -> str:
    return f"http://127.0.0.1:{agent.port}/"


def row(page, gpu: int):
    return page.locator(".devices tbody tr").nth(gpu)


def cells(page, gpu: int) -> list:
    return [text for text in row(page, gpu).locator("th, td").all_inner_texts()]


def test_who_has_what_what_is_wrong_and_where_is_a_free_one(make_machine, open_page):
    process = subprocess.Popen(["sleep", "600"])
    machine = make_machine(BUSY.format(pid=process.pid))
    page = open_page(url(Agent(machine)))
    expect(row(page, 0)).to_contain_text("outsider")
    gpu, model, state, until, use, memory, temperature, power, who = cells(page, 0)
    assert (gpu, model, use, temperature, power) == ("0", "H100-80", "97%", "61 °C", "512 W")
    assert memory == "40.0 / 79.6"
    assert until == ""
    assert "outsider" in who
    assert "sleep 600" in who
    assert cells(page, 1)[2] == "free"
    expect(row(page, 2)).to_contain_text("trouble")
    expect(row(page, 3)).to_contain_text("hidden holder")
    expect(row(page, 3)).to_contain_text("row remap pending")
    expect(row(page, 3)).to_contain_text("700 MiB in use beyond the listed processes")
    expect(page.locator(".figure")).to_have_text("1 of 4 free")
    expect(page.locator(".models")).to_contain_text("1 × H100-80 free")
    expect(page.locator(".models")).to_contain_text("no L40S free")
    expect(page.get_by_role("region", name="Outsiders")).to_contain_text("sleep 600")
    process.kill()
    expect(row(page, 0)).not_to_contain_text("outsider")
    process.wait()


def test_a_lease_and_a_wait_come_and_go_before_ones_eyes(machine, open_page):
    page = open_page(url(Agent(machine)))
    expect(page.locator(".figure")).to_have_text("8 of 8 free")
    expect(page.get_by_role("region", name="Queue")).to_contain_text("Nobody waits.")
    job = holder(machine, "-n", "2", "--note", "for the paper")
    expect(row(page, 0)).to_contain_text("for the paper")
    expect(row(page, 0)).to_contain_text("leased, idle")
    expect(page.locator(".figure")).to_have_text("6 of 8 free")
    waiting = waiter(machine, "-n", "8")
    expect(page.get_by_role("region", name="Queue")).to_contain_text("8 whole GPUs")
    assert page.locator(".waiters .why").bounding_box()["height"] < 30, "one line, all of it in the title"
    expect(page.get_by_role("region", name="Queue")).to_contain_text("6 of 8 free; GPU 0,1 leased")
    page.locator(".users").get_by_role("button").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 GPUs in 1 lease, 2 of them idle, 1 waiting")
    page.keyboard.press("Escape")
    job.ends()
    expect(page.locator(".figure")).to_have_text("0 of 8 free")
    waiting.ends()


def test_when_a_lease_ends_and_a_wait_starts_and_what_is_kept(in_order, open_page):
    machine = in_order("8xH100")
    page = open_page(url(Agent(machine)))
    job = holder(machine, "-n", "2", "--time", "2h")
    expect(row(page, 0).locator(".until")).to_have_text(re.compile(r"(\d+ \w+ )?\d\d:\d\d"))
    waiting = waiter(machine, "-n", "8")
    expect(page.get_by_role("region", name="Queue")).to_contain_text(
        re.compile(r"8 whole GPUs starts about (\d+ \w+ )?\d\d:\d\d")
    )
    expect(page.locator(".figure")).to_have_text("0 of 8 free")
    expect(row(page, 7)).to_contain_text("kept for")
    expect(page.get_by_role("button", name="6 kept for a waiter")).to_be_visible()
    job.ends()
    waiting.ends()


def test_jobs_that_run_or_stand_in_line_are_listed_by_name_number_and_user(
    make_machine, open_page, violations
):
    machine = make_machine("3xH100")
    page = open_page(url(Agent(machine)))
    jobs = page.get_by_role("region", name="Jobs")
    expect(page.get_by_role("region", name="Queue")).to_contain_text("Nobody waits.")
    expect(jobs).to_have_count(0)
    other = holder(machine, "--note", "jobs 7 are for later")
    sweep = submit(machine, "-J", SCRIPT, "--array", "0-4", "--note", "a: b", "--", "sleep", "1000")
    lines = jobs.locator("li")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text(SCRIPT)
    expect(lines).to_contain_text(f"job {sweep}{getpass.getuser()}")
    # Of five tasks one stands in line; the two others wait behind it, and only their user knows of
    # them.
    expect(lines).to_contain_text("2 tasks running on GPU 1, 2; in line")
    assert violations(page) == []
    assert machine.berth("cancel", f"{sweep}.0").status == 0
    expect(lines.locator(".wish")).to_have_attribute("title", re.compile(r"^task 1: GPU \d\ntask 2: GPU \d$"))
    page.get_by_role("searchbox").fill("nowhere")
    expect(lines).to_have_count(0)
    page.get_by_role("searchbox").fill(f"job {sweep}")
    expect(lines).to_have_count(1)
    assert machine.berth("cancel", sweep).status == 0
    other.ends()
    page.get_by_role("searchbox").fill("")
    lone = submit(machine, "--array", "7", "--", "sleep", "1000")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text(f"job {lone}.7")
    expect(lines).to_contain_text("running on GPU")
    assert machine.berth("cancel", lone).status == 0
    expect(jobs).to_have_count(0)


@pytest.fixture
def token(tmp_path):
    """Its file."""
    file = tmp_path / "token"
    file.write_text("a-secret-of-one-word\n")
    file.chmod(0o600)
    return file


def test_who_serves_own_jobs_sees_them_with_what_they_print(machine, token, open_page, violations):
    agent = Agent(machine, "--own-jobs", "--token-file", token)
    page = open_page(url(agent), expected="40", wait_for=".token")
    page.get_by_label("Token").fill("a-secret-of-one-word")
    page.keyboard.press("Enter")
    expect(page.locator(".machine")).to_have_count(1)
    mine = page.get_by_role("region", name="Jobs")
    expect(mine).to_have_count(0)
    failed = submit(machine, "-J", SCRIPT, "--", "sh", "-c", 'echo "$0"; exit 3', SCRIPT)
    sweep = submit(machine, "--array", "0-1", "--", "echo", "a task")
    lines = mine.locator("li")
    # The newest first.
    expect(lines.nth(0)).to_contain_text("2 done")
    expect(lines.nth(1)).to_contain_text(f"job {failed}")
    expect(lines.nth(1)).to_contain_text("failed")
    expect(lines.nth(1)).to_contain_text(SCRIPT)
    assert violations(page) == []
    mine.get_by_role("button", name=f"job {failed}").click()
    drawer = page.get_by_role("dialog")
    expect(drawer.locator("pre")).to_have_text(SCRIPT)
    expect(drawer).to_contain_text("exit status 3")
    assert violations(page) == []
    page.keyboard.press("Escape")
    mine.get_by_role("button", name=f"job {sweep}").click()
    tasks = drawer.get_by_role("list", name="Tasks")
    expect(tasks.get_by_role("listitem")).to_have_count(2)
    tasks.get_by_role("button", name=f"{sweep}.1").click()
    expect(drawer.locator("pre")).to_have_text("a task")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("searchbox").fill("failed")
    expect(lines).to_have_count(1)


def test_of_a_waiting_job_the_page_has_the_commands_that_change_it(machine, token, open_page, violations):
    agent = Agent(machine, "--own-jobs", "--token-file", token)
    other = holder(machine, "-n", "8")
    waiting = submit(machine, "--", "sleep", "1000")
    later = submit(machine, "--at", "8h", "--array", "7", "--", "sleep", "1000")
    page = open_page(url(agent), expected="40", wait_for=".token")
    page.get_by_label("Token").fill("a-secret-of-one-word")
    page.keyboard.press("Enter")
    queue = page.get_by_role("region", name="Queue")
    for words in (f"edit {waiting} --hold", f"edit {waiting} --first", f"cancel {waiting}"):
        expect(queue.get_by_role("button", name=f"berth {words} ")).to_be_visible()
    page.get_by_role("region", name="Jobs").get_by_role("button", name=f"job {later}.7").click()
    drawer = page.get_by_role("dialog")
    for words in (f"edit {later} --hold", f"edit {later} --first", f"cancel {later}.7"):
        expect(drawer.get_by_role("button", name=f"berth {words} ")).to_be_visible()
    assert violations(page) == []
    assert machine.berth("edit", later, "--hold").status == 0
    expect(drawer.get_by_role("button", name=f"berth edit {later} --no-hold ")).to_be_visible()
    assert machine.berth("edit", later, "--no-hold").status == 0
    assert machine.berth("cancel", later).status == 0
    expect(drawer.get_by_role("button", name=f"berth edit {later} ")).to_have_count(0)
    assert machine.berth("cancel", waiting).status == 0
    other.ends()


def test_what_workloads_call_themselves_stays_text(machine, open_page):
    holder(machine, "--note", SCRIPT)
    process = subprocess.Popen(["bash", "-c", "read", SCRIPT], stdin=subprocess.PIPE)
    machine.change(
        f'[[device]]\nmodel = "H100"\n[[device]]\nmodel = "H100"\n[[device.process]]\npid = {process.pid}\n'
    )
    page = open_page(url(Agent(machine)))
    expect(row(page, 0)).to_contain_text(SCRIPT)
    expect(row(page, 1)).to_contain_text(SCRIPT)
    row(page, 1).get_by_role("button").click()
    expect(page.get_by_role("dialog").locator(".processes")).to_contain_text(SCRIPT)
    assert page.locator("body img, body script").count() == 0
    expect(page).to_have_title("0 free – Berth")
    process.communicate()


def test_the_filter_is_the_language_of_requests_and_a_mistake_has_its_column(make_machine, open_page):
    page = open_page(url(Agent(make_machine("2xH100+6xL40S"))), expected="40")
    field = page.get_by_role("searchbox", name="Filter the GPUs")
    field.fill("name~h100 and free>=20G")
    expect(page.locator(".narrowed")).to_contain_text("Shown: 2 GPUs of 8 on 1 machine")
    expect(page.locator(".devices tbody tr")).to_have_count(2)
    field.fill("name~h100 and fre>=20G")
    error = page.get_by_role("alert")
    expect(error).to_contain_text('column 15: "fre" is not a field; did you mean "free"?')
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile("column 15"))
    field.fill("")
    expect(error).to_have_count(0)
    expect(page.locator(".devices tbody tr")).to_have_count(8)


def test_the_link_to_the_documents_leads_to_them_or_says_where_they_are(machine, open_page, tmp_path):
    # In a checkout there may be those that `./dev docs` has built.
    for name in ("berth", "berth-serve"):
        shutil.copy(machine.build / name, tmp_path)
    machine.program = tmp_path / "berth"
    page = open_page(url(Agent(machine)), expected="404")
    page.get_by_role("link", name="Docs").click()
    expect(page.locator("body")).to_contain_text("The documents are not installed with this program")


def test_what_matches_is_asked_again_as_readings_change(machine, open_page):
    page = open_page(url(Agent(machine)))
    page.get_by_role("searchbox").fill("util>50")
    expect(page.locator(".machines .nothing")).to_have_text("No GPU matches this filter.")
    machine.change('[[device]]\nmodel = "H100"\ncount = 7\n[[device]]\nmodel = "H100"\nutilization = 90\n')
    expect(page.locator(".devices tbody tr")).to_have_count(1)
    expect(row(page, 0)).to_contain_text("90%")


def test_a_token_is_asked_for_kept_for_the_tab_and_never_in_the_address(machine, token, open_page):
    agent = Agent(machine, "--token-file", token)
    page = open_page(url(agent), expected="40", wait_for=".token")
    field = page.get_by_label("Token")
    expect(field).to_be_focused()
    field.fill("another-word-altogether")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("That is not the token.")
    field.fill("a-secret-of-one-word")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".figure")).to_have_text("8 of 8 free")
    page.reload()
    expect(page.locator(".figure")).to_have_text("8 of 8 free")
    assert "secret" not in page.url
    assert page.evaluate("JSON.stringify([localStorage, document.cookie])") == '[{},""]'


def test_where_nothing_is_remembered_a_sentence_says_so(machine, open_page):
    holder(machine)
    page = open_page(url(Agent(machine, "--no-history")), expected="status of")
    row(page, 0).get_by_role("button").click()
    expect(page.get_by_role("dialog")).to_contain_text("No history is kept here")
    assert page.get_by_text("h / 7 d").count() == 0


def test_an_agent_that_ends_is_said_and_its_successor_found(machine, open_page):
    agent = Agent(machine)
    page = open_page(url(agent), expected="Failed to load")
    expect(page.locator(".connection")).to_have_text("live")
    agent.ends()
    expect(page.locator(".connection")).to_contain_text("connection lost, last data")
    assert page.locator(".devices tbody tr").count() == 8
    Agent(machine, listen=f"127.0.0.1:{agent.port}")
    expect(page.locator(".connection")).to_have_text("live")


def test_a_hub_shows_its_machines_and_the_one_that_ends(make_machine, open_page):
    machine, other = make_machine("2xL40S"), make_machine("2xL40S+1xH100")
    far = Agent(other, "--no-history")
    holder(other, "--name", "H100", "--note", "far away")
    page = open_page(
        url(Hub(machine, "near=self", f"far=http://127.0.0.1:{far.port}", options=["--no-history"])),
        expected="status of",
    )
    expect(page.locator(".models")).to_contain_text("4 × L40S free on two hosts")
    expect(page.get_by_role("table", name="GPUs of far")).to_contain_text("far away")
    page.get_by_role("searchbox").fill("name~H100")
    expect(page.locator(".narrowed")).to_contain_text("Shown: 1 GPU of 5 on 1 machine")
    page.get_by_role("button", name="Show all").click()
    far.ends()
    expect(page.get_by_role("region", name="far")).to_contain_text("last word")
    expect(page.locator(".figure")).to_have_text("2 of 5 free")


def test_a_driver_that_is_not_there_is_said_with_its_reason(make_machine, open_page):
    page = open_page(
        url(Agent(make_machine('library_missing = true\n[[device]]\nmodel = "T4"\n'))), expected=""
    )
    expect(page.locator(".machine")).to_contain_text("down")
    expect(page.locator(".host-trouble")).to_contain_text("libnvidia-ml.so.1")
    expect(page.locator(".connection")).to_have_text("no news from the driver")


def test_the_phone_shows_all_of_it_without_scrolling_sideways(machine, open_page, violations):
    holder(machine, "-n", "3", "--note", "a long note about what this is for, " * 4)
    page = open_page(url(Agent(machine)), viewport={"width": 360, "height": 740}, has_touch=True)
    expect(row(page, 0)).to_contain_text("a long note")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    row(page, 0).get_by_role("button").tap()
    expect(page.get_by_role("dialog", name="GPU 0")).to_be_visible()
    assert violations(page) == []
