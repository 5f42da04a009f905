"""A short storm; `./dev storm --minutes N` makes a long one. And its checker, on made-up storms."""

import collections
import random

import pytest
from storm import Found, storm


@pytest.mark.release_only  # a sanitized program starts too slowly for much to happen
def test_nothing_is_lost_or_run_twice_whatever_is_killed(make_machine):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    found = storm(make_machine("4xH100"), seed, lambda done: done < 60)
    assert len(found.promised) > 10
    assert sum(found.kills.values()) > 10
    assert (found.twice(), found.lost(), found.untrue()) == ([], [], [])


def made(promised=(), starts=(), states=()) -> Found:
    return Found(set(promised), collections.Counter(dict(starts)), dict(states))


def test_the_checker_sees_what_was_run_twice():
    assert made(["a", "b"], [("a", 1), ("b", 2)]).twice() == ["b"]


def test_the_checker_sees_what_was_lost():
    found = made(["a", "b", "c"], [("a", 1)], [("a", "ended"), ("b", "interrupted"), ("c", "ended")])
    assert found.lost() == ["c (ended)"]
    assert made(["gone"]).lost() == ["gone (None)"]


def test_the_checker_sees_what_was_run_and_is_told_as_waiting():
    assert made(["a"], [("a", 1)], [("a", "waiting")]).untrue() == ["a"]
