"""What else answers the question which GPU is free, and which processes are on which: programs and libraries
from PyPI, each in a virtual environment of its own under bench/.peers, made on the first run."""

import dataclasses
import json
import pathlib
import re
import subprocess
from collections.abc import Callable

HOME = pathlib.Path(__file__).resolve().parent / ".peers"
INSTALL_PATIENCE_S = 300


@dataclasses.dataclass
class Peer:
    name: str
    package: str  # with its version; several apart by spaces
    command: list[str]  # the first word lies in the environment's bin
    found: Callable[[str], set[int]]  # stdout -> the devices that it calls free, or processes that it lists
    is_program: bool = True  # else a library, called from the smallest script that uses it


def numbers(text):
    return {int(number) for number in re.findall(r"\d+", text)}


def idle_in_gpustat(text):
    return {gpu["index"] for gpu in json.loads(text)["gpus"] if not gpu["processes"]}


def pids_in_gpustat(text):
    return {process["pid"] for gpu in json.loads(text)["gpus"] for process in gpu["processes"]}


PICKERS = [
    Peer("nvisel (nvitop)", "nvitop==1.7.2", ["nvisel", "-n", "1"], numbers),
    Peer("nvgpu available", "nvgpu==0.10.0", ["nvgpu", "available"], numbers),
    Peer("gpustat --json", "gpustat==1.1.1", ["gpustat", "--json"], idle_in_gpustat),
    Peer(
        "GPUtil (library)",
        "gputil==1.4.0",
        ["python", "-c", "import GPUtil; print(GPUtil.getAvailable(maxMemory=0.1)[0])"],
        numbers,
        is_program=False,
    ),
    Peer(
        "gpuselect (library)",
        "gpuselect==0.1.4",
        ["python", "-c", "import gpuselect; print(gpuselect.gpuselect(count=1))"],
        numbers,
        is_program=False,
    ),
]
LISTERS = [Peer("gpustat --json", "gpustat==1.1.1", ["gpustat", "--json"], pids_in_gpustat)]


def install(peer):
    """The command that runs it. Raises OSError or subprocess.SubprocessError when it cannot be had."""
    home = HOME / peer.package.replace(" ", "+")
    done = home / "installed"
    if not done.exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", home], check=True, capture_output=True)
        subprocess.run(
            [home / "bin/pip", "install", "-q", "--disable-pip-version-check", *peer.package.split()],
            check=True,
            capture_output=True,
            timeout=INSTALL_PATIENCE_S,
        )
        done.touch()
    return [str(home / "bin" / peer.command[0]), *peer.command[1:]]
