"""Machines on which users sit, each with an agent that knows the store of the lab."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess

import pytest
from etcd import ETCD, Etcd
from jobs import eventually
from simulated_machine import DEADLINE_S


class Desk:
    """A machine on which a user sits: an agent with the store, and a site file that names its socket."""

    def __init__(self, machines, etcd, name):
        self.machines = machines
        self.etcd = etcd
        self.name = name
        self.socket = machines.folder / f"{name}.sock"
        self.site = machines.folder / f"{name}.toml"
        self.site.write_text(f'store = "{self.socket}"\n')
        self.log = machines.folder / f"{name}.log"
        self.password = None  # file of the one that it shows
        self.stores = etcd.urls  # where it reaches it
        self.agent = None

    def launch_agent(self, ca="ca.pem"):
        host = self.machines.hosts[0].machine
        folder = self.etcd.authority
        files = {"ca": ca, "cert": "client.pem", "key": "client.key"} if folder else {}
        login = ("--store-user", "berth", "--store-password-file", self.password) if self.password else ()
        self.agent = host.start_berth(
            *("serve", "--no-history", "--listen", "127.0.0.1:0", "--every", "60"),
            *("--store-socket", self.socket, "--store-name", self.name),
            *(word for url in self.stores for word in ("--store", url)),
            *(f"--store-{option}={folder / name}" for option, name in files.items()),
            *login,
            stdout=subprocess.DEVNULL,
            stderr=self.log.open("a"),
        )

    def start_agent(self):
        self.launch_agent()
        eventually(self.listens)
        eventually(lambda: self.name in self.etcd.keys("alive"))

    def listens(self) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asker:
            asker.connect(str(self.socket))
            return True
        return False

    def env(self):
        return {"BERTH_SITE_FILE": str(self.site)}

    def start(self, *words, hosts=None):
        return self.machines.start_anywhere(*words, hosts=hosts, env=self.env())

    def waits(self, *words, hosts=None):
        """One more in the line, when it stands there."""
        before = len(self.etcd.keys("ticket"))
        job = self.start(*words, hosts=hosts)
        eventually(lambda: len(self.etcd.keys("ticket")) == before + 1)
        return job


@contextlib.contextmanager
def at_desks(machines, etcd, count):
    """desk1, desk2 and so on, whose agents run. In the end what runs is killed before its machine ends."""
    machines.etcd = etcd
    machines.desks = [Desk(machines, etcd, f"desk{number + 1}") for number in range(count)]
    for desk in machines.desks:
        desk.start_agent()
    yield machines
    for process in machines.running:
        if process.poll() is None:
            process.kill()


@contextlib.contextmanager
def lab_with(two, authority=None):
    """The hosts of `two`, an etcd of one member, and two desks."""
    if ETCD is None:
        pytest.skip("needs etcd-server")
    etcd = Etcd(two.folder, authority)
    etcd.start()
    with at_desks(two, etcd, 2):
        yield two
    if etcd.process is not None:
        etcd.process.send_signal(signal.SIGCONT)
    etcd.kill()


def busy(host):
    """Somebody there has its one GPU."""
    process = host.machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == "ready\n"
    return process


@contextlib.contextmanager
def as_seen_by_the_kernel(uid):
    """What is connected here is another user's, who may go where root may."""
    libc = ctypes.CDLL(None)
    os.seteuid(uid)
    libc.setfsuid(0)
    try:
        yield
    finally:
        os.seteuid(0)


def place_of(desk, mark, host="gpu1", uid=0, lane=1):
    """A place in the line, by hand: the lines that the agent says."""
    asker = socket.socket(socket.AF_UNIX)
    asker.settimeout(DEADLINE_S)
    with as_seen_by_the_kernel(uid) if uid else contextlib.nullcontext():
        asker.connect(str(desk.socket))
    asker.sendall(f"wait {mark} {lane} {host} {lane}\n".encode())
    return asker, asker.makefile("r")
