"""What a pick and a listing cost, as counts that no load of the machine changes: instructions, system calls and
driver calls. A bound is what was reached and a little more, so that what makes a pick slower fails here. Whoever
makes it faster lowers the bound. For instructions the little is a twentieth: the C library's string functions differ
by processor, and what they do by the length of the paths that they are given."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from jobs import eventually
from simulated_machine import DEADLINE_S, Machine

pytestmark = pytest.mark.release_only

# valgrind runs everything some fifty times slower.
VALGRIND_PATIENCE_S = 4 * DEADLINE_S

# Of one `berth pick` on eight idle H100, the topology known.
BOUNDS = {
    "instructions of berth": 440_000,
    "instructions of the probe": 548_000,
    "system calls of berth": 41,
    "system calls of the probe": 223,
    "driver calls": 75,
    # Of `berth.lease` and its end, where another lease lives.
    "system calls of a lease's helper": 187,
    # 19 and some: those that end at the same moment need fewer waits.
    "system calls for a lease of what keeps its receipt": 25,
}

EIGHT = 'call_log = true\n[[device]]\nmodel = "H100"\ncount = 8\n'


def check(what, count):
    print(f"{what}: {count}, bound {BOUNDS[what]}")
    assert count <= BOUNDS[what], f"{what}: {count} is more than {BOUNDS[what]}"


@pytest.fixture
def counted(make_machine):
    """Eight idle GPUs whose topology is known, as on any machine where something was picked since its boot."""

    def make(text=EIGHT):
        machine = make_machine(text)
        settle(machine.file)
        assert machine.berth("pick").out.strip().isdigit()
        settle(allocations_of(machine))
        return machine

    return make


def settle(path: pathlib.Path):
    """The simulated driver reads what has only just changed anew at every call."""
    long_ago = path.stat().st_mtime - 60
    os.utime(path, (long_ago, long_ago))


def allocations_of(machine: Machine):
    """Where the simulated driver looks for what processes allocated."""
    return pathlib.Path(f"{machine.file}.d") / "alloc"


def driver_calls(machine: Machine, *command, **options):
    log = pathlib.Path(f"{machine.file}.d") / "calls.log"
    log.unlink(missing_ok=True)
    assert machine.run(*command, **options).status == 0
    return [tuple(line.split()[1:3]) for line in log.read_text().splitlines()]


def whole_profiles(directory: pathlib.Path) -> list[str]:
    """What callgrind wrote of berth and its probe; empty until all of it is there."""
    texts = [path.read_text() for path in directory.glob("callgrind.*")]
    return texts if len(texts) >= 2 and all(re.search(r"^totals: \d", text, re.M) for text in texts) else []


# Where what a forked probe has executed is its own.
PROBE_BEGINS = "berth::source::run_probe"


def instructions(machine: Machine, *command) -> tuple[int, int]:
    """Of the program and of its probe, in an environment of fixed length and at fixed addresses."""
    profile = machine.directory / "callgrind"
    environment = machine.env | {"LD_PRELOAD": machine.build / "bench/real_exe.so"}
    run = machine.run(
        *["setarch", "-R", "env", "-i", *(f"{name}={value}" for name, value in sorted(environment.items()))],
        *["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={profile}.%p"],
        f"--zero-before={PROBE_BEGINS}*",
        *command,
        timeout=VALGRIND_PATIENCE_S,
    )
    assert run.status == 0, run.err
    # The probe ends after berth, and its file is whole after that.
    texts = eventually(lambda: whole_profiles(machine.directory))
    program, probe = sorted(texts, key=lambda text: PROBE_BEGINS in text)
    assert PROBE_BEGINS in probe and PROBE_BEGINS not in program
    return tuple(int(re.search(r"^totals: (\d+)", text, re.M)[1]) for text in (program, probe))


def system_calls_by_process(machine: Machine, *command, **options):
    """The calls of each process, by name, in the order in which the processes began."""
    trace = machine.directory / "trace"
    assert (
        machine.run("strace", "-f", "-qq", "-e", "signal=none", "-o", trace, *command, **options).status == 0
    )
    calls = {}
    for line in trace.read_text().splitlines():
        pid, rest = line.split(None, 1)
        if not rest.startswith(("<...", "+++")):
            calls.setdefault(pid, []).append(rest)
    return list(calls.values())


# Of the loader, once the C library is mapped: its thread is made, relocated pages are closed, its
# cache is let go.
LAST_OF_THE_LOADER = ("set_robust_list(", "rseq(", "mprotect(", "prlimit64(", "munmap(")


def own_calls(calls: list) -> list:
    """Without what the loader does between a program's execve and its first own call: how many folders it searches
    for the C library depends on what the processor can (glibc-hwcaps and its elders)."""
    while execs := [i for i, call in enumerate(calls) if call.startswith("execve(")]:
        start = execs[-1]
        end = next(i for i in range(start, len(calls)) if calls[i].startswith(LAST_OF_THE_LOADER[0]))
        while calls[end].startswith(LAST_OF_THE_LOADER):
            end += 1
        calls = calls[:start] + calls[end:]
    return calls


def needs(tool):
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")


def test_instructions_of_a_pick(counted):
    needs("valgrind")
    machine = counted(EIGHT.replace("true", "false"))
    program, probe = instructions(machine, machine.program, "pick")
    check("instructions of berth", program)
    check("instructions of the probe", probe)


def of_pipe(call):
    """Reads of the probe's answer: how many pieces it comes in is a matter of timing."""
    return call.startswith("recvfrom(")


