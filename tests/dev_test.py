"""./dev itself, before it has installed or built anything."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from simulated_machine import DEADLINE_S

pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[1]


def dev(*words, root=ROOT):
    return subprocess.run([root / "dev", *words], capture_output=True, text=True, timeout=DEADLINE_S)


@pytest.mark.parametrize("help_word", ["-h", "--help"])
def test_a_question_for_the_help_of_a_command_starts_nothing(help_word):
    help_text = dev("help").stdout
    answer = dev("format", help_word)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, help_text, "")


def test_an_unknown_command_is_no_question_for_help():
    answer = dev("tset", "--help")
    assert (answer.returncode, answer.stdout) == (2, "")


def heard(patience_s, log, *command):
    """How `while_heard` ends with a command that writes to the log."""
    script = 'source tools/test.sh; log=$2; while_heard "$@" >"$log" 2>&1'
    words = ["bash", "-c", script, "bash", str(patience_s), log, *command]
    return subprocess.run(words, cwd=ROOT, timeout=DEADLINE_S).returncode


def test_a_step_ends_as_its_command_does(tmp_path):
    assert heard(DEADLINE_S, tmp_path / "log", "bash", "-c", "echo said; exit 3") == 3
    assert (tmp_path / "log").read_text() == "said\n"


def test_a_step_that_is_silent_ends_with_all_that_it_has_started(tmp_path):
    begun = "sleep 1000 & echo $! >" + str(tmp_path / "begun") + "; wait"
    assert heard(1, tmp_path / "log", "bash", "-c", begun) != 0
    assert (tmp_path / "log").read_text().startswith("\nnothing was heard for 1 s\n")
    assert not pathlib.Path("/proc", (tmp_path / "begun").read_text().strip()).exists()


def test_a_mark_that_a_part_asks_for_stands_in_the_files_that_it_reads():
    """The parts python, package and release read no other files (`marked` of tools/test.sh)."""
    mark = re.compile(r"mark\.(package|python|release_only)\b")
    helpers = [path for path in ROOT.glob("tests/**/*.py") if not path.name.endswith("_test.py")]
    named = [path for path in helpers if mark.search(path.read_text())]
    assert {path.name for path in named} == {"conftest.py"}


def test_a_model_is_searched_anew_if_it_has_changed(tmp_path):
    """Where there is no Spin, a run that would search says so."""
    model, tools = tmp_path / "model", tmp_path / "tools"
    shutil.copytree(ROOT / "tests/model", model)
    tools.mkdir()
    for name in ("cmp", "dirname", "sha256sum"):
        (tools / name).symlink_to(shutil.which(name))

    def answer():
        words = [model / "run", "--changed"]
        done = subprocess.run(words, env={"PATH": tools}, capture_output=True, text=True, timeout=DEADLINE_S)
        return done.returncode, "spin is not installed" in done.stderr

    files = [path.name for path in sorted(model.glob("*.pml"))] + ["run", "table.sh"]
    sums = subprocess.run(["sha256sum", "--", *files], cwd=model, capture_output=True, check=True).stdout
    (model / "checked").write_bytes(sums)
    assert answer() == (0, False)
    (model / "world.pml").write_text((model / "world.pml").read_text() + "\n")
    assert answer() == (1, True)
    (model / "checked").unlink()
    assert answer() == (1, True)


def test_a_package_that_is_none_is_refused_before_anything_is_made():
    answer = dev("package", "rpm")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith("dev: no such package: rpm (tar, deb or wheel")


@pytest.fixture
def checkout(tmp_path):
    """A commit with what `./dev release` looks at before it makes anything."""
    (tmp_path / "tools").mkdir()
    for path in (ROOT / "tools").glob("*.sh"):
        shutil.copy(path, tmp_path / "tools")
    shutil.copy(ROOT / "dev", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text("project(berth VERSION 1.2.3 LANGUAGES C)\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 1.2.3\n")
    # Only what comes before the first package is tried here.
    (tmp_path / "tools/zz.sh").write_text("package_all() { die 'all is well'; }\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "First")
    return tmp_path


def git(folder, *words):
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", "-C", folder, *words], env=os.environ | names, check=True, timeout=DEADLINE_S)


def test_a_release_is_of_a_commit_that_its_tag_names(checkout):
    def refused(*words):
        answer = dev("release", *words, root=checkout)
        assert (answer.returncode, answer.stdout) == (1, "")
        return answer.stderr.removeprefix("dev: ").rstrip()

    assert refused() == "which tag? ./dev release v1.2.3"
    assert refused("v1.2.4") == "the tag v1.2.4 is not of version 1.2.3, which CMakeLists.txt names"
    assert refused("v1.2.3").startswith("there is no tag v1.2.3 of the commit that is checked out")
    git(checkout, "tag", "v1.2.3")
    (checkout / "left").touch()
    assert refused("v1.2.3") == "some files differ from the commit: git status"
    (checkout / "left").unlink()
    assert refused("v1.2.3") == "all is well"
    (checkout / "CHANGELOG.md").write_text("# Changes\n")
    assert refused("v1.2.3") == "CHANGELOG.md has no part ## 1.2.3"


def test_what_a_release_was_made_of_has_each_pin_with_its_hash():
    sys.path.insert(0, str(ROOT / "tools"))
    import made_of

    parts = made_of.made_of("v0.1.0", sys.executable)["components"]
    by_purl = {part["purl"]: part for part in parts}
    crates = re.findall(r'checksum = "(.*)"', (ROOT / "packaging/cross/Cargo.lock").read_text())
    hashes = {each["content"] for part in parts for each in part.get("hashes", [])}
    assert len(crates) > 5 and set(crates) <= hashes
    headers = (ROOT / "packaging/cross/python-headers.txt").read_text().split()[1::2]
    assert len(headers) == 4 and set(headers) <= hashes
    inside = {part["name"] for part in parts if part["scope"] == "required"}
    # Each library that is linked in, the page's own and the site's.
    assert {"openssl-src", "libsqlite3-sys", "libz-sys", "libfmt-dev", "libtomlplusplus-dev"} <= inside
    assert {"nlohmann-json3-dev", "libboost1.81-dev", "preact", "iframe-worker", "nanobind"} <= inside
    assert not inside & {"cmake", "vite", "typescript", "pytest", "dpkg-dev"}
    assert [purl for purl in by_purl if not re.fullmatch(r"pkg:[a-z]+/\S+@\S+", purl)] == []
    assert any(purl.startswith("pkg:npm/%40preact/signals@") for purl in by_purl)
