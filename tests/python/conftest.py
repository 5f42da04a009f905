"""Fixtures for the tests of the Python package. tests/python/hosts.py says what a Host is."""

import pathlib

import pytest
from hosts import Host


def pytest_collection_modifyitems(items):
    for item in items:
        if pathlib.Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.python)


@pytest.fixture
def host(make_machine) -> Host:
    """On a machine with two H100."""
    return Host(make_machine("2xH100"))


@pytest.fixture
def eight(machine) -> Host:
    """On a machine with eight."""
    return Host(machine)
