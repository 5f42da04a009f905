import csv
import io
import json
import os
import re
import signal
import subprocess

import pytest
from clock import told_time
from lease_jobs import eventually, holder
from schemas import checked
from terminal import on_terminal, plain

MIXED = """
driver = "550.163.01"
[[device]]
model = "H100"
[[device]]
model = "A100-80"
utilization = 97
temperature = 61
power_w = 312
process = [{{pid = {pid}, used_mib = 41984}}]
[[device]]
model = "A100-80"
lost = true
[[device]]
model = "A6000"
hidden_mib = 9000
[[device]]
model = "A100-80"
mig = ["3g.40gb", "1g.10gb"]
"""


@pytest.fixture
def mixed(make_machine):
    return make_machine(MIXED.format(pid=os.getpid()))


def test_a_pipe_gets_a_plain_table_that_is_not_cut(make_machine):
    answer = make_machine("2xA6000").berth("list", "-l")
    assert answer.status == 0
    assert answer.err == ""
    assert answer.out == (
        "2 GPUs, 2 free, driver 550.163.01, CUDA 12.4\n"
        "\n"
        "GPU  NAME        MEMORY (GiB)  UTIL  TEMP  POWER  PROCS  STATE\n"
        "  0  RTX A6000    0.0 /  48.0    0%   33C    22W      0  free\n"
        "  1  RTX A6000    0.0 /  48.0    0%   33C    22W      0  free\n"
    )


def test_berth_alone_lists_and_gives_one_hint(make_machine):
    machine = make_machine("1xT4")
    answer = machine.berth()
    assert answer.out == (
        machine.berth("ls").out
        + "\n`berth run -- COMMAND` takes a free GPU for COMMAND; `berth help` shows more.\n"
    )


def table_of(text: str) -> list[list[str]]:
    """The cells of a listing in brief, its titles first, without what stands above and below."""
    lines = text.split("\n\n")[0].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("GPU "))
    return [re.split("  +", line.strip()) for line in lines[first:]]


def test_on_one_screen_who_has_what_until_when_and_when_the_next_is_free(make_machine):
    machine = make_machine("4xH100")
    machine.change(
        '[[device]]\nmodel = "H100"\n' * 3
        + f"""
[[device]]
model = "H100"
process = [{{pid = {os.getpid()}, used_mib = 100}}]
"""
    )
    for words in (("--time", "2h"), ("--time", "1h", "--note", "paper"), ("--note", "long")):
        holder(machine, *words)
    status, shown = on_terminal(machine, columns=80)
    assert status == 0
    ends = sorted(lease["until_s"] or 0 for lease in machine.berth("list", "--json").json["leases"])
    at = [told_time(end) for end in ends]
    lines = plain(shown).splitlines()
    assert lines[0] == f"4 GPUs, none free; a new request starts about {at[1]}"
    titles, *rows = table_of("\n".join(lines))
    assert titles[-3:] == ["UNTIL", "STATE", "COMMAND"]
    assert [row[-3] for row in rows[:3]] == [at[2], at[1], "-"]
    assert (
        rows[1][-1].startswith('"paper" ') and rows[3][-2].startswith("outsider ") and "python" in rows[3][-1]
    )
    assert max(map(len, lines)) <= 80 and len(lines) <= 8
    waits = machine.start_berth("run", "--note", "mine", "--", "true")
    answer = eventually(lambda: "your request" in (out := machine.berth().out) and out)
    assert f'("mine" true) is no. 1 in line, starts about {at[1]}' in answer.splitlines()[1]
    assert answer.splitlines()[0] == f"4 GPUs, none free, 1 waiting; a new request starts about {at[2]}"
    waits.terminate()
    waits.wait()


def test_some_of_the_gpus(mixed):
    _, *rows = table_of(mixed.berth("--devices", "0,4:0").out)
    assert [row[0] for row in rows] == ["0", "4:0"]
    listing = checked(mixed.berth("list", "--json", "--devices", "1,2"), "list")
    assert [device["index"] for device in listing["devices"]] == [1, 2]
    assert mixed.berth("-l", "--devices", "0").out == mixed.berth("list", "--long", "--devices", "0").out


def test_every_state_has_its_word(mixed):
    lines = mixed.berth("list", "-l").out.splitlines()
    assert lines[0] == "5 GPUs, 2 MIG instances, 3 free, driver 550.163.01, CUDA 12.4"
    states = {line.split()[0]: line for line in lines[3:10]}
    assert states["0"].endswith(" free")
    assert re.search(r" outsider \S+ \d+ (s|min)$", states["1"])
    assert states["2"].endswith(" lost")
    assert states["3"].endswith(" hidden holder")
    assert states["4"].endswith(" split in 2")
    assert states["4:0"].endswith(" free")
    assert " MIG 3g.40gb " in states["4:0"]


