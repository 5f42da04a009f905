"""What the README shows of the program is what the program prints, but for users, pids and ages."""

import getpass
import os
import pathlib
import re
import shlex
import signal
import socket
import sys
import time

import pytest
from jobs import command_of, eventually
from moving_picture import Step, moving_picture
from screen import make_screen  # noqa: F401
from terminal import OnTerminal, on_terminal, plain
from terminal_picture import picture, text_of

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PICTURE = ROOT / "docs/images/list.svg"
MOVING_PICTURE = ROOT / "docs/images/next-in-line.svg"
PICTURE_OF_TOP = ROOT / "docs/images/top.svg"
MACHINE = """driver = "570.124.06"
[[device]]
model = "A100"
utilization = 97
power_w = 312
temperature = 61
[[device.process]]
pid = {job}
used_mib = 31000
[[device]]
model = "A100"
utilization = 35
power_w = 140
temperature = 48
[[device.process]]
pid = {outsider}
used_mib = 21000
[[device]]
model = "A100"
[[device]]
model = "A100"
hidden_mib = 700
"""


def blurred(text: str) -> str:
    """Without what differs from run to run, and without the columns that it moves."""
    text = re.sub(rf"\b(ada|bob|{getpass.getuser()})\b", "USER", text)
    text = re.sub(r"\b\d+ (ms|s|min|h)\b|\b(\d+ [A-Z][a-z]{2} )?\d\d:\d\d\b", "TIME", text)
    text = re.sub(r"^[0-9a-f]{6}(?=  )|(?<=lease )[0-9a-f]{6}\b", "LEASE", text, flags=re.MULTILINE)
    text = re.sub(r"\b\d{2,}  USER|(?<=pid )\d+|(?<=TIME  )\d{2,}", "PID USER", text)
    return re.sub(r" +", " ", text)


def in_columns(text: str, was: str, becomes: str) -> str:
    """With another word for a word, and what follows in a table where it was. Numbers stand at the right."""
    room = max(0, len(was) - len(becomes))
    if was.isdigit():
        return re.sub(rf"\b{was}\b", " " * room + becomes, text)
    return re.sub(
        rf"(?:\b|(?<=\x1b\[\d\dm)){was}\b(\S*(?: \S+)*?)(  |$)",
        lambda found: becomes + found[1] + (" " * room + found[2] if found[2] else ""),
        text,
    )


def in_an_age(line: str, told: str) -> str:
    """With this age for its own. Those of a table stand at the right."""

    def as_wide(found: re.Match) -> str:
        blanks = found[1]
        return blanks + (told.rjust(len(found[0]) - len(blanks)) if len(blanks) > 1 else told)

    return re.sub(r"( *)\b\d (?:s|min)\b(?! ago)", as_wide, line)


def made_up(shown: str, pids: dict[int, int]) -> str:
    """The same with users, pids and ages such as a lab has, so that the picture changes only with the program."""
    lines = []
    for line in shown.splitlines():
        theirs = "outsider" in line or "no lease" in line
        line = in_columns(line, getpass.getuser(), "bob" if theirs else "ada")
        line = in_an_age(line, "3 h" if theirs else "2 h")
        for pid, told in pids.items():
            line = in_columns(line, str(pid), str(told))
        lines.append(re.sub(r"^[0-9a-f]{6}(?=  )|(?<=lease )[0-9a-f]{6}\b", "c2d3e4", line))
    return "\n".join(lines) + "\n"


@pytest.fixture
def busy(make_machine):
    """Four A100: one leased, one with an outsider, one free, one with a hidden holder; and the pids of both jobs."""
    machine = make_machine("1xA100")
    (machine.directory / "bin").mkdir()
    (machine.directory / "bin/python").symlink_to(sys.executable)
    machine.env["PATH"] += f":{machine.directory}/bin"
    for name in ("train.py", "eval.py"):
        (machine.directory / name).write_text("import time\nprint('started', flush=True)\ntime.sleep(1000)\n")
    outsider = machine.start("python", "eval.py", cwd=machine.directory)
    holder = machine.start_berth("run", "--", "python", "train.py", cwd=machine.directory)
    assert outsider.stdout.readline() == holder.stdout.readline() == "started\n"
    children = pathlib.Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
    # The probe may still be on its way out.
    eventually(lambda: len(children.read_text().split()) == 1)
    job = children.read_text().strip()
    machine.change(MACHINE.format(outsider=outsider.pid, job=job))
    return machine, {holder.pid: 12077, int(job): 12080, outsider.pid: 13077}


