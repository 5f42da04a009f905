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


def leases_of_processes(machine) -> dict:
    devices = machine.berth("list", "--json").json["devices"]
    return {process["pid"]: process["lease"] for device in devices for process in device["processes"]}


def test_reading_a_ticket_makes_nobody_its_holder(open_machine, as_user):
    machine = open_machine
    machine.berth("run", "--", "true")
    job = machine.start(
        *as_user(20001), machine.program, "run", "--", sys.executable, "-c", USES_DEVICES, "0"
    )
    ready(job)
    ticket = machine.leases / "leases" / only_lease(machine)
    stranger = ready(machine.start(*as_user(20002), sys.executable, "-c", OPENS_AND_USES, "0", ticket))
    whose = leases_of_processes(machine)
    assert whose.pop(stranger.pid) is None
    assert list(whose.values()) == [ticket.name]


def test_sharing_the_ticket_does(machine):
    # Its parent ends, its environment says nothing: the descriptors are all that is left.
    code = f"(env -u BERTH_LEASE '{sys.executable}' -c '{USES_DEVICES}' 0 &) ; sleep 1000"
    job = machine.start_berth("run", "--exec", "--", "bash", "-c", code)
    ready(job)
    job.kill()
    job.wait()
    eventually(lambda: list(leases_of_processes(machine).values()) == [only_lease(machine)])
    assert machine.berth("release", only_lease(machine)).status == 0


def test_what_may_not_be_read_is_assumed_and_marked(open_machine, as_user):
    machine = open_machine
    machine.berth("run", "--", "true")
    code = f"('{sys.executable}' -c '{USES_DEVICES}' 0 &) ; exec sleep 1000"
    job = machine.start(*as_user(20001), machine.program, "run", "--exec", "--", "bash", "-c", code)
    ready(job)
    job.kill()
    job.wait()
    lease = only_lease(machine)
    listing = machine.run(*as_user(20002), machine.program, "list", "-l")
    assert f"  lease {lease[-6:]}*  " in listing.out
    assert "\n* assumed: what ties it to the lease may not be read; " in listing.out
    listing = checked(machine.run(*as_user(20002), machine.program, "list", "--json"), "list")
    (process,) = listing["devices"][0]["processes"]
    assert (process["lease"], process["assumed"]) == (lease, True)
    answer = machine.run(*as_user(20002), machine.program, "verify", lease)
    assert answer.status == 0 and ", assumed to be the job's\n" in answer.out
    assert f"  lease {lease[-6:]}  " in machine.berth("list", "-l").out
    assert machine.berth("release", lease).status == 0
