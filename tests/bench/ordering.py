"""Row 14: what the order of a line costs. Computed and not timed: the same on every machine."""

from __future__ import annotations

import dataclasses
import math
import os
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor

from markdown import WAIT, number
from results import FLOOR, LIMIT, OURS, PEER, Figure, Row, Table
from setting import ROOT, Bench

RUN_TIMES = ROOT / "tests/bench/data/runtimes.csv"
LOADS = (0.4, 0.6, 0.8)
MIXES = {
    "with8": "70/12/10/8 % want 1/2/4/8 of 8 GPUs",
    "without8": "80/12/8 % want 1/2/4 of 8 GPUs",
}
SEEDS, JOBS = 12, 2500
PATIENCE_S = 600
LARGE = "99th percentile of the jobs that want 4 GPUs or more"
# bench_line's word -> how it is called, and as what.
POLICIES = {
    "exact": (
        "every run time known",
        LIMIT,
        "EASY backfill that knows when each job ends",
    ),
    "thrice": ("all jobs give 3 × their run time", OURS, ""),
    "half": ("half of the jobs give no time", OURS, ""),
    "none": (
        "no job gives a time",
        OURS,
        "assumed: an hour, then three times as long as the job has run",
    ),
    "noneday": ("no job gives a time, a day assumed", OURS, ""),
    "slurm": (
        "Slurm's backfill, 3 × the run time",
        PEER,
        "bf_window is as long as the longest time limit, as its guide wants",
    ),
    "slurmday": ("Slurm's backfill, a day ahead", PEER, "bf_window is a day, its default"),
    "fcfs": ("first come, first served", FLOOR, "no job overtakes another"),
    "firstfit": ("any job that fits", FLOOR, "a later job always overtakes a job that does not fit yet"),
}


@dataclasses.dataclass(frozen=True)
class Bar:
    """What the line has to reach, as multiples of the limit."""

    policy: str
    mean: float
    mean_without8: float
    large: float = 1.4


BARS = [Bar("thrice", 1.15, 1.15), Bar("half", 1.5, 1.5), Bar("none", 2.2, 3.0)]


# People who run the same things again: bench_order's policies, each with the one that has the same
# times and the order that stands.
AGAIN = {
    "exact-ratio": ("every run time known, by response ratio", LIMIT, ""),
    "exact": ("every run time known, as they came", FLOOR, "EASY backfill, as the limit of the tables above"),
    "none": ("nobody gives a time, as they came", OURS, ""),
    "none-runs": ("nobody gives a time, by ratio and earlier runs", FLOOR, ""),
    "half": ("half give no time, as they came", OURS, ""),
    "half-limits": ("half give no time, by ratio", FLOOR, ""),
    "half-runs": ("half give no time, by ratio and earlier runs", FLOOR, ""),
    "thrice": ("all give 3 × their run time, as they came", OURS, ""),
    "thrice-limits": ("all give 3 × their run time, by ratio", FLOOR, ""),
    "thrice-runs": ("all give 3 × their run time, by ratio and earlier runs", FLOOR, ""),
}
STANDS = {policy: policy.partition("-")[0] for policy in AGAIN if "-" in policy}
WORLDS = {
    "models": "60 % want one of two models of GPU, the others any",
    "limits": "a user may have 8 GPUs at once",
    "shares": "40 % want a quarter of one GPU",
    "fair": "fair between users",
    "wild": "the runs of a script differ by a factor of e rather than of 1.8",
    "new": "nobody runs a thing twice",
    "first": "30 % are the first runs of a thing",
    "zipf": "few scripts make most runs, and each wants one size",
    "arrays": "arrays of 50, by day alone",
    "week": "the fifth week has a load of 1.1",
    "lies": "one user of eight has a record that says a tenth",
    "tenth": "the record of 20 % says a tenth",
    "tenfold": "the record of 20 % says ten times as much",
}
AGAIN_LOADS = (0.6, 0.8)
AGAIN_SEEDS = 16
# The mean wait may be at most so many times that of EASY which knows every run time, as they came.
AGAIN_BARS = {"none-runs": 0.85, "half-runs": 0.75, "thrice-runs": 0.65}
# Beside the order that stands: of the longest wait, and in how many of a hundred cells; of the mean
# wait of the user with the worst.
LONGEST, LONGEST_ANYWHERE, WORST_USER = 1.1, 1.2, 1.05
BESIDE = [policy for policy in STANDS if policy.endswith("-runs")]
WIDTHS = (1, 2, 4, 8)


