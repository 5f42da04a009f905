"""./dev itself, before it has installed or built anything."""

import pathlib
import re
import shutil
import subprocess

import pytest
from simulated_machine import DEADLINE_S

pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[1]


def dev(*words):
    return subprocess.run([ROOT / "dev", *words], capture_output=True, text=True, timeout=DEADLINE_S)


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
