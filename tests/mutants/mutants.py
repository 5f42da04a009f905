#!/usr/bin/env python3
"""Breaks one guarantee after the other in a copy of the sources and asks whether the tests notice.

mutants.toml has them. The copy and its build stay in build/mutants, so that only what a mutant touches is built
again. The program is the mutant; the machine around it is that of build/release."""

import argparse
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).with_name("mutants.toml")
RELEASE = ROOT / "build" / "release"
SCRATCH = ROOT / "build" / "mutants"
PROGRAMS_OF_OURS = ["berth", "berth-serve"]
TREE, PROGRAMS = SCRATCH / "tree", SCRATCH / "programs"
# Where the sources have it too, so that ccache knows most of it already.
BUILD = TREE / "build" / "release"
# A mutant may make a test wait for ever. Unbroken, each of these answers within seconds.
PATIENCE_S = 60


@dataclasses.dataclass
class Mutant:
    name: str
    guarantee: int
    breaks: str
    test: str
    file: str
    old: str
    new: str

    def text_of(self, tree: pathlib.Path) -> str:
        """The broken file. Raises ValueError where the mutant does not fit any more."""
        text = (tree / self.file).read_text()
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"what it replaces stands {count} times in {self.file}")
        if self.old == self.new:
            raise ValueError("it changes nothing")
        return text.replace(self.old, self.new)


def read_table() -> list[Mutant]:
    return [Mutant(**row) for row in tomllib.loads(TABLE.read_text())["mutant"]]


def targets(test: str) -> list[str]:
    """What has to be built for it."""
    kind, place, *_ = shlex.split(test)
    return [f"berth_{place}_test"] if kind == "unit" else PROGRAMS_OF_OURS


def command(test: str) -> list:
    kind, *words = shlex.split(test)
    if kind == "unit":
        return [BUILD / targets(test)[0], f"--test-case={','.join(words[1:])}"]
    place, *options = words
    return [sys.executable, "-m", "pytest", "-q", "-x", f"tests/{place}", *options]


def copy_tree() -> None:
    """Only what differs is written, so that nothing else is built again."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    wanted = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for name in wanted:
        copy, text = TREE / name, (ROOT / name).read_bytes()
        if not copy.exists() or copy.read_bytes() != text:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(text)
            shutil.copymode(ROOT / name, copy)
    # The tools of the page, which the agent has in it.
    for tools in (".node", "web/node_modules"):
        if not (TREE / tools).is_symlink():
            (TREE / tools).symlink_to(ROOT / tools)
    for path in TREE.rglob("*"):
        name = str(path.relative_to(TREE))
        if (
            path.is_file()
            and name not in wanted
            and "__pycache__" not in path.parts
            and not name.startswith("build/")
        ):
            path.unlink()


def run(words: list) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(map(str, words))}:\n{(done.stdout + done.stderr)[-4000:]}")


def configure(directory: pathlib.Path, *options: str) -> None:
    if shutil.which("ccache"):
        options += ("-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    run(
        [
            "cmake",
            "-S",
            TREE,
            "-B",
            directory,
            "-G",
            "Ninja",
            "-DBERTH_SERVE=ON",
            "-DCMAKE_CXX_FLAGS=-Wno-maybe-uninitialized -Wno-mismatched-new-delete",
            *options,
        ]
    )


def prepare(mutants: list[Mutant]) -> None:
    copy_tree()
    configure(BUILD, "-DCMAKE_BUILD_TYPE=Release")
    PROGRAMS.mkdir(exist_ok=True)
    for path in [*PROGRAMS.iterdir()]:
        path.unlink()
    for path in RELEASE.iterdir():
        (PROGRAMS / path.name).symlink_to(BUILD / path.name if path.name in PROGRAMS_OF_OURS else path)
    build(sorted({each for mutant in mutants for each in targets(mutant.test)}))


def build(targets: list, directory: pathlib.Path = BUILD) -> None:
    run(["ninja", "-C", directory, *targets])


def outcome(test: str) -> str:
    """ "passed", "failed" or "hangs"."""
    process = subprocess.Popen(
        [str(word) for word in command(test)],
        cwd=TREE,
        env=os.environ | {"BERTH_BUILD": str(PROGRAMS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # pytest then ends what it has started
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        return "hangs"
    # doctest counts none, pytest ends with 5, and one that only skips proves nothing.
    if re.search(r"test cases: +0 ", output) or not re.search(r"\d+ (passed|failed)", output):
        raise RuntimeError(f"no test runs: {test}\n{output[-500:]}")
    return "passed" if process.returncode == 0 else "failed"


def examine(mutant: Mutant) -> str:
    """What is wrong with the proof, or ""."""
    path = TREE / mutant.file
    before = path.read_bytes()
    try:
        path.write_text(mutant.text_of(TREE))
        build(targets(mutant.test))
        return "SURVIVED" if outcome(mutant.test) == "passed" else ""
    finally:
        path.write_bytes(before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="all when there is none")
    names = parser.parse_args().names
    mutants = read_table()
    if unknown := set(names) - {mutant.name for mutant in mutants}:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    mutants = [mutant for mutant in mutants if not names or mutant.name in names]
    prepare(mutants)
    unbroken = {test: outcome(test) for test in dict.fromkeys(mutant.test for mutant in mutants)}
    failed = 0
    for mutant in mutants:
        start = time.monotonic()
        try:
            wrong = (
                "" if unbroken[mutant.test] == "passed" else f"its test {unbroken[mutant.test]} without it"
            )
            wrong = wrong or examine(mutant)
        except (RuntimeError, ValueError) as error:
            wrong = str(error)
        failed += bool(wrong)
        took = time.monotonic() - start
        print(f"  {mutant.name:<28} {wrong or 'caught'} ({took:.0f} s): {mutant.breaks}", flush=True)
    print(f"{len(mutants) - failed} caught, {failed} not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
