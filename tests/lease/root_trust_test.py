"""What root runs over what users have written. Each name, link, file, descriptor and terminal here is a user's."""

import contextlib
import os
import pathlib
import pty
import re
import select
import shutil
import stat
import subprocess
import sys

import pytest
from jobs import DEADLINE_S, Job, is_probe
from lease_jobs import at_terminal, only_lease, ready

ALICE, MALLORY = 20001, 20003
KINDS = ["file", "directory", "fifo", "link"]
NAMES = [
    b"GPU-x 1666 root root -\nZ %h 0777 6 6 -\n#",
    b"GPU-1\nf %t 1666 root root -",
    b"x" * 255,
    b"GPU-\xff\xfe",
    b"GPU-\x1b]0;title\x07",
    b"%h",
    b"$(reboot)",
    b"GPU 1",
    b"-rf",
    b"..GPU",
    b"GPU-of-no-machine",
    b"0000000000000001",
    b"0-1",
]
MAKE = """
import os, sys
kind, folder, *names = map(os.fsencode, sys.argv[1:])
for name in names:
    path = os.path.join(folder, name)
    if kind == b"file":
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    elif kind == b"directory":
        os.makedirs(os.path.join(path, b"13/0"))
    elif kind == b"fifo":
        os.mkfifo(path)
    else:
        os.symlink(b"/nonexistent/" + name[:16], path)
"""


@pytest.fixture
def image(open_machine, as_user):
    """A file system for `berth init --root`, which every user may enter; its lease directory is that of the machine."""
    root = open_machine.directory / "image"
    root.mkdir()
    machine = open_machine
    machine.root = root
    machine.env["BERTH_DIR"] = str(root / "run/berth")
    machine.leases = root / "run/berth"
    machine.boot = root / "etc/tmpfiles.d/berth.conf"
    assert init(machine).status == 0
    machine.uuids = sorted(path.name for path in (machine.leases / "devices").iterdir())
    return machine


def init(machine):
    return machine.berth("init", "--root", machine.root)


def made(machine, as_user, kind: str, folder: pathlib.Path, *names: bytes) -> list[pathlib.Path]:
    words = [*as_user(MALLORY), sys.executable, "-c", MAKE, kind, folder, *names]
    subprocess.run(words, check=True, timeout=DEADLINE_S)
    return [folder / os.fsdecode(name) for name in names]


def shows_nothing_odd(answer) -> None:
    """No byte of a user's acts on a terminal."""
    assert not set(answer.out + answer.err) & set("\x1b\x07\x9b\u202e\udcff\udcfe"), answer
    assert "Z %h" not in [line[:4] for line in answer.out.splitlines() + answer.err.splitlines()]


# berth init


@pytest.mark.parametrize("kind", KINDS)
def test_no_name_of_a_user_goes_into_what_root_writes(image, as_user, kind):
    before = image.boot.read_text()
    put = made(image, as_user, kind, image.leases / "devices", *NAMES)
    answer = init(image)
    assert (answer.status, answer.out, answer.err) == (0, "nothing to do: all is as it should be\n", "")
    assert image.boot.read_text() == before
    assert all(path.lstat().st_uid == MALLORY for path in put)
    image.boot.unlink()
    assert init(image).status == 0
    assert image.boot.read_text() == before
    of_the_order = "f /run/berth/order 0644 root root - berth-order 1 expect=runs"
    for line in set(before.splitlines()[1:]) - {of_the_order}:
        assert re.fullmatch(r"[df] /run/berth(/[A-Za-z0-9_-]+)* 1[67][67][67] root root -", line), line


def test_devices_that_the_driver_does_not_tell_now_keep_their_lines_and_no_others_come(image, as_user):
    before = image.boot.read_text()
    with image.boot.open("a") as file:
        file.write("f /run/berth/devices/GPU-%h 1666 root root -\nZ %h 0777 6 6 -\n")
    image.change('init_result = 9\n[[device]]\nmodel = "T4"\n')
    assert init(image).status == 0
    assert image.boot.read_text() == before


@pytest.mark.parametrize("kind", ["directory", "fifo", "link"])
def test_what_is_no_file_in_the_place_of_a_device_is_removed(image, as_user, kind):
    device = image.leases / "devices" / image.uuids[0]
    device.unlink()
    if kind == "directory":
        assert image.run(*as_user(MALLORY), "mkdir", device).status == 0
    else:
        made(image, as_user, kind, device.parent, os.fsencode(device.name))
    assert init(image).out == "made 1 device file\n"
    status = device.lstat()
    assert (status.st_uid, stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)) == (
        0,
        stat.S_IFREG,
        0o1666,
    )
    assert image.run(*as_user(ALICE), image.program, "run", "-n", "2", "--no-wait", "--", "true").status == 0


