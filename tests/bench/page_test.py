"""The benchmark page, its charts and its sentences: from figures to text, without measuring anything."""

import xml.etree.ElementTree as xml

import charts
import contest
import markdown
import pytest
import remarks
import upkeep
from results import FLOOR, LIMIT, OURS, PEER, Figure, Report, Row, Table

README = "before\n{}\nold\n{}\nafter\n".format(remarks.README_BEGIN, remarks.README_END)


def table(ours, peer, limit, key="pick", **more):
    figures = [Figure("bare", LIMIT, "bare", limit), Figure("berth pick", OURS, "berth pick", ours)]
    figures += [Figure("slow|er", PEER, "slow pick", peer), Figure("broken", PEER, trouble="crashes: no fan")]
    return Table(key, "one of 8", "ms", figures, **more)


def report(*tables):
    row = Row(2, "pick", "Pick", "Which one is free?", list(tables))
    return Report("2026-01-02", [("memory", "24 GiB")], [("nvitop", "1.7.2", "PyPI")], [row], 12.3)


@pytest.mark.parametrize(
    "value, text",
    [(0, "0"), (0.02345, "0.023"), (0.616, "0.62"), (2.345, "2.35"), (9.999, "10.0"), (58.72, "58.7")]
    + [(131.6, "132"), (1713.2, "1,713")],
)
def test_numbers_have_two_or_three_digits_that_count(value, text):
    assert markdown.number(value) == text


def test_a_ratio_is_how_many_times_worse():
    fast = table([2.0], [50.0, 60.0, 40.0], [1.0])
    assert (fast.lead, fast.to_limit) == (25, 2)
    rates = table([100.0], [25.0], [400.0], more_is_better=True)
    assert (rates.lead, rates.to_limit) == (4, 4)


def test_the_best_peer_counts_and_only_peers_that_answered():
    both = table([2.0], [50.0], [1.0])
    both.figures.append(Figure("faster", PEER, values=[5.0]))
    both.figures.append(Figure("no peer", FLOOR, values=[0.1]))
    assert both.best_peer.name == "faster" and both.lead == 2.5


def test_a_table_shows_median_spread_runs_and_ratios_best_first():
    lines = markdown.table_lines(table([2.0, 2.2, 5.0], [66.0], [1.1]))
    assert lines[2] == "|  | median ms | min – max | runs | × limit | × Berth |"
    assert lines[4] == "| bare (limit) | 1.10 | 1.10 – 1.10 | 1 | 1.00 | 0.50 |"
    assert lines[5] == "| **berth pick** | 2.20 | 2.00 – 5.00 | 3 | 2.00 | 1.00 |"
    assert lines[6] == "| slow\\|er | 66.0 | 66.0 – 66.0 | 1 | 60.0 | 30.0 |"
    assert lines[7] == "| broken | crashes: no fan |  |  |  |  |"


def test_best_first_is_the_highest_where_more_is_better():
    lines = markdown.table_lines(table([100.0], [25.0], [400.0], more_is_better=True))
    assert [line.split(" | ")[0] for line in lines[4:7]] == [
        "| bare (limit)",
        "| **berth pick**",
        "| slow\\|er",
    ]


def test_a_count_of_zero_is_a_figure():
    lines = markdown.table_lines(table([0.0], [50.0], [0.0], counts=True))
    assert "| **berth pick** | 0 | – | – |" in lines
    assert "| slow\\|er | 50.0 | – | – |" in lines


def test_what_explains_a_shortfall_appears_only_with_it():
    cause = next(each.text for each in remarks.REMARKS if each.tables == "pick*")
    assert cause in markdown.words_on(table([2.2], [60.0], [1.0]))
    assert cause not in markdown.words_on(table([1.9], [60.0], [1.0]))


def test_what_the_locks_of_the_kernel_cost_is_said_where_they_cost_something():
    (cause,) = (each.text for each in remarks.REMARKS if each.when is remarks.waits_for_locks)
    for leased_ms, said in (2.2, False), (8.0, True):
        picks = table([2.0], [60.0], [1.0])
        picks.figures.append(Figure("berth pick, GPUs were leased before", FLOOR, values=[leased_ms]))
        assert (cause in markdown.words_on(picks)) == said


def test_a_shortfall_without_a_cause_is_not_hidden():
    unknown = "No cause of that is known yet."
    assert unknown in markdown.words_on(table([2.2], [60.0], [1.0], key="new"))
    assert unknown in markdown.words_on(table([2.0], [1.0], [1.5], key="new"))
    assert unknown not in markdown.words_on(table([1.5], [60.0], [1.0], key="new"))


def test_a_peer_that_is_ahead_is_said_to_be():
    assert markdown.verdict(table([2.0], [1.0], [1.0])) == (
        "Berth takes 2.00 times as long as slow|er. Berth takes 2.00 times as long as the limit."
    )
    assert markdown.verdict(table([2.0], [50.0], [1.0])) == (
        "The best peer (slow|er) takes 25.0 times as long as Berth. Berth takes 2.00 times as long as the limit."
    )


def test_where_more_is_better_the_better_one_does_more():
    assert markdown.verdict(table([50.0], [2.0], [100.0], more_is_better=True)) == (
        "Berth does 25.0 times as much as the best peer (slow|er). The limit does 2.00 times as much as Berth."
    )


