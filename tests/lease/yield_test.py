"""A job that yields fills what is idle, and ends for whoever waits and does not yield."""

import json
import signal
import socket

import pytest
from jobs import Job, command_of, eventually, holder, state, waiter, where_no_bell_is_heard

pytestmark = pytest.mark.long

GOES_ON = "trap 'echo asked; kill $!; exit 7' TERM; sleep 1000 & wait"
STUBBORN = "trap '' TERM; sleep 1000 & wait; wait; wait"


def yielding(machine, *options, then: str = GOES_ON) -> Job:
    return holder(machine, "--yield", *options, then=then)


def leases(machine) -> list[dict]:
    return json.loads(machine.berth("list", "--json").out)["leases"]


def test_a_job_that_yields_ends_for_somebody_who_waits(make_machine):
    machine = make_machine("1xH100")
    sweep = yielding(machine)
    person = Job(machine)
    assert person.starts() == "0"
    assert sweep.process.wait(20) == 7
    assert "waits for this GPU, and this job yields (--yield): the job gets SIGTERM now" in sweep.err.rest()
    person.ends()


def test_it_ends_for_somebody_who_has_waited_already_when_it_starts(make_machine):
    """Who waits for both of two is rung for when the first falls free."""
    machine = make_machine("2xH100")
    first = holder(machine, "--devices", "0")
    sweep = yielding(machine, "--devices", "1")
    person = waiter(machine, "-n", "2")
    first.ends()
    assert person.starts() == "0,1"
    assert sweep.process.wait(20) == 7
    person.ends()


def test_only_as_many_end_as_are_needed(make_machine):
    machine = make_machine("3xH100")
    sweeps = [yielding(machine) for _ in range(3)]
    person = Job(machine)
    assert person.starts() == "2"
    assert [each.process.poll() for each in sweeps[:2]] == [None, None]
    assert len(leases(machine)) == 3
    person.ends()
    for each in sweeps[:2]:
        each.signal(signal.SIGTERM)


def test_none_ends_where_even_all_would_not_do(make_machine):
    machine = make_machine("2xH100")
    steady, sweep = holder(machine), yielding(machine)
    person = waiter(machine, "-n", "2")
    person.says("first in line")
    assert [lease["ending"] for lease in leases(machine)] == [False, False]
    steady.ends()
    assert person.starts() == "0,1"
    assert sweep.process.wait(20) == 7
    person.ends()


def test_none_ends_for_one_that_yields(make_machine):
    machine = make_machine("1xH100")
    sweep = yielding(machine)
    waiter(machine, "--yield").says("first in line")
    person = Job(machine)
    assert person.starts() == "0"
    assert sweep.process.wait(20) == 7
    person.ends()


def test_one_that_yields_stands_behind_who_came_later_and_does_not(make_machine):
    machine = make_machine("1xH100")
    held = holder(machine)
    sweep = waiter(machine, "--yield")
    person = waiter(machine)
    eventually(lambda: len(json.loads(machine.berth("queue", "--json").out)["waiters"]) == 2)
    order = [each["pid"] for each in json.loads(machine.berth("queue", "--json").out)["waiters"]]
    assert order == [person.pid, sweep.pid]
    held.ends()
    assert person.starts() == "0"
    assert not sweep.has_started()
    person.ends()
    assert sweep.starts() == "0"


def test_one_that_ignores_sigterm_is_killed_after_its_grace(make_machine):
    machine = make_machine("1xH100")
    sweep = holder(machine, "--yield=1s", then=STUBBORN)
    person = Job(machine)
    assert person.starts() == "0"
    assert sweep.process.wait(20) == -signal.SIGKILL
    person.ends()


def test_it_ends_also_for_somebody_whose_ring_it_cannot_hear(make_machine):
    machine = make_machine("1xH100")
    sweep = yielding(machine)
    person = Job(machine, within=where_no_bell_is_heard())
    assert person.starts() == "0"
    assert sweep.process.wait(20) == 7
    person.ends()


