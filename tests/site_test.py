"""`./dev docs` builds the site, and nothing on it leads nowhere or is loaded from elsewhere."""

import html
import pathlib
import re

import pytest
import yaml

pytestmark = [pytest.mark.package, pytest.mark.release_only]

ROOT = pathlib.Path(__file__).parents[1]


def test_each_page_is_there(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert len(pages) > 25
    assert {page for page in pages if not (site / page).is_file()} == set()


def test_the_references_have_each_path_and_each_name(site):
    paths = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())["paths"]
    http = text_of(site / "reference/http.html")
    assert len(paths) > 10 and [path for path in paths if f"GET {path}" not in http] == []
    assert "GPU-hours" in http and "schema/usage.json" in (site / "reference/http.html").read_text()
    header = (ROOT / "src/run/api/berth.h").read_text()
    names = re.findall(r"^(?:class|struct) (\w+)|^[\w:<>&, ]+ (\w+)\(", header, re.MULTILINE)
    cpp = text_of(site / "reference/cpp.html")
    assert len(names) > 8 and [each for each in map("".join, names) if each not in cpp] == []
    assert "The devices that the request would get now." in cpp and "private:" not in cpp


def text_of(page: pathlib.Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


def test_nothing_is_loaded_from_elsewhere(site):
    """Links that a reader clicks may lead away; scripts, styles, fonts and images are the site's own."""
    loads = re.compile(
        r"""<(?:script|img|iframe)[^>]+src="?(https?:|//)|<link[^>]+rel="?(?:stylesheet|preload|preconnect)[^>]+href="?(?:https?:|//)"""
    )
    for path in site.rglob("*.html"):
        assert not loads.search(path.read_text()), path
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(.?(https?:|//)|@import", path.read_text()), path
