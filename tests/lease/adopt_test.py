"""berth adopt: a lease for a process that already computes."""

import os
import re
import signal
import sys

from jobs import waiter
from lease_jobs import USES_DEVICES, alive, eventually, leases, only_lease, ready
from schemas import checked
from simulated_machine import DEADLINE_S


def outsider(machine, devices="0", as_user=()):
    return ready(machine.start(*as_user, sys.executable, "-c", USES_DEVICES, devices))


def states(machine) -> list[str]:
    return [device["verdict"]["clause"] for device in machine.berth("list", "--json").json["devices"]]


def test_its_devices_become_its_lease(make_machine):
    machine = make_machine("3xH100")
    job = outsider(machine, "0,2")
    assert states(machine) == ["no_outsider", None, "no_outsider"]
    answer = machine.berth("adopt", job.pid)
    assert (answer.status, answer.err) == (0, "")
    assert re.fullmatch(
        rf"lease {only_lease(machine)[-6:]}: GPU 0,2 for process {job.pid} \(\S+\) until it ends\n",
        answer.out,
    )
    assert states(machine) == ["not_leased", None, "not_leased"]
    listing = machine.berth("list", "--json").json
    processes = [process for device in listing["devices"] for process in device["processes"]]
    assert [process["lease"] for process in processes] == [only_lease(machine)] * 2


def test_it_ends_with_the_process(make_machine):
    machine = make_machine("1xH100")
    job = outsider(machine)
    answer = checked(machine.berth("adopt", job.pid, "--json", "--note", "found it"), "claim")
    assert answer["ends_with"] == job.pid and alive(answer["kept_by"])
    job.kill()
    job.wait(DEADLINE_S)
    eventually(lambda: leases(machine) == [])
    eventually(lambda: not alive(answer["kept_by"]))
    assert machine.berth("run", "--no-wait", "--", "true").status == 0


def test_releasing_it_leaves_the_process(make_machine):
    machine = make_machine("1xH100")
    job = outsider(machine)
    assert machine.berth("adopt", job.pid).status == 0
    assert machine.berth("release", only_lease(machine)).status == 0
    assert job.poll() is None
    assert states(machine) == ["no_outsider"]


def test_what_it_has_started_counts_as_it(make_machine):
    machine = make_machine("1xH100")
    shell = ready(
        machine.start("bash", "-c", f"{sys.executable} -c '{USES_DEVICES}' 0; true", start_new_session=True)
    )
    assert machine.berth("adopt", shell.pid).status == 0
    assert len(leases(machine)) == 1
    os.killpg(shell.pid, signal.SIGKILL)


def test_it_takes_no_turn_behind_those_who_could_not_have_the_gpu_meanwhile(make_machine):
    machine = make_machine("1xH100")
    job = outsider(machine)
    waiting = waiter(machine)
    assert machine.berth("adopt", job.pid).status == 0
    assert not waiting.has_started()
    job.kill()
    assert waiting.starts() == "0"
    waiting.ends()


def test_it_is_refused_while_another_outsider_is_there(make_machine):
    machine = make_machine("1xH100")
    job, other = outsider(machine), outsider(machine)
    answer = machine.berth("adopt", job.pid)
    assert (answer.status, answer.out) == (75, "")
    assert f"(pid {other.pid})" in answer.err and f"(pid {job.pid})" not in answer.err
    assert leases(machine) == []
    other.kill()
    other.wait()
    assert machine.berth("adopt", job.pid).status == 0


def test_twice_is_once(make_machine):
    machine = make_machine("1xH100")
    job = outsider(machine)
    assert machine.berth("adopt", job.pid).status == 0
    answer = machine.berth("adopt", job.pid)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err == f"berth: process {job.pid} has the lease {only_lease(machine)[-6:]} already\n"


def test_a_process_without_a_gpu_has_nothing_to_adopt(machine):
    idle = machine.start("sleep", "1000")
    answer = machine.berth("adopt", idle.pid)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.startswith(
        f"berth: neither process {idle.pid} (sleep 1000) nor a process that it started computes on a GPU"
    )
    assert leases(machine) == []


def test_a_dead_process_is_named(machine):
    gone = machine.start("true")
    gone.wait(DEADLINE_S)
    answer = machine.berth("adopt", gone.pid)
    assert (answer.status, answer.out, answer.err) == (1, "", f"berth: there is no process {gone.pid}\n")


def test_what_is_no_pid_is_a_wrong_use(machine):
    for words in ([], ["0"], ["-1"], ["train.py"], ["1", "2"], ["99999999999999"]):
        assert machine.berth("adopt", "--", *words).status == 2, words


def test_another_users_process_is_his(open_machine, as_user):
    machine = open_machine
    job = machine.start(*as_user(20001), "sleep", "1000")
    eventually(lambda: os.stat(f"/proc/{job.pid}").st_uid == 20001)
    for user in (as_user(20002), ()):
        answer = machine.run(*user, machine.program, "adopt", job.pid)
        assert (answer.status, answer.out) == (1, "")
        assert answer.err.startswith(f"berth: process {job.pid} is of uid 20001, ")


def test_a_process_on_a_mig_instance_gets_that_one(make_machine):
    machine = make_machine('[[device]]\nmodel = "H100"\nmig = ["1g.10gb", "1g.10gb"]\n')
    uuid = next(d["uuid"] for d in machine.berth("list", "--json").json["devices"] if d["label"] == "0:1")
    job = ready(machine.start(sys.executable, "-c", USES_DEVICES, "0", env={"CUDA_VISIBLE_DEVICES": uuid}))
    answer = machine.berth("adopt", job.pid)
    assert answer.status == 0, answer.err
    assert f"GPU 0:1 for process {job.pid} " in answer.out
    assert machine.berth("verify", only_lease(machine)).status == 0


def test_a_process_that_only_draws_has_nothing_to_adopt(machine):
    window = machine.start("sleep", "1000")
    machine.change(
        f'[[device]]\nmodel = "H100"\nprocess = [{{pid = {window.pid}, type = "G", used_mib = 50}}]\n'
    )
    answer = machine.berth("adopt", window.pid)
    assert (answer.status, answer.out) == (1, "")
    assert "nor a process that it started computes on a GPU" in answer.err


def test_what_somebody_else_has_leased_is_not_adopted(make_machine):
    machine = make_machine("1xH100")
    machine.berth("run", "--", "true")
    job = outsider(machine)
    other = machine.start(
        "flock", "-F", next((machine.leases / "devices").iterdir()), "sh", "-c", "echo ready; exec sleep 1000"
    )
    ready(other)
    answer = machine.berth("adopt", job.pid)
    assert (answer.status, answer.out) == (75, "")
    assert "locked" in answer.err
    assert job.poll() is None


def test_killing_the_keeper_ends_the_lease_and_not_the_process(make_machine):
    machine = make_machine("1xH100")
    job = outsider(machine)
    keeper = machine.berth("adopt", job.pid, "--json").json["kept_by"]
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: states(machine) == ["no_outsider"])
    assert job.poll() is None
