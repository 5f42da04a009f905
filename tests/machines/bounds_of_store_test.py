"""What one user can do to the queue of a lab through the socket of the agent, with a real etcd."""

import contextlib
import json
import shutil
import socket
import subprocess
import threading
import time

import pytest
from desks import lab_with, place_of
from etcd import ETCD, Etcd
from fleet_of_hosts import PATIENCE_S
from jobs import eventually

pytestmark = [pytest.mark.store, pytest.mark.long]

MALLORY = 4242
EVE = 4343
KIB = 1 << 10


@pytest.fixture
def lab(two):
    with lab_with(two) as made:
        yield made


def mark(number: int) -> str:
    return f"{number:032x}"


@contextlib.contextmanager
def many_of(desk, count, uid=MALLORY, hosts="gpu1,gpu2", first=1):
    """Connections of this user that have asked for a place, and say nothing more."""
    with contextlib.ExitStack() as open_ones:
        places = []
        for number in range(first, first + count):
            asker, says = place_of(desk, mark(number), host=hosts, uid=uid)
            places.append((open_ones.enter_context(asker), says))
        eventually(lambda: len(desk.etcd.keys("ticket")) >= count, PATIENCE_S)
        yield places


def starts_at_once(lab, within_s):
    """A command of root's runs, and no earlier promise to a liar keeps it from the free GPUs."""
    answer = lab.anywhere("--wait", f"{within_s}s", "--", "true", env=lab.desks[0].env())
    assert answer.returncode == 0, answer.stderr


def test_connections_that_lie_about_where_they_stand_keep_nobody_from_a_free_gpu(lab):
    with many_of(lab.desks[0], 8) as places:
        for asker, _ in places:
            asker.sendall(b"here gpu1\njoined gpu1\nhere gpu2\njoined gpu2\n")
        eventually(
            lambda: [len(json.loads(value)["joined"]) for value, _ in lab.etcd.keys("ticket").values()]
            == [2] * 8
        )
        starts_at_once(lab, 20)


def test_many_silent_connections_of_one_user_cost_as_much_as_one(lab):
    with many_of(lab.desks[0], 200), many_of(lab.desks[0], 200, uid=EVE, first=1000):
        # 5 s for the first of each of the two: with 0.1 s for each of the others it were 50 s.
        starts_at_once(lab, 30)
        tickets = [json.loads(value) for value, _ in lab.etcd.keys("ticket").values()]
        assert sum(not ticket.get("unawaited", False) for ticket in tickets) == 0


def test_one_user_does_not_fill_the_store(lab):
    desk = lab.desks[0]
    names = ",".join(f"a-host-of-the-lab-{number:03}" for number in range(250))
    etcd = lab.etcd

    def size():
        return int(etcd.post("maintenance/status", {})["dbSize"])

    before = size()
    ends = threading.Event()

    def flap(asker):
        with contextlib.suppress(OSError):
            while not ends.is_set():
                asker.sendall(b"joined a-host-of-the-lab-000\nclosed a-host-of-the-lab-000\n")

    def drain(says):
        with contextlib.suppress(OSError, ValueError):
            while says.readline():
                pass

    with many_of(desk, 4, hosts=names) as places:
        tasks = [
            threading.Thread(target=task, args=(each[end],))
            for each in places
            for end, task in ((0, flap), (1, drain))
        ]
        for task in tasks:
            task.start()
        time.sleep(10)
        starts_at_once(lab, 30)
        ends.set()
        for asker, _ in places:
            asker.shutdown(socket.SHUT_RDWR)
        for task in tasks:
            task.join()
    # 4 MiB at once and 32 KiB a second, twice as much with what etcd adds; without a bound it were
    # 20 MiB.
    assert size() - before < 10_000 * KIB


def test_the_store_is_told_of_no_host_that_the_site_does_not_name(lab):
    desk = lab.desks[0]
    desk.site.write_text(f'store = "{desk.socket}"\nhosts = ["alice@gpu1", "gpu2"]\n')
    lab.hosts[0].machine.env["BERTH_SITE_FILE"] = str(desk.site)
    desk.agent.terminate()
    desk.agent.wait(timeout=PATIENCE_S)
    desk.start_agent()
    with many_of(desk, 1, hosts="gpu1,elsewhere") as places:
        ((_, says),) = places
        assert "open elsewhere\n" in iter(says.readline, "")
        (ticket,) = lab.etcd.keys("ticket").values()
        assert json.loads(ticket[0])["hosts"] == ["gpu1"]


ETCDCTL = shutil.which("etcdctl")


@pytest.mark.skipif(ETCD is None or ETCDCTL is None, reason="needs etcd-server and etcd-client")
def test_doctor_says_that_the_store_is_full_and_what_mends_it(machine, tmp_path):
    etcd = Etcd(tmp_path)
    etcd.quota = 4096 * KIB
    etcd.start()
    with contextlib.suppress(OSError):
        for _ in range(200):
            etcd.ask("kv/put", key="/other/of-another-program", value="x" * 100 * KIB)
    answer = machine.berth("store", "doctor", "--store", etcd.url)
    assert answer.status == 1
    told = " ".join(answer.out.split())
    assert "NOSPACE" in told
    lines = [words for words in told.split("`") if words.startswith("etcdctl ")]
    assert [words.split()[1] for words in lines] == ["compact", "defrag", "alarm"]
    for words in lines:
        subprocess.run(
            [*words.split(), "--endpoints", etcd.url],
            env={"ETCDCTL_API": "3", "PATH": "/usr/bin:/usr/local/bin:/bin"},
            check=True,
            timeout=60,
        )
    assert machine.berth("store", "doctor", "--store", etcd.url).status == 0
    etcd.kill()
