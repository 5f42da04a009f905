"""What many, slow and stuck clients can do to the agent, and how its connections end."""

import contextlib
import re
import resource
import signal
import socket
import subprocess

import pytest
from agent import Agent
from jobs import eventually
from simulated_machine import DEADLINE_S

MOST = 4000
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * MOST:
        pytest.skip("needs 8,000 descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * MOST), hard))


def is_served(connection: socket.socket) -> bool:
    """Whether a connection is not closed at once."""
    connection.sendall(REQUEST)
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
    return False


def is_served_now(agent: Agent) -> bool:
    with contextlib.suppress(BrokenPipeError), agent.connect() as connection:
        return is_served(connection)
    return False


def connected(agent: Agent, address: str = "127.0.0.1") -> socket.socket:
    """From this address."""
    return socket.create_connection(
        ("127.0.0.1", agent.port), timeout=DEADLINE_S, source_address=(address, 0)
    )


def is_shown_out(connection: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(1) == b""
    return True


def test_connections_that_ask_for_nothing_lock_nobody_out(many_descriptors, agent):
    with contextlib.ExitStack() as stack:
        stream = agent.events()
        idle = [
            stack.enter_context(connected(agent, address))
            for address in ("127.0.0.2", "127.0.0.3")
            for _ in range(MOST // 2)
        ]
        for _ in range(3):
            assert is_served_now(agent)
        assert all(is_shown_out(each) for each in idle[:2])
        assert is_served(idle[-1])
        assert (
            agent.err.line()
            == f"berth: {MOST} connections are open at the network; those that ask for nothing make room\n"
        )
        assert stream.next("snapshot")["devices"]
        local = stack.enter_context(socket.socket(socket.AF_UNIX))
        local.connect(str(agent.socket))
        assert is_served(local)


def test_one_address_has_half_of_the_room(many_descriptors, agent):
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(connected(agent, "127.0.0.2"))
        idle = [stack.enter_context(connected(agent)) for _ in range(MOST // 2 + 1)]
        assert is_shown_out(idle[0])
        assert is_served(idle[-1])
        assert is_served(other)


def test_who_asks_for_nothing_has_the_time_of_one_request(machine):
    agent = Agent(machine, "--patience", "1s")
    with agent.connect() as idle, agent.connect() as known:
        assert is_served(known)
        assert is_shown_out(idle)
        assert is_served(known)


def takes_events(connection: socket.socket) -> bool:
    connection.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
    return False


def test_clients_cannot_take_the_descriptors_that_a_look_needs(machine):
    agent = Agent(machine, within=("prlimit", "--nofile=64:64"))
    with contextlib.ExitStack() as stack:
        first = agent.events()
        taken = 0
        for number in range(64):
            connection = stack.enter_context(connected(agent, f"127.0.0.{1 + number % 2}"))
            with contextlib.suppress(BrokenPipeError):
                taken += takes_events(connection)
        assert taken == 64 // 8 * 5 - 1
        for _ in range(2):
            assert first.next("snapshot")["devices"]
    eventually(lambda: is_served_now(agent))
    assert agent.json("/api/v1/health")["status"] == "ok"


@pytest.fixture
def crowded(make_machine):
    """A machine whose snapshot is more than a Unix socket takes that nobody reads."""
    with contextlib.ExitStack() as stack:
        crowd = [
            stack.enter_context(
                subprocess.Popen(["sh", "-c", "read never", "x" * 4000], stdin=subprocess.PIPE)
            )
            for _ in range(10)
        ]
        processes = ", ".join(f"{{pid = {each.pid}, used_mib = 1}}" for each in crowd)
        yield make_machine(f'[[device]]\nmodel = "H100"\ncount = 8\nprocess = [{processes}]\n')


def test_a_blocked_reader_of_events_holds_up_nobody_and_is_shown_out(crowded):
    agent = Agent(crowded, "--patience", "1s")
    asleep = socket.socket(socket.AF_UNIX)
    asleep.connect(str(agent.socket))
    asleep.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    awake = agent.events()
    times = [awake.next("snapshot")["taken_at_s"] for _ in range(3)]
    assert times == sorted(set(times))
    asleep.settimeout(DEADLINE_S)
    got = b"".join(iter(lambda: asleep.recv(1 << 20), b""))
    # What was under way when the patience ended is cut: it was not taken in time.
    assert len(got) < len(agent.get("/api/v1/snapshot")[2])
    asleep.close()


def test_a_comment_shows_that_a_silent_stream_lives(machine):
    agent = Agent(machine, "--every", "1h", "--patience", "1s")
    streams = [agent.events(), agent.events()]
    for events in streams:
        events.next("snapshot")
    for _ in range(2):
        for events in streams:
            eventually(lambda stream=events.stream: stream.readline() == ":\n")


def test_an_answer_under_way_at_the_end_is_whole(crowded):
    agent = Agent(crowded)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(DEADLINE_S)
        client.connect(str(agent.socket))
        client.sendall(b"GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
        got = client.recv(1000)
        agent.process.send_signal(signal.SIGTERM)
        eventually(lambda: not agent.socket.exists())
        got += b"".join(iter(lambda: client.recv(1 << 20), b""))
    head, _, text = got.partition(b"\r\n\r\n")
    length = int(re.search(rb"Content-Length: (\d+)", head)[1])
    assert length > 250_000
    assert len(text) == length
    assert agent.process.wait(DEADLINE_S) == 0


def test_an_address_of_no_machine_is_named(machine):
    answer = machine.berth("serve", "--listen", "192.0.2.1:0", "--insecure")
    assert answer.status == 1
    assert "192.0.2.1:0 is no address of this machine, or not yet (ip address shows them)" in " ".join(
        answer.err.split()
    )
