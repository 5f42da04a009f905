"""berth release and cancel --anywhere: what is to end, on whichever host it is."""

import os
import signal

from fleet_of_hosts import PATIENCE_S
from jobs import eventually


def held(host, *words):
    """A job there, and the id of its lease."""
    before = set(host.tickets())
    process = host.machine.start_berth("run", *words, "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == "ready\n"
    (ticket,) = set(host.tickets()) - before
    return process, ticket


def test_a_lease_is_released_on_the_host_that_has_it_and_its_user_reads_why(two):
    gpu1, gpu2 = two.hosts
    held(gpu1)
    job, ticket = held(gpu2)
    answer = two.run("release", "--anywhere", "--hosts", two.names(), "--because", "my turn", ticket[-8:])
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith(f"gpu2: ended the lease {ticket[-6:]} of ")
    _, err = job.communicate(timeout=PATIENCE_S)
    assert "my turn" in err
    eventually(lambda: len(gpu1.tickets()) == 1 and gpu2.tickets() == [])


def test_a_request_that_is_cancelled_on_one_host_ends_on_all(two):
    gpu1, gpu2 = two.hosts
    (_, first), (_, second) = held(gpu1), held(gpu2)
    job = two.start_anywhere("--", "true")
    eventually(lambda: len(gpu1.tickets()) == 2 and len(gpu2.tickets()) == 2)
    (waits,) = set(gpu1.tickets()) - {first}
    answer = two.run("cancel", "--anywhere", "--hosts", two.names(), waits)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith(f"gpu1: cancelled the request {waits[-6:]} of ")
    _, err = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == -signal.SIGTERM
    assert err.endswith("berth: this request was cancelled on gpu1, so it ends on all hosts\n")
    eventually(lambda: gpu1.tickets() == [first] and gpu2.tickets() == [second])


def test_a_host_that_shuts_down_cancels_nothing(two):
    gpu1, gpu2 = two.hosts
    (_, first), (_, second) = held(gpu1), held(gpu2)
    job = two.start_anywhere("--", "true")
    eventually(lambda: len(gpu1.tickets()) == 2 and len(gpu2.tickets()) == 2)
    (envoy,) = gpu1.envoys()
    os.kill(envoy, signal.SIGTERM)
    eventually(lambda: gpu1.tickets() == [first])
    two.run("release", "--anywhere", "--hosts", two.names(), second)
    assert job.wait(timeout=PATIENCE_S) == 0


def test_what_is_wrong_is_told_by_the_host_that_knows_it(two):
    gpu1, _ = two.hosts
    _, ticket = held(gpu1)
    answer = two.run("cancel", "--anywhere", "--hosts", two.names(), ticket)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith("gpu1: berth: ") and "it has its GPUs" in answer.stderr
    two.add_down("gpu3")
    answer = two.run("release", "--anywhere", "--hosts", "gpu1,gpu2,gpu3", "abcdef")
    assert answer.returncode == 1
    assert "on these hosts has the id abcdef; not known of gpu3, which do not answer" in answer.stderr
    assert two.run("release", "--anywhere", "--hosts", "gpu1", "no-id").returncode == 2
    assert two.run("release", "--anywhere", "--hosts", "gpu1").returncode == 2
    assert gpu1.tickets() == [ticket]


def test_a_job_is_cancelled_on_the_host_where_it_was_submitted(two):
    gpu1, _ = two.hosts
    gpu1.machine.berth("submit", "--", "sleep", "1000")
    eventually(lambda: len(gpu1.tickets()) == 1)
    answer = two.run("cancel", "--anywhere", "--hosts", two.names(), "1")
    assert answer.returncode == 2 and "name the host of job 1 (--host)" in answer.stderr
    answer = two.run("cancel", "--anywhere", "--hosts", two.names(), "--host", "gpu1", "1")
    assert (answer.returncode, answer.stdout) == (0, "gpu1: cancelled job 1\n"), answer.stderr
    eventually(lambda: gpu1.tickets() == [])
