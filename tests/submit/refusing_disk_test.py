"""A disk that refuses one call of all that the life of a job makes, or all from one on: full, out of quota, or failing."""

import ctypes
import errno
import itertools
import mmap
import os
import re
import struct

import pytest
from jobs import eventually
from submitted import job, log, submit, told

# Preloaded into the program.
pytestmark = pytest.mark.release_only

FOR_EVER = 1 << 30
PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture
def all_have_ended():
    """Asks whether this process has no descendant left. It becomes the parent of orphans: what is asked of /proc misses
    one that is between two programs just then."""
    libc = ctypes.CDLL(None)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0

    def ask() -> bool:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        return False

    yield ask
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


class Disk:
    """What lies below the user's home. All programs that get `env` count their calls together."""

    def __init__(self, machine, build):
        path = machine.directory / "calls"
        path.write_bytes(bytes(mmap.PAGESIZE))
        with path.open("r+b") as file:
            self.calls = mmap.mmap(file.fileno(), 0)
        self.env = {
            "LD_PRELOAD": build / "refusing_disk.so",
            "REFUSING_CALLS": path,
            "REFUSING_BELOW": machine.env["HOME"],
        }

    def refuses(self, first: int, last: int) -> None:
        self.calls[:16] = struct.pack("4i", 0, first, last, errno.EDQUOT)

    def count(self) -> int:
        return struct.unpack("i", self.calls[:4])[0]

    def is_mended(self) -> None:
        self.calls[4:12] = bytes(8)


def life_of_a_job(machine, disk: Disk, first: int, last: int, all_have_ended):
    """Of one that is submitted while the disk refuses these calls: the answer, how often the job has run when all is over,
    what is told of it, and the number of calls."""
    ran = machine.directory / "ran"
    ran.unlink(missing_ok=True)
    known = {job["id"] for job in told(machine)}
    disk.refuses(first, last)
    answer = machine.berth("submit", "--", "sh", "-c", f"echo ran >> {ran}", env=disk.env)
    # With all of them refused the job may wait for better times.
    eventually(lambda: all_have_ended() or (last == FOR_EVER and disk.count() > first))
    calls = disk.count()
    disk.is_mended()
    machine.berth("jobs")
    eventually(all_have_ended)
    jobs = [job for job in told(machine) if job["id"] not in known]
    return answer, len(ran.read_text().split()) if ran.exists() else 0, jobs, calls


@pytest.mark.parametrize("last", ["one", "all"])
def test_what_is_refused_never_runs_and_what_is_taken_runs_once(machine, build, last, all_have_ended):
    disk = Disk(machine, build)
    machine.berth("wait", machine.berth("submit", "--", "true").out.strip())
    eventually(all_have_ended)
    for first in itertools.count(1):
        answer, runs, jobs, calls = life_of_a_job(
            machine, disk, first, first if last == "one" else FOR_EVER, all_have_ended
        )
        said = (first, answer, runs, jobs)
        if answer.status != 0:
            assert (answer.status, answer.out, runs, jobs) == (1, "", 0, []), said
            assert "nothing was submitted" in answer.err and "Disk quota exceeded" in answer.err, said
        else:
            (job,) = jobs
            assert job["id"] == answer.out.strip(), said
            # The end of one that has run may be lost. One that has not run is never over, unless
            # its start was written, and after that nothing more could be.
            cut = ("interrupted", 1), ("interrupted", 0 if last == "all" else 1)
            assert (job["state"], runs) in (("ended", 1), *cut), said
        if calls < first:
            break
    assert first > 20


@pytest.mark.parametrize("last", ["one", "all"])
@pytest.mark.parametrize("wish", [["--hold"], ["--time", "2h"], ["--first"]])
def test_an_edit_that_is_refused_leaves_the_job_as_it_was(machine, build, last, wish):
    disk = Disk(machine, build)
    submit(machine, "--at", "1000h", "--", "true")
    for first in itertools.count(1):
        number = submit(machine, "--at", "1000h", "--", "true")
        before = job(machine, number)
        disk.refuses(first, first if last == "one" else FOR_EVER)
        answer = machine.berth("edit", number, *wish, env=disk.env)
        calls = disk.count()
        disk.is_mended()
        now = job(machine, number)
        is_edited = wish == ["--first"] or now["held"] or now["request"] == ["--time=2h"]
        assert is_edited if answer.status == 0 else now == before, (first, answer)
        assert "quota exceeded" not in answer.err or "remove files of yours there" in answer.err, answer
        assert machine.berth("cancel", number).status == 0
        if calls < first:
            break
    assert first > 2


def test_where_nothing_can_be_cut_out_of_an_output_all_of_it_is_there(machine, build):
    disk = Disk(machine, build)
    disk.refuses(0, 0)
    script = "echo begin; head -c 3M /dev/zero | tr '\\0' x; echo; echo end"
    number = machine.berth(
        "submit", "--output-limit", "1M", "--", "sh", "-c", script, env={**disk.env, "REFUSING_HOLES": "1"}
    ).out.strip()
    assert machine.berth("wait", number).status == 0
    # Berth says so once, wherever the output has come to by then.
    text, said = re.subn(
        r"berth: cutting the output, which is not bounded here: [^\n]*\n", "", log(machine, number)
    )
    assert said == 1
    assert text == "begin\n" + "x" * (3 << 20) + "\nend\n"
