"""SIGHUP: what it changes for those who are connected, and that a bad change changes nothing."""

import contextlib
import http.client
import random
import signal
import socket

import pytest
from agent import Agent, Events, curl
from jobs import Lines
from simulated_machine import DEADLINE_S

OLD, NEW = "0123456789abcdef-old", "0123456789abcdef-new"
READ_AGAIN = "berth: read the settings again\n"


def quiet_port() -> int:
    """A free one that the kernel gives no client by chance, on whatever address."""
    for port in random.sample(range(20_000, 32_000), 1000):
        with contextlib.suppress(OSError), socket.create_server(("0.0.0.0", port)):
            return port
    raise AssertionError("no port is free")


def test_a_port_moves_to_another_address_and_back_when_that_fails(machine):
    file = machine.directory / "serve.toml"
    port = quiet_port()
    file.write_text(f'listen = ["127.0.0.1:{port}"]\n')
    process = machine.start_berth("serve", "--config", file)
    err = Lines(process.stderr)
    assert err.line().endswith(f":{port}\n")

    def answers(address: str) -> bool:
        return curl(f"http://{address}:{port}/healthz").stdout == "ok\n"

    def reload(*addresses: str) -> str:
        file.write_text(f"listen = {[f'{address}:{port}' for address in addresses]}\ninsecure = true\n")
        process.send_signal(signal.SIGHUP)
        return err.line()

    # The first of the two can be had when the present one has been left, the second never.
    assert f"went on with the old settings: 0.0.0.0:{port} is taken" in reload("127.53.0.2", "0.0.0.0")
    assert answers("127.0.0.1")
    assert not answers("127.53.0.2")
    assert reload("0.0.0.0") == READ_AGAIN
    assert answers("127.0.0.1")
    assert answers("127.53.0.2")
    assert reload("127.0.0.1") == READ_AGAIN
    assert answers("127.0.0.1")
    assert not answers("127.53.0.2")


@pytest.fixture
def guarded(machine):
    """An agent with a token, and a way to change it."""
    file = machine.directory / "token"
    file.write_text(OLD)
    file.chmod(0o600)
    agent = Agent(machine, "--token-file", file)

    def change(token: str) -> None:
        file.write_text(token)
        agent.process.send_signal(signal.SIGHUP)
        assert agent.err.line() == READ_AGAIN

    return agent, change


def stream(agent: Agent, token: str) -> Events:
    connection = agent.connect()
    connection.sendall(
        f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    events = Events(connection, connection.makefile("r", newline="\n"))
    events.next("snapshot")
    return events


def test_a_stream_ends_with_the_token_that_opened_it(guarded):
    agent, change = guarded
    events = stream(agent, OLD)
    change(OLD)
    for _ in range(2):
        events.next("snapshot")
    change(NEW)
    rest = events.stream.read()
    assert rest.count("event: snapshot") <= 1
    stream(agent, NEW).close()


def test_a_kept_connection_ends_with_the_rules_that_let_it_in(guarded):
    agent, change = guarded
    kept = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=DEADLINE_S)
    kept.request("GET", "/metrics", headers={"Authorization": f"Bearer {OLD}"})
    answer = kept.getresponse()
    assert (answer.status, bool(answer.read())) == (200, True)
    change(NEW)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        kept.request("GET", "/metrics", headers={"Authorization": f"Bearer {NEW}"})
        kept.getresponse()
