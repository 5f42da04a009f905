"""docs/one-request.md names the files that a request really goes through: it is run under a profiler that tells each function."""

import collections
import pathlib
import re
import subprocess

import pytest
from jobs import eventually
from rooms_test import in_rooms
from simulated_machine import DEADLINE_S, Machine

pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "docs/one-request.md").read_text()
# Of these rooms the page names each file.
WHOLE_ROOMS = set(re.findall(r"`(\w+)/`", PAGE.partition("under a profiler")[2].partition("no other")[0]))
# What begins at the start of a line: a namespace, a class with its members, or a function.
BEGINS = re.compile(
    r"^namespace ([\w:]+) \{$|^(?:struct|class) (\w+)[^;\n]*\{"
    r"|^(?!namespace|using|return|static_assert|#|//|\})[\w:][^=;{}()\n\"]*?[\s&*]((?:\w+::)*~?\w+)\(|^((?:\w+::)*(\w+)::~?\5)\(",
    re.M,
)


def defined() -> dict:
    """{"berth::store::DirectoryStore::join": the files that define it}."""
    found = collections.defaultdict(set)
    for path in (ROOT / "src").rglob("*.cpp"):
        if "test" in path.parts:
            continue
        space = ""
        for begins in BEGINS.finditer(path.read_text()):
            space = begins[1] or space
            if name := begins[2] or begins[3] or begins[4]:
                found[f"{space}::{name}"].add(in_rooms(path))
    return found


def plain(symbol: str) -> str:
    """The name of a function without what it takes, gives and is made for."""
    name = re.sub(r"\[abi:\w+\]", "", symbol.replace("(anonymous namespace)::", ""))
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    return re.sub(r"\(.*", "", name).strip().rpartition(" ")[2]


def files_of(symbols: set, table: dict) -> list[set]:
    """For each symbol the files that may define it: several, if a name stands in several."""
    found = []
    for symbol in symbols:
        name = plain(symbol)
        while name not in table and "::" in name:
            name = name.rpartition("::")[0]
        if files := table.get(name):
            found.append(files)
    return found


def test_a_symbol_is_found_in_its_file():
    symbol = (
        "std::expected<int, berth::Error> berth::store::(anonymous namespace)::Seen::of[abi:cxx11](int) const"
    )
    assert files_of({symbol}, {"berth::store::Seen": {"store/seen.cpp"}}) == [{"store/seen.cpp"}]


def profiled(machine: Machine, name: str, *words) -> list:
    # The probe starts the program again, by /proc/self/exe, which is valgrind's here.
    machine.env["LD_PRELOAD"] = str(machine.build / "bench/real_exe.so")
    profile = ["--quiet", "--tool=callgrind", "--trace-children=yes", "--trace-children-skip=*/sh"]
    return [
        "valgrind",
        *profile,
        f"--callgrind-out-file={machine.directory}/{name}.%p",
        machine.program,
        *words,
    ]


def symbols_of(machine: Machine, name: str) -> set:
    def texts() -> list[str]:
        found = [path.read_text() for path in machine.directory.glob(f"{name}.*")]
        return found if len(found) >= 2 and all("\ntotals: " in text for text in found) else []

    # The probe ends after berth, and its file is whole after that.
    return set(re.findall(r"^c?fn=\(\d+\) (.*berth::.*)$", "".join(eventually(texts)), re.M))


@pytest.fixture
def traced(make_machine) -> list[set]:
    """The files of a request that is refused, and of one that waits, gets its GPUs and ends."""
    machine = make_machine("2xH100")
    holder = machine.start_berth(
        "run", "-n", "2", "--", "sh", "-c", "echo begun; read line", stdin=subprocess.PIPE
    )
    assert holder.stdout.readline() == "begun\n"
    refused = machine.run(
        *profiled(machine, "refused", "run", "-n", "2", "--no-wait", "--", "true"), timeout=4 * DEADLINE_S
    )
    assert refused.status == 75, refused.err
    waiting = machine.start(*profiled(machine, "granted", "run", "-n", "2", "--", "sh", "-c", ":"))
    while "waiting for" not in (line := waiting.stderr.readline()):
        assert line, "it did not wait"
    holder.communicate("go on\n", timeout=DEADLINE_S)
    assert waiting.wait(timeout=4 * DEADLINE_S) == 0
    return files_of(symbols_of(machine, "refused") | symbols_of(machine, "granted"), defined())


NAMED = re.compile(r"`((?:\w+/)+(?:\w+\.cpp)?)`")


def test_the_page_names_the_files_of_a_request(traced):
    possibly, surely = set().union(*traced), set().union(*(files for files in traced if len(files) == 1))
    steps = PAGE.partition("## 1.")[2]
    named = set(NAMED.findall(steps))
    # What happens only at times.
    always = set(NAMED.findall(re.sub(r"^\| If .*$", "", steps, flags=re.M))) - {"cli/berth/main.cpp"}
    assert len(always) > 50 and len(WHOLE_ROOMS) == 8
    folders = {name for name in always if name.endswith("/")}
    assert always - folders - possibly == set()
    assert {folder for folder in folders if not any(file.startswith(folder) for file in surely)} == set()
    assert {file for file in surely if file.partition("/")[0] in WHOLE_ROOMS} - named == set()
