"""Users who compete, and one who is hostile: what he cannot do, and how what he can do is named."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys

import pytest
from jobs import DEADLINE_S, Job, eventually

ALICE, BOB, MALLORY = 20001, 20002, 20003
NOBODYS_PID = 999_999_999
ATTACKER = pathlib.Path(__file__).with_name("attacker.py")
PROTECTED = pathlib.Path("/proc/sys/fs/protected_regular")

# A live ticket of any text, made as the protocol says but for what it says. Ends with its input.
FORGER = """
import fcntl, os, struct, sys
path, text = sys.argv[1:]
file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
os.pwrite(file, text.encode(), 0)
fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 2, 0))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def one(open_machine, as_user):
    """A machine with one GPU whose lease directory is root's, as `berth init` leaves it."""
    machine = open_machine
    machine.change("1xH100")
    machine.berth("run", "--", "true")
    (device,) = (machine.leases / "devices").iterdir()
    machine.uuid = device.name
    for path in (machine.leases, *machine.leases.iterdir()):
        assert path.stat().st_uid == 0 and stat.S_IMODE(path.stat().st_mode) == 0o1777
    return machine


def job_of(machine, user, *options, **more) -> Job:
    """`berth run` by another user, with a umask that hides all from others."""
    return Job(
        machine,
        *options,
        preexec_fn=lambda: (os.umask(0o077), None)[1],
        user=user,
        group=user,
        extra_groups=[],
        **more,
    )


