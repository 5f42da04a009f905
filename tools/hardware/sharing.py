"""The checks of a GPU that several jobs share, with MPS and without, written as those of rows.py."""

import contextlib
import os
import subprocess

from machine import MIB, NotShown, last_line
from rows import listed, seen_if

SHARE = ["--memory", "2G", "--no-wait", "--quiet", "--"]


def run_on(machine, uuid):
    return [machine.berth, "run", "--devices", uuid, *SHARE]


def shares(machine):
    """Two processes, each with a share of one GPU."""
    _, handle = machine.choose()
    uuid = machine.nvml.uuid(handle)
    holders = [machine.hold(handle, before=run_on(machine, uuid), mib=256) for _ in range(2)]
    used = machine.nvml.process_list(handle).processes
    shown = machine.listed(uuid)
    for holder in holders:
        holder.end()
    owned = {process["pid"] for process in shown["processes"] if process["lease"] in shown["leases"]}
    told = "%d leases on the GPU; the processes have %s" % (
        len(shown["leases"]),
        listed("%s MiB" % (used.get(holder.pid, 0) // MIB) for holder in holders),
    )
    listed_pids = {holder.pid for holder in holders} & set(used)
    yield "shares", seen_if(len(shown["leases"]) == 2 and listed_pids <= owned), told


@contextlib.contextmanager
def mps_daemon(uuid):
    """A control daemon of our own, in a folder of our own: no setting of the GPU changes."""
    folder = os.path.join(os.environ["HOME"], "mps")
    os.mkdir(folder)
    places = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    env = {**os.environ, **places, "CUDA_VISIBLE_DEVICES": uuid}
    pipe = subprocess.PIPE
    done = subprocess.run(["nvidia-cuda-mps-control", "-d"], env=env, stdout=pipe, stderr=pipe, check=False)
    if done.returncode != 0:
        said = last_line(done.stderr) or last_line(done.stdout)
        raise NotShown("nvidia-cuda-mps-control ends with %d: %s" % (done.returncode, said))
    try:
        yield places
    finally:
        subprocess.run(
            ["nvidia-cuda-mps-control"], env=env, input=b"quit\n", stdout=pipe, stderr=pipe, check=False
        )


def mps(machine):
    """A share under MPS: who is on which list, what Berth makes of it, and whether the limit of the share holds."""
    nvml = machine.nvml
    _, handle = machine.choose()
    uuid = nvml.uuid(handle)
    with mps_daemon(uuid) as places:
        holder = machine.hold(handle, before=run_on(machine, uuid), mib=256, **places)
        computing = nvml.process_list(handle).processes
        clients = {}
        name = "nvmlDeviceGetMPSComputeRunningProcesses_v3"
        if nvml.has(name):
            clients = nvml.listing(name, handle).processes
        shown = machine.listed(uuid)
        beside = machine.run(*run_on(machine, uuid), "true")
        try:
            machine.hold(handle, before=run_on(machine, uuid), mib=3072, **places).end()
            limit = "a share of 2 GiB could take 3 GiB"
        except NotShown as refused:
            limit = "3 GiB in a share of 2 GiB: %s" % refused
        holder.end()

    def owner(pid):
        if pid == holder.pid:
            return "the client"
        return next(
            (row["command"] or "?" for row in shown["processes"] if row["pid"] == pid), "pid %d" % pid
        )

    told = (
        "on the list of what computes: %s; on that of MPS: %s; Berth says %s, a second share ends with %d; %s"
        % (
            listed(map(owner, computing)),
            listed(map(owner, clients)),
            shown["state"],
            beside.returncode,
            limit,
        )
    )
    good = holder.pid in {*computing, *clients} and beside.returncode == 0 and "could take" not in limit
    yield "mps", seen_if(good), told
