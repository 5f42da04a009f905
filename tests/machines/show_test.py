"""berth list, queue and why over the hosts of a lab."""

import contextlib
import json
import os
import shutil
import signal

from jobs import eventually
from fleet_of_hosts import words_of
from schemas import checked_document
from screen import make_screen  # noqa: F401


def test_all_hosts_are_one_list_and_each_that_is_down_a_row_with_its_reason(machines):
    machines.add("gpu1", "2xH100")
    machines.add("gpu2", "4xA100")
    machines.add("gpu3", program="")
    machines.add_down("gpu4")
    answer = machines.run("list", "--anywhere", "--hosts", "gpu1,gpu2,gpu3,gpu4")
    assert answer.returncode == 0, answer.stderr
    assert "4 hosts (1 down, 1 without Berth): 6 GPUs, 6 free" in answer.stdout
    assert "gpu3: there is no berth for a shell without a terminal" in " ".join(answer.stdout.split())
    assert "gpu4: it runs no ssh server on this port" in " ".join(answer.stdout.split())


# One that is stopped as it begins, as by SIGSTOP from outside.
STOPPED = (
    '#!/bin/sh\n[ "$1" = __envoy ] && { echo $$ >@FOLDER@/stopped; kill -STOP $$; }\nexec @BERTH@ "$@"\n'
)


def test_an_envoy_that_is_stopped_costs_its_host_and_no_other(machines):
    machines.add("gpu1", "1xH100")
    machines.add("gpu2", "1xH100", program=STOPPED.replace("@FOLDER@", str(machines.folder / "gpu2")))
    answer = machines.run("list", "--anywhere", "--hosts", "gpu1,gpu2")
    assert answer.returncode == 0, answer.stderr
    assert "2 hosts (1 down): 1 GPU, 1 free" in answer.stdout
    assert "gpu2: ssh has had no answer for 20 s" in " ".join(answer.stdout.split())
    with contextlib.suppress(ProcessLookupError):
        os.kill(int((machines.folder / "gpu2/stopped").read_text()), signal.SIGKILL)


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
        holder = host.machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
        assert holder.stdout.readline() == "ready\n"
    two.hosts[1].machine.start_berth("run", "--note", "mine", "--", "true")
    eventually(lambda: len(two.hosts[1].tickets()) == 2)
    answer = two.run("queue", "--anywhere", "--hosts", "gpu1,gpu2")
    head, row = answer.stdout.splitlines()
    assert head.split()[:2] == ["HOST", "POS"] and row.split()[:2] == ["gpu2", "1"]
    assert two.run("queue", "--anywhere", "--hosts", "gpu1").stdout == "nobody waits\n"


def test_a_request_that_waits_on_several_hosts_is_one_line_of_where_it_starts_the_soonest(two):
    for host, time in zip(two.hosts, ("9h", "1h"), strict=True):
        holder = host.machine.start_berth(
            "run", "--time", time, "--", "sh", "-c", "echo ready; exec sleep 1000"
        )
        assert holder.stdout.readline() == "ready\n"
    for there in (2, 3):
        two.start_anywhere("--time", "1h", "--", "true")
        eventually(lambda there=there: all(len(host.tickets()) == there for host in two.hosts))
    head, *rows = two.run("queue", "--anywhere", "--hosts", "gpu1,gpu2").stdout.splitlines()
    assert head.split()[:2] == ["HOST", "POS"] and [row.split()[:3] for row in rows] == [
        ["2", "hosts", "1"],
        ["2", "hosts", "2"],
    ]
    assert "gpu2: 0 of 1 free" in rows[0]
    told = json.loads(two.run("queue", "--anywhere", "--json", "--hosts", "gpu1,gpu2").stdout)
    checked_document(told, "hosts")
    asked = [waiter["asked_at"] for host in told["hosts"] for waiter in host["queue"]["waiters"]]
    assert len(asked) == 4 and len(set(asked)) == 2 and None not in asked


def test_why_says_for_every_host_whether_it_would_be_chosen(machines):
    for name, machine in {"gpu1": "1xH100", "gpu2": "1xH100", "gpu3": "1xT4"}.items():
        machines.add(name, machine)
    machines.add_down("gpu4")
    holder = machines.hosts[0].machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
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
    offer = {"possible": 2, "free": 2, "at_once": True, "ahead": 0, "starts_in_s": None, "near": None}
    assert told["gpu1"] == ("in line", True, offer)
    assert told["gpu2"][:2] == ("left out", True) and told["gpu3"] == ("left out", False, None)
    assert [host["host"] for host in document["hosts"]][0] == "gpu1"


