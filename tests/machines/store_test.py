"""One line over a lab: `berth serve --store` with a real etcd, and `berth run --anywhere` at two desks."""

import contextlib
import json
import shutil
import signal
import socket
import threading

import pytest
from desks import busy, lab_with
from fleet_of_hosts import PATIENCE_S
from jobs import eventually
from simulated_machine import DEADLINE_S

pytestmark = [pytest.mark.store, pytest.mark.long]


class Passage:
    """A way to etcd on which watches can be made to fall silent, or everything cut."""

    def __init__(self, etcd):
        self.etcd = etcd
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.is_deaf = self.is_cut = False
        self.watches = self.whole_reads = 0
        self.open = []
        self.start(self.admit)

    @staticmethod
    def start(task, *words):
        threading.Thread(target=task, args=words, daemon=True).start()

    def admit(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                if self.is_cut:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self.etcd.port))
                self.open += [near, far]
                self.start(self.pass_on, near, far)

    def pass_on(self, near, far):
        is_watch = False
        self.start(self.answer, far, near, lambda: is_watch and self.is_deaf)
        with contextlib.suppress(OSError):
            while piece := near.recv(65536):
                is_watch = is_watch or piece.startswith(b"POST /v3/watch")
                self.watches += piece.startswith(b"POST /v3/watch")
                # All below /berth/1/, and not what has changed since.
                is_part = b"min_mod_revision" in piece or b'"range_end"' not in piece
                self.whole_reads += b"/kv/range" in piece and not is_part
                far.sendall(piece)
        for end in (near, far):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def answer(self, far, near, is_held_back):
        with contextlib.suppress(OSError):
            while piece := far.recv(65536):
                if not is_held_back():
                    near.sendall(piece)
            near.shutdown(socket.SHUT_RDWR)

    def cut(self):
        self.is_cut = True
        for each in self.open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        self.cut()


@pytest.fixture
def lab(two):
    """gpu1 and gpu2 with one GPU each, an etcd, and two desks."""
    with lab_with(two) as made:
        yield made


@pytest.fixture
def tls_machine(two, authority):
    """The same, with an etcd that speaks TLS and wants certificates."""
    with lab_with(two, authority) as made:
        yield made


def note(lab, word):
    """A command that writes a word behind those of others."""
    return ("--", "sh", "-c", f"echo {word} >> {lab.folder}/order")


def order(lab):
    path = lab.folder / "order"
    return path.read_text().split() if path.exists() else []


def done(*jobs):
    for job in jobs:
        out, err = job.communicate(timeout=PATIENCE_S)
        assert job.returncode == 0, err


def joined(lab):
    return sorted(len(json.loads(value)["joined"]) for value, _ in lab.etcd.keys("ticket").values())


def test_it_starts_on_the_free_host_and_leaves_nothing_in_the_store(lab):
    gpu1, gpu2 = lab.hosts
    busy(gpu1)
    done(lab.desks[0].start(*note(lab, "one")))
    assert order(lab) == ["one"]
    eventually(lambda: lab.etcd.keys("ticket") == {} == lab.etcd.keys("start"))
    eventually(lambda: gpu1.envoys() + gpu2.envoys() == [])


def test_requests_of_two_desks_start_in_the_order_in_which_they_came(lab):
    holders = [busy(host) for host in lab.hosts]
    first, second = lab.desks
    jobs = []
    for i in range(6):
        jobs.append((first, second)[i % 2].waits(*note(lab, i)))
    eventually(lambda: joined(lab) == [2] * 6)
    holders[0].terminate()
    done(*jobs)
    assert order(lab) == [str(i) for i in range(6)]


