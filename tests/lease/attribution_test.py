"""Whose a process on a GPU is, where its user would like to be taken for somebody else's."""

import sys

import pytest

from lease_jobs import USES_DEVICES, eventually, only_lease, ready
from schemas import checked

# Load the simulated driver into Python.
pytestmark = pytest.mark.release_only

OPENS_AND_USES = (
    """
import sys
ticket = open(sys.argv[2])
"""
    + USES_DEVICES
)


def leases_of_processes(lab) -> dict:
    devices = lab.berth("list", "--json").json["devices"]
    return {process["pid"]: process["lease"] for device in devices for process in device["processes"]}


def test_reading_a_ticket_makes_nobody_its_holder(open_lab, as_user):
    lab = open_lab
    lab.berth("run", "--", "true")
    job = lab.start(*as_user(20001), lab.program, "run", "--", sys.executable, "-c", USES_DEVICES, "0")
    ready(job)
    ticket = lab.leases / "leases" / only_lease(lab)
    stranger = ready(lab.start(*as_user(20002), sys.executable, "-c", OPENS_AND_USES, "0", ticket))
    whose = leases_of_processes(lab)
    assert whose.pop(stranger.pid) is None
    assert list(whose.values()) == [ticket.name]


def test_sharing_the_ticket_does(lab):
    # Its parent ends, its environment says nothing: the descriptors are all that is left.
    code = f"(env -u BERTH_LEASE '{sys.executable}' -c '{USES_DEVICES}' 0 &) ; sleep 1000"
    job = lab.start_berth("run", "--exec", "--", "bash", "-c", code)
    ready(job)
    job.kill()
    job.wait()
    eventually(lambda: list(leases_of_processes(lab).values()) == [only_lease(lab)])
    assert lab.berth("release", only_lease(lab)).status == 0


def test_what_may_not_be_read_is_assumed_and_marked(open_lab, as_user):
    lab = open_lab
    lab.berth("run", "--", "true")
    code = f"('{sys.executable}' -c '{USES_DEVICES}' 0 &) ; exec sleep 1000"
    job = lab.start(*as_user(20001), lab.program, "run", "--exec", "--", "bash", "-c", code)
    ready(job)
    job.kill()
    job.wait()
    lease = only_lease(lab)
    listing = lab.run(*as_user(20002), lab.program, "list")
    assert f"  lease {lease[-6:]}*  " in listing.out
    assert "\n* assumed: what ties it to the lease may not be read; " in listing.out
    machine = checked(lab.run(*as_user(20002), lab.program, "list", "--json"), "list")
    (process,) = machine["devices"][0]["processes"]
    assert (process["lease"], process["assumed"]) == (lease, True)
    answer = lab.run(*as_user(20002), lab.program, "verify", lease)
    assert answer.status == 0 and ", assumed to be the job's\n" in answer.out
    assert f"  lease {lease[-6:]}  " in lab.berth("list").out
    assert lab.berth("release", lease).status == 0
