"""berth shell: a lease for a shell."""

import os
import pwd
import re

from lease_jobs import holder, leases, only_lease

SHOW = 'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $BERTH_PROMPT"\n'


def test_the_shell_has_the_devices_and_is_told_so(machine):
    answer = machine.berth("shell", "--devices", "2,5", input=SHOW, env={"SHELL": "/bin/bash"})
    assert (answer.status, answer.out) == (0, "2,5 PCI_BUS_ID (GPU 2,5) \n")
    assert re.fullmatch(r"berth: this shell has GPU 2,5 until it ends \(lease [0-9a-f]{6,}\)\n", answer.err)
    assert leases(machine) == []


def test_it_ends_with_the_status_of_the_shell(machine):
    assert machine.berth("shell", input="exit 42\n", env={"SHELL": "/bin/sh"}).status == 42


def test_without_shell_in_the_environment_the_systems_is_taken(machine):
    answer = machine.berth("shell", input="readlink /proc/$$/exe\n", env={"SHELL": None})
    assert answer.status == 0
    assert os.path.realpath(answer.out.strip()) == os.path.realpath(pwd.getpwuid(os.geteuid()).pw_shell)


def test_it_refuses_as_run_does(make_machine):
    machine = make_machine("1xT4")
    holder(machine)
    assert machine.berth("shell", "--no-wait", input="echo never\n").status == 75
    assert machine.berth("shell", "-n", "2", input="echo never\n").status == 69
    assert machine.berth("shell", "true").status == 2


def test_a_shell_that_does_not_exist_is_127_and_takes_no_lease(machine):
    answer = machine.berth("shell", env={"SHELL": "/no/such/shell"})
    assert (answer.status, answer.out) == (127, "")


def test_the_lease_shows_the_shell(machine):
    shell = machine.start_berth("shell", stdin=-1, env={"SHELL": "/bin/bash"})
    shell.stdin.write("echo ready\n")
    shell.stdin.flush()
    assert shell.stdout.readline() == "ready\n"
    (lease,) = machine.berth("list", "--json").json["leases"]
    assert (lease["id"], lease["command"]) == (only_lease(machine), "/bin/bash")
