"""The completion scripts, by the shells themselves."""

import os
import pathlib
import pty
import select
import shutil
import subprocess
import time

import pytest
from simulated_machine import DEADLINE_S


@pytest.fixture
def two_leases(machine) -> tuple:
    """The machine, and by what names its leases go."""
    for note in ("first", "second"):
        job = machine.start_berth("run", "--note", note, "--", "sh", "-c", "echo ready; exec sleep 1000")
        assert job.stdout.readline() == "ready\n"
    machine.env["PATH"] = f"{machine.program.parent}:{machine.env['PATH']}"
    return machine, [lease["id"][-6:] for lease in machine.berth("list", "--json").json["leases"]]


def shell(name: str) -> str:
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}")
    return name


def in_bash(machine, *words) -> list[str]:
    line = " ".join(f"'{word}'" for word in words)
    script = f"""
source <(berth completion bash)
COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}
_berth
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return machine.run("bash", "--norc", "-c", script).out.split()


def in_fish(machine, *words) -> list[str]:
    script = f"berth completion fish | source; complete -C '{' '.join(words)}'"
    return [line.split("\t")[0] for line in machine.run(shell("fish"), "-N", "-c", script).out.splitlines()]


def in_zsh(machine, line: str, wanted: str) -> None:
    # The shell counts only when it has read the script: it says so in a word that is not typed.
    setup = "autoload -Uz compinit; compinit -D -u; source <(berth completion zsh); echo re'a'dy\n"
    at_prompt(machine, [shell("zsh"), "-f", "-i"], setup, line, wanted)


PACKAGE = pathlib.Path("/usr/share/bash-completion/bash_completion")


def at_bash_prompt(machine, line: str, wanted: str, package: bool = False) -> None:
    source = f"source {PACKAGE}; " if package else ""
    setup = f"{source}source <(berth completion bash); echo re'a'dy\n"
    at_prompt(machine, ["bash", "--norc", "--noprofile", "-i"], setup, line, wanted)


def at_prompt(machine, words: list[str], setup: str, line: str, wanted: str) -> None:
    """Types the line and a tab at a terminal, and waits for what completion makes of it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words,
        env=machine.env | {"TERM": "dumb", "PS1": "> "},
        cwd=machine.directory,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        os.write(ours, setup.encode())
        wait_for(ours, "ready\r\n")
        os.write(ours, f"{line}\t".encode())
        wait_for(ours, wanted)
    finally:
        process.kill()
        process.wait(DEADLINE_S)
        os.close(ours)


def wait_for(terminal: int, wanted: str) -> None:
    text, end = "", time.monotonic() + DEADLINE_S
    while wanted not in text:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"no {wanted!r} in {text!r}"
        text += os.read(terminal, 4096).decode(errors="replace")


def test_bash(two_leases):
    machine, names = two_leases
    assert in_bash(machine, "berth", "ver") == ["verify", "version"]
    assert set(names) < set(in_bash(machine, "berth", "release", ""))
    assert in_bash(machine, "berth", "verify", names[0][:4]) == [
        name for name in names if name.startswith(names[0][:4])
    ]
    assert in_bash(machine, "berth", "adopt", "--no") == ["--note"]
    assert in_bash(machine, "berth", "claim", "--tim") == ["--time"]


@pytest.mark.parametrize("package", [False, True])
@pytest.mark.parametrize(
    "line, wanted",
    [
        ("berth submit nig", "berth submit nightly.sh "),
        ("berth submit zno", "berth submit znotes.txt "),
        ("berth run -n 2 -- ./nig", "./nightly.sh "),
        ("berth run -n 2 ./nig", "./nightly.sh "),
        ("berth run -- true nig", "true nightly.sh "),
        ("berth run -- true >nig", ">nightly.sh "),
        ("berth jobs >nig", ">nightly.sh "),
        ("berth submit -o nig", "-o nightly.sh "),
        ("berth submit --output=nig", "--output=nightly.sh "),
        ("berth simulate --jobs nig", "--jobs nightly.sh "),
        ("berth run -n 2 -- basena", "-- basename "),
        ("berth list --color=ne", "--color=never "),
    ],
)
def test_bash_completes_names_of_files_where_a_file_may_stand(machine, line, wanted, package):
    if package and not PACKAGE.exists():
        pytest.skip("needs the package bash-completion")
    machine.env["PATH"] = f"{machine.program.parent}:{machine.env['PATH']}"
    script = machine.directory / "nightly.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (machine.directory / "znotes.txt").touch()
    at_bash_prompt(machine, line, wanted, package)


def test_cancel_is_offered_the_jobs_that_are_not_over(machine):
    machine.env["PATH"] = f"{machine.program.parent}:{machine.env['PATH']}"
    waiting = machine.berth("submit", "--at", "1h", "--", "true").out.strip()
    over = machine.berth("submit", "--", "true").out.strip()
    assert machine.berth("wait", over).status == 0
    offered = in_bash(machine, "berth", "cancel", "")
    assert waiting in offered
    assert over not in offered


def test_what_takes_a_job_is_offered_their_numbers(machine):
    machine.env["PATH"] = f"{machine.program.parent}:{machine.env['PATH']}"
    running, waiting = (
        machine.berth("submit", *words, "--", "sleep", "1000").out.strip() for words in ((), ("--at", "1h"))
    )
    while running not in in_bash(machine, "berth", "release", ""):
        pass
    for command in ("cancel", "log", "receipt", "why", "wait", "attach", "edit", "retry", "forget", "jobs"):
        assert {running, waiting} <= set(in_bash(machine, "berth", command, "")), command
    for command in ("release", "extend"):
        assert waiting not in in_bash(machine, "berth", command, "")
    at_bash_prompt(machine, "berth rec", "berth receipt ")


def test_fish(two_leases):
    machine, names = two_leases
    assert in_fish(machine, "berth", "ver") == ["verify", "version"]
    assert set(names) <= set(in_fish(machine, "berth", "release", ""))
    assert set(names) <= set(in_fish(machine, "berth", "verify", ""))
    assert "--time" in in_fish(machine, "berth", "claim", "--")


def test_zsh(two_leases):
    machine, names = two_leases
    in_zsh(machine, "berth verif", "berth verify ")
    in_zsh(machine, "berth adopt --no", "--note=")
    # One of the two has this digit where the other has another.
    place = next(at for at in range(6) if names[0][at] != names[1][at])
    in_zsh(machine, f"berth release {names[0][: place + 1]}", f"berth release {names[0]}")


def test_zsh_takes_the_word_behind_a_value_that_may_be_left_out_for_an_argument(two_leases):
    machine, _ = two_leases
    number = machine.berth("submit", "--at", "1h", "--", "true").out.strip()
    in_zsh(machine, "berth jobs --watch ", f"berth jobs --watch {number}")


def test_what_completion_asks_for(machine):
    assert machine.berth("__leases", "mine").out == machine.berth("__leases").out == ""
    job = machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert job.stdout.readline() == "ready\n"
    name, what = machine.berth("__leases", "mine").out.split("\t")
    assert machine.berth("list", "--json").json["leases"][0]["id"].endswith(name)
    assert what.endswith(" sh\n")