def test_processes_stand_below_with_user_age_and_command(mixed):
    line = mixed.berth("list", "-l").out.splitlines()[-1]
    assert re.match(rf"  1 +{os.getpid()}  \S+ +41.0 +\S+ \S+ +outsider  .*python", line)


@pytest.mark.parametrize("columns", [80, 60, 132])
def test_a_terminal_gets_colours_and_lines_of_its_width(mixed, columns):
    status, text = on_terminal(mixed, "list", columns=columns)
    assert status == 0
    assert "\x1b[32mfree\x1b[0m" in text
    for line in plain(text).splitlines():
        assert len(line) <= columns, line
    assert "STATE" in text


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_who_wants_no_colour_gets_none(mixed, env):
    _, text = on_terminal(mixed, "list", env=env)
    assert "\x1b" not in text


def test_columns_in_the_environment_set_the_width(mixed):
    _, text = on_terminal(mixed, "list", env={"COLUMNS": "200"})
    assert max(len(line) for line in plain(text).splitlines()) > 80


def test_json_is_as_its_schema_says_and_absent_is_null(mixed):
    listing = checked(mixed.berth("list", "--json"), "list")
    assert [device["label"] for device in listing["devices"]] == ["0", "1", "2", "3", "4", "4:0", "4:1"]
    lost = listing["devices"][2]
    assert lost["state"] == "lost"
    assert lost["utilization_percent"] is None
    assert lost["verdict"]["clause"] == "healthy"
    assert listing["devices"][4]["verdict"] is None
    outsider = listing["devices"][1]["verdict"]
    assert outsider["clause"] == "no_outsider"
    assert outsider["culprits"][0]["pid"] == os.getpid()


def test_no_gpu_is_no_failure_and_says_why(make_machine):
    answer = make_machine('driver = "550.163.01"\n').berth("list", "-l")
    assert (answer.status, answer.out) == (0, "")
    assert answer.err == "berth: the driver works, and lists no GPU\n"
    assert checked(make_machine('driver = "550.163.01"\n').berth("list", "--json"), "list")["devices"] == []


def test_no_driver_is_69_with_nothing_on_stdout(machine):
    answer = machine.berth("list", env={"LD_LIBRARY_PATH": None, "PATH": "/nonexistent"})
    if answer.status == 0:
        pytest.skip("a real driver is here")
    assert (answer.status, answer.out) == (69, "")
    assert answer.err.startswith("berth: ")


def test_a_lease_is_shown_with_its_user(machine):
    inner = machine.berth("run", "--devices", "3", "--", "env", "-u", "BERTH_LEASE", "-u", "CUDA_VISIBLE_DEVICES",
                      machine.program, "list", "--json")  # fmt: skip
    listing = checked(inner, "list")
    held = [device for device in listing["devices"] if device["leases"]]
    assert [device["label"] for device in held] == ["3"]
    assert held[0]["verdict"]["clause"] == "not_leased"
    assert listing["leases"][0]["id"] == held[0]["leases"][0]
    assert listing["leases"][0]["request"] == "1 whole GPU, among GPU 3"


def test_watch_repeats_and_ends_by_a_signal(machine):
    process = machine.start_berth("list", "--watch", "1", "--json")
    first, second = process.stdout.readline(), process.stdout.readline()
    assert first.startswith('{"kind":"berth-list"') and second.startswith('{"kind":"berth-list"')
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == -signal.SIGINT


def test_a_lease_whose_processes_are_stopped_is_so(make_machine):
    machine = make_machine("2xH100")
    job = machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert job.stdout.readline() == "ready\n"
    assert ", idle" in machine.berth("list").out
    job.send_signal(signal.SIGSTOP)
    os.waitpid(job.pid, os.WUNTRACED)
    out = machine.berth("list").out
    assert ", stopped" in out and "idle" not in out
    job.send_signal(signal.SIGCONT)
    os.waitpid(job.pid, os.WCONTINUED)
    assert ", idle" in machine.berth("list").out