@dataclasses.dataclass(frozen=True)
class Run:
    """What bench_order prints of one seed."""

    mean_h: float
    slowdown: float
    large_h: float
    longest_h: float
    idle_percent: float
    mean_of_large_h: float
    mean_of_saying_h: float
    mean_of_silent_h: float
    p99_h: float
    p999_h: float
    worst_user_h: float
    p99_of_1_h: float
    p99_of_2_h: float
    p99_of_4_h: float
    p99_of_8_h: float


@dataclasses.dataclass(frozen=True)
class Outcome:
    mean_h: float
    large_h: float
    idle_percent: float


Cell = tuple[str, float, str]  # mix, load, policy


def outcome(bench: Bench, cell: Cell, seeds: int) -> Outcome:
    mix, load, policy = cell
    words = [
        bench.program("line"),
        policy,
        str(load),
        mix,
        str(seeds),
        str(JOBS),
        str(RUN_TIMES),
    ]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=PATIENCE_S)
    return Outcome(*map(float, done.stdout.split()))


def outcomes(bench: Bench, policies: list[str], seeds: int = SEEDS) -> dict[Cell, Outcome]:
    cells = [(mix, load, policy) for mix in MIXES for load in LOADS for policy in policies]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(cells, pool.map(lambda cell: outcome(bench, cell, seeds), cells)))


def figure(policy: str, found: Outcome, limit: Outcome) -> Figure:
    name, role, note = POLICIES[policy]
    more = {
        "99 % of ≥ 4 GPUs, h": number(found.large_h),
        "× limit of that": number(found.large_h / limit.large_h),
        "idle while somebody waits": f"{found.idle_percent:.0f} %",
    }
    return Figure(name, role, values=[found.mean_h], note=note, more=more)


def tables(found: dict[Cell, Outcome]) -> list[Table]:
    policies = [policy for policy in POLICIES if any(cell[2] == policy for cell in found)]
    return [
        Table(
            f"line-{mix}-{load}",
            f"{words}, load {load}",
            WAIT,
            [figure(policy, found[mix, load, policy], found[mix, load, "exact"]) for policy in policies],
            counts=True,
        )
        for mix, words in MIXES.items()
        for load in LOADS
    ]


def ratios(found: dict[Cell, Outcome], mix: str, policy: str) -> tuple[list[float], list[float]]:
    """How many times the limit, at each load: the mean of all, the 99th percentile of the large."""
    pairs = [(found[mix, load, policy], found[mix, load, "exact"]) for load in LOADS]
    return (
        [ours.mean_h / limit.mean_h for ours, limit in pairs],
        [ours.large_h / limit.large_h for ours, limit in pairs],
    )


def judged(values: list[float], most: float) -> str:
    """ "1.03, 1.03 and 1.07 (wanted: at most 1.15)"."""
    *first, last = [number(value) for value in values]
    kept = "" if max(values) <= most else ", **missed**"
    return f"{', '.join(first)} and {last} (wanted: at most {most:g}{kept})"


def against_bars(found: dict[Cell, Outcome]) -> list[str]:
    said = [f"As multiples of the limit, at loads of {', '.join(map(str, LOADS))}:"]
    for bar in BARS:
        name = POLICIES[bar.policy][0]
        for mix, words in MIXES.items():
            mean, large = ratios(found, mix, bar.policy)
            most = bar.mean if mix == "with8" else bar.mean_without8
            said.append(
                f"- {name}, {words}: mean wait {judged(mean, most)}; {LARGE} {judged(large, bar.large)}."
            )
    if any(max(ratios(found, mix, bar.policy)[1]) > bar.large for bar in BARS for mix in MIXES):
        said += ["", MISSED]
    return said


MISSED = (
    "If jobs give no time limit, the few jobs that want half of the machine or all of it wait longest. It is not"
    " known when enough GPUs will be free for them, so other jobs start in the meantime, which do not end in time"
    " either. We tried this rule: the longer the first in line has waited, the fewer other jobs start. At a load of"
    " 0.8 the line then grew without end. If a day is assumed instead of an hour, the few large jobs wait less, and"
    " all others wait longer. What helps is a time limit, and three times the true run time is good enough."
)


# People who run the same things again -------------------------------------------------------------


