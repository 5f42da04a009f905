"""What jobs that are over cost, in system calls: few for each of them, whatever was submitted before."""

import shutil

import pytest
from jobs import eventually
from storm import processes
from submitted import spool, submit


def copies(machine, number: str, count: int) -> None:
    """So many more jobs that ended as this one did."""
    folder = spool(machine)
    last = max(int(path.name) for path in folder.iterdir() if path.name.isdigit())
    for each in range(last + 1, last + count + 1):
        shutil.copytree(folder / number, folder / str(each))
    (folder / "numbers").write_text(f"{last + count:020}\n")


def calls(machine, *words) -> int:
    """Of this command and of all that it starts."""
    log = machine.directory / "strace"
    trace = ["strace", "-f", "-qq", "-e", "signal=none", "-o", log]
    assert machine.run(*trace, machine.program, *words).status == 0
    eventually(lambda: not processes(machine)["runner"])
    return sum("resumed>" not in line for line in log.read_text().splitlines())


@pytest.fixture
def ended(machine):
    """The number of a job that is over."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    number = submit(machine, "--", "true")
    assert machine.berth("wait", number).status == 0
    eventually(lambda: not processes(machine)["runner"])
    return number


def each_costs(machine, number: str, count: int, *words) -> float:
    before = calls(machine, *words)
    copies(machine, number, count)
    return (calls(machine, *words) - before) / count


def test_a_job_that_is_over_costs_nine_calls_in_the_table_of_jobs(machine, ended):
    assert each_costs(machine, ended, 100, "jobs") <= 9


def test_a_job_that_is_over_costs_the_start_of_the_next_one_little(machine, ended):
    copies(machine, ended, 200)
    # The first runner of all reads each once.
    assert calls(machine, "submit", "--", "true") < 200 * 60
    few = calls(machine, "submit", "--", "true")
    copies(machine, ended, 400)
    calls(machine, "submit", "--", "true")
    many = calls(machine, "submit", "--", "true")
    assert (many - few) / 400 <= 5


def test_a_task_that_is_over_costs_four_calls(machine):
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    number = submit(machine, "--array", "1-300", "--", "true")
    assert machine.berth("cancel", number).status == 0
    eventually(lambda: not processes(machine)["runner"])
    folder = spool(machine) / number
    one = submit(machine, "--", "true")
    assert machine.berth("wait", one).status == 0
    before = calls(machine, "jobs")
    for index in range(1, 301):
        shutil.copy(folder.parent / one / "state", folder / f"{index}.state")
    assert (calls(machine, "jobs") - before) / 300 <= 4