def test_values_with_commas_between_are_for_spreadsheets(make_machine):
    machine = make_machine("2xH100")
    job = machine.start_berth("run", "--time", "1h", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert job.stdout.readline() == "ready\n"
    answer = machine.berth("list", "--csv")
    assert (answer.status, answer.err) == (0, "")
    leased, free = csv.DictReader(io.StringIO(answer.out))
    listing = machine.berth("list", "--json").json
    (lease,) = listing["leases"]
    assert (leased["gpu"], leased["users"], leased["leases"]) == ("0", lease["user"], lease["id"])
    assert leased["until_s"] == str(lease["until_s"])
    assert leased["state"].startswith(f"leased {lease['user']}")
    assert (free["gpu"], free["users"], free["until_s"], free["state"]) == ("1", "", "", "free")
    assert free["uuid"] == listing["devices"][1]["uuid"]
    assert free["memory_total_mib"] == str(listing["devices"][1]["memory"]["total_bytes"] >> 20)
    assert machine.berth("list", "--csv", "--devices", "1").out.count("\n") == 2
    answer = machine.berth("list", "--csv", "--json")
    assert answer.status == 2 and "--csv is the GPUs of this machine: leave out --json" in answer.err


def test_colours_are_as_they_are_asked_for(machine):
    for words in (["list"], ["queue"], ["jobs"], ["why"], ["receipt"]):
        plain = machine.berth(*words)
        assert "\x1b" not in plain.out and machine.berth(*words, "--color=never").out == plain.out
    for words in (["list"], [], ["why"]):
        coloured = machine.berth(*words, "--color=always").out
        assert "\x1b[" in coloured and "\x1b[H" not in coloured
        assert machine.berth(*words, "--color", "always").out == coloured
    assert machine.berth("list", "--color=auto").out == machine.berth("list").out
    answer = machine.berth("list", "--color=yes")
    assert answer.status == 2 and "--color yes: must be one of always, never, auto" in answer.err


def test_watch_ends_when_nobody_reads(machine):
    process = machine.start_berth("list", "--watch=1")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=30) == 1
    assert "Broken pipe" in process.stderr.read()


@pytest.mark.parametrize("source", ["nvml", "nvidia-smi"])
def test_both_sources_list_the_same_devices(machine, source):
    listing = checked(machine.berth("list", "--json", "--source", source), "list")
    assert listing["source"] == source
    assert [device["index"] for device in listing["devices"]] == list(range(8))


