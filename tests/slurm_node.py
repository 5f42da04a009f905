"""A Slurm on this machine, for tests and benchmark: its files, and the commands of its servers. It has one node, or
several that are all this machine. Its GPUs are links to /dev/null: it asks no driver. Its settings schedule as soon as
they can."""

from __future__ import annotations

import dataclasses
import getpass
import os
import pathlib
import shutil
import socket

SETTINGS = """ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MaxJobCount=5000
MinJobAge=2
GresTypes=gpu
SlurmdParameters=config_overrides
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=128 RealMemory=1000 Gres=gpu:{devices} State=UNKNOWN\n"


def program(name: str) -> str | None:
    """Debian puts servers where the PATH of a user does not lead."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclasses.dataclass
class SlurmNode:
    """Its files lie in `folder`. `devices` of each of its `nodes`. `more`: further lines of slurm.conf."""

    folder: pathlib.Path
    devices: int
    more: str = ""
    nodes: int = 1
    host: str = dataclasses.field(default_factory=lambda: socket.gethostname().split(".")[0])

    def __post_init__(self):
        for name in ("state", "dev", *(f"spool/{name}" for name in self.names())):
            (self.folder / name).mkdir(parents=True)
        for index in range(self.devices):
            (self.folder / f"dev/nvidia{index}").symlink_to("/dev/null")
        self.settings = self.folder / "slurm.conf"
        self.settings.write_text(
            SETTINGS.format(
                host=self.host,
                folder=self.folder,
                devices=self.devices,
                user=getpass.getuser(),
                controller_port=free_port(),
            )
            + "".join(
                NODE.format(name=name, host=self.host, port=free_port(), devices=self.devices)
                for name in self.names()
            )
            + self.more
        )
        files = "nvidia0" if self.devices == 1 else f"nvidia[0-{self.devices - 1}]"
        (self.folder / "gres.conf").write_text(
            "".join(f"NodeName={name} Name=gpu File={self.folder}/dev/{files}\n" for name in self.names())
        )
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)

    def names(self) -> list[str]:
        return [self.host] if self.nodes == 1 else [f"node{number}" for number in range(self.nodes)]

    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.settings)}

    def munge(self) -> list[str]:
        """To be started first; `is_open` is then to succeed."""
        own = [
            f"--{name}={self.folder}/munge.{name.split('-')[0]}"
            for name in ("pid-file", "log-file", "seed-file")
        ]
        place = [f"--key-file={self.folder}/munge.key", f"--socket={self.folder}/munge.sock"]
        return [program("munged"), "--foreground", "--force", *place, *own]

    def is_open(self) -> list[str]:
        return ["munge", "-n", "-S", f"{self.folder}/munge.sock"]

    def controller(self) -> list[str]:
        return [program("slurmctld"), "-D", "-i"]

    def daemon(self, node: int = 0) -> list[str]:
        return [program("slurmd"), "-D", "-N", self.names()[node]]