def start_as(machine, as_user, user, code, *words):
    process = machine.start(*as_user(user), sys.executable, "-c", code, *words, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


def forged(machine, as_user, name: str, lines: str = "", part: str = "queue", user: int = MALLORY):
    text = f"berth-ticket 1\nid={name}\npid=1\njoined_at=1\ncount=1\n{lines}end\n"
    return start_as(machine, as_user, user, FORGER, machine.leases / part / name, text)


def ended(process) -> None:
    process.stdin.close()
    process.stdin = None
    assert process.wait(DEADLINE_S) == 0


# What nobody can do to another


@pytest.mark.parametrize("part", ["leases", "queue"])
def test_nobody_can_end_edit_or_forge_anothers_ticket(one, as_user, part):
    holding = job_of(one, ALICE)
    holding.starts()
    waiting = job_of(one, ALICE).waits()
    job = holding if part == "leases" else waiting
    (path,) = (one.leases / part).iterdir()
    before = path.read_bytes()
    words = [one.leases, part, path.name, one.uuid, job.pid]
    answer = one.run(*as_user(MALLORY), sys.executable, ATTACKER, *words)
    assert (answer.status, answer.out, answer.err) == (0, "", "")
    assert path.read_bytes() == before
    # The measure itself: what its owner may do is not refused.
    owner = one.run(
        *as_user(ALICE), sys.executable, ATTACKER, one.leases, part, path.name, one.uuid, NOBODYS_PID
    )
    assert "unlink" in owner.out.split()


def test_no_command_ends_anothers_lease_or_removes_what_is_left_of_it(one, as_user):
    job = job_of(one, ALICE)
    job.starts()
    (lease,) = [path.name for path in (one.leases / "leases").iterdir()]
    answer = one.run(*as_user(BOB), one.program, "release", lease)
    assert answer.status == 1
    assert f"the lease {lease[-6:]} is of uid {ALICE}: only its owner and root may end it" in answer.err
    job.signal(signal.SIGKILL)
    job.process.wait(DEADLINE_S)
    assert eventually(lambda: one.run(*as_user(BOB), one.program, "run", "--", "true")).status == 0
    assert [path.name for path in (one.leases / "leases").iterdir()] == [lease]
    assert one.run(*as_user(ALICE), one.program, "run", "--", "true").status == 0
    assert list((one.leases / "leases").iterdir()) == []


def test_another_users_lease_is_none_to_be_inside_of(one, as_user):
    job = job_of(one, ALICE)
    job.starts()
    (lease,) = [path.name for path in (one.leases / "leases").iterdir()]
    env = {"BERTH_LEASE": lease, "CUDA_VISIBLE_DEVICES": "0"}
    answer = one.run(*as_user(BOB), one.program, "run", "--no-wait", "--", "echo", "never", env=env)
    assert (answer.status, answer.out) == (75, "")
    assert (
        f"the lease in BERTH_LEASE={lease} has ended, or is not yours; Berth ignores this variable"
        in answer.err
    )
    assert list((one.leases / "inside").iterdir()) == []


def test_a_directory_that_another_made_inside_ones_lease_is_refused_by_name(one, as_user):
    job = job_of(one, ALICE, then=f"read; exec {one.program} run -- true")
    job.starts()
    (lease,) = [path.name for path in (one.leases / "leases").iterdir()]
    assert one.run(*as_user(MALLORY), "mkdir", one.leases / "inside" / lease).status == 0
    assert job.ends() == 1
    assert f"inside/{lease}: it belongs to uid {MALLORY}" in job.err.rest()


def test_a_lease_of_another_with_the_id_of_a_request_ends_nothing_and_hides_nothing(one, as_user):
    """Everybody reads the id of a request as long as it waits."""
    holding = job_of(one, BOB)
    holding.starts()
    first = job_of(one, ALICE).says("first in line")
    second = job_of(one, BOB).says(f"no. 2 in line, behind uid {ALICE}")
    third = job_of(one, ALICE).says("no. 3 in line")
    named = sorted(path.name for path in (one.leases / "queue").iterdir())
    lines = "granted_at=1\ndevice=GPU-of-no-machine\ncommand=forged\n"
    forgers = [forged(one, as_user, name, lines, part="leases") for name in named]
    shown = one.run(*as_user(MALLORY), one.program, "queue", "--json").out
    assert [(each["id"], each["uid"]) for each in json.loads(shown)["waiters"]] == list(
        zip(named, (ALICE, BOB, ALICE), strict=True)
    )
    answer = one.berth("cancel", named[2])
    assert (answer.status, answer.err) == (0, ""), answer
    assert third.ends() != 0
    assert holding.ends() == 0
    first.starts()
    assert not second.has_started()
    assert first.ends() == 0
    second.starts()
    assert second.ends() == 0
    for forger in forgers:
        ended(forger)


def test_a_request_of_another_with_the_id_of_a_lease_hides_nothing(one, as_user):
    holding = job_of(one, ALICE)
    holding.starts()
    (lease,) = [path.name for path in (one.leases / "leases").iterdir()]
    forger = forged(one, as_user, lease, "candidate=*\ncommand=forged\n")
    answer = one.run(*as_user(BOB), one.program, "run", "--no-wait", "--", "true")
    assert answer.status == 75 and f"leased by uid {ALICE}" in answer.err
    assert one.run(*as_user(ALICE), one.program, "release", lease).status == 0
    assert holding.process.wait(DEADLINE_S) != 0
    ended(forger)


# Users who work together


@pytest.fixture
def strictest():
    """The kernel refuses to open with O_CREAT what another user has made in a sticky directory."""
    before = PROTECTED.read_text()
    try:
        PROTECTED.write_text("2\n")
    except OSError:
        pytest.skip("needs the right to set fs.protected_regular")
    yield
    PROTECTED.write_text(before)


@pytest.mark.parametrize("made_by", [0, ALICE])
def test_users_with_a_narrow_umask_work_together(open_machine, as_user, strictest, made_by):
    machine = open_machine
    machine.change("1xH100")
    machine.leases = machine.leases.parent / "shared"
    machine.env["BERTH_DIR"] = str(machine.leases)
    machine.leases.parent.chmod(0o1777)
    words = as_user(made_by) if made_by else []
    assert machine.run(*words, "bash", "-c", f"umask 077; exec {machine.program} run -- true").status == 0
    (device,) = (machine.leases / "devices").iterdir()
    assert (device.stat().st_uid, stat.S_IMODE(device.stat().st_mode)) == (made_by, 0o1666)
    first = job_of(machine, ALICE)
    first.starts()
    second = job_of(machine, BOB).says("first in line")
    third = job_of(machine, MALLORY).says("no. 2 in line")
    citizen = machine.run(*as_user(BOB), "bash", "-c", f"flock -n 9 9<{device}")
    assert citizen.status == 1
    assert first.ends() == 0
    second.starts()
    second.signal(signal.SIGKILL)
    third.starts()
    assert third.ends() == 0
    assert (
        eventually(
            lambda: machine.run(*as_user(BOB), machine.program, "run", "--no-wait", "--", "true")
        ).status
        == 0
    )


# What anybody can do is named


def test_a_forged_early_id_does_not_overtake_those_who_wait(one, as_user):
    holding = job_of(one, ALICE)
    holding.starts()
    waiting = job_of(one, BOB).says("first in line")
    forger = forged(one, as_user, "0000000000000001", f"candidate={one.uuid}\n")
    holding.ends()
    waiting.starts()
    ended(forger)


def test_a_forged_id_of_the_far_future_counts_for_nothing_and_is_named(one, as_user):
    name = "f" * 16
    forger = forged(one, as_user, name, f"candidate={one.uuid}\n")
    assert one.run(*as_user(ALICE), one.program, "run", "--no-wait", "--", "true").status == 0
    answer = one.berth("doctor")
    assert f"{name} of uid {MALLORY} is not understood: its id lies in the future" in answer.out
    ended(forger)


@pytest.mark.parametrize("candidates", ["", "candidate=\n", "candidate=no-such-device\n"])
def test_forged_candidates_that_meet_nobodys_stand_before_nobody(one, as_user, candidates):
    forger = forged(one, as_user, "0000000000000001", candidates)
    assert one.run(*as_user(ALICE), one.program, "run", "--no-wait", "--", "true").status == 0
    ended(forger)


def test_one_who_only_ever_waits_is_named_and_skipped_when_stopped(one, as_user):
    forger = forged(one, as_user, "0000000000000001", "candidate=*\ncommand=greedy\n")
    waiting = job_of(one, ALICE).says(f"no. 2 in line, behind uid {MALLORY} (greedy)")
    ended(forger)
    waiting.starts()


def test_a_forged_lease_is_respected_and_named(one, as_user):
    lines = f"granted_at=1\ndevice={one.uuid}\ncommand=forged\n"
    forger = forged(one, as_user, "0000000000000001", lines, part="leases")
    answer = one.run(*as_user(ALICE), one.program, "run", "--no-wait", "--", "true")
    assert answer.status == 75
    assert f"leased by uid {MALLORY}, forged" in answer.err
    ended(forger)
    assert one.run(*as_user(ALICE), one.program, "run", "--no-wait", "--", "true").status == 0


def test_a_promise_that_no_card_could_keep_makes_no_room(one, as_user):
    real = job_of(one, ALICE, "--memory", "60G")
    real.starts()
    lines = f"shared=1\npromise_bytes={2**64 - 60 * 2**30}\ngranted_at=1\ndevice={one.uuid}\n"
    forger = forged(one, as_user, "0000000000000001", lines, part="leases")
    words = [one.program, "run", "--memory", "60G", "--no-wait", "--", "true"]
    assert one.run(*as_user(BOB), *words).status == 75
    ended(forger)
    assert one.run(*as_user(BOB), *words).status == 75
    real.ends()
    assert one.run(*as_user(BOB), *words).status == 0


@pytest.mark.parametrize("spoil", [lambda path: path.chmod(0), lambda path: path.unlink()])
def test_a_share_whose_ticket_cannot_be_read_counts(one, as_user, spoil):
    job = job_of(one, ALICE, "--memory", "60G")
    job.starts()
    (lease,) = (one.leases / "leases").iterdir()
    spoil(lease)
    words = [one.program, "run", "--no-wait"]
    answer = one.run(*as_user(BOB), *words, "--memory", "60G", "--", "true")
    assert answer.status == 75
    assert "locked by a program that has no ticket" in answer.err
    job.ends()
    assert one.run(*as_user(BOB), *words, "--memory", "60G", "--", "true").status == 0


def test_files_that_are_no_tickets_stop_nobody_and_are_named(one, as_user):
    script = (
        "cd $1; mkfifo queue/0000000000000001; ln -s /etc/passwd leases/0000000000000002; touch queue/README; "
        "mkdir queue/0000000000000003; head -c 10M /dev/zero >queue/0000000000000004; chmod 0 queue/README; "
        "ln -s . leases/0000000000000005"
    )
    assert one.run(*as_user(MALLORY), "bash", "-ec", script, "-", one.leases).status == 0
    answer = one.run(*as_user(ALICE), one.program, "run", "--no-wait", "--", "true")
    assert (answer.status, answer.err) == (0, "")
    report = one.run(*as_user(ALICE), one.program, "doctor").out
    for name in ("0000000000000001", "0000000000000002", "README", "0000000000000003", "0000000000000005"):
        assert f"{name} of uid {MALLORY} is not understood" in report, name
    assert one.run(*as_user(ALICE), one.program, "list").status == 0


def test_of_very_many_files_that_are_no_tickets_everybody_reads_a_part_and_a_number(one, as_user):
    names = [one.leases / part / f"odd-{number}" for part in ("queue", "leases") for number in range(60)]
    assert one.run(*as_user(MALLORY), "touch", *names).status == 0
    listed = one.run(*as_user(ALICE), one.program, "list")
    assert listed.status == 0 and listed.err.count("cannot be understood") == 65
    assert f"56 more tickets of uid {MALLORY} cannot be understood" in listed.err
    report = one.run(*as_user(ALICE), one.program, "doctor").out
    assert report.count("is not understood") == 64
    assert f"56 more of uid {MALLORY} are not understood" in report


HOLD_FILE_LEASE = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_file_lease_on_a_ticket_stops_nobody(one, as_user):
    forger = start_as(one, as_user, MALLORY, HOLD_FILE_LEASE, one.leases / "leases" / "0000000000000001")
    # Within the deadline of this test; the kernel would let a plain open wait for 45 s.
    assert one.run(*as_user(ALICE), one.program, "run", "--no-wait", "--", "true").status == 0
    assert one.run(*as_user(ALICE), one.program, "list").status == 0
    ended(forger)


@pytest.mark.parametrize("spoil", ["file lease", "fifo", "link", "directory"])
def test_a_device_file_that_another_prepared_stops_nobody_and_is_named(one, as_user, spoil):
    """Where an administrator made the device files this cannot be: it is a device that came later."""
    device = one.leases / "devices" / one.uuid
    device.unlink()
    forger = None
    if spoil == "file lease":
        forger = start_as(one, as_user, MALLORY, HOLD_FILE_LEASE, device)
    else:
        make = {"fifo": ["mkfifo"], "link": ["ln", "-s", "/etc/passwd"], "directory": ["mkdir"]}[spoil]
        assert one.run(*as_user(MALLORY), *make, device).status == 0
    answer = one.run(*as_user(ALICE), one.program, "run", "--no-wait", "--", "true")
    assert answer.status != 0 and one.uuid in answer.err
    assert f"uid {MALLORY}" in answer.err
    assert list((one.leases / "leases").iterdir()) == list((one.leases / "queue").iterdir()) == []
    assert one.run(*as_user(ALICE), one.program, "list").status == 0
    if forger:
        ended(forger)


def test_one_who_is_stopped_in_the_gate_is_named_after_a_second(one, as_user):
    code = (
        "import fcntl, os, sys\nfile = os.open(sys.argv[1], os.O_RDONLY)\nfcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('ready', flush=True)\nsys.stdin.read()\n"
    )
    other = start_as(one, as_user, MALLORY, code, one.leases)
    other.send_signal(signal.SIGSTOP)
    job = job_of(one, ALICE)
    job.says(
        f"waiting for process {other.pid} (or whoever has its lock now), which is deciding in {one.leases} and takes unusually long"
    )
    assert not job.has_started()
    other.send_signal(signal.SIGCONT)
    ended(other)
    job.starts()


HAND_ON_THE_GATE = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(file, fcntl.LOCK_EX)
if os.fork() == 0:
    print("ready", os.getpid(), os.getppid(), flush=True)
    os.read(0, 1)
"""


def test_one_who_got_the_gate_from_another_is_named_to_root_and_the_other_to_nobody(one, as_user):
    """The kernel names who took the lock. That process has ended, and anybody may have its pid by now."""
    words = [*as_user(MALLORY), sys.executable, "-c", HAND_ON_THE_GATE, one.leases]
    process = one.start(*words, stdin=subprocess.PIPE)
    _, holder, taker = process.stdout.readline().split()
    assert process.wait(DEADLINE_S) == 0
    answer = one.run(*as_user(ALICE), one.program, "run", "--no-wait", "--", "true")
    assert answer.status == 75 and "kill" not in answer.err
    assert f"somebody who has the lock of process {taker} is deciding in {one.leases}" in answer.err
    assert "`sudo berth doctor` may name who has it" in answer.err
    answer = one.berth("run", "--no-wait", "--", "true")
    assert f"process {holder} is deciding in {one.leases} and lets nobody else in" in answer.err
    assert f"it is of uid {MALLORY}; `kill -KILL {holder}` ends it" in answer.err
    process.stdin.close()
    process.stdin = None
    assert eventually(lambda: one.berth("run", "--no-wait", "--", "true").status == 0)


HOLD_THE_GATE = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(file, fcntl.LOCK_EX)
print("ready", os.getpid(), flush=True)
os.read(0, 1)
"""


def test_who_may_not_look_whether_a_process_has_the_gate_is_not_told_how_to_end_it(one, as_user):
    words = [*as_user(MALLORY), sys.executable, "-c", HOLD_THE_GATE, one.leases]
    process = one.start(*words, stdin=subprocess.PIPE)
    _, holder = process.stdout.readline().split()
    answer = one.run(*as_user(ALICE), one.program, "run", "--no-wait", "--", "true")
    assert answer.status == 75 and "kill" not in answer.err
    assert f"process {holder} (or whoever has its lock now) is deciding in {one.leases}" in answer.err
    assert f"it is of uid {MALLORY}; ask them, or `sudo berth doctor`, which sees who has it" in answer.err
    answer = one.berth("run", "--no-wait", "--", "true")
    assert f"it is of uid {MALLORY}; `kill -KILL {holder}` ends it" in answer.err
    process.communicate("\n", timeout=DEADLINE_S)


def test_a_home_that_its_user_may_not_enter_stops_only_what_needs_it(one, as_user):
    home = one.directory / "closed"
    home.mkdir(mode=0o700)
    bob = (*as_user(BOB), "env", f"HOME={home}", one.program)
    for words in (["list"], ["pick"], ["why"], ["queue"], ["run", "--", "true"], ["doctor"]):
        answer = one.run(*bob, *words)
        assert (words, answer.status) == (words, 0), answer.err
    answer = one.run(*bob, "submit", "--", "true")
    assert answer.status == 1 and str(home) in answer.err
