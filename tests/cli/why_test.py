import os
import pathlib
import re

import pytest
from jobs import holder
from schemas import checked
from terminal import on_terminal, plain


def test_each_device_has_its_reason_and_the_end_says_what_would_do(make_machine):
    machine = make_machine("2xA6000+1xT4")
    answer = machine.berth("why", "-n", "2", "--name", "T4")
    assert answer.status == 0
    assert answer.err == ""
    lines = answer.out.splitlines()
    assert lines[0].startswith("Asked for: 2 whole GPUs, name ~ T4")
    assert [line.split("  ")[0] for line in lines[2:4]] == ["GPU 0,1", "GPU 2"]
    assert lines[3].startswith("GPU 2    free")
    assert lines[5] == "Never possible on this machine: 2 wanted, 1 could serve the request."


def test_a_name_that_no_model_has_is_told_from_the_name_of_a_job(machine):
    answer = machine.berth("run", "--name", "myexp", "--", "true")
    assert answer.status == 69
    assert (
        'No GPU here is called "myexp"; --name is for a model, and this machine has: NVIDIA H100 80GB HBM3. To '
        "name what you run: --note.\n" in answer.err
    )
    assert "--note" not in machine.berth("run", "--name", "H100", "-n", "9", "--", "true").err


def test_a_looser_request_that_is_named_succeeds(make_machine):
    machine = make_machine(f"""
[[device]]
model = "A6000"
process = [{{pid = {os.getpid()}, used_mib = 900}}]
[[device]]
model = "A6000"
""")
    told = checked(machine.berth("why", "-n", "2", "--json"), "why")
    assert told["satisfied"] is False
    assert (told["free"], told["possible"]) == (1, 2)
    assert any("1 GPU" in change for change in told["looser"])
    assert "These would succeed now:\n" in machine.berth("why", "-n", "2").out


def test_what_can_be_had_is_said(machine):
    assert machine.berth("why").out.endswith("\nCan be had now: 8 free, 1 wanted.\n")


def test_a_terminal_gets_lines_that_fit(make_machine):
    machine = make_machine(f'[[device]]\nmodel = "T4"\nprocess = [{{pid = {os.getpid()}, used_mib = 900}}]\n')
    status, text = on_terminal(
        machine, "why", "--where", "free >= 2G and temp < 90 and power < 200 and util <= 50"
    )
    assert status == 0
    assert all(len(line) <= 80 for line in plain(text).splitlines()[1:])


def test_usage_is_still_usage(machine):
    assert machine.berth("why", "-n", "none").status == 2


def test_of_a_device_that_is_shared_it_says_how_much_is_left(machine):
    holder(machine, "--memory", "50G", "--devices", "0")
    told = machine.berth("why", "--memory", "50G", "--devices", "0").out
    assert re.search(r"\nGPU 0    leased by .*; 29\.\d GiB of 79\.\d GiB are left for shares\n", told)
    holder(machine, "--devices", "1")
    assert "left" not in machine.berth("why", "--memory", "50G", "--devices", "1").out


SICK = """driver = "570.124.06"
[[device]]
model = "A100"
ecc_uncorrected = 7
remap_pending = true
recovery_action = "reset"
[[device]]
model = "A100"
recovery_action = "drain_and_reset"
[[device]]
model = "A100"
remap_failure = true
[[device]]
model = "A100"
"""


