"""The peers, installed: Python packages from PyPI, each in an environment of its own under tests/bench/.peers, a Go
module through the Go proxy, and Debian's programs. What cannot be had here is a sentence."""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import shutil
import subprocess

HOME = pathlib.Path(__file__).resolve().parent / ".peers"
PYTHON = "/usr/bin/python3"
PATIENCE_S = 300


class NotHad(Exception):
    """Why a peer is not there."""


# What they depend on is of their own time where today's versions keep them from starting.
PYPI = {
    "nvitop": "nvitop==1.7.2",
    "gpustat": "gpustat==1.1.1",
    "GPUtil": "gputil==1.4.0",
    "gpuselect": "gpuselect==0.1.4 nvidia-ml-py==12.560.30",
    "gpu_utilities": "gpu_utilities==0.2.0 pynvml==11.5.3 Deprecated==1.3.1 wrapt==2.5.2",
    "nvgpu": "nvgpu==0.10.0 nvidia-ml-py==12.560.30 pandas==2.1.4 numpy==1.26.4 arrow==1.2.3 tabulate==0.10.0"
    " termcolor==3.3.0 psutil==7.2.2 requests==2.34.2 Flask==3.1.3 Flask-RESTful==0.3.10 ansi2html==1.9.5 six==1.17.0",
    "safe-gpu": "safe-gpu==2.0.0",
    "pynvml": "nvidia-ml-py==12.570.86",
    "filelock": "filelock==3.20.0",
    "gflow": "runqd==0.4.18",
    "mcp": "mcp==2.3.0",
    "gpu_scheduler": "filelock==3.20.0 pyyaml==6.0.3",
}
DEBIAN = {
    "task-spooler": "tsp",
    "redis": "redis-server",
    "Slurm": "slurmctld",
    "munge": "munged",
    "wrk": "wrk",
    "etcd": "etcd",
    "OpenSSH": "sshd",
}
DEBIAN_PACKAGES = {
    "redis": "redis-server",
    "Slurm": "slurmctld",
    "etcd": "etcd-server",
    "OpenSSH": "openssh-server",
}
CANHAZGPU = "github.com/russellb/canhazgpu@v1.1.3"
PUEUE = "pueue@4.0.4"
BUILD_PATIENCE_S = 1200


def run(words: list[str | pathlib.Path], patience_s: float = PATIENCE_S, **options) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True, timeout=patience_s, **options)


def last_line(error: Exception) -> str:
    text = (getattr(error, "stderr", None) or str(error)).strip()
    return text.splitlines()[-1].strip()[:110] if text else "no reason given"


def environment(name: str) -> pathlib.Path:
    """The environment with this package and nothing else, made when it is not there yet."""
    home, wanted = HOME / name, PYPI[name]
    mark = home / "installed"
    if mark.exists() and mark.read_text() == wanted:
        return home
    try:
        run([PYTHON, "-m", "venv", "--clear", home])
        run([home / "bin/pip", "install", "-q", "--disable-pip-version-check", *wanted.split()])
    except (OSError, subprocess.SubprocessError) as error:
        raise NotHad(f"PyPI's {wanted.split()[0]} does not install: {last_line(error)}") from error
    mark.write_text(wanted)
    return home


def install_all() -> None:
    """Before anything is measured. What cannot be had says so where it is asked for."""
    for make in (*(functools.partial(environment, name) for name in PYPI), canhazgpu, pueue):
        with contextlib.suppress(NotHad):
            make()


def program(name: str) -> str:
    """Debian's program of this peer."""
    found = shutil.which(DEBIAN[name], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise NotHad(f"{DEBIAN[name]} of Debian's packages is not installed")
    return found


def canhazgpu() -> str:
    """Its program: the one that lies in .peers/canhazgpu, else what the Go proxy has."""
    home = HOME / "canhazgpu"
    built = home / "canhazgpu"
    if not built.exists():
        home.mkdir(parents=True, exist_ok=True)
        try:
            run(["go", "install", CANHAZGPU], env=os.environ | {"GOBIN": str(home)})
            (home / "version").write_text(f"{CANHAZGPU.split('@')[1]}\tGo module")
        except FileNotFoundError as error:
            raise NotHad("it needs Go, which is not there") from error
        except (OSError, subprocess.SubprocessError) as error:
            reason = "403" if "403" in str(getattr(error, "stderr", "")) else last_line(error)
            raise NotHad(f"the Go proxy does not give {CANHAZGPU} ({reason})") from error
    return str(built)


def pueue() -> pathlib.Path:
    """The folder of its programs, compiled from crates.io when they are not there yet."""
    home = HOME / "pueue"
    if not (home / "bin/pueued").exists():
        try:
            run(["cargo", "install", "--quiet", "--locked", "--root", home, PUEUE], BUILD_PATIENCE_S)
            (home / "version").write_text(f"{PUEUE.split('@')[1]}\tcrates.io, pueue")
        except FileNotFoundError as error:
            raise NotHad("it needs Rust's cargo, which is not there") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise NotHad(f"crates.io's {PUEUE} does not install: {last_line(error)}") from error
    return home / "bin"


def gpu_scheduler() -> pathlib.Path:
    """The folder that has its package. It is on no registry: PyPI's gpu-scheduler is another program."""
    home = HOME / "gpu_scheduler_source"
    if not (home / "gpu_scheduler").exists():
        raise NotHad("it is on no registry (PyPI's gpu-scheduler is another program)")
    return home


def version_of_debian(name: str) -> str:
    package = DEBIAN_PACKAGES.get(name, name)
    words = ["dpkg-query", "-W", "-f", "${Version}", package]
    return subprocess.run(words, capture_output=True, text=True).stdout or "?"


def version_of_etcd(program: str) -> str:
    """What it says itself: "etcd Version: 3.6.16" and more lines."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=PATIENCE_S).stdout
    return said.split("\n")[0].rpartition(" ")[2] or "?"


def by_hand(folder: pathlib.Path) -> tuple[str, str]:
    """Version and origin of what somebody put there: the two words of its file `version`, apart by a tab."""
    try:
        version, _, origin = (folder / "version").read_text().strip().partition("\t")
    except OSError:
        version, origin = "?", ""
    return version, origin or "put under tests/bench/.peers by hand"


def versions_of_debian() -> list[tuple[str, str, str]]:
    """Name, version and origin of each of Debian's programs, or the reason why it is not there. BERTH_ETCD names another etcd,
    which is then measured."""
    told = []
    for name in DEBIAN:
        if name == "etcd" and "BERTH_ETCD" in os.environ:
            told.append((name, version_of_etcd(os.environ["BERTH_ETCD"]), "named by BERTH_ETCD"))
            continue
        try:
            program(name)
            told.append((name, version_of_debian(name), "Debian"))
        except NotHad as reason:
            told.append((name, "–", str(reason)))
    return told


def versions() -> list[tuple[str, str, str]]:
    """The same of all peers. What is not there yet is installed."""
    told = versions_of_debian()
    for name, wanted in PYPI.items():
        if name != "gpu_scheduler":
            told.append((name, wanted.split()[0].split("==")[1], f"PyPI, {wanted.split('==')[0]}"))
    for name, find, folder in (
        ("canhazgpu", canhazgpu, HOME / "canhazgpu"),
        ("pueue", pueue, HOME / "pueue"),
        ("gpu_scheduler", gpu_scheduler, HOME / "gpu_scheduler_source"),
    ):
        try:
            find()
            told.append((name, *by_hand(folder)))
        except NotHad as reason:
            told.append((name, "–", str(reason)))
    return sorted(told, key=lambda words: words[0].lower())
