"""Fixtures for the tests of the drop-ins. tests/dropin/desk.py says what a Desk is."""

import pathlib

import pytest
from desk import Desk


def pytest_collection_modifyitems(items):
    for item in items:
        if pathlib.Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.python)


@pytest.fixture
def desk(make_machine) -> Desk:
    """Four idle RTX 3090."""
    return Desk(make_machine("4x3090"))


@pytest.fixture
def make_desk(make_machine):
    return lambda machine: Desk(make_machine(machine))