def test_why_counts_those_who_wait_before(two):
    for host in two.hosts:
        holder = host.machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
        assert holder.stdout.readline() == "ready\n"
    two.hosts[0].machine.start_berth("run", "--", "true")
    eventually(lambda: len(two.hosts[0].tickets()) == 2)
    lines = two.run("why", "--anywhere", "--hosts", "gpu1,gpu2").stdout.splitlines()
    assert lines[0].startswith("gpu2  in line  first in line, start not known")
    assert lines[1].startswith("gpu1  in line  1 before it, start not known")


def test_a_host_that_hangs_delays_no_row_but_its_own(machines):
    machines.add("gpu1", "1xH100")
    machines.add_silent("gpu2")
    done = machines.run("list", "--anywhere", "--hosts", "gpu1,gpu2")
    assert "2 hosts (1 down): 1 GPU, 1 free" in done.stdout
    assert "gpu2: " in done.stdout


def test_a_live_screen_has_all_hosts_and_why_one_is_missing(two, make_screen):  # noqa: F811
    two.add_down("gpu3")
    holder = two.hosts[1].machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert holder.stdout.readline() == "ready\n"
    words = (two.hosts[0].machine.program, "top", "--anywhere", "--hosts", "gpu1,gpu2,gpu3")
    screen = make_screen(two, *words, columns=120, lines=30)
    # A screen is drawn line by line.
    screen.shows("^3 hosts: 2 GPUs, 1 free")
    screen.shows("gpu3: it runs no ssh server")
    screen.shows(r"^gpu1 +0 .* free$")
    screen.shows(r"^gpu2 .* leased ")


def test_a_live_screen_has_a_request_that_waits_on_several_hosts_once(two, make_screen):  # noqa: F811
    for host in two.hosts:
        holder = host.machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
        assert holder.stdout.readline() == "ready\n"
    two.start_anywhere("--", "true")
    eventually(lambda: all(len(host.tickets()) == 2 for host in two.hosts))
    words = (two.hosts[0].machine.program, "top", "--anywhere", "--hosts", "gpu1,gpu2")
    screen = make_screen(two, *words, columns=120, lines=30)
    screen.shows("^2 hosts: 2 GPUs, none free, 1 waiting")
    screen.shows("^.* QUEUE  1$")
    screen.shows("^2 hosts +1 ")


def test_jobs_of_all_hosts_are_one_list_and_a_host_that_is_down_is_named(two):
    for host in two.hosts:
        host.machine.berth("submit", "--job-name", f"of-{host.name}", "--", "true")
        assert host.machine.berth("wait", "1").status == 0
    two.add_down("gpu3")
    words = ("jobs", "--anywhere", "--hosts", "gpu1,gpu2,gpu3")
    document = checked_document(json.loads(two.run(*words, "--json").stdout), "jobs")
    told = [(job["host"], job["id"], job["name"], job["state"]) for job in document["jobs"]]
    assert told == [("gpu1", "1", "of-gpu1", "ended"), ("gpu2", "1", "of-gpu2", "ended")]
    assert [each["host"] for each in document["missing"]] == ["gpu3"]
    head, *rows = two.run(*words).stdout.splitlines()
    assert head.split()[:2] == ["HOST", "JOB"] and [row.split()[0] for row in rows[:2]] == ["gpu1", "gpu2"]
    assert any(row.startswith("gpu3: it runs no ssh server") for row in rows)
    assert "ssh HOST berth jobs 1" in two.run(*words, "1").stderr


def test_the_log_of_a_job_comes_from_whichever_host_has_it(two):
    gpu1, gpu2 = two.hosts
    gpu2.machine.berth("submit", "--", "true")
    for host in two.hosts:
        host.machine.berth("submit", "--", "sh", "-c", f"echo of {host.name}; echo an error >&2")
    gpu2.machine.berth("wait", "2")
    words = ("log", "--anywhere", "--hosts", "gpu1,gpu2")
    assert two.run(*words, "2").stdout == "of gpu2\nan error\n"
    assert two.run(*words, "-f", "2").stdout == "of gpu2\nan error\n"
    several = two.run(*words, "1")
    assert several.returncode != 0 and "there is a job 1 on gpu1, gpu2" in several.stderr
    assert two.run(*words, "--host", "gpu1", "-f", "1").stdout == "of gpu1\nan error\n"
    assert "no job 9 of yours" in two.run(*words, "9").stderr
    assert "the number of one job" in two.run(*words, "1;true").stderr
    gpu2.stop()
    assert "--host gpu1" in two.run(*words, "1").stderr


