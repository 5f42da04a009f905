"""docs/guarantees.md, the mutants and the tests name each other rightly, and each mutant still fits the sources."""

import dataclasses
import pathlib
import re
import shlex

import pytest
from mutants.mutants import DELETE, ROOT, Mutant, cases, find_quote, find_test, fits, read_table
from rooms_test import place as folder_of

MUTANTS = read_table()
SECTIONS = {
    int(text.partition(".")[0]): text
    for text in re.split(r"^## ", (ROOT / "docs/guarantees.md").read_text(), flags=re.M)
    if text[:1].isdigit()
}


def part(section: int, title: str) -> str:
    """What follows "Title:" up to the next such word, each item of a list in one line."""
    text = re.search(rf"^{title}:(.*?)(?=^[A-Z][a-z ]+:|\Z)", SECTIONS[section], re.M | re.S)[1]
    return re.sub(r"\n +", " ", text)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_sources_and_names_a_test(mutant):
    mutant.text_of(ROOT)
    kind, place, *patterns = shlex.split(mutant.test)
    if kind == "unit":
        there = set().union(*(cases(path.read_text()) for path in folder_of(f"{place}/test").glob("*.cpp")))
        for pattern in patterns:
            assert "," not in pattern  # doctest would take it for two
            assert any(fits(name, pattern) for name in there), pattern
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
            assert name in cases((ROOT / path).read_text()), name
    named = re.findall(r"`([\w-]+)`", part(section, "Mutants"))
    assert sorted(named) == sorted(mutant.name for mutant in MUTANTS if mutant.guarantee == str(section))
    assert named


def test_names_are_used_once():
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names)) >= 12


MOVED = Mutant("1", "x", 'unit old "a scene*"', "src/old/a.cpp", "if (one) two();", DELETE, "nothing holds")


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("if (one) two(); three();", " three();"),
        ("if (one)\n  two();", ""),
        ("if (one) two();  // again: if (one)", "  // again: if (one)"),
    ],
)
def test_a_statement_is_found_however_its_lines_break_and_goes(tmp_path, text, broken):
    (tmp_path / "a.cpp").write_text(text)
    assert dataclasses.replace(MOVED, file="a.cpp").text_of(tmp_path) == broken


def test_a_block_and_a_call_with_a_semicolon_in_its_words_end_where_they_end(tmp_path):
    for text in ('say("a; b", [] { return 1; });', "for (;;) {\n  look(';');\n}"):
        (tmp_path / "a.cpp").write_text(f"{text} rest();")
        assert dataclasses.replace(MOVED, file="a.cpp", old=text[:4]).text_of(tmp_path) == " rest();"


def test_a_quote_is_found_again_where_it_stands_once():
    moved, quote = dataclasses.replace(MOVED), "if (one)\n  two();"
    assert find_quote(moved, {pathlib.Path("src/new/b.cpp"): quote}) == "" and moved.file == "src/new/b.cpp"
    both = {pathlib.Path("src/new/b.cpp"): quote, pathlib.Path("src/other/a.cpp"): quote}
    moved = dataclasses.replace(MOVED)
    assert find_quote(moved, both) == "" and moved.file == "src/other/a.cpp"
    assert "in 0 files" in find_quote(moved, {pathlib.Path("src/new/b.cpp"): quote * 2})


def test_a_test_is_found_again_in_its_new_room():
    moved = dataclasses.replace(MOVED)
    there = {pathlib.Path("src/core/new/test/a_test.cpp"): {"a scene of it"}}
    assert find_test(moved, there) == "" and moved.test == 'unit new "a scene*"'
    assert "0 rooms" in find_test(moved, {pathlib.Path("src/core/new/test/a_test.cpp"): {"another"}})
