"""Simulated machines to measure on, with the live processes that they list."""

import os
import pathlib
import subprocess
import time

# A file that was changed a moment ago is read again at every call of the simulated driver.
SETTLED_S = 0.05


def sleepers(count):
    return [subprocess.Popen(["sleep", "infinity"], stdin=subprocess.DEVNULL) for _ in range(count)]


def scenario(model, processes_of):
    """`processes_of`: for each device the pids that compute on it."""
    text = ""
    for pids in processes_of:
        text += f'[[device]]\nmodel = "{model}"\n'
        for pid in pids:
            text += f"[[device.process]]\npid = {pid}\nused_mib = {40000 // max(4, len(pids))}\n"
    return text


class Machine:
    """A scenario in `directory`, with `process_count` live processes dealt out to its first `busy` devices.

    `environment` is what a program started by berth-sim has, so that it can be measured without its start.
    """

    def __init__(self, build, directory, model, devices, busy, process_count):
        self.devices = devices
        self.free = set(range(busy, devices))
        self.processes = sleepers(process_count)
        pids = [process.pid for process in self.processes]
        dealt = [pids[i::busy] if i < busy else [] for i in range(devices)]
        self.pids = set(pids)
        self.file = pathlib.Path(directory) / f"{devices}x{model}.toml"
        self.file.write_text(scenario(model, dealt))
        time.sleep(SETTLED_S)
        words = subprocess.run(
            [build / "sim/berth-sim", self.file, "--", "env", "-0"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        self.environment = dict(word.split("=", 1) for word in words.split("\0") if word)

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


class RealMachine:
    """This machine, as it is."""

    def __init__(self):
        self.free = None
        self.pids = None
        self.environment = dict(os.environ)

    def close(self):
        pass
