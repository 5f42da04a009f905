"""What the order of a line costs: within its bars where they are reached, and on the page as it is computed."""

import pathlib

import markdown
import ordering
import pytest
from setting import Bench

pytestmark = pytest.mark.release_only

PAGE = pathlib.Path(__file__).parents[2] / "docs/benchmarks.md"


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


def test_a_bar_that_is_missed_is_said_to_be():
    assert ordering.judged([1.0, 1.2, 1.5], 1.4) == "1.00, 1.20 and 1.50 (wanted: at most 1.4, **missed**)"
    assert ordering.judged([1.0, 1.2, 1.4], 1.4) == "1.00, 1.20 and 1.40 (wanted: at most 1.4)"


def test_words_that_mean_nothing_are_refused(build, tmp_path):
    bench = Bench(build, tmp_path, 1)
    with pytest.raises(ordering.subprocess.CalledProcessError):
        ordering.outcome(bench, ("with8", 0.4, "guess"), 1)