def test_what_cannot_be_removed_there_is_told(image, as_user):
    device = image.leases / "devices" / image.uuids[0]
    device.unlink()
    made(image, as_user, "directory", device.parent, os.fsencode(device.name))
    answer = init(image)
    assert answer.status == 0 and f"{device} is not a device file" in answer.err
    assert "remove it, and call berth init again" in answer.err


def test_a_users_file_in_the_place_of_a_device_becomes_roots_and_shows_nothing(image, as_user):
    """Where links to the files of others are allowed, it may be the last name of what somebody kept to himself."""
    device = image.leases / "devices" / image.uuids[0]
    device.write_text("secret")
    os.chown(device, ALICE, ALICE)
    device.chmod(0o600)
    inode = device.stat().st_ino
    assert f"{device} is root's now" in init(image).out
    status = device.stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode), status.st_size) == (0, 0o1666, 0)
    assert status.st_ino == inode


def test_a_second_name_of_roots_device_file_changes_nothing(image, as_user):
    """Every user may give it one."""
    before = image.boot.read_text()
    device = image.leases / "devices" / image.uuids[0]
    assert image.run(*as_user(MALLORY), "ln", device, image.leases / "queue/x").status == 0
    answer = init(image)
    assert (answer.status, answer.err) == (0, "")
    assert image.boot.read_text() == before


# Names in each folder, and all that root asks there


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("folder", ["", "devices", "queue", "leases", "inside", "outcomes"])
def test_no_name_stops_root_or_acts_on_its_terminal(image, as_user, folder, kind):
    names = NAMES if folder else [b"topology.0", b"stuck-probe.0", b"topology.0.1", b"outcomes.new-1"]
    put = made(image, as_user, kind, image.leases / folder, *names)
    for words in (
        ["list"],
        ["list", "-l"],
        ["queue"],
        ["why"],
        ["__leases"],
        ["run", "--no-wait", "--", "true"],
        ["exclude", "0", "--because", "x"],
        ["include", "0"],
        ["epilog"],
        ["jobs"],
        ["init", "--root", image.root],
    ):
        slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_UID": "0", "SLURM_JOB_GPUS": "0"}
        answer = image.berth(*words, env=slurm if words == ["epilog"] else {})
        assert answer.status == 0, (words, answer)
        shows_nothing_odd(answer)
    shows_nothing_odd(image.berth("doctor"))
    for word in ("0000000000000001", "x" * 255, "$(reboot)", "0-1"):
        for command in ("release", "cancel", "extend"):
            assert image.berth(command, word).status != 0
    assert all(path.lstat().st_uid == MALLORY for path in put if os.path.lexists(path))
    assert image.run(*as_user(ALICE), image.program, "run", "-n", "2", "--no-wait", "--", "true").status == 0


