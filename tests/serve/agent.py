"""A running `berth serve`, as its clients see it."""

import http.client
import itertools
import json
import re
import signal
import socket
import subprocess

from jobs import Lines
from simulated_machine import DEADLINE_S, Machine

TOKEN = "0123456789abcdef0123456789abcdef"


class Agent:
    """Listens on a port that the system chose, and on a Unix socket. `within`: words that start it elsewhere."""

    SOCKET = "agent.sock"

    def __init__(self, machine: Machine, *options, listen: str = "127.0.0.1:0", within: tuple = (), **more):
        self.socket = machine.directory / self.SOCKET
        words = ("serve", "--listen", listen, "--socket", self.socket, *options)
        self.process = machine.start(*within, machine.program, *words, **more)
        self.err = Lines(self.process.stderr)
        self.warnings = []
        line = self._serving()
        found = re.fullmatch(r"berth: serving (https?)://(.*):(\d+)\n", line)
        assert found, line + self.err.rest()
        self.scheme, self.host, self.port = found[1], found[2], int(found[3])
        assert self._serving() == f"berth: serving unix:{self.socket}\n"
        self._since_h = itertools.count(24)

    def _serving(self) -> str:
        while not (line := self.err.line()).startswith("berth: serving ") and line:
            self.warnings.append(line)
        return line

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)

    def get(self, path: str, method: str = "GET", **headers):
        """Status, header and text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        connection.request(
            method, path, headers={name.replace("_", "-"): text for name, text in headers.items()}
        )
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, response.headers, text

    def json(self, path: str):
        status, _, text = self.get(path)
        assert status == 200, text
        return json.loads(text)

    def usage(self, by: str = "user") -> dict:
        """Of now. Whoever asks for the hours once more within ten seconds is told the same, so each asks for others."""
        return self.json(f"/api/v1/usage?by={by}&since={next(self._since_h)}h")

    def raw(self, request: bytes) -> bytes:
        """What comes back until the agent closes the connection."""
        with self.connect() as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def events(self, path: str = "/api/v1/events"):
        """An event stream: lines without their ends."""
        connection = self.connect()
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        stream = connection.makefile("r", newline="\n")
        while stream.readline().strip():
            pass
        return Events(connection, stream)

    def ends(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_S)


class Events:
    def __init__(self, connection: socket.socket, stream):
        self.connection, self.stream = connection, stream

    def all(self):
        """The name, the id (None where there is none) and the data of each event."""
        fields: dict[str, str] = {}
        while line := self.stream.readline():
            key, colon, value = line.rstrip("\n").partition(": ")
            if colon:
                fields[key] = value
            elif "data" in fields:
                yield fields["event"], fields.get("id"), json.loads(fields["data"])
                fields = {}
        raise AssertionError("the stream ended")

    def next(self, name: str):
        """The data of the next event of this name."""
        return next(data for found, _, data in self.all() if found == name)

    def close(self) -> None:
        self.connection.close()


def curl(*words) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["curl", "-sS", *map(str, words)], capture_output=True, text=True, timeout=DEADLINE_S
    )
