"""Berth beside originals that keep their own copies away by locks: `gpu_scheduler_locks` and `safe_gpu_locks` in the site
file."""

import fcntl
import os
import pathlib
import signal
import stat
import subprocess
import sys

import pytest
from jobs import state, the_only, words_of
from lease_jobs import eventually
from original_scheduler import OriginalLock
from simulated_machine import DEADLINE_S

PROGRAM = pathlib.Path(__file__).parent / "original_scheduler.py"
LOCKED = "locked by an original gpu_scheduler"


@pytest.fixture
def site(make_machine):
    def make(scenario: str = "2xH100"):
        machine = make_machine(scenario)
        (machine.directory / "site.toml").write_text(
            f'gpu_scheduler_locks = ["{machine.directory}/gpu_locks", "~/.gpu_locks"]\n'
        )
        return machine

    return make


def lock_of(machine, number: int, folder: str = "gpu_locks") -> OriginalLock:
    return OriginalLock(machine.directory / folder / f"gpu_{number}.lock")


def holding(machine, *words):
    """A lease that lasts until its input ends."""
    process = machine.start_berth(
        "run",
        *words,
        "--",
        "sh",
        "-c",
        "trap : TERM; echo $CUDA_VISIBLE_DEVICES; while ! read _; do :; done",
        stdin=-1,
    )
    assert process.stdout.readline().strip()
    return process