def test_the_readme_shows_what_the_program_prints(busy):
    machine, _ = busy
    shown = re.findall(r"^```console\n\$ (berth [^\n]*)\n(.+?)^```", README, re.MULTILINE | re.DOTALL)
    assert shown
    for command, text in shown:
        answer = machine.berth(*command.split()[1:])
        assert blurred(answer.out + answer.err) == blurred(text)


def first_lines() -> tuple[list[str], str]:
    """The commands of the first block, and what follows them."""
    (block,) = re.findall(r"^```console\n(\$ python3 .*?)^```", README, re.MULTILINE | re.DOTALL)
    return re.findall(r"^\$ (.*)$", block, re.MULTILINE), block


def test_the_first_lines_print_on_a_terminal_what_the_readme_shows(make_machine):
    """But those that install, which tests/package/readme_install_test.py runs."""
    install, activate, simulate, *commands = first_lines()[0]
    assert install.split(" #")[0].rstrip() in README.split("```sh\nsudo apt install")[1]
    assert (activate, simulate.split(" #")[0].rstrip()) == (
        ". ~/gpu/bin/activate",
        "berth-sim 8xH100 -- bash",
    )
    assert [command.split()[1] for command in commands] == ["run", "submit", "log", "why"]
    machine = make_machine("8xH100")
    machine.env["PATH"] += f":{machine.build}"
    machine.program = "/bin/bash"
    # A job begins in its own time.
    begun = "until berth log 1 2>/dev/null | grep -q GPU; do sleep 0.1; done"
    script = "\n".join(f"printf '%s\\n' {shlex.quote('$ ' + each)}\n{each}" for each in commands)
    script = script.replace("\nberth log", f"\n{begun}\nberth log")
    status, shown = on_terminal(machine, "-c", script, columns=120)
    assert status == 0
    block = first_lines()[1]
    assert blurred(plain(shown)) == blurred(block[block.index("$ berth run") :])


def test_the_picture_shows_what_the_program_prints(busy):
    """`./dev pictures` draws it anew."""
    machine, pids = busy
    status, shown = on_terminal(machine, "list", columns=80)
    assert status == 0
    if os.environ.get("BERTH_WRITE_PICTURES"):
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(
            picture("$ berth list\n" + made_up(shown, pids), "What berth list shows in a terminal")
        )
    assert blurred(text_of(PICTURE.read_text())) == blurred(
        "$ berth list\n" + re.sub(r"\x1b\[[0-9;]*m", "", shown)
    )


