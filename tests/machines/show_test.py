"""berth list, queue and why over the hosts of a lab."""

import json

from jobs import eventually
from schemas import checked_document
from screen import make_screen  # noqa: F401


def test_all_hosts_are_one_list_and_each_that_is_down_a_row_with_its_reason(machines):
    machines.add("gpu1", "2xH100")
    machines.add("gpu2", "4xA100")
    machines.add("gpu3", program="")
    machines.add_down("gpu4")
    answer = machines.run("list", "--anywhere", "--hosts", "gpu1,gpu2,gpu3,gpu4")
    assert answer.returncode == 0, answer.stderr
    assert "4 hosts (2 down): 6 GPUs, 6 free" in answer.stdout
    assert "gpu3: there is no berth for a shell without a terminal" in " ".join(answer.stdout.split())
    assert "gpu4: it runs no ssh server on this port" in " ".join(answer.stdout.split())


def test_as_json_it_is_what_a_hub_tells(two):
    two.add_down("gpu3")
    answer = two.run("list", "--anywhere", "--hosts", "gpu1,gpu2,gpu3", "--json")
    import json

    document = json.loads(answer.stdout)
    checked_document(document, "hosts")
    assert [(host["name"], host["state"]) for host in document["hosts"]] == [
        ("gpu1", "up"),
        ("gpu2", "up"),
        ("gpu3", "down"),
    ]


def test_the_queues_have_the_host_as_a_column(two):
    for host in two.hosts:
        holder = host.lab.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
        assert holder.stdout.readline() == "ready\n"
    two.hosts[1].lab.start_berth("run", "--note", "mine", "--", "true")
    eventually(lambda: len(two.hosts[1].tickets()) == 2)
    answer = two.run("queue", "--anywhere", "--hosts", "gpu1,gpu2")
    head, row = answer.stdout.splitlines()
    assert head.split()[:2] == ["HOST", "POS"] and row.split()[:2] == ["gpu2", "1"]
    assert two.run("queue", "--anywhere", "--hosts", "gpu1").stdout == "nobody waits\n"


def test_why_says_for_every_host_whether_it_would_be_chosen(machines):
    for name, machine in {"gpu1": "1xH100", "gpu2": "1xH100", "gpu3": "1xT4"}.items():
        machines.add(name, machine)
    machines.add_down("gpu4")
    holder = machines.hosts[0].lab.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert holder.stdout.readline() == "ready\n"
    answer = machines.run("why", "--anywhere", "--hosts", "gpu1,gpu2,gpu3,gpu4", "--name", "H100")
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("gpu2  in line  the command would start now")
    assert lines[1].startswith("gpu1  in line  first in line, start not known")
    assert lines[2].startswith("gpu3  left out it can never serve this request")
    assert any(line.startswith("gpu4  left out it runs no ssh server") for line in lines)


def test_why_as_json_is_as_its_schema_says(machines):
    machines.add("gpu1", "2xH100")
    machines.add("gpu2", "1xT4")
    machines.add_down("gpu3")
    answer = machines.run("why", "--anywhere", "--hosts", "gpu3,gpu2,gpu1", "-n", "2", "--json")
    document = checked_document(json.loads(answer.stdout), "why-hosts")
    told = {host["host"]: (host["standing"], host["answers"], host["offer"]) for host in document["hosts"]}
    offer = {"possible": 2, "free": 2, "at_once": True, "ahead": 0, "starts_in_s": None}
    assert told["gpu1"] == ("in line", True, offer)
    assert told["gpu2"][:2] == ("left out", True) and told["gpu3"] == ("left out", False, None)
    assert [host["host"] for host in document["hosts"]][0] == "gpu1"


def test_why_counts_those_who_wait_before(two):
    for host in two.hosts:
        holder = host.lab.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
        assert holder.stdout.readline() == "ready\n"
    two.hosts[0].lab.start_berth("run", "--", "true")
    eventually(lambda: len(two.hosts[0].tickets()) == 2)
    lines = two.run("why", "--anywhere", "--hosts", "gpu1,gpu2").stdout.splitlines()
    assert lines[0].startswith("gpu2  in line  first in line, start not known")
    assert lines[1].startswith("gpu1  in line  1 in line before it, start not known")


def test_a_host_that_hangs_delays_no_row_but_its_own(machines):
    machines.add("gpu1", "1xH100")
    machines.add_silent("gpu2")
    done = machines.run("list", "--anywhere", "--hosts", "gpu1,gpu2")
    assert "2 hosts (1 down): 1 GPU, 1 free" in done.stdout
    assert "gpu2: " in done.stdout


def test_a_live_screen_has_all_hosts_and_why_one_is_missing(two, make_screen):  # noqa: F811
    two.add_down("gpu3")
    holder = two.hosts[1].lab.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert holder.stdout.readline() == "ready\n"
    words = (two.hosts[0].lab.program, "top", "--anywhere", "--hosts", "gpu1,gpu2,gpu3")
    screen = make_screen(two, *words, columns=120, lines=30)
    # A screen is drawn line by line.
    screen.shows("^3 hosts: 2 GPUs, 1 free")
    screen.shows("gpu3: it runs no ssh server")
    screen.shows(r"^gpu1 +0 .* free$")
    screen.shows(r"^gpu2 .* leased ")
