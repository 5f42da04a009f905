"""Fixtures for all tests of the program. tests/lab.py says what a Lab is."""

import ctypes

import pytest
from lab import BUILD, Lab


@pytest.fixture
def make_lab(tmp_path):
    """A simulated machine: make_lab("2xA100+2xT4"), or a scenario's text. A second one is another machine."""
    labs = []

    def make(machine: str = "8xH100") -> Lab:
        directory = tmp_path / f"machine{len(labs)}"
        directory.mkdir()
        labs.append(Lab(directory, machine))
        return labs[-1]

    yield make
    for lab in labs:
        lab.close()


@pytest.fixture
def lab(make_lab) -> Lab:
    """Eight H100."""
    return make_lab()


@pytest.fixture(scope="session")
def build():
    """The build directory under test."""
    return BUILD


def has_driver() -> bool:
    try:
        return ctypes.CDLL("libnvidia-ml.so.1").nvmlInit_v2() == 0
    except OSError:
        return False


@pytest.fixture(scope="session")
def real_driver():
    """For a test that looks at a real GPU."""
    if not has_driver():
        pytest.skip("needs a real driver")