def test_a_peer_that_takes_nothing_is_said_to():
    assert markdown.verdict(table([2.0], [0.0], [1.0])).startswith(
        "slow|er's figure is 0, and Berth's is 2.00 ms."
    )


def test_the_page_has_rows_versions_and_the_machine():
    text = markdown.page(report(table([2.0], [50.0], [1.0])), {2: "benchmarks/02-pick.svg"})
    assert "## 2. Pick\n\nWhich one is free? `./dev bench pick`\n\n![Pick](benchmarks/02-pick.svg)" in text
    assert "| memory | 24 GiB |" in text and "| nvitop | 1.7.2 | PyPI |" in text
    assert "2026-01-02, in 12 minutes" in text
    assert "`slow pick`" in text


def test_the_headlines_of_the_page_stand_in_the_readme():
    page = markdown.page(report(table([2.0], [50.0], [1.0])), {})
    headline = "| pick one of 8 GPUs | 2.00 ms | slow\\|er: 50.0 ms | 25.0 × | 1.00 ms |"
    assert headline in markdown.headlines_of(page)
    readme = markdown.with_headlines(README, page)
    assert headline in readme and "old" not in readme
    assert readme.startswith("before\n") and readme.endswith("\nafter\n")
    assert markdown.with_headlines(readme, page) == readme


def test_a_headline_says_in_words_that_the_peer_is_better():
    page = markdown.page(report(table([50.0], [2.0], [1.0])), {})
    assert "| pick one of 8 GPUs | 50.0 ms | slow\\|er: 2.00 ms | worse: 25.0 × | 1.00 ms |" in page


def test_a_row_takes_the_place_of_what_an_earlier_page_has_of_it():
    page = markdown.page(report(table([2.0], [50.0], [1.0])), {})
    quicker = report(table([1.0], [50.0], [1.0]))
    assert markdown.with_rows(page, quicker.rows, {}) == markdown.page(quicker, {}).replace(
        "| pick one of 8 GPUs | 1.00 ms | slow\\|er: 50.0 ms | 50.0 × | 1.00 ms |",
        "| pick one of 8 GPUs | 2.00 ms | slow\\|er: 50.0 ms | 25.0 × | 1.00 ms |",
    )
    more = Row(14, "line", "Line", "Who?", [table([1.0], [2.0], [1.0], key="line")])
    longer = markdown.with_rows(page, [more], {})
    both = report(table([2.0], [50.0], [1.0]))
    both.rows.append(more)
    assert longer == markdown.page(both, {}) == markdown.with_rows(longer, [more], {})


def test_a_row_that_was_not_measured_says_why():
    row = Row(11, "hub", "The hub", "How long?", trouble="the hub does not start")
    assert "Not measured: the hub does not start." in markdown.row_lines(row, "")


def test_a_chart_has_a_bar_for_each_figure_and_colours_for_a_dark_page():
    picture = charts.draw([table([2.0, 2.5], [66.0], [1.1])])
    tree = xml.fromstring(picture)
    bars = [
        part.get("class") for part in tree.iter() if part.tag.endswith("rect") and part.get("height") == "16"
    ]
    assert bars == ["limit", "ours", "peer"]
    assert "prefers-color-scheme: dark" in picture and "slow|er" in picture


def test_a_chart_of_zeros_and_of_nothing():
    xml.fromstring(charts.draw([table([0.0], [0.0], [0.0])]))
    assert charts.draw([Table("pick", "none", "ms", [Figure("broken", PEER, trouble="crashes")])]) == ""


@pytest.mark.parametrize("value, end", [(1.0, False), (1000.0, True)])
def test_a_scale_keeps_its_values_on_the_chart(value, end):
    scale = charts.Scale([1.0, 10.0, 1000.0])
    assert scale.is_log
    assert charts.NAMES <= scale.at(value) <= charts.WIDTH - charts.VALUES
    assert (scale.at(value) == charts.WIDTH - charts.VALUES) is end


@pytest.mark.parametrize("planned, rounds", [(5, 40), (40, 40), (1, 3), (7, 40)])
def test_runs_are_spread_over_the_rounds(planned, rounds):
    due = [turn for turn in range(rounds) if contest.is_due(turn, planned, rounds)]
    assert len(due) == planned
    assert max((later - earlier for earlier, later in zip(due, due[1:])), default=0) <= -(-rounds // planned)


def test_commands_are_shown_as_a_user_types_them():
    assert contest.typed(["/opt/somewhere/bin/nvisel", "-n", "1"]) == "nvisel -n 1"
    assert contest.peaks([2048, 1024]) == "2.0 + 1.0"
    assert contest.peaks([1024] * 9 + [4096]) == "4.0 of 10 processes"


def test_what_a_sleeping_process_costs_is_next_to_nothing(make_machine):
    sleeper = make_machine("1xH100").start("sleep", "1000")
    cost = upkeep.observe({"sleeper": [sleeper.pid], "gone": [2**22 + 1]}, 0.05)
    assert cost["sleeper"].pss_mib > 0 and cost["sleeper"].core_percent < 100
    assert cost["gone"].pss_mib == cost["gone"].core_percent == 0