def test_system_calls_of_a_pick(counted):
    needs("strace")
    machine = counted(EIGHT.replace("true", "false"))
    berth, probe = map(own_calls, system_calls_by_process(machine, machine.program, "pick"))
    check("system calls of berth", len([call for call in berth if not of_pipe(call)]))
    check("system calls of the probe", len(probe))


def test_the_kernel_tells_its_locks_while_the_driver_answers(counted):
    needs("strace")
    machine = counted()
    assert machine.run(machine.program, "run", "--", "true").status == 0
    berth, _ = system_calls_by_process(machine, machine.program, "pick")
    asked, read, answered = (
        next(place for place, call in enumerate(berth) if call.startswith(begin))
        for begin in ("sendto(", 'openat(AT_FDCWD, "/proc/locks"', "recvfrom(")
    )
    assert asked < read < answered


def test_what_is_counted_of_a_pick_is_the_same_on_a_lesser_processor(counted):
    needs("strace")
    machine = counted(EIGHT.replace("true", "false"))
    # What glibc calls these has changed with its versions; it ignores what it does not know.
    lesser = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512F_Usable,-AVX2,-AVX2_Usable"}
    here, there = (system_calls_by_process(machine, machine.program, "pick", env=env) for env in ({}, lesser))
    assert len(there[0]) <= len(here[0])
    assert [len([call for call in own_calls(calls) if not of_pipe(call)]) for calls in here] == [
        len([call for call in own_calls(calls) if not of_pipe(call)]) for calls in there
    ]


def test_a_pick_makes_the_driver_calls_of_the_bare_program(counted):
    machine = counted()
    calls = driver_calls(machine, machine.program, "pick")
    assert calls == driver_calls(machine, machine.build / "bench/bare")
    check("driver calls", len(calls))