def runs_of(bench: Bench, cell: Cell, seeds: int) -> list[Run]:
    world, load, policy = cell
    words = [bench.program("order"), policy, str(load), world, str(seeds), str(JOBS), str(RUN_TIMES)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=PATIENCE_S)
    return [Run(*map(float, each.split())) for each in done.stdout.splitlines()]


def cells_of(worlds: list[str]) -> list[Cell]:
    """All policies of the two mixes that the tables show, and of the others those that are put beside each other."""
    return [
        (world, load, policy)
        for world in worlds
        for load in AGAIN_LOADS
        for policy in AGAIN
        if world in MIXES or policy in BESIDE or policy in [STANDS[each] for each in BESIDE]
    ]


def runs(bench: Bench, cells: list[Cell], seeds: int = AGAIN_SEEDS) -> dict[Cell, list[Run]]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(cells, pool.map(lambda cell: runs_of(bench, cell, seeds), cells)))


def mean_of(each: list[Run], name: str) -> float:
    return statistics.fmean(getattr(run, name) for run in each)


def middle_of(each: list[Run], name: str) -> float:
    return statistics.median(getattr(run, name) for run in each)


def times_of(found: dict[Cell, list[Run]], cell: Cell, name: str) -> float | None:
    """How many times what it is in the order that stands: the ratio of the means. None: nobody waits."""
    world, load, policy = cell
    stands = mean_of(found[world, load, STANDS[policy]], name)
    return mean_of(found[cell], name) / stands if stands else None


def worst_width(found: dict[Cell, list[Run]], cell: Cell) -> float:
    times = [times_of(found, cell, f"p99_of_{width}_h") for width in WIDTHS]
    return max(each for each in times if each is not None)


def again_figure(found: dict[Cell, list[Run]], cell: Cell) -> Figure:
    world, load, policy = cell
    name, role, note = AGAIN[policy]
    each, exact = found[cell], found[world, load, "exact"]
    more = {
        "× EASY that knows all": number(mean_of(each, "mean_h") / mean_of(exact, "mean_h")),
        "slowdown": number(mean_of(each, "slowdown")),
        "99 % of ≥ 4 GPUs, h": number(middle_of(each, "large_h")),
        "longest, h": number(middle_of(each, "longest_h")),
        "idle while somebody waits": f"{mean_of(each, 'idle_percent'):.0f} %",
    }
    return Figure(name, role, values=[mean_of(each, "mean_h")], note=note, more=more)


def again_tables(found: dict[Cell, list[Run]]) -> list[Table]:
    return [
        Table(
            f"again-{mix}-{load}",
            f"People run the same things again, {words}, load {load}",
            WAIT,
            [again_figure(found, (mix, load, policy)) for policy in AGAIN],
            counts=True,
        )
        for mix, words in MIXES.items()
        for load in AGAIN_LOADS
        if all((mix, load, policy) in found for policy in AGAIN)
    ]


AGAIN_WORDS = (
    "Where people run the same things again, another order is worth more than knowing the run times: of two jobs the"
    " one starts first that has waited longer in relation to how long it is expected to last (highest response ratio"
    " next). What is expected is what three of four of the last five runs of the same thing did not exceed, or the time"
    " that the job gives if that is less, from ten minutes to a day; nothing known counts as six hours. GPUs are kept"
    " for three times what nine of ten earlier runs took. The first three that cannot start have a reservation each."
    " The job that came first has its turn first once it has waited for 21 days."
    f" The jobs: {AGAIN_SEEDS} × {JOBS:,} runs of 160 scripts, each with a run time of its own from the same trace, whose"
    " runs differ by a log-normal factor of sigma 0.6; 15 % crash within ten minutes. The function is the one that"
    " decides in the real queue, which has this order where the site file says `expect`. `berth simulate --expect`"
    " replays your own jobs with it."
)


BESIDE_WHAT_STANDS = (
    "The same jobs by ratio and earlier runs, as multiples of the order that stands with the same times given, at the"
    f" same loads: the mean wait (wanted: at most 1), the longest wait (wanted: at most {LONGEST:g}), the wait that"
    " 99.9 % do not exceed, the 99th percentile of the width (1, 2, 4 or 8 GPUs) that loses most, and the mean wait of"
    f" the user with the worst (wanted: at most {WORST_USER:g}). Each is the ratio of the means over"
    f" {AGAIN_SEEDS} seeds, with the same jobs in both orders. The longest wait is an extreme value: if the run times"
    " are shaken by 1 %, the order that stands has 0.96 to 1.03 times its own."
)


