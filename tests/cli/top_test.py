"""berth top on a real terminal: tmux."""

import os
import re
import signal

import pytest
from jobs import Job, eventually, state
from lease_jobs import leases
from screen import make_screen  # noqa: F401
from terminal_picture import CLASSES

MACHINE = """
driver = "550.163.01"
[[device]]
model = "H100"
count = 2
utilization = 93
[[device]]
model = "A100-80"
utilization = 42
[[device]]
model = "A100-80"
lost = true
[[device]]
model = "A6000"
hidden_mib = 9000
"""
HANGING = '[[device]]\nmodel = "T4"\ncount = 4\n[[fault]]\ncall = "nvmlDeviceGetMemoryInfo*"\ndevice = 2\nhang = true\n'


@pytest.fixture
def busy(make_machine):
    """Two GPUs leased for two hours, and one who waits for three and knows about when he starts."""
    machine = make_machine(MACHINE)
    holder = Job(machine, "-n", "2", "--name", "H100", "--time", "2h", "--note", "paper deadline")
    holder.starts()
    waiter = Job(machine, "-n", "3", "--devices", "0,1,2")
    waiter.waits()
    return machine, holder, waiter


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_it_fits_every_width_and_says_what_list_and_queue_say(busy, make_screen, columns):  # noqa: F811
    machine, _, _ = busy
    screen = make_screen(machine, machine.program, "top", columns=columns, lines=40)
    text = screen.shows(r"QUEUE  1")
    lines = text.split("\n")
    assert len(lines) == 40 and max(map(len, lines)) <= columns
    assert re.search(r"^▾ GPUS  5$", text, re.M) and re.search(r"^▾ LEASES  1$", text, re.M)
    assert re.search(r"leased", text) and re.search(r" lost$", text, re.M) and "93%" in text
    start = re.search(r"\d\d:\d\d", machine.berth("queue").out)[0]
    assert start in text.split("QUEUE")[1] and start in text.split("LEASES")[1].split("QUEUE")[0]
    if columns >= 80:
        lease = machine.berth("list", "-l").out.split("LEASE ")[1].splitlines()[1]
        assert lease.split()[0] in text and '"paper' in text
    # Colours of the terminal's own, on its own background: read on light and dark alike.
    used = set(re.findall(r"\d+", " ".join(re.findall(r"\x1b\[([0-9;]*)m", screen.coloured()))))
    assert used <= set(CLASSES) | {"0", "7", "39", "49"}
    assert {"31", "33"} <= used


def test_it_follows_the_window_and_the_machine(busy, make_screen):  # noqa: F811
    machine, holder, waiter = busy
    screen = make_screen(machine, machine.program, "top", "-i", "1", columns=120, lines=40)
    assert "TREND" in screen.shows("QUEUE  1")
    screen.resize(60, 12)
    text = screen.lacks("TREND")
    assert max(map(len, text.split("\n"))) <= 60
    screen.resize(100, 40)
    screen.shows("QUEUE  1")
    holder.process.kill()
    waiter.starts()
    screen.shows("nobody waits")


def test_keys_fold_filter_and_scroll(busy, make_screen):  # noqa: F811
    machine, _, _ = busy
    screen = make_screen(machine, machine.program, "top", columns=80, lines=24)
    screen.shows("▾ QUEUE")
    screen.press("2")
    screen.shows("▸ LEASES  1")
    screen.type("/a6000")
    screen.shows("GPUS  1 of 5")
    screen.press("Enter")
    screen.shows("^filter: a6000")
    screen.press("Escape")
    screen.shows("▾ GPUS  5")
    screen.resize(80, 8)
    screen.lacks("QUEUE")
    screen.press("End")
    # The hours end with the queue.
    screen.shows(r"^ +1\. ")
    screen.press("NPage", "PPage", "Home", "?")
    screen.shows("^Keys")
    screen.press("q")
    screen.lacks("^Keys")


def go_down_to(screen, wanted: str) -> None:
    """Moves the cursor until the line about what is under it says that."""
    for _ in range(60):
        if re.search(wanted, screen.at_rest(), re.M):
            return
        screen.press("Down")
    raise AssertionError(screen.text())


