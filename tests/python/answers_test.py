"""What looking, picking and explaining answer in Python."""

import json

import pytest
from hosts import Host


def test_a_snapshot_has_every_name_that_the_json_has(host):
    (device,) = {json.dumps(list(each)) for each in host.machine.berth("list", "--json").json["devices"]}
    names = set(json.loads(device)) - {
        "leases",
        "verdict",
        "idle",
        "idle_since_s",
        "passed_over",
    }  # of leases and runs, not of the machine
    code = """
    for device in berth.devices():
        say([name for name in sys.argv[1:] if not hasattr(device, name)])
        say(device.index, device.label, device.uuid[:4], device.memory.total_bytes > device.memory.free_bytes)
    say(berth.snapshot().cuda_version, berth.snapshot().source, berth.devices()[0].compute_capability)
    """
    assert host.says(code, *sorted(names)) == [
        "[]",
        "0 0 GPU- True",
        "[]",
        "1 1 GPU- True",
        "(12, 4) nvml (9, 0)",
    ]


def test_what_the_driver_does_not_tell_is_none(make_machine):
    host = Host(make_machine('[[device]]\nmodel = "H100"\nunsupported = ["temperature", "fan"]\n'))
    assert host.says("d = berth.devices()[0]; say(d.temperature_c, d.fan_percent, d.power_mw > 0)") == [
        "None None True"
    ]


def test_processes_are_listed(host):
    host.machine.start_berth("run", "--", "sleep", "1000")
    code = """
    with berth.lease(placeholder="cuda"):
        (process,) = [p for d in berth.devices() for p in d.processes]
        say(process.pid == os.getpid(), process.kind, process.used_bytes > 0, "Process(pid=" in repr(process))
    """
    assert host.says(code) == ["True compute True True"]


def test_values_are_immutable_and_compare(host):
    code = """
    snapshot = berth.snapshot()
    device = snapshot.devices[0]
    for value, name in (device, "index"), (device.memory, "free_bytes"), (snapshot, "devices"):
        try:
            setattr(value, name, 3)
        except AttributeError:
            say("cannot")
    say(device == snapshot.devices[0], device == snapshot.devices[1], device == 3, len({device, snapshot.devices[0]}))
    """
    assert host.says(code) == ["cannot", "cannot", "cannot", "True False False 1"]


def test_values_say_what_they_are(host):
    code = "say(repr(berth.snapshot())); say(repr(berth.devices()[1]).split(', GPU-')[0]); say(repr(berth.pick(2)))"
    assert host.says(code) == [
        "Snapshot(2 devices, driver 550.163.01, by nvml)",
        "Device(1, 'NVIDIA H100 80GB HBM3', 79.1 GiB free of 79.6 GiB, ok",
        "Choice(0,1)",
    ]


def test_pick_answers_what_the_program_answers(eight):
    words = ["-n", "3", "--where", "index>=2", "--order", "index", "--exclude", "3"]
    printed = eight.machine.berth("pick", *words).out.strip()
    code = """
    choice = berth.pick(3, where="index>=2", order="index", exclude=3)
    say(str(choice), choice.visible_devices, choice.ids, len(choice), [d.uuid for d in choice.devices] == list(choice.uuids))
    """
    assert printed == "2,4,5"
    assert eight.says(code) == ["2,4,5 2,4,5 (2, 4, 5) 3 True"]


@pytest.mark.parametrize(
    "arguments, ids",
    [
        ("devices=[6, '7']", "(6,)"),
        ("n=2, devices='6,7'", "(6, 7)"),
        ("where='index>3 and free>=20G'", "(4,)"),
        ("name='H100', free='20G', total=1 << 30, util=5, mem_util='5%', power=900, temp=90", "(0,)"),
        ("memory='20GiB', order='index'", "(0,)"),
        ("memory=20 << 30, free=1 << 20, order='index'", "(0,)"),
        ("shared=True, order='index'", "(0,)"),
        ("processes=1, order='index'", "(0,)"),
        ("order='random', seed=1, n=8", "(0, 1, 2, 3, 4, 5, 6, 7)"),
        ("where=lambda d: d.index in (5, 6)", "(5,)"),
        ("n=2, order=lambda d: -d.index", "(6, 7)"),
        ("where=lambda d: d.index < 4, order=lambda d: -d.index", "(3,)"),
        ("where=lambda d: d.index < 4, exclude=[0, 1], order='index'", "(2,)"),
    ],
)
def test_the_arguments_mean_what_the_options_mean(eight, arguments, ids):
    assert eight.says(f"say(berth.pick({arguments}).ids)") == [ids]


def test_the_mask_is_obeyed_unless_told_otherwise(eight):
    code = "say(berth.pick(order='index').ids, berth.pick(order='index', mask=False).ids)"
    assert eight.says(code, env={"CUDA_VISIBLE_DEVICES": "5,3"}) == ["(3,) (0,)"]


def test_why_names_who_is_in_the_way(host):
    host.machine.start_berth("run", "--note", "night run", "--", "sleep", "1000")
    host.becomes_free(1)
    code = """
    taken, free = berth.why()
    say(taken.free, taken.clause, "night run" in taken.reason, taken.culprits[0].note, taken.culprits[0].lease)
    say(free.free, free.clause, repr(free.reason), free.culprits, free.free_bytes > 0)
    say(repr(free), repr(taken).startswith("Verdict(GPU 0: leased by"), free.device.index)
    """
    first, second, third = host.says(code)
    assert first.startswith("False not_leased True night run 0000")
    assert second == "True None '' () True"
    assert third == "Verdict(GPU 1: free) True 1"


def test_a_mig_instance_is_named_by_its_uuid(make_machine):
    host = Host(make_machine('[[device]]\nmodel = "A100"\nmig = ["1g.5gb", "1g.5gb"]\n'))
    code = "c = berth.pick(); say(str(c) == c.uuids[0], c.uuids[0][:4], c.devices[0].label, c.devices[0].mig.slot)"
    assert host.says(code) == ["True MIG- 0:0 0"]


def test_a_machine_without_a_driver_is_no_driver(machine):
    answer = Host(machine).run(
        "try: berth.snapshot()\nexcept berth.NoDriver as e: say(e)",
        env={"LD_LIBRARY_PATH": None, "PATH": "/bin", "BERTH_SIM": None},
    )
    if answer.out == "" and answer.status == 0:
        pytest.skip("needs a machine without a driver")
    assert "driver" in answer.out, answer.err
