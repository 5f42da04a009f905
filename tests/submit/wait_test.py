"""berth wait: for jobs, and until GPUs are free."""

import signal

from jobs import Job, Lines, eventually, holder, queue, tickets, waiter
from simulated_machine import DEADLINE_S
from submitted import submit, wait_for


class Waits:
    """`berth wait` that has looked once, and sleeps."""

    def __init__(self, machine, *words):
        self.process = machine.start(machine.program, "wait", *words)
        self.err = Lines(self.process.stderr)
        line = self.err.line()
        assert "nothing is held for you" in line, line

    def ends(self) -> str:
        """What it prints."""
        out = Lines(self.process.stdout).rest()
        assert self.process.wait(DEADLINE_S) == 0, self.err.rest()
        return out


def test_wait_says_which_gpus_are_free_and_keeps_none(machine):
    answer = machine.berth("wait", "-n", "2")
    assert (answer.status, answer.out, answer.err) == (0, "0,1\n", "")
    assert machine.berth("wait", "-n", "2", "--ids", "uuid").out.count("GPU-") == 2
    assert machine.berth("list", "--json").json["leases"] == []


def test_wait_ends_when_gpus_are_free_and_nobody_sees_it_wait(make_machine):
    machine = make_machine("2xH100")
    first, second = holder(machine), holder(machine)
    waits = Waits(machine, "-n", "2")
    assert queue(machine) == []
    assert len(tickets(machine, "leases")) == 2
    assert machine.berth("queue", "--json").json["waiters"] == []
    first.ends()
    # One is not two.
    assert Job(machine, "--no-wait", "--", "true").process.wait(DEADLINE_S) == 0
    assert waits.process.poll() is None
    second.ends()
    assert waits.ends() == "0,1\n"


def test_a_holder_that_is_killed_ends_the_wait_too(make_machine):
    machine = make_machine("1xH100")
    job = holder(machine)
    waits = Waits(machine, "-n", "1")
    job.signal(signal.SIGKILL)
    assert waits.ends() == "0\n"


def test_what_is_free_for_somebody_in_the_queue_is_not_free(make_machine):
    machine = make_machine("2xH100")
    job = holder(machine)
    both = waiter(machine, "-n", "2")
    answer = machine.berth("wait", "-n", "1", "--wait", "0s")
    assert (answer.status, answer.out) == (124, "")
    assert "kept for" in answer.err
    job.ends()
    both.starts()
    both.ends()
    assert machine.berth("wait", "-n", "1", "--wait", "0s").status == 0


def test_a_wait_can_end_with_a_time_and_the_reasons(make_machine):
    machine = make_machine("1xH100")
    job = holder(machine)
    answer = machine.berth("wait", "-n", "1", "--wait", "1s")
    assert (answer.status, answer.out) == (124, "")
    assert "gave up after 1 s" in answer.err and "leased by" in answer.err
    assert tickets(machine, "queue") == []
    job.ends()


def test_what_can_never_be_is_not_waited_for(make_machine):
    machine = make_machine("1xH100")
    answer = machine.berth("wait", "-n", "2")
    assert (answer.status, answer.out) == (69, "")
    assert machine.berth("wait", "--free", "900G").status == 69


def test_a_notice_says_that_gpus_are_free(make_machine, tmp_path):
    machine = make_machine("1xH100")
    job = holder(machine)
    told = tmp_path / "told"
    write = f'echo "$BERTH_EVENT: $BERTH_SUBJECT $BERTH_MESSAGE" >> {str(told)!r}'
    answer = machine.berth("wait", "-n", "1", "--wait", "0s", "--notify", f"cmd:{write}")
    assert answer.status == 124
    eventually(lambda: told.exists() and told.read_text().startswith("fail: 1 whole GPU gave up after"))
    told.unlink()
    waits = Waits(machine, "-n", "1", "--notify", f"cmd:{write}")
    job.ends()
    waits.ends()
    eventually(lambda: told.exists() and told.read_text() == "end: GPU 0 free; nobody holds it for you\n")


def test_wait_for_a_job_can_end_with_a_time(machine):
    number = submit(machine, "--", "sleep", "1000")
    wait_for(machine, number, "running")
    answer = machine.berth("wait", number, "--wait", "0s")
    assert (answer.status, answer.out) == (124, "")
    assert f"job {number} is not over yet, and goes on: it is running" in answer.err
    machine.berth("cancel", number)
    assert machine.berth("wait", number, "--wait", "0s").status == 1


def test_wait_is_for_jobs_or_for_gpus(machine):
    answer = machine.berth("wait")
    assert answer.status == 2 and "berth wait JOB" in answer.err and "berth wait -n 1" in answer.err
    number = submit(machine, "--", "true")
    answer = machine.berth("wait", number, "-n", "2")
    assert answer.status == 2 and "it waits for jobs or for GPUs" in answer.err
    assert machine.berth("wait", number).status == 0