def judged_at(values: list[float], most: float) -> str:
    missed = "" if max(values) <= most else ", **missed**"
    return f"{' and '.join(number(value) for value in values)}{missed}"


def against_what_stands(found: dict[Cell, list[Run]]) -> list[str]:
    said = [f"Mean wait by response ratio, as a multiple of EASY that knows every run time, at loads of"
            f" {' and '.join(map(str, AGAIN_LOADS))}:"]  # fmt: skip
    for policy, most in AGAIN_BARS.items():
        for mix, words in MIXES.items():
            values = [
                mean_of(found[mix, load, policy], "mean_h") / mean_of(found[mix, load, "exact"], "mean_h")
                for load in AGAIN_LOADS
            ]
            said.append(
                f"- {AGAIN[policy][0]}, {words}: {judged_at(values, most)} (wanted: at most {most:g})."
            )
    said += ["", in_all(found), "", BESIDE_WHAT_STANDS]
    lines = [
        "| jobs | who gives a time | mean | longest | 99.9 % | 99 % of a width | worst user |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for world, words in (MIXES | WORLDS).items():
        for policy in BESIDE:
            if all((world, load, policy) in found for load in AGAIN_LOADS):
                lines.append(beside_what_stands(found, world, words, policy))
    return [*said, "\n".join(lines)]


def beside_what_stands(found: dict[Cell, list[Run]], world: str, words: str, policy: str) -> str:
    cells = [(world, load, policy) for load in AGAIN_LOADS]
    shown = [
        judged_at([times_of(found, cell, name) for cell in cells], most)
        for name, most in (("mean_h", 1), ("longest_h", LONGEST), ("p999_h", math.inf))
    ]
    shown.append(judged_at([worst_width(found, cell) for cell in cells], math.inf))
    shown.append(judged_at([times_of(found, cell, "worst_user_h") for cell in cells], WORST_USER))
    return f"| {' | '.join([words, AGAIN[policy][0].partition(',')[0], *shown])} |"


def in_all(found: dict[Cell, list[Run]]) -> str:
    cells = [cell for cell in found if cell[2] in BESIDE]
    longest = [times_of(found, cell, "longest_h") for cell in cells]
    kept = sum(each <= LONGEST for each in longest)
    worst = max(times_of(found, cell, "worst_user_h") for cell in cells)
    return (
        f"Over the {len(cells)} cells of the table below, the geometric mean of the mean waits is"
        f" {number(statistics.geometric_mean(times_of(found, cell, 'mean_h') for cell in cells))}, and of the longest"
        f" waits {number(statistics.geometric_mean(longest))}, as multiples of the order that stands. The longest wait is"
        f" at most {LONGEST:g} in {kept} cells, and {number(max(longest))} in the worst (wanted: at most"
        f" {LONGEST_ANYWHERE:g}). The mean wait of the worst user is at most {number(worst)}."
    )


def line(bench: Bench) -> Row:
    row = Row(14, "line", "Who waits how long",
              "How long jobs wait in a line depends on its order. The function that decides in the real queue was"
              f" run on simulated jobs: {SEEDS} × {JOBS:,} on 8 GPUs, with Poisson arrivals and run times drawn from"
              " 81,098 published ones (Microsoft's Philly trace, cut at three days). The jobs are the same for each"
              " row. The limit here is EASY backfill that knows every run time. A job without a time limit is"
              " assumed to last an hour. Once it has run for longer, it is assumed to go on for three times as long as it"
              " has run so far. Slurm's backfill is the algorithm of its scheduling guide, and not slurmctld: all"
              " jobs give three times their true run time as their limit, and the 30 s between two of Slurm's rounds"
              " are left out. The waits are computed, not timed, so they are the same on every machine.")  # fmt: skip
    seeds = bench.times(SEEDS)
    bench.say(f"line: {seeds} × {JOBS} jobs, {len(LOADS) * len(MIXES)} loads, {len(POLICIES)} policies")
    found = outcomes(bench, list(POLICIES), seeds)
    again = runs(bench, cells_of([*MIXES, *WORLDS]), bench.times(AGAIN_SEEDS))
    row.tables = tables(found) + again_tables(again)
    row.facts = [*against_bars(found), "", AGAIN_WORDS, "", *against_what_stands(again)]
    return row
