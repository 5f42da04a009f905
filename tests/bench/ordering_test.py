"""What the order of a line costs: within its bars where they are reached, and on the page as it is computed."""

import pathlib

import markdown
import ordering
import pytest
from setting import Bench

pytestmark = [pytest.mark.release_only, pytest.mark.long]

PAGE = pathlib.Path(__file__).parents[2] / "docs/benchmarks.md"
LOAD = 0.8  # the cells that are computed again; the page has more


@pytest.fixture(scope="module")
def found(build, tmp_path_factory):
    return ordering.outcomes(Bench(build, tmp_path_factory.mktemp("line"), 1), list(ordering.POLICIES))


@pytest.mark.parametrize("bar", ordering.BARS, ids=lambda bar: bar.policy)
def test_the_mean_wait_is_near_that_of_one_who_knows_every_run_time(found, bar):
    assert max(ordering.ratios(found, "with8", bar.policy)[0]) <= bar.mean
    assert max(ordering.ratios(found, "without8", bar.policy)[0]) <= bar.mean_without8


def test_where_all_say_a_time_those_who_want_much_wait_little_longer(found):
    for mix in ordering.MIXES:
        assert max(ordering.ratios(found, mix, "thrice")[1]) <= 1.4


def test_the_page_has_what_is_computed(found):
    lines = PAGE.read_text().splitlines()
    for table in ordering.tables(found):
        begin = lines.index(f"**{table.title}**")
        shown = lines[begin : lines.index("", begin + 2)]
        assert [line for line in markdown.table_lines(table) if line not in shown] == []
    assert [fact for fact in ordering.against_bars(found) if fact not in lines] == []


@pytest.fixture(scope="module")
def again(build, tmp_path_factory):
    bench = Bench(build, tmp_path_factory.mktemp("order"), 1)
    return ordering.runs(bench, [cell for cell in ordering.cells_of(["with8"]) if cell[1] == LOAD])


@pytest.mark.parametrize("policy", ordering.AGAIN_BARS)
def test_by_response_ratio_people_wait_less_than_with_an_easy_that_knows_every_run_time(again, policy):
    ours, exact = again["with8", LOAD, policy], again["with8", LOAD, "exact"]
    assert ordering.mean_of(ours, "mean_h") <= 0.85 * ordering.mean_of(exact, "mean_h")
    for name, most in (("longest_h", ordering.LONGEST), ("worst_user_h", ordering.WORST_USER)):
        assert ordering.times_of(again, ("with8", LOAD, policy), name) <= most


def test_who_gives_an_honest_time_does_not_wait_longer_than_who_gives_none(again):
    for policy in ("half-runs", "half-limits"):
        each = again["with8", LOAD, policy]
        saying, silent = (ordering.mean_of(each, f"mean_of_{who}_h") for who in ("saying", "silent"))
        assert saying <= silent * 1.02, policy


def test_the_page_has_what_is_computed_of_those_who_run_the_same_things_again(again):
    lines = PAGE.read_text().splitlines()
    tables = ordering.again_tables(again)
    assert len(tables) == 1
    for table in tables:
        begin = lines.index(f"**{table.title}**")
        shown = lines[begin : lines.index("", begin + 2)]
        assert [line for line in markdown.table_lines(table) if line not in shown] == []


def test_a_bar_that_is_missed_is_said_to_be():
    assert ordering.judged([1.0, 1.2, 1.5], 1.4) == "1.00, 1.20 and 1.50 (wanted: at most 1.4, **missed**)"
    assert ordering.judged([1.0, 1.2, 1.4], 1.4) == "1.00, 1.20 and 1.40 (wanted: at most 1.4)"


def test_words_that_mean_nothing_are_refused(build, tmp_path):
    bench = Bench(build, tmp_path, 1)
    with pytest.raises(ordering.subprocess.CalledProcessError):
        ordering.outcome(bench, ("with8", 0.4, "guess"), 1)