def test_a_store_that_is_killed_costs_no_place(lab):
    holder = busy(lab.hosts[0])
    jobs = [lab.desks[i % 2].waits(*note(lab, i), hosts="gpu1") for i in range(4)]
    before = lab.etcd.keys("ticket").keys()
    lab.etcd.kill()
    for desk in lab.desks:
        answer = lambda desk=desk: lab.run("store", "status", env=desk.env())  # noqa: E731
        eventually(lambda: answer().returncode == 1)
    assert all(job.poll() is None for job in jobs)
    lab.etcd.start()
    eventually(lambda: lab.run("store", "status", env=lab.desks[0].env()).returncode == 0)
    assert lab.etcd.keys("ticket").keys() == before
    holder.terminate()
    done(*jobs)
    assert order(lab) == ["0", "1", "2", "3"]


def test_while_the_store_is_silent_nothing_of_its_line_starts_and_others_do(lab):
    gpu1, gpu2 = lab.hosts
    holder = busy(gpu1)
    job = lab.desks[0].waits(*note(lab, "one"), hosts="gpu1")
    eventually(lambda: joined(lab) == [1])
    lab.etcd.process.send_signal(signal.SIGSTOP)
    eventually(lambda: lab.run("store", "status", env=lab.desks[0].env()).returncode == 1)
    assert gpu2.machine.berth("run", "--", "true").status == 0
    done(lab.start_anywhere("--", "true", hosts="gpu2"))  # at a desk without a store
    holder.terminate()
    holder.wait(timeout=DEADLINE_S)
    eventually(
        lambda: gpu1.machine.berth("list", "--json").json["leases"] != []
    )  # which asks, and is told nothing
    assert order(lab) == []
    lab.etcd.process.send_signal(signal.SIGCONT)
    done(job)
    assert order(lab) == ["one"]


def wipe(lab):
    lab.etcd.kill()
    shutil.rmtree(lab.folder / "etcd")
    lab.etcd.start()


def began(lab):
    """A command of desk1 that runs."""
    job = lab.desks[0].start("--", "sh", "-c", f"echo began >> {lab.folder}/order; exec sleep 1000")
    eventually(lambda: order(lab) == ["began"])
    return job


def test_a_wiped_store_starts_nothing_twice(lab):
    holder = busy(lab.hosts[0])
    jobs = [lab.desks[i % 2].waits(*note(lab, i), hosts="gpu1") for i in range(4)]
    wipe(lab)
    eventually(lambda: len(lab.etcd.keys("ticket")) == 4 and len(lab.etcd.keys("alive")) == 2)
    holder.terminate()
    done(*jobs)
    assert sorted(order(lab)) == ["0", "1", "2", "3"]


def test_an_agent_that_starts_again_knows_what_runs(lab):
    runs = began(lab)
    (desk, _) = lab.desks
    start = lab.etcd.keys("start")
    desk.agent.kill()
    desk.agent.wait(timeout=DEADLINE_S)
    desk.start_agent()
    # What nobody has come back for goes 30 s after the start. What the agent knows of comes back at
    # once.
    (name,) = start
    lab.etcd.ask("kv/deleterange", key=f"/berth/1/start/{name}")
    eventually(lambda: lab.etcd.keys("start").keys() == start.keys())
    assert json.loads(lab.etcd.keys("start")[name][0]) == json.loads(start[name][0])
    runs.terminate()
    eventually(lambda: lab.etcd.keys("start") == {})


@pytest.fixture
def passage(lab):
    """The way on which desk1 reaches the store."""
    made = Passage(lab.etcd)
    desk = lab.desks[0]
    desk.agent.terminate()
    desk.agent.wait(timeout=DEADLINE_S)
    desk.stores = [made.url]
    desk.start_agent()
    yield made
    made.close()


