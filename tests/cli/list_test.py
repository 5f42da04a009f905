import os
import re
import signal
import subprocess

import pytest
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
def mixed(make_lab):
    return make_lab(MIXED.format(pid=os.getpid()))


def test_a_pipe_gets_a_plain_table_that_is_not_cut(make_lab):
    answer = make_lab("2xA6000").berth("list")
    assert answer.status == 0
    assert answer.err == ""
    assert answer.out == (
        "2 GPUs, 2 free, driver 550.163.01, CUDA 12.4\n"
        "\n"
        "GPU  NAME        MEMORY (GiB)  UTIL  TEMP  POWER  PROCS  STATE\n"
        "  0  RTX A6000    0.0 /  48.0    0%   33C    22W      0  free\n"
        "  1  RTX A6000    0.0 /  48.0    0%   33C    22W      0  free\n"
    )


def test_berth_alone_lists_and_gives_one_hint(make_lab):
    lab = make_lab("1xT4")
    answer = lab.berth()
    assert answer.out == (
        lab.berth("ls").out
        + "\n`berth run -- COMMAND` takes a free GPU for COMMAND; `berth help` shows the rest.\n"
    )


def test_every_state_has_its_word(mixed):
    lines = mixed.berth("list").out.splitlines()
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
    line = mixed.berth("list").out.splitlines()[-1]
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
    machine = checked(mixed.berth("list", "--json"), "list")
    assert [device["label"] for device in machine["devices"]] == ["0", "1", "2", "3", "4", "4:0", "4:1"]
    lost = machine["devices"][2]
    assert lost["state"] == "lost"
    assert lost["utilization_percent"] is None
    assert lost["verdict"]["clause"] == "healthy"
    assert machine["devices"][4]["verdict"] is None
    outsider = machine["devices"][1]["verdict"]
    assert outsider["clause"] == "no_outsider"
    assert outsider["culprits"][0]["pid"] == os.getpid()


def test_no_gpu_is_no_failure_and_says_why(make_lab):
    answer = make_lab('driver = "550.163.01"\n').berth("list")
    assert (answer.status, answer.out) == (0, "")
    assert answer.err == "berth: the driver works, and lists no GPU\n"
    assert checked(make_lab('driver = "550.163.01"\n').berth("list", "--json"), "list")["devices"] == []


def test_no_driver_is_69_with_nothing_on_stdout(lab):
    answer = lab.berth("list", env={"LD_LIBRARY_PATH": None, "PATH": "/nonexistent"})
    if answer.status == 0:
        pytest.skip("a real driver is here")
    assert (answer.status, answer.out) == (69, "")
    assert answer.err.startswith("berth: ")


def test_a_lease_is_shown_with_its_user(lab):
    inner = lab.berth("run", "--devices", "3", "--", "env", "-u", "BERTH_LEASE", "-u", "CUDA_VISIBLE_DEVICES",
                      lab.program, "list", "--json")  # fmt: skip
    machine = checked(inner, "list")
    held = [device for device in machine["devices"] if device["leases"]]
    assert [device["label"] for device in held] == ["3"]
    assert held[0]["verdict"]["clause"] == "not_leased"
    assert machine["leases"][0]["id"] == held[0]["leases"][0]
    assert machine["leases"][0]["request"] == "1 whole GPU, among 3"


def test_watch_repeats_and_ends_by_a_signal(lab):
    process = lab.start_berth("list", "--watch", "1", "--json")
    first, second = process.stdout.readline(), process.stdout.readline()
    assert first.startswith('{"kind":"berth-list"') and second.startswith('{"kind":"berth-list"')
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == -signal.SIGINT


def test_watch_ends_when_nobody_reads(lab):
    process = lab.start_berth("list", "--watch=1")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=30) == 1
    assert "Broken pipe" in process.stderr.read()


@pytest.mark.parametrize("source", ["nvml", "nvidia-smi"])
def test_both_sources_list_the_same_devices(lab, source):
    machine = checked(lab.berth("list", "--json", "--source", source), "list")
    assert machine["source"] == source
    assert [device["index"] for device in machine["devices"]] == list(range(8))


def test_a_process_name_cannot_write_to_the_terminal(make_lab):
    # Arguments are the process's own to choose.
    evil = subprocess.Popen(
        ["bash", "-c", "exec -a $'x\\e[2Jy\\nz' sleep 60"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    try:
        while b"sleep" in (line := open(f"/proc/{evil.pid}/cmdline", "rb").read()) and b"exec" in line:
            pass
        lab = make_lab(f'[[device]]\nmodel = "T4"\nprocess = [{{pid = {evil.pid}, used_mib = 10}}]\n')
        while "\\x1b" not in (out := lab.berth("list").out):
            assert evil.poll() is None
        assert "\x1b" not in out
        assert out.count("\n") == 7
    finally:
        evil.kill()
        evil.wait()
