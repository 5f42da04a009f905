"""A GPU on which each job dies at once is free again at once, and would eat the whole queue. What became of the runs on
it says so, where the same program lives elsewhere."""

import os
import pathlib

import pytest
from jobs import eventually
from simulated_machine import Machine
from submitted import submit, told, wait_for


@pytest.fixture
def four(make_machine) -> Machine:
    return make_machine("4xA100")


def bad_on_0(then: str) -> tuple[str, ...]:
    return "sh", "-c", f'[ "$CUDA_VISIBLE_DEVICES" = 0 ] && exit 1; {then}'


def failed(machine: Machine, job: str) -> int:
    return sum(task["exit_status"] == 1 for task in told(machine, job))


def wait(machine: Machine, job: str) -> int:
    """How many of its tasks failed."""
    machine.berth("wait", job, timeout=300)
    assert all(task["state"] == "ended" for task in told(machine, job))
    return failed(machine, job)


def state_of(machine: Machine, index: int = 0) -> dict:
    return machine.berth("list", "--json").json["devices"][index]["verdict"]


def file_of(machine: Machine) -> pathlib.Path:
    return machine.leases / "outcomes" / str(os.geteuid())


def test_of_an_array_beside_one_bad_gpu_few_tasks_are_lost(four):
    lost = wait(four, submit(four, "--array", "1-40", "--", *bad_on_0("sleep 0.3")))
    assert lost <= 4
    verdict = state_of(four)
    assert verdict["clause"] == "not_passed_over"
    assert "passed over until " in verdict["reason"]
    assert "ended badly within" in verdict["reason"] and "the same program lives on GPU " in verdict["reason"]
    assert "passed over" in four.berth("list").out
    why = four.berth("why", "-n", "4").out
    assert "passed over" not in why, "a request for all of them gets it all the same"
    assert "passed over until" in four.berth("why").out
    assert four.berth("pick").out.strip() != "0"
    assert len(four.berth("pick", "-n", "4").out.split(",")) == 4
    assert four.berth("pick", "--devices", "0").out.strip() == "0"


def test_tasks_that_take_long_speak_for_the_others_while_they_live(four):
    job = submit(four, "--array", "1-40", "--", *bad_on_0("sleep 1000"))
    eventually(
        lambda: four.berth("list").out.count("leased") == 3 and "passed over" in four.berth("list").out
    )
    assert failed(four, job) <= 4
    # The GPU is there for whoever has not said that it is bad, and for a request that wants just it.
    assert four.berth("run", "--devices", "0", "--", "true").status == 0


def test_a_script_that_fails_everywhere_blames_no_gpu(four):
    assert wait(four, submit(four, "--array", "1-40", "--", "sh", "-c", "exit 1")) == 40
    assert {state_of(four, index)["free"] for index in range(4)} == {True}


def test_what_was_ended_by_somebody_blames_no_gpu(four):
    for _ in range(3):
        job = submit(four, "--", *bad_on_0("true"), "sleep", "1000")
        wait(four, job)
    eventually(lambda: file_of(four).exists() and "badly" in file_of(four).read_text())
    job = submit(four, "--", "sleep", "1000")
    wait_for(four, job, "running")
    four.berth("cancel", job)
    # It is told that it has ended a moment before its lease does.
    eventually(lambda: "by_others" in file_of(four).read_text().splitlines()[-1])
    heeds = "trap 'exit 1' TERM; sleep 1000 & wait"
    assert four.berth("run", "--time", "1s", "--", "sh", "-c", heeds).status == 1
    assert "by_others" in file_of(four).read_text().splitlines()[-1]
    assert four.berth("run", "--", "sh", "-c", "kill -TERM $$").status != 0
    assert "by_others" in file_of(four).read_text().splitlines()[-1]
    assert four.berth("run", "--", "sh", "-c", "kill -SEGV $$").status != 0
    assert "badly" in file_of(four).read_text().splitlines()[-1]