def test_a_watch_that_falls_silent_is_noticed(lab, passage):
    holder = busy(lab.hosts[0])
    first = lab.desks[1].waits(*note(lab, "first"), hosts="gpu1")
    second = lab.desks[0].waits(*note(lab, "second"), hosts="gpu1")
    eventually(lambda: joined(lab) == [1, 1])
    passage.is_deaf = True
    first.kill()
    eventually(lambda: len(lab.etcd.keys("ticket")) == 1)
    # One more has come of which desk1 knows nothing, and who has not got in line on gpu1 yet.
    unknown = "/berth/1/ticket/desk3-" + "ab" * 16
    ticket = {"home": "desk3", "uid": 1, "lane": 1, "hosts": ["gpu1"], "joined": []}
    lab.etcd.ask("kv/put", key=unknown, value=json.dumps(ticket))
    reads = passage.whole_reads
    third = lab.desks[0].waits(*note(lab, "third"), hosts="gpu1")
    eventually(lambda: passage.whole_reads > reads)
    # Nobody comes before those who were earlier, not even where they are not known yet.
    assert joined(lab) == [0, 0, 1]
    passage.is_deaf = False
    lab.etcd.ask("kv/deleterange", key=unknown)
    holder.terminate()
    done(second, third)
    assert order(lab) == ["second", "third"]


def test_what_was_missed_while_the_store_was_out_of_reach_is_read_again(lab, passage):
    holder = busy(lab.hosts[0])
    first = lab.desks[1].waits(*note(lab, "first"), hosts="gpu1")
    second = lab.desks[0].waits(*note(lab, "second"), hosts="gpu1")
    passage.cut()
    eventually(lambda: "problem" in lab.run("store", "status", env=lab.desks[0].env()).stdout)
    first.kill()
    eventually(lambda: len(lab.etcd.keys("ticket")) == 1)
    # etcd forgets what has changed meanwhile.
    lab.etcd.ask("kv/put", key="/other", value="x")
    revision = lab.etcd.ask("kv/range", key="/other")["header"]["revision"]
    lab.etcd.post("kv/compaction", {"revision": revision})
    passage.is_cut = False
    eventually(lambda: lab.run("store", "status", env=lab.desks[0].env()).returncode == 0)
    holder.terminate()
    done(second)
    assert order(lab) == ["second"]


def test_all_of_the_line_is_read_once_and_not_at_each_change(lab, passage):
    busy(lab.hosts[0])
    lab.desks[0].waits("--", "true", hosts="gpu1")
    eventually(lambda: joined(lab) == [1])
    reads, watches = passage.whole_reads, passage.watches
    for _ in range(5):
        lab.desks[1].waits("--", "true", hosts="gpu1").kill()
        eventually(lambda: len(lab.etcd.keys("ticket")) == 1)
        lab.etcd.ask("kv/put", key="/other", value="of somebody else")
    assert (passage.whole_reads, passage.watches) == (reads, watches)


def test_the_status_says_who_is_there(lab):
    answer = lab.run("store", "status", env=lab.desks[0].env())
    assert answer.returncode == 0
    assert lab.etcd.url in answer.stdout
    assert "alive     desk1 (berth " in answer.stdout and "alive     desk2 (berth " in answer.stdout
    assert "waiting   0\n" in answer.stdout


def without_agent(lab):
    """The first desk, while no agent runs there."""
    desk = lab.desks[0]
    desk.agent.kill()
    desk.agent.wait(timeout=DEADLINE_S)
    return desk


def test_one_that_comes_while_the_agent_starts_again_waits_for_it_and_starts(lab):
    desk = without_agent(lab)
    job = desk.start("--", "echo", "done")
    assert "waits for the agent" in job.stderr.readline()
    desk.start_agent()
    out, err = job.communicate(timeout=PATIENCE_S)
    assert (job.returncode, out) == (0, "done\n"), err


GARBAGE = {
    "cut": "{",
    "words": '{"home":"h","uid":-1,"lane":-8,"hosts":["-o"],"joined":["\\u202e"]}',
    "deep": "[" * 100_000,
    "long": '{"hosts":["' + "x" * 500_000 + '"]}',
}


def test_what_somebody_else_wrote_into_the_store_keeps_nobody_waiting(lab):
    names = ("x", "desk1-0123456789abcdef", "../..", "\x1b[2J\u202e")
    for number, text in enumerate(GARBAGE.values()):
        for at, folder in enumerate(("ticket", "start", "alive")):
            name = names[(number + at) % len(names)]
            lab.etcd.ask("kv/put", key=f"/berth/1/{folder}/{name}", value=text)
    done(lab.desks[0].start(*note(lab, "one")), lab.desks[1].start(*note(lab, "two")))
    assert sorted(order(lab)) == ["one", "two"]


