#!/usr/bin/env python3
"""Tries whether a program keeps docs/standard.md, by its command line. Needs nothing but Python and Linux.

Each command line has {uuid} and {command} in it: the program takes this GPU and runs the command while it has it,
or fails. Each check has a folder of its own, to which BERTH_DIR leads."""

import argparse
import concurrent.futures
import contextlib
import ctypes
import fcntl
import itertools
import os
import pathlib
import select
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60  # hang guard: all that is waited for comes within a second or two
QUIET_S = 1.5  # in which a program that waits looks once
UUIDS = ["GPU-00000000-0000-4000-8000-000000000001", "GPU-00000000-0000-4000-8000-000000000002"]
# Is there as long as the test wants, and says in a file that it runs. It starts nothing for that: a
# child would have the lock for a moment longer.
LIVES = ["sh", "-c", 'echo $$ >"$0" && exec sleep 1000']
LEAVES_A_CHILD = ["sh", "-c", 'sleep 1000 & echo $! >"$0"']
BECOMES_ANOTHER = ["sh", "-c", 'exec sh -c \'echo $$ >"$0" && exec sleep 1000\' "$0"']
# In the place of one GPU only one can be.
ALONE = ["sh", "-c", 'mkdir "$0" || echo >>"$0.double"; sleep 0.02; rmdir "$0"; echo >>"$0.done"']


