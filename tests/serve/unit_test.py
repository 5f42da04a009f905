"""The systemd unit that ships."""

import pathlib
import re
import shutil
import subprocess

import pytest
from simulated_machine import BUILD, DEADLINE_S

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")


@pytest.fixture
def unit(tmp_path):
    text = (BUILD / "generated/berth-serve.service").read_text()
    program = text.split("ExecStart=")[1].split()[0]
    unit = tmp_path / "berth-serve.service"
    # It is not installed here, and the manual page neither.
    unit.write_text(text.replace(program, str(BUILD / "berth")).replace("Documentation=man:berth(1)\n", ""))
    return unit


def analyze(*words) -> subprocess.CompletedProcess:
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, timeout=DEADLINE_S)


def test_the_recipe_for_a_lab_keeps_what_the_unit_has(unit):
    words = (pathlib.Path(__file__).parents[2] / "docs/serve.md").read_text()
    recipe = re.search(r"ExecStart=\n +ExecStart=((?:.*\\\n)*.*)", words)[1]
    shipped = re.search(r"ExecStart=\S+ serve (.*)", unit.read_text())[1]
    assert shipped in recipe


def test_systemd_finds_no_fault_in_the_unit(unit):
    checked = analyze("verify", "--man=no", unit)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_systemd_finds_little_that_the_unit_could_reach(unit):
    """Of 10.0; what is left are the network, the devices, and the processes of others, which it is about."""
    checked = analyze("security", "--offline=yes", "--threshold=20", unit)
    assert checked.returncode == 0, checked.stdout
