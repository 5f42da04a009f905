"""Processes that the scenario lists, and the memory that they leave behind."""

import os

from simulated import eventually


def row(pid, more=""):
    return f"[[device.process]]\npid = {pid}\nused_mib = 5000\n{more}\n"


def test_a_listed_process_vanishes_with_its_memory_when_it_ends(machine, sleeper):
    process = sleeper()
    nvml = machine.write('[[device]]\nmodel = "H100"\n' + row(process.pid)).nvml()
    assert machine.pids(nvml) == [process.pid] and machine.used(nvml) == 5000
    process.kill()  # a zombie until it is waited for
    eventually(lambda: machine.pids(nvml) == [])
    assert machine.used(nvml) == 0
    assert machine.smi("--query-compute-apps=pid", "--format=csv,noheader").stdout == ""


def test_a_pid_that_never_existed_is_not_listed_unless_it_is_a_ghost(machine):
    nvml = machine.write('[[device]]\nmodel = "H100"\n' + row(4194304 - 7)).nvml()
    assert machine.pids(nvml) == [] and machine.used(nvml) == 0
    machine.write('[[device]]\nmodel = "H100"\n' + row(4194304 - 7, "ghost = true"))
    assert machine.pids(nvml) == [4194304 - 7] and machine.used(nvml) == 5000


def test_a_pid_that_was_given_out_again_is_not_the_listed_process(machine, sleeper):
    process = sleeper()
    nvml = machine.write('[[device]]\nmodel = "H100"\n' + row(process.pid)).nvml()
    assert machine.pids(nvml) == [process.pid]
    os.utime(machine.file, (1_600_000_000, 1_600_000_000))  # the file is now older than the process
    assert machine.pids(nvml) == []


def test_types_go_to_the_lists_they_belong_to(machine):
    text = '[[device]]\nmodel = "A6000"\n'
    for pid, kind in ((11, "C"), (12, "G"), (13, "C+G"), (14, "M+C")):
        text += row(pid, f'ghost = true\ntype = "{kind}"')
    nvml = machine.write(text).nvml()
    assert machine.pids(nvml) == [11, 13]
    assert machine.pids(nvml, kind="Graphics") == [12, 13]
    assert machine.pids(nvml, kind="MPSCompute") == [14]


def test_self_is_whoever_asks_and_memory_may_be_unknown(machine):
    nvml = machine.write('[[device]]\nmodel = "T4"\n[[device.process]]\npid = "self"\n').nvml()
    assert machine.pids(nvml) == [os.getpid()]
    assert machine.used(nvml) == 0
    done = machine.smi("--query-compute-apps=pid,used_memory", "--format=csv,noheader")
    assert done.stdout.endswith(", [N/A]\n")


def test_one_process_on_several_devices(machine, sleeper):
    process = sleeper()
    nvml = machine.write('[[device]]\nmodel = "H100"\ncount = 3\n' + row(process.pid)).nvml()
    assert [machine.pids(nvml, i) for i in range(3)] == [[process.pid]] * 3


def test_memory_stays_for_the_delay_after_its_process_ended(machine, sleeper):
    process = sleeper()
    text = '[[device]]\nmodel = "H100"\n' + row(process.pid)
    nvml = machine.write('memory_return_delay = "1000s"\n' + text).nvml()
    machine.run("true")  # makes the state directory
    assert machine.used(nvml) == 5000
    process.kill()
    eventually(lambda: machine.pids(nvml) == [])
    assert machine.used(nvml) == 5000  # nobody listed, memory in use: draining
    machine.write('memory_return_delay = "10ms"\n' + text)
    eventually(lambda: machine.used(nvml) == 0)


def test_hidden_memory_belongs_to_nobody(machine):
    nvml = machine.write('[[device]]\nmodel = "H100"\nhidden_mib = 30000\n').nvml()
    assert machine.pids(nvml) == [] and machine.used(nvml) == 30000
