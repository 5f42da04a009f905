"""{ids} and {uuids} in the words of a command."""

import re


def test_they_stand_for_the_leased_devices_in_any_word(machine):
    answer = machine.berth(
        "run", "--devices", "2,5", "--", "printf", "%s\n", '"device={uuids}"', "{ids}", "a{ids}b{ids}c"
    )
    first, second, third = answer.out.splitlines()
    assert re.fullmatch(r'"device=GPU-[0-9a-f-]{36},GPU-[0-9a-f-]{36}"', first)
    assert (second, third) == ("2,5", "a2,5b2,5c")
    uuids = {
        device["uuid"]
        for device in machine.berth("list", "--json").json["devices"]
        if device["index"] in (2, 5)
    }
    assert set(first[8:-1].split(",")) == uuids


def test_a_mig_instance_has_only_its_uuid(make_machine):
    machine = make_machine('[[device]]\nmodel = "A100"\nmig = ["1g.5gb"]\n')
    ids, uuids = machine.berth("run", "--", "printf", "%s\n", "{ids}", "{uuids}").out.splitlines()
    assert ids == uuids and ids.startswith("MIG-")


def test_other_braces_are_the_commands_own(machine):
    words = ["{}", "{id}", "{IDS}", "$ids", "{ids", "uuids}"]
    assert machine.berth("run", "--", "printf", "%s\n", *words).out.splitlines() == words
