import os
import re

from jobs import holder
from schemas import checked
from terminal import on_terminal, plain


def test_each_device_has_its_reason_and_the_end_says_what_would_do(make_lab):
    lab = make_lab("2xA6000+1xT4")
    answer = lab.berth("why", "-n", "2", "--name", "T4")
    assert answer.status == 0
    assert answer.err == ""
    lines = answer.out.splitlines()
    assert lines[0].startswith("Asked for: 2 whole GPUs, name ~ T4")
    assert [line.split("  ")[0] for line in lines[2:4]] == ["GPU 0,1", "GPU 2"]
    assert lines[3].startswith("GPU 2    free")
    assert lines[5] == "Never possible on this machine: 2 wanted, 1 could serve the request."


def test_a_looser_request_that_is_named_succeeds(make_lab):
    lab = make_lab(f"""
[[device]]
model = "A6000"
process = [{{pid = {os.getpid()}, used_mib = 900}}]
[[device]]
model = "A6000"
""")
    told = checked(lab.berth("why", "-n", "2", "--json"), "why")
    assert told["satisfied"] is False
    assert (told["free"], told["possible"]) == (1, 2)
    assert any("1 GPU" in change for change in told["looser"])
    assert "These would succeed now:\n" in lab.berth("why", "-n", "2").out


def test_what_can_be_had_is_said(lab):
    assert lab.berth("why").out.endswith("\nCan be had now: 8 free, 1 wanted.\n")


def test_a_terminal_gets_lines_that_fit(make_lab):
    lab = make_lab(f'[[device]]\nmodel = "T4"\nprocess = [{{pid = {os.getpid()}, used_mib = 900}}]\n')
    status, text = on_terminal(
        lab, "why", "--where", "free >= 2G and temp < 90 and power < 200 and util <= 50"
    )
    assert status == 0
    assert all(len(line) <= 80 for line in plain(text).splitlines()[1:])


def test_usage_is_still_usage(lab):
    assert lab.berth("why", "-n", "none").status == 2


def test_of_a_device_that_is_shared_it_says_how_much_is_left(lab):
    holder(lab, "--memory", "50G", "--devices", "0")
    told = lab.berth("why", "--memory", "50G", "--devices", "0").out
    assert re.search(r"\nGPU 0    leased by .*; 29\.\d GiB of 79\.\d GiB are left for shares\n", told)
    holder(lab, "--devices", "1")
    assert "left" not in lab.berth("why", "--memory", "50G", "--devices", "1").out
