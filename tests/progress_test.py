"""How far a build is, and about how long the rest takes (tools/progress.py), and how pip is told."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest
from simulated_machine import DEADLINE_S

pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import progress  # noqa: E402

RULES = """rule compile
  command = sleep 0.3 && touch $out
  description = Building CXX object $out
rule link
  command = touch $out
  description = Linking CXX executable $out
build large.o: compile large.cpp
build small.o: compile small.cpp
build other.o: compile small.cpp
build program: link large.o small.o
build all: phony program other.o
default all
"""


@pytest.fixture
def folder(tmp_path):
    """A build of two sources, as CMake would leave it."""
    (tmp_path / "large.cpp").write_text("x" * 60_000)
    (tmp_path / "small.cpp").write_text("")
    (tmp_path / "build.ninja").write_text(RULES)
    (tmp_path / "CMakeCache.txt").write_text(f"CMAKE_MAKE_PROGRAM:FILEPATH={shutil.which('ninja')}\n")
    objects = {"large.o": "large.cpp", "small.o": "small.cpp", "other.o": "small.cpp"}
    commands = [
        {
            "directory": str(tmp_path),
            "file": str(tmp_path / file),
            "command": f"c++ -DX='a b' -o {name} -c {file}",
        }
        for name, file in objects.items()
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(commands))
    return tmp_path


def test_a_plan_has_what_ninja_would_do_and_what_each_step_costs(folder):
    assert progress.planned(folder, ["program"]) == {
        "Building CXX object large.o": 80_000,
        "Building CXX object small.o": 20_000,
        "Linking CXX executable program": 0,
    }
    assert len(progress.planned(folder, [])) == 4
    subprocess.run(["ninja", "-C", folder, "small.o"], check=True, timeout=DEADLINE_S)
    assert "Building CXX object small.o" not in progress.planned(folder, [])


def test_sources_that_cmake_has_joined_cost_what_they_have(folder):
    joined = folder / "Unity/unity_0_cxx.cxx"
    joined.parent.mkdir()
    joined.write_text("".join(f'#include "{folder / name}.cpp"\n' for name in ("large", "small")))
    assert [file.name for file in progress.sources_of(joined)] == ["large.cpp", "small.cpp"]


def after(*steps, now, plan):
    """What is told when these steps were done at these times."""
    build = progress.Progress(plan)
    for i, (step, done_at) in enumerate(steps, 1):
        build.reads(progress.STEP.fullmatch(f"[{i}/9] {step}"), done_at)
    return build.told(now)


PLAN = {"a": 100, "b": 100, "c": 100, "d": 100}


def test_the_time_is_told_once_enough_is_known():
    assert after(("a", 0), now=10, plan=PLAN) == "1 of 4"
    assert after(("a", 0), ("b", 100), now=110, plan=PLAN) == "2 of 4, about 3 min"
    assert after(("a", 0), ("b", 20), ("c", 40), now=41, plan=PLAN) == "3 of 4, less than a minute"


def test_no_time_is_told_by_the_first_small_steps():
    plan = {"small": 10, "large": 1000}
    assert after(("small", 0), ("small", 60), now=100, plan=plan) == "1 of 2"


def test_what_came_out_of_a_cache_says_nothing_of_the_rest():
    plan = {str(i): 100 for i in range(40)}
    cached = [(str(i), i / 100) for i in range(20)]
    assert after(*cached, ("20", 150), ("21", 300), now=301, plan=plan).endswith("about 45 min")


def test_without_a_plan_the_steps_are_those_that_ninja_counts():
    assert after(("a", 0), now=100, plan={}) == "1 of 9"


def told(folder, *command):
    """What standard error has of a build that is asked for five times a second."""
    script = "import sys, progress; progress.EVERY_S = 0.2; sys.exit(progress.main())"
    words = [sys.executable, "-c", script, str(folder), str(folder / "log"), "--", *command]
    return subprocess.run(words, cwd=ROOT / "tools", capture_output=True, text=True, timeout=DEADLINE_S)


def test_a_build_says_how_far_it_is_and_ends_as_its_command_does(folder):
    done = told(folder, "ninja", "-j1", "-C", str(folder))
    log, *lines = done.stderr.splitlines()
    assert (done.returncode, log) == (0, f"  the log is {folder / 'log'}")
    assert set(lines) <= {"  getting ready", *(f"  {i} of 4" for i in range(1, 5))} and "  2 of 4" in lines
    assert "Linking CXX executable program" in (folder / "log").read_text()
    failed = told(folder, "sh", "-c", "echo no; exit 3")
    assert (failed.returncode, failed.stderr) == (3, "")
    assert (folder / "log").read_text().endswith("no\n")


BACKEND = """
import os, pathlib
def build_wheel(folder, settings=None, metadata=None):
    print("configuring", settings["build-dir"] == str(pathlib.Path(settings["build-dir"])))
    os.system("echo '[1/2] Building CXX object a.o'; sleep 1")
    raise SystemExit(3)
build_editable = build_wheel
"""


def test_what_pip_builds_by_says_how_far_it_is_and_leaves_a_log(tmp_path):
    (tmp_path / "scikit_build_core").mkdir()
    (tmp_path / "scikit_build_core/__init__.py").touch()
    (tmp_path / "scikit_build_core/build.py").write_text(BACKEND)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    script = "import progress; progress.EVERY_S = 0.2; import pip_backend; pip_backend.build_wheel('.')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{ROOT / 'tools'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert (done.returncode, done.stderr) == (3, "")
    log = tmp_path / "build/log/pip.log"
    assert f"the log is {log}\n" in done.stdout and "\n1 of 2\n" in done.stdout
    assert "Building CXX object a.o\n" in done.stdout and "configuring True\n" in done.stdout
    assert log.read_text().count("Building CXX object a.o") == 1 and " of 2\n" not in log.read_text()


def test_the_backend_knows_what_pip_builds():
    words = "import pip_backend; print(*pip_backend.targets())"
    sys_path = {"PYTHONPATH": str(ROOT / "tools"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", words], cwd=ROOT, env=sys_path, capture_output=True, text=True
    )
    assert done.stdout.startswith("berth berth_python "), done.stderr
