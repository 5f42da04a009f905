"""Killed or stopped at every step of a lease. ./dev steps takes every step of every scene; here most are sampled."""

import random

import pytest
from steps.steps import MOST, SCENES, run_steps

# Traced, and a sanitized program is slow in starting.
pytestmark = [pytest.mark.release_only, pytest.mark.long]

STRIDE = 6


def test_killed_at_any_step_of_a_lease_the_others_go_on_and_nothing_is_left(tmp_path, build):
    (free,) = [scene for scene in SCENES if scene.name == "free"]
    assert run_steps(tmp_path, free, True, range(MOST), build) > 50


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_at_some_steps_in_each_scene_the_others_go_on_in_order(tmp_path, build, scene, kill):
    steps = range(random.randrange(STRIDE), MOST, STRIDE)
    print(f"steps from {steps.start} by {STRIDE}; ./dev steps takes them all")
    assert run_steps(tmp_path, scene, kill, steps, build) > 50 / STRIDE
