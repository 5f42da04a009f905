"""The systemd unit that ships."""

import shutil
import subprocess

import pytest
from lab import BUILD, DEADLINE_S


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_no_fault_in_the_unit(tmp_path):
    text = (BUILD / "generated/berth-serve.service").read_text()
    program = text.split("ExecStart=")[1].split()[0]
    unit = tmp_path / "berth-serve.service"
    # It is not installed here, and the manual page neither.
    unit.write_text(text.replace(program, str(BUILD / "berth")).replace("Documentation=man:berth(1)\n", ""))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert (checked.returncode, checked.stderr) == (0, "")
