"""The executor for submitit: submitit's own tests of its local executor are the judge, and then what only Berth does."""

import json
import pathlib
import re
import shlex
import sysconfig
import textwrap

import pytest
from simulated_machine import DEADLINE_S

pytestmark = pytest.mark.long

ROOT = pathlib.Path(__file__).parents[2]
TOOLS = sysconfig.get_path("purelib")

# submitit's tests name their executor by its class.
AS_BERTH = """
import submitit.local.local as local
from berth.submitit import BerthExecutor, BerthJob

local.LocalExecutor, local.LocalJob = BerthExecutor, BerthJob
"""
# These are about what only the local executor has: its process, which runs at once, and its name.
LOCAL_ONLY = ("test_killed", "test_make_subprocess", "test_cancel", "test_setup", "test_local_job")

# Each run of Hydra has a folder of its own, and is in it.
TRAIN = """
import hydra, os, pathlib
from hydra.core.hydra_config import HydraConfig

@hydra.main(version_base=None, config_path=None)
def main(config):
    told = pathlib.Path(HydraConfig.get().runtime.output_dir, "told")
    told.write_text(f"{config.lr} {os.environ['BERTH_JOB']}")

main()
"""

PREAMBLE = """
import submitit

def executor(**parameters):
    made = submitit.AutoExecutor("logs/%j", cluster="berth")
    made.update_parameters(**parameters)
    return made

def becomes(job, state):
    while job.get_info().get("State") != state:
        time.sleep(0.01)
"""


@pytest.fixture
def submitit(host):
    """On a machine with two H100."""
    host.machine.env["PYTHONPATH"] = TOOLS

    def says(code: str) -> list[str]:
        return host.says(PREAMBLE + textwrap.dedent(code), cwd=host.machine.directory, timeout=4 * DEADLINE_S)

    says.machine, says.python = host.machine, host.python
    return says


def ended(machine) -> dict:
    """The only job, once it has ended: submitit has its result before the process that wrote it ends."""
    (job,) = machine.berth("jobs", "--json").json["jobs"]
    assert machine.berth("wait", str(job["job"]), timeout=DEADLINE_S).status == 0
    (job,) = machine.berth("jobs", "--json").json["jobs"]
    return job


def test_submitits_own_tests_of_its_local_executor_hold(eight, tmp_path):
    (tmp_path / "as_berth.py").write_text(AS_BERTH)
    module = "submitit.local.test_local"
    chosen = " and ".join(f"not {name}" for name in LOCAL_ONLY)
    words = [
        "-q",
        "-p",
        "as_berth",
        "-p",
        "no:cacheprovider",
        "-k",
        chosen,
        "--pyargs",
        module,
    ]
    done = eight.machine.run(
        eight.python,
        *("-m", "pytest", *words),
        env={"PYTHONPATH": f"{tmp_path}:{TOOLS}"},
        timeout=10 * DEADLINE_S,
    )
    assert done.status == 0, done.out
    jobs = eight.machine.berth("jobs", "--json").json["jobs"]
    assert "16 passed" in done.out and len(jobs) > 10


def test_the_tasks_of_a_job_have_their_ranks_and_its_gpus(submitit):
    code = """
    def part(of):
        env = submitit.JobEnvironment()
        return env.job_id, env.global_rank, env.num_tasks, env.hostname == of, os.environ["CUDA_VISIBLE_DEVICES"]

    import socket
    job = executor(tasks_per_node=2, gpus_per_node=2, name="ranks", timeout_min=5).submit(part, socket.gethostname())
    say(job.results())
    becomes(job, "COMPLETED")
    say(job.state, job.exception())
    """
    assert submitit(code) == ["[('1', 0, 2, True, '0,1'), ('1', 1, 2, True, '0,1')]", "COMPLETED None"]
    (job,) = submitit.machine.berth("jobs", "--json").json["jobs"]
    assert (job["name"], job["request"][0], job["exit_status"]) == ("ranks", "--count=2", 0)
    assert "The output of task 1 is in" in submitit.machine.berth("log", "1").out


def test_what_is_mapped_is_one_array_and_no_more_of_it_run_than_may(submitit):
    code = """
    jobs = executor(berth_array_parallelism=1).map_array(lambda x: (x * x, submitit.JobEnvironment().job_id), range(3))
    say([job.result() for job in jobs], [job.job_id for job in jobs])
    """
    assert submitit(code) == ["[(0, '1_0'), (1, '1_1'), (4, '1_2')] ['1_0', '1_1', '1_2']"]
    assert ended(submitit.machine)["tasks"]["done"] == 3
    tasks = submitit.machine.berth("jobs", "--json", "1").json["jobs"]
    assert all(one["ended_s"] <= next_one["started_s"] for one, next_one in zip(tasks, tasks[1:]))


