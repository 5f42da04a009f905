"""Beside Slurm: `berth prolog` and `epilog`, as a script says them and under a real slurmd."""

import os
import pathlib
import sys
import tempfile

import pytest
from jobs import eventually, holder, waiter
from lease_jobs import USES_DEVICES, leases, ready, waiting
from simulated_machine import DEADLINE_S
from slurm_node import SlurmNode, program

ADA, MALLORY = 20001, 20002
MINE = os.geteuid()
needs_slurm = pytest.mark.skipif(program("slurmctld") is None, reason="needs slurmctld, slurmd and munge")


def of_job(number: int, gpus: str = "", uid: int = MINE, **more) -> dict[str, str]:
    """What slurmd gives to a prolog."""
    return {
        "SLURM_JOB_ID": str(number),
        "SLURM_JOB_UID": str(uid),
        "SLURM_JOB_GPUS": gpus or None,
        "CUDA_VISIBLE_DEVICES": gpus or None,
        "HOME": None,
    } | more


def allotted(machine) -> list[tuple[int, int, int]]:
    """(job of Slurm, uid, number of GPUs) of each lease for one."""
    found = machine.berth("list", "--json").json["leases"]
    return [(each["slurm_job"], each["uid"], len(each["devices"])) for each in found if each["slurm_job"]]


def in_job(machine, number: int, *words, **options):
    return machine.berth(*words, env={"SLURM_JOB_ID": str(number)}, **options)


# As a script says them ----------------------------------------------------------------------------


def test_the_lease_of_a_job_lasts_from_prolog_to_epilog(make_machine):
    machine = make_machine("3xH100")
    answer = machine.berth("prolog", env=of_job(12, "0,2"))
    assert (answer.status, answer.out, answer.err) == (0, "", "")
    assert allotted(machine) == [(12, MINE, 2)]
    assert machine.berth("pick").out == "1\n"
    assert machine.berth("epilog", env=of_job(13)).status == 0
    assert allotted(machine) == [(12, MINE, 2)]
    answer = machine.berth("epilog", env=of_job(12))
    assert (answer.status, answer.out, answer.err) == (0, "", "")
    assert leases(machine) == []


def test_a_job_without_gpus_gets_no_lease(make_machine):
    machine = make_machine("1xH100")
    assert machine.berth("prolog", env=of_job(12)).status == 0
    assert leases(machine) == []