def test_the_picture_of_top_shows_what_the_program_paints(busy, make_screen):  # noqa: F811
    """`./dev pictures` draws it anew."""
    machine, pids = busy
    screen = make_screen(machine, machine.program, "top", columns=116, lines=33)
    shown = screen.shows("PROCESSES  2")
    if os.environ.get("BERTH_WRITE_PICTURES"):
        # For graphs with something in them.
        _, job, outsider = pids
        busy_text = MACHINE.format(outsider=outsider, job=job)
        for load in range(90):
            machine.change(busy_text.replace("97", str(55 + 40 * (load // 9 % 2) + load % 5)))
            time.sleep(1)
        machine.change(busy_text)
        screen.shows("97%")
        lines = re.sub(r"\d\d:\d\d:\d\d", "14:02:05", screen.coloured()).replace(socket.gethostname(), "gpu1")
        lines = lines.replace(re.search(r"lease ([0-9a-f]{6})", lines)[1], "c2d3e4")
        # The hours around that time.
        hours = iter(["08:02", "11:02", "14:02", "17:02", "20:02"])
        lines = re.sub(r"(?<![\d:])\d\d:\d\d(?![\d:])", lambda _: next(hours), lines)
        PICTURE_OF_TOP.write_text(picture(made_up(lines, pids), "What berth top shows on a terminal"))
    there = text_of(PICTURE_OF_TOP.read_text())
    # Where the columns stand differs with the users and pids; what they are does not.
    for title in re.findall(r"^▾ .*$", shown, re.M):
        assert title in there
    assert [line.split() for line in there.splitlines() if line.startswith(("GPU", "LEASE"))] == [
        line.split() for line in shown.splitlines() if line.startswith(("GPU", "LEASE"))
    ]


def written(text: str) -> list[str]:
    """The lines that stay, and those that are written over, as a terminal shows them one after the other."""
    return [line for line in re.split(r"\n|\r(?:\x1b\[K)?", text) if line]


def two_people(machine, on_terminals) -> list[Step]:
    """ada has the only GPU, bob waits for it, ada's job is killed, and bob's runs."""

    def told(text: str) -> str:
        text = re.sub(rf"\b{getpass.getuser()}\b", "ada", text)
        return re.sub(r"\b\d+ (?:ms|s|min)\b", "2 h", text)

    def lease_called(text: str, name: str) -> str:
        return re.sub(r"(?<=lease )[0-9a-f]{6}", name, text)

    ada = on_terminals(machine, "run", "--", "python", "train.py", cwd=machine.directory)
    begun = written(ada.shows("^epoch 1$"))
    bob = on_terminals(machine, "run", "--", "python", "eval.py", cwd=machine.directory)
    leased = r"first in line; [^\r\n]* leased \w+ \d+ (?:ms|s|min)"
    waits = [line for line in written(bob.shows(leased)) if "in line; " not in line]
    status = re.search(leased, bob.text)[0]
    os.kill(command_of(ada.process), signal.SIGKILL)
    ended = written(ada.shows("^berth: ran .*$"))[len(begun) :]
    starts = written(bob.shows("^epoch 1$"))
    starts = starts[next(i for i, line in enumerate(starts) if line.startswith("berth: GPU")) :]
    return [
        Step(0, 0.5, "$ berth run -- python train.py"),
        Step(0, 1.5, lease_called("\n".join(begun), "c2d3e4")),
        Step(2, 3.5, "$ berth run -- python eval.py"),
        Step(2, 4.5, told("\n".join(waits))),
        Step(2, 5.0, told(status), until_s=10.0),
        Step(1, 8.0, "$ pkill -9 -f train.py"),
        Step(0, 9.0, told("\n".join(ended)) + "\nKilled"),
        Step(2, 10.1, lease_called("\n".join(starts), "f5a6b7")),
    ]


@pytest.fixture
def on_terminals():
    started = []

    def start(*words, **more) -> OnTerminal:
        started.append(OnTerminal(*words, **more))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_the_moving_picture_shows_what_the_program_prints(make_machine, on_terminals):
    """`./dev pictures` draws it anew."""
    machine = make_machine("1xA100")
    (machine.directory / "bin").mkdir()
    (machine.directory / "bin/python").symlink_to(sys.executable)
    machine.env["PATH"] += f":{machine.directory}/bin"
    for name in ("train.py", "eval.py"):
        (machine.directory / name).write_text("import time\nprint('epoch 1', flush=True)\ntime.sleep(1000)\n")
    names = ["ada on gpu1", "ada, on another terminal", "bob on gpu1"]
    drawn = moving_picture(
        names,
        two_people(machine, on_terminals),
        80,
        "Two people, one GPU: who waits has it when the job ends",
    )
    if os.environ.get("BERTH_WRITE_PICTURES"):
        MOVING_PICTURE.write_text(drawn)
    kept = MOVING_PICTURE.read_text()
    assert blurred(text_of(kept)) == blurred(text_of(drawn))
    assert len(kept.encode()) <= 60_000
    assert "prefers-reduced-motion" in kept and "prefers-color-scheme: dark" in kept


def test_the_first_screen_fits_a_terminal():
    """What the program prints has the lines that it has."""
    first = README.split("## Install")[0]
    assert len(first.splitlines()) > 20
    commands, block = first_lines()
    prose = first.replace(block, "\n".join(f"$ {command}" for command in commands))
    assert [line for line in prose.splitlines() if len(line) > 80] == []