def test_a_gpu_that_asks_for_a_reset_is_not_given_and_the_reason_says_what_to_do(make_machine):
    machine = make_machine(SICK)
    assert machine.berth("pick").out == "3\n"
    said = " ".join(machine.berth("why").out.split())
    assert "GPU 0 needs a reset: sudo nvidia-smi -r -i 0" in said
    assert "GPU 1 needs a reset when its jobs have ended: sudo nvidia-smi -r -i 1" in said
    table = machine.berth("list").out
    assert table.count("needs a reset") == 2
    device = machine.berth("list", "--json").json["devices"][0]
    assert device["health"]["recovery_action"] == "reset"
    assert device["verdict"]["clause"] == "healthy"
    said = " ".join(machine.berth("doctor").out.split())
    assert "FAIL GPU 0: it needs a reset, says the driver" in said
    assert "FAIL GPU 1: it needs a reset when its jobs have ended, says the driver" in said
    assert machine.berth("pick", "--devices", "0").out == "-1\n"
    # What the driver says now counts: after the reset it is as the others.
    machine.change(SICK.replace('"reset"', '"none"').replace("true", "false", 1).replace("= 7", "= 0"))
    assert machine.berth("pick").out == "0\n"
    # It falls again. A counter that has gone back says nothing, and a driver that contradicts
    # itself is believed where it refuses.
    machine.change(SICK.replace("= 7", "= 0"))
    assert machine.berth("pick").out == "3\n"
    machine.change(SICK.replace('"reset"', '"none"\nremap_failure = true'))
    assert machine.berth("pick").out == "3\n"


@pytest.mark.parametrize("source", ["nvml", "nvidia-smi"])
def test_what_the_driver_asks_for_is_read_from_either_source(make_machine, source):
    machine = make_machine(SICK)
    answer = machine.berth("list", "--json", "--source", source).json
    actions = [device["health"]["recovery_action"] for device in answer["devices"]]
    assert actions == ["reset", "drain_and_reset", "none", "none"]
    remap = [
        (device["health"]["row_remap_pending"], device["health"]["row_remap_failed"])
        for device in answer["devices"]
    ]
    assert remap == [(True, False), (False, False), (False, True), (False, False)]
    assert machine.berth("pick", "--source", source).out == "3\n"


def test_a_gpu_with_errors_is_taken_after_the_others_and_says_so(make_machine):
    machine = make_machine(
        '[[device]]\nmodel = "A100"\necc_uncorrected = 7\n'
        '[[device]]\nmodel = "A100"\nremap_pending = true\n[[device]]\nmodel = "A100"\n'
    )
    assert machine.berth("pick").out == "2\n"
    assert machine.berth("pick", "-n", "2").out == "0,2\n"
    assert machine.berth("pick", "-n", "3").out == "0,1,2\n"
    assert machine.berth("pick", "--devices", "1").out == "1\n"
    table = machine.berth("list").out
    assert "free, 7 uncorrected memory errors" in table
    assert "free, faulty memory waits for a reset" in table
    assert "taken after the others: 7 uncorrected memory errors" in " ".join(machine.berth("why").out.split())
    # An older driver does not tell what it asks for, and forbids nothing.
    assert machine.berth("list", "--json").json["devices"][0]["health"]["recovery_action"] is None


def test_an_xid_in_the_log_of_the_kernel_explains_and_refuses_nothing(make_machine):
    machine = make_machine("3xA100")
    log = pathlib.Path(machine.env["BERTH_SIM_ROOT"]) / "dev/kmsg"
    device = machine.berth("list", "--json").json["devices"][0]
    assert device["health"]["last_xid"] is None  # nobody can say
    cards = [
        each["pci_bus_id"].rpartition(".")[0] for each in machine.berth("list", "--json").json["devices"]
    ]
    log.parent.mkdir(parents=True)
    log.write_text(
        f"<4>[ 12.5] NVRM: Xid (PCI:{cards[0]}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus\n"
        f"<4>[ 12.6] NVRM: Xid (PCI:{cards[1]}): 13, pid=4711, name=python, Graphics Exception\n"
        f"<12>[ 12.7] NVRM: Xid (PCI:{cards[2]}): 79, written by somebody\n"
    )
    assert [each["health"]["last_xid"] for each in machine.berth("list", "--json").json["devices"]] == [
        79,
        13,
        0,
    ]
    said = " ".join(machine.berth("why").out.split())
    assert "the kernel's log has Xid 79: the GPU fell off the bus" in said
    assert machine.berth("pick").out == "0\n"
    table = machine.berth("list").out
    assert "free, Xid 79" in table and "Xid 13" not in table
    said = machine.berth("doctor").out
    assert "WARN  GPU 0: the kernel's log has Xid 79" in said and "GPU 1" not in said