def test_it_ends_also_where_somebody_else_has_its_bell(make_machine):
    machine = make_machine("1xH100")
    first = holder(machine)
    sweep = waiter(machine, "--yield", then=GOES_ON)
    (waits,) = json.loads(machine.berth("queue", "--json").out)["waiters"]
    where = machine.leases.stat()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as taken:
        taken.bind(f"\0berth/{where.st_dev}:{where.st_ino}/{waits['id']}")
        first.ends()
        assert sweep.starts() == "0"
        person = Job(machine)
        assert person.starts() == "0"
    assert sweep.process.wait(20) == 7
    person.ends()


def test_with_requeue_it_starts_again_when_nobody_else_waits(make_machine):
    machine = make_machine("1xH100")
    sweep = yielding(machine, "--requeue")
    person = Job(machine)
    assert person.starts() == "0"
    sweep.says("stands in line again")
    person.ends()
    assert sweep.out.line() == "asked\n"
    assert sweep.starts() == "0"
    sweep.signal(signal.SIGTERM)
    assert sweep.process.wait(20) == 7


def test_with_requeue_the_notice_of_the_end_comes_once_when_it_does_not_start_again(make_machine):
    machine = make_machine("1xH100")
    told = machine.directory / "told"
    hook = f'cmd:echo "$BERTH_EVENT $BERTH_MESSAGE" >> {told}'
    sweep = yielding(machine, "--requeue", "--notify", hook, "--notify-on", "end,fail")
    person = Job(machine)
    assert person.starts() == "0"
    sweep.says("stands in line again")
    person.ends()
    assert sweep.out.line() == "asked\n"
    assert sweep.starts() == "0"
    sweep.signal(signal.SIGTERM)
    assert sweep.process.wait(20) == 7
    assert eventually(lambda: told.exists() and told.read_text()) == "fail failed: exit status 7\n"


def test_one_that_somebody_releases_while_it_gives_way_does_not_start_again(make_machine):
    machine = make_machine("1xH100")
    go = machine.directory / "go"
    takes_its_time = f"trap 'echo asked' TERM; while [ ! -e {go} ]; do sleep 0.1; done; exit 7"
    sweep = holder(machine, "--yield=1h", "--requeue", then=takes_its_time)
    person = Job(machine)
    assert sweep.out.line() == "asked\n"
    sweep.signal(signal.SIGTERM)
    go.touch()
    assert sweep.process.wait(20) == 7
    assert person.starts() == "0"
    person.ends()


def test_one_that_somebody_releases_once_its_command_has_given_way_does_not_start_again(make_machine):
    machine = make_machine("1xH100")
    told_of = machine.directory / "told"
    told_of.touch()
    notify = ("--notify", f"cmd:echo $BERTH_EVENT >>{told_of}")
    left = "trap '' TERM; while [ ! -e go ]; do sleep 0.1; done >&- 2>&- &"
    stays = f"{left} trap 'exit 7' TERM; touch stands; wait"
    sweep = holder(machine, "--yield=1h", "--requeue", *notify, then=f"cd {machine.directory}; {stays}")
    command = command_of(sweep)
    eventually((machine.directory / "stands").exists)
    person = Job(machine)
    eventually(lambda: state(command) == "gone")
    sweep.signal(signal.SIGTERM)
    (machine.directory / "go").touch()
    assert sweep.process.wait(20) == 7
    # Only now it is known that it has ended for good.
    assert eventually(lambda: "fail" in told_of.read_text().split()) and "end" not in told_of.read_text()
    assert person.starts() == "0"
    person.ends()


def test_a_command_that_has_ended_by_itself_does_not_start_again(make_machine):
    machine = make_machine("1xH100")
    sweep = yielding(machine, "--requeue", then="setsid sleep 1000 >&- 2>&- & exit 7")
    sweep.says("still hold the lease")
    person = Job(machine)
    assert person.starts() == "0"
    assert sweep.process.wait(20) == 7
    person.ends()