@pytest.mark.parametrize("folder", ["gpu_locks", "home/.gpu_locks"])
def test_an_idle_gpu_that_an_original_has_locked_is_given_to_nobody(site, folder):
    machine = site()
    assert lock_of(machine, 0, folder).acquire()
    assert machine.berth("pick").out == "1\n"
    assert machine.berth("run", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES").out == "1\n"
    refused = machine.berth("run", "--no-wait", "-n", "2", "--", "true")
    assert refused.status == 75 and LOCKED in refused.err
    assert LOCKED in machine.berth("why", "-n", "2").out
    verdict = machine.berth("list", "--json").json["devices"][0]["verdict"]
    assert (verdict["free"], verdict["clause"], verdict["reason"]) == (False, "not_leased", LOCKED)


def test_who_waits_for_it_gets_it_when_the_original_lets_go(site):
    machine = site("1xH100")
    lock = lock_of(machine, 0)
    assert lock.acquire()
    waiting = machine.start_berth("run", "--", "true")
    eventually(lambda: "GPU 0 locked" in machine.berth("queue").out)
    lock.release()
    assert waiting.wait(timeout=DEADLINE_S) == 0


@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_what_is_leased_no_original_gets_until_its_last_process_is_gone(site, how):
    machine = site()
    process = holding(machine, "--devices", "1")
    locks = [lock_of(machine, 1), lock_of(machine, 1, "home/.gpu_locks")]
    assert not any(lock.acquire() for lock in locks)
    assert lock_of(machine, 0).acquire()
    if how == "ends":
        process.communicate("\n")
    else:
        process.send_signal(signal.SIGKILL)
        process.wait()
        # Its command lives on, and has the lease.
        assert not any(lock.acquire() for lock in locks)
        process.communicate("\n")
    assert machine.berth("run", "--wait", "20s", "--devices", "1", "--", "true").status == 0
    assert all(lock.acquire() for lock in locks)


def test_shares_of_a_gpu_keep_an_original_away_together(site):
    machine = site("1xH100")
    first, second = holding(machine, "--memory", "10G"), holding(machine, "--memory", "10G")
    first.communicate("\n")
    assert not lock_of(machine, 0).acquire()
    second.communicate("\n")
    assert lock_of(machine, 0).acquire()


def test_inside_of_a_lease_its_lock_is_in_nobodys_way(site):
    machine = site()
    inside = f"{machine.program} run -- sh -c 'echo $CUDA_VISIBLE_DEVICES'"
    assert machine.berth("run", "--devices", "1", "--", "sh", "-c", inside).out == "1\n"


def test_a_board_that_cuda_does_not_count_has_no_number(site):
    machine = site('[[device]]\nmodel = "H100"\nmig = []\n[[device]]\nmodel = "H100"\ncount = 2\n')
    assert lock_of(machine, 0).acquire()
    free = [
        d["index"]
        for d in machine.berth("list", "--json").json["devices"]
        if (d["verdict"] or {}).get("free")
    ]
    assert free == [2]


def test_where_a_lock_cannot_be_taken_it_says_so_and_leases(site):
    machine = site("1xH100")
    (machine.directory / "gpu_locks").write_text("no folder")
    answer = machine.berth("run", "--", "true")
    assert answer.status == 0
    assert f"{machine.directory}/gpu_locks/gpu_0.lock cannot be locked" in answer.err


def test_without_the_key_nothing_is_looked_at_or_made(make_machine):
    machine = make_machine("1xH100")
    assert lock_of(machine, 0, "home/.gpu_locks").acquire()
    assert machine.berth("run", "--no-wait", "--", "true").status == 0
    assert machine.berth("pick").out == "0\n"


def test_a_folder_is_named_from_the_root_or_the_home(make_machine):
    machine = make_machine("1xH100")
    (machine.directory / "site.toml").write_text('gpu_scheduler_locks = ["locks"]\n')
    answer = machine.berth("run", "--", "true")
    assert answer.status != 0 and "gpu_scheduler_locks: a folder begins with / or ~/" in answer.err


def test_in_a_contest_an_original_and_berth_never_both_have_it(site):
    """Both try as fast as they can; the one that has it makes a file that must not be there yet."""
    machine = site("1xH100")
    path, mark = machine.directory / "gpu_locks/gpu_0.lock", machine.directory / "mark"
    original = machine.start(sys.executable, PROGRAM, path, mark, stdout=-1)
    job = f"set -C; : > {mark} || exit 9; rm {mark}"
    for _ in range(12):
        answer = machine.berth("run", "--wait", "20s", "--", "sh", "-c", job)
        assert answer.status == 0, answer.err
    original.terminate()
    said = original.communicate(timeout=DEADLINE_S)[0].split()
    assert "held" in said and "both" not in said


# safe_gpu: one lock for the whole machine, from a look at the GPUs until CUDA has started on them -


def used_by(*pids) -> str:
    """A machine of one GPU for each of these, which is used by it; 0 by nobody."""
    rows = (
        '[[device]]\nmodel = "H100"\n'
        + f"[[device.process]]\npid = {pid}\nghost = {str(pid > 1 << 22).lower()}\nused_mib = 500\n"
        * (pid > 0)
        for pid in pids
    )
    return "".join(rows)


STRANGER = (1 << 22) + 1


@pytest.fixture
def beside_safe_gpu(make_machine):
    """A machine, and the file of the lock, open."""
    files = []

    def make(scenario: str):
        machine = make_machine(scenario)
        path = machine.directory / "lock"
        (machine.directory / "site.toml").write_text(f'safe_gpu_locks = ["{path}"]\n')
        files.append(path.open("w"))
        return machine, files[-1]

    yield make
    for file in files:
        file.close()


def is_locked(file) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.lockf(file, fcntl.LOCK_UN)
    return False


def leased(machine) -> list:
    return [d["index"] for d in machine.berth("list", "--json").json["devices"] if d["leases"]]


def test_what_an_original_of_safe_gpu_has_chosen_meanwhile_is_not_granted(beside_safe_gpu):
    machine, file = beside_safe_gpu(used_by(0, 0))
    fcntl.lockf(file, fcntl.LOCK_EX)
    waiting = machine.start_berth("run", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    until_it_waits(waiting)
    machine.change(used_by(STRANGER, 0))
    fcntl.lockf(file, fcntl.LOCK_UN)
    assert waiting.communicate(timeout=DEADLINE_S)[0] == "1\n"


def test_the_lock_of_safe_gpu_is_held_until_the_job_uses_its_gpu(beside_safe_gpu):
    machine, file = beside_safe_gpu(used_by(0))
    job = machine.start_berth("run", "--", "sh", "-c", "echo $$; read x", stdin=-1)
    pid = int(job.stdout.readline())
    assert is_locked(file)
    machine.change(used_by(pid))
    eventually(lambda: not is_locked(file))
    job.communicate("\n")


def test_the_lock_of_safe_gpu_ends_with_the_lease_and_nobody_waits_with_it(beside_safe_gpu):
    machine, file = beside_safe_gpu(used_by(0))
    job = machine.start_berth("run", "--", "sh", "-c", "echo $$; read x", stdin=-1)
    machine.change(used_by(int(job.stdout.readline())))
    eventually(lambda: not is_locked(file))
    waiting = machine.start_berth("run", "--", "sh", "-c", "echo; read x", stdin=-1)
    eventually(lambda: machine.berth("queue", "--json").json["waiters"])
    assert not is_locked(file)
    machine.change(used_by(0))
    job.communicate("\n")
    assert waiting.stdout.readline() == "\n"
    assert is_locked(file)
    waiting.communicate("\n")
    assert not is_locked(file)


def test_inside_of_a_lease_the_lock_of_safe_gpu_is_in_nobodys_way(beside_safe_gpu):
    machine, _ = beside_safe_gpu(used_by(0, 0))
    inside = f"{machine.program} run -- sh -c 'echo $CUDA_VISIBLE_DEVICES'"
    assert machine.berth("run", "--devices", "1", "--", "sh", "-c", inside).out == "1\n"


# Its file is gone after each boot, and its folder, too.


def test_the_lock_of_safe_gpu_is_made_for_all_users_where_it_is_missing(make_machine):
    machine = make_machine(used_by(0))
    path = machine.directory / "safe_gpu/lock"
    (machine.directory / "site.toml").write_text(f'safe_gpu_locks = ["{path}"]\n')
    job = machine.start(
        "sh", "-c", f"umask 077; exec {machine.program} run -- sh -c 'echo; read x'", stdin=-1
    )
    assert job.stdout.readline() == "\n"
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path)] == [0o777, 0o666]
    with path.open("r+") as file:
        assert is_locked(file)
    job.communicate("\n")