def test_a_dead_ticket_of_one_user_removes_nothing_of_another(image, as_user):
    name = "0000000000000001"
    inner = image.leases / "inside" / name
    assert image.run(*as_user(ALICE), "mkdir", "-p", inner / "queue").status == 0
    dead = image.leases / "leases" / name
    assert image.run(*as_user(MALLORY), "touch", dead).status == 0
    assert image.berth("run", "--no-wait", "--", "true").status == 0
    assert not dead.exists() and (inner / "queue").is_dir()
    # What it removes: the owner's own.
    assert image.run(*as_user(ALICE), "touch", dead).status == 0
    assert image.berth("run", "--no-wait", "--", "true").status == 0
    assert not dead.exists() and not inner.exists()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_no_word_of_a_user_is_run_by_roots_completion(image, as_user):
    ran = image.directory / "ran"
    then = ["bash", "-c", "echo ready; exec sleep 1000", f"x\n$(touch {ran})\t`touch {ran}`"]
    ready(image.start(*as_user(ALICE), image.program, "run", "--note", f"\n$(touch {ran})", "--", *then))
    script = (
        f"source <({image.program} completion bash); COMP_WORDS=({image.program} release ''); COMP_CWORD=2; "
        '_berth; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    answer = image.run("bash", "-c", script)
    assert only_lease(image)[-6:] in answer.out.split()
    assert not ran.exists()


# Processes

# A process may say that its arguments, or its environment, are more memory than another one has.
# What is not written to takes none.
WITHOUT_END = """
import ctypes, mmap, os, signal, struct, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
size = 1 << 30
start = libc.mmap(None, ctypes.c_size_t(size), 3, 0x4022, -1, ctypes.c_long(0))
with open("/proc/self/stat") as file:
    fields = [0, 0, 0, 0, *map(int, file.read().rsplit(")", 1)[1].split()[1:])]
arguments, environment = fields[48:50], fields[50:52]
if sys.argv[1] == "arguments":
    arguments = [start, start + size]
else:
    environment = [start, start + size]
brk = libc.sbrk
brk.restype = ctypes.c_long
brk.argtypes = [ctypes.c_long]
places = [fields[26], fields[27], fields[45], fields[46], fields[47], brk(0), fields[28]]
sizes = struct.pack("12QII", *places, *arguments, *environment, 0, 0, 0xffffffff)
if libc.prctl(35, 14, sizes, len(sizes), 0) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("ready", flush=True)
time.sleep(1000)
"""


def without_end(machine, as_user, what: str, *within):
    words = [*as_user(MALLORY), *within, sys.executable, "-c", WITHOUT_END, what]
    process = machine.start(*words)
    if process.stdout.readline() != "ready\n":
        pytest.skip(f"this kernel lets no process say where its arguments are: {process.stderr.read()}")
    return process


def with_little_memory(machine, *words, **options):
    return machine.run("prlimit", f"--as={1 << 30}", machine.program, *words, **options)


def test_arguments_without_end_cost_root_no_memory(image, as_user):
    process = without_end(image, as_user, "arguments", image.program, "run", "--exec", "--")
    answer = with_little_memory(image, "release", only_lease(image), "--wait", "1s")
    assert answer.status == 124 and f"these processes still hold it: {process.pid} (" in answer.err
    assert len(answer.err) < 2000


def test_an_environment_without_end_costs_root_no_memory(image, as_user):
    process = without_end(image, as_user, "environment")
    job = Job(image)
    job.starts()
    used = f"[[device.process]]\npid = {process.pid}\nused_mib = 900\n"
    image.change(f'[[device]]\nmodel = "H100"\n[[device]]\nmodel = "H100"\n{used}')
    answer = with_little_memory(image, "list", "-l")
    assert answer.status == 0 and str(process.pid) in answer.out, answer
    job.ends()


@pytest.mark.parametrize("kind", ["directory", "file", "link", "device"])
@pytest.mark.parametrize("user", [0, ALICE])
def test_a_name_that_another_has_taken_lets_no_hanging_probes_gather(image, as_user, user, kind):
    names = [b"stuck-probe%s.%d" % (of, user) for of in (b"", b"-nvml", b"-amd")]
    if kind == "device":  # which is leased, and so locked
        Job(image).starts()
        for name in names:
            device = image.leases / "devices" / image.uuids[0]
            assert image.run(*as_user(MALLORY), "ln", device, image.leases / os.fsdecode(name)).status == 0
    else:
        made(image, as_user, kind, image.leases, *names)
    image.change('[[device]]\nmodel = "H100"\n[[fault]]\ncall = "nvmlDeviceGetMemoryInfo*"\nhang = true\n')
    words = [*(as_user(user) if user else []), image.program, "list"]
    for _ in range(4):
        image.run(*words, env={"BERTH_DRIVER_DEADLINE_MS": 300})
    assert len([pid for pid in image.inhabitants() if is_probe(pid)]) == 1


# Terminals

# Holds the lease of `berth run --exec`. What is given as descriptor 2 is opened by its path alone.
HOLDER = """
import os, sys, time
os.dup2(os.open(sys.argv[1], os.O_PATH), 2)
print("ready", flush=True)
time.sleep(1000)
"""


def released(machine, as_user, path, **more) -> None:
    words = [machine.program, "run", "--exec", "--", sys.executable, "-c", HOLDER, path]
    job = ready(machine.start(*as_user(MALLORY), *words, **more))
    assert machine.berth("release", only_lease(machine), "--because", "it idles").status == 0
    job.wait(DEADLINE_S)


def test_root_opens_no_file_that_a_process_names_as_its_terminal(image, as_user):
    fifo = image.directory / "roots"
    os.mkfifo(fifo, 0o600)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    hung_up = select.poll()
    hung_up.register(reading)
    released(image, as_user, fifo)
    # Somebody who had opened it for writing would have left it by now.
    assert hung_up.poll(0) == []
    os.close(reading)


def test_root_writes_to_no_terminal_of_another(image, as_user):
    ours, theirs = pty.openpty()
    released(image, as_user, os.ttyname(theirs))
    assert select.select([ours], [], [], 0)[0] == []
    os.close(ours)
    os.close(theirs)


def test_root_writes_to_the_terminal_of_the_one_who_is_told(image, as_user):
    ours, theirs = pty.openpty()
    os.fchown(theirs, MALLORY, 5)

    released(image, as_user, os.ttyname(theirs), **at_terminal(theirs))
    text = ""
    with contextlib.suppress(OSError):
        while "it idles" not in text:
            text += os.read(ours, 4096).decode()
    assert "was released by root: it idles" in text
    os.close(ours)


def test_a_terminal_whose_owner_is_another_is_not_written_to(image, as_user):
    ours, theirs = pty.openpty()

    released(image, as_user, os.ttyname(theirs), **at_terminal(theirs))
    assert select.select([ours], [], [], 0)[0] == []
    os.close(ours)
    os.close(theirs)


def test_nothing_is_written_where_the_error_stream_is_not_the_terminal(image, as_user):
    ours, theirs = pty.openpty()
    os.fchown(theirs, MALLORY, 5)

    released(image, as_user, "/dev/null", **at_terminal(theirs))
    assert select.select([ours], [], [], 0)[0] == []
    os.close(ours)
    os.close(theirs)


# The home of a user


def test_root_makes_nothing_below_the_home_of_another(image, as_user):
    """As `sudo` leaves HOME on some systems."""
    home, target = image.directory / "alice", image.directory / "roots"
    home.mkdir()
    os.chown(home, ALICE, ALICE)
    target.mkdir(mode=0o755)
    assert image.run(*as_user(ALICE), "ln", "-s", target, home / ".local").status == 0
    assert image.berth("run", "--no-wait", "--", "true", env={"HOME": home}).status == 0
    assert list(target.iterdir()) == []
    (home / ".local").unlink()
    assert image.berth("run", "--no-wait", "--", "true", env={"HOME": home}).status == 0
    assert list(home.iterdir()) == []
    # Its own it makes.
    own = image.directory / "own"
    own.mkdir()
    assert image.berth("run", "--no-wait", "--", "true", env={"HOME": own}).status == 0
    assert (own / ".local/state/berth/receipts").is_dir()


# Locks of the originals


def test_root_makes_no_lock_file_where_the_link_of_a_user_leads(image, as_user):
    shared, target = image.directory / "shared", image.directory / "roots"
    shared.mkdir()
    shared.chmod(0o1777)
    target.mkdir()
    (image.directory / "site.toml").write_text(f'gpu_scheduler_locks = ["{shared}/gpu_locks"]\n')
    link = shared / "gpu_locks"
    assert image.run(*as_user(MALLORY), "ln", "-s", target, link).status == 0
    answer = image.berth("run", "--no-wait", "--", "true")
    assert answer.status == 0 and f"or is a link of uid {MALLORY}" in answer.err
    assert list(target.iterdir()) == []
    # A link of root's is followed.
    link.unlink()
    link.symlink_to(target)
    assert image.berth("run", "--no-wait", "--", "true").status == 0
    assert [path.name for path in target.iterdir()] == ["gpu_0.lock"]


# Times

TOUCHES = """
import os, sys, time
print("ready", flush=True)
while True:
    os.utime(sys.argv[1])
    time.sleep(0.002)
"""


def test_a_stranger_who_touches_the_folder_of_leases_keeps_nothing_free_from_others(image, as_user):
    """By its time others see that a lease has come or gone. Each look takes longer than the time between two touches."""
    image.change('[[device]]\nmodel = "H100"\n[[fault]]\ncall = "nvmlDeviceGetMemoryInfo*"\ndelay = "30ms"\n')
    ready(image.start(*as_user(MALLORY), sys.executable, "-c", TOUCHES, image.leases / "leases"))
    for options in (["--no-wait"], ["--wait", "1m"]):
        answer = image.run(*as_user(ALICE), image.program, "run", *options, "--", "true")
        assert answer.status == 0, answer
