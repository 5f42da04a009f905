"""Fixtures for the tests of the simulated driver."""

import signal
import subprocess

import pytest
from simulated import Machine, let_others_in


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Machine:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("BERTH_SIM", "")
    # Another user's process must be able to reach the scenario in some tests.
    let_others_in(tmp_path)
    return Machine(tmp_path)


@pytest.fixture
def sleeper():
    """Starts processes that wait to be killed."""
    running = []

    def start(command=("sleep", "1000"), **options):
        process = subprocess.Popen(command, **options)
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()