def test_graphs_of_all_or_of_the_gpu_under_the_cursor_fit_a_terminal(busy, make_screen):  # noqa: F811
    machine, _, _ = busy
    screen = make_screen(machine, machine.program, "top", "-i", "1", columns=80, lines=24)
    text = screen.shows(r"^Load of 5 GPUs: mean \d+ % +Memory of 5 GPUs: mean \d+ %$")
    lines = text.split("\n")
    assert len(lines) == 24 and max(map(len, lines)) <= 80
    assert re.search(r"^ +2 min ago +now +2 min ago +now$", text, re.M) and "▾ LEASES" in text
    screen.shows(r"^  0% +[▁▂▃▄▅▆▇█]")
    go_down_to(screen, "^GPU 0: ")
    text = screen.shows("^Load of GPU 0: 93 %")
    assert screen.shows(r"^ {5} *█ *")
    screen.type("t")
    screen.shows("^ +10 min ago")
    screen.type("ttt")
    screen.lacks("^Load of")
    screen.type("t")
    screen.shows("^ +2 min ago")


def test_enter_on_a_job_shows_what_it_prints_and_follows_it(machine, make_screen):  # noqa: F811
    """The job prints when it is told to, by files."""
    lines, end = machine.directory / "lines", machine.directory / "end"
    script = (
        f"echo begun; until [ -e {lines} ]; do sleep 0.1; done; seq -f 'epoch %g' 50; "
        f"until [ -e {end} ]; do sleep 0.1; done; printf '\\033[31mlast\\033[0m words\\n'"
    )
    number = machine.berth("submit", "--", "sh", "-c", script).out.strip()
    eventually(lambda: "begun" in machine.berth("log", number).out)
    screen = make_screen(machine, machine.program, "top", "-i", "1", columns=80, lines=24)
    screen.shows("▾ GPUS")
    go_down_to(screen, rf"^job {number}: ")
    screen.press("Enter")
    text = screen.shows("^begun$")
    assert re.search(rf"^job {number}: running, .* follows$", text, re.M)
    lines.touch()
    screen.shows("^epoch 50$")
    screen.press("PPage")
    text = screen.shows("stands still$")
    assert "epoch 50" not in text and "epoch 28" in text
    end.touch()
    eventually(lambda: "last" in machine.berth("log", number).out)
    screen.press("End")
    screen.shows("^last words$")
    screen.shows(rf"^job {number}: done")
    for back in ("Escape", "Enter", "q"):
        screen.press(back)
        screen.lacks("all of it: berth log")
        screen.shows(rf"^job {number}: ")
        screen.press("Enter")
        screen.shows("^last words$")


def test_a_lease_is_released_after_a_yes(busy, make_screen):  # noqa: F811
    machine, holder, _ = busy
    screen = make_screen(machine, machine.program, "top", columns=120, lines=30)
    screen.shows("QUEUE  1")
    screen.type("jjjjjjj")
    screen.shows("^lease .*paper deadline")
    screen.type("x")
    screen.shows(r"^release lease \w+ of .*\? y: yes")
    screen.type("n")
    screen.shows("nothing was done")
    assert len(leases(machine)) == 1
    screen.type("xy")
    screen.shows("ended the lease|released")
    assert holder.process.wait(timeout=30) != 0


def test_what_it_copies_goes_to_the_terminals_clipboard(busy, make_screen):  # noqa: F811
    machine, _, _ = busy
    screen = make_screen(machine, machine.program, "top", columns=120, lines=30)
    screen.shows("QUEUE  1")
    screen.tmux("set-option", "-s", "set-clipboard", "on")
    screen.type("jjjjjjjc")
    command = re.search(r"berth release \w+", screen.shows("^copied"))[0]
    assert eventually(lambda: screen.tmux("list-buffers")) and screen.tmux("show-buffer") == command


def test_keys_hold_a_waiting_job_and_ask_where_it_costs_its_place(make_machine, make_screen):  # noqa: F811
    machine = make_machine("1xH100")
    holder = Job(machine)
    holder.starts()
    number = machine.berth("submit", "--", "true").out.strip()
    eventually(lambda: machine.berth("queue", "--json").json["waiters"])
    screen = make_screen(machine, machine.program, "top", "-i", "1", columns=80, lines=24)
    screen.shows("▾ GPUS")
    go_down_to(screen, rf"^job {number}: ")
    held = lambda: machine.berth("jobs", "--json", number).json["jobs"][0]["held"]  # noqa: E731
    screen.type("o")
    screen.shows(rf"^hold job {number}, and give up its place in the queue\? y: yes, any other key: no$")
    screen.type("n")
    screen.shows("^nothing was done")
    assert not held()
    screen.type("o")
    screen.shows(r"\? y: yes")
    screen.type("y")
    eventually(held)
    screen.shows(rf"^job {number} is held until you let it go")
    # The line says it before the key lets it go.
    eventually(lambda: re.search(rf"^ *{number} .* held ", screen.text(), re.M))
    screen.type("o")
    eventually(lambda: not held())
    screen.shows(rf"^job {number} waits again")


