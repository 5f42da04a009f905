"""What ./dev demo shows, on a simulated machine: the parts that a newcomer is told to look at."""

import getpass
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

import pytest
from jobs import Lines, eventually
from simulated_machine import BUILD, DEADLINE_S

pytestmark = [pytest.mark.release_only, pytest.mark.long]


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


ROOT = pathlib.Path(__file__).parents[1]
needs_sshd = pytest.mark.skipif(
    not shutil.which("sshd", path="/usr/sbin:/usr/local/sbin"), reason="needs sshd"
)


def lab_of_three(tmp_path, *command):
    """What ./dev demo --lab does once all is built."""
    script = 'set -euo pipefail; for part in tools/*.sh; do . "$part"; done; demo_lab "$@"'
    shown = subprocess.run(
        ["bash", "-c", script, "demo", BUILD / "berth", *command],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE_S,
    )
    assert list(tmp_path.iterdir()) == []
    return shown


def complaints_of(shown) -> list[str]:
    """Which hosts can never serve a request for two GPUs is told only if they answer before the chosen one has begun."""
    left_out = re.compile(r"berth: gpu[13] is left out: this machine can never satisfy the request .*")
    return [line for line in shown.stderr.splitlines() if not left_out.fullmatch(line)]


@needs_sshd
def test_the_lab_shows_three_hosts_and_a_command_that_waits_on_all_of_them(tmp_path):
    shown = lab_of_three(tmp_path)
    assert shown.returncode == 0
    assert complaints_of(shown) == []
    assert "3 hosts: 5 GPUs, 5 free" in shown.stdout
    assert "training on GPU 0,1 of gpu2" in shown.stdout
    waits = shown.stdout.index("berth: waiting for 1 whole GPU on 3 hosts")
    killed = shown.stdout.index("$ kill -9", waits)
    for host in ["gpu1", "gpu2", "gpu3"]:
        assert waits < shown.stdout.index(f"berth: {host}: first in line, 0 of") < killed
    assert "training on GPU 0 of gpu3" in shown.stdout[killed:]
    assert "\033" not in shown.stdout


@needs_sshd
def test_the_quick_start_for_a_lab_works_as_written(tmp_path):
    (readme,) = re.findall(r"on any machine:\n\n```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    page = (ROOT / "docs/machines.md").read_text()
    steps = page[page.index("## Set up a lab in ten minutes") : page.index("## What you ask for")]
    typed = re.findall(r"^ {8}(berth .*)$", steps, re.M)
    assert len(readme.splitlines()) >= 4 and len(typed) >= 5
    for text in [readme, "\n".join(typed), "ssh gpu1 true; ssh gpu3 berth version"]:
        shown = lab_of_three(tmp_path, "bash", "-e", "-c", text)
        assert (shown.returncode, complaints_of(shown)) == (0, []), text
        assert shown.stdout


def test_the_living_machine_has_one_of_each_and_ends_with_ctrl_c(folder):
    process = subprocess.Popen(
        [sys.executable, "tools/living_machine.py", BUILD / "berth", "--listen", "127.0.0.1:0"],
        cwd=pathlib.Path(__file__).parents[1],
        env=os.environ | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    lines = Lines(process.stdout)
    while "http://" not in (line := lines.line()):
        assert line, "it ended"

    def asked(what: str) -> dict:
        with urllib.request.urlopen(line.strip() + f"api/v1/{what}", timeout=DEADLINE_S) as answer:
            return json.load(answer)

    def has_all() -> bool:
        devices = asked("snapshot")["devices"]
        kinds = {device["verdict"]["clause"] for device in devices}
        return {"not_leased", "no_outsider"} <= kinds and any(device["idle"] for device in devices)

    eventually(has_all)

    # Somebody is next, and the hours have a past and an end.
    def is_next(waiter: dict) -> bool:
        return waiter["count"] == 4 and waiter["starts_at_s"] is not None

    eventually(lambda: any(map(is_next, asked("queue")["waiters"])))
    rows = asked("timeline")["rows"]
    past = [bar for row in rows for bar in row["bars"] if bar["end"] == "over"]
    assert len(past) > 20 and any(bar["until_s"] for row in rows for bar in row["bars"])
    people = {"ada", "bela", "chen", "dilara"}
    if os.geteuid() != 0 or folder.stat().st_mode & 0o077 == 0:
        people = {getpass.getuser()}
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0:
        assert {bar["user"] for bar in past} <= people
        assert {lease["user"] for lease in asked("snapshot")["leases"]} <= people
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE_S) == 0
    assert list(folder.iterdir()) == []
    left = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, text=True)
    assert left.stdout == ""
