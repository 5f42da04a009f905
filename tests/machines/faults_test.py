"""What the store of a lab and its agents must stand for longer than a presence lives in etcd: no place is lost, nothing
starts twice, and no command that runs is touched. etcd itself loses all its leases in some of these."""

import contextlib
import itertools
import json
import signal
import time

import pytest
from desks import at_desks, place_of
from etcd import ETCD, Etcd, EtcdOfMembers
from jobs import eventually
from simulated_machine import DEADLINE_S
from store_test import done, joined, note, order

pytestmark = [
    pytest.mark.store,
    pytest.mark.lasting,
    pytest.mark.skipif(ETCD is None, reason="needs etcd-server"),
]

# A presence lives 30 s, and etcd looks for those that have ended twice a second.
OUTAGE_S = 33
REQUESTS = 8  # as many as stand in the line of a host at once
CROWD_OF_DESK = 146  # that makes 300 places
# What ends a command or makes it end is written down.
COMMAND = 'trap "echo touched >>$1" HUP INT TERM; echo began >>$1; while [ ! -e $1.end ]; do sleep 0.1; done; echo ended >>$1'


class Crowd:
    """Requests of a desk that only wait, without a process for each. They come back to their places as others do."""

    def __init__(self, desk, numbers):
        self.desk = desk
        self.marks = [f"{number:032x}" for number in itertools.islice(numbers, CROWD_OF_DESK)]
        self.open = []

    def come(self):
        self.open = [end for mark in self.marks for end in place_of(self.desk, mark)]

    def go(self):
        for each in self.open:
            each.close()


@contextlib.contextmanager
def lab_of(two, members):
    etcd = Etcd(two.folder) if members == 1 else EtcdOfMembers(two.folder, members)
    etcd.start()
    with at_desks(two, etcd, 2):
        yield two
    etcd.kill()


def kill_the_store(lab, crowds):
    lab.etcd.kill()
    time.sleep(OUTAGE_S)
    lab.etcd.start()


def stop_the_store(lab, crowds):
    stopped = lab.etcd.keys("alive")
    lab.etcd.process.send_signal(signal.SIGSTOP)
    time.sleep(OUTAGE_S)
    lab.etcd.process.send_signal(signal.SIGCONT)
    # All its leases are gone, and each agent has a new one.
    eventually(lambda: len(now := lab.etcd.keys("alive")) == 2 and not now.items() & stopped.items())


def stop_the_leader(lab, crowds):
    leader = next(member for member in lab.etcd.members if member.leads())
    leader.process.send_signal(signal.SIGSTOP)
    end = time.monotonic() + OUTAGE_S
    # The others go on.
    for desk in lab.desks:
        eventually(lambda desk=desk: is_well(lab, desk))
    time.sleep(end - time.monotonic())
    leader.process.send_signal(signal.SIGCONT)
    eventually(leader.answers)


def kill_an_agent(lab, crowds):
    desk = lab.desks[0]
    desk.agent.kill()
    desk.agent.wait(timeout=DEADLINE_S)
    eventually(lambda: desk.name not in lab.etcd.keys("alive"), OUTAGE_S + DEADLINE_S)
    nobodys = f"{desk.name}-{'ab' * 16}"
    ticket = {"home": desk.name, "uid": 0, "lane": 1, "hosts": ["gpu1"], "joined": []}
    lab.etcd.ask("kv/put", key=f"/berth/1/ticket/{nobodys}", value=json.dumps(ticket))
    desk.start_agent()
    crowds[0].come()
    # It has removed whatever has not come back.
    eventually(lambda: nobodys not in lab.etcd.keys("ticket"), 60)


def is_well(lab, desk):
    return lab.run("store", "status", env=desk.env()).returncode == 0


def command(lab, name):
    return ("--", "sh", "-c", COMMAND, "sh", lab.folder / name)


def said(lab, name):
    path = lab.folder / name
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("fault", [kill_the_store, stop_the_store, stop_the_leader, kill_an_agent])
def test_no_place_is_lost_nothing_starts_twice_and_what_runs_is_not_touched(two, fault):
    with lab_of(two, 3 if fault is stop_the_leader else 1) as lab:
        running = {
            "of-the-lab": lab.desks[0].start(*command(lab, "of-the-lab"), hosts="gpu1"),
            "of-a-host": lab.hosts[1].machine.start_berth("run", *command(lab, "of-a-host")),
        }
        for name in running:
            eventually(lambda name=name: said(lab, name) == ["began"])
        jobs = [lab.desks[i % 2].waits(*note(lab, i)) for i in range(REQUESTS)]
        numbers = itertools.count()
        crowds = [Crowd(desk, numbers) for desk in lab.desks]
        for crowd in crowds:
            crowd.come()
        eventually(lambda: joined(lab) == [0] * 2 * CROWD_OF_DESK + [2] * REQUESTS)
        before = lab.etcd.places()

        fault(lab, crowds)
        for desk in lab.desks:
            eventually(lambda desk=desk: is_well(lab, desk))
        assert lab.etcd.places() == before
        assert [name for name in running if said(lab, name) != ["began"]] == []
        assert order(lab) == []

        # One host starts all that wait, and on the other the command of the lab runs to its end.
        (lab.folder / "of-a-host.end").touch()
        done(*jobs)
        assert order(lab) == [str(i) for i in range(REQUESTS)]
        (lab.folder / "of-the-lab.end").touch()
        done(*running.values())
        assert [said(lab, name) for name in running] == [["began", "ended"]] * 2
        for crowd in crowds:
            crowd.go()
        eventually(lambda: lab.etcd.keys("ticket") == {} == lab.etcd.keys("start"))
