"""The connection that Berth keeps to a host: it serves looks, and whatever becomes of it ends nothing else."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest
from fleet_of_hosts import PATIENCE_S, words_of
from jobs import eventually

OTHER_UID = 12345
# A Berth that says in its folder that it was called. Where `hold` is there, it says what that has
# and is then silent for ever, once. `hold-next` is that of the call after the next. It waits for
# the file that `after` names. Where `floods` is there, it writes errors without end, once.
HELD = """#!/bin/sh
echo called >>@FOLDER@/calls
if mv @FOLDER@/hold @FOLDER@/held 2>/dev/null; then
  [ -s @FOLDER@/held ] && cat @FOLDER@/held
  touch @FOLDER@/holds
  exec sleep 1000
fi
mv @FOLDER@/floods @FOLDER@/flooded 2>/dev/null && exec yes flood >&2
mv @FOLDER@/hold-next @FOLDER@/hold 2>/dev/null
[ -e @FOLDER@/after ] && until [ -e "$(cat @FOLDER@/after)" ]; do sleep 0.02; done
exec @BERTH@ "$@"
"""


class Kept:
    """gpu1 and gpu2, asked from a desk that keeps its connections in `folder`."""

    def __init__(self, machines, runtime: pathlib.Path):
        self.machines, self.runtime = machines, runtime
        self.folder = runtime / "berth"
        machines.env["XDG_RUNTIME_DIR"] = str(runtime)
        for name in ("gpu1", "gpu2"):
            machines.add(name, "1xH100", program=HELD.replace("@FOLDER@", str(machines.folder / name)))
        self.gpu1, self.gpu2 = machines.hosts

    def look(self, hosts: str = "gpu1,gpu2", **options) -> None:
        """All of them answer."""
        answer = self.machines.run("list", "--anywhere", "--hosts", hosts, **options)
        assert (answer.returncode, answer.stderr) == (0, ""), answer.stdout
        assert f"{len(hosts.split(','))} host" in answer.stdout and "down" not in answer.stdout, answer.stdout

    def start_to_look(self, host, says: str = "") -> subprocess.Popen:
        """It has called Berth there, which says this and is then silent."""
        (host.folder / "hold").write_text(says)
        look = self.machines.start("list", "--anywhere", "--hosts", host.name)
        eventually((host.folder / "holds").exists, PATIENCE_S)
        return look

    def hello(self) -> str:
        """What an envoy of gpu1 says first."""
        return f"berth-envoy 1\nversion={self.gpu1.machine.berth('version').out.split()[1]}\nend\n"

    def sockets(self) -> list[pathlib.Path]:
        return sorted(self.folder.iterdir()) if self.folder.is_dir() else []

    def ask_master(self, at: pathlib.Path, what: str) -> str:
        words = ["ssh", "-F", "/dev/null", "-o", f"ControlPath={at}", "-O", what, "none"]
        return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S).stderr

    def master(self, at: pathlib.Path) -> int:
        return int(re.search(r"pid=(\d+)", self.ask_master(at, "check"))[1])

    def kill_masters(self) -> None:
        for at in self.sockets():
            os.kill(self.master(at), signal.SIGKILL)

    def close(self) -> None:
        for at in self.sockets():
            self.ask_master(at, "exit")
        eventually(lambda: not [at for at in self.sockets() if "pid=" in self.ask_master(at, "check")])


@pytest.fixture
def runtime():
    with tempfile.TemporaryDirectory(prefix="run") as folder:  # the path of a socket is short
        yield pathlib.Path(folder)


@pytest.fixture
def kept(machines, runtime):
    kept = Kept(machines, runtime)
    yield kept
    kept.close()


def test_what_looks_next_has_the_connection_of_what_looked_first(kept):
    for _ in range(3):
        kept.look()
        assert [len(host.sessions()) for host in (kept.gpu1, kept.gpu2)] == [1, 1]
    for words in (("why", "-n", "1"), ("queue",), ("jobs",), ("list", "--json")):
        answer = kept.machines.run(words[0], "--anywhere", "--hosts", "gpu1,gpu2", *words[1:])
        assert (answer.returncode, answer.stderr) == (0, ""), words
        assert [len(host.sessions()) for host in (kept.gpu1, kept.gpu2)] == [1, 1]
    assert len(kept.sockets()) == 2 and kept.folder.stat().st_mode & 0o777 == 0o700
    eventually(lambda: kept.gpu1.envoys() == [])


def test_a_kept_connection_that_has_ended_is_made_again(kept):
    kept.look()
    kept.kill_masters()
    kept.look()
    assert len(kept.sockets()) == 2
    eventually(lambda: len(kept.gpu1.sessions()) == 1)


@pytest.mark.parametrize("has_greeted", [False, True])
def test_a_look_whose_connection_is_killed_asks_again(kept, has_greeted):
    kept.look("gpu1")
    look = kept.start_to_look(kept.gpu1, kept.hello() if has_greeted else "")
    kept.kill_masters()
    out, err = look.communicate(timeout=PATIENCE_S)
    assert (look.returncode, err) == (0, "") and "down" not in out


def test_a_kept_connection_that_says_nothing_is_not_waited_for(kept):
    kept.look("gpu1")
    (at,) = kept.sockets()
    master = kept.master(at)
    os.kill(master, signal.SIGSTOP)
    try:
        kept.look("gpu1")
    finally:
        os.kill(master, signal.SIGCONT)


@pytest.mark.parametrize("what", ["hold", "floods"])
def test_a_kept_connection_over_which_something_never_ends_is_ended(kept, what):
    kept.look("gpu1")
    (master,) = map(kept.master, kept.sockets())
    (kept.gpu1.folder / what).write_text("")
    kept.look("gpu1")
    assert (kept.gpu1.folder / {"hold": "held", "floods": "flooded"}[what]).exists()
    eventually(lambda: kept.gpu1.sessions() == [] and kept.sockets() == [] and not any(words_of(master)))
    # Who only sleeps is left alone by an ssh server, and who writes finds that nobody reads.
    eventually(lambda: not any(words_of(pid)[:1] == ["yes"] for pid in kept.gpu1.machine.inhabitants()))


HANGING = '[[device]]\nmodel = "H100"\n[[fault]]\ncall = "nvmlDeviceGetMemoryInfo*"\nhang = true\n'


def test_a_look_at_a_driver_that_hangs_ends_with_who_looks(kept):
    """Whoever is killed leaves nothing there that waits for the driver, nor for its own answer to be read."""
    kept.look("gpu1")
    kept.gpu1.machine.change(HANGING)
    look = kept.machines.start("list", "--anywhere", "--hosts", "gpu1")
    eventually(kept.gpu1.envoys, PATIENCE_S)
    look.kill()
    killed_at = time.monotonic()
    eventually(lambda: kept.gpu1.envoys() == [])
    # By itself it would wait 10 s for the driver.
    assert time.monotonic() - killed_at < 5


def test_one_that_takes_no_more_sessions_costs_a_connection(kept):
    config = kept.gpu1.folder / "sshd_config"
    config.write_text(config.read_text().replace("MaxSessions 200", "MaxSessions 1"))
    kept.gpu1.stop()
    kept.gpu1.start()
    kept.look("gpu1")
    first = kept.start_to_look(kept.gpu1)
    kept.look("gpu1")
    first.kill()


def test_a_command_that_runs_does_not_hang_on_a_kept_connection(kept):
    kept.look("gpu1")
    job = kept.machines.start_anywhere(
        *("--", "sh", "-c", "echo ready; read line; echo $line"), hosts="gpu1", stdin=subprocess.PIPE
    )
    assert job.stdout.readline() == "ready\n"
    kept.kill_masters()
    eventually(lambda: len(kept.gpu1.sessions()) == 1)
    kept.look("gpu1")
    out, err = job.communicate("still there\n", timeout=PATIENCE_S)
    assert (job.returncode, out, err) == (0, "still there\n", "")


def test_a_start_does_not_notice_that_a_kept_connection_ends(kept):
    kept.look("gpu1")
    (kept.gpu1.folder / "hold").touch()
    # Else the job may start and end there before gpu1 is called.
    (kept.gpu2.folder / "after").write_text(str(kept.gpu1.folder / "holds"))
    job = kept.machines.start_anywhere("--", "echo", "done", hosts="gpu1,gpu2")
    eventually((kept.gpu1.folder / "holds").exists, PATIENCE_S)
    kept.kill_masters()
    out, err = job.communicate(timeout=PATIENCE_S)
    assert (job.returncode, out, err) == (0, "done\n", "")


def test_a_call_that_changes_something_is_made_over_a_connection_of_its_own(kept):
    holder = kept.gpu1.machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert holder.stdout.readline() == "ready\n"
    kept.look()
    (lease,) = kept.gpu1.tickets()
    answer = kept.machines.run("release", "--anywhere", "--hosts", "gpu1,gpu2", lease)
    assert answer.returncode == 0, answer.stderr
    assert holder.wait(timeout=PATIENCE_S) != 0


def test_such_a_call_is_not_made_again_if_its_connection_is_lost(kept):
    holder = kept.gpu1.machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert holder.stdout.readline() == "ready\n"
    kept.look("gpu1")
    (lease,) = kept.gpu1.tickets()
    calls = kept.gpu1.folder / "calls"
    calls.unlink()
    (kept.gpu1.folder / "hold-next").write_text(kept.hello())
    call = kept.machines.start("release", "--anywhere", "--hosts", "gpu1", lease)
    eventually((kept.gpu1.folder / "holds").exists, PATIENCE_S)
    for pid in kept.gpu1.sessions():
        os.kill(pid, signal.SIGKILL)
    _, err = call.communicate(timeout=PATIENCE_S)
    assert call.returncode != 0 and "the connection is lost" in err
    assert calls.read_text().count("called") == 2 and kept.gpu1.tickets() == [lease]


def test_what_others_have_left_is_swept(kept):
    kept.look("gpu1")
    stale = kept.folder / "0123456789abcdef"
    crashed = kept.folder / "0123456789abcdef.QmSyE0dPJ1xbLk3M"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(crashed))
    os.utime(crashed, (0, 0))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(stale))
        listener.listen()
        kept.look("gpu2")
        assert stale.exists() and not crashed.exists()
    for at in set(kept.sockets()) - {stale}:
        kept.ask_master(at, "exit")
    kept.look()
    assert not stale.exists() and len(kept.sockets()) == 2


def test_a_changed_address_has_another_connection(kept):
    kept.look("gpu1")
    config = kept.machines.ssh_config
    config.write_text(f"Host gpu1\n  Port {kept.gpu2.port}\n" + config.read_text())
    assert kept.gpu2.sessions() == []
    kept.look("gpu1")
    assert len(kept.gpu2.sessions()) == 1 and len(kept.sockets()) == 2


def open_to_others(kept) -> None:
    kept.folder.mkdir(mode=0o700)
    kept.folder.chmod(0o750)


def a_link(kept) -> None:
    (kept.runtime / "elsewhere").mkdir(mode=0o700)
    kept.folder.symlink_to(kept.runtime / "elsewhere")


def of_another(kept) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: acts as other users")
    kept.folder.mkdir(mode=0o700)
    os.chown(kept.folder, OTHER_UID, OTHER_UID)


def below_what_others_may_write(kept) -> None:
    kept.runtime.chmod(0o770)


def wanted_each(kept) -> None:
    kept.machines.site.write_text('connection = "each"\n')


@pytest.mark.parametrize(
    "arrange", [open_to_others, a_link, of_another, below_what_others_may_write, wanted_each]
)
def test_no_connection_is_kept(kept, arrange):
    arrange(kept)
    kept.look()
    kept.look()
    assert kept.sockets() == [] and not list(kept.runtime.glob("elsewhere/*"))
    eventually(lambda: kept.gpu1.sessions() + kept.gpu2.sessions() == [])


def test_the_user_s_own_way_to_share_connections_is_taken(kept):
    own = kept.runtime / "own"
    config = kept.machines.ssh_config
    config.write_text(
        f"Host *\n  ControlMaster auto\n  ControlPath {own}-%n\n  ControlPersist 600\n" + config.read_text()
    )
    kept.look()
    kept.look()
    try:
        assert kept.sockets() == []
        assert [len(host.sessions()) for host in (kept.gpu1, kept.gpu2)] == [1, 1]
    finally:
        for name in ("gpu1", "gpu2"):
            kept.ask_master(pathlib.Path(f"{own}-{name}"), "exit")


def test_without_a_runtime_folder_the_sockets_are_in_the_home(machines, runtime):
    kept = Kept(machines, runtime)
    home = runtime / "home"
    home.mkdir(mode=0o755)
    del machines.env["XDG_RUNTIME_DIR"]
    machines.env["HOME"] = str(home)
    kept.folder = home / ".local" / "state" / "berth" / "ssh"
    try:
        kept.look()
        assert len(kept.sockets()) == 2 and kept.folder.stat().st_mode & 0o777 == 0o700
    finally:
        kept.close()
        shutil.rmtree(home)
