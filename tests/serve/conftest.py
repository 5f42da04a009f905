import pytest
from agent import TOKEN, Agent
from fake_agent import FakeAgent


@pytest.fixture
def agent(machine) -> Agent:
    """Of eight H100."""
    return Agent(machine)


@pytest.fixture
def token_file(tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    return file


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
