"""MPS: its own processes keep no GPU from others, and shares work where its server is."""

import shutil

import pytest
from jobs import holder

MPS = "nvidia-cuda-mps-server"


@pytest.fixture
def served(make_machine):
    """GPUs 0 and 2 have the server of MPS; 0 and 1 are exclusive."""
    machine = make_machine("1xA100")
    shutil.copy("/bin/sleep", machine.directory / MPS)
    server = machine.start(machine.directory / MPS, "infinity")
    mine = f"[[device.process]]\npid = {server.pid}\nused_mib = 28\n"
    exclusive = '[[device]]\nmodel = "A100"\ncompute_mode = "exclusive_process"\n'
    machine.change(exclusive + mine + exclusive + f'[[device]]\nmodel = "A100"\n{mine}')
    return machine


def test_the_server_of_mps_is_no_outsider_and_shares_work_in_exclusive_mode(served):
    assert served.berth("pick", "-n", "3").out == "0,1,2\n"
    row = next(line for line in served.berth("list", "-l").out.splitlines() if line.endswith("infinity"))
    assert "MPS" in row and "outsider" not in row
    first = holder(served, "--memory", "10G", "--devices", "0")
    second = holder(served, "--memory", "10G", "--devices", "0")
    alone = holder(served, "--memory", "10G", "--devices", "1")
    said = " ".join(served.berth("why", "--memory", "10G", "--devices", "1").out.split())
    assert "compute mode exclusive: only one process may compute on it" in said
    for job in (first, second, alone):
        assert job.may_end().ends() == 0


def test_a_client_of_mps_without_a_lease_is_an_outsider(served):
    client = served.start("sleep", "infinity")
    listed = served.file.read_text()
    served.change(
        listed.replace(
            "used_mib = 28", f'used_mib = 28\n[[device.process]]\npid = {client.pid}\ntype = "M+C"', 1
        )
    )
    said = " ".join(served.berth("why").out.split())
    assert f"sleep (pid {client.pid})" in said
    assert served.berth("pick").out == "1\n"


def test_a_share_has_its_promise_as_the_limit_that_mps_obeys(served):
    answer = served.berth(
        "run", "--memory", "10G", "--", "sh", "-c", 'echo "$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"'
    )
    assert answer.out == "0=10240M\n"
    answer = served.berth("run", "--", "sh", "-c", 'echo "${CUDA_MPS_PINNED_DEVICE_MEM_LIMIT-none}"')
    assert answer.out == "none\n"


def test_a_job_asks_for_a_part_of_the_processors(served):
    says = ("sh", "-c", 'echo "${CUDA_MPS_ACTIVE_THREAD_PERCENTAGE-none}"')
    assert served.berth("run", "--mps-percent", "30", "--memory", "1G", "--", *says).out == "30\n"
    assert served.berth("run", "--mps-percent", "100", "--", *says).out == "100\n"
    assert served.berth("run", "--", *says).out == "none\n"
    # Whoever has set it is not overruled.
    mine = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"}
    assert served.berth("run", "--", *says, env=mine).out == "50\n"
    assert served.berth("run", "--mps-percent", "20", "--", *says, env=mine).out == "20\n"
    claimed = served.berth("claim", "--mps-percent", "40", "--memory", "1G", "--json").json
    assert claimed["environment"]["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "40"
    assert claimed["environment"]["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=1024M"
    assert served.berth("release", claimed["lease"]).status == 0
    for wrong in ("0", "101", "x"):
        answer = served.berth("run", "--mps-percent", wrong, "--", "true")
        assert (answer.status, answer.out) == (2, "") and "--mps-percent" in answer.err


def test_doctor_says_what_mps_and_its_absence_mean(served):
    said = " ".join(served.berth("doctor").out.split())
    assert "MPS: its server is on GPUs 0, 2" in said
    assert "exclusive on GPU 1: one job computes there at a time, and --memory needs MPS" in said


def test_a_site_may_limit_the_shares_of_a_gpu(make_machine):
    machine = make_machine("1xA100")
    (machine.directory / "site.toml").write_text("shares_per_gpu = 2\n")
    jobs = [holder(machine, "--memory", "1G") for _ in range(2)]
    refused = machine.berth("run", "--no-wait", "--memory", "1G", "--", "true")
    assert refused.status != 0
    assert "the site allows 2 shares on a GPU" in " ".join(machine.berth("why", "--memory", "1G").out.split())
    assert "a GPU has at most 2 shares" in " ".join(machine.berth("doctor").out.split())
    assert jobs[0].may_end().ends() == 0
    assert machine.berth("run", "--memory", "1G", "--", "true").status == 0
    assert jobs[1].may_end().ends() == 0
