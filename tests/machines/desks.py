"""Machines on which users sit, each with an agent that knows the store of the lab."""

import contextlib
import socket
import subprocess

from jobs import eventually


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
        host = self.machines.hosts[0].lab
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
