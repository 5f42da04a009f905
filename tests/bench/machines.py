"""Simulated machines to measure on, with the live processes that they list."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import time

from setting import Bench

# The peers can read it: gpuselect ends where a card has no fan, gpu_scheduler wants 20 GiB free.
MODEL = "RTX 4090"
SCENARIO_MODEL = "4090"
# A file that was changed a moment ago is read again at every call of the simulated driver.
SETTLED_S = 0.05


def scenario(processes_of: list[list[int]]) -> str:
    """`processes_of`: for each device the pids that compute on it."""
    text = ""
    for pids in processes_of:
        text += f'[[device]]\nmodel = "{SCENARIO_MODEL}"\n'
        for pid in pids:
            text += f"[[device.process]]\npid = {pid}\nused_mib = {16000 // len(pids)}\n"
    return text


class Machine:
    """`process_count` live processes are dealt out to the first `busy` of its devices.

    `environment` is what a program started by berth-sim has, so that it can be measured without its start; the
    home, the leases and the sockets of everybody's servers in it lie in a directory of the machine's own."""

    title = f"GeForce {MODEL}"

    def __init__(self, bench: Bench, name: str, devices: int, busy: int = 0, process_count: int = 0):
        self.devices: int | None = devices
        self.free: set[int] | None = set(range(busy, devices))
        self.directory = bench.directory / name
        self.home = self.directory / "home"
        self.home.mkdir(parents=True)
        self.directory.chmod(0o755)
        self.processes = [
            subprocess.Popen(["sleep", "infinity"], stdin=subprocess.DEVNULL) for _ in range(process_count)
        ]
        pids = [process.pid for process in self.processes]
        self.pids: set[int] | None = set(pids)
        file = self.directory / "machine.toml"
        file.write_text(scenario([pids[i::busy] if i < busy else [] for i in range(devices)]))
        time.sleep(SETTLED_S)
        self.environment = self.inside(bench.build / "sim/berth-sim", file)

    def inside(self, simulator: pathlib.Path, file: pathlib.Path) -> dict[str, str]:
        done = subprocess.run(
            [simulator, file, "--", "env", "-0"],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | own_places(self.directory),
        )
        return dict(word.split("=", 1) for word in done.stdout.split("\0") if word)

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        end_all_of(self.directory)


def end_all_of(directory: pathlib.Path) -> None:
    """Whatever a server or a peer has left behind: its home lies in there."""
    home = f"HOME={directory}/home\0".encode()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if home in (folder / "environ").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)


def own_places(directory: pathlib.Path) -> dict[str, str]:
    return {
        "HOME": str(directory / "home"),
        "BERTH_SITE_FILE": "/dev/null",
        "SLURM_CONF": str(directory / "slurm/slurm.conf"),
        "TS_SOCKET": str(directory / "tsp"),
        "TMPDIR": str(directory),
        "TMUX_TMPDIR": str(directory),
        "LC_ALL": "C.UTF-8",
    }


def has_driver() -> bool:
    """Whether this machine has GPUs and a driver of its own that works."""
    try:
        return ctypes.CDLL("libnvidia-ml.so.1").nvmlInit_v2() == 0
    except (OSError, AttributeError):
        return False


class RealMachine(Machine):
    """This machine, as it is."""

    def __init__(self, bench: Bench, name: str):
        self.devices = self.free = self.pids = None
        self.directory = bench.directory / name
        self.home = self.directory / "home"
        self.home.mkdir(parents=True)
        self.processes = []
        self.environment = (
            os.environ | own_places(self.directory) | {"BERTH_DIR": str(self.directory / "leases")}
        )
        (self.directory / "leases").mkdir(mode=0o1777)