def test_whatever_a_stranger_puts_in_the_place_of_the_lock_costs_no_grant_and_leads_nowhere(
    make_machine, as_user
):
    machine = make_machine(used_by(0))
    victim, folder = machine.directory / "victim", machine.directory / "folder"
    victim.mkdir()
    (machine.directory / "site.toml").write_text(f'safe_gpu_locks = ["{folder}/lock"]\n')
    folder.symlink_to(victim)
    os.lchown(folder, 12345, 12345)
    answer = machine.berth("run", "--", "echo", "mine")
    assert (answer.out, "cannot be locked" in answer.err) == ("mine\n", True)
    folder.unlink()
    folder.mkdir()
    (folder / "lock").symlink_to(victim / "file")
    answer = machine.berth("run", "--", "echo", "mine")
    assert (answer.out, "cannot be locked" in answer.err) == ("mine\n", True)
    (folder / "lock").unlink()
    os.mkfifo(folder / "lock")
    answer = machine.berth("run", "--", "echo", "mine")
    assert (answer.out, "cannot be locked" in answer.err) == ("mine\n", True)
    assert list(victim.iterdir()) == []
    said = machine.berth("doctor").out
    assert f"{folder}/lock cannot be locked" in said and "all is well" not in said


HOLD = """
import fcntl, sys
with open(sys.argv[1], "w") as file:
    print("comes", flush=True)
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("has it", flush=True)
    input()
"""


def until_it_waits(request, pid: int | None = None) -> None:
    """Until it says for whom it waits, and has no GPU meanwhile."""
    said = request.stderr.readline()
    while "has the lock of safe_gpu" not in said:
        assert request.poll() is None, said
        said = request.stderr.readline()
    assert f"pid {pid or os.getpid()})" in said


def test_who_waits_for_the_lock_of_safe_gpu_says_for_whom_and_has_no_gpu_meanwhile(beside_safe_gpu):
    machine, file = beside_safe_gpu(used_by(0))
    fcntl.lockf(file, fcntl.LOCK_EX)
    waiting = machine.start_berth("run", "--", "true")
    until_it_waits(waiting)
    assert leased(machine) == []
    fcntl.lockf(file, fcntl.LOCK_UN)
    assert waiting.wait(DEADLINE_S) == 0
    at_once = machine.start_berth("run", "--no-wait", "--", "true")
    assert at_once.wait(DEADLINE_S) == 0


