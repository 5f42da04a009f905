"""`./dev docs` builds the site, and nothing on it leads nowhere or is loaded from elsewhere."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> pathlib.Path:
    """Built strictly: a broken link, a missing anchor or a page that is in no menu is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_each_page_is_there(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert len(pages) > 25
    assert {page for page in pages if not (site / page).is_file()} == set()


def test_nothing_is_loaded_from_elsewhere(site):
    """Links that a reader clicks may lead away; scripts, styles, fonts and images are the site's own."""
    loads = re.compile(
        r"""<(?:script|img|iframe)[^>]+src="?(https?:|//)|<link[^>]+rel="?(?:stylesheet|preload|preconnect)[^>]+href="?(?:https?:|//)"""
    )
    for path in site.rglob("*.html"):
        assert not loads.search(path.read_text()), path
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(.?(https?:|//)|@import", path.read_text()), path
