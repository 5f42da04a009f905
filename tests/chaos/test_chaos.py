"""A short run of the chaos; chaos.py --minutes N makes a long one."""

import random

import pytest
from chaos.chaos import run_chaos

# A sanitized program starts too slowly for much to happen in a short run.
pytestmark = pytest.mark.release_only


@pytest.mark.parametrize("parity", [0, 1], ids=["files are removed", "bare locks are taken"])
def test_no_device_has_two_owners_and_everybody_is_served(tmp_path, build, parity):
    seed = 2 * random.SystemRandom().randrange(1 << 30) + parity
    print(f"seed {seed}: tests/chaos/chaos.py --seed {seed} --round 5 --minutes 0")
    chaos = run_chaos(tmp_path, seed, 5, build)
    assert chaos.looks > 10
    assert chaos.done["ended with 0"] > 5
