"""A machine with container engines, made of mount namespaces: its /run and /etc are its own."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from jobs import eventually
from simulated_machine import BUILD, DEADLINE_S, Answer

ROOT = pathlib.Path(__file__).parents[2]
BASE = ROOT / "build/containers/base.tar"
USER = "ada"
USER_ID = 20077

# What NVIDIA's hook is told, without the driver that it would bring: images here have the simulated
# one.
HOOK = """#!/bin/sh
bundle=$(sed 's/.*"bundle":"\\([^"]*\\)".*/\\1/')
grep -o '"NVIDIA_VISIBLE_DEVICES=[^"]*"' "$bundle/config.json" >>{asked}
"""

# An engine that may not raise limits, as in a sandbox, gives its containers what it has.
DAEMON = """{{"data-root": "{folder}/data", "exec-root": "{folder}/exec", "pidfile": "{folder}/pid",
 "hosts": ["unix:///run/docker.sock"], "iptables": false, "ip6tables": false, "bridge": "none",
 "default-ulimits": {{"nofile": {{"Name": "nofile", "Hard": 1024, "Soft": 1024}}}}}}"""

PODMAN = """[containers]
cgroups = "disabled"
netns = "host"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "crun"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""

UP = """mount --make-rprivate / && mkdir upper work &&
mount -t overlay overlay -o lowerdir=/etc,upperdir=$PWD/upper,workdir=$PWD/work /etc &&
mount -t tmpfs -o mode=755 tmpfs /run && echo up && exec sleep infinity"""

# crun knows either kind of control groups, and not both at once.
ONE_KIND = 'umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"'


class NoMachine(Exception):
    """Why there is none here."""


class Machine:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="berth-containers-", dir="/var/tmp"))
        self.folder.chmod(0o755)
        self.asked = self.folder / "asked"
        self.file = self.folder / "lab.toml"
        self.home = self.folder / "home"
        state = self.folder / "lab.toml.d"  # of the simulated machine, which all its users enter
        state.mkdir()
        state.chmod(0o1777)
        self.shows()
        self.init = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", UP], cwd=self.folder, stdout=subprocess.PIPE, text=True
        )
        self.daemon = None
        if self.init.stdout.readline() != "up\n":
            self.close()
            raise NoMachine("needs the right to mount an overlay")

    def shows(self, pid: int | None = None) -> None:
        """Four GPUs; on the first one this process computes."""
        process = f"[[device.process]]\npid = {pid}\nused_mib = 3000\n" if pid else ""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f'[[device]]\nmodel = "H100"\n{process}[[device]]\nmodel = "H100"\ncount = 3\n')
        fresh.rename(self.file)

    def words(self, *words) -> list[str]:
        """The words that run a command on the machine, as root, who sees no simulated GPU."""
        here = ["nsenter", "--mount", f"--target={self.init.pid}", f"--wdns={ROOT}", *words]
        return [str(word) for word in here]

    def as_user(self, *words, one_kind: bool = False) -> list[str]:
        """The same as an ordinary user, who sees the GPUs."""
        within = ["unshare", "--mount", "sh", "-c", ONE_KIND, "sh"] if one_kind else []
        env = {
            "HOME": self.home,
            "USER": USER,
            "PATH": f"{BUILD}:/usr/local/bin:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
        }
        clean = ["env", "-i", *(f"{name}={value}" for name, value in env.items())]
        become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", "--inh-caps=-all"]
        real = ["env", "-u", "BERTH_DIR", "-u", "XDG_STATE_HOME", f"--chdir={self.home}"]
        inside = [BUILD / "sim/berth-sim", self.file, "--", *real]
        return self.words(*within, *become, *clean, *inside, *words)

    def types(self, text: str, *, one_kind: bool = False) -> subprocess.Popen:
        """An ordinary user types it."""
        words = self.as_user("bash", "-ec", text, one_kind=one_kind)
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    @staticmethod
    def run(words: list[str]) -> Answer:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=4 * DEADLINE_S
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def root(self, *words) -> Answer:
        answer = self.run(self.words(*words))
        assert answer.status == 0, f"{words}\n{answer.out}{answer.err}"
        return answer

    def berth(self, *words) -> Answer:
        return self.run(self.as_user("berth", *words))

    def furnish(self) -> None:
        """A user, the lease directory, and what an engine wants to be there."""
        self.root("useradd", f"--uid={USER_ID}", "--create-home", f"--home-dir={self.home}", USER)
        self.root(BUILD / "berth", "init")
        settings = self.home / ".config/containers"
        self.root("install", "-d", f"--owner={USER}", self.home / ".config", settings)
        (settings / "containers.conf").write_text(PODMAN)
        (settings / "storage.conf").write_text('[storage]\ndriver = "overlay"\n')
        devices = "".join(f'  - {{name: "{n}", containerEdits: {{env: [GPU{n}=yes]}}}}\n' for n in range(4))
        names = self.folder / "nvidia.yaml"
        names.write_text(f'cdiVersion: "0.5.0"\nkind: nvidia.com/gpu\ndevices:\n{devices}')
        self.root("install", "-D", "-m", "644", names, "/etc/cdi/nvidia.yaml")

    def start_docker(self) -> None:
        hooks = self.folder / "hooks"
        hooks.mkdir()
        hook = hooks / "nvidia-container-runtime-hook"
        hook.write_text(HOOK.format(asked=self.asked))
        hook.chmod(0o755)
        (self.folder / "daemon.json").write_text(DAEMON.format(folder=self.folder))
        self.root("usermod", "--append", "--groups", "docker", USER)
        with (self.folder / "docker.log").open("w") as log:
            words = self.words("dockerd", "--config-file", self.folder / "daemon.json")
            path = f"{hooks}:{os.environ['PATH']}"
            self.daemon = subprocess.Popen(words, env={"PATH": path}, stdout=log, stderr=log)
        ready = self.words("docker", "version")
        eventually(lambda: self.daemon.poll() is not None or self.run(ready).status == 0)
        if self.daemon.poll() is not None:
            last = (self.folder / "docker.log").read_text().splitlines()[-1:]
            raise NoMachine(f"dockerd does not start: {last}")

    def close(self) -> None:
        if self.daemon and self.daemon.poll() is None:
            for container in self.run(self.words("docker", "ps", "--all", "--quiet")).out.split():
                self.run(self.words("docker", "rm", "--force", container))
            self.daemon.terminate()
            self.daemon.wait(DEADLINE_S)
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if entry.stat().st_uid == USER_ID:
                    os.kill(int(entry.name), signal.SIGKILL)
        self.init.kill()
        self.init.communicate(timeout=DEADLINE_S)
        shutil.rmtree(self.folder, ignore_errors=True)
