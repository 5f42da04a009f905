"""The programs that keep docs/standard.md: the clients in four languages, and Berth."""

import functools
import pathlib
import shutil
import subprocess
import sys

from conformance import Program

CLIENTS = pathlib.Path(__file__).parents[2] / "clients"
LANGUAGES = ["sh", "python", "go", "rust"]
COMPILERS = {"go": "go", "rust": "rustc"}
COMPILE_S = 300  # hang guard: the first compilation of a Go program builds its library


def can_be_built(language: str) -> bool:
    return language not in COMPILERS or shutil.which(COMPILERS[language]) is not None


@functools.cache
def built(language: str, folder: pathlib.Path) -> list:
    """The words that run the example program of a client."""
    if language == "sh":
        return [CLIENTS / "sh/example"]
    if language == "python":
        return [sys.executable, "-S", "-E", CLIENTS / "python/example.py"]
    program = folder / f"hold-{language}"
    compile_it, where = {
        "go": (["go", "build", "-o", program, "./example"], CLIENTS / "go"),
        "rust": (["rustc", "--edition", "2021", "-o", program, "example.rs"], CLIENTS / "rust"),
    }[language]
    subprocess.run(compile_it, cwd=where, check=True, timeout=COMPILE_S)
    return [program]


def client(words: list) -> Program:
    line = " ".join(str(word) for word in words)
    return Program(
        f"{line} {{uuid}} {{command}}",
        f"{line} --share {{uuid}} {{command}}",
        f"{line} --wait {{uuid}} {{command}}",
    )


def berth(machine) -> Program:
    def line(options):
        return f"{machine.program} run {options} --devices {{uuid}} -- {{command}}"

    return Program(line("--no-wait"), line("--no-wait --memory 1G"), line(""), queues=True, env=machine.env)


def uuids(machine) -> list:
    return machine.run("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader").out.split()
