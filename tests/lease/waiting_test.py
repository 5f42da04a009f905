"""Waiting for a device: who is served when, and what becomes of those who stop, die or lose patience."""

import signal
import subprocess
import sys

import pytest
from jobs import DEADLINE_S, Job, close_input, device_file, eventually, holder, queue, state, tickets, waiter
from simulated_machine import Machine


@pytest.fixture
def one(make_machine) -> Machine:
    """A machine with one device."""
    return make_machine("1xH100")


@pytest.fixture
def two(make_machine) -> Machine:
    return make_machine("2xH100")


def nothing_is_left(machine: Machine) -> bool:
    return tickets(machine, "queue") == [] and tickets(machine, "leases") == []


# In order


def test_rivals_are_served_in_the_order_in_which_they_came(one):
    holding = holder(one)
    waiting = [waiter(one) for _ in range(4)]
    for position, job in enumerate(waiting):
        assert queue(one) == [each.pid for each in waiting[position:]]
        assert holding.ends() == 0
        assert job.starts() == "0"
        holding = job
    assert holding.ends() == 0
    assert nothing_is_left(one)


def test_a_killed_holder_hands_over_to_the_next(one):
    holding = holder(one, then="exec sleep 1000")
    first, second = waiter(one), waiter(one)
    holding.signal(signal.SIGKILL)
    first.starts()
    assert queue(one) == [second.pid]
    first.signal(signal.SIGKILL)
    second.starts()
    assert second.ends() == 0


def test_a_waiter_that_is_killed_leaves_the_queue(one):
    holding = holder(one)
    first, second = waiter(one), waiter(one).says("behind")
    first.signal(signal.SIGKILL)
    second.says("first in line")
    holding.ends()
    second.starts()
    assert second.ends() == 0
    one.berth("run", "--", "true")  # sweeps what the dead have left
    assert nothing_is_left(one)


def test_a_removed_ticket_ends_its_request_and_holds_up_nobody_behind_it(one):
    holding = holder(one)
    first, removed, last = waiter(one), waiter(one).says("behind"), waiter(one).says("behind")
    assert queue(one) == [first.pid, removed.pid, last.pid]
    (one.leases / "queue" / tickets(one, "queue")[1]["id"]).unlink()
    assert removed.process.wait(DEADLINE_S) == 1
    assert "somebody removed the ticket of this request" in removed.err.rest()
    holding.ends()
    first.starts()
    first.ends()
    last.starts()
    assert last.ends() == 0


def test_ctrl_c_leaves_the_queue_at_once_and_the_next_moves_up(one):
    holding = holder(one)
    first, second = waiter(one), waiter(one).says("behind")
    first.signal(signal.SIGINT)
    assert first.process.wait(DEADLINE_S) == -signal.SIGINT
    second.says("first in line")
    holding.ends()
    second.starts()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_end_that_is_asked_for_leaves_the_queue(one, number):
    holder(one)
    job = waiter(one).signal(number)
    assert job.process.wait(DEADLINE_S) == -number
    assert job.out.rest() == ""
    assert queue(one) == []


# How long


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_wait_that_runs_out_ends_with_124_and_the_reasons(one, ahead):
    holding = holder(one)
    for _ in range(ahead):
        waiter(one)
    answer = one.berth("run", "--wait", "1s", "--", "echo", "never")
    assert (answer.status, answer.out) == (124, "")
    assert "gave up after 1 s" in answer.err and "leased" in answer.err
    assert len(queue(one)) == ahead
    assert holding.ends() == 0


def test_a_wait_that_runs_out_behind_somebody_has_the_reasons_of_its_end(in_order):
    machine = in_order("2xH100")
    holding = [holder(machine, "--devices", str(index)) for index in range(2)]
    pair = waiter(machine, "-n", "2")
    late = waiter(machine, "--wait", "3s").signal(signal.SIGSTOP)
    holding[1].ends()
    pair.says("1 of 2 free")
    late.signal(signal.SIGCONT)
    assert late.process.wait(DEADLINE_S) == 124
    said = late.err.rest()
    assert "GPU 0  leased" in said and "GPU 1  leased" not in said
    holding[0].ends()
    pair.starts()


def test_the_first_line_says_for_what_it_waits_and_how_not_to(one):
    holder(one)
    job = Job(one, "--note", "sweep")
    assert job.err.line() == (
        "berth: waiting for 1 whole GPU; Ctrl-C leaves the queue, --no-wait does not enter it\n"
    )
    assert job.err.line().startswith("berth: first in line")


def in_the_gate(machine):
    """Somebody who decides, and does not come to an end."""
    words = (
        "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], 0), 2); print('ready', flush=True); input()"
    )
    stopped = machine.start(sys.executable, "-c", words, machine.leases, stdin=subprocess.PIPE)
    assert stopped.stdout.readline() == "ready\n"
    return stopped