def test_whoever_waits_no_longer_is_refused_with_the_name_of_who_has_the_lock(beside_safe_gpu):
    machine, file = beside_safe_gpu(used_by(0))
    fcntl.lockf(file, fcntl.LOCK_EX)
    answer = machine.berth("run", "--wait", "1s", "--", "true")
    assert answer.status == 124
    assert f"pid {os.getpid()}) has the lock of safe_gpu, {file.name}" in answer.err
    assert leased(machine) == []


def test_two_starts_of_ours_hold_the_lock_of_safe_gpu_at_once(beside_safe_gpu):
    machine, file = beside_safe_gpu(used_by(0, 0))
    jobs = [machine.start_berth("run", "--", "sh", "-c", "echo $$; read x", stdin=-1) for _ in range(2)]
    first, second = (int(job.stdout.readline()) for job in jobs)
    machine.change(used_by(first, 0))
    assert is_locked(file)
    machine.change(used_by(first, second))
    eventually(lambda: not is_locked(file))
    for job in jobs:
        job.communicate("\n")


def test_an_original_that_waits_comes_before_the_next_start_of_ours(beside_safe_gpu):
    machine, file = beside_safe_gpu(used_by(0, 0))
    job = machine.start_berth("run", "--", "sh", "-c", "echo $$; read x", stdin=-1)
    pid = int(job.stdout.readline())
    original = subprocess.Popen([sys.executable, "-c", HOLD, file.name], stdin=-1, stdout=-1, text=True)
    try:
        assert original.stdout.readline() == "comes\n"
        eventually(
            lambda: f"-> POSIX  ADVISORY  WRITE {original.pid} " in pathlib.Path("/proc/locks").read_text()
        )
        later = machine.start_berth("run", "--", "echo", "later")
        until_it_waits(later, original.pid)
        machine.change(used_by(pid, 0))
        assert original.stdout.readline() == "has it\n"
        assert later.poll() is None
        original.communicate("\n")
        assert later.communicate(timeout=DEADLINE_S)[0] == "later\n"
    finally:
        original.kill()
        original.wait()
    job.communicate("\n")


def keepers(machine) -> list[int]:
    return [pid for pid in machine.inhabitants() if b"__until-used" in words_of(pid)]


def test_one_that_keeps_the_lock_of_safe_gpu_and_is_stopped_holds_up_no_start_of_ours(beside_safe_gpu):
    machine, file = beside_safe_gpu(used_by(0, 0))
    job = machine.start_berth("run", "--", "sh", "-c", "echo; read x", stdin=-1)
    assert job.stdout.readline() == "\n"
    keeper = the_only(lambda: keepers(machine))
    os.kill(keeper, signal.SIGSTOP)
    eventually(lambda: state(keeper) == "T")
    assert machine.berth("run", "--no-wait", "--", "echo", "mine").out == "mine\n"
    assert is_locked(file)
    # With its lease the lock ends, whether or not it goes on.
    job.communicate("\n", timeout=DEADLINE_S)
    assert job.returncode == 0
    eventually(lambda: leased(machine) == [])
    eventually(lambda: not is_locked(file))
    os.kill(keeper, signal.SIGKILL)


# A process is no stranger to its own request ------------------------------------------------------


def asking(machine, around: tuple = ()):
    """A shell that computes on the only GPU, and then asks for it."""
    script = f"echo $$; read x; {machine.program} run --no-wait -- echo mine; echo $?"
    shell = machine.start(*around, "sh", "-c", script, stdin=-1)
    machine.change(used_by(int(shell.stdout.readline())))
    return shell.communicate("\n")[0].split()


def test_inside_of_a_lease_whoever_asks_by_berth_run_is_no_stranger(make_machine):
    machine = make_machine(used_by(0))
    assert asking(machine, (machine.program, "run", "--")) == ["mine", "0"]


def test_outside_of_a_lease_it_is(make_machine):
    assert asking(make_machine(used_by(0))) == ["75"]
