"""Fixtures for all tests of the program. tests/simulated_machine.py says what a Machine is."""

import collections
import contextlib
import ctypes
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import pytest
from simulated_machine import BUILD, Machine

# What the shell that starts the tests may have changed for all below it: `umask 077`, and signals
# that `nohup` or a script's `&` ignores. A handler that does nothing ignores a signal as well, and
# no program that is started inherits it.
os.umask(0o022)
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, lambda *_: None)


@pytest.hookimpl(trylast=True)  # after `-m` has left out what it does
def pytest_collection_modifyitems(items):
    """Files that take long begin first, then those of many tests: a worker takes a whole file, and
    at the end the others have nothing to do while it is at its last one."""
    tests = collections.Counter(item.path for item in items)
    items.sort(key=lambda item: (item.get_closest_marker("long") is None, -tests[item.path]))


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> pathlib.Path:
    """The documents as `./dev docs` builds them: a broken link, a missing anchor or a page in no menu is an error."""
    if "BERTH_SITE" in os.environ:  # ./dev test has built it
        return pathlib.Path(os.environ["BERTH_SITE"])
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "site"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes first builds it for all
        if not (folder / "index.html").exists():
            done = subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
                cwd=pathlib.Path(__file__).parents[1],
                env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture
def make_machine(tmp_path):
    """A simulated machine: make_machine("2xA100+2xT4"), or a scenario's text. A second one is another machine."""
    machines = []

    def make(scenario: str = "8xH100") -> Machine:
        directory = tmp_path / f"machine{len(machines)}"
        directory.mkdir()
        machines.append(Machine(directory, scenario))
        return machines[-1]

    yield make
    for machine in machines:
        machine.close()


@pytest.fixture
def in_order(make_machine):
    """As make_machine, at a site where nobody starts in front of an earlier rival."""

    def make(scenario: str) -> Machine:
        machine = make_machine(scenario)
        (machine.directory / "site.toml").write_text("backfill = false\n")
        return machine

    return make


@pytest.fixture
def machine(make_machine) -> Machine:
    """Eight H100."""
    return make_machine()


@pytest.fixture
def small_disk():
    """Gives a directory a file system of its own, of this size, until the test is over."""
    with contextlib.ExitStack() as mounted:

        def mount(directory: pathlib.Path, size: str, mode: str) -> pathlib.Path:
            words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode={mode}", "tmpfs", str(directory)]
            if subprocess.run(words, stderr=subprocess.DEVNULL).returncode != 0:
                pytest.skip("needs the right to mount")
            mounted.callback(subprocess.run, ["umount", "-l", str(directory)], check=True)
            return directory

        yield mount


@pytest.fixture
def small_machine(make_machine, small_disk) -> Machine:
    """Two H100, and a lease directory with a small file system of its own."""
    machine = make_machine("2xH100")
    small_disk(machine.leases, "128k", "1777")
    return machine


@pytest.fixture
def as_user():
    """Words that run a command as another user."""
    if os.geteuid() != 0:
        pytest.skip("needs root: acts as other users")
    return lambda uid: ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all"]


@pytest.fixture
def open_machine():
    """Two H100, on a machine that every user may enter: pytest's own directories are closed to others."""
    with tempfile.TemporaryDirectory(prefix="berth-lab-") as directory:
        path = pathlib.Path(directory)
        path.chmod(0o755)
        machine = Machine(path, "2xH100")
        yield machine
        machine.close()


@pytest.fixture(scope="session")
def build():
    """The build directory under test."""
    return BUILD


def has_driver() -> bool:
    try:
        return ctypes.CDLL("libnvidia-ml.so.1").nvmlInit_v2() == 0
    except OSError:
        return False


@pytest.fixture(scope="session")
def real_driver():
    """For a test that looks at a real GPU."""
    if not has_driver():
        pytest.skip("needs a real driver")


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """A lab's own authority, and what it signed: a server and a client."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=lab")
    for name in ("server", "client"):
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
        files = ("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        openssl("req", "-x509", *key, *signed, *files)
    return folder
