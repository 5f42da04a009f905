"""A GPU on which each job dies at once is free again at once, and would eat the whole queue. What became of the runs on
it says so, where the same program lives elsewhere."""

import os

import pytest
from jobs import Job, eventually, holder
from outcomes_told import blamed_by, file_of
from simulated_machine import Machine
from submitted import submit, told


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
    # They are told to have ended a moment before their leases do.
    eventually(lambda: "leased" not in machine.berth("list").out)
    return failed(machine, job)


def state_of(machine: Machine, index: int = 0) -> dict:
    return machine.berth("list", "--json").json["devices"][index]["verdict"]


def endings(machine: Machine) -> list[str]:
    """Of all runs, the last one last."""
    lines = file_of(machine).read_text().splitlines()[1:] if file_of(machine).exists() else []
    return [line.split(" ")[3] for line in lines]


# Three say that a GPU is bad, once others have lived twice as long. A machine that stops for a
# moment just then costs some more; without any judgement it would be 37.
FEW = 8


def test_of_an_array_beside_one_bad_gpu_few_tasks_are_lost(four):
    go = four.directory / "go"
    # Until then the others are busy, and what is next has no other GPU.
    until_then = f"until [ -e {go} ]; do sleep 0.02; done"
    job = submit(four, "--array", "1-40", "--", *bad_on_0(until_then))
    eventually(lambda: "passed over" in four.berth("list").out)
    go.touch()
    assert wait(four, job) <= FEW
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


def test_what_was_ended_by_somebody_blames_no_gpu(four):
    for _ in range(3):
        wait(four, submit(four, "--", *bad_on_0("true")))
    assert endings(four) == ["badly", "well", "well"]
    job = submit(four, "--", "sh", "-c", "echo up; exec sleep 1000")
    # Cancelled before that, there is no run.
    eventually(lambda: "up" in four.berth("log", job).out)
    four.berth("cancel", job)
    eventually(lambda: endings(four)[3:] == ["by_others"])
    heeds = "trap 'exit 1' TERM; sleep 1000 & wait"
    assert four.berth("run", "--time", "1s", "--", "sh", "-c", heeds).status != 0
    assert endings(four)[4:] == ["by_others"]
    assert four.berth("run", "--", "sh", "-c", "kill -TERM $$").status != 0
    assert endings(four)[5:] == ["by_others"]
    assert four.berth("run", "--", "sh", "-c", "kill -SEGV $$").status != 0
    assert endings(four)[6:] == ["badly"]


# NVML says that all is well.
NO_CONTEXT_ON_0 = """
[[device]]
model = "A100"
count = 4
[[fault]]
call = "cuDevicePrimaryCtxRetain"
device = 0
result = 214
"""
NO_CUDA_ANYWHERE = '[[device]]\nmodel = "A100"\ncount = 4\n[[fault]]\ncall = "cuInit"\nresult = {}\n'.format


def test_after_a_bad_run_cuda_is_tried_and_where_it_fails_the_request_waits_for_another_gpu(make_machine):
    machine = make_machine(NO_CONTEXT_ON_0)
    assert machine.berth("run", "--devices", "0", "--", "sh", "-c", "exit 1").status == 1
    others = [holder(machine, "--devices", str(index)) for index in (1, 2, 3)]
    trouble = "CUDA makes no context on it: error 214 ("
    waiter = Job(machine).says(f"GPU 0 is given back, and passed over for a time: {trouble}")
    waiter.says("waiting for")
    assert endings(machine) == ["badly", "no_cuda"]
    reason = state_of(machine)["reason"]
    assert "passed over until " in reason and "CUDA did not start on it; `berth doctor` says why" in reason
    second = Job(machine).waits()
    others[1].ends()
    assert waiter.starts() == "2"
    assert waiter.ends() == 0
    assert second.starts() == "2"
    assert endings(machine)[:2] == ["badly", "no_cuda"] and endings(machine).count("no_cuda") == 1


def test_a_request_for_just_that_gpu_gets_it_all_the_same(make_machine):
    machine = make_machine(NO_CONTEXT_ON_0)
    # Nothing is tried without a reason to doubt.
    assert machine.berth("run", "--devices", "0", "--", "true").status == 0
    assert machine.berth("run", "--devices", "0", "--", "sh", "-c", "exit 1").status == 1
    answer = machine.berth("run", "--devices", "0", "--", "true")
    assert answer.status == 0 and "GPU 0 is given back" in answer.err
    assert endings(machine) == ["well", "badly", "no_cuda", "well"]
    # A run has lived there.
    assert machine.berth("run", "--devices", "0", "--", "true").err == ""
    assert endings(machine)[4:] == ["well"]


def test_a_gpu_on_which_cuda_starts_is_kept(make_machine):
    machine = make_machine(NO_CONTEXT_ON_0)
    for _ in range(2):
        assert machine.berth("run", "--devices", "1", "--", "sh", "-c", "exit 1").err == ""
    assert endings(machine) == ["badly", "badly"]


@pytest.mark.parametrize("error, tried", [(999, True), (804, False)])
def test_what_is_wrong_with_the_installation_blames_no_gpu(make_machine, error, tried):
    machine = make_machine(NO_CUDA_ANYWHERE(error))
    for _ in range(2):
        assert machine.berth("run", "--devices", "0", "--", "sh", "-c", "exit 1").status == 1
    assert ("no_cuda" in endings(machine)) == tried


def test_where_cuda_starts_nowhere_nobody_waits_for_ever(make_machine):
    machine = make_machine(NO_CUDA_ANYWHERE(999))
    for index in range(4):
        assert machine.berth("run", "--devices", str(index), "--", "sh", "-c", "exit 1").status == 1
    answer = machine.berth("run", "--", "sh", "-c", "exit 3")
    assert answer.status == 3
    assert answer.err.count("is given back") == 4
    assert endings(machine) == ["badly"] * 4 + ["no_cuda"] * 4 + ["badly"]


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
    assert (answer.status, answer.out) == (0, "")
    assert "GPU 1 was not excluded, and no requests of" in answer.err
    assert not state_of(four)["free"]
    answer = four.berth("include", "0")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith("included GPU 0: requests of ")
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


def test_a_file_of_another_version_says_what_is_understood_and_no_more(four):
    assert four.berth("run", "--", "true").status == 0
    path = file_of(four)
    text = blamed_by(four, 7)
    # A line that this version does not know, as one before this version met "no_cuda".
    head, lines = text.split("\n", 1)
    path.write_text(f"{head}\n" + lines.replace(" well ", " reset_meanwhile ", 1) + lines)
    assert state_of(four)["clause"] == "not_passed_over"
    # A newer format is not read, and the next run begins a file anew.
    path.write_text(text.replace("berth-outcomes 1", "berth-outcomes 2"))
    assert state_of(four)["free"]
    assert four.berth("run", "--", "true").status == 0
    assert path.read_text().startswith("berth-outcomes 1 ") and endings(four) == ["well"]


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
