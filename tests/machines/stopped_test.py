"""A request in the queue of a lab that is stopped for longer than its hosts wait for its word."""

import signal

import pytest
from fleet_of_hosts import PATIENCE_S
from jobs import eventually
from store_test import busy, joined, lab, note, order  # noqa: F401

__all__ = ["lab"]

pytestmark = pytest.mark.store


def test_it_stands_in_the_lines_of_its_hosts_again_and_starts(lab):  # noqa: F811
    holders = [busy(host) for host in lab.hosts]
    job = lab.desks[0].waits(*note(lab, "one"))
    eventually(lambda: joined(lab) == [2])
    job.send_signal(signal.SIGSTOP)
    for holder in holders:
        holder.kill()
    # Both grant it, hear nothing for 30 s, and let go.
    eventually(lambda: all(host.machine.berth("list", "--json").json["leases"] for host in lab.hosts))
    eventually(lambda: not any(host.envoys() for host in lab.hosts), 60)
    job.send_signal(signal.SIGCONT)
    out, err = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 0, err
    assert order(lab) == ["one"]