def test_inside_the_job_its_gpus_are_all_that_there_are(make_machine):
    machine = make_machine("3xH100")
    machine.berth("prolog", env=of_job(12, "1"))
    # For each of them: nothing but the number of the job says where it is.
    assert in_job(machine, 12, "pick").out == "1\n"
    assert (
        in_job(machine, 12, "run", "--no-wait", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES").out == "1\n"
    )
    claimed = in_job(machine, 12, "claim", "--json", "--no-wait").json
    assert claimed["devices"][0]["index"] == 1
    refused = in_job(machine, 12, "pick", "-n", "2")
    assert refused.status != 0 and "not in this lease" in refused.err
    # Who is not in it stays outside.
    assert machine.berth("pick").out == "0\n"
    assert in_job(machine, 13, "pick").out == "0\n"
    assert machine.berth("run", "--no-wait", "--devices", "1", "--", "true").status == 75


def test_a_claim_beside_a_claim_stays_in_the_job(make_machine):
    machine = make_machine("3xH100")
    machine.berth("prolog", env=of_job(12, "0,1"))
    first = in_job(machine, 12, "claim", "--json").json
    second = machine.berth("claim", "--json", env={"SLURM_JOB_ID": "12"} | first["environment"]).json
    assert {first["devices"][0]["index"], second["devices"][0]["index"]} == {0, 1}


def test_what_the_job_computes_is_its_own(make_machine):
    machine = make_machine("2xH100")
    machine.berth("prolog", env=of_job(12, "0"))
    ready(machine.start(sys.executable, "-c", USES_DEVICES, "0", env={"SLURM_JOB_ID": "12"}))
    listing = machine.berth("list", "--json").json
    (process,) = listing["devices"][0]["processes"]
    assert process["lease"] == listing["leases"][0]["id"]


def test_while_somebody_has_the_gpu_the_job_waits(make_machine):
    machine = make_machine("1xH100")
    job = holder(machine)
    prolog = machine.start_berth("prolog", env=of_job(12, "0"))
    eventually(lambda: waiting(machine))
    assert machine.berth("prolog", "--wait", "0", env=of_job(13, "0")).status == 75
    assert prolog.poll() is None
    job.ends()
    assert prolog.wait(DEADLINE_S) == 0
    assert allotted(machine) == [(12, MINE, 1)]


def test_a_prolog_that_is_killed_while_it_waits_leaves_nothing(make_machine):
    machine = make_machine("1xH100")
    job = holder(machine)
    prolog = machine.start_berth("prolog", env=of_job(12, "0"))
    eventually(lambda: waiting(machine))
    prolog.kill()
    eventually(lambda: machine.berth("queue", "--json").json["waiters"] == [])
    job.ends()


def test_a_second_start_of_a_job_replaces_the_lease_of_the_first(make_machine):
    machine = make_machine("2xH100")
    machine.berth("prolog", env=of_job(12, "0"))
    assert machine.berth("prolog", env=of_job(12, "1"), timeout=DEADLINE_S).status == 0
    assert allotted(machine) == [(12, MINE, 1)] and machine.berth("pick").out == "0\n"


def test_where_slurm_has_some_of_the_gpus_the_list_says_which(make_machine):
    machine = make_machine("4xH100")
    assert machine.berth("prolog", "--gpus", "2-3", env=of_job(12, "1")).status == 0
    assert machine.berth("pick", "-n", "3").out == "0,1,2\n"
    refused = machine.berth("prolog", "--gpus", "2-3", env=of_job(13, "2"))
    assert refused.status == 2 and "Slurm has allotted its GPU 2, and --gpus names 2 only" in refused.err


def test_the_limits_of_the_site_are_for_those_who_ask_berth(make_machine):
    machine = make_machine("2xH100")
    (machine.directory / "site.toml").write_text(
        '[limits]\ngpus = 1\n[[excluded]]\ndevice = "1"\nreason = "for Slurm"\n'
    )
    assert machine.berth("prolog", env=of_job(12, "0,1")).status == 0
    assert allotted(machine) == [(12, MINE, 2)]


def test_by_hand_it_says_what_it_is_for(machine):
    for command in ("prolog", "epilog"):
        refused = machine.berth(command)
        assert refused.status == 2 and "this is for Slurm: slurmd starts it for a job" in refused.err


def test_the_lease_is_the_users_of_the_job(open_machine, as_user):
    machine = open_machine
    assert machine.berth("prolog", env=of_job(12, "0", ADA, SLURM_JOB_GID="20001")).status == 0
    assert allotted(machine) == [(12, ADA, 1)]
    mallory = machine.run(*as_user(MALLORY), machine.program, "epilog", env=of_job(12, uid=ADA), cwd="/")
    assert mallory.status != 0 and allotted(machine) == [(12, ADA, 1)]
    # Somebody who gives himself the number of a job gets nothing of it.
    assert (
        machine.run(*as_user(MALLORY), machine.program, "pick", env={"SLURM_JOB_ID": "12"}, cwd="/").out
        == "1\n"
    )
    mallory = machine.run(*as_user(MALLORY), machine.program, "prolog", env=of_job(14, "1", ADA), cwd="/")
    assert mallory.status != 0 and "only root can act for" in mallory.err
    # What a ticket says of itself, its owner says.
    mallory = machine.run(*as_user(MALLORY), machine.program, "prolog", env=of_job(12, "1", MALLORY), cwd="/")
    assert mallory.status == 0, mallory.err
    assert machine.berth("epilog", env=of_job(12, uid=ADA)).status == 0
    assert allotted(machine) == [(12, MALLORY, 1)]


# Tries to take away every file of a lease directory, and every part of it.
REMOVES_ALL = """
import contextlib, os, sys
for folder, parts, files in os.walk(sys.argv[1], topdown=False):
    for name in [*files, *parts]:
        for call in (os.unlink, os.rmdir, lambda path: os.rename(path, path + ".gone")):
            with contextlib.suppress(OSError):
                call(f"{folder}/{name}")
"""


@pytest.mark.parametrize("first", ["nobody", "ada"])
def test_before_init_the_user_of_a_job_cannot_take_the_leases_of_others_away(open_machine, as_user, first):
    """Whoever owns the lease directory could: it is root's from the first prolog on, whoever has made it."""
    machine = open_machine
    shared = machine.directory / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    machine.leases = shared / "leases"
    machine.env["BERTH_DIR"] = str(machine.leases)
    if first == "ada":
        assert machine.run(*as_user(ADA), machine.program, "run", "--", "true", cwd="/").status == 0
        assert machine.leases.stat().st_uid == ADA
    assert machine.berth("prolog", env=of_job(12, "0", ADA, SLURM_JOB_GID="20001")).status == 0
    job = machine.start(
        *as_user(MALLORY), machine.program, "run", "--", "sh", "-c", "echo ready; exec sleep 1000", cwd="/"
    )
    ready(job)
    machine.run(*as_user(ADA), sys.executable, "-c", REMOVES_ALL, machine.leases, cwd="/")
    left = machine.berth("list", "--json").json["leases"]
    assert [each["uid"] for each in left if each["uid"] == MALLORY] == [MALLORY]
    assert {path.stat().st_uid for path in (machine.leases, *machine.leases.iterdir()) if path.is_dir()} == {
        0
    }


# Under a real slurmd ------------------------------------------------------------------------------


class Node:
    """Slurm's servers on the machine of `lab`, which has them all as inhabitants."""

    def __init__(self, machine, folder: pathlib.Path):
        self.machine = machine
        scripts = "".join(f"{name.capitalize()}={folder}/{name}\n" for name in ("prolog", "epilog"))
        self.slurm = SlurmNode(folder, 2, more=scripts + "PrologFlags=Alloc\n")
        for name in ("prolog", "epilog"):
            # slurmd gives them its variables and no others.
            settings = "".join(
                f"export {key}='{value}'\n" for key, value in machine.env.items() if key != "HOME"
            )
            script = folder / name
            script.write_text(f"#!/bin/sh\n{settings}exec {machine.program} {name}\n")
            script.chmod(0o755)
        self.start(self.slurm.munge())
        eventually(lambda: self.run(self.slurm.is_open()).status == 0)
        self.start(self.slurm.controller())
        self.start(self.slurm.daemon())
        eventually(lambda: "idle" in self.run(["sinfo", "-h", "-o", "%T"]).out)

    def start(self, words):
        log = (self.slurm.folder / f"{pathlib.Path(words[0]).name}.log").open("w")
        return self.machine.start(*words, env=self.slurm.environment(), stdout=log, stderr=log)

    def run(self, words, **options):
        return self.machine.run(*words, env=self.slurm.environment(), **options)

    def sbatch(self, script: str, *options) -> int:
        words = ["sbatch", "--parsable", "-o", self.machine.directory / "%j.out", *options, "--wrap", script]
        answer = self.run(words, cwd=self.machine.directory)
        assert answer.status == 0, answer.err
        return int(answer.out)

    def printed(self, job: int) -> str:
        path = self.machine.directory / f"{job}.out"
        return path.read_text() if path.exists() else ""

    def is_over(self, job: int) -> bool:
        return self.run(["squeue", "-h", "-j", str(job)]).out == ""


@pytest.fixture
def short_folder():
    """slurmd puts sockets into its folder. The path of a socket has 107 characters at most."""
    with tempfile.TemporaryDirectory(prefix="slurm.") as folder:
        yield pathlib.Path(folder)


# The folder is named first, so it is removed when the machine's processes have ended.
@pytest.fixture
def node(short_folder, make_machine):
    return Node(make_machine("2xH100"), short_folder)


HOLDS = "touch started.$SLURM_JOB_ID; while ! test -e go.$SLURM_JOB_ID; do sleep 0.05; done"


@needs_slurm
def test_a_job_of_slurm_and_a_job_of_berth_take_turns_on_one_gpu(node):
    machine = node.machine
    first = node.sbatch(f"{machine.program} pick; {HOLDS}", "--gres=gpu:2")
    eventually((machine.directory / f"started.{first}").exists)
    assert allotted(machine) == [(first, MINE, 2)]
    assert node.printed(first) in ("0\n", "1\n")
    behind = waiter(machine)
    eventually(lambda: waiting(machine))
    (machine.directory / f"go.{first}").touch()
    # The epilog ends the lease, and the one in line starts.
    behind.starts()
    second = node.sbatch(HOLDS, "--gres=gpu:2")
    eventually(lambda: waiting(machine))
    assert not (machine.directory / f"started.{second}").exists()
    behind.ends()
    eventually((machine.directory / f"started.{second}").exists)
    assert allotted(machine) == [(second, MINE, 2)]
    (machine.directory / f"go.{second}").touch()
    eventually(lambda: leases(machine) == [])


@needs_slurm
def test_a_job_that_is_cancelled_has_its_epilog(node):
    machine = node.machine
    job = node.sbatch(HOLDS, "--gres=gpu:1")
    eventually((machine.directory / f"started.{job}").exists)
    assert allotted(machine) == [(job, MINE, 1)]
    node.run(["scancel", str(job)])
    eventually(lambda: leases(machine) == [])


# Given to Slurm -----------------------------------------------------------------------------------


@needs_slurm
def test_the_same_request_goes_to_slurm(node):
    machine = node.machine
    words = "run", "--on", "slurm", "-n", "2", "--time", "1h", "--note", "sweep", "--"
    script = "echo $SLURM_STEP_GPUS; squeue -h -j $SLURM_JOB_ID -o '%l %k'; exit 3"
    answer = machine.berth(*words, "sh", "-c", script, env=node.slurm.environment())
    assert (answer.status, answer.out) == (3, "0,1\n1:00:00 sweep\n"), answer.err


def test_what_slurm_cannot_be_asked_for_is_refused(machine):
    for words, named in [
        (("--free", "20G"), "free >= 20G"),
        (("--anywhere",), "--anywhere"),
        (("--exec",), "--exec"),
        (("--notify", "mail:ada"), "--notify"),
    ]:
        refused = machine.berth("run", "--on", "slurm", *words, "--", "true")
        assert refused.status == 2 and named in refused.err
    refused = machine.berth("run", "--on", "slurm", "--", "echo", "{ids}")
    assert refused.status == 2 and "CUDA_VISIBLE_DEVICES" in refused.err


def test_without_slurm_it_says_so(machine):
    refused = machine.berth("run", "--on", "slurm", "--", "true", env={"PATH": str(machine.directory)})
    assert refused.status == 1 and "there is no srun on PATH" in refused.err
