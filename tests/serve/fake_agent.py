"""Agents as they should not be, for a hub to ask."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable

Reply = Callable[["FakeAgent", socket.socket, bytes], None]


class FakeAgent:
    """Listens on a port of its own; `reply` gets each request and says what it likes. Counts connections and
    keeps the requests."""

    def __init__(self, reply: Reply, tls: ssl.SSLContext | None = None):
        self.reply, self.tls = reply, tls
        self.connections = 0
        self.requests: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ended = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def close(self) -> None:
        self.ended.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection:
                while request := _read_request(connection):
                    self.requests.append(request)
                    self.reply(self, connection, request)


def _read_request(connection: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        more = connection.recv(4096)
        if not more:
            return b""
        request += more
    return request


def answering(body: str | bytes, status: str = "200 OK", header: str = "") -> Reply:
    body = body.encode() if isinstance(body, str) else body
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{header}\r\n".encode()
    return lambda agent, connection, request: connection.sendall(head + body)


def saying(text: bytes) -> Reply:
    """These bytes, and then the end."""

    def reply(agent: FakeAgent, connection: socket.socket, request: bytes) -> None:
        connection.sendall(text)
        connection.close()

    return reply


def silent(agent: FakeAgent, connection: socket.socket, request: bytes) -> None:
    agent.ended.wait()


def dripping(agent: FakeAgent, connection: socket.socket, request: bytes) -> None:
    """A byte now and then, for ever."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not agent.ended.wait(0.05):
        connection.sendall(b" ")
