"""The Python package against starting Python, against pynvml, and against the program."""

import statistics
import subprocess
import sys

# Which device is free by what pynvml tells: the least that answers what pick answers.
PYNVML = """
import sys
sys.path.append(sys.argv[1])
import pynvml
pynvml.nvmlInit()
for index in range(pynvml.nvmlDeviceGetCount()):
    device = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(device)
    pynvml.nvmlDeviceGetGraphicsRunningProcesses(device)
    mode = pynvml.nvmlDeviceGetComputeMode(device)
    if not pynvml.nvmlDeviceGetComputeRunningProcesses(device) and memory.used < 1 << 30 and mode == 0:
        print(index)
        break
"""
LOOP = """
import time, berth
for _ in range({turns}):
    begin = time.perf_counter_ns()
    berth.lease(wait=0, set_environ=False).release()
    print(time.perf_counter_ns() - begin)
"""
# As many in one process: a loop is what is asked about.
TURNS = 20
PATIENCE_S = 60


def interpreter(build):
    """That of the environment which `./dev bench` puts the package into, and nothing else."""
    return build.parent / "python" / f"{sys.version_info[0]}.{sys.version_info[1]}" / "env/bin/python"


def tools_of(build):
    """Where nvidia-ml-py lies."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return build.parent.parent / ".venv/lib" / version / "site-packages"


def programs(make, build, is_free):
    """The least that any must do, the package, and pynvml. `make` is bench.run.Program."""
    python = str(interpreter(build))
    shown = "import berth; print(berth.pick())"
    return (
        make("python -I -c pass", [python, "-I", "-c", "pass"]),
        make("bare", [str(build / "bench/bare")], is_free),
        make(
            "berth.pick()",
            [python, "-c", "import berth; berth.pick()"],
            is_free,
            shown_by=[python, "-c", shown],
        ),
        make("pynvml", [python, "-c", PYNVML, str(tools_of(build))], is_free),
    )


def lease_loop_ms(build, environment, rounds):
    """Medians of a lease and its release: in a loop of Python, and by `berth run` of a program that does nothing.

    In turns, so that a slow moment of the machine slows both."""
    loop, run = [], []
    for _ in range(rounds):
        done = subprocess.run(
            [interpreter(build), "-c", LOOP.format(turns=TURNS)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        loop += [int(line) / 1e6 for line in done.stdout.split()]
        for _ in range(TURNS):
            words = [
                build / "bench/measure",
                "time",
                build / "berth",
                "run",
                "--no-wait",
                "--",
                build / "bench/empty",
            ]
            done = subprocess.run(
                words, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True
            )
            run.append(int(done.stdout.split()[0]) / 1e6)
    return statistics.median(loop), statistics.median(run)
