"""Both hosts busy, everything killed at random: a command starts at most once, and nothing of it is left."""

import contextlib
import os
import random
import signal
import subprocess

import pytest
from fleet_of_hosts import PATIENCE_S, words_of
from jobs import eventually

pytestmark = pytest.mark.long

ROUNDS = int(os.environ.get("BERTH_STORM_ROUNDS", "6"))
# Each start is a file of its own, made so that two of one round would be two files.
STARTS = 'mktemp "$STARTS/round.$ROUND.XXXXXX" >/dev/null; sleep 0.05'


def busy(host):
    process = host.machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == "ready\n"
    return process


def kill(pids) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_whatever_is_killed_a_command_starts_at_most_once(two):
    seed = int(os.environ.get("BERTH_STORM_SEED", random.randrange(1 << 30)))
    print(f"BERTH_STORM_SEED={seed}")
    dice = random.Random(seed)
    starts = two.folder / "starts"
    starts.mkdir()
    for number in range(ROUNDS):
        holders = [busy(host) for host in two.hosts]
        job = two.start_anywhere(
            *("--", "sh", "-c", STARTS), env={**two.env, "STARTS": str(starts), "ROUND": str(number)}
        )
        eventually(lambda: all(len(host.tickets()) == 2 for host in two.hosts))
        victims = {
            "nobody": lambda: [],
            "caller": lambda: [job.pid],
            "an ssh": lambda: dice.sample(found := two.own_ssh(), min(1, len(found))),
            "an envoy": lambda: dice.choice(two.hosts).envoys(),
            "a session": lambda: dice.choice(two.hosts).sessions()[:1],
        }
        whom = dice.choice(list(victims))
        # Both become free as near to each other as can be, and the victim dies before, between or
        # after.
        steps = [lambda: kill(victims[whom]()), *(holder.kill for holder in holders)]
        dice.shuffle(steps)
        for step in steps:
            step()
        status = job.wait(timeout=PATIENCE_S)
        eventually(lambda: all(host.tickets() == [] and host.envoys() == [] for host in two.hosts))
        started = [path.name for path in starts.glob(f"round.{number}.*")]
        assert len(started) <= 1, (whom, started)
        if whom == "nobody":
            assert (status, len(started)) == (0, 1)
        if status == 0:
            assert len(started) == 1, whom


def envoy_that_is_granted(two):
    """An envoy that we talk to in the caller's place, after it has asked whether to start."""
    (gpu1, _) = two.hosts
    words = two.env["BERTH_SSH"].split()
    envoy = subprocess.Popen(
        [*words, "gpu1", "berth", "__envoy"],
        env=two.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    two.running.append(envoy)
    version = envoy.stdout.readline() and envoy.stdout.readline().removeprefix("version=").strip()
    mark = two.folder / "started"
    envoy.stdin.write(f"berth-envoy-ask 1\nerrand=run\nword=touch\nword={mark}\ntoken=x\nend\n")
    envoy.stdin.write(f"berth-lease-ask 1\nversion={version}\ncount=1\norder=auto\npromise_bytes=0\nend\n")
    envoy.stdin.flush()
    for line in envoy.stdout:
        if line.startswith("berth-lease-granted"):
            break
    assert len(gpu1.tickets()) == 1
    return envoy, mark


@pytest.mark.parametrize("word", ["", "berth-no 1\nend\n", "berth-join 1\nend\n"])
def test_without_a_yes_nothing_starts_and_the_lease_ends(two, word):
    envoy, mark = envoy_that_is_granted(two)
    envoy.stdin.write(word)
    envoy.stdin.close()
    envoy.wait(timeout=PATIENCE_S)
    eventually(lambda: two.hosts[0].tickets() == [] and two.hosts[0].envoys() == [])
    assert not mark.exists()
    assert [pid for pid in two.own_ssh() if "__envoy" in words_of(pid)[-1]] == []


def test_a_host_lost_with_the_yes_fails_the_run_and_starts_it_nowhere_else(machines):
    machines.add("gpu1", "1xH100", program=GRANTS_AND_DIES)
    gpu2 = machines.add("gpu2", "1xH100")
    holder = busy(gpu2)
    job = machines.start_anywhere("--", "touch", machines.folder / "started")
    out, err = job.communicate(timeout=PATIENCE_S)
    assert (job.returncode, out) == (1, "")
    assert "gpu1 had granted the GPUs, and was lost when the command was to start" in err
    assert "the command was started on no other host" in err
    holder.kill()
    eventually(lambda: gpu2.tickets() == [])
    assert not (machines.folder / "started").exists()


# As an envoy, but that it dies of the yes.
GRANTS_AND_DIES = r"""#!/bin/sh
printf 'berth-envoy 1\nversion=%s\nend\n' "$(@BERTH@ version | sed 's/berth //')"
while read -r line; do
  case $line in
    count=*) printf 'berth-lease-granted 1\nid=0000000000000001\nuuid=GPU-1\nend\n' ;;
    berth-yes*) exit 1 ;;
  esac
done
"""
