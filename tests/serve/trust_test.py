"""Whom a hub believes to be an agent of its own."""

import socket

import pytest
from agent import Agent
from clock import Clock
from hub import Hub, agents_file

YEAR_S = 365 * 86_400


@pytest.fixture
def agent(make_machine, authority):
    """Of a certificate for 127.0.0.1 that the lab's authority has signed."""
    return Agent(make_machine("1xT4"), *tls(authority))


def tls(authority, *more) -> tuple:
    return ("--tls-cert", authority / "server.pem", "--tls-key", authority / "server.key", *more)


def hub_of(machine, *agents: dict, **more) -> Hub:
    return Hub(machine, options=("--agents", agents_file(machine.directory / "agents.toml", *agents)), **more)


def at(agent: Agent, host: str = "127.0.0.1", **keys) -> dict:
    return {"name": "node", "url": f"https://{host}:{agent.port}"} | keys


def test_a_certificate_of_the_host_is_believed(machine, agent, authority):
    assert hub_of(machine, at(agent, **{"ca-file": authority / "ca.pem"})).sees("node")["snapshot"]


@pytest.mark.parametrize(
    ("host", "authorities", "words"),
    [
        ("localhost", "ca.pem", "hostname mismatch"),
        ("127.0.0.1", "client.pem", "unable to get local issuer certificate"),
        ("127.0.0.1", None, "unable to get local issuer certificate"),
    ],
    ids=["of another name", "of another authority", "of none that the machine trusts"],
)
def test_another_certificate_is_not(machine, agent, authority, host, authorities, words):
    keys = {"ca-file": authority / authorities} if authorities else {}
    said = hub_of(machine, at(agent, host, **keys)).error("node")
    assert "its certificate is not accepted: " in said
    assert words in said


@pytest.mark.release_only
def test_one_that_has_expired_is_not(machine, agent, authority):
    hub = hub_of(machine, at(agent, **{"ca-file": authority / "ca.pem"}), env=Clock(machine, wall=YEAR_S).env)
    assert "certificate has expired" in hub.error("node")


def test_the_zone_of_an_address_does_not_make_any_certificate_good(machine, make_machine, authority):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("needs IPv6")
    agent = Agent(make_machine("1xT4"), *tls(authority), listen="[::1]:0")
    said = hub_of(machine, at(agent, "[::1%lo]", **{"ca-file": authority / "ca.pem"})).error("node")
    assert "its certificate is not accepted: IP address mismatch" in said


def test_an_agent_that_wants_a_certificate_gets_the_hub_s(machine, make_machine, authority):
    agent = Agent(
        make_machine("1xT4"), *tls(authority, "--tls-clients", authority / "ca.pem"), listen="0.0.0.0:0"
    )
    trust = {"ca-file": authority / "ca.pem"}
    mine = {"cert-file": authority / "client.pem", "key-file": authority / "client.key"}
    hub = hub_of(machine, at(agent, **trust, **mine), at(agent, **trust) | {"name": "shy"})
    assert hub.sees("node")
    assert hub.error("shy")
