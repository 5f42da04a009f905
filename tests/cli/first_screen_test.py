"""What a command shows first fits a terminal of 80 columns and 24 lines."""

import pytest
from jobs import holder, waiter
from program_test import COMMANDS
from terminal import on_terminal, plain

COLUMNS, LINES = 80, 24
# Of a machine with eight GPUs, all of them taken, where somebody waits.
LOOKS = [
    *(
        [],
        ["list"],
        ["queue"],
        ["timeline"],
        ["jobs"],
        ["pick"],
        ["why"],
        ["verify"],
        ["receipt"],
        ["doctor"],
    ),
    *(["version"], ["help"]),
]


def lines_of(machine, *words, columns=COLUMNS) -> list[str]:
    _, shown = on_terminal(machine, *words, columns=columns)
    lines = plain(shown).rstrip("\n").split("\n")
    # A path stands alone where it is longer than a line.
    assert [line for line in lines if len(line) > columns and " " in line.strip()] == []
    return lines


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_what_it_does_and_how_it_is_called(machine, command):
    lines = lines_of(machine, command, "--help")
    assert lines[0].startswith(f"berth {command}: ") and lines[2].startswith(f"usage: berth {command}")
    # The first paragraph is there to its end.
    assert len(lines) < LINES or (lines[3] == "" and "" in lines[5:LINES])


@pytest.fixture
def full(in_order):
    machine = in_order("8xH100")
    for _ in range(4):
        holder(machine, "-n", "2", "--time", "2h", "--note", "a note that is longer than most of them are")
    waiter(machine, "-n", "2", "--time", "1h")
    return machine


def test_what_a_look_shows_fits(full):
    long = {" ".join(words): count for words in LOOKS if (count := len(lines_of(full, *words))) > LINES - 1}
    assert long == {}


@pytest.mark.parametrize("columns", [40, 50, 60, 79])
def test_half_a_terminal_shows_each_gpu_and_its_state_in_a_line(full, columns):
    lines = lines_of(full, "list", columns=columns)
    (head,) = [at for at, line in enumerate(lines) if line.startswith("GPU ")]
    rows = lines[head + 1 :]
    assert [row.split()[0] for row in rows] == [str(gpu) for gpu in range(8)]
    assert all(" leased " in row for row in rows)


@pytest.mark.parametrize("columns", [40, 50, 60, 79])
def test_half_a_terminal_shows_the_hours_and_what_their_shapes_mean(full, columns):
    text = " ".join(lines_of(full, "timeline", columns=columns))
    assert "load" in text and "not usable" in text
