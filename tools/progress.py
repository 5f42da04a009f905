"""Says every ten seconds how far a build by Ninja has come, and about how long the rest of it takes.

    progress.py FOLDER LOG [TARGET…] -- COMMAND…

runs a command that builds in FOLDER. What it prints goes into LOG; what is said here goes to standard error. A build that
takes less than ten seconds says nothing."""

import json
import os
import pathlib
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

EVERY_S = 10
STATUS = "[%f/%t] "
STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")
# What a source of C++ costs beside its own text: the headers. A byte of text takes about as long as
# any other. On a quiet machine that held for all rooms, which are one source each, within a factor
# of three. C costs next to nothing.
BYTES_OF_HEADERS = 20_000
# Before that, too little is known of the machine: the first steps are few, and one waits for the
# other.
FIRST_ESTIMATE_S = 30
FIRST_ESTIMATE_PART = 0.1


def sources_of(file: pathlib.Path) -> list[pathlib.Path]:
    """Those that CMake has joined in this one, or itself."""
    if "/Unity/" not in file.as_posix():
        return [file]
    return [pathlib.Path(name) for name in re.findall(r'#include "(/[^"]+)"', file.read_text())]


def costs_of_objects(folder: pathlib.Path) -> dict[str, int]:
    """By the object's name in the words of Ninja."""
    costs = {}
    for each in json.loads((folder / "compile_commands.json").read_text()):
        words = shlex.split(each["command"])
        built = pathlib.Path(each["directory"], words[words.index("-o") + 1])
        if each["file"].endswith(".c"):
            continue
        files = [file for file in sources_of(pathlib.Path(each["file"])) if file.exists()]
        costs[os.path.relpath(built, folder)] = BYTES_OF_HEADERS + sum(file.stat().st_size for file in files)
    return costs


def ninja_of(folder: pathlib.Path) -> str:
    return re.search(r"^CMAKE_MAKE_PROGRAM:\w+=(.*)$", (folder / "CMakeCache.txt").read_text(), re.M)[1]


def planned(folder: pathlib.Path, targets: list[str]) -> dict[str, int]:
    """What Ninja would do, and what each step costs. It reads copies: of the file that it builds by, as it does nothing
    else where that one may have to be made anew, and of its notes, as it mends them if they end in a line half written."""
    with tempfile.TemporaryDirectory() as copies:
        for name in (".ninja_log", ".ninja_deps"):
            if (folder / name).exists():
                shutil.copy(folder / name, copies)
        rules = pathlib.Path(copies, "build.ninja")
        rules.write_text(f"builddir = {copies}\n" + (folder / "build.ninja").read_text())
        said = subprocess.run(
            [ninja_of(folder), "-C", folder, "-f", rules, "-n", *targets],
            env=os.environ | {"NINJA_STATUS": STATUS},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    costs = costs_of_objects(folder)
    steps = [found[3] for found in map(STEP.fullmatch, said.splitlines()) if found]
    return {step: costs.get(step.rpartition(" ")[2], 0) for step in steps}


class Progress:
    """Of one build. Each time is given, in seconds of any clock."""

    def __init__(self, plan: dict[str, int]):
        self.plan = plan
        self.done: set[str] = set()
        self.cost_done = 0
        # What was done by when. The first is the first step's.
        self.history: list[tuple[float, int]] = []
        # In Ninja's words, which begin anew with each of its calls.
        self.counted = ""

    def reads(self, step: re.Match, now: float) -> None:
        self.counted = f"{step[1]} of {step[2]}"
        if step[3] not in self.plan or step[3] in self.done:
            return
        self.done.add(step[3])
        self.cost_done += self.plan[step[3]]
        self.history.append((now, self.cost_done))

    def seconds_left(self, now: float) -> float | None:
        """By the later half of what was done so far: the first objects may have come out of a cache."""
        total = sum(self.plan.values())
        if not self.history:
            return None
        if self.cost_done < FIRST_ESTIMATE_PART * total or now - self.history[0][0] < FIRST_ESTIMATE_S:
            return None
        (begin, _), (last, _) = self.history[0], self.history[-1]
        # A step that is not done yet is begun: half of the time since the last one counts as work.
        at = (last + now) / 2
        half = at - max(FIRST_ESTIMATE_S, (at - begin) / 2)
        since, before = max((each for each in self.history if each[0] <= half), default=self.history[0])
        if self.cost_done == before:
            return None
        return (total - self.cost_done) * (at - since) / (self.cost_done - before) - (now - at)

    def told(self, now: float) -> str:
        steps = f"{len(self.done)} of {len(self.plan)}" if self.plan else self.counted
        left = self.seconds_left(now)
        if left is None:
            return steps
        return f"{steps}, " + (f"about {round(left / 60)} min" if left >= 60 else "less than a minute")


def follow(output: int, write, make_plan, say, log: str) -> None:
    """Reads what a build prints, and hands it on, until its end. The plan is asked for at the first step."""
    progress, rest, said = None, b"", False
    next_time = time.monotonic() + EVERY_S
    while True:
        ready, _, _ = select.select([output], [], [], max(0, next_time - time.monotonic()))
        if ready:
            bytes_read = os.read(output, 65536)
            if not bytes_read:
                return
            write(bytes_read)
            *lines, rest = (rest + bytes_read).split(b"\n")
            for line in lines:
                if step := STEP.fullmatch(line.decode(errors="replace")):
                    progress = progress or Progress(make_plan())
                    progress.reads(step, time.monotonic())
        if time.monotonic() >= next_time:
            next_time += EVERY_S
            if log and not said:
                say(f"the log is {log}")
            said = True
            say(progress.told(time.monotonic()) if progress else "getting ready")


def plan_or_none(folder: pathlib.Path, targets: list[str]) -> dict[str, int]:
    """A build is not to fail for what is only told of it."""
    try:
        return planned(folder, targets)
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        return {}


def main() -> int:
    options, command = sys.argv[1:], []
    if "--" in options:
        at = options.index("--")
        options, command = options[:at], options[at + 1 :]
    folder, log, *targets = options
    plan = plan_or_none(pathlib.Path(folder).resolve(), targets)
    with open(log, "ab", buffering=0) as file:

        def say(text: str) -> None:
            # A step of the tests writes its errors there.
            if not os.path.samestat(os.fstat(2), os.fstat(file.fileno())):
                print(f"  {text}", file=sys.stderr, flush=True)

        build = subprocess.Popen(
            command,
            env=os.environ | {"NINJA_STATUS": STATUS},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        follow(build.stdout.fileno(), file.write, lambda: plan, say, log)
        return build.wait()


if __name__ == "__main__":
    sys.exit(main())