@pytest.mark.parametrize("words, status", [(["--no-wait"], 75), (["--wait", "1s"], 124)])
def test_who_may_not_wait_does_not_wait_for_one_in_the_gate_and_names_him(one, words, status):
    one.berth("run", "--", "true")
    stopped = in_the_gate(one)
    answer = one.berth("run", *words, "--", "echo", "never")
    assert (answer.status, answer.out) == (status, "")
    assert f"process {stopped.pid} is deciding in {one.leases} and lets nobody else in" in answer.err
    assert f"it is of root; `kill -KILL {stopped.pid}` ends it" in answer.err
    assert queue(one) == []
    stopped.kill()
    assert one.berth("run", "--no-wait", "--", "true").status == 0


def test_one_who_is_stopped_in_the_gate_is_named_with_what_lets_him_go_on_and_not_put_out_of_it(one):
    one.berth("run", "--", "true")
    stopped = in_the_gate(one)
    stopped.send_signal(signal.SIGSTOP)
    eventually(lambda: state(stopped.pid) == "T")
    said = f"it is of root and stopped; `kill -CONT {stopped.pid}` lets it go on, `kill -KILL {stopped.pid}` ends it"
    answer = one.berth("run", "--no-wait", "--", "echo", "never")
    assert (answer.status, answer.out) == (75, "") and said in answer.err
    found = one.berth("doctor")
    assert found.status == 1
    assert found.out.count(f"process {stopped.pid} is deciding in {one.leases}") == 1 and said in found.out
    stopped.send_signal(signal.SIGCONT)
    close_input(stopped)
    assert one.berth("run", "--no-wait", "--", "true").status == 0
    assert one.berth("doctor").out.count("is deciding in") == 0


def test_a_wait_ends_in_time_also_while_somebody_stays_in_the_gate(one):
    holding = holder(one)
    job = waiter(one, "--wait", "2s")
    in_the_gate(one)
    holding.ends()
    assert job.process.wait(DEADLINE_S) == 124
    assert queue(one) == []


def test_how_long_is_said_by_the_command_line_and_else_by_the_environment(one):
    holder(one)
    for words, environment, status in (
        (["--no-wait"], {"BERTH_WAIT": "1h"}, 75),
        (["--wait", "1s"], {"BERTH_WAIT": "0"}, 124),
        ([], {"BERTH_WAIT": "0"}, 75),
        ([], {"BERTH_WAIT": "1s"}, 124),
        ([], {"BERTH_WAIT": "soon"}, 2),
        (["--wait", "-3"], {}, 2),
        (["--wait", "1s", "--no-wait"], {}, 2),
    ):
        answer = one.berth("run", *words, "--", "echo", "never", env=environment)
        assert (answer.status, answer.out) == (status, ""), (words, environment)
    assert queue(one) == []


def test_a_wait_without_end_is_asked_for_by_name(one):
    holding = holder(one)
    job = waiter(one, env={"BERTH_WAIT": "forever"})
    holding.ends()
    job.starts()


def test_a_wait_that_is_longer_than_clocks_count_is_a_long_one(one):
    holding = holder(one)
    job = waiter(one, "--wait", "9999999d")
    looking = one.start_berth("wait", "-n", "1", "--wait", "9999999d")
    # Meanwhile it would have given up.
    assert one.berth("wait", "-n", "1", "--wait", "1s").status == 124
    holding.ends()
    job.starts()
    job.ends()
    assert looking.wait(DEADLINE_S) == 0


# Those who are stopped


def test_a_stopped_waiter_is_skipped_and_keeps_its_place(one):
    holding = holder(one)
    first, second, third = waiter(one), waiter(one), waiter(one)
    first.stop()
    holding.ends()
    second.starts()  # within a tick
    assert queue(one) == [first.pid, third.pid]
    first.go_on()
    third.says("no. 2 in line")
    second.ends()
    first.starts()
    assert queue(one) == [third.pid]
    first.ends()
    third.starts()


def test_behind_a_stopped_waiter_the_others_come_and_go(one):
    """The stopped one is the nearest: what happens before it must be seen past it."""
    holding = holder(one)
    first, second, third = waiter(one), waiter(one), waiter(one).says("no. 3 in line")
    second.stop()
    third.says("no. 2 in line")
    holding.ends()
    first.starts()
    third.says("first in line")
    first.ends()
    third.starts()
    assert state(second.pid) == "T"


def test_a_stopped_holder_keeps_its_lease(one):
    holding = holder(one)
    job = waiter(one)
    holding.stop()
    assert one.berth("run", "--wait", "1s", "--", "true").status == 124
    assert not job.has_started()
    holding.go_on()
    holding.ends()
    job.starts()


# Which devices


def test_two_whose_candidates_meet_in_part_are_rivals(make_machine):
    machine = make_machine("3xH100")
    holding = [holder(machine, "--devices", str(index)) for index in range(3)]
    left = waiter(machine, "--devices", "0,1", "-n", "1")
    right = waiter(machine, "--devices", "1,2", "-n", "1").says("no. 2 in line")
    holding[1].ends()
    assert left.starts() == "1"
    right.says("first in line")
    holding[2].ends()
    assert right.starts() == "2"


