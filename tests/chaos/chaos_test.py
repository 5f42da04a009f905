"""A short run of the chaos; chaos.py --minutes N makes a long one. And its two detectors, on made-up overlaps."""

import os
import random
import subprocess

import pytest
from chaos.chaos import run_chaos
from chaos.overlaps import CARD_GIB, live_lease, overlaps_in, place_of
from jobs import DEADLINE_S, eventually, state

# A sanitized program starts too slowly for much to happen in a short run.
pytestmark = pytest.mark.release_only


@pytest.mark.parametrize("parity", [0, 1], ids=["files are removed", "bare locks are taken"])
def test_no_device_has_two_owners_and_everybody_is_served(tmp_path, build, parity):
    seed = 2 * random.SystemRandom().randrange(1 << 30) + parity
    print(f"seed {seed}: tests/chaos/chaos.py --seed {seed} --round 5 --minutes 0")
    chaos = run_chaos(tmp_path, seed, 5, build)
    assert chaos.looks > 10
    assert chaos.done["ended with 0"] > 5


@pytest.mark.parametrize("parts, overlaps", [(["1", "1"], True), (["1", "0"], False), (["0,1", "1,2"], True)])
def test_two_jobs_with_one_device_notice_it(tmp_path, build, parts, overlaps):
    log = tmp_path / "log"
    words = [build / "chaos_job", place_of(tmp_path), "1", log, "1", "60000", "plain"]
    jobs = [subprocess.Popen(words, env={"CUDA_VISIBLE_DEVICES": devices}) for devices in parts]
    try:
        if overlaps:
            eventually(lambda: log.exists() and "OVERLAP" in log.read_text())
        else:
            # They sleep only when they have what they want.
            eventually(lambda: log.exists() and log.read_text().count("pid ") == len(jobs))
            eventually(lambda: all(state(job.pid) == "S" for job in jobs))
            assert "OVERLAP" not in log.read_text()
    finally:
        for job in jobs:
            job.kill()
            job.wait(DEADLINE_S)


@pytest.mark.parametrize(
    "leases, overlap",
    [
        ([(["a"], 0), (["a"], 0)], True),
        ([(["a", "b"], 0), (["b", "c"], 0)], True),
        ([(["a"], 0), (["b"], 0)], False),
        ([(["a"], 0), (["a"], 1)], True),
        ([(["a"], CARD_GIB << 29), (["a"], CARD_GIB << 29)], False),
        ([(["a"], CARD_GIB << 29), (["a"], CARD_GIB << 29), (["a"], 1)], True),
    ],
)
def test_two_leases_of_one_device_are_seen_in_their_files(tmp_path, leases, overlap):
    files = [live_lease(tmp_path / str(at), *lease) for at, lease in enumerate(leases)]
    assert bool(overlaps_in(tmp_path)) == overlap
    for file in files:
        os.close(file)
    assert overlaps_in(tmp_path) == []
