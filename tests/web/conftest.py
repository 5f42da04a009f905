import pytest
from agent import Agent


@pytest.fixture
def agent(lab) -> Agent:
    """Of eight H100."""
    return Agent(lab)
