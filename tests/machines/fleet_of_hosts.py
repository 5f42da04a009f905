"""Hosts behind sshd: each a simulated machine with a lease directory of its own, and an sshd on a port of loopback."""

import contextlib
import dataclasses
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess

from jobs import eventually
from simulated_machine import BUILD, DEADLINE_S, MOST_OF_A_PROCESS, Machine, machine_text

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))
# How long nobody may take for what is a matter of milliseconds.
PATIENCE_S = 60


def key(path: pathlib.Path) -> pathlib.Path:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True, timeout=DEADLINE_S
    )
    return path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@dataclasses.dataclass
class SshHost:
    """One host: `lab` is its machine, as who sits there sees it."""

    name: str
    machine: Machine
    folder: pathlib.Path
    port: int = 0
    sshd: subprocess.Popen | None = None

    def start(self) -> None:
        """`sshd -D`, which takes a session of its own for each connection."""
        self.sshd = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", self.folder / "sshd_config"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "sshd.log").open("w"),
            start_new_session=True,
        )
        eventually(self.answers)

    def answers(self) -> bool:
        # Where nobody listens yet, a client may get this port, and reach itself.
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as client:
            return client.getsockname() != client.getpeername()
        return False

    def stop(self) -> None:
        if self.sshd is not None:
            self.sshd.kill()
            self.sshd.wait(timeout=DEADLINE_S)

    def sessions(self) -> list[int]:
        """The sshd of each connection."""
        return [pid for pid in children_of(self.sshd.pid)]

    def envoys(self) -> list[int]:
        """Those who stand in line here, or run a command, for somebody elsewhere."""
        return [pid for pid in self.machine.inhabitants() if words_of(pid)[1:2] == ["__envoy"]]

    def tickets(self) -> list[str]:
        """Who waits for or holds a GPU: by the kernel's locks, as `berth list` and `queue` tell it."""
        leases = self.machine.berth("list", "--json").json["leases"]
        waiters = self.machine.berth("queue", "--json").json["waiters"]
        return [each["id"] for each in leases + waiters]


def words_of(pid: int) -> list[str]:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as words:
        return words.read(MOST_OF_A_PROCESS).decode(errors="replace").rstrip("\0").split("\0")
    return []


