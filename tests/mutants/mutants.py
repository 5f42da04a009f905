#!/usr/bin/env python3
"""Breaks one guarantee after the other in a copy of the sources and asks whether the tests notice.

mutants.tsv has them, one a line. The copy and its build stay in build/mutants, so that only what a mutant touches is
built again. The program is the mutant; the machine around it is that of build/release.

--find: after sources were moved, writes into the table where each quote and each test stands now, and names those that
it cannot find."""

import argparse
import dataclasses
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).with_name("mutants.tsv")
RELEASE = ROOT / "build" / "release"
SCRATCH = ROOT / "build" / "mutants"
PROGRAMS_OF_OURS = ["berth", "berth-serve"]
TREE, PROGRAMS = SCRATCH / "tree", SCRATCH / "programs"
# Where the sources have it too, so that ccache knows most of it already.
BUILD = TREE / "build" / "release"
# A mutant may make a test wait for ever. Unbroken, each of these answers within seconds.
PATIENCE_S = 60
SOURCES = {".cpp", ".h", ".py"}


# What stands in the table for a line's end, and for "the statement that begins so goes".
NEW_LINE, DELETE = "⏎", "delete"


def place(quote: str, text: str) -> re.Match | None:
    """Where the quote stands, if it stands once. A formatter may break its lines elsewhere."""
    words = [re.escape(word) for word in re.split(rf"[\s{NEW_LINE}]+", quote) if word]
    found = list(re.finditer(r"\s+".join(words), text))
    return found[0] if len(found) == 1 else None


def end_of_statement(text: str, begin: int) -> int:
    """Behind the semicolon, or the block, that ends what begins there."""
    depth = 0
    for token in re.finditer(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//[^\n]*|[()\[\]{};]', text[begin:]):
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
        if depth == 0 and token[0] in ("}", ";"):
            return begin + token.end()
    raise ValueError("no statement begins there")


@dataclasses.dataclass
class Mutant:
    guarantee: str
    name: str
    test: str
    file: str
    old: str
    new: str
    breaks: str

    def text_of(self, tree: pathlib.Path) -> str:
        """The broken file. Raises ValueError where the mutant does not fit any more."""
        text = (tree / self.file).read_text()
        found = place(self.old, text)
        if not found:
            raise ValueError(f"what it replaces does not stand once in {self.file}")
        if self.old == self.new:
            raise ValueError("it changes nothing")
        if self.new == DELETE:
            return text[: found.start()] + text[end_of_statement(text, found.start()) :]
        return text[: found.start()] + self.new.replace(NEW_LINE, "\n") + text[found.end() :]


def read_table() -> list[Mutant]:
    return [Mutant(*line.split("\t")) for line in TABLE.read_text().splitlines()[1:]]


def write_table(mutants: list[Mutant]) -> None:
    names = [field.name for field in dataclasses.fields(Mutant)]
    rows = [names, *([getattr(mutant, name) for name in names] for mutant in mutants)]
    TABLE.write_text("".join("\t".join(row) + "\n" for row in rows))


def the_one(paths: list[pathlib.Path], before: pathlib.Path) -> pathlib.Path | None:
    """Of the files where it could be, the only one, or the only one of its name."""
    same = [path for path in paths if path.name == before.name]
    return paths[0] if len(paths) == 1 else same[0] if len(same) == 1 else None


def find_quote(mutant: Mutant, texts: dict[pathlib.Path, str]) -> str:
    """Writes into the mutant where its quote stands. Gives why it cannot, or ""."""
    before = pathlib.Path(mutant.file)
    if before in texts and place(mutant.old, texts[before]):
        return ""
    there = [path for path, text in texts.items() if not is_test(path) and place(mutant.old, text)]
    if not (found := the_one(there, before)):
        return f"what it replaces stands once in {len(there)} files, and not in {before}"
    mutant.file = str(found)
    return ""


def find_test(mutant: Mutant, tests: dict[pathlib.Path, set[str]]) -> str:
    """Writes into the mutant in which room its unit test is. Gives why it cannot, or ""."""
    kind, room, *patterns = shlex.split(mutant.test)
    if kind != "unit":
        return ""
    rooms = [
        {
            path.parent.parent.name
            for path, names in tests.items()
            if any(fits(name, pattern) for name in names)
        }
        for pattern in patterns
    ]
    there = set.intersection(*rooms)
    if room in there:
        return ""
    if len(there) != 1:
        return f"its test is in {len(there)} rooms, and not in {room}"
    mutant.test = mutant.test.replace(f"unit {room} ", f"unit {there.pop()} ", 1)
    return ""


def find_again() -> int:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [path for path in map(pathlib.Path, listed.splitlines()) if path.suffix in SOURCES]
    texts = {path: (ROOT / path).read_text() for path in paths}
    tests = {path: cases(text) for path, text in texts.items() if is_test(path)}
    mutants, lost = read_table(), 0
    for mutant in mutants:
        for wrong in filter(None, (find_quote(mutant, texts), find_test(mutant, tests))):
            print(f"  {mutant.name}: {wrong}")
            lost += 1
    write_table(mutants)
    print(f"{len(mutants)} mutants, {lost} places to be found by hand")
    return 1 if lost else 0


def is_test(path: pathlib.Path) -> bool:
    return "test" in path.parts or "tests" in path.parts


def cases(text: str) -> set[str]:
    """Names of the tests in a file, C++ or Python."""
    return set(re.findall(r'TEST_CASE\(\s*"([^"]+)"', text)) | set(re.findall(r"^def (test_\w+)", text, re.M))


def fits(name: str, pattern: str) -> bool:
    """As doctest has it."""
    return name.startswith(pattern.rstrip("*"))


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
    parser.add_argument("--find", action="store_true", help="find them again after sources were moved")
    parser.add_argument("--draw", type=int, metavar="N", help="only N of them, by lot")
    options = parser.parse_args()
    if options.find:
        return find_again()
    names, mutants = options.names, read_table()
    if options.draw:
        names = [mutant.name for mutant in random.sample(mutants, options.draw)]
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
