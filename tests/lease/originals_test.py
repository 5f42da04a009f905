"""Berth beside originals that keep their own copies away by locks: `gpu_scheduler_locks` and `safe_gpu_locks` in the site
file."""

import fcntl
import pathlib
import signal
import sys

import pytest
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
    eventually(lambda: leased(machine) == [0])
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


def test_where_nobody_uses_safe_gpu_no_lock_of_it_is_made(make_machine):
    machine = make_machine("1xH100")
    (machine.directory / "site.toml").write_text(f'safe_gpu_locks = ["{machine.directory}/lock"]\n')
    assert machine.berth("run", "--", "true").status == 0
    assert not (machine.directory / "lock").exists()


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
