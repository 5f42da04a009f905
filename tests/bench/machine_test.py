"""The simulated machines of a run end with all that was started on them."""

import pathlib
import subprocess

import machines
from jobs import eventually
from setting import Bench


def test_what_a_peer_leaves_behind_ends_with_its_machine(build, tmp_path):
    with machines.Machine(Bench(build, tmp_path, 1), "one", devices=1) as machine:
        words = ["sh", "-c", "setsid sleep 1000 >&- 2>&- & echo $!"]
        left = subprocess.run(words, env=machine.environment, capture_output=True, text=True).stdout.strip()
        command = pathlib.Path(f"/proc/{left}/cmdline")
        assert eventually(lambda: b"sleep" in command.read_bytes())
    assert eventually(lambda: not command.exists() or command.read_bytes() == b"")
