"""Drivers that are missing, broken, hanging or crashing: each ends in a message that says what to do."""

import fcntl
import json
import re

import pytest
from probing import LISTING, end_probes, probes

DEADLINE = {"BERTH_DRIVER_DEADLINE_MS": "300"}


@pytest.mark.parametrize("source", ["nvml", "nvidia-smi"])
@pytest.mark.parametrize(
    "fault, says",
    [
        ("init_result = 9", "kernel module is not loaded"),
        ("init_result = 18", "driver and library versions differ"),
        ("init_result = 999", "restart the container"),
        ("init_result = 4", "/dev/nvidiactl"),
        ("library_missing = true", "libnvidia-ml.so.1 was not found"),
    ],
)
def test_a_driver_that_does_not_start_is_named_with_its_remedy(make_machine, source, fault, says):
    machine = make_machine(f'{fault}\n[[device]]\nmodel = "T4"\n')
    answer = machine.berth("list", "--source", source)
    assert answer.status == 69
    assert answer.out == ""
    assert says in answer.err


def test_a_scenario_that_cannot_be_read_is_a_driver_that_does_not_start(machine):
    machine.file.write_text("nonsense")
    answer = machine.berth("list")
    assert answer.status == 69
    assert "999" in answer.err


def test_without_a_library_nvidia_smi_is_asked(machine, probe):
    env = {"LD_LIBRARY_PATH": None}
    assert probe(machine, LISTING, "auto", env=env).fields["source"] == "nvidia-smi"
    assert probe(machine, LISTING, "auto").fields["source"] == "nvml"


def test_without_a_library_and_nvidia_smi_the_library_is_missed(machine):
    answer = machine.berth("list", env={"LD_LIBRARY_PATH": None, "PATH": "/usr/bin:/bin"})
    assert answer.status == 69
    assert "libnvidia-ml.so.1 was not found" in answer.err


def test_a_crash_in_the_driver_is_an_error_of_ours_that_names_device_and_signal(make_machine):
    machine = make_machine(
        '[[device]]\nmodel = "T4"\ncount = 4\n[[fault]]\ncall = "nvmlDeviceGetMemoryInfo*"\ndevice = 2\ncrash = true\n'
    )
    answer = machine.berth("list")
    assert answer.status == 1
    assert answer.out == ""
    assert "at GPU 2 with signal 11" in answer.err


HANGING = '[[device]]\nmodel = "T4"\ncount = 4\n[[fault]]\ncall = "nvmlDeviceGetMemoryInfo*"\ndevice = 2\nhang = true\n'


@pytest.fixture
def hung(make_machine):
    """A machine whose driver hangs at GPU 2."""
    machine = make_machine(HANGING)
    machine.leases.mkdir(exist_ok=True)
    yield machine
    end_probes(machine)


def states(answer) -> list:
    return [device["state"] for device in json.loads(answer.out)["devices"]]


def test_a_hanging_driver_costs_only_the_devices_that_it_hangs_at(hung):
    answer = hung.berth("list", "--json", env=DEADLINE)
    assert states(answer) == ["ok", "ok", "unresponsive", "unresponsive"]
    assert "driver not responding since" in json.loads(answer.out)["devices"][2]["state_reason"]


def test_while_one_probe_hangs_no_second_is_started(hung):
    hung.berth("list", env=DEADLINE)
    stuck = probes(hung)
    assert len(stuck) == 1
    for _ in range(3):
        # With the patience of a person: had it asked the driver, this would be the test's own
        # deadline.
        answer = hung.berth("list", "--json", env={"BERTH_DRIVER_DEADLINE_MS": "3600000"})
        assert "driver not responding since" in answer.out
    assert probes(hung) == stuck


def test_a_probe_that_hangs_holds_nothing_that_its_program_had_open(hung):
    path = hung.directory / "lock"
    with path.open("w") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)
        hung.berth("list", env=DEADLINE, pass_fds=[mine.fileno()])
    assert len(probes(hung)) == 1
    with path.open() as again:
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_is_old_is_shown_and_nothing_is_granted_by_it(hung):
    assert hung.berth("run", "--no-wait", "--", "true", env=DEADLINE).status == 0
    assert set(states(hung.berth("list", "--json"))) == {"unresponsive"}
    answer = hung.berth("run", "--no-wait", "--", "true")
    assert answer.status != 0
    assert "driver not responding since" in answer.err


def test_a_request_that_hangs_on_the_driver_is_not_called_impossible_for_ever(hung):
    for words in (["run", "-n", "4", "--no-wait", "--", "true"], ["why", "-n", "4"]):
        answer = hung.berth(*words, env=DEADLINE)
        said = " ".join((answer.out + answer.err).split())
        # At the second look nothing is known of any.
        assert re.search(
            r"does not respond about [24] GPUs; `dmesg \| grep -i xid` shows what it reported", said
        )
        assert "never" not in said.lower()


def test_once_it_has_ended_the_driver_is_asked_again(hung):
    hung.berth("list", env=DEADLINE)
    hung.change('[[device]]\nmodel = "T4"\ncount = 4\n')
    end_probes(hung)
    while probes(hung):
        pass
    assert states(hung.berth("list", "--json")) == ["ok"] * 4


def test_a_driver_that_hangs_at_its_start_is_an_error_within_the_deadline(make_machine):
    machine = make_machine('[[device]]\nmodel = "T4"\n[[fault]]\ncall = "nvmlInit*"\nhang = true\n')
    answer = machine.berth("list", env=DEADLINE)
    end_probes(machine)
    assert answer.status == 69
    assert answer.out == ""
    assert "driver not responding since" in answer.err


def test_a_slow_driver_that_makes_progress_is_not_taken_to_hang(make_machine):
    machine = make_machine(
        '[[device]]\nmodel = "T4"\ncount = 8\n'
        '[[fault]]\ncall = "nvmlDeviceGetHandleByIndex_v2"\ndelay = "150ms"\n'
    )
    assert states(machine.berth("list", "--json", env={"BERTH_DRIVER_DEADLINE_MS": "1000"})) == ["ok"] * 8


def test_a_hanging_nvidia_smi_ends_with_whoever_waits_for_it(make_machine):
    machine = make_machine('[[device]]\nmodel = "T4"\n[[fault]]\ncall = "nvidia-smi"\nhang = true\n')
    answer = machine.berth("list", "--source", "nvidia-smi", env=DEADLINE)
    assert answer.status == 69
    assert "driver not responding since" in answer.err
    while probes(machine):
        pass