def test_a_process_name_cannot_write_to_the_terminal(make_machine):
    # Arguments are the process's own to choose.
    evil = subprocess.Popen(
        ["bash", "-c", "exec -a $'x\\e[2Jy\\nz' sleep 60"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    try:
        while b"sleep" in (line := open(f"/proc/{evil.pid}/cmdline", "rb").read()) and b"exec" in line:
            pass
        machine = make_machine(f'[[device]]\nmodel = "T4"\nprocess = [{{pid = {evil.pid}, used_mib = 10}}]\n')
        while "\\x1b" not in (out := machine.berth("list", "-l").out):
            assert evil.poll() is None
        assert "\x1b" not in out
        assert out.count("\n") == 7
    finally:
        evil.kill()
        evil.wait()


def test_a_lease_has_a_line_by_which_it_can_be_released(machine):
    job = machine.start_berth(
        "run", "--note", "paper", "--devices", "1,3", "--", "sh", "-c", "echo ready; exec sleep 1000"
    )
    assert job.stdout.readline() == "ready\n"
    assert machine.berth("claim", "--memory", "10G", "--pid", os.getpid()).status == 0
    listing = machine.berth("list", "--json").json
    lines = [line.split() for line in machine.berth("list", "-l").out.split("\n\n")[2].splitlines()]
    whole, shared = (lease["id"][-6:] for lease in listing["leases"])
    assert lines[0] == ["LEASE", "USER", "GPUS", "AGE", "PID", "COMMAND"]
    assert (lines[1][0], lines[1][2]) == (whole, "1,3") and '"paper" sh -c ' in " ".join(lines[1])
    assert str(job.pid) in lines[1]
    keeper = listing["leases"][1]["pid"]
    assert lines[2][0] == shared and "0 (10 GiB)" in " ".join(lines[2])
    assert f"kept by {keeper}" in " ".join(lines[2])
    (left,) = (device["verdict"]["free_bytes"] for device in listing["devices"] if device["label"] == "0")
    assert f", {left / 1024**3:.1f} GiB left" in next(
        line for line in machine.berth("list", "-l").out.splitlines() if line.startswith("  0 ")
    )
    for name in (whole, shared):
        assert machine.berth("release", name).status == 0
    assert "LEASE" not in machine.berth("list", "-l").out


def test_a_leased_device_is_in_use_or_idle_or_used_by_somebody_else(machine):
    job = machine.start_berth("run", "-n", "3", "--", "sh", "-c", "echo $$; exec sleep 1000")
    pid = int(job.stdout.readline())
    used = '[[device]]\nmodel = "H100"\nprocess = [{pids}]\n'
    who = [[pid], [], [os.getpid()], [os.getpid(), pid]]
    for pids in who:
        pids[:] = ["{pid = %s, used_mib = 100}" % one for one in pids]
    machine.change("".join(used.format(pids=", ".join(pids)) for pids in who))
    states = [
        re.sub(r" \d+ (s|min)\b", "", line.split("  ")[-1])
        for line in machine.berth("list", "-l").out.splitlines()[3:7]
    ]
    user = machine.berth("list", "--json").json["leases"][0]["user"]
    assert states == [
        f"leased {user}",
        f"leased {user}, idle",
        f"leased {user}, used by {user}",
        f"outsider {user}",
    ]
    _, shown = on_terminal(machine, "list", columns=200)
    tones = [re.search(r"\x1b\[(\d+)m(?:leased|outsider)", line)[1] for line in shown.splitlines()[2:6]]
    assert tones == ["36", "33", "33", "35"]
    processes = machine.berth("list", "-l").out.split("\n\n")[3].splitlines()
    name = machine.berth("list", "--json").json["leases"][0]["id"][-6:]
    # On one device the processes stand by their pids, of which the job's may be either.
    assert f"  lease {name}  " in processes[1] and f"  stray {name}  " in "".join(processes[-2:])
    devices = checked(machine.berth("list", "--json"), "list")["devices"]
    assert [device["idle"] for device in devices] == [False, True, True, None]
    assert [device["idle_since_s"] for device in devices] == [None] * 4


def test_watching_tells_since_when_a_device_is_idle(machine):
    watch = machine.start_berth("list", "--watch", "1", "--json")
    assert json.loads(watch.stdout.readline())["devices"][0]["idle"] is None
    job = machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert job.stdout.readline() == "ready\n"
    device = json.loads(watch.stdout.readline())["devices"][0]
    since = machine.berth("list", "--json").json["leases"][0]["since_s"]
    assert (device["idle"], device["idle_since_s"]) == (True, since)


def test_inside_a_lease_the_whole_machine_is_shown_and_ones_own_is_marked(machine):
    holder(machine, "--devices", "0", "--note", "somebody")
    outer = holder(machine, "--devices", "2,3", then=f"'{machine.program}' run --devices 3 -- sleep 1000")
    lease = next(
        each["id"] for each in machine.berth("list", "--json").json["leases"] if each["pid"] == outer.pid
    )
    inside = {"BERTH_LEASE": lease}
    eventually(lambda: "Inside this lease:" in machine.berth("list", "-l", env=inside).out)
    answer = machine.berth("list", "-l", env=inside)
    assert answer.out.startswith("8 GPUs, 5 free")
    assert f"inside lease {lease[-6:]}" in answer.out.splitlines()[0]
    states = [line.split("  ")[-1] for line in answer.out.splitlines()[3:7]]
    assert states[0].startswith("leased ") and states[1] == "free"
    assert all(state.startswith("this lease: leased ") for state in states[2:])
    assert "somebody" in answer.out
    listing = checked(machine.berth("list", "--json", env=inside), "list")
    assert (listing["inside_lease"], listing["own_lease"]) == (True, lease)
    free = [device["index"] for device in listing["devices"] if device["verdict"]["free"]]
    assert free == [1, 4, 5, 6, 7]
    assert checked(machine.berth("list", "--json"), "list")["own_lease"] is None
    assert "not in this lease" in machine.berth("why", env=inside).out


def test_inside_a_lease_the_queue_is_the_machines_and_ones_own(make_machine):
    machine = make_machine("2xH100")
    holder(machine, "--devices", "0")
    outer = holder(machine, "--devices", "1", then=f"'{machine.program}' run -- sleep 1000")
    lease = next(
        each["id"] for each in machine.berth("list", "--json").json["leases"] if each["pid"] == outer.pid
    )
    inside = {"BERTH_LEASE": lease}
    eventually(lambda: "Inside this lease:" in machine.berth("list", "-l", env=inside).out)
    machine.start_berth("run", "--note", "from outside", "--", "true")
    machine.start_berth("run", "--note", "from inside", "--", "true", env=inside)

    def notes(**where):
        return [
            each["note"] for each in checked(machine.berth("queue", "--json", **where), "queue")["waiters"]
        ]

    eventually(lambda: notes(env=inside) == ["from outside", "from inside"])
    assert notes() == ["from outside"]
    listing, own = machine.berth("queue", env=inside).out.split("\nInside this lease:\n")
    assert "from outside" in listing and "from inside" in own