def blamed_by(machine: Machine, uid: int) -> str:
    """A text that blames GPU 0, as of now."""
    devices = machine.berth("list", "--json").json["devices"]
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    now = int(float(pathlib.Path("/proc/uptime").read_text().split()[0]) * 1000)
    line = "{:016x} {} {} {} {};\n".format
    runs = [line(uid, now - 9000 + 100 * i, 10, "badly", devices[0]["uuid"]) for i in range(3)]
    return (
        f"berth-outcomes 1 {boot}\n" + "".join(runs) + line(uid, now - 5000, 900, "well", devices[1]["uuid"])
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs files of other users")
def test_nobody_can_talk_a_gpu_bad_for_others(four):
    assert four.berth("run", "--", "true").status == 0
    folder = four.leases / "outcomes"
    text = blamed_by(four, 7)

    def write(name: str, owner: int):
        path = folder / name
        path.write_text(text)
        os.chown(path, owner, owner)

    # One other user, under many names.
    for name in ("4001", "4002", "4001-x", "0-x", "x"):
        write(name, 4001)
    assert state_of(four)["free"]
    # Two agree.
    write("4003", 4003)
    assert "of each of two users" in state_of(four)["reason"]
    (folder / "4003").unlink()
    # So many names that nobody reads them all: one's own lines count all the same.
    for number in range(600):
        write(f"{5000 + number}", 4001)
    assert state_of(four)["free"]
    file_of(four).write_text(text)
    assert state_of(four)["clause"] == "not_passed_over"


def test_whoever_wants_a_gpu_again_gets_it(four):
    assert four.berth("run", "--", "true").status == 0
    file_of(four).write_text(blamed_by(four, 7))
    assert not state_of(four)["free"]
    answer = four.berth("include", "1")
    assert (answer.status, answer.out) == (0, "") and "none of these GPUs was passed over" in answer.err
    assert not state_of(four)["free"]
    answer = four.berth("include", "0")
    assert (answer.status, answer.out, answer.err) == (0, "", "")
    assert state_of(four)["free"]
    for words, status in (((), 2), (("9",), 2)):
        answer = four.berth("include", *words)
        assert (answer.status, answer.out) == (status, "") and answer.err
    file_of(four).unlink()
    (four.leases / "outcomes").rmdir()
    answer = four.berth("include", "0")
    assert answer.status == 1 and "sudo berth init" in answer.err


@pytest.mark.parametrize("odd", ["link", "folder", "fifo", "torn", "binary", "huge", "of-another"])
def test_what_stands_in_the_place_of_ones_file_stops_nothing(four, odd):
    assert four.berth("run", "--", "true").status == 0
    path = file_of(four)
    path.unlink()
    elsewhere = four.directory / "elsewhere"
    elsewhere.write_text("mine\n")
    match odd:
        case "link":
            path.symlink_to(elsewhere)
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "torn":
            path.write_text(blamed_by(four, 7)[:-70])
        case "binary":
            path.write_bytes(os.urandom(9000))
        case "huge":
            path.write_text(blamed_by(four, 7) + "x" * 3_000_000)
        case "of-another":
            if os.geteuid() != 0:
                pytest.skip("needs files of other users")
            path.write_text("not ours\n")
            os.chown(path, 4001, 4001)
    assert four.berth("list").status == 0
    for _ in range(3):
        assert four.berth("run", "--", "sh", "-c", "exit 3").status == 3
    assert elsewhere.read_text() == "mine\n"
    if odd in ("torn", "binary", "huge"):
        assert path.stat().st_size < 20_000 and "badly" in path.read_text()
    if odd == "of-another":
        assert path.read_text() == "not ours\n"
        (own,) = (four.leases / "outcomes").glob(f"{os.geteuid()}-*")
        assert own.read_text().count("badly") == 3


def test_a_file_stays_small_however_much_has_run(four):
    assert four.berth("run", "--", "true").status == 0
    path = file_of(four)
    path.write_text(blamed_by(four, 7) + "x\n" * 8000)
    for _ in range(3):
        assert four.berth("run", "--", "true").status == 0
        assert path.stat().st_size <= 16 << 10
    assert list((four.leases / "outcomes").iterdir()) == [path]


@pytest.mark.parametrize("odd", ["missing", "file", "not-sticky", "of-another"])
def test_without_a_folder_that_is_safe_nothing_is_remembered_and_nothing_refused(four, odd):
    assert four.berth("run", "--", "true").status == 0
    folder = four.leases / "outcomes"
    file_of(four).write_text(blamed_by(four, 7))
    assert not state_of(four)["free"]
    match odd:
        case "missing" | "file":
            file_of(four).unlink()
            folder.rmdir()
            if odd == "file":
                folder.write_text("")
        case "not-sticky":
            folder.chmod(0o777)
        case "of-another":
            if os.geteuid() != 0:
                pytest.skip("needs files of other users")
            os.chown(folder, 4001, 4001)
    before = file_of(four).read_text() if odd in ("not-sticky", "of-another") else None
    assert state_of(four)["free"]
    for _ in range(4):
        assert four.berth("run", "--", "sh", "-c", "exit 3").status == 3
    if before is not None:
        assert file_of(four).read_text() == before
    assert state_of(four)["free"]
