"""A real etcd, of one member or of several, on ports of loopback."""

import contextlib
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from base64 import b64decode, b64encode

from jobs import eventually
from simulated_machine import DEADLINE_S

# BERTH_ETCD: one of another version than the system's, as `./dev test etcd` has them. One that is
# not there is an error, and no reason to skip what needs it.
ETCD = os.environ.get("BERTH_ETCD") or shutil.which(
    "etcd", path="/usr/bin:/usr/local/bin:" + os.environ.get("PATH", "")
)
# The kernel gives these to nobody who only connects: a member that is down finds its own port free
# again.
LASTING_PORTS = (20000, 32000)


def lasting_port() -> int:
    while True:
        port = random.randrange(*LASTING_PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class Etcd:
    """One member. `authority`: it speaks TLS, and wants certificates that this has signed. `is_lasting`: what it has
    acknowledged is on the disk, as in a lab; a test does not wait for the disk."""

    def __init__(self, folder, authority=None, name="one", is_lasting=False):
        self.data = folder / "etcd" / name
        self.authority = authority
        self.name = name
        self.is_lasting = is_lasting
        self.port = lasting_port()
        self.url = f"{'https' if authority else 'http'}://127.0.0.1:{self.port}"
        self.urls = [self.url]
        self.peer_url = f"http://127.0.0.1:{lasting_port()}"
        self.members = [self]
        self.process = None
        self.token = ""  # of root, where users have passwords
        self.quota = 0  # bytes of its file; 0: as much as etcd takes

    def tls(self):
        files = {"cert-file": "server.pem", "key-file": "server.key", "trusted-ca-file": "ca.pem"}
        named = [f"--{option}={self.authority / name}" for option, name in files.items()]
        return [*named, "--client-cert-auth"]

    def start(self):
        self.launch()
        eventually(self.answers)

    def launch(self):
        self.data.parent.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [
                ETCD,
                *("--data-dir", self.data, "--name", self.name, "--log-level", "error"),
                *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
                *("--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url),
                *("--initial-cluster", ",".join(f"{each.name}={each.peer_url}" for each in self.members)),
                *(() if self.is_lasting else ("--unsafe-no-fsync",)),
                *(("--quota-backend-bytes", str(self.quota)) if self.quota else ()),
                *(self.tls() if self.authority else []),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def lets_root_in(self) -> bool:
        with contextlib.suppress(OSError):
            self.log_in()
        return bool(self.token)

    def answers(self) -> bool:
        with contextlib.suppress(OSError):
            return self.ask("kv/range", key="a") is not None
        return False

    def ask(self, path, **body):
        coded = {key: b64encode(str(value).encode()).decode() for key, value in body.items()}
        return self.post(path, coded)

    def refuses(self, path, **body) -> bool:
        try:
            self.ask(path, **body)
        except urllib.error.HTTPError as error:
            return b"permission denied" in error.read()
        return False

    def post(self, path, body):
        shown = {"Authorization": self.token} if self.token else {}
        request = urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body).encode(), shown)
        with urllib.request.urlopen(request, timeout=5, context=self.trust()) as answer:
            return json.load(answer)

    def trust(self):
        if self.authority is None:
            return None
        trust = ssl.create_default_context(cafile=self.authority / "ca.pem")
        trust.load_cert_chain(self.authority / "client.pem", self.authority / "client.key")
        return trust

    def leads(self) -> bool:
        """Whether it is the one of all members that decides."""
        status = self.post("maintenance/status", {})
        return status["leader"] == status["header"]["member_id"]

    def pairs(self, folder) -> dict:
        """{name: what etcd says of it} below /berth/1/FOLDER/."""
        start = f"/berth/1/{folder}/"
        found = self.ask("kv/range", key=start, range_end=start[:-1] + "0").get("kvs", [])
        return {b64decode(each["key"]).decode().removeprefix(start): each for each in found}

    def keys(self, folder) -> dict:
        """{name: (value, id of the lease)} below /berth/1/FOLDER/."""
        return {
            name: (b64decode(each.get("value", "")).decode(), each.get("lease"))
            for name, each in self.pairs(folder).items()
        }

    def places(self) -> dict:
        """{id of a ticket: its place in the line}"""
        return {name: int(each["create_revision"]) for name, each in self.pairs("ticket").items()}

    def want_passwords(self):
        """Of root, and of the user berth, who may read and write below /berth/1/ alone."""
        everything = {"key": b64encode(b"/berth/1/").decode(), "range_end": b64encode(b"/berth/10").decode()}
        for user, role in (("root", "root"), ("berth", "berth")):
            self.post("auth/user/add", {"name": user, "password": f"of {user}"})
            self.post("auth/role/add", {"name": role})
            self.post("auth/user/grant", {"user": user, "role": role})
        self.post("auth/role/grant", {"name": "berth", "perm": {"permType": "READWRITE"} | everything})
        self.post("auth/enable", {})
        self.log_in()

    def log_in(self):
        self.token = ""
        self.token = self.post("auth/authenticate", {"name": "root", "password": "of root"})["token"]

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=DEADLINE_S)
            self.process = None


class EtcdOfMembers:
    """Several that are one store. Each is killed, stopped and launched by itself."""

    authority = None

    def __init__(self, folder, count):
        self.members = [Etcd(folder, name=f"member{number}") for number in range(count)]
        for member in self.members:
            member.members = self.members
        self.urls = [member.url for member in self.members]

    def start(self):
        for member in self.members:
            member.launch()
        eventually(lambda: all(member.answers() for member in self.members))

    def keys(self, folder) -> dict:
        return self.as_one_has_it(lambda member: member.keys(folder))

    def places(self) -> dict:
        return self.as_one_has_it(lambda member: member.places())

    def as_one_has_it(self, read):
        """The first one that answers."""
        for member in self.members:
            with contextlib.suppress(OSError):
                return read(member)
        raise OSError("no member of etcd answers")

    def kill(self):
        for member in self.members:
            member.kill()
