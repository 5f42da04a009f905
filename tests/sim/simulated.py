"""The simulated driver as the tests see it. $BERTH_BUILD names the build directory."""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

DEADLINE_S = 20  # hang guard: everything here answers within milliseconds


def sim_directory() -> pathlib.Path:
    build = pathlib.Path(os.environ.get("BERTH_BUILD", "build/release")).resolve()
    for candidate in (build / "sim", build):
        if (candidate / "berth-sim").exists():
            return candidate
    pytest.exit(f"no berth-sim in {build}: set BERTH_BUILD to a build directory", returncode=2)


SIM = sim_directory()
GENERATIONS = ["r450", "r460", "r470", "r510", "r535.54", "r535.98", "r535.104", "r550", "r570", "r580"]


def eventually(condition, deadline_s=DEADLINE_S):
    """The first true value of condition(); fails past the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "did not become true in time"
        time.sleep(0.005)


def let_others_in(folder: pathlib.Path) -> None:
    """Opens it to other users, and what it lies in: pytest closes its directories."""
    for directory in (folder, *folder.parents):
        if directory == pathlib.Path(tempfile.gettempdir()):
            return
        directory.chmod(0o755)


def as_nobody() -> list:
    """The words that run a command as another user; skips where that cannot be."""
    if os.geteuid() != 0:
        pytest.skip("needs root: acts as another user")
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    if subprocess.run([*prefix, sys.executable, "-c", ""], capture_output=True).returncode != 0:
        pytest.skip("needs a Python that other users may run")
    return prefix


class Machine:
    """A scenario file and the ways to look at it."""

    def __init__(self, directory: pathlib.Path):
        self.directory = directory
        self.file = directory / "machine.toml"
        self._copies = 0

    def write(self, text: str) -> "Machine":
        fresh = self.file.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.file)
        return self

    def env(self, **more) -> dict:
        env = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
        return env | {k: str(v) for k, v in more.items()}

    def command(self, *command) -> list:
        return [str(SIM / "berth-sim"), str(self.file), "--", *map(str, command)]

    def run(self, *command, check=False, env=None) -> subprocess.CompletedProcess:
        return subprocess.run(
            self.command(*command),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=check,
            env=self.env() if env is None else env,
        )

    def python(self, code: str, **env) -> subprocess.CompletedProcess:
        return self.run(sys.executable, "-c", code, env=self.env(**env))

    def smi(self, *arguments) -> subprocess.CompletedProcess:
        return self.run("nvidia-smi", *arguments)

    def load(self, generation="r550", library="libnvidia-ml.so.1") -> ctypes.CDLL:
        """The library in this process. A copy each time, so that each has a state of its own."""
        self._copies += 1
        copy = self.directory / f"{library}.{self._copies}"
        shutil.copy(SIM / generation / library, copy)
        os.environ["BERTH_SIM"] = str(self.file)
        return ctypes.CDLL(str(copy))

    def nvml(self, generation="r550") -> ctypes.CDLL:
        library = self.load(generation)
        assert library.nvmlInit_v2() == 0
        return library

    def device(self, nvml, index=0) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        assert nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0
        return handle

    def pids(self, nvml, index=0, kind="Compute", suffix="_v2") -> list:
        """The listed pids, read with the 24-byte call."""
        rows = (ctypes.c_uint32 * (6 * 256))()
        count = ctypes.c_uint(256)
        code = getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses{suffix}")(
            self.device(nvml, index), ctypes.byref(count), rows
        )
        assert code == 0, code
        return [rows[i * 6] for i in range(count.value)]

    def used(self, nvml, index=0) -> int:
        """MiB in use, without the driver's reserve."""
        memory = (ctypes.c_uint64 * 5)(0x02000028)
        assert nvml.nvmlDeviceGetMemoryInfo_v2(self.device(nvml, index), memory) == 0
        return memory[4] >> 20
