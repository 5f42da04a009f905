"""What an agent tells of submitted jobs: it knows them by their tickets, whoever's they are."""

import getpass

import pytest
from agent import Agent
from hub import Hub
from jobs import eventually, holder
from schemas import checked_document
from submitted import submit, wait_for

USER = getpass.getuser()


@pytest.fixture
def machine(make_machine):
    return make_machine("2xH100")


def jobs_by_name(source) -> dict:
    document = checked_document(source.usage("job"), "usage")
    assert document["by"] == "job"
    return {(row["user"], row["job"]): row for row in document["rows"]}


def test_the_hours_of_jobs_are_told_by_their_name(machine):
    agent = Agent(machine)
    sweep = submit(machine, "-J", "sweep", "--array", "0-1", "--note", "for the paper", "--", "sleep", "1000")
    eventually(lambda: (rows := jobs_by_name(agent)) and rows[USER, "sweep"]["leased_gpu_hours"])
    assert machine.berth("cancel", sweep).status == 0
    nameless = submit(machine, "--", "sleep", "1000")
    eventually(lambda: jobs_by_name(agent).get((USER, None), {}).get("leased_gpu_hours"))
    other = holder(machine)
    eventually(lambda: agent.usage()["rows"][0]["leases"] == 4)
    other.ends()
    rows = jobs_by_name(agent)
    assert set(rows) == {(USER, "sweep"), (USER, None)}
    assert (rows[USER, "sweep"]["leases"], rows[USER, None]["leases"]) == (2, 1)
    hub = Hub(machine, f"http://127.0.0.1:{agent.port}")
    eventually(lambda: set(jobs_by_name(hub)) == set(rows))
    head, *lines = machine.berth(
        "usage", "--by", "job", "--url", f"http://127.0.0.1:{agent.port}"
    ).out.splitlines()
    assert head.split() == ["JOB", "USER", "LEASES", "LEASED", "USED", "%"]
    assert sorted(line.split()[:3] for line in lines[:2]) == [["-", USER, "1"], ["sweep", USER, "2"]]
    assert "leased on all GPUs for jobs" in lines[2]
    assert machine.berth("cancel", nameless).status == 0


def test_the_metrics_say_which_lease_is_for_which_job(machine):
    agent = Agent(machine)
    assert "\nberth_jobs{" not in agent.get("/metrics")[2]
    number = submit(machine, "-J", 'a "sweep"', "--array", "0-3", "--", "sleep", "1000")
    for task in ("0", "1"):
        wait_for(machine, f"{number}.{task}", "running")
    running = f'\nberth_jobs{{user="{USER}",state="running"}} 2\n'
    in_line = f'\nberth_jobs{{user="{USER}",state="in_line"}} 1\n'
    text = eventually(lambda: running in (text := agent.get("/metrics")[2]) and in_line in text and text)
    for task in ("0", "1"):
        assert f'user="{USER}",job="{number}.{task}",name="a \\"sweep\\""}} 1\n' in text
    assert text.count("\nberth_job_info{lease=") == 2
    assert machine.berth("cancel", number).status == 0
    eventually(lambda: "\nberth_job_info{" not in agent.get("/metrics")[2])
