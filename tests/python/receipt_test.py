"""The receipt of a lease that a program takes by the library."""

import contextlib
import json
import os
import pathlib
import re
import signal
import time

from clock import Clock
from hosts import Host
from jobs import eventually, has_told_energy
from schemas import checked_document
from simulated_machine import DEADLINE_S

HOUR_S = 3600
GIB = 1 << 30
POWERED = 'call_log = true\n[[device]]\nmodel = "A100"\ncount = 2\npower_w = 100\nutilization = 50\n'
OFTEN = {"BERTH_SAMPLE": "100ms"}
# The memory of the context comes on top.
USES_A_GIBIBYTE = """
import ctypes

def use():
    cuda = ctypes.CDLL("libcuda.so.1")
    context, address, device = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 30)) == 0
"""


def kept(host) -> list[dict]:
    answer = host.machine.berth("receipt", "--json")
    assert answer.status == 0, answer.err
    return checked_document(answer.json, "receipt")["runs"]


def keeps(host, count=1) -> list[dict]:
    """The line is written when the lease is over, and nobody waits for it."""
    eventually(lambda: len(kept(host)) == count)
    return kept(host)


def keepers(machine) -> list[int]:
    found = []
    for pid in machine.inhabitants():
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{pid}/comm").read_text() == "berth __receipt\n":
                found.append(pid)
    return found


def test_a_released_lease_tells_its_receipt_and_keeps_it(host):
    code = """
    import json
    with berth.lease(2) as lease:
        try:
            lease.receipt
        except berth.Usage:
            say("not yet")
        id = lease.id
    say(json.dumps(lease.receipt))
    say(lease.receipt == lease.receipt, lease.receipt["lease"] == id)
    """
    early, told, same = host.says(code)
    assert early == "not yet" and same == "True True"
    (run,) = keeps(host)
    whole = json.loads(told)
    assert whole.pop("command").startswith(run.pop("command")[:80]), "the record has its beginning"
    assert whole == run
    assert run["ending"] == "well" and run["exit_status"] is None and run["signal"] is None
    assert [device["label"] for device in run["devices"]] == ["0", "1"]
    assert run["energy_mj"] is None and run["strangers"] is None, "so short a lease is not asked about"
    assert "ended     " in host.machine.berth("receipt", run["lease"]).out


def test_it_says_how_the_work_ended(host):
    ends = {
        "with berth.lease(): raise RuntimeError": ("badly", "badly: the program says that it failed"),
        "with berth.lease(): raise KeyboardInterrupt": ("by_others", "with its program"),
        "lease = berth.lease()": ("by_others", "with its program"),
        "lease = berth.lease(); os.kill(os.getpid(), 9)": ("by_others", "with its program"),
        "lease = berth.lease(); lease.release()": ("well", "well"),
    }
    script = host.machine.directory / "train.py"
    for count, (code, (ending, told)) in enumerate(ends.items(), 1):
        script.write_text(f"import berth, os\n{code}\n")
        host.machine.run(host.python, script)
        run = keeps(host, count)[-1]
        assert run["ending"] == ending and run["exit_status"] is None, code
        assert re.search(rf"ended .*, {told}$", host.machine.berth("receipt", run["lease"]).out, re.M)
    _, line = host.machine.berth("receipt").out.splitlines()
    assert line.split()[:3] == ["train.py", "5", "1"], "one has failed"


def test_a_lease_that_was_waited_for_says_how_long(host):
    holder = host.start("berth.lease(2); say('ready'); hear()").says("ready")
    code = """
    with berth.lease(on_wait=say_once("waits")) as lease:
        pass
    say(lease.receipt["waited_ms"])
    """
    waiter = host.start(code).says("waits")
    eventually(lambda: host.waiting() == 1)
    eventually(lambda: len(keepers(host.machine)) == 1)  # a request that waits has none
    time.sleep(0.3)
    holder.tell().ends()
    assert int(waiter.hears()) >= 300
    assert waiter.ends() == 0
    keeps(host, 2)


def test_the_receipt_of_a_program_that_was_killed_is_kept(host):
    program = host.start("lease = berth.lease(2); say('ready'); hear()").says("ready")
    eventually(lambda: keepers(host.machine))
    assert host.free() == 0
    program.signal(signal.SIGKILL).ends()
    assert host.free() == 2, "nothing else holds the lease"
    (run,) = keeps(host)
    assert run["ending"] == "by_others"


def test_without_the_process_that_keeps_it_only_the_receipt_is_missing(host):
    code = """
    with berth.lease(2) as lease:
        say("ready")
        hear()
    say(lease.receipt)
    """
    program = host.start(code).says("ready")
    eventually(lambda: keepers(host.machine))
    (keeper,) = keepers(host.machine)
    of_lease = re.compile("/leases/(leases|devices)/")
    assert not [name for name in opened(keeper) if of_lease.search(name)]
    os.kill(keeper, signal.SIGKILL)
    assert host.free() == 0
    program.tell().says("None")
    assert program.ends() == 0
    assert host.free() == 2 and kept(host) == []


def opened(pid) -> list[str]:
    names = []
    for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            names.append(os.readlink(file))
    return names


def test_a_stopped_keeper_holds_up_no_release(host):
    code = """
    with berth.lease(2) as lease:
        say("ready")
        hear()
    say("over")
    hear()
    """
    program = host.start(code).says("ready")
    eventually(lambda: keepers(host.machine))
    (keeper,) = keepers(host.machine)
    os.kill(keeper, signal.SIGSTOP)
    program.tell().says("over")
    assert host.free() == 2 and kept(host) == []
    os.kill(keeper, signal.SIGCONT)
    keeps(host)
    program.tell()
    assert program.ends() == 0