USAGE = """{"kind":"berth-usage","version":1,"from_s":1700000000,"to_s":1700003600,"by":"user","complete":true,
"missing":[],"unwatched_s":0,"rows":[{"user":"ada","leases":1,"leased_gpu_hours":%d,"used_gpu_hours":1}]}"""


def test_usage_of_all_hosts_has_the_host_in_each_row(two):
    for hours, host in enumerate(two.hosts, 1):
        has_an_agent(host, f"cat <<'END'\n{USAGE % hours}\nEND")
    two.add_down("gpu3")
    has_an_agent(two.add("gpu4"), "echo 'berth: nobody answers here' >&2; exit 1")
    words = ("usage", "--anywhere", "--hosts", "gpu1,gpu2,gpu3,gpu4")
    done = two.run(*words, "--json")
    document = checked_document(json.loads(done.stdout), "usage")
    told = [(row["host"], row["user"], row["leased_gpu_hours"]) for row in document["rows"]]
    assert told == [("gpu2", "ada", 2), ("gpu1", "ada", 1)]
    assert (document["complete"], document["missing"]) == (False, ["gpu3", "gpu4"])
    assert "gpu3: it runs no ssh server" in done.stderr and "gpu4: nobody answers here" in done.stderr
    head, row, *_ = two.run(*words).stdout.splitlines()
    assert head.split()[:2] == ["HOST", "USER"] and row.split()[:2] == ["gpu2", "ada"]


def test_usage_of_hosts_without_an_agent_says_what_is_missing_and_what_to_do(two):
    two.add_down("gpu3")
    for json_too in ([], ["--json"]):
        done = two.run("usage", "--anywhere", "--hosts", "gpu1,gpu2,gpu3", *json_too)
        assert (done.returncode, done.stdout) == (1, "")
        assert "gpu2: " in done.stderr and "start `berth serve`" in done.stderr
        assert (
            "berth: no host tells how its GPUs were used: the agent of a host counts that (`berth serve`)"
            in done.stderr
        )


def has_an_agent(host, script: str) -> None:
    """What berth-serve says there: `berth usage` becomes the one beside it."""
    found = host.folder / "bin"
    (found / "berth").unlink()
    shutil.copy(host.machine.program, found / "berth")
    (found / "berth-serve").write_text(f"#!/bin/sh\n{script}\n")
    (found / "berth-serve").chmod(0o755)


def test_a_label_says_which_hosts_and_why_the_others_are_left_out(machines):
    for name, text in {
        "gpu1": 'labels = ["slow"]',
        "gpu2": 'labels = ["nvlink", "room:b12"]',
        "gpu3": 'host_name = "box"',
    }.items():
        label(machines.add(name, "1xH100"), text)
    answer = machines.run("why", "--anywhere", "--hosts", machines.names(), "--where", "label=nvlink")
    lines = [" ".join(line.split()) for line in answer.stdout.split("\ngpu")]
    assert lines[0].startswith("gpu2 in line the command would start now")
    assert "label = nvlink asked, it is slow" in lines[1]
    assert "label = nvlink asked, it is none" in lines[2]
    done = machines.anywhere("--where", "label=nvlink", "--", "sh", "-c", "echo $BERTH_DIR")
    assert done.stdout == f"{machines.hosts[1].machine.env['BERTH_DIR']}\n", done.stderr
    done = machines.anywhere("--where", "host=box", "--", "sh", "-c", "echo $BERTH_DIR")
    assert done.stdout == f"{machines.hosts[2].machine.env['BERTH_DIR']}\n", done.stderr
    document = json.loads(machines.run("list", "--anywhere", "--hosts", "gpu2,gpu3", "--json").stdout)
    checked_document(document, "hosts")
    told = [(host["snapshot"]["host"], host["snapshot"]["labels"]) for host in document["hosts"]]
    assert told[0][1] == ["nvlink", "room:b12"] and told[1] == ("box", [])


def test_a_label_that_no_host_has_is_refused_with_the_reason_of_each(two):
    label(two.hosts[0], 'labels = ["slow"]')
    done = two.anywhere("--where", "label=nvlink", "--", "true")
    assert done.returncode != 0
    assert "label = nvlink asked, it is slow" in done.stderr and "it is none" in done.stderr


