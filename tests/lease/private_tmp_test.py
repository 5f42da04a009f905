"""A /tmp that not all on the machine see: nobody else sees a lease there, so none is made."""

import os
import pathlib
import shlex

import pytest
from jobs import close_input

ALICE, BOB = 20004, 20005
STANDARD = pathlib.Path("/tmp/berth")


@pytest.fixture
def session(open_machine, as_user):
    """Gives the words that run a command as this user, in a /tmp of his own that still has the machine in it.

    `lease_directory`: the folder that is mounted on /tmp/berth there. `disk`: his /tmp is the folder tmp of a file
    system of its own, as that of the machine may be."""
    machine = open_machine
    if not machine.directory.is_relative_to("/tmp") or os.path.exists("/run/berth"):
        pytest.skip("needs a test directory below /tmp, and no /run/berth")
    if " / / rw" not in (mounts := pathlib.Path("/proc/self/mountinfo").read_text()):
        pytest.skip("the root is read-only, or a folder")
    if any(" / / " in line and " - overlay " in line for line in mounts.splitlines()):
        pytest.skip("in a container nothing is refused")

    def words(uid: int, lease_directory: pathlib.Path | None = None, disk: bool = False) -> list[str]:
        instance = machine.directory / f"instance-{uid}"
        instance.mkdir(exist_ok=True)
        private = instance / "tmp" if disk else instance
        kept = [(machine.directory, machine.directory)]
        if machine.build.is_relative_to("/tmp"):
            kept.append((machine.build, machine.build))
        if lease_directory:
            kept.append((lease_directory, STANDARD))
        steps = [f"mount -t tmpfs disk {instance}"] if disk else []
        steps.append(f"mkdir -p {private} && chmod 1777 {private}")
        for source, target in kept:
            inside = str(private / target.relative_to("/tmp"))
            steps.append(f"mkdir -p {shlex.quote(inside)}")
            steps.append(shlex.join(["mount", "--bind", str(source), inside]))
        steps.append(shlex.join(["mount", "--rbind", str(private), "/tmp"]))
        script = " && ".join([*steps, 'exec "$@"'])
        return ["unshare", "--mount", "bash", "-c", script, "-", *as_user(uid)]

    if machine.run(*words(ALICE), "true").status != 0:
        pytest.skip("needs the right to mount")
    return words


def in_session(machine, words, *command, **options):
    return machine.run(*words, machine.program, *command, env={"BERTH_DIR": None, "HOME": "/"}, **options)


@pytest.mark.parametrize(
    "command", [["run", "--no-wait", "--", "true"], ["run", "--", "true"], ["pick", "--hold", "5s"]]
)
def test_nobody_gets_a_gpu_where_others_would_not_see_the_lease(open_machine, session, command):
    for user in (ALICE, BOB):
        answer = in_session(open_machine, session(user), *command)
        assert answer.status == 69, answer
        assert "no GPU is leased here" in answer.err
        assert "ask an admin to run `sudo berth init`" in answer.err
        assert not (open_machine.directory / f"instance-{user}/berth").exists()


def test_a_process_of_the_user_outside_says_that_it_is_not_the_machines(open_machine, session, as_user):
    outside = open_machine.start(*as_user(ALICE), "sh", "-c", "echo; exec sleep 1000")
    outside.stdout.readline()
    answer = in_session(open_machine, session(ALICE, disk=True), "run", "--no-wait", "--", "true")
    assert answer.status == 69, answer
    assert "the folder /tmp is mounted on /tmp here" in " ".join(answer.err.split()), answer


def test_a_job_that_could_never_start_there_is_not_stored(open_machine, session):
    answer = in_session(open_machine, session(ALICE), "submit", "--", "true")
    assert (answer.status, answer.out) == (69, "")
    assert "no GPU is leased here" in answer.err


def test_a_look_warns_and_doctor_fails(open_machine, session):
    words = session(ALICE)
    folder = f"the folder {open_machine.directory}/instance-{ALICE}"
    looked = in_session(open_machine, words, "list")
    assert looked.status == 0
    assert f"warning: {folder} is mounted on /tmp here, so the leases of others are not seen" in looked.err
    told = in_session(open_machine, words, "doctor")
    assert told.status == 1
    assert f"{folder} is mounted on /tmp here" in " ".join(told.out.split())


def test_with_the_lease_directory_of_the_machine_in_it_such_a_tmp_is_as_good_as_any(open_machine, session):
    alice, bob = session(ALICE, open_machine.leases), session(BOB, open_machine.leases)
    held = open_machine.start(
        *alice,
        open_machine.program,
        *("run", "--devices", "0", "--", "bash", "-c", "echo got; read; true"),
        env={"BERTH_DIR": None, "HOME": "/"},
        stdin=-1,
    )
    assert held.stdout.readline() == "got\n"
    other = in_session(open_machine, bob, "run", "--devices", "0", "--no-wait", "--", "true")
    assert other.status == 75, other
    close_input(held)
    assert held.wait(90) == 0
    assert in_session(open_machine, bob, "run", "--devices", "0", "--no-wait", "--", "true").status == 0


def test_a_directory_that_somebody_has_named_is_used_and_doctor_tells_of_it(open_machine, session):
    words = session(ALICE)
    assert open_machine.run(*words, open_machine.program, "run", "--", "true", env={"HOME": "/"}).status == 0
    told = open_machine.run(*words, open_machine.program, "doctor", env={"HOME": "/"})
    assert "is mounted on /tmp here, so others do not see leases made here" in " ".join(told.out.split())


def test_live_leases_in_another_of_the_standard_places_are_named(open_machine, session):
    other = open_machine.directory / "other"
    other.mkdir()
    other.chmod(0o1777)
    script = f"BERTH_DIR={other} exec env -u BERTH_LEASE {open_machine.program} doctor"
    words = session(ALICE, open_machine.leases)
    answer = in_session(
        open_machine,
        words,
        "run",
        "--",
        "bash",
        "-c",
        f"mkdir {other}/{{devices,queue,leases,inside}}; {script}",
    )
    assert f"/tmp/berth has 1 live tickets, which those who use {other} do not see" in answer.out