def test_the_last_of_the_forks_ends_it(host):
    code = """
    lease = berth.lease()
    if os.fork() == 0:
        say("forked")
        hear()
        os._exit(0)
    say("leaves")
    os._exit(0)
    """
    program = host.start(code)
    assert {program.hears(), program.hears()} == {"forked", "leaves"}
    assert program.ends() == 0
    assert host.free() == 1 and kept(host) == []
    program.tell()
    host.becomes_free(2)
    keeps(host)


def test_a_fork_that_leaves_the_block_writes_nothing(host):
    code = """
    with berth.lease() as lease:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            say("waited")
            hear()
    if child == 0:
        say(lease.receipt)
        os._exit(0)
    """
    program = host.start(code).says("None").says("waited")
    assert kept(host) == []
    program.tell().ends()
    (run,) = keeps(host)
    assert run["ending"] == "well"


def test_energy_peak_and_use_come_from_the_machine(make_machine):
    host = Host(make_machine(POWERED + "context_mib = 0\n"))
    clock = Clock(host.machine)
    code = """
    import json
    with berth.lease(2) as lease:
        use()
        say("ready")
        hear()
    say(json.dumps(lease.receipt))
    """
    program = host.start(USES_A_GIBIBYTE + code.replace("\n    ", "\n"), env=clock.env | OFTEN).says("ready")
    eventually(lambda: has_told_energy(host.machine))
    eventually(lambda: samples(host.machine) >= 2)
    clock.set(0, HOUR_S)
    run = json.loads(program.tell().hears())
    assert program.ends() == 0
    assert HOUR_S * 1000 <= run["lasted_ms"] < (HOUR_S + DEADLINE_S) * 1000
    assert run["energy_mj"] >= 2 * 100 * (run["lasted_ms"] - DEADLINE_S * 1000)
    assert run["energy_mj"] <= 2 * 100 * (run["lasted_ms"] + DEADLINE_S * 1000)
    assert run["driver_version"] and run["strangers"] == []
    assert run["devices"][0]["peak_bytes"] == GIB and run["use_percent"] == 50
    (line,) = keeps(host)
    assert line["energy_mj"] == run["energy_mj"] and line["peak_bytes"] == GIB


def samples(machine) -> int:
    most = 0
    for pid in keepers(machine):
        with contextlib.suppress(OSError):
            for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                if "berth-samples" in os.readlink(file):
                    found = re.search(r"^samples=(\d+)$", file.read_text(), re.M)
                    most = max(most, int(found[1]) if found else 0)
    return most


def test_a_clean_lease_says_whether_it_stayed_so(make_machine):
    host = Host(make_machine(POWERED))
    code = """
    with berth.lease(clean=True) as lease:
        say("ready")
        hear()
    say(lease.receipt["clean"], [each["pid"] for each in lease.receipt["strangers"]])
    """
    stranger = host.machine.start("sleep", "infinity")
    for changed in ("", f"[[device.process]]\npid = {stranger.pid}\nused_mib = 100\n"):
        host.machine.change(POWERED)
        program = host.start(code, env=OFTEN).says("ready")
        eventually(lambda: samples(host.machine) >= 2)
        host.machine.change(POWERED + changed)
        at = samples(host.machine)
        eventually(lambda: samples(host.machine) >= at + 3)
        told = program.tell().hears()
        assert program.ends() == 0
        assert told == (f"False [{stranger.pid}]" if changed else "True []")


def test_a_lease_in_a_run_of_the_same_program_is_counted_once(host):
    code = "import berth\nwith berth.lease() as lease: pass\nprint(lease.receipt)"
    script = host.machine.directory / "train.py"
    script.write_text(code)
    answer = host.machine.berth("run", "-n", "2", "--", host.python, script)
    assert answer.status == 0 and answer.out == "None\n", answer.err
    (run,) = kept(host)
    assert run["program"] == "train.py" and run["exit_status"] == 0
    # A script that runs it is another program.
    answer = host.machine.berth("run", "-n", "2", "--", "sh", "-c", f"{host.python} {script}; true")
    assert answer.status == 0 and answer.out.startswith("{"), answer.err
    keeps(host, 3)


def test_a_wrong_time_between_samples_is_refused(host):
    answer = host.run("berth.lease()", env={"BERTH_SAMPLE": "often"})
    assert answer.status == 1 and "BERTH_SAMPLE" in answer.err and "Usage" in answer.err


def test_a_home_that_cannot_be_written_costs_only_the_line(host):
    home = host.machine.directory / "home/.local/state/berth"
    home.mkdir(parents=True)
    (home / "receipts").write_text("no folder\n")
    code = """
    with berth.lease() as lease:
        pass
    say(lease.receipt["ending"])
    """
    assert host.says(code) == ["well"]
    assert host.free() == 2


def test_a_home_that_does_not_answer_holds_up_nobody(host):
    state = host.machine.directory / "home/.local/state"
    code = """
    with berth.lease() as lease:
        pass
    say(lease.receipt["ending"])
    """
    env = {"LD_PRELOAD": host.machine.build / "slow_home.so", "SLOW_HOME": state}
    assert host.says(code, env=env) == ["well"]
    assert kept(host) == []
