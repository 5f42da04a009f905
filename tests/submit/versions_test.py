"""The file of a job, and one of a later version."""

from jobs import eventually
from storm import processes
from submitted import fill, job, spool, submit, told


def edit(machine, *words) -> str:
    answer = machine.berth("edit", *words)
    assert answer.status == 0, answer.err
    return answer.out


def held(machine, *options) -> str:
    number = submit(machine, *options, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exit 3")
    edit(machine, number, "--hold", "--yes")
    eventually(lambda: not processes(machine)["run"] or not job(machine, number)["in_line"])
    return number


def test_the_file_of_a_job_has_its_request_as_a_record(make_machine):
    machine = make_machine("2xH100")
    number = submit(machine, "-n", "2", "--free", "20G", "--time", "90m", "--note", "x", "--", "true")
    _, _, request = (spool(machine) / number / "job").read_text().partition("\n[request]\n")
    assert request == "count=2\ncondition=free >= 20G\ntime_s=5400\nnote=x\nend\n"
    assert job(machine, number)["request"] == ["--count=2", "--free=20G", "--time=90m", "--note=x"]


def test_a_job_of_a_newer_version_is_left_alone_and_named(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    number = held(machine, "-n", "1")
    file = spool(machine) / number / "job"
    ours = file.read_text()
    newer = ours.replace("berth-job 1\n", "berth-job 2\n")
    file.write_text(newer)
    edit_of_it = machine.berth("edit", number, "--no-hold")
    reason = f"{number}/job: written in version 2 of the job format; this program knows 1"
    assert edit_of_it.status != 0 and reason in edit_of_it.err
    other = submit(machine, "--", "true")
    machine.berth("cancel", holder)
    assert machine.berth("wait", other).status == 0
    listed = machine.berth("jobs")
    assert reason in listed.err and [each["id"] for each in told(machine)] == [holder, other]
    assert machine.berth("cancel", number).status != 0 and file.read_text() == newer
    # The newer Berth is back.
    file.write_text(ours)
    edit(machine, number, "--no-hold")
    assert machine.berth("wait", number).status == 3
