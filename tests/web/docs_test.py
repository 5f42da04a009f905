"""The documents that an installed agent serves, in a real browser: under a policy as strict as that of its page."""

import pathlib
import shutil

import pytest
from agent import Agent
from jobs import eventually
from simulated_machine import BUILD

pytestmark = [pytest.mark.package, pytest.mark.release_only]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory, site) -> pathlib.Path:
    """Both programs, and the site where an installation has it."""
    prefix = tmp_path_factory.mktemp("prefix")
    (prefix / "bin").mkdir()
    for name in ("berth", "berth-serve"):
        shutil.copy(BUILD / name, prefix / "bin")
    (prefix / "share/doc/berth").mkdir(parents=True)
    (prefix / "share/doc/berth/html").symlink_to(site)
    return prefix


@pytest.fixture
def agent(machine, prefix) -> Agent:
    machine.program = prefix / "bin/berth"
    return Agent(machine)


def test_the_documents_are_read_and_searched_in_a_browser(agent, open_page):
    url = f"http://127.0.0.1:{agent.port}"
    page = open_page(f"{url}/docs/", wait_for="text=A page for each task")
    page.click("text=a page for each task")
    page.wait_for_url(f"{url}/docs/tasks/index.html")
    page.click("article >> text=Many runs")
    page.wait_for_selector("h1:has-text('forty runs over eight cards')")
    page.goto(f"{url}/docs/trouble.html")
    assert_finds(page, "draining")


def assert_finds(page, word: str) -> None:
    # It listens to keys, once its program has been loaded: what is typed before that is lost.
    field = page.locator("input[name=query]")

    def finds() -> bool:
        field.fill("")
        field.press_sequentially(word)
        page.wait_for_timeout(250)
        return page.locator("article.md-search-result__article").count() > 0

    eventually(finds)


def test_pages_that_lie_on_a_disk_are_searched_too(open_page, site):
    page = open_page((site / "tasks/index.html").as_uri(), wait_for="h1")
    assert_finds(page, "draining")


def test_each_file_has_the_policy_and_a_folder_leads_to_its_index(agent):
    status, header, text = agent.get("/docs/manual.html")
    assert status == 200 and "<h1" in text
    assert "script-src 'self'" in header["Content-Security-Policy"]
    assert "unsafe-inline" not in header["Content-Security-Policy"]
    assert agent.get("/docs/manual.html", **{"If-None-Match": header["ETag"]})[0] == 304
    status, header, _ = agent.get("/docs")
    assert (status, header["Location"]) == (308, "/docs/")
    assert agent.get("/docs/")[2] == agent.get("/docs/index.html")[2]


@pytest.mark.parametrize(
    "path", ["/docs/../bin/berth", "/docs/%2e%2e/bin/berth", "/docs/nothing.html", "/docs/tasks"]
)
def test_nothing_but_the_documents_is_served(agent, path):
    assert agent.get(path)[0] in (400, 404)


def test_an_agent_without_documents_has_none(machine, tmp_path):
    # In a checkout it would have those that `./dev docs` has built.
    for name in ("berth", "berth-serve"):
        shutil.copy(BUILD / name, tmp_path)
    machine.program = tmp_path / "berth"
    assert Agent(machine).get("/docs/")[0] == 404