def eventually(holds, what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


class Program:
    """One whose command lines are known."""

    def __init__(
        self, take: str, share: str = "", wait: str = "", queues: bool = False, env: dict = os.environ
    ):
        self.lines = {"take": take, "share": share, "wait": wait}
        self.queues = (
            queues  # follows the second level too: makes files, and has a place among those who wait
        )
        self.env = dict(env)

    def can(self, how: str) -> bool:
        return bool(self.lines[how])

    def words(self, how: str, uuid: str, command: list) -> list:
        words = [[word.replace("{uuid}", uuid)] for word in shlex.split(self.lines[how])]
        return list(itertools.chain(*(command if word == ["{command}"] else word for word in words)))


class Started:
    """A program under way. Its command has begun once it has written its number."""

    def __init__(self, words: list, mark: pathlib.Path, env: dict):
        self.mark = mark
        self.said = mark.with_suffix(".said").open("w+")
        self.process = subprocess.Popen(
            words,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self.said,
            stderr=self.said,
            start_new_session=True,
        )

    def words(self) -> str:
        self.said.seek(0)
        return self.said.read().strip()

    def has_begun(self) -> bool:
        return self.mark.exists() and self.mark.read_text().endswith("\n")

    def command(self) -> int:
        return int(self.mark.read_text())

    def has(self, variable: str) -> bool:
        """Whether the command has it. Not while it becomes another program."""
        return variable in pathlib.Path(f"/proc/{self.command()}/environ").read_text().split("\0")

    def begins(self) -> "Started":
        end = time.monotonic() + PATIENCE_S
        while not self.has_begun():
            assert self.process.poll() is None or self.has_begun(), (
                f"it did not run the command: {self.words()}"
            )
            assert time.monotonic() < end, "it never runs the command"
            time.sleep(0.01)
        return self

    def ends_or_begins(self, why: str) -> "Started":
        eventually(lambda: self.process.poll() is not None or self.has_begun(), f"it hangs: {why}")
        return self

    def fails(self, why: str) -> "Started":
        self.ends_or_begins(why)
        assert not self.has_begun(), f"it runs the command: {why}"
        assert self.process.returncode != 0, f"it says that all is well: {why}"
        return self

    def is_quiet(self, why: str) -> None:
        """It has not begun, and does not for a while."""
        end = time.monotonic() + QUIET_S
        while time.monotonic() < end:
            assert not self.has_begun(), f"it runs the command: {why}"
            time.sleep(0.02)
        assert self.process.poll() is None, f"it does not wait: {self.words()}"

    def signal(self, number: int) -> None:
        """To the program and all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        if self.has_begun():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.command(), number)

    def ends(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait(PATIENCE_S)


class Folder:
    """What one check has: a folder with the files of two GPUs, and the programs that it starts there."""

    def __init__(self, path: pathlib.Path, program: Program, other: Program, uuids: list):
        self.program, self.other = program, other
        self.gpu, self.second = uuids[:2]
        self.directory = path / "berth"
        for part in (
            self.directory,
            *(self.directory / name for name in ("devices", "queue", "leases", "inside")),
        ):
            part.mkdir()
            part.chmod(0o1777)
        for uuid in uuids[:2]:
            self.make(self.file(uuid))
        self.marks = (path / f"mark{number}" for number in itertools.count())
        self.started = []

    def file(self, uuid: str) -> pathlib.Path:
        return self.directory / "devices" / uuid

    @staticmethod
    def make(path: pathlib.Path) -> pathlib.Path:
        path.touch()
        path.chmod(0o1666)
        return path

    def start(self, how="take", uuid="", by=None, command=None, **env) -> Started:
        mark, by = next(self.marks), by or self.program
        words = by.words(how, uuid or self.gpu, [*(command or LIVES), str(mark)])
        self.started.append(Started(words, mark, by.env | {"BERTH_DIR": str(self.directory)} | env))
        return self.started[-1]

    def close(self) -> None:
        for each in self.started:
            each.ends()
            each.said.close()

    def held(self) -> str:
        """How the GPU is locked: "", "shared" or "whole"."""
        with self.file(self.gpu).open() as file:
            for how, means in ((fcntl.LOCK_EX, ""), (fcntl.LOCK_SH, "shared")):
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(file, how | fcntl.LOCK_NB)
                    return means
        return "whole"

    def is_free(self) -> None:
        eventually(lambda: self.held() == "", "the lock stays when nobody is left")

    @contextlib.contextmanager
    def ticket(self, part: str, text: str, name="00000000000003e8", lock=fcntl.F_WRLCK, mode=0o1644):
        """A live ticket, which is dead in the end and still there. With a lock for reading it is dead all along."""
        with open(os.open(self.directory / part / name, os.O_RDWR | os.O_CREAT, 0o644), "w") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", lock, os.SEEK_SET, 0, 2, 0))
            yield

    @contextlib.contextmanager
    def lock(self, path: pathlib.Path):
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield

    def names(self) -> list:
        return sorted(str(path) for path in self.directory.rglob("*"))


# The checks. Each says in its first line what a program does that keeps the standard.


def takes(here: Folder):
    """It takes a GPU that is free, and the lock ends with its command"""
    before = here.names()
    mine = here.start().begins()
    assert here.held() == "whole", "its command runs, and the GPU is not locked"
    if not here.program.queues:
        eventually(lambda: mine.has(f"CUDA_VISIBLE_DEVICES={here.gpu}"), "its command may see other GPUs")
    mine.ends()
    here.is_free()
    if not here.program.queues:
        assert here.names() == before, "it makes files, or removes some"


def holds(here: Folder):
    """It takes no GPU that another has, and no other takes one that it has"""
    for first, second in ((here.program, here.other), (here.other, here.program)):
        one = here.start(by=first).begins()
        here.start(by=second).fails("another has the GPU")
        here.start(by=second, uuid=here.second).begins().ends()
        one.ends()
        here.is_free()


def shares(here: Folder):
    """It shares a GPU with those who share it, and with nobody else"""
    ones = [here.start("share", by=by).begins() for by in (here.program, here.other) if by.can("share")]
    assert here.held() == "shared", "the lock of a share keeps out other shares"
    for by in (here.program, here.other):
        here.start(by=by).fails("others share the GPU")
    for one in ones:
        one.ends()
    here.is_free()
    whole = here.start(by=here.other).begins()
    here.start("share").fails("another has the whole GPU")
    whole.ends()


def is_killed(here: Folder):
    """If it is killed, the GPU stays locked while its command lives, and no longer"""
    mine = here.start().begins()
    command = mine.command()
    os.kill(mine.process.pid, signal.SIGKILL)
    mine.process.wait(PATIENCE_S)
    end = time.monotonic() + 0.5
    while time.monotonic() < end and lives(command):
        is_free = here.held() == ""
        assert not (is_free and lives(command)), "its command lives, and the GPU is not locked"
        if not is_free:
            other = here.start(by=here.other).ends_or_begins("the command of one that was killed lives")
            if other.has_begun():  # the command may have ended since
                assert not lives(command), "it runs the command: the command of one that was killed lives"
                other.ends()
    mine.signal(signal.SIGKILL)
    here.is_free()
    here.start(by=here.other).begins()


def is_stopped(here: Folder):
    """If it is stopped, it keeps the GPU"""
    mine = here.start().begins()
    mine.signal(signal.SIGSTOP)
    here.start(by=here.other).fails("one that is stopped has the GPU")
    mine.signal(signal.SIGCONT)
    mine.ends()
    here.is_free()


def forks(here: Folder):
    """A child that outlives the command keeps the GPU"""
    mine = here.start(command=LEAVES_A_CHILD).begins()
    child = mine.command()
    time.sleep(0.2)  # more likely than not the command has ended by then; if not, nothing is claimed too much
    here.start(by=here.other).fails("a child of the command lives")
    assert lives(child), "it has ended a child of its command"
    os.kill(child, signal.SIGKILL)
    here.is_free()


def execs(here: Folder):
    """A command that becomes another program keeps the GPU"""
    mine = here.start(command=BECOMES_ANOTHER).begins()
    here.start(by=here.other).fails("what the command has become lives")
    mine.ends()
    here.is_free()


def waits(here: Folder):
    """It waits until the GPU is free"""
    other = here.start(by=here.other).begins()
    mine = here.start("wait")
    mine.is_quiet("another has the GPU")
    other.ends()
    mine.begins()


def looks_seldom(here: Folder):
    """It looks once a second at most while it waits"""
    libc = ctypes.CDLL(None)
    opened = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    with here.lock(here.file(here.gpu)):
        mine = here.start("wait")
        mine.is_quiet("another has the GPU")
        is_open = 0x20
        libc.inotify_add_watch(opened, str(here.directory / "queue").encode(), is_open)
        begun, looks = time.monotonic(), 0
        # Read one by one: the kernel makes one event of two that are alike.
        while (left := begun + 2 * QUIET_S - time.monotonic()) > 0:
            if select.select([opened], [], [], left)[0]:
                looks += len(os.read(opened, 16)) // 16  # of a watched folder itself, which has no name
        assert looks <= time.monotonic() - begun + 1, f"it looked {looks} times"
    os.close(opened)
    mine.begins()


def lets_the_queue_go_first(here: Folder):
    """It takes nothing while a live ticket is in the queue, whatever its version, and heeds no dead one"""
    waiting = None
    with here.ticket("queue", "berth-ticket 9\n"):
        here.start().fails("somebody waits in the queue")
        if here.program.can("share"):
            here.start("share").fails("somebody waits in the queue")
        if here.program.can("wait"):
            waiting = here.start("wait")
            waiting.is_quiet("somebody waits in the queue")
    here.start(uuid=here.second).begins().ends()
    if waiting:
        waiting.begins()
    with here.ticket("queue", "berth-ticket 1\n", lock=fcntl.F_RDLCK):
        here.start(uuid=here.second).begins().ends()


def heeds_no_link(here: Folder):
    """It heeds no file in the queue that others may write, such as a link to the locked file of a GPU"""
    for mode in (0o1664, 0o1646):
        with here.ticket("queue", "berth-ticket 1\n", mode=mode):
            here.start().begins().ends()
    os.link(here.file(here.second), here.directory / "queue" / "00000000000003e9")
    with here.file(here.second).open("r+") as file:  # as a lease with promised memory
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 2, 0))
        here.start().begins()


def makes_no_file(here: Folder):
    """It makes no lock file, and says who can"""
    here.file(here.gpu).unlink()
    before = here.names()
    said = here.start().fails("there is no lock file").words()
    assert here.names() == before, "it has made a file"
    assert "berth init" in said, f"it does not say who can make it: {said}"


def compares(here: Folder):
    """It takes no lock on a file that has been replaced"""
    path = here.file(here.gpu)
    old, new = path.with_name("old"), here.make(path.with_name("new"))
    os.link(path, old)
    with here.lock(new):
        with here.lock(old):
            mine = here.start("wait")
            mine.is_quiet("another has the GPU")
            new.rename(path)
            old.unlink()
        mine.is_quiet("another has the file that is there now")
    mine.begins()
    assert here.held() == "whole", "its command runs, and the GPU is not locked"


def opens_what_is_a_file(here: Folder):
    """It takes no link, no folder and no FIFO for a lock file, and none holds it up"""
    path = here.file(here.gpu)
    elsewhere = here.make(path.with_name("elsewhere"))
    for make in (lambda: path.symlink_to(elsewhere), path.mkdir, lambda: os.mkfifo(path)):
        path.rmdir() if path.is_dir() else path.unlink()
        make()
        here.start().fails("there is no regular file")


def has_what_its_lease_has(here: Folder):
    """Inside a live lease it has the GPUs of the lease, and no others"""
    lease = {"BERTH_LEASE": "00000000000003e9"}
    text = f"berth-ticket 1\nid=00000000000003e9\ndevice={here.gpu}\nend\n"
    with here.lock(here.file(here.gpu)), here.lock(here.file(here.second)):
        with here.ticket("leases", text, "00000000000003e9"):
            here.start(**lease).begins()
            if here.program.can("share"):
                here.start("share", **lease).begins()
            here.start(uuid=here.second, **lease).fails("the lease does not have this GPU")
        here.start(**lease).fails("the lease has ended")


def has_what_its_inner_lease_has(here: Folder):
    """Inside a lease in a lease it has the GPUs of the inner one, while both live"""
    outer, inner = "00000000000003ea", "00000000000003eb"
    leases = {"BERTH_LEASE": f"{outer}/{inner}"}
    folder = here.directory / "inside" / outer / "leases"
    folder.mkdir(parents=True)
    of_outer = (f"berth-ticket 1\nid={outer}\ndevice={here.gpu}\ndevice={here.second}\nend\n", outer)
    of_inner = (f"berth-ticket 1\nid={inner}\ndevice={here.gpu}\nend\n", inner)
    with here.lock(here.file(here.gpu)), here.lock(here.file(here.second)):
        with here.ticket(folder, *of_inner):
            with here.ticket("leases", *of_outer):
                here.start(**leases).begins()
                if here.program.can("wait"):
                    here.start("wait", **leases).begins()
                here.start(uuid=here.second, **leases).fails("the inner lease does not have this GPU")
            here.start(**leases).fails("the outer lease has ended")
        with here.ticket("leases", *of_outer):
            here.start(**leases).fails("the inner lease has ended")


def is_alone(here: Folder):
    """Of many that ask at once one has the GPU at a time"""
    place = here.directory.with_name("place")
    alone = [*ALONE[:2], f'set -- "{place}"; ' + ALONE[2].replace("$0", "$1")]
    asking = []
    for number in range(24):
        by = (here.program, here.other)[number % 2]
        asking.append(
            here.start("wait" if by.can("wait") and number % 3 == 0 else "take", by=by, command=alone)
        )
    for one in asking:
        one.process.wait(PATIENCE_S)
    assert not place.with_name("place.double").exists(), "two had one GPU"
    assert place.with_name("place.done").exists(), "nobody had it"


CHECKS = [
    takes,
    holds,
    shares,
    is_killed,
    is_stopped,
    forks,
    execs,
    waits,
    looks_seldom,
    lets_the_queue_go_first,
]
CHECKS += [heeds_no_link, makes_no_file, compares, opens_what_is_a_file]
CHECKS += [has_what_its_lease_has, has_what_its_inner_lease_has, is_alone]
NEEDS = {shares: "share", waits: "wait", looks_seldom: "wait", compares: "wait"}
FIRST_LEVEL = [looks_seldom, lets_the_queue_go_first, makes_no_file]
FIRST_LEVEL += [has_what_its_lease_has, has_what_its_inner_lease_has]


def applies(check, program: Program) -> bool:
    return not (check in NEEDS and not program.can(NEEDS[check])) and not (
        check in FIRST_LEVEL and program.queues
    )


def try_one(check, program: Program, other: Program, uuids: list) -> str:
    """What is wrong; "": nothing."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as path:
        here = Folder(pathlib.Path(path), program, other, uuids)
        try:
            check(here)
            return ""
        except AssertionError as failure:
            return str(failure)
        finally:
            here.close()


def try_all(program: Program, other: Program, uuids=tuple(UUIDS)) -> dict:
    """Of each check that applies what is wrong."""
    os.umask(0o022)
    checks = [check for check in CHECKS if applies(check, program)]
    # In a process each: a program that one thread starts would have the locks of another until it
    # has begun.
    with concurrent.futures.ProcessPoolExecutor(len(checks)) as pool:
        tries = [pool.submit(try_one, check, program, other, list(uuids)) for check in checks]
        return {check: one.result() for check, one in zip(checks, tries)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--take", required=True, metavar="LINE", help="takes the GPU, or fails at once")
    parser.add_argument("--share", default="", metavar="LINE", help="takes a part of it")
    parser.add_argument("--wait", default="", metavar="LINE", help="waits until it is free")
    parser.add_argument(
        "--beside", default="", metavar="LINE", help="a second program that takes it; else the same"
    )
    parser.add_argument(
        "--uuid", action="append", help="twice: the names of two GPUs, if a program asks for real ones"
    )
    options = parser.parse_args()
    program = Program(options.take, options.share, options.wait)
    results = try_all(program, Program(options.beside) if options.beside else program, options.uuid or UUIDS)
    for check, wrong in results.items():
        print(f"{'FAIL' if wrong else 'ok':4} {check.__doc__}{': ' if wrong else ''}{wrong}")
    failed = sum(1 for wrong in results.values() if wrong)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
