"""What is seen of a run while it runs: peak memory, use, throttling, and who else was on its GPUs."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
from agent import Agent
from clock import Clock
from jobs import children_of, eventually, has_told_energy, name_of, samplers, state, the_only
from lease_jobs import leases
from schemas import checked_document
from simulated_machine import DEADLINE_S
from submitted import submit, wait_for

GIB = 1 << 30
OFTEN = {"BERTH_SAMPLE": "100ms"}
# The memory of the context comes on top.
USES_A_GIBIBYTE = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, address, device = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int()
assert cuda.cuInit(0) == 0
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 30)) == 0
print("ready", flush=True)
sys.stdin.readline()
"""
BUSY = '[[device]]\nmodel = "A100"\ncontext_mib = 0\nutilization = 50\n'
SLOWED = 'throttle = ["sw_power_cap"]\n'


def start(machine, *options, env=OFTEN):
    run = machine.start_berth(
        "run", *options, "--", "python3", "-c", USES_A_GIBIBYTE, env=env, stdin=subprocess.PIPE
    )
    assert run.stdout.readline() == "ready\n", run.stderr.read()
    return run


def end(run) -> str:
    _, err = run.communicate("\n", timeout=DEADLINE_S)
    assert run.returncode == 0, err
    return err


def seen(run) -> int:
    """How many samples of this run there are."""
    for descriptor in pathlib.Path(f"/proc/{run.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if "berth-samples" in os.readlink(descriptor):
                found = re.search(r"^samples=(\d+)$", descriptor.read_text(), re.M)
                return int(found[1]) if found else 0
    return 0


def sampled(run, times=2):
    eventually(lambda: seen(run) >= times)
    return run


def all_samples(machine) -> str:
    text = ""
    for pid in machine.inhabitants():
        with contextlib.suppress(OSError):
            for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if "berth-samples" in os.readlink(descriptor):
                        text += descriptor.read_text()
    return text


def opened(pid) -> set[str]:
    names = set()
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            names.add(os.readlink(descriptor))
    return names


def asks_driver(sampler: int) -> bool:
    return any("probe" in name_of(child) for child in children_of(sampler))


def kept(machine, *words) -> dict:
    answer = machine.berth("receipt", "--json", *words)
    assert answer.status == 0, answer.err
    (run,) = checked_document(answer.json, "receipt")["runs"]
    return run


def test_a_run_has_the_peak_and_the_use_of_its_samples(make_machine):
    machine = make_machine(BUSY + SLOWED)
    end(sampled(start(machine)))
    run = kept(machine)
    (device,) = run["devices"]
    assert device["peak_bytes"] == run["peak_bytes"] == GIB
    assert device["use_percent"] == run["use_percent"] == 50
    assert device["throttled_percent"] == 100
    assert run["sampled_every_ms"] == 100 and run["accounted"] is False and run["strangers"] == []
    text = machine.berth("receipt", run["lease"]).out
    assert "1 GiB (a look every 100 ms)" in text and re.search(r"others +none seen", text)


def clean(machine, meanwhile=lambda: None) -> dict:
    run = sampled(start(machine, "--clean"))
    meanwhile()
    at = seen(run)
    sampled(run, at + 3)
    end(run)
    return kept(machine)


def test_a_run_on_a_clean_gpu_says_so(make_machine):
    machine = make_machine(BUSY)
    # The first look is at the start of the command, and the next one would be long after its end.
    end(sampled(start(machine, "--clean", env={"BERTH_SAMPLE": "60s"}), 1))
    told = kept(machine)
    assert told["clean"] is True and told["strangers"] == []


def test_a_run_whose_clocks_were_slowed_for_two_samples_was_not_clean(make_machine):
    machine = make_machine(BUSY)
    assert clean(machine, lambda: machine.change(BUSY + SLOWED))["clean"] is False


def test_a_run_beside_a_stranger_was_not_clean(make_machine):
    machine = make_machine(BUSY)
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        beside = f"{BUSY}[[device.process]]\npid = {stranger.pid}\nused_mib = 512\n"
        told = clean(machine, lambda: machine.change(beside))
        stranger.kill()
    assert told["clean"] is False
    assert re.search("^clean +no$", machine.berth("receipt", told["lease"]).out, re.M)


def test_whether_a_run_was_clean_is_not_known_without_the_option(make_machine):
    machine = make_machine(BUSY)
    end(sampled(start(machine)))
    assert kept(machine)["clean"] is None


def test_a_gpu_is_clean_only_without_programs_that_the_site_ignores(make_machine):
    machine = make_machine(BUSY)
    with subprocess.Popen(["sleep", "1000"]) as ignored:
        machine.change(f"{BUSY}[[device.process]]\npid = {ignored.pid}\nused_mib = 512\n")
        (machine.directory / "site.toml").write_text('ignored_programs = ["sleep"]\n')
        assert machine.berth("run", "--no-wait", "--", "true").status == 0
        answer = machine.berth("run", "--no-wait", "--clean", "--", "true")
        ignored.kill()
    assert answer.status == 75
    assert "without a lease by" in answer.err and "without --clean" in answer.err


@pytest.mark.parametrize("words", [["--memory", "1G"], ["--shared"], ["--processes", "1"]])
def test_nobody_else_is_on_a_clean_gpu(machine, words):
    answer = machine.berth("run", "--clean", *words, "--", "true")
    assert answer.status == 2 and "--clean is a GPU on which nobody else computes" in answer.err


def test_a_share_has_its_own_memory_and_no_use(make_machine):
    machine = make_machine(BUSY)
    one, other = (start(machine, "--memory", "2G") for _ in range(2))
    sampled(one)
    end(one)
    run = kept(machine)
    assert run["peak_bytes"] == GIB and run["use_percent"] is None
    end(other)


def test_who_else_computes_on_a_whole_gpu_is_named(make_machine):
    machine = make_machine(BUSY)
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        run = start(machine)
        machine.change(f"{BUSY}[[device.process]]\npid = {stranger.pid}\nused_mib = 512\n")
        at = seen(run)
        sampled(run, at + 3)
        end(run)
        stranger.kill()
    told = kept(machine)
    (other,) = told["strangers"]
    assert other["pid"] == stranger.pid and other["device"] == "0" and other["command"] == "sleep 1000"
    assert other["seen_ms"] >= 200
    assert told["peak_bytes"] == GIB, "the memory of others is not the run's"
    assert f"pid {stranger.pid}" in machine.berth("receipt", told["lease"]).out


def test_what_runs_inside_of_a_lease_is_of_the_lease_around_it(make_machine):
    machine = make_machine(BUSY)
    inner = f"exec {machine.program} run -- python3 -c '{USES_A_GIBIBYTE}'"
    run = machine.start_berth("run", "--", "sh", "-c", inner, env=OFTEN, stdin=subprocess.PIPE)
    assert run.stdout.readline() == "ready\n"
    sampled(run, 8)
    end(run)
    for told in checked_document(machine.berth("receipt", "--json").json, "receipt")["runs"]:
        assert told["strangers"] in ([], None)


def test_runs_of_a_user_share_a_sampler_and_it_ends_with_the_last(machine):
    runs = [sampled(start(machine)) for _ in range(3)]
    (sampler,) = samplers(machine)
    held = {name for name in opened(runs[0].pid) if name.startswith(str(machine.leases))}
    assert held and not held & opened(sampler)
    for run in runs[:2]:
        end(run)
    sampled(runs[2], seen(runs[2]) + 1)
    assert samplers(machine) == [sampler]
    runs[2].kill()
    eventually(lambda: samplers(machine) == [])


def test_a_sampler_that_is_killed_takes_nothing_that_was_seen(make_machine):
    machine = make_machine(BUSY)
    run = sampled(start(machine))
    (sampler,) = samplers(machine)
    os.kill(sampler, signal.SIGKILL)
    end(run)
    assert kept(machine)["peak_bytes"] == GIB


def test_while_the_agent_of_root_looks_a_sampler_asks_no_driver(open_machine, as_user):
    machine = open_machine
    agent = Agent(machine)
    # The shortest interval at which a sampler waits for an agent; the first look is at once.
    words = ("run", "--clean", "--", "sh", "-c", "read line")
    run = machine.start(
        *as_user(20001), machine.program, *words, env={"BERTH_SAMPLE": "4s"}, stdin=subprocess.PIPE
    )
    sampled(run, 1)
    (sampler,) = samplers(machine)
    assert not asks_driver(sampler)
    agent.ends()
    sampled(run, seen(run) + 1)
    assert asks_driver(sampler)
    Agent(machine)
    # The next look may have been asked for already.
    sampled(run, seen(run) + 2)
    eventually(lambda: not asks_driver(sampler))
    assert samplers(machine) == [sampler]
    end(run)
    eventually(lambda: samplers(machine) == [])


def test_an_agent_that_says_nothing_costs_no_look(open_machine, as_user):
    machine = open_machine
    agent = Agent(machine)
    agent.process.send_signal(signal.SIGSTOP)
    eventually(lambda: state(agent.process.pid) == "T")
    words = ("run", "--clean", "--", "sh", "-c", "read line")
    run = machine.start(
        *as_user(20001), machine.program, *words, env={"BERTH_SAMPLE": "4s"}, stdin=subprocess.PIPE
    )
    sampled(run, 1)
    assert all(asks_driver(sampler) for sampler in samplers(machine))
    end(run)


def test_a_sampler_that_is_stopped_holds_up_no_run_and_no_start(machine):
    run = sampled(start(machine), 1)
    (sampler,) = samplers(machine)
    os.kill(sampler, signal.SIGSTOP)
    eventually(lambda: state(sampler) == "T")
    try:
        # Another run begins, is sampled or not, and ends beside it; and the first one ends.
        end(start(machine))
        end(run)
        assert leases(machine) == []
        assert machine.berth("run", "--no-wait", "-n", "8", "--", "true").status == 0
        assert machine.berth("receipt").status == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(sampler, signal.SIGCONT)


@pytest.mark.parametrize("env", [{}, {"BERTH_SAMPLE": "never"}], ids=["short", "never"])
def test_a_run_that_is_over_soon_or_wants_no_samples_has_none(machine, env):
    run = start(machine, env=env)
    assert samplers(machine) == []
    end(run)
    told = kept(machine)
    assert told["sampled_every_ms"] is None and told["peak_bytes"] is None and told["strangers"] is None


def test_a_time_that_is_none_is_refused(machine):
    answer = machine.berth("run", "--", "true", env={"BERTH_SAMPLE": "often"})
    assert answer.status == 2 and "BERTH_SAMPLE (a time, or never)" in answer.err
    assert machine.berth("run", "--", "true", env={"BERTH_SAMPLE": "0s"}).status == 2


def test_the_accounting_of_the_driver_is_better_than_samples(make_machine):
    machine = make_machine("call_log = true\n" + BUSY + "accounting = true\n")
    clock = Clock(machine)
    run = sampled(start(machine, env=OFTEN | clock.env))
    eventually(lambda: has_told_energy(machine))
    ended = f"""{BUSY}accounting = true
[[device.accounted]]
pid = 4000001
utilization = 80
peak_mib = 3072
started_us = {int((time.time() - 1800) * 1e6)}
lasted_ms = 900_000
[[device.accounted]]
pid = 4000002
utilization = 100
peak_mib = 5000
started_us = {int((time.time() - 7200) * 1e6)}
lasted_ms = 900_000
"""
    machine.change(ended)
    clock.set(0, 3600)
    end(run)
    told = kept(machine)
    assert told["accounted"] is True
    assert told["peak_bytes"] >= 3 * GIB and told["peak_bytes"] < 5000 << 20
    # 80 % of a quarter of the hour, and what the last process did.
    assert 15 <= told["use_percent"] <= 25
    assert "of samples" not in machine.berth("receipt", told["lease"]).out


def test_a_job_tells_its_peak_and_its_use(make_machine):
    machine = make_machine(BUSY)
    ready, go_on = machine.directory / "ready", machine.directory / "go"
    script = f"touch {ready}; until [ -e {go_on} ]; do sleep 0.02; done"
    number = submit(machine, "--", "sh", "-c", script, env=OFTEN)
    eventually(ready.exists)
    assert "PEAK" not in machine.berth("jobs").out
    eventually(lambda: samplers(machine))
    eventually(lambda: "peak_bytes" in all_samples(machine))
    go_on.touch()
    told = wait_for(machine, number, "ended")
    assert told["peak_bytes"] == 0 and told["use_percent"] == 50
    heads, line = machine.berth("jobs").out.splitlines()
    assert heads.split()[-3:] == ["PEAK", "USE", "COMMAND"] and " 50 % " in line


def test_a_driver_that_hangs_at_the_end_holds_neither_the_user_nor_the_lease(make_machine):
    powered = "call_log = true\n" + BUSY + "power_w = 100\n"
    machine = make_machine(powered)
    clock = Clock(machine)
    run = start(machine, env=clock.env)
    eventually(lambda: has_told_energy(machine))
    machine.change(f'{powered}[[fault]]\ncall = "nvmlDeviceGetFieldValues"\nhang = true\n')
    clock.set(0, 3600)
    end(run)
    assert leases(machine) == []
    assert kept(machine)["energy_mj"] is None


def test_a_run_that_was_asked_to_end_and_ended_at_once_did_not_end_badly(machine):
    run = machine.start_berth("run", "--", "sh", "-c", "echo $$; read line; exit 3", stdin=subprocess.PIPE)
    command = int(run.stdout.readline())
    os.kill(run.pid, signal.SIGSTOP)
    eventually(lambda: state(run.pid) == "T")
    os.kill(run.pid, signal.SIGTERM)
    run.stdin.write("\n")
    run.stdin.flush()
    eventually(lambda: state(command) == "Z")
    os.kill(run.pid, signal.SIGCONT)
    run.communicate(timeout=DEADLINE_S)
    told = kept(machine)
    assert told["exit_status"] == 3 and told["ending"] == "by_others"


def test_a_run_that_was_asked_to_end_while_another_child_ended_did_not_end_badly(machine):
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    # An orphan of the command becomes a child of `berth run`, which looks up late after its end.
    words = "sh -c 'sleep 1000 & echo $!'; echo $$; read line; exit 3"
    late = ["-e", "trace=rt_sigtimedwait", "-e", "inject=rt_sigtimedwait:delay_exit=1500000"]
    traced = machine.start(
        "strace",
        "-o",
        "/dev/null",
        *late,
        machine.program,
        "run",
        "--",
        "sh",
        "-c",
        words,
        stdin=subprocess.PIPE,
    )
    orphan, command = int(traced.stdout.readline()), int(traced.stdout.readline())
    run = the_only(lambda: children_of(traced.pid))
    os.kill(orphan, signal.SIGKILL)
    eventually(lambda: state(orphan) in ("Z", "gone"))
    os.kill(run, signal.SIGTERM)
    traced.stdin.write("\n")
    traced.stdin.flush()
    traced.communicate(timeout=DEADLINE_S)
    told = kept(machine)
    assert told["exit_status"] == 3 and told["ending"] == "by_others"
    assert state(command) == "gone"


def test_a_process_that_was_adopted_leaves_a_receipt_too(make_machine):
    machine = make_machine(BUSY)
    uses = machine.start("python3", "-c", USES_A_GIBIBYTE, stdin=subprocess.PIPE)
    assert uses.stdout.readline() == "ready\n"
    answer = machine.berth("adopt", str(uses.pid), env=OFTEN)
    assert answer.status == 0, answer.err
    eventually(lambda: re.search(r"^samples=[2-9]", all_samples(machine), re.M))
    end(uses)
    eventually(lambda: leases(machine) == [])
    # The lease does not wait for the disk.
    eventually(lambda: machine.berth("receipt", "--json").json["runs"])
    told = kept(machine)
    assert told["peak_bytes"] == GIB and told["strangers"] == [] and told["use_percent"] == 50
