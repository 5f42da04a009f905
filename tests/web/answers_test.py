"""Is one free, and when is the next; who leaves one idle; where am I; what waits: in twelve states of a machine each
answer stands in words where a person looks first. That is above the fold of the page in three widths, and in the
first 24 lines of the terminal."""

import contextlib
import dataclasses
import getpass
import re
import subprocess
from collections.abc import Callable

import pytest
from agent import Agent
from jobs import command_of, holder, waiter
from playwright.sync_api import expect

pytestmark = pytest.mark.release_only

TIME = r"(\d+ \w+ )?\d\d:\d\d"
CARD = '[[device]]\nmodel = "H100"\n'
NO_LIMIT = r"Next: not known, since no lease has a time limit\."
NOBODY_IDLE, NOBODY_WAITS = r"No leased GPU is idle\.", r"Nobody waits\."
NONE = r"You have no GPU, and do not wait for one\."
USER = re.escape(getpass.getuser())
SIZES = [(1280, 800), (768, 1024), (390, 844)]


def nothing(_machine, _stack) -> None:
    pass


def held(*each: tuple) -> Callable:
    """A lease for each of these options."""

    def make(machine, stack) -> None:
        for options in each:
            stack.callback(holder(machine, *options).ends)

    return make


def held_and_waiting(held_with: tuple, *waiting: tuple) -> Callable:
    def make(machine, stack) -> None:
        first = holder(machine, *held_with)
        rest = [waiter(machine, *options) for options in waiting]

        def end() -> None:
            for job in (first, *rest):
                job.may_end()
            for job in (first, *rest):
                job.ends()

        stack.callback(end)

    return make


def busy(machine, stack) -> None:
    job = holder(machine, "-n", "1")
    stack.callback(job.ends)
    machine.change(
        f"{CARD}utilization = 90\n[[device.process]]\npid = {command_of(job)}\nused_mib = 900\n{CARD}"
    )


def outsider(machine, stack) -> None:
    process = subprocess.Popen(["sleep", "1000"])
    stack.callback(process.wait)
    stack.callback(process.kill)
    machine.change(f"{CARD}[[device.process]]\npid = {process.pid}\nused_mib = 900\n{CARD}")


def lost(cards: str) -> Callable:
    return lambda machine, _stack: machine.change(cards)


@dataclasses.dataclass
class State:
    make: Callable
    free: str
    next: str
    own: str
    idle: str
    waits: str


IDLE = rf"Leased and idle: GPU 0 \({USER}"
STATES = {
    "all are free": State(nothing, "2 of 2", r"Nobody has one\.", NONE, NOBODY_IDLE, NOBODY_WAITS),
    "one is leased with a limit": State(
        held(("--time", "2h")),
        "1 of 2",
        f"Next: GPU 0, about {TIME}",
        rf"You have GPU 0 until {TIME}\.",
        IDLE,
        NOBODY_WAITS,
    ),
    "one is leased without": State(held(()), "1 of 2", NO_LIMIT, r"You have GPU 0\.", IDLE, NOBODY_WAITS),
    "one is leased and busy": State(busy, "1 of 2", NO_LIMIT, r"You have GPU 0\.", NOBODY_IDLE, NOBODY_WAITS),
    "all are leased, and one ends first": State(
        held(("--time", "5h"), ("--time", "2h")),
        "0 of 2",
        f"Next: GPU 1, about {TIME}",
        rf"You have GPU 0 until {TIME}, GPU 1 until {TIME}\.",
        rf"{IDLE}.*GPU 1 \(",
        NOBODY_WAITS,
    ),
    "all are leased, and nobody says until when": State(
        held(("-n", "2")), "0 of 2", NO_LIMIT, r"You have GPU 0, ?1\.", IDLE, NOBODY_WAITS
    ),
    "one waits, and it is known until when": State(
        held_and_waiting(("-n", "2", "--time", "2h"), ("--time", "1h")),
        "0 of 2",
        rf"Next: GPU 0, about {TIME}; requests that wait come first\.",
        rf"; you are first, about {TIME}\.",
        IDLE,
        rf"1 waits: \w+ for 1 GPU about {TIME}\.",
    ),
    "two wait, and nobody knows until when": State(
        held_and_waiting(("-n", "2"), ("-n", "2"), ("-n", "1")),
        "0 of 2",
        NO_LIMIT,
        r"; you are first, at a time that nobody knows yet, second, at a time that nobody knows yet\.",
        IDLE,
        r"2 wait: \w+ for 2 GPUs \(no time known\), \w+ for 1 GPU \(no time known\)\.",
    ),
    "one is kept for a large request": State(
        held_and_waiting(("--time", "2h"), ("-n", "2")),
        "0 of 2",
        rf"Next: GPU 0, about {TIME}; requests that wait come first\.",
        rf"; you are first, about {TIME}\.",
        IDLE,
        rf"1 waits: \w+ for 2 GPUs about {TIME}\.",
    ),
    "a part of one is leased": State(
        held(("--memory", "10G", "--time", "2h")),
        "1 of 2",
        f"Next: GPU 0, about {TIME}",
        rf"You have GPU 0 until {TIME}\.",
        IDLE,
        NOBODY_WAITS,
    ),
    "somebody computes without a lease": State(
        outsider, "1 of 2", r"Nobody has one\.", NONE, NOBODY_IDLE, NOBODY_WAITS
    ),
    "one is lost": State(
        lost(f"{CARD}lost = true\n{CARD}"), "1 of 2", r"Nobody has one\.", NONE, NOBODY_IDLE, NOBODY_WAITS
    ),
}


def of_the_page(words: str) -> str:
    """The page does not know who looks: it calls them by the name that they have chosen."""
    return (
        words.replace("You have", f"{USER} has")
        .replace("do not wait", "does not wait")
        .replace("you are", f"{USER} is")
    )


@pytest.mark.parametrize("name", STATES)
def test_the_first_questions_are_answered_where_one_looks_first(in_order, open_page, name):
    state = STATES[name]
    machine = in_order("2xH100")
    with contextlib.ExitStack() as stack:
        state.make(machine, stack)

        answer = machine.berth("timeline", env={"COLUMNS": "80"})
        assert (answer.status, answer.err) == (0, "")
        first = answer.out.splitlines()[:24]
        assert max(map(len, first)) <= 80
        said = " ".join(" ".join(first).split())
        free = state.free.replace("0 of", "None of")
        for words in (rf"^{free} GPUs (is|are) free", state.next, state.own, state.idle, state.waits):
            assert re.search(words, said), said

        agent = Agent(machine)
        page = open_page(f"http://127.0.0.1:{agent.port}/")
        page.evaluate("name => localStorage.setItem('berth-me', name)", getpass.getuser())
        page.reload()
        expect(page.locator(".figure")).to_have_text(f"{state.free} free")
        answers = page.locator(".answers")
        for words in (state.next, state.own, state.idle, state.waits):
            expect(answers).to_contain_text(re.compile(of_the_page(words)))
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            box = answers.bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= height
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()
        agent.ends()
