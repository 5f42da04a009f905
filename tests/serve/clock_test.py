"""The wall clock jumps: an administrator or NTP sets it, or a laptop wakes up."""

import re
import time

import pytest
from agent import Agent
from clock import Clock
from jobs import eventually, holder, waiter

pytestmark = pytest.mark.release_only

DAY_S = 86_400


def value(agent: Agent, name: str) -> float:
    """Of the first series."""
    return float(re.search(rf"^{name}(?:{{.*}})? (\S+)$", agent.get("/metrics")[2], re.MULTILINE)[1])


def test_a_clock_that_jumps_stops_nothing_and_makes_no_nonsense(machine):
    clock = Clock(machine)
    agent = Agent(machine, env=clock.env)
    job = holder(machine, "-n", "8")
    waiter(machine)
    eventually(lambda: value(agent, "berth_queue_waiters") == 1)
    for jump_s in (DAY_S, -DAY_S):
        clock.set(jump_s, 0)

        def error_s(jump_s: int = jump_s) -> float:
            return abs(agent.json("/api/v1/health")["taken_at_s"] - time.time() - jump_s)

        eventually(lambda: error_s() < DAY_S / 2)
        assert agent.json("/api/v1/health")["status"] == "ok"
        assert len(agent.json("/api/v1/queue")["waiters"]) == 1
        for name in ("queue_longest_wait", "device_lease_idle"):
            assert value(agent, f"berth_{name}_seconds") >= 0
    job.ends()
    eventually(lambda: value(agent, "berth_leases_ended_total") == 1)