def test_a_waiter_for_two_is_not_starved_by_singles(in_order):
    two = in_order("2xH100")
    holding = [holder(two, "--devices", str(index)) for index in range(2)]
    pair = waiter(two, "-n", "2")
    single = waiter(two)
    holding[0].ends()
    pair.says("1 of 2 free")
    assert two.berth("run", "--no-wait", "--", "true").status == 75
    assert not single.has_started()
    holding[1].ends()
    assert pair.starts() == "0,1"
    assert not single.has_started()
    pair.ends()
    single.starts()


def test_what_no_earlier_waiter_could_use_is_taken_at_once(two):
    holder(two, "--devices", "0")
    first = waiter(two, "--devices", "0")
    assert two.berth("run", "--", "bash", "-c", "echo $CUDA_VISIBLE_DEVICES").out == "1\n"
    assert queue(two) == [first.pid]


def test_shares_are_given_up_to_the_card_and_never_beside_a_whole_lease(in_order):
    one = in_order("1xH100")
    shares = [holder(one, "--memory", "25G") for _ in range(3)]
    whole = waiter(one)
    fourth = waiter(one, "--memory", "25G")
    shares.pop().ends()
    # There is room again, but the whole card was asked for before.
    whole.says("leased")
    assert queue(one) == [whole.pid, fourth.pid]
    for share in shares:
        assert not whole.has_started()
        share.ends()
    whole.starts()
    assert not fourth.has_started()
    whole.ends()
    fourth.starts()


def test_a_share_that_promises_nothing_goes_beside_a_full_card_and_never_beside_a_whole_lease(one):
    full = holder(one, "--memory", "75G")
    beside = holder(one, "--shared")
    assert one.berth("run", "--no-wait", "--", "true").status == 75
    full.ends()
    beside.ends()
    whole = holder(one)
    assert one.berth("run", "--shared", "--no-wait", "--", "true").status == 75
    whole.ends()


def test_the_share_that_ends_makes_room_for_the_next(one):
    shares = [holder(one, "--memory", "25G") for _ in range(3)]
    fourth, fifth = waiter(one, "--memory", "25G"), waiter(one, "--memory", "25G")
    shares[1].ends()
    fourth.starts()
    assert queue(one) == [fifth.pid]
    shares[0].signal(signal.SIGKILL)
    fifth.starts()


# Those who do not use Berth


def test_the_end_of_a_bare_flock_is_noticed(one):
    path = device_file(one)
    citizen = one.start("bash", "-c", f"exec 9<{path}; flock 9; echo ready; exec sleep 1000")
    assert citizen.stdout.readline() == "ready\n"
    job = waiter(one).says("locked")
    assert not job.has_started()
    citizen.kill()
    job.starts()


def test_who_may_not_wait_hears_of_a_lock_also_if_a_stopped_waiter_is_before_it(make_machine):
    """It decides twice: the stopped one is not the nearest, so it is found only after the first decision."""
    machine = make_machine("2xH100")
    machine.berth("run", "-n", "2", "--", "true")
    one, other = (machine.leases / "devices").iterdir()
    locks = f"exec 8<{one} 9<{other}; flock 8; flock 9; echo ready; exec sleep 1000"
    citizen = machine.start("bash", "-c", locks)
    assert citizen.stdout.readline() == "ready\n"
    first = waiter(machine, "-n", "2")
    waiter(machine, "-n", "2")
    first.stop()
    answer = machine.berth("run", "--no-wait", "--", "true")
    assert answer.status == 75
    assert "GPU 0,1  locked by a program that has no ticket\n" in answer.err


def test_the_exit_of_an_outsider_is_noticed(make_machine):
    outsider = make_machine("1xT4").start("sleep", "1000")
    machine = make_machine(
        f'[[device]]\nmodel = "H100"\n[[device.process]]\npid = {outsider.pid}\nused_mib = 900\n'
    )
    job = waiter(machine)
    assert not job.has_started()
    outsider.kill()
    outsider.wait()
    job.starts()


def test_memory_that_comes_back_late_is_waited_for(make_machine):
    machine = make_machine('memory_return_delay = "300ms"\n[[device]]\nmodel = "H100"\n')
    use = (
        'exec python3 -c \'import ctypes; c = ctypes.CDLL("libcuda.so.1"); x = ctypes.c_void_p(); '
        "c.cuInit(0); c.cuCtxCreate_v2(ctypes.byref(x), 0, 0); c.cuMemAlloc_v2(ctypes.byref(x), "
        'ctypes.c_size_t(1 << 30)); print("ready", flush=True); input()\''
    )
    holding = holder(machine, then=use)
    assert holding.out.line() == "ready\n"
    job = waiter(machine)
    holding.signal(signal.SIGKILL)
    job.says("draining")
    job.starts()


def test_a_request_that_becomes_impossible_is_refused_while_it_waits(two):
    holding = holder(two)
    job = waiter(two, "-n", "2", "--name", "H100")
    two.change('[[device]]\nmodel = "H100"\n[[device]]\nmodel = "H100"\nname = "of another name"\n')
    holding.ends()
    assert job.process.wait(DEADLINE_S) == 69
    assert "can never satisfy the request (2 whole GPUs" in job.err.rest()
    eventually(lambda: nothing_is_left(two))
