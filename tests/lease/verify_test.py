"""berth verify, and what `berth run` says of a job that does not keep to its lease."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest
from jobs import the_only, words_of
from lease_jobs import USES_DEVICES, alive, eventually, holder, leases, only_lease, ready, waiter, waiting
from schemas import checked
from simulated_machine import DEADLINE_S

# Load the simulated driver into Python.
pytestmark = pytest.mark.release_only

# The whole machine, whatever the lease says.
STRAYS = f"env -u CUDA_VISIBLE_DEVICES {sys.executable} -c '{USES_DEVICES}'"
KEEPS = f"{sys.executable} -c '{USES_DEVICES}'"


def job(machine, command, *options, **more) -> subprocess.Popen:
    return ready(started(machine, machine.program, "run", *options, "--", "bash", "-c", command, **more))


def started(machine, *words, **more) -> subprocess.Popen:
    """With all that it starts in a group of its own, which ends with the test."""
    return machine.start(*words, start_new_session=True, **more)


@pytest.fixture
def make_machine(make_machine):
    machines = []
    yield lambda *scenario: machines.append(make_machine(*scenario)) or machines[-1]
    for process in (process for machine in machines for process in machine.running):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def verified(machine, *words):
    """Status, conduct and the devices in question, each with whether it is leased and how many are on it."""
    answer = machine.berth("verify", "--json", *words)
    schema = checked(answer, "verify") if answer.status in (0, 1) else answer.json
    on = [(device["index"], device["leased"], len(device["processes"])) for device in schema["devices"]]
    return answer.status, schema["conduct"], on


def test_a_job_on_its_own_devices_keeps_to_its_lease(machine):
    job(machine, f"{KEEPS} 0,1", "-n", "2")
    lease = only_lease(machine)
    assert verified(machine, lease) == (0, "keeps", [(0, True, 1), (1, True, 1)])
    answer = machine.berth("verify", lease)
    assert answer.err == ""
    first, _, *devices = answer.out.splitlines()
    assert first.startswith(f"lease {lease[-6:]} of ") and first.endswith(": it keeps to GPU 0,1")
    assert len(devices) == 2 and devices[0].startswith("GPU 0  leased; pid ") and " GiB" in devices[0]


def test_a_job_that_uses_only_some_of_its_devices_keeps_to_its_lease(machine):
    job(machine, f"{KEEPS} 1", "-n", "2")
    assert verified(machine, only_lease(machine)) == (0, "keeps", [(0, True, 0), (1, True, 1)])


def test_a_job_on_another_device_strays(machine):
    job(machine, f"{STRAYS} 0,5")
    lease = only_lease(machine)
    assert verified(machine, lease) == (1, "strays", [(0, True, 1), (5, False, 1)])
    answer = machine.berth("verify", lease[-6:])
    assert answer.status == 1
    assert ": it computes on GPU 5 (pid " in answer.out and "), which it did not lease\n" in answer.out


def test_a_job_on_no_device_is_idle(machine):
    holder(machine)
    lease = only_lease(machine)
    answer = machine.berth("verify", lease)
    assert (answer.status, answer.err) == (75, "")
    assert ": nothing of it computes on any GPU at this moment\n" in answer.out
    assert machine.berth("verify", "--json", lease).json["conduct"] == "idle"


def test_another_users_process_on_its_device_is_not_its(machine):
    holder(machine, "--devices", "0")
    ready(machine.start(sys.executable, "-c", USES_DEVICES, "0"))
    assert verified(machine, only_lease(machine))[:2] == (75, "idle")


def test_where_the_machine_does_not_tell_it_cannot_be_known(make_machine):
    machine = make_machine(
        '[[device]]\nmodel = "H100"\n[[device]]\nmodel = "H100"\nunsupported = ["processes"]\n'
    )
    job(machine, f"{KEEPS} 0", "--devices", "0")
    answer = machine.berth("verify", only_lease(machine))
    assert answer.status == 1
    assert "it cannot be known: GPU 1 does not tell what runs on it\n" in answer.out


def test_inside_a_lease_it_means_that_one(machine):
    inner = f"{KEEPS} 0 & read line; {machine.program} verify --json; kill $!"
    shell = job(machine, inner, stdin=subprocess.PIPE)
    out, _ = shell.communicate("\n", timeout=DEADLINE_S)
    assert '"conduct": "keeps"' in out


def test_an_inner_lease_is_verified_against_its_own_devices(machine):
    job(machine, f"{machine.program} run -- env -u CUDA_VISIBLE_DEVICES {KEEPS} 1", "-n", "2")
    outer = only_lease(machine)
    (inner,) = (path.name for path in (machine.leases / "inside" / outer / "leases").iterdir())
    assert verified(machine, outer)[:2] == (0, "keeps")
    answer = machine.berth("verify", "--json", inner, env={"BERTH_LEASE": outer})
    assert (answer.status, answer.json["conduct"]) == (1, "strays")


def test_a_claim_is_verified_by_what_its_shell_starts(machine):
    shell = started(machine, "bash", "-c", f'eval "$({machine.program} claim)"; {KEEPS} 0; true')
    ready(shell)
    assert verified(machine, only_lease(machine)) == (0, "keeps", [(0, True, 1)])


@pytest.mark.parametrize(
    "words, status, message",
    [
        ([], 2, "which lease? "),
        (["nonsense"], 2, "'nonsense' is not the id of a lease"),
        (["00aa"], 1, "no live lease has the id 00aa; "),
        (["1", "2"], 2, "one lease at a time"),
    ],
)
def test_what_names_no_lease_is_refused(machine, words, status, message):
    answer = machine.berth("verify", *words)
    assert (answer.status, answer.out) == (status, "")
    assert answer.err.startswith(f"berth: {message}")


def test_one_that_waits_has_nothing_to_keep_to(make_machine):
    machine = make_machine("1xH100")
    holder(machine)
    waiter(machine)
    answer = machine.berth("verify", waiting(machine)[0])
    assert (answer.status, answer.out) == (1, "")
    assert "waits and holds nothing" in answer.err


def test_run_says_once_that_its_job_strays(machine):
    straying = job(machine, f"{STRAYS} 5", env={"BERTH_VERIFY": "1s"})
    name = only_lease(machine)[-6:]
    line = straying.stderr.readline()
    assert line.startswith("berth: look at the job: it computes on GPU 5 (pid ")
    assert line.endswith(f"), which it did not lease; it has leased GPU 0 (berth verify {name})\n")
    straying.send_signal(signal.SIGTERM)
    assert straying.wait(DEADLINE_S) == -signal.SIGTERM
    assert straying.stderr.read() == ""


def test_run_says_once_that_its_job_uses_more_than_its_share(machine):
    # A context alone takes more.
    told = machine.directory / "told"
    notify = ("--notify", f'cmd:echo "$BERTH_EVENT|$BERTH_MESSAGE" >> {told}')
    greedy = job(machine, f"{KEEPS} 0", "--memory", "100M", *notify, env={"BERTH_VERIFY": "1s"})
    line = greedy.stderr.readline()
    assert line.startswith("berth: look at the job: it uses ")
    assert "on GPU 0, and its share is 100 MiB: the other jobs there may run out of memory" in line
    eventually(lambda: told.exists() and told.read_text().endswith("\n"))
    assert told.read_text() == "share|" + line.removeprefix("berth: look at the job: ")
    greedy.send_signal(signal.SIGTERM)
    assert greedy.wait(DEADLINE_S) == -signal.SIGTERM
    assert greedy.stderr.read() == ""


def test_a_share_is_looked_at_until_it_is_seen_to_be_overrun(machine):
    # The first two looks are over when it begins to compute.
    late = machine.start_berth("run", "--memory", "100M", "--", "bash", "-c", f"read line; exec {KEEPS} 0",
                           stdin=subprocess.PIPE, start_new_session=True,
                           env={"BERTH_VERIFY": "0s"})  # fmt: skip
    assert "nothing of it computes on any GPU at this moment" in late.stderr.readline()
    late.stdin.write("\n")
    late.stdin.flush()
    assert late.stderr.readline().startswith("berth: look at the job: it uses ")


def test_run_says_once_that_its_job_uses_nothing(machine):
    idle = machine.start_berth("run", "--", "bash", "-c", "read line; exit 7", stdin=subprocess.PIPE,
                           env={"BERTH_VERIFY": "0s"})  # fmt: skip
    line = idle.stderr.readline()
    assert (
        "after the start of the job: nothing of it computes on any GPU at this moment; it has leased GPU 0"
        in line
    )
    out, err = idle.communicate("\n", timeout=DEADLINE_S)
    assert (idle.returncode, out, err) == (7, "", "")


def test_a_job_that_keeps_to_its_lease_hears_nothing(make_machine):
    machine = make_machine(
        '[[device]]\nmodel = "H100"\n[[fault]]\ncall = "nvmlDeviceGetName"\ndelay = "300ms"\n'
    )
    code = f"{KEEPS} 0 & read line; {machine.program} verify >/dev/null || exit 9; kill $!; exit 3"
    quiet = job(machine, code, stdin=subprocess.PIPE, env={"BERTH_VERIFY": "1s"})
    look = the_only(lambda: looks_below(quiet.pid))
    eventually(lambda: not os.path.exists(f"/proc/{look}/exe"))
    _, err = quiet.communicate("\n", timeout=DEADLINE_S)
    assert (quiet.returncode, err) == (3, "")


@pytest.mark.parametrize("when", ["never", "1h", ""])
def test_a_short_job_is_not_looked_at(machine, when):
    code = "while read line; do :; done; exit 3"
    short = machine.start_berth(
        "run", "--", "bash", "-c", code, stdin=subprocess.PIPE, env={"BERTH_VERIFY": when}
    )
    _, err = short.communicate("", timeout=DEADLINE_S)
    assert (short.returncode, err) == (3, "")


def test_a_driver_that_hangs_delays_no_end(make_machine):
    machine = make_machine("1xH100")
    started = machine.start_berth("run", "--", "bash", "-c", "echo ready; read line; exit 3", stdin=subprocess.PIPE,
                              env={"BERTH_VERIFY": "1s"})  # fmt: skip
    ready(started)
    machine.change(
        '[[device]]\nmodel = "H100"\n[[fault]]\ncall = "nvmlDeviceGetComputeRunningProcesses*"\nhang = true\n'
    )
    look = eventually(lambda: looks_below(started.pid))
    started.communicate("\n", timeout=DEADLINE_S)
    assert started.returncode == 3
    eventually(lambda: not any(alive(pid) for pid in look))
    assert leases(machine) == []


def looks_below(pid) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        pids = [int(word) for word in children.read().split()]
    return [one for one in pids if b"__compliance" in words_of(one)]


def test_a_malformed_time_is_a_wrong_use(machine):
    for command in (["run", "--", "true"], ["shell"]):
        answer = machine.berth(*command, env={"BERTH_VERIFY": "soon"})
        assert answer.status == 2
        assert answer.err.startswith("berth: BERTH_VERIFY (a time, or never): ")
