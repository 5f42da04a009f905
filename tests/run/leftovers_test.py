"""What a command leaves behind, where a container begins."""

import os
import subprocess

import pytest
from simulated_machine import DEADLINE_S, PRIVATE_PIDS

LEAVES_ONE = "sleep 1000 >&- 2>&- & echo left"
BUSY = '[[device]]\nmodel = "A100"\ncontext_mib = 0\nutilization = 50\n'
# The driver's list has the pids of the host, which are others inside the container.
OF_OTHERS = "".join(f"[[device.process]]\npid = {pid}\n" for pid in range(1, 50))


def test_in_a_container_with_its_own_pids_the_load_tells_whether_what_is_left_computes(
    make_machine, tmp_path
):
    if os.geteuid() != 0 or subprocess.run([*PRIVATE_PIDS, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs namespaces")
    machine = make_machine(BUSY)
    site = tmp_path / "site.toml"
    site.write_text('idle_leftovers = "1s"\n')
    job = machine.start(
        *PRIVATE_PIDS, machine.program, "run", "--", "bash", "-c", LEAVES_ONE,
        env={"BERTH_SITE_FILE": site},
    )  # fmt: skip
    assert job.stdout.readline() == "left\n"
    assert "processes that it started still hold the lease" in job.stderr.readline()
    machine.change(BUSY.replace("50", "0") + OF_OTHERS)
    assert "has computed nothing for 1 s" in job.stderr.readline()
    assert job.wait(DEADLINE_S) == 0
