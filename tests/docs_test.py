"""The documents that lead a newcomer name files that are there."""

import pathlib
import re

import pytest

pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[1]
# "core/plan.cpp", "source/nvml/", "programs/berth/main.cpp": a path, and no command or expression.
PATH = re.compile(r"`((?:[\w-]+/)+(?:[\w-]+\.(?:h|cpp|py|md|ts))?)`")


def paths(page: str) -> list[str]:
    return PATH.findall((ROOT / "docs" / page).read_text())


@pytest.mark.parametrize("page", ["design.md", "one-request.md"])
def test_each_path_is_there(page):
    named = paths(page)
    assert len(named) > 20
    assert [
        path for path in named if not ((ROOT / path).exists() or (ROOT / "src/berth" / path).exists())
    ] == []


def test_one_request_fits_on_two_screens():
    assert len((ROOT / "docs/one-request.md").read_text().splitlines()) <= 80


def test_the_table_of_layers_is_that_of_the_build():
    design = (ROOT / "docs/design.md").read_text()
    told = {
        row[1]: set(re.findall(r"\w+", row[2].replace("{fmt}", "")))
        for row in re.finditer(r"^\| `(\w+)/` \|[^|]*\| ([^|]*) \|$", design, re.M)
    }
    built = {
        row[1]: set((row[2] or "").split())
        for row in re.finditer(
            r"^ *berth_layer\((\w+)(?: USES ([\w ]+))?\)", (ROOT / "CMakeLists.txt").read_text(), re.M
        )
    }
    assert len(built) == 11
    assert told == built
    assert {path.name for path in (ROOT / "src/berth").iterdir()} == set(built)