def terminal_is_as_before(screen):
    """The shell's own screen is back, what is typed shows, and a line goes on where it should."""
    screen.lacks("▾ GPUS")
    screen.type("stty -a | grep -o ' icanon.* echo ' && echo b'ac'k\n")
    screen.shows("^back$")


def pid_of(machine):
    told = [pid for pid in machine.inhabitants() if _words(pid)[1:2] == ["top"]]
    return told[0]


def _words(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().split("\0")
    except OSError:
        return []


@pytest.mark.parametrize("key", ["q", "C-c", "C-\\"])
def test_a_key_ends_it_and_the_terminal_is_as_before(machine, make_screen, key):  # noqa: F811
    screen = make_screen(machine, machine.program, "top")
    screen.shows("▾ GPUS")
    screen.press(key)
    terminal_is_as_before(screen)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT])
def test_whatever_ends_it_the_terminal_is_as_before(machine, make_screen, number):  # noqa: F811
    screen = make_screen(machine, machine.program, "top")
    screen.shows("▾ GPUS")
    os.kill(pid_of(machine), number)
    screen.lacks("▾ GPUS")
    screen.type("echo $?\n")
    screen.shows(rf"^{128 + number}$")
    terminal_is_as_before(screen)


def test_it_stops_and_goes_on_like_any_program(machine, make_screen):  # noqa: F811
    screen = make_screen(machine, machine.program, "top")
    screen.shows("▾ GPUS")
    pid = pid_of(machine)
    screen.press("C-z")
    eventually(lambda: state(pid) == "T")
    terminal_is_as_before(screen)
    screen.type("clear; fg\n")
    screen.shows("▾ GPUS")
    screen.press("?")
    screen.shows("^Keys")


def test_while_the_driver_hangs_the_keys_live(make_machine, make_screen):  # noqa: F811
    machine = make_machine('[[device]]\nmodel = "T4"\ncount = 4\n')
    screen = make_screen(
        machine, machine.program, "top", "-i", "1", env={"BERTH_DRIVER_DEADLINE_MS": "600000"}
    )
    screen.shows("▾ GPUS  4")
    machine.change(HANGING)
    screen.shows("^no news for .*: the machine does not answer")
    screen.press("?")
    screen.shows("^Keys")
    screen.press("q", "q")
    terminal_is_as_before(screen)


def test_a_driver_that_answers_in_part_is_shown_in_part(make_machine, make_screen):  # noqa: F811
    machine = make_machine(HANGING)
    screen = make_screen(machine, machine.program, "top", "-i", "1", env={"BERTH_DRIVER_DEADLINE_MS": "300"})
    screen.shows("not responding")
    assert screen.text().count(" free") >= 2


@pytest.mark.parametrize(
    "settings, words, says",
    [
        ({"TERM": "dumb"}, "", "TERM is dumb"),
        # Where ncurses fails it loses what it has made so far, which a sanitized program tells at
        # its end.
        pytest.param(
            {"TERM": "no-such-terminal"},
            "",
            "does not know the terminal 'no-such-terminal'",
            marks=pytest.mark.release_only,
        ),
        ({}, "| cat", "needs a terminal for its input and output; `berth list`"),
        ({}, "< /dev/null", "needs a terminal for its input and output; `berth list`"),
    ],
)
def test_what_is_no_terminal_is_refused_with_the_way_out(machine, make_screen, settings, words, says):  # noqa: F811
    screen = make_screen(machine, env=settings, columns=200)
    screen.type(
        f"env TERM={settings.get('TERM', 'tmux')} {machine.program} top {words}; echo st${{PIPESTATUS[0]}}\n"
    )
    text = screen.shows("^st2$")
    assert says in text and "`berth list" in text


def test_without_utf_8_it_paints_with_what_there_is(busy, make_screen):  # noqa: F811
    machine, _, _ = busy
    screen = make_screen(machine, machine.program, "top", columns=120, lines=40, env={"LC_ALL": "C"})
    text = screen.shows("- QUEUE  1")
    assert "#####" in text and text.isascii()


def test_without_colour_where_nobody_wants_any(busy, make_screen):  # noqa: F811
    machine, _, _ = busy
    screen = make_screen(machine, machine.program, "top", env={"NO_COLOR": "1"})
    screen.shows("QUEUE  1")
    assert not re.search(r"\x1b\[[0-9;]*3[1-6]", screen.coloured())
