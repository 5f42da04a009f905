"""Row 12: instructions executed, by callgrind: what no load of the machine changes."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
from collections.abc import Callable

import shelf
from contest import typed
from look import program_of, python_with
from machines import MODEL, Machine
from results import FLOOR, LIMIT, OURS, PEER, Figure, Row, Table
from running import run
from servers import servers
from setting import Bench

# Callgrind runs everything some fifty times slower.
PATIENCE_S = 90
MILLION = 1e6
TOTAL = re.compile(r"^(?:totals|summary): (\d+)", re.M)


def instructions(words: list[str], environment: dict[str, str], directory: pathlib.Path) -> tuple[float, int]:
    """Millions of all its processes, and how many processes."""
    for old in directory.glob("callgrind.*"):
        old.unlink()
    profile = [f"--callgrind-out-file={directory}/callgrind.%p", "--trace-children=yes"]
    done = run(["valgrind", "-q", "--tool=callgrind", *profile, *words], environment, PATIENCE_S)
    if done.returncode != 0:
        raise ValueError(f"fails under callgrind: {shelf.last_line(ValueError(done.stderr))}")
    counts = []
    for path in directory.glob("callgrind.*"):
        if totals := TOTAL.findall(path.read_text()):
            counts.append(int(totals[-1]))
    return sum(counts) / MILLION, len(counts)


def count(
    name: str, role: str, prepare: Callable[[], list[str]], bench: Bench, machine: Machine, note: str = ""
) -> Figure:
    bench.say(f"instructions: {name}")
    environment = machine.environment
    if role == OURS:
        # It looks at its own program, which would be valgrind's.
        environment = environment | {"LD_PRELOAD": bench.program("real_exe.so")}
    figure = Figure(name, role, note=note)
    try:
        words = prepare()
        figure.command = typed(words)
        total, processes = instructions(words, environment, machine.directory)
        figure.values, figure.more = [total], {"processes": str(processes)}
    except FileNotFoundError as error:
        figure.trouble = f"needs {error.filename}, which is not there"
    except (shelf.NotHad, OSError, ValueError) as error:
        figure.trouble = str(error)
    except subprocess.TimeoutExpired:
        figure.trouble = f"not done in {PATIENCE_S} s under callgrind"
    return figure


def execute(bench: Bench) -> Row:
    row = Row(12, "instructions", "Instructions",
              "The table gives the instructions that the same questions cost, of all processes of a command"
              " together. They are counted once, because they do not vary with the load of the machine. The Python"
              " programs are counted with their interpreter.")  # fmt: skip
    gputil = "import GPUtil; print(GPUtil.getAvailable(maxMemory=0.1)[0])"
    with (
        Machine(bench, "instructions", devices=8, busy=4, process_count=4) as machine,
        servers(machine, 8) as started,
    ):
        berth = bench.berth
        # The topology is known from then on, as on any machine where something was picked since its
        # boot.
        subprocess.run([berth, "pick"], env=machine.environment, capture_output=True)
        settle(machine.directory)
        questions = {
            "look": [
                ("list_bare", LIMIT, lambda: [bench.program("list_bare")]),
                ("berth list", OURS, lambda: [berth, "list"]),
                ("nvitop", PEER, program_of("nvitop", "nvitop", "-1")),
                ("gpuselect", PEER, python_with("gpuselect", "import gpuselect; gpuselect.gpustatus(False)")),
            ],
            "pick": [
                ("bare", LIMIT, lambda: [bench.program("bare")]),
                ("berth pick", OURS, lambda: [berth, "pick"]),
                ("nvisel (nvitop)", PEER, program_of("nvitop", "nvisel", "-n", "1")),
                ("gpuselect", PEER, program_of("gpuselect", "gpuselect")),
                ("GPUtil", PEER, python_with("GPUtil", gputil)),
                (
                    "safe-gpu",
                    PEER,
                    python_with("safe-gpu", "from safe_gpu.safe_gpu import *; get_free_gpus()"),
                ),
            ],
            "lease": [
                ("bare and true", LIMIT, lambda: ["sh", "-c", f"{bench.program('bare')}; exec true"]),
                ("berth run", OURS, lambda: [berth, "run", "--", "true"]),
                ("task-spooler", FLOOR, lambda: started.spooler().wait(["true"])),
                ("Slurm srun", PEER, lambda: started.slurm().srun(["true"])),
                ("gpuselect", PEER, program_of("gpuselect", "gpuselect", "--", "true")),
            ],
        }
        notes = {
            "task-spooler": "its client alone; knows no GPUs",
            "Slurm srun": "its client alone, without its servers",
        }
        for name, asked in questions.items():
            figures = [count(*each, bench, machine, notes.get(each[0], "")) for each in asked]
            row.tables.append(
                Table(
                    f"instructions-{name}", f"{name}: 8 × {MODEL}, 4 in use", "million", figures, counts=True
                )
            )
    return row


def settle(directory: pathlib.Path) -> None:
    """The simulated driver reads what has only just changed anew at every call."""
    for path in [directory / "machine.toml", directory / "machine.toml.d/alloc"]:
        if path.exists():
            long_ago = path.stat().st_mtime - 60
            os.utime(path, (long_ago, long_ago))
