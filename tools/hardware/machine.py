"""The machine as the checks use it: the program that is tried, the GPU that is used, and processes on it."""

import json
import os
import pathlib
import subprocess
import sys
import time

from driver import Failed, Nvml

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20


class NotShown(Exception):
    """This machine cannot show a row; the words say why."""


def milliseconds(since):
    return round((time.monotonic() - since) * 1000)


class Holder:
    """A process that computes on a GPU until it is told to end. It ends with whoever started it: its input ends then."""

    def __init__(self, before=(), mib=64, **environment):
        words = [*before, sys.executable, "-B", HERE / "check.py", "--hold", str(mib)]
        pipe = subprocess.PIPE
        surroundings = {**os.environ, **environment}
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=surroundings)
        line = self.process.stdout.readline()
        if not line:
            _, said = self.process.communicate()
            raise NotShown("no process could use the GPU: " + (last_line(said) or "it said nothing"))
        told = json.loads(line)
        self.pid, self.uuids, self.mask = told["pid"], told["uuids"], told["mask"]

    def end(self):
        self.process.communicate()
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()


def last_line(text):
    lines = text.decode(errors="replace").split("\n") if isinstance(text, bytes) else text.split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


class Program:
    """Berth's program, and what ran before it."""

    def __init__(self, cut):
        self.cut = cut  # the checks that did not return
        self.berth = os.fspath(HERE / "berth")

    def run(self, *words):
        """Any program, to its end. The check as a whole has a bound."""
        pipe = subprocess.PIPE
        return subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, universal_newlines=True
        )

    def timed(self, *words):
        start = time.monotonic()
        done = self.run(*words)
        return milliseconds(start), done

    def list(self):
        """What `berth list --json` says."""
        done = self.run(self.berth, "list", "--json")
        if done.returncode != 0:
            raise RuntimeError("berth list ends with %d: %s" % (done.returncode, last_line(done.stderr)))
        return json.loads(done.stdout)

    def listed(self, uuid):
        return next(device for device in self.list()["devices"] if device["uuid"] == uuid)


class Machine(Program):
    """The same with the driver's library started in this process."""

    def __init__(self, cut):
        super().__init__(cut)
        start = time.monotonic()
        self.nvml = Nvml()
        self.start_ms = milliseconds(start)
        self.handles, self.look_up_ms, self.refused = {}, {}, {}
        for index in range(self.nvml.count()):
            self.look_up(index)

    def look_up(self, index):
        start = time.monotonic()
        try:
            handle = self.nvml.handle(index)
            took = milliseconds(start)
            self.nvml.uuid(handle)  # a lost GPU has a handle, and answers nothing
        except Failed as failed:
            self.refused.setdefault(failed.code, []).append(index)
        else:
            self.handles[index], self.look_up_ms[index] = handle, took

    def whole(self):
        """By index, the devices that MIG does not split."""
        return {index: handle for index, handle in self.handles.items() if not self.nvml.is_split(handle)}

    def allowed(self, index, handle):
        """The mask of whoever started this holds."""
        mask = os.environ.get("CUDA_VISIBLE_DEVICES")
        uuid = self.nvml.uuid(handle)
        return mask is None or any(
            word == str(index) or (word.startswith("GPU-") and uuid.startswith(word))
            for word in mask.split(",")
        )

    def choose(self):
        """The index and handle of the GPU that the checks use: the one that is used least."""
        found = {index: handle for index, handle in self.whole().items() if self.allowed(index, handle)}
        if not found:
            raise NotShown("there is no whole GPU that this process may use")

        def load(index):
            try:
                processes = self.nvml.process_list(found[index]).count
            except Failed:
                processes = 0
            return (processes, self.nvml.used(found[index]), index)

        index = min(found, key=load)
        return index, found[index]

    def hold(self, handle, before=(), mib=64, **environment):
        return Holder(before, mib, CUDA_VISIBLE_DEVICES=self.nvml.uuid(handle), **environment)
