"""docs/guarantees.md, the mutants and the tests name each other rightly, and each mutant still fits the sources."""

import pathlib
import re
import shlex

import pytest
from mutants.mutants import ROOT, read_table

MUTANTS = read_table()
SECTIONS = {
    int(text.partition(".")[0]): text
    for text in re.split(r"^## ", (ROOT / "docs/guarantees.md").read_text(), flags=re.M)
    if text[:1].isdigit()
}


def cases(path: pathlib.Path) -> set[str]:
    """Names of the tests in a file, C++ or Python."""
    text = path.read_text()
    return set(re.findall(r'TEST_CASE\(\s*"([^"]+)"', text)) | set(re.findall(r"^def (test_\w+)", text, re.M))


def part(section: int, title: str) -> str:
    """What follows "Title:" up to the next such word, each item of a list in one line."""
    text = re.search(rf"^{title}:(.*?)(?=^[A-Z][a-z ]+:|\Z)", SECTIONS[section], re.M | re.S)[1]
    return re.sub(r"\n +", " ", text)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_sources_and_names_a_test(mutant):
    mutant.text_of(ROOT)
    kind, place, *patterns = shlex.split(mutant.test)
    if kind == "unit":
        there = set().union(*(cases(path) for path in (ROOT / "src/berth" / place / "test").glob("*.cpp")))
        for pattern in patterns:
            assert "," not in pattern  # doctest would take it for two
            assert any(name.startswith(pattern.rstrip("*")) for name in there), pattern
    else:
        assert kind == "pytest" and (not patterns or patterns[0] == "-k")
        text = (ROOT / "tests" / place).read_text()
        for word in set(re.findall(r"\w+", " ".join(patterns[1:]))) - {"and", "or", "not"}:
            assert word in text or word in SCENE_WORDS, word


# Parts of the ids that steps/steps_test.py makes of its scenes.
SCENE_WORDS = {"free", "first"}


@pytest.mark.parametrize("section", range(1, 14))
def test_each_guarantee_names_its_tests_and_mutants_and_what_is_not_promised(section):
    assert part(section, "Held by").strip() and part(section, "Not promised").strip()
    lines = re.findall(r"^- `([^`]+)`: (.*)$", part(section, "Tests"), re.M)
    assert lines
    for path, words in lines:
        assert (ROOT / path).is_file(), path
        for name in re.findall(r'"([^"]+)"', words):
            assert name in cases(ROOT / path), name
    named = re.findall(r"`([\w-]+)`", part(section, "Mutants"))
    assert sorted(named) == sorted(mutant.name for mutant in MUTANTS if mutant.guarantee == section)
    assert named


def test_names_are_used_once():
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names)) >= 12
