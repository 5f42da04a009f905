import pytest
from fleet_of_hosts import SSHD, Machines


@pytest.fixture
def machines(tmp_path):
    """No host yet: machines.add("gpu1", "2xH100")."""
    if SSHD is None:
        pytest.skip("needs openssh-server")
    fleet = Machines(tmp_path)
    yield fleet
    fleet.close()


@pytest.fixture
def two(machines):
    """gpu1 and gpu2, with one H100 each."""
    machines.add("gpu1", "1xH100")
    machines.add("gpu2", "1xH100")
    return machines