def label(host, text: str) -> None:
    site = host.folder / "site.toml"
    site.write_text(text + "\n")
    assert host.machine.env["BERTH_SITE_FILE"] == str(site)


def says(host, script: str) -> None:
    """This is what nvidia-smi says there."""
    program = host.folder / "bin/nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_a_host_without_berth_that_hangs_or_says_too_much_is_left_in_time(machines):
    machines.add("gpu1", "2xH100")
    hangs, floods = machines.add("gpu2", program=""), machines.add("gpu3", program="")
    says(hangs, "exec sleep 1000")
    says(floods, "exec yes 0, 40960, 31000, 97, NVIDIA A40")
    answer = machines.run("list", "--anywhere", "--hosts", "gpu1,gpu2,gpu3")
    assert answer.returncode == 0, answer.stderr
    assert "3 hosts (2 down): 2 GPUs, 2 free" in answer.stdout
    # Its connection is over, and its ssh server ends nothing.
    eventually(lambda: not any(words_of(pid)[:1] == ["sleep"] for pid in hangs.machine.inhabitants()))


def test_a_host_without_berth_is_a_row_that_grants_nothing(machines):
    machines.add("gpu1", "2xH100")
    bare = machines.add("gpu2", program="")
    told = machines.folder / "told"
    says(
        bare,
        f"echo \"$*\" >> {told}; printf '0, 40960, 31000, 97, NVIDIA A40\\n1, 40960, [N/A], 0, NVIDIA A40\\n'",
    )
    answer = machines.run("list", "--anywhere", "--hosts", "gpu1,gpu2")
    assert answer.returncode == 0, answer.stderr
    assert "2 hosts (1 without Berth): 2 GPUs, 2 free" in answer.stdout
    assert "gpu2  2 A40" in answer.stdout and "no Berth; 1 of 2 in use" in answer.stdout
    words = " ".join(answer.stdout.split())
    assert "gpu2: there is no berth for a shell without a terminal" in words
    assert "It grants nothing. nvidia-smi there: GPU 0 97 %, 30.3 of 40.0 GiB; GPU 1 0 %" in words
    (asked,) = told.read_text().splitlines()
    assert asked.startswith("--query-gpu=index,")

    document = json.loads(machines.run("list", "--anywhere", "--hosts", "gpu1,gpu2", "--json").stdout)
    checked_document(document, "hosts")
    up, down = document["hosts"]
    assert "without_berth" not in up and (down["state"], down["snapshot"]) == ("down", None)
    assert [gpu["utilization_percent"] for gpu in down["without_berth"]] == [97, 0]
    assert document["summary"]["devices"] == 2
    # Nobody else asks it.
    machines.run("queue", "--anywhere", "--hosts", "gpu1,gpu2")
    machines.run("run", "--anywhere", "--hosts", "gpu1,gpu2", "--", "true")
    assert len(told.read_text().splitlines()) == 2


def test_the_nvidia_smi_of_the_simulator_can_be_read(machines):
    bare = machines.add("gpu1", "4xA100", program="")
    (bare.folder / "bin/nvidia-smi").symlink_to(machines.build / "sim/bin/nvidia-smi")
    answer = machines.run("list", "--anywhere", "--hosts", "gpu1")
    assert "1 host (1 without Berth): 0 GPUs, none free" in answer.stdout
    assert "0 of 4 in use" in answer.stdout


def test_what_a_host_without_berth_says_is_bounded_and_no_sequence_of_it_is_obeyed(machines):
    for name, script in {
        "gpu1": r"printf '0, 1, 1, 1, \033[2Jevil\033]52;c;eA==\007\n'",
        "gpu2": "yes '0, 1, 1, 1, x'",
        "gpu3": "echo Welcome; printf '0, 1, 1, 1, x\\n'",
        "gpu4": "printf '0, 1, 1, 1, x\\n'; exit 9",
        "gpu5": "exit 127",
    }.items():
        says(machines.add(name, program=""), script)
    answer = machines.run("list", "--anywhere", "--hosts", machines.names())
    assert answer.returncode == 0, answer.stderr
    assert "5 hosts (4 down, 1 without Berth): 0 GPUs, none free" in answer.stdout
    assert r"\x1b[2Jevil" in answer.stdout and not set(answer.stdout) & {"\x1b", "\x07"}
    assert answer.stdout.count("there is no berth") == 5