def parent_of(pid: int) -> int:
    """0: it has ended."""
    with contextlib.suppress(OSError):
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def children_of(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(each) for each in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


class Machines:
    """The hosts, and a user's desk from which they are asked. `env` is what a program on the desk sees. `passed`: a
    variable that ssh takes along, so that what there is of a request on the hosts says whose it is."""

    def __init__(self, folder: pathlib.Path, passed: str = "", build: pathlib.Path = BUILD):
        if os.geteuid() == 0:
            # sshd wants it to be there, for what root has
            pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.folder = folder
        self.build = build
        self.accepts = f"AcceptEnv {passed}\n" if passed else ""
        self.hosts: list[SshHost] = []
        self.running: list[subprocess.Popen] = []
        self.listeners: list[socket.socket] = []
        self.user_key = key(folder / "user_key")
        self.host_key = key(folder / "host_key")
        self.ssh_config = folder / "ssh_config"
        self.known_hosts = folder / "known_hosts"
        self.site = folder / "desk.toml"
        self.known_hosts.touch()
        self.site.touch()
        (folder / "home").mkdir()
        (folder / "work").mkdir()
        self.ssh_config.write_text(
            f"Host *\n  HostName 127.0.0.1\n  User {pwd.getpwuid(os.geteuid()).pw_name}\n"
            f"  IdentityFile {self.user_key}\n  IdentitiesOnly yes\n  IdentityAgent none\n"
            f"  UserKnownHostsFile {self.known_hosts}\n  GlobalKnownHostsFile /dev/null\n"
            "  HashKnownHosts no\n  StrictHostKeyChecking yes\n  LogLevel ERROR\n"
            + (f"  SendEnv {passed}\n" if passed else "")
        )
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "xterm",
            # There is none, so no connection is kept, and each of a test is made and ended in it.
            "XDG_RUNTIME_DIR": str(folder / "no-runtime"),
            "BERTH_SITE_FILE": str(self.site),
            "BERTH_SSH": " ".join(map(str, self.ssh_words())),
        }

    def ssh_words(self) -> list:
        """What is called for each connection; the last word is of no other machines."""
        return ["ssh", "-F", self.ssh_config]

    def name(self, host: str, port: int, more: str = "") -> None:
        """What ssh knows of a host."""
        self.ssh_config.write_text(f"Host {host}\n  Port {port}\n{more}" + self.ssh_config.read_text())
        public = self.host_key.with_suffix(".pub").read_text().split()[:2]
        with self.known_hosts.open("a") as known:
            known.write(f"[127.0.0.1]:{port} {' '.join(public)}\n")

    def add(self, name: str, scenario: str = "2xH100", program: str | None = None, **env) -> SshHost:
        """A host that runs. `program`: what is called berth there; "": nothing is. `env`: variables of its own."""
        folder = self.folder / name
        folder.mkdir()
        machine = Machine(folder, scenario, self.build)
        found = folder / "bin"
        found.mkdir()
        if program is None:
            (found / "berth").symlink_to(machine.program)
        elif program:
            (found / "berth").write_text(program.replace("@BERTH@", str(machine.program)))
            (found / "berth").chmod(0o755)
        machine.env["PATH"] = f"{found}:{machine.env['PATH']}"
        machine.env |= env
        host = SshHost(name, machine, folder)
        self.hosts.append(host)
        self.open(host)
        return host

    def open(self, host: SshHost) -> None:
        """Who is called by ssh HOST from now on comes to it."""
        variables = " ".join(f'"{key}={value}"' for key, value in host.machine.env.items())
        host.port = free_port()
        authorized = host.folder / "authorized_keys"
        authorized.write_text(self.user_key.with_suffix(".pub").read_text())
        (host.folder / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1:{host.port}\nHostKey {self.host_key}\nAuthorizedKeysFile {authorized}\n"
            f"PidFile {host.folder}/sshd.pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
            f"KbdInteractiveAuthentication no\nPermitRootLogin yes\nPermitUserEnvironment no\nUseDNS no\n"
            f"PrintMotd no\nMaxStartups 200\nMaxSessions 200\n{self.accepts}SetEnv {variables}\n"
        )
        self.name(host.name, host.port)
        host.start()

    def add_silent(self, name: str) -> None:
        """A host that takes a connection and never says a word."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.listeners.append(listener)
        self.name(name, listener.getsockname()[1])

    def add_down(self, name: str) -> None:
        """A host on which nothing listens."""
        self.name(name, free_port())

    def names(self) -> str:
        return ",".join(host.name for host in self.hosts)

    def run(self, *words, **options):
        """`berth WORDS` on the desk, to its end."""
        env = self.env | options.pop("env", {})
        options.setdefault("stdin", None if "input" in options else subprocess.DEVNULL)
        return subprocess.run(
            [self.hosts[0].machine.program, *map(str, words)],
            env={name: str(value) for name, value in env.items() if value is not None},
            cwd=options.pop("cwd", self.folder / "work"),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            **options,
        )

    def anywhere(self, *words, hosts: str | None = None, **options):
        """`berth run --anywhere`, on all hosts or those."""
        return self.run("run", "--anywhere", "--hosts", hosts or self.names(), *words, **options)

    def start(self, *words, **options) -> subprocess.Popen:
        """`berth WORDS` on the desk, left running."""
        env = self.env | options.pop("env", {})
        process = subprocess.Popen(
            [self.hosts[0].machine.program, *map(str, words)],
            env=env,
            cwd=self.folder / "work",
            text=True,
            **({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options),
        )
        self.running.append(process)
        return process

    def start_anywhere(self, *words, hosts: str | None = None, **options) -> subprocess.Popen:
        return self.start("run", "--anywhere", "--hosts", hosts or self.names(), *words, **options)

    def close(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
        for host in self.hosts:
            for pid in host.sessions() if host.sshd else []:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            host.stop()
            host.machine.close()
        for listener in self.listeners:
            listener.close()
        for process in self.running:
            if process.stdin is not None and process.stdin.closed:
                process.stdin = None  # which communicate() would flush
            process.communicate(timeout=DEADLINE_S)
        # A runner of jobs starts others.
        while left := self.own_ssh() + self.at_the_desk():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def own_ssh(self) -> list[int]:
        """Every ssh that was started from this desk and still lives."""
        found, own = [], str(self.ssh_words()[-1])
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            if own in words_of(int(entry.name)):
                found.append(int(entry.name))
        return found

    def at_the_desk(self) -> list[int]:
        """Whatever was started there and lives."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError), (entry / "environ").open("rb") as environ:  # it has ended
                if os.fsencode(f"BERTH_SITE_FILE={self.site}") in environ.read(MOST_OF_A_PROCESS):
                    found.append(int(entry.name))
        return found


def change(host: SshHost, scenario: str) -> None:
    host.machine.change(machine_text(scenario))