def test_one_that_may_take_long_to_give_way_ends_at_its_time_all_the_same(make_machine):
    machine = make_machine("1xH100")
    (machine.directory / "site.toml").write_text('time_grace = "1s"\n')
    sweep = holder(machine, "--yield=1h", "--time", "3s", then=STUBBORN)
    person = Job(machine)
    assert person.starts() == "0"
    assert sweep.process.wait(20) == -signal.SIGKILL
    person.ends()


def test_a_stranger_who_rings_ends_nobodys_job(make_machine):
    machine = make_machine("1xH100")
    sweep = yielding(machine)
    (lease,) = leases(machine)
    where = machine.leases.stat()
    name = f"\0berth/{where.st_dev}:{where.st_ino}/{lease['id']}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as stranger:
        for _ in range(10_000):
            try:
                stranger.sendto(b"x", name)
            except BlockingIOError:
                machine.berth("list")
    assert state(sweep.pid) in "SR"
    assert not leases(machine)[0]["ending"]
    sweep.signal(signal.SIGTERM)
    assert sweep.process.wait(20) == 7


def test_what_cannot_go_together_is_refused(make_machine):
    machine = make_machine("1xH100")
    for words, sentence in [
        (["--requeue"], "--requeue is for jobs that yield: add --yield"),
        (["--yield", "--exec"], "--yield and --exec exclude each other"),
        (["--yield=0"], "at least 1s and at most 1h"),
        (["--yield=2h"], "at least 1s and at most 1h"),
    ]:
        answer = machine.berth("run", *words, "--", "true")
        assert (answer.status, sentence in answer.err) == (2, True), answer.err


# Idle leases, where the site says after what time


IDLE = '[[device]]\nmodel = "H100"\n'
COMPUTING = IDLE + "utilization = 40\n"


def on_a_site_where_idle_leases_yield(make_machine, scenario: str):
    machine = make_machine(scenario)
    (machine.directory / "site.toml").write_text('idle_leases = "1s"\n')
    return machine


def test_a_job_that_computes_nothing_ends_for_somebody_who_waits_and_is_told_why(make_machine):
    machine = on_a_site_where_idle_leases_yield(make_machine, IDLE)
    idle = holder(machine, then=GOES_ON)
    person = Job(machine)
    assert person.starts() == "0"
    assert idle.process.wait(20) == 7
    said = idle.err.rest()
    why = "nothing has computed on GPU 0 for 1 s (idle_leases of the site)"
    assert f"{why}: from now on this job ends if another request waits for its GPUs" in said
    assert f"waits for this GPU, and {why}: the job gets SIGTERM now" in said
    person.ends()


def test_a_job_that_computes_nothing_ends_also_for_somebody_whose_ring_it_cannot_hear(make_machine):
    machine = on_a_site_where_idle_leases_yield(make_machine, IDLE)
    idle = holder(machine, then=GOES_ON)
    person = Job(machine, within=where_no_bell_is_heard())
    assert person.starts() == "0"
    assert idle.process.wait(20) == 7
    person.ends()


def test_a_job_that_is_idle_goes_on_while_nobody_waits_and_counts_again_when_it_computes(make_machine):
    machine = on_a_site_where_idle_leases_yield(make_machine, IDLE)
    job = holder(machine)
    eventually(lambda: leases(machine)[0]["yield_s"] == 30)
    assert "yields" in machine.berth("list").out
    machine.change(COMPUTING)
    eventually(lambda: leases(machine)[0]["yield_s"] is None)
    waiting = waiter(machine)
    # Several looks long: it computes, so it is asked for nothing.
    waiting.says("first in line")
    eventually(lambda: len(json.loads(machine.berth("queue", "--json").out)["waiters"]) == 1)
    assert not waiting.has_started()
    machine.change(IDLE)
    assert waiting.starts() == "0"
    job.process.wait(20)


def test_where_the_site_says_nothing_an_idle_job_keeps_its_gpu(make_machine):
    machine = make_machine(IDLE)
    job = holder(machine)
    waiter(machine).says("first in line")
    assert leases(machine)[0]["yield_s"] is None
    job.ends()
