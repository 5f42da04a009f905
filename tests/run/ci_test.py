"""The scripts that docs/tasks/ci.md gives to a runner, called as a runner calls them."""

import os
import pathlib
import re
import signal
import subprocess

import pytest
from jobs import DEADLINE_S, eventually, queue

PAGE = pathlib.Path(__file__).parents[2] / "docs/tasks/ci.md"


@pytest.fixture
def scripts(tmp_path):
    for name, text in re.findall(r'^```bash title="([^"\n]*)"\n(.*?)^```$', PAGE.read_text(), re.M | re.S):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


class Worker:
    """As the runner's worker: it starts the script of a job, and lives as long as the job."""

    def __init__(self, machine, scripts):
        self.machine, self.scripts = machine, scripts
        self.env = scripts / "github_env"
        self.env.touch()
        path = f"{machine.build}:{machine.env['PATH']}"
        self.process = machine.start(
            "bash",
            "-c",
            '"$0"; echo "status $?"; read _',
            scripts / "job-started.sh",
            env={"GITHUB_ENV": self.env, "GITHUB_RUN_ID": "4711", "PATH": path},
            stdin=subprocess.PIPE,
        )

    def status(self) -> str:
        return self.process.stdout.readline()

    def variables(self) -> dict:
        return dict(line.split("=", 1) for line in self.env.read_text().splitlines())


def leases(machine) -> list:
    return machine.berth("list", "--json").json["leases"]


def test_a_job_has_a_gpu_until_its_worker_ends_however_it_ends(make_machine, scripts):
    machine = make_machine("1xH100")
    worker = Worker(machine, scripts)
    assert worker.status() == "status 0\n", worker.process.stderr.read()
    assert worker.variables()["CUDA_VISIBLE_DEVICES"] == "0"
    (lease,) = leases(machine)
    assert lease["note"] == "CI run 4711"
    assert machine.berth("run", "--no-wait", "--", "true").status == 75
    worker.process.send_signal(signal.SIGKILL)
    worker.process.wait(DEADLINE_S)
    eventually(lambda: leases(machine) == [])


def test_a_job_waits_for_a_gpu_and_gives_it_back_at_its_end(make_machine, scripts):
    machine = make_machine("1xH100")
    first = Worker(machine, scripts)
    assert first.status() == "status 0\n"
    (scripts / "second").mkdir()
    os.link(scripts / "job-started.sh", scripts / "second/job-started.sh")
    second = Worker(machine, scripts / "second")
    eventually(lambda: len(queue(machine)) == 1)
    path = f"{machine.build}:{machine.env['PATH']}"
    done = machine.run(scripts / "job-completed.sh", env=first.variables() | {"PATH": path})
    assert done.status == 0, done.err
    assert second.status() == "status 0\n"
    assert second.variables()["BERTH_LEASE"] != first.variables()["BERTH_LEASE"]


def test_a_job_that_can_get_no_gpu_fails_with_the_reason(make_machine, scripts):
    machine = make_machine("1xH100")
    script = scripts / "job-started.sh"
    script.write_text(script.read_text().replace("berth run", "berth run -n 2"))
    worker = Worker(machine, scripts)
    assert worker.status() == "status 1\n"
    assert worker.variables() == {}
