"""What ./dev demo shows, on a simulated machine: the parts that a newcomer is told to look at."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

import pytest
from jobs import Lines, eventually
from lab import BUILD, DEADLINE_S

pytestmark = pytest.mark.release_only


@pytest.fixture(params=[0o755, 0o700])
def folder(request):
    """One that a second user can reach, and one that he cannot."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, request.param)
        yield pathlib.Path(path)


def test_the_demo_shows_the_main_job_and_two_who_want_one_gpu(folder):
    script = "set -euo pipefail; . tools/setup.sh; . tools/demo.sh; demo $0"
    shown = subprocess.run(
        ["bash", "-c", script, BUILD / "berth"],
        cwd=pathlib.Path(__file__).parents[1],
        env=os.environ | {"TMPDIR": str(folder), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    first, second = re.findall(r"train-[ab] (?:has|gets) GPU (\d+)", shown.stdout)
    assert first != second
    waits = shown.stdout.index(f"berth: first in line; 0 of 1 free; GPU {first} leased")
    killed = shown.stdout.index("$ kill -9", waits)
    assert re.search(rf"^train-c of \w+ has GPU {first}$", shown.stdout[killed:], re.M)
    assert re.search(r"^short has GPU \d+, and ends in time$", shown.stdout, re.M)
    sweep = re.search(r"^sweep has GPU (\d+)$", shown.stdout, re.M).group(1)
    assert f"\ntrain-e has GPU {sweep}\n" in shown.stdout
    assert "waits for this GPU, and this job yields (--yield)" in shown.stdout
    assert "\033" not in shown.stdout
    assert list(folder.iterdir()) == []


def test_the_living_machine_has_one_of_each_and_ends_with_ctrl_c(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "tools/living_machine.py", BUILD / "berth", "--listen", "127.0.0.1:0"],
        cwd=pathlib.Path(__file__).parents[1],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    lines = Lines(process.stdout)
    while "http://" not in (line := lines.line()):
        assert line, "it ended"

    def has_all() -> bool:
        with urllib.request.urlopen(line.strip() + "api/v1/snapshot", timeout=DEADLINE_S) as answer:
            devices = json.load(answer)["devices"]
        kinds = {device["verdict"]["clause"] for device in devices}
        return {"not_leased", "no_outsider"} <= kinds and any(device["idle"] for device in devices)

    eventually(has_all)
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE_S) == 0
    assert list(tmp_path.iterdir()) == []
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True)
    assert left.stdout == ""