def test_a_pick_asks_for_a_sample_only_when_the_request_names_it(counted):
    machine = counted()
    plain = driver_calls(machine, machine.program, "pick")
    with_samples = driver_calls(machine, machine.program, "pick", "--util", "50", "--temp", "90")
    extra = {call for call, _ in with_samples} - {call for call, _ in plain}
    assert extra == {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature"}
    assert len(with_samples) == len(plain) + 2 * 8


def test_a_listing_makes_the_driver_calls_of_the_bare_program(counted):
    machine = counted()
    assert driver_calls(machine, machine.program, "list") == driver_calls(
        machine, machine.build / "bench/list_bare"
    )


def files_of_proc(calls):
    opened = (re.match(r'openat\(.*"(/proc/\d+/\w+)"', call) for call in calls)
    return sorted(match[1] for match in opened if match)


def test_a_listing_reads_the_files_of_proc_that_the_bare_program_reads(make_machine):
    needs("strace")
    machine = make_machine()
    pids = [machine.start("sleep", "infinity").pid for _ in range(3)]
    listed = "".join(f"[[device.process]]\npid = {pid}\nused_mib = 100\n" for pid in pids)
    machine.change(f'[[device]]\nmodel = "H100"\n{listed}[[device]]\nmodel = "H100"\n{listed}')
    whole = system_calls_by_process(machine, machine.program, "list")
    bare = system_calls_by_process(machine, machine.build / "bench/list_bare")
    of_bare = files_of_proc(sum(bare, []))
    assert {path.rsplit("/", 1)[1] for path in of_bare} == {"stat", "status", "cmdline", "cgroup"}
    assert files_of_proc(sum(whole, [])) == of_bare


def test_a_receipt_costs_a_short_run_no_driver_call_and_few_system_calls(counted):
    needs("strace")
    machine = counted()
    calls = driver_calls(machine, machine.program, "run", "--", "true")
    assert calls == driver_calls(machine, machine.program, "run", "--", "true", env={"HOME": None})
    # The folder is there: it is made once.
    by_process = system_calls_by_process(machine, machine.program, "run", "--", "true")
    (keeping,) = [kept for kept in by_process if any("/berth/receipts" in call for call in kept)]
    print(len(keeping), "system calls for the line of a run")
    assert len(keeping) <= 28


def calls_of_leases(machine: Machine, count: int) -> tuple[int, int]:
    """Of the last of so many helpers, and of the process that keeps the receipts of the leases."""
    env = {"BERTH_PROGRAM": machine.program}
    by_process = system_calls_by_process(machine, machine.build / "bench/leases", str(count), env=env)
    helpers = [calls for calls in by_process if any('"__lease"' in call for call in calls)]
    assert len(helpers) == count + 1
    (keeper,) = [calls for calls in by_process if any(call.startswith("accept4(") for call in calls)]
    return len([call for call in own_calls(helpers[-1]) if not of_pipe(call)]), len(keeper)


def test_system_calls_of_a_lease_of_a_library(counted):
    needs("strace")
    machine = counted(EIGHT.replace("true", "false"))
    _, few = calls_of_leases(machine, 2)
    helper, many = calls_of_leases(machine, 6)
    check("system calls of a lease's helper", helper)
    check("system calls for a lease of what keeps its receipt", (many - few) // 4)


def test_the_end_of_a_run_looks_at_no_other_process_where_nothing_is_left(counted):
    needs("strace")
    machine = counted()
    trace = machine.directory / "trace"
    # A child that berth has had before, as a probe is that has not ended yet. The tracer is none.
    script = f"sleep 1000 >&- 2>&- & exec strace -D -qq -o {trace} {machine.program} run -- true"
    run = machine.run("bash", "-c", script)
    assert run.status == 0, run.err
    lines = eventually(lambda: trace.read_text().splitlines() if "exit_group" in trace.read_text() else [])
    looked_at = [found[1] for line in lines if (found := re.match(r'openat\(.*"/proc/(\d+)/stat"', line))]
    print(len(looked_at), "looks at a process")
    # A probe that has not ended when the command starts is a child of before as well.
    started = {
        found[1] for line in lines if (found := re.match(r"(?:vfork|fork|clone3?)\(.* = (\d+)$", line))
    }
    assert len(set(looked_at) - started) <= 2, "its own, for the ticket, and that child"
    assert all(looked_at.count(pid) <= 2 for pid in looked_at), "a child's before and after the command"


def test_bare_is_bare():
    """The measure itself: nothing but the driver's library and libc is linked into it."""
    needs("ldd")
    from machine import BUILD

    for program in ("bare", "list_bare"):
        linked = subprocess.run(
            ["ldd", BUILD / "bench" / program], capture_output=True, text=True, check=True
        )
        libraries = {pathlib.Path(line.split()[0]).name for line in linked.stdout.splitlines()}
        assert {name for name in libraries if not name.startswith(("linux-vdso", "ld-linux"))} == {
            "libc.so.6"
        }
