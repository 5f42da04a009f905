import subprocess

import pytest
from agent import Agent
from fake_agent import FakeAgent


@pytest.fixture
def agent(lab) -> Agent:
    """Of eight H100."""
    return Agent(lab)


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """A lab's own authority, and what it signed: a server and a client."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=lab")
    for name in ("server", "client"):
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
        files = ("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        openssl("req", "-x509", *key, *signed, *files)
    return folder


@pytest.fixture
def document(agent) -> dict:
    """What a good agent answers."""
    return agent.json("/api/v1/hosts")


@pytest.fixture
def fake():
    made = []

    def make(*arguments, **more) -> FakeAgent:
        made.append(FakeAgent(*arguments, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()
