"""The packages of src and their rooms: what the rows of CMakeLists.txt allow is all that a source includes, of another
package only its public headers, and nothing runs in a circle. The include path says so of each build; this says it of the
whole, also of headers that nothing compiles.

What several features know is in pure rooms below them all. A feature's model is the feature."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
ROW = re.compile(r"^ *berth_room\(([a-z]+)(?:/([\w/]+))?( PURE)?(?: USES ([\w /]+))?\)", re.M)
# Which packages each package may include.
MAY_INCLUDE = {
    "core": set(),
    "run": {"core"},
    "lab": {"core", "run"},
    "work": {"core", "run", "lab"},
    "show": {"core", "run"},
    "cli": {"core", "run", "lab", "work", "show"},
}
# Features that include another or its model, and why. Longer than this it is no table but a knot.
PAIRS = {
    ("hosts", "supervise"): "the far end runs its command as `berth run` does",
    ("jobs", "supervise"): "a task is run as `berth run` runs a command",
    ("jobs", "hosts"): "a job may be for any host",
    ("mcp", "jobs"): "what a program asks for are jobs",
    ("hub", "agent"): "the pages of many machines are made of those of one",
}
# A person who is to own the core has to know these.
MOST_PUBLIC_OF_CORE = 31
# Rooms that are not pure and no features either: any feature above them may include them. Of
# `receipts`, those are runs (supervise), and the helper that takes leases for libraries (cli).
SHELL = {
    "sys",
    "source",
    "store",
    "site",
    "lease",
    "answers",
    "api",
    "command",
    "receipts",
    "doctor",
    "http",
    "net",
}
# What a pure room may include but its own kind.
COMPUTES = set(
    """algorithm array bit bitset charconv chrono cmath compare concepts cstddef cstdint cstring deque expected functional
    initializer_list iterator limits list map memory numeric optional ranges set span string string_view tuple type_traits utility variant
    vector version fmt/format.h fmt/ranges.h nlohmann/json.hpp""".split()
)


def rows() -> dict:
    """{room: the rooms that its row names}."""
    return {room or package: uses.split() for package, room, _, uses in found_rows()}


def found_rows() -> list[tuple]:
    return ROW.findall((ROOT / "CMakeLists.txt").read_text())


def packages() -> dict:
    """{room: its package}."""
    return {room or package: package for package, room, _, _ in found_rows()}


def place(path: str) -> pathlib.Path:
    """Where "lease/look.cpp" lies, which a page calls so: a room and its file. Another path begins at the root."""
    package = packages().get(path.partition("/")[0], "")
    if path.startswith("cli/"):
        return SOURCES / path
    return SOURCES / package / path if package else ROOT / path


def in_rooms(path: pathlib.Path) -> str:
    """The other way."""
    package, _, rest = path.relative_to(SOURCES).as_posix().partition("/")
    return f"cli/{rest}" if package == "cli" else rest


def pure_rooms() -> list[str]:
    return [room for _, room, pure, _ in found_rows() if pure]


def features() -> set[str]:
    return rows().keys() - set(pure_rooms()) - SHELL


def feature_of(room: str) -> str:
    return room.partition("/")[0]


def allowed(room: str, table: dict, above: tuple = ()) -> set:
    """The room and all that it may see."""
    assert room not in above, f"a circle: {' -> '.join([*above, room])}"
    return {room}.union(*(allowed(each, table, (*above, room)) for each in table[room]))


def files_of(room: str) -> list[pathlib.Path]:
    """Those of its model are not its own; those of the vendors are."""
    return [
        path
        for path in sorted(place(f"{room}/").glob("*" if room == "cli" else "**/*"))
        if path.suffix in (".h", ".cpp")
        and "test" not in path.parts
        and ("model" not in path.parts or room.endswith("/model"))
    ]


def included(room: str) -> dict:
    """{room that is included: a file that does}, without the tests, which may wire what they like."""
    found = {}
    for path in files_of(room):
        for name in re.findall(r'#include [<"]berth/(\w+(?:/model(?=/))?)/', path.read_text()):
            found.setdefault(name, path.relative_to(ROOT))
    return found


def test_the_library_for_hosts_holds_all_the_rooms_that_it_needs():
    text = (ROOT / "packaging/cmake/library.cmake").read_text()
    named = {name: set(words.split()) for name, words in re.findall(r"set\((api_\w+) ([^)]*)\)", text)}
    held = named["api_rooms"] - {"${api_headers}", "fmt"} | named["api_headers"]
    assert held == allowed("api", rows())


def test_every_folder_has_its_row():
    folders = [path for path in SOURCES.glob("*/*") if path.is_dir() and path.parent.name != "cli"]
    folders += SOURCES.glob("*/*/model")
    there = {path.relative_to(SOURCES).as_posix() for path in folders}
    assert there | {"cli/cli"} == {f"{package}/{room}" for room, package in packages().items()}


def public_headers(package: str) -> list[str]:
    path = SOURCES / package / "public.txt"
    return path.read_text().split("\n")[:-1] if path.exists() else []


def headers_in(text: str) -> list[str]:
    return re.findall(r'#include [<"]berth/([\w/]+\.h)[>"]', text)


def sources_of(package: str) -> list[pathlib.Path]:
    return [
        path
        for path in sorted((SOURCES / package).rglob("*"))
        if path.suffix in (".h", ".cpp") and "test" not in path.relative_to(SOURCES).parts
    ]


def package_of(header: str) -> str:
    return packages()[header.partition("/")[0]]


@pytest.mark.parametrize("package", MAY_INCLUDE)
def test_a_package_includes_only_what_others_have_made_public(package):
    public = {each: set(public_headers(each)) for each in MAY_INCLUDE}
    beyond = [
        (path.relative_to(ROOT).as_posix(), header)
        for path in sources_of(package)
        for header in headers_in(path.read_text())
        if (of := package_of(header)) != package
        and (of not in MAY_INCLUDE[package] or header not in public[of])
    ]
    assert beyond == []


def test_the_library_and_the_python_extension_include_only_public_headers():
    for path in (ROOT / "python/extension").glob("*.*"):
        for header in headers_in(path.read_text()):
            assert header in public_headers(package_of(header)), (path, header)


@pytest.mark.parametrize("package", MAY_INCLUDE)
def test_what_is_public_is_used_outside_and_shows_only_what_is_public(package):
    listed = public_headers(package)
    assert listed == sorted(set(listed))
    outside = [path for each in MAY_INCLUDE if each != package for path in sources_of(each)]
    outside += (ROOT / "python/extension").glob("*.*")
    used = {header for path in outside for header in headers_in(path.read_text())}
    shown = {
        header
        for name in listed
        for header in headers_in((SOURCES / package / name).read_text())
        if package_of(header) == package
    }
    assert shown <= set(listed)
    assert set(listed) <= used | shown


def test_core_has_few_public_headers():
    """Whoever adds one widens what one person has to hold."""
    assert len(public_headers("core")) <= MOST_PUBLIC_OF_CORE


@pytest.mark.parametrize("room", sorted(rows()))
def test_a_room_includes_only_what_its_row_allows(room):
    table = rows()
    beyond = {name: str(path) for name, path in included(room).items() if name not in allowed(room, table)}
    assert not beyond


def test_no_room_is_in_a_circle():
    graph = {room: [name for name in included(room) if name != room] for room in rows()}
    for room in graph:
        allowed(room, graph)


def test_features_include_each_other_only_as_the_table_says_and_no_other_room_includes_a_feature():
    """But the command line, which includes them all and is included by none."""
    found = {}
    for room in rows().keys() - {"cli"}:
        for name, path in included(room).items():
            pair = (feature_of(room), feature_of(name))
            if pair[1] in features() and pair[0] != pair[1]:
                found.setdefault(pair, str(path))
    assert {pair: path for pair, path in found.items() if pair not in PAIRS} == {}
    assert found.keys() == PAIRS.keys()
    assert len(PAIRS) <= 7
    graph = {feature: [to for of, to in PAIRS if of == feature] for feature in features()}
    for feature in graph:
        allowed(feature, graph)


@pytest.mark.parametrize("room", pure_rooms())
def test_a_pure_room_includes_only_what_computes(room):
    """No system, clock, file, thread or printing."""
    pure = set(pure_rooms())
    files = files_of(room)
    assert files
    for path in files:
        text = path.read_text()
        assert "_clock::" not in text, path
        headers = re.findall(r'^#include [<"]([^>"]+)[>"]', text, re.M)
        ours = {
            re.match(r"berth/(\w+(?:/model(?=/))?)/", name)[1]
            for name in headers
            if name.startswith("berth/")
        }
        assert not ours - pure, path
        assert not {name for name in headers if not name.startswith("berth/")} - COMPUTES, path


def test_a_long_file_says_why_it_is_long():
    long = [
        path.relative_to(ROOT).as_posix()
        for path in SOURCES.rglob("*.[hc]*")
        if "test" not in path.parts
        and (text := path.read_text()).count("\n") > 450
        and not text.startswith("// Long, since ")
    ]
    assert long == []


def test_no_folder_is_crowded():
    folders = [path for path in SOURCES.rglob("*") if path.is_dir() and path.name != "test"]
    crowded = {
        folder.relative_to(ROOT).as_posix(): count
        for folder in folders
        if (count := sum(path.suffix in (".h", ".cpp") for path in folder.iterdir())) > 60
    }
    assert crowded == {}


def test_the_command_line_reads_options_calls_and_prints():
    """What a command needs more lines for belongs to the room of its feature."""
    long = {path.name: count for path in files_of("cli") if (count := path.read_text().count("\n")) > 250}
    assert long == {}
