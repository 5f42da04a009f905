"""docs/adding.md leads to the right files: its examples, the patches beside this file, fit the tree and are as long as it says."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from rooms_test import packages, place

ROOT = pathlib.Path(__file__).parents[2]
PATCHES = sorted(pathlib.Path(__file__).parent.glob("*.patch"))
PAGE = (ROOT / "docs/adding.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
ROW = re.compile(r"^\| `([\w/.-]+)` \| (\d+|–) \| (.*) \|$", re.M)


def whole(path: str) -> str:
    return place(path).relative_to(ROOT).as_posix()


def rows(section: str) -> list[tuple]:
    """[(path, lines that the example adds, what)]."""
    return [(whole(path), lines, what) for path, lines, what in ROW.findall(SECTIONS[section])]


def patch_of(section: str) -> pathlib.Path | None:
    named = re.search(r"`tests/adding/([\w-]+\.patch)`", SECTIONS[section])
    return pathlib.Path(__file__).parent / named[1] if named else None


def git(*words, **options) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True, **options).stdout


def test_each_example_is_of_one_section():
    named = [patch for section in SECTIONS if (patch := patch_of(section))]
    assert sorted(named) == PATCHES and len(named) > 5


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_names_what_is_there(section):
    patch = patch_of(section)
    added = set(re.findall(r"^--- /dev/null\n\+\+\+ b/(.*)", patch.read_text(), re.M)) if patch else set()
    assert rows(section)
    for path, _, what in rows(section):
        if path in added:
            continue
        text = (ROOT / path).read_text()
        for name in re.findall(r"`([\w:]+)`", what):
            assert name in text, f"{path} has no {name}"


def lines_of(there: pathlib.Path) -> int:
    files = there.glob("*.*") if there.is_dir() else [there]
    return sum(path.read_text().count("\n") for path in files)


def test_what_is_there_is_about_as_long_as_the_page_says():
    sizes = re.findall(r"`([\w/.]+)`,\s(\d+)\slines", PAGE)
    assert len(sizes) > 4
    for path, lines in sizes:
        assert abs(lines_of(place(path)) - int(lines)) <= int(lines) / 10, path


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
def test_an_example_fits_the_tree_and_has_the_lines_that_the_page_says(patch):
    """Does it fit no more? Then the page may be wrong: mend it, and the patch."""
    git("apply", "--check", str(patch), cwd=ROOT)
    found = {
        path: added
        for added, _, path in (
            line.split("\t") for line in git("apply", "--numstat", str(patch)).splitlines()
        )
    }
    (section,) = (each for each in SECTIONS if patch_of(each) == patch)
    assert found == {path: lines for path, lines, _ in rows(section) if lines != "–"}


@pytest.fixture
def patched(patch, tmp_path) -> pathlib.Path:
    """A copy of the sources with the example in it."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    git("init", "--quiet", cwd=tmp_path)
    git("apply", str(patch), cwd=tmp_path)
    # As the build has it.
    (tmp_path / "include/berth").mkdir(parents=True)
    for room in packages():
        if "/" not in room:
            (tmp_path / "include/berth" / room).symlink_to(tmp_path / place(f"{room}/").relative_to(ROOT))
    return tmp_path


@pytest.mark.release_only
@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
def test_an_example_keeps_the_rules_of_rooms_and_names(patched):
    """File by file it compiles with a name that its room has, and with an include of a room above."""
    shutil.copytree(ROOT / "python/extension", patched / "python/extension")
    needed = ("CMakeLists.txt", "packaging/cmake/library.cmake", "tests/pytest.ini")
    for path in (*needed, "tests/rooms_test.py", "tests/names_test.py"):
        (patched / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, patched / path)
    tests = ["tests/rooms_test.py", "tests/names_test.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *tests], cwd=patched, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.lasting
@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
def test_an_example_compiles(patch, patched):
    sources = [
        path for path in re.findall(r"^\+\+\+ b/(.*)", patch.read_text(), re.M) if path.endswith(".cpp")
    ]
    assert sources
    for source in sources:
        folders = [f"-I{patched}/include", f"-I{ROOT}/tests/unit"]
        flags = ["-std=c++23", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *folders]
        subprocess.run(
            ["c++", *flags, '-DFMT_STATIC_THOUSANDS_SEPARATOR=","', source], cwd=patched, check=True
        )