def test_a_job_that_yields_makes_its_checkpoint_and_goes_on_from_it(submitit):
    code = """
    class Steps(submitit.helpers.Checkpointable):
        done = 0

        def __call__(self, folder):
            while not os.path.exists(f"{folder}/go"):
                self.done += 1
                open(f"{folder}/begun", "w").close()
                time.sleep(0.01)
            return self.done > 1 and os.path.exists(f"{folder}/again")

        def checkpoint(self, folder):
            open(f"{folder}/again", "w").close()
            return super().checkpoint(folder)

    job = executor(gpus_per_node=2, timeout_min=60, berth_yield=True).submit(Steps(), os.getcwd())
    while not os.path.exists("begun"):
        time.sleep(0.01)
    with berth.lease(2) as lease:
        say(lease.ids)
        becomes(job, "PENDING")
        open("go", "w").close()
    say(job.result(), "Requeued job 1 (3 remaining timeouts)" in job.stdout())
    """
    assert submitit(code) == ["(0, 1)", "True True"]
    job = ended(submitit.machine)
    assert (job["starts"], job["exit_status"]) == (2, 0)


def test_what_is_cancelled_killed_or_forgotten_is_over(submitit):
    code = """
    def over(job):
        while not job.done(force_check=True):
            time.sleep(0.01)
        return type(job.exception()).__name__, job.state

    submitit.core.core.Job._results_timeout_s = 0
    sleeper = executor().submit(time.sleep, 1000)
    becomes(sleeper, "RUNNING")
    sleeper.cancel()
    say(*over(sleeper))
    sleeper.cancel()
    killed = executor().submit(lambda: os.kill(os.getpid(), signal.SIGKILL))
    say(*over(killed))
    waits = executor().submit(time.sleep, 1000).cancel_at_deletion()
    number = waits.job_id
    del waits
    say(berth.Job(number).wait("60s"), berth.Job(number).state)
    berth._job._ask(["forget", killed.job_id])
    killed.watcher.clear()
    say(*over(killed))
    """
    # submitit's logger writes there as well.
    said = [line for line in submitit(code) if not line.startswith("submitit WARNING")]
    assert said == [
        "UncompletedJobError CANCELLED",
        "UncompletedJobError FAILED",
        "1 cancelled",
        "UncompletedJobError FORGOTTEN",
    ]


def test_setup_runs_before_and_what_makes_no_sense_is_refused(submitit):
    code = """
    made = executor(berth_setup=["touch setup_done", "export WORD=x"], berth_note="for the paper", mem_gb=1)
    say(made.submit(lambda: (os.environ["WORD"], os.path.exists("setup_done"))).result())
    for wrong in (dict(nodes=2), dict(gpus_per_node=0), dict(berth_partition="x")):
        try:
            made.update_parameters(**wrong)
        except (ValueError, NameError) as error:
            say(str(error)[:50])
    say(submitit.AutoExecutor.which() != "berth")
    """
    assert submitit(code) == [
        "('x', True)",
        "a job of Berth runs on one machine: nodes must be ",
        "Berth leases GPUs: gpus_per_node must be 1 or more",
        "Unknown argument 'partition' for executor 'berth' ",
        "True",
    ]


def block_of_the_page(language: str, title: str) -> str:
    page = (ROOT / "docs/coming-from.md").read_text()
    (block,) = re.findall(rf'^```{language} title="{title}"\n(.*?)^```', page, re.M | re.S)
    return block


def test_what_the_page_says_runs(submitit):
    block = block_of_the_page("python", "in your program")
    assert submitit("def train(lr):\n    return lr * 2\n\n" + block) == ["[0.2, 0.02, 0.002]"]


def test_a_multirun_of_hydra_is_one_array(submitit):
    machine = submitit.machine
    (machine.directory / "train.py").write_text(TRAIN)
    words = shlex.split(block_of_the_page("sh", "on a machine with Hydra"))[1:]
    # Its configuration has no `lr` of its own.
    words = [f"+{word}" if word.startswith("lr=") else word for word in words]
    words += ["hydra.launcher.array_parallelism=1", "hydra.launcher.yields=2m", "hydra.launcher.note=x"]
    done = machine.run(submitit.python, *words, cwd=machine.directory, timeout=4 * DEADLINE_S)
    assert done.status == 0, done.err
    job = ended(machine)
    assert (job["name"], job["tasks"]["done"]) == ("train", 3)
    assert {"--yield=2m", "--note=x"} <= set(job["request"])
    told = [path.read_text() for path in sorted(machine.directory.glob("multirun/*/*/*/told"))]
    assert told == ["0.1 1.0", "0.01 1.1", "0.001 1.2"]


def test_without_its_launcher_for_submitit_hydra_is_told_nothing(host):
    assert host.says("import hydra_plugins.berth_launcher as ours; say(hasattr(ours, 'BerthLauncher'))") == [
        "False"
    ]


def test_berth_itself_does_without_submitit(host):
    assert host.says("say('submitit' in sys.modules)") == ["False"]


def test_the_entry_points_are_what_the_wheel_says(host):
    code = """
    import json
    from importlib import metadata
    say(json.dumps({e.name: e.value for e in metadata.distribution("berth-gpu").entry_points if e.group == "submitit"}))
    """
    assert json.loads(host.says(code)[0]) == {
        "executor": "berth.submitit:BerthExecutor",
        "job_environment": "berth.submitit:BerthJobEnvironment",
    }
