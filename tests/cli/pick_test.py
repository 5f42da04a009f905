import os

import pytest
from schemas import checked


def test_it_prints_the_value_and_nothing_else(machine):
    answer = machine.berth("pick")
    assert (answer.status, answer.out, answer.err) == (0, "0\n", "")
    assert machine.berth("pick", "-n", "3").out == "0,1,2\n"
    assert machine.berth("pick", "--count=2", "--order", "index").out == "0,1\n"


def test_devices_named_are_the_count_too(machine):
    assert machine.berth("pick", "--devices", "5,2").out == "2,5\n"
    assert machine.berth("pick", "--devices", "5,2", "-n", "1").out in ("2\n", "5\n")
    assert machine.berth("pick", "--exclude", "0,1").out == "2\n"


def test_uuids_on_request_and_always_for_mig(make_machine):
    machine = make_machine('[[device]]\nmodel = "A100"\nmig = ["3g.20gb"]\n')
    assert machine.berth("pick").out.startswith("MIG-")
    assert make_machine("2xT4").berth("pick", "--ids", "uuid").out.startswith("GPU-")


def test_filters_choose(make_machine):
    machine = make_machine("2xT4+2xA6000")
    env = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert machine.berth("pick", "--name", "A6000", env=env).out == "2\n"
    assert machine.berth("pick", "--total", "40G", env=env).out == "2\n"
    assert machine.berth("pick", "--free", "20G", env=env).out == "2\n"
    assert machine.berth("pick", "--where", "name~T4 and index>0", env=env).out == "1\n"
    for harmless in ["--util=5", "--mem-util=5%", "--temp=80C", "--power=100W", "--processes=2"]:
        assert machine.berth("pick", "--name=A6000", harmless, env=env).out == "2\n"


def test_random_goes_by_its_seed(machine):
    picks = {machine.berth("pick", "--order", "random", "--seed", str(seed)).out for seed in range(20)}
    assert len(picks) > 3
    again = ["pick", "--order", "random", "--seed", "7", "-n", "3"]
    assert machine.berth(*again).out == machine.berth(*again).out


def test_where_numbering_differs_a_word_on_stderr(make_machine):
    machine = make_machine("1xT4+1xA6000")
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in machine.berth("pick").err
    assert machine.berth("pick", env={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).err == ""
    assert machine.berth("pick", "--ids", "uuid").err == ""


def test_an_inherited_mask_limits(machine):
    assert machine.berth("pick", env={"CUDA_VISIBLE_DEVICES": "3,4"}).out == "3\n"
    assert machine.berth("pick", "--mask", "ignore", env={"CUDA_VISIBLE_DEVICES": "3,4"}).out == "0\n"
    answer = machine.berth("pick", env={"CUDA_VISIBLE_DEVICES": ""})
    assert (answer.status, answer.out) == (69, "-1\n")


def test_refused_now_is_75_with_every_reason(make_machine):
    machine = make_machine(f'[[device]]\nmodel = "T4"\nprocess = [{{pid = {os.getpid()}, used_mib = 900}}]\n')
    answer = machine.berth("pick")
    assert (answer.status, answer.out) == (75, "-1\n")
    first, second, *_ = answer.err.splitlines()
    assert first == "berth: not now: 1 whole GPU wanted, none free"
    assert second.startswith("GPU 0  used without a lease by ")
    assert f"(pid {os.getpid()})" in second


def test_never_possible_is_69(machine):
    for words in (["-n", "9"], ["--name", "T4"], ["--total", "500G"]):
        answer = machine.berth("pick", *words)
        assert (answer.status, answer.out) == (69, "-1\n"), words
        assert answer.err.startswith("berth: "), words


@pytest.mark.parametrize(
    "words, message",
    [
        (["-n", "0"], "--count 0: must be a whole number, 1 or more"),
        (["--free", "lots"], "--free lots: "),
        (
            ["--devices", "0,,1"],
            "--devices 0,,1: must be indices or UUIDs with commas between: 0,1 or 0-3 or 3:1 or GPU-5a1c",
        ),
        (["--devices", "1,1"], "--devices 1,1: names 1 twice"),
        (["--order", "best"], "--order best: must be one of auto, index, random, best-fit, "),
        (["--seed", "3"], "--seed only has a meaning with --order random"),
        (["--where", "fre>=2G"], "--where fre>=2G: "),
        (["--mask", "x"], "--mask x: must be one of inherit, ignore"),
        (["--memory", "0"], "--memory 0: must be more than nothing"),
        (["--util", "x"], "--util x: must be a whole number, 0 or more"),
        (["--nmae", "x"], "unknown option '--nmae', did you mean --name?; `berth pick --help` lists them"),
        (["extra"], "unexpected argument 'extra': `berth pick` takes options only"),
        (["--hold", "0"], "--hold 0: a time must be at least 1s"),
        (["--devices", "42"], ""),
        (["--devices", "0", "-n", "2"], ""),
        (["--devices", "0", "--exclude", "0"], ""),
    ],
)
def test_a_wrong_request_is_2_and_says_what_is_allowed(machine, words, message):
    answer = machine.berth("pick", *words)
    assert (answer.status, answer.out) == (2, "-1\n")
    assert answer.err.startswith(f"berth: {message}")


def test_json_is_as_its_schema_says(machine):
    picked = checked(machine.berth("pick", "-n", "2", "--json"), "pick")
    assert picked["cuda_visible_devices"] == "0,1"
    assert picked["lease"] is None
    assert len(picked["devices"]) == 2


def test_hold_keeps_others_away_until_its_time_is_over(make_machine):
    machine = make_machine("1xT4")
    held = checked(machine.berth("pick", "--hold", "1s", "--json"), "pick")
    assert held["lease"] is not None
    assert machine.berth("pick").status in (0, 75)
    # The machine is free again once the keeper has gone: an event, not a sleep.
    while machine.berth("pick").status == 75:
        pass
    assert machine.berth("pick").out == "0\n"


def test_hold_refuses_what_is_held(make_machine):
    machine = make_machine("1xT4")
    assert machine.berth("pick", "--hold", "5s").out == "0\n"
    answer = machine.berth("pick", "--hold", "5s")
    assert (answer.status, answer.out) == (75, "-1\n")
    assert "leased by" in answer.err


def test_topology_decides_where_there_is_a_choice(make_machine):
    machine = make_machine('[[device]]\nmodel = "A6000"\ncount = 4\n[[link]]\na = 1\nb = 3\nnvlinks = 4\n')
    assert machine.berth("pick", "-n", "2").out == "1,3\n"
