"""A short run of the five mixed; ./dev mixed --rounds N makes a long one. And that two on one GPU are noticed."""

import random

import pytest
from conformance import Program
from standard.mixed import Mixed, run_mixed

# A sanitized program starts too slowly for much to happen in a short run.
pytestmark = pytest.mark.release_only

ROUNDS = 300


def test_no_gpu_has_two_owners_whatever_program_takes_it(tmp_path, tmp_path_factory):
    seed = random.SystemRandom().randrange(1 << 31)
    print(f"seed {seed}: ./dev mixed --seed {seed} --rounds {ROUNDS}")
    mixed = run_mixed(tmp_path, tmp_path_factory.getbasetemp(), seed, ROUNDS)
    assert "berth" in mixed.programs
    assert all(mixed.done[f"{language} had it"] > 0 for language in mixed.programs)


def test_a_program_that_locks_nothing_is_noticed(make_machine):
    lawless = Program("{command}", "{command}", "{command}")
    mixed = Mixed(make_machine("3xH100"), {"lawless": lawless}, 1)
    mixed.run(100)
    assert mixed.overlaps != []
