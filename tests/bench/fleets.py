"""Several hosts on this machine, each behind an sshd of its own, with desks whose agents share a real etcd."""

from __future__ import annotations

import contextlib
import json
import pathlib
import socket
import sys
import time
from base64 import b64encode
from collections.abc import Iterator

import shelf
from setting import Bench

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS / "machines")]
from desks import Desk, at_desks, busy, place_of  # noqa: E402, F401  (passed on)
from etcd import ETCD, Etcd  # noqa: E402
from fleet_of_hosts import SSHD, Machines  # noqa: E402

TICKETS = "/berth/1/ticket/"
BARE = "/bare"
# Far beyond any answer: only against an etcd that hangs.
PATIENCE_S = 60


def coded(text: str) -> str:
    return b64encode(text.encode()).decode()


def below(prefix: str) -> str:
    """The members of a question about all keys that begin so."""
    return f'"key":"{coded(prefix)}","range_end":"{coded(prefix[:-1] + chr(ord(prefix[-1]) + 1))}"'


class Gateway:
    """The HTTP gateway of etcd, asked with no client between: what is sent is put together before."""

    def __init__(self, port: int):
        self.port = port
        self.socket = self.connect()

    def connect(self) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    @staticmethod
    def request(path: str, body: str) -> bytes:
        return f"POST /v3/{path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()

    def ask(self, path: str, body: str) -> str:
        """The body of the answer, or its first piece."""
        self.socket.sendall(self.request(path, body))
        return self.answer()

    def answer(self) -> str:
        heard = b""
        while b"\r\n\r\n" not in heard:
            heard += self.more(self.socket)
        head, _, body = heard.partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        while len(body) < length:
            body += self.more(self.socket)
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise OSError(f"etcd refuses: {body.decode(errors='replace')[:100]}")
        return body.decode()

    @staticmethod
    def more(source: socket.socket) -> bytes:
        piece = source.recv(65536)
        if not piece:
            raise OSError("etcd has ended the connection")
        return piece

    def put(self, key: str, value: str) -> None:
        self.ask("kv/put", f'{{"key":"{coded(key)}","value":"{coded(value)}"}}')

    def remove(self, key: str) -> None:
        self.ask("kv/deleterange", f'{{"key":"{coded(key)}"}}')

    def count(self, prefix: str) -> int:
        told = json.loads(self.ask("kv/range", f'{{{below(prefix)},"count_only":true}}'))
        return int(told.get("count", 0))

    def watch(self, prefix: str) -> socket.socket:
        """A connection on which etcd tells each change below it, once etcd has said that it does."""
        made = self.connect()
        made.sendall(self.request("watch", f'{{"create_request":{{{below(prefix)}}}}}'))
        heard = b""
        while b'"created":true' not in heard:
            heard += self.more(made)
        return made

    def put_ms(self) -> float:
        """One round trip: something is written."""
        words = self.request("kv/put", f'{{"key":"{coded(BARE)}","value":"{coded("x" * 100)}"}}')
        begin = time.monotonic_ns()
        self.socket.sendall(words)
        self.answer()
        return (time.monotonic_ns() - begin) / 1e6

    def get_ms(self) -> float:
        words = self.request("kv/range", f'{{"key":"{coded(BARE)}"}}')
        begin = time.monotonic_ns()
        self.socket.sendall(words)
        self.answer()
        return (time.monotonic_ns() - begin) / 1e6

    def told_ms(self, watcher: socket.socket) -> float:
        """From the sending of a write until a watcher of /bare has been told of it."""
        words = self.request("kv/put", f'{{"key":"{coded(BARE)}","value":"{coded("x" * 100)}"}}')
        begin = time.monotonic_ns()
        self.socket.sendall(words)
        heard = b""
        while b'"events"' not in heard:
            heard += self.more(watcher)
        took = time.monotonic_ns() - begin
        self.answer()
        return took / 1e6

    def close(self) -> None:
        self.socket.close()


def store(folder: pathlib.Path) -> Etcd:
    """An etcd that writes to its disk."""
    if ETCD is None:
        raise shelf.NotHad("etcd of Debian's packages is not installed")
    made = Etcd(folder, is_lasting=True)
    made.start()
    return made


class Fleet(Machines):
    """The hosts. `etcd` and `desks`: where they were asked for."""

    etcd: Etcd
    desks: list[Desk]

    def ssh(self, host: str, *words: str) -> list[str]:
        return ["ssh", "-F", str(self.ssh_config), host, *words]


@contextlib.contextmanager
def fleet(bench: Bench, name: str, hosts: int, desks: int) -> Iterator[Fleet]:
    """So many hosts with one GPU each: gpu1, gpu2, and so on."""
    if SSHD is None:
        raise shelf.NotHad("sshd of Debian's packages is not installed")
    folder = bench.directory / name
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        made = Fleet(folder, build=bench.build)
        stack.callback(made.close)
        for number in range(hosts):
            made.add(f"gpu{number + 1}", "1xH100")
        etcd = store(folder)
        stack.callback(etcd.kill)
        with at_desks(made, etcd, desks):
            yield made