def test_with_tls_and_certificates_the_line_is_the_same(tls_machine):
    lab = tls_machine
    holder = busy(lab.hosts[0])
    jobs = [lab.desks[i % 2].waits(*note(lab, i), hosts="gpu1") for i in range(4)]
    holder.terminate()
    done(*jobs)
    assert order(lab) == [str(i) for i in range(4)]
    assert lab.run("store", "status", env=lab.desks[0].env()).returncode == 0


def test_a_store_whose_certificate_nobody_vouches_for_is_not_used(tls_machine):
    lab, desk = tls_machine, tls_machine.desks[0]
    desk.agent.terminate()
    desk.agent.wait(timeout=DEADLINE_S)
    desk.launch_agent(ca="client.pem")
    eventually(desk.listens)
    told = eventually(
        lambda: (answer := lab.run("store", "status", env=desk.env())).returncode == 1 and answer
    )
    assert "certificate is not accepted" in " ".join((told.stdout + told.stderr).split())


@pytest.fixture
def guarded(lab):
    """The lab, with an etcd that asks who it is that asks, and both agents as the user berth."""
    password = lab.folder / "password"
    password.write_text("of berth\n")
    password.chmod(0o600)
    lab.etcd.want_passwords()
    for desk in lab.desks:
        desk.agent.terminate()
        desk.agent.wait(timeout=DEADLINE_S)
        desk.password = password
        desk.start_agent()
    return lab


def trouble_of(lab):
    """What `berth store status` says once the store does not do."""
    told = eventually(
        lambda: (answer := lab.run("store", "status", env=lab.desks[0].env())).returncode == 1 and answer
    )
    return " ".join((told.stdout + told.stderr).split())


def test_a_token_that_does_not_hold_any_more_is_taken_anew(guarded):
    lab = guarded
    holder = busy(lab.hosts[0])
    job = lab.desks[0].waits(*note(lab, "waits"), hosts="gpu1")
    # Tokens are in the memory of etcd alone.
    lab.etcd.kill()
    lab.etcd.token = ""
    lab.etcd.launch()
    eventually(lab.etcd.lets_root_in)
    assert len(lab.etcd.keys("ticket")) == 1
    holder.terminate()
    done(job)


def test_a_password_that_is_wrong_or_changes_is_told_and_read_again(guarded):
    lab = guarded
    holder = busy(lab.hosts[0])
    job = lab.desks[0].waits(*note(lab, "waits"), hosts="gpu1")
    lab.etcd.post("auth/user/changepw", {"name": "berth", "password": "another"})
    lab.etcd.kill()
    lab.etcd.launch()
    refused = f"does not let in the user berth with the password in {lab.folder}/password: etcd says: "
    eventually(lambda: refused in trouble_of(lab))
    (lab.folder / "password").chmod(0o644)
    eventually(lambda: "every user may read it" in trouble_of(lab))
    (lab.folder / "password").chmod(0o600)
    (lab.folder / "password").write_text("another")
    eventually(lambda: lab.run("store", "status", env=lab.desks[0].env()).returncode == 0)
    holder.terminate()
    done(job)


def test_passwords_may_be_switched_on_while_requests_wait(lab):
    holder = busy(lab.hosts[0])
    desk = lab.desks[0]
    desk.password = lab.folder / "password"
    desk.password.write_text("of berth")
    desk.password.chmod(0o600)
    desk.agent.terminate()
    desk.agent.wait(timeout=DEADLINE_S)
    desk.start_agent()  # named a user, and etcd does not ask for one yet
    first = desk.waits(*note(lab, "first"), hosts="gpu1")
    eventually(lambda: joined(lab) == [1])
    lab.etcd.want_passwords()
    second = desk.waits(*note(lab, "second"), hosts="gpu1")
    holder.terminate()
    done(first, second)
    assert order(lab) == ["first", "second"]
