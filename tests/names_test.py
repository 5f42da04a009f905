"""What a source has to itself has a name of its own in its room: builds that compile a room as one source would
otherwise clash, or worse, quietly call the other overload."""

import collections
import pathlib
import re

import pytest
from rooms_test import place, rows

pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[1]
ROOMS = [
    *(place(f"{name}/").relative_to(ROOT).as_posix() for name in rows()),
    "src/cli/berth-serve",
    *(f"sim/{name}" for name in "machine nvml cuda smi tool".split()),
]
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.S | re.M)
# At the beginning of a line: inside an unnamed namespace that is a definition, or its `template`.
NAME = re.compile(
    r"^(?:(?:struct|class|enum class) (\w+)|constexpr[^=({\n]*?\b(\w+)(?:\[\])?\s*[={(]|[\w:][^=({\n]*[\s&*](\w+)\()",
    re.M,
)


def names_of_its_own(text):
    return {
        next(filter(None, match.groups()))
        for block in UNNAMED.findall(text)
        for match in NAME.finditer(block)
    }


def is_of(path: pathlib.Path, room: str) -> bool:
    """A model is a room of its own, and so is each program below the command line."""
    below = path.relative_to(ROOT / room).parts[:-1]
    return "test" not in below and "model" not in below and not (room == "src/cli" and below)


def test_names_are_found():
    text = "namespace {\n\nstruct Row {\n  int x();\n};\nconstexpr int kMost = 3;\nvoid say(int what) {\n  call(1);\n}\n}  // namespace\nvoid open() {}\n"
    assert names_of_its_own(text) == {"Row", "kMost", "say"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_each_name_once(room):
    sources = collections.defaultdict(list)
    for path in (ROOT / room).rglob("*.cpp"):
        if is_of(path, room):
            for name in names_of_its_own(path.read_text()):
                sources[name].append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in sources.items() if len(paths) > 1} == {}


def test_each_unit_test_has_a_namespace_of_its_own():
    """Those of a room are compiled as one source too."""
    wrong = []
    for path in ROOT.glob("src/**/test/*_test.cpp"):
        spaces = re.findall(r"^namespace (berth\S*) \{$", path.read_text(), re.M)
        wrong += [path.name for space in spaces if not space.endswith(f"::{path.stem}")]
    assert wrong == []


def test_no_unit_test_forgets_what_rapidcheck_has_found():
    """It says so in a value."""
    wrong = []
    for path in [*ROOT.glob("src/**/test/*"), *ROOT.glob("tests/**/*.cpp")]:
        text = path.read_text()
        looked_at = re.findall(r"(?:CHECK|REQUIRE)\(\s*rc::check\(", text)
        if len(looked_at) != text.count("rc::check("):
            wrong.append(path.relative_to(ROOT).as_posix())
    assert wrong == []
