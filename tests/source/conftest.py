"""Fixtures for the tests of the sources."""

import pytest
from probing import LISTING, Snapshot, parse


@pytest.fixture
def probe():
    """probe(machine, readings, source): one answer of a probe."""

    def ask(machine, readings=LISTING, source="nvml", state_directory="", **options) -> Snapshot:
        request = f"berth-read 1\nreadings={int(readings)}\nsource={source}\nstate_directory={state_directory}\nend\n"
        answer = machine.berth("__probe", source, input=request, **options)
        assert answer.status == 0, answer
        return parse(answer.out)

    return ask


@pytest.fixture
def calls():
    """calls(machine): the driver calls so far, as (function, device)."""

    def read(machine) -> list:
        log = machine.file.with_name(machine.file.name + ".d") / "calls.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [tuple(line.split()[1:3]) for line in lines]

    return read
