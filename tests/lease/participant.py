"""Takes part in docs/lease-protocol.md and knows nothing else of Berth.

participant.py DIR UUID… waits its turn for one of these devices, says which, and holds it until its input ends.
With ASLEEP in its environment it does not look until it is given a line."""

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import struct
import sys
import time

DIR, CANDIDATES = sys.argv[1], sys.argv[2:]
SAFELY = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
ALIVE, WAITING, TICK_S = 0, 1, 2
IN_CLOSE_WRITE, IN_ATTRIB = 8, 4


def ofd(file, how, kind, first, count=1):
    request = struct.pack("hhqqi", kind, os.SEEK_SET, first, count, 0)
    return struct.unpack("hhqqi", fcntl.fcntl(file, how, request))[0]


def live(part, byte):
    """Tickets with this byte locked, in order: name and lines."""
    for name in sorted(os.listdir(f"{DIR}/{part}")):
        with contextlib.suppress(OSError), open(os.open(f"{DIR}/{part}/{name}", SAFELY)) as file:
            if os.fstat(file.fileno()).st_mode & 0o022:  # nobody's
                continue
            if ofd(file, fcntl.F_OFD_GETLK, fcntl.F_RDLCK, byte) != fcntl.F_UNLCK:
                yield name, file.read(4097).split("\n")


def unnamed(directory, mode):
    file = os.open(directory, os.O_TMPFILE | os.O_RDWR, mode)
    os.fchmod(file, mode)
    return file


def link(file, path):
    directory = os.open(os.path.dirname(path), os.O_PATH)
    os.link(f"/proc/self/fd/{file}", os.path.basename(path), dst_dir_fd=directory, follow_symlinks=True)


@contextlib.contextmanager
def gate():
    file = os.open(DIR, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(file, fcntl.LOCK_EX)
    yield
    os.close(file)


def try_device(uuid):
    """The descriptor of a device's lock, or None."""
    path = f"{DIR}/devices/{uuid}"
    if not os.path.exists(path):
        link(unnamed(f"{DIR}/devices", 0o1666), path)
    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), os.stat(path)):
            return file
    return os.close(file)


def rivals(lines):
    return any(
        line == "candidate=*" or line[10:] in CANDIDATES for line in lines if line.startswith("candidate=")
    )


def sleep_behind(rival):
    with contextlib.suppress(FileNotFoundError, TimeoutError):
        file = os.open(f"{DIR}/queue/{rival}", SAFELY)
        signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
        ofd(file, fcntl.F_OFD_SETLKW, fcntl.F_RDLCK, WAITING)
    signal.setitimer(signal.ITIMER_REAL, 0)


def tick(*_):
    raise TimeoutError


signal.signal(signal.SIGALRM, tick)
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(os.O_NONBLOCK)
ticket = unnamed(f"{DIR}/queue", 0o1644)
ofd(ticket, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, ALIVE, 2)
with gate():
    earlier = [name for name, lines in live("queue", WAITING) if rivals(lines)]
    parts = ("queue", "leases")
    number = max(int(name, 16) + 1 for part in parts for name in ["0", *dict(live(part, ALIVE))])
    number = max(time.clock_gettime_ns(time.CLOCK_BOOTTIME), number)
    names = {name for part in parts for name in os.listdir(f"{DIR}/{part}")}
    while (me := f"{number:016x}") in names:
        number += 1
    start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
    text = f"berth-ticket 1\nid={me}\npid={os.getpid()}\npid_start={start}\njoined_at={int(time.time())}\n"
    text += "count=1\ncommand=participant.py\n" + "".join(f"candidate={uuid}\n" for uuid in CANDIDATES)
    os.pwrite(ticket, (text + "end\n").encode(), 0)
    link(ticket, f"{DIR}/queue/{me}")
print("waiting", flush=True)
if "ASLEEP" in os.environ:
    sys.stdin.buffer.raw.readline()

device = None
while device is None:
    waiting = dict(live("queue", WAITING))
    earlier = [name for name in earlier if name in waiting]
    if earlier:
        sleep_behind(earlier[-1])
        continue
    leases = dict(live("leases", ALIVE))
    for path in [f"devices/{uuid}" for uuid in CANDIDATES] + [f"leases/{name}" for name in leases]:
        libc.inotify_add_watch(watch, f"{DIR}/{path}".encode(), IN_CLOSE_WRITE | IN_ATTRIB)
    with gate():
        taken = {
            line[7:] for _, lines in live("leases", ALIVE) for line in lines if line.startswith("device=")
        }
        for uuid in CANDIDATES:
            device = None if uuid in taken else try_device(uuid)
            if device is not None:
                os.pwrite(ticket, f"{text}granted_at={int(time.time())}\ndevice={uuid}\nend\n".encode(), 0)
                os.rename(f"{DIR}/queue/{me}", f"{DIR}/leases/{me}")
                ofd(ticket, fcntl.F_OFD_SETLK, fcntl.F_UNLCK, WAITING)
                print(uuid, flush=True)
                break
    if device is None and not select.select([watch], [], [], 0.02)[0]:
        select.select([watch], [], [], TICK_S)
    with contextlib.suppress(BlockingIOError):
        os.read(watch, 65536)

sys.stdin.read()
fcntl.flock(device, fcntl.LOCK_UN)
os.unlink(f"{DIR}/leases/{me}")
