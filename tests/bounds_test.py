"""docs/bounds.md names each constant and each test as they are."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
ROW = re.compile(r'^\| [^|]+ \| [^|]+ \| `(k\w+)` in `([^`]+)` \| "([^"]+)" in `([^`]+)` \|$')
ROWS = [
    line
    for line in (ROOT / "docs/bounds.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| what ")
]


def without_breaks(path: str) -> str:
    """A name in C++ may go over two lines, as two strings."""
    return re.sub(r'"\s*\n\s*"', "", (ROOT / path).read_text())


def test_there_are_rows():
    assert len(ROWS) > 30


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_what_is_there(row):
    constant, where, test, test_file = ROW.match(row).groups()
    assert re.search(rf"\b{constant}\b\s*(=|\{{)", (ROOT / where).read_text()), constant
    named = f"def {test}(" if test.startswith("test_") else f'"{test}"'
    assert named in without_breaks(test_file), test
