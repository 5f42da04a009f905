"""The package as it is installed."""

import pathlib
import subprocess
import sys
import zipfile

import pytest
from hosts import ENVIRONMENT, PYTHON
from simulated_machine import DEADLINE_S

ROOT = pathlib.Path(__file__).parents[2]
TOOLS_DEADLINE_S = 120  # hang guard: a type checker reads a lot


def tool(*words, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=TOOLS_DEADLINE_S, **options
    )


@pytest.fixture(scope="module")
def installed() -> pathlib.Path:
    """The folder of the package."""
    words = [PYTHON, "-c", "import berth; print(berth.__path__[0])"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return pathlib.Path(done.stdout.strip())


def test_the_wheel_has_the_package_and_the_program_and_nothing_else():
    (wheel,) = (ENVIRONMENT.parent / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        programs = {
            info.filename.rsplit("/", 1)[1]: info
            for info in archive.infolist()
            if "/scripts/" in info.filename
        }
    assert programs.keys() == {"berth", "berth-sim"}
    assert all(info.external_attr >> 16 & 0o111 for info in programs.values())
    # The simulated machine, the manual and the completions.
    beside = {name for name in names if "/data/" in name}
    assert {"lib", "share"} == {name.split("/data/")[1].split("/")[0] for name in beside}
    folders = ("berth", "hydra_plugins")
    sources = {f"{name}/{path.name}" for name in folders for path in (ROOT / "python" / name).glob("*.*")}
    (extension,) = (name for name in names if name.startswith("berth/") and name.endswith(".so"))
    assert extension.startswith("berth/_berth.")
    expected = sources | {extension, "berth/_berth.pyi"} | {info.filename for info in programs.values()}
    assert set(names) - beside == expected
    assert "berth/py.typed" in names


def test_the_program_of_the_package_is_found_without_a_path(machine):
    code = "import berth; print(berth.pick().ids)"
    answer = machine.run(
        PYTHON, "-I", "-c", code, env={"PATH": None, "LD_LIBRARY_PATH": machine.env["LD_LIBRARY_PATH"]}
    )
    assert answer.out == "(0,)\n", answer.err


def test_importing_it_imports_nothing_but_itself(machine):
    """Not even much of the standard library: these cost more than everything that Berth does."""
    code = """
import sys
before = set(sys.modules)
import berth
berth.pick()
print(*{name.split(".")[0] for name in set(sys.modules) - before})
with berth.lease(): pass
print(*{name.split(".")[0] for name in set(sys.modules) - before})
"""
    # Some of it newer interpreters have loaded by themselves.
    loaded, and_then = (set(line.split()) for line in machine.run(PYTHON, "-I", "-c", code).out.splitlines())
    assert {"berth"} <= loaded <= {"__future__", "atexit", "berth"}
    assert {"berth"} <= and_then <= {"__future__", "_contextvars", "atexit", "berth", "contextvars"}


def test_the_extension_asks_for_the_c_library_only(installed):
    (extension,) = installed.glob("_berth.*.so")
    needed = subprocess.run(["readelf", "-d", extension], capture_output=True, text=True, check=True).stdout
    libraries = {line.split("[")[1].rstrip("]") for line in needed.splitlines() if "(NEEDED)" in line}
    assert libraries <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_the_stub_is_what_the_extension_says(installed, tmp_path):
    (extension,) = installed.glob("_berth.*.so")
    stable = ".abi3." in extension.name and sys.version_info >= (3, 12)
    if not stable and sys.implementation.cache_tag[len("cpython-") :] not in extension.name:
        pytest.skip("needs the interpreter of the tests: the extension is for another")
    (tmp_path / extension.name).write_bytes(extension.read_bytes())
    fresh = tmp_path / "fresh.pyi"
    done = tool("-m", "nanobind.stubgen", "-q", "-i", tmp_path, "-m", "_berth", "-o", fresh)
    assert done.returncode == 0, done.stderr
    assert (installed / "_berth.pyi").read_text() == fresh.read_text()


def test_the_package_and_its_users_type_check(installed, tmp_path):
    user = tmp_path / "user.py"
    user.write_text(
        """
import berth

def small(device: berth.Device) -> bool:
    return (device.memory.total_bytes or 0) < 1 << 34

choice: berth.Choice = berth.pick(2, where=small, order=lambda device: -device.index, devices=[0, "1"])
ids: tuple[int, ...] = choice.ids

@berth.on_gpu(2, note="typed")
def train(epochs: int) -> float:
    with berth.lease(memory="20GiB", wait="10m", on_wait=lambda waiting: print(waiting.position)) as lease:
        return float(len(lease.uuids))

async def serve() -> str:
    async with berth.lease() as lease:
        return lease.torch_device(0)

loss: float = train(3)
job: berth.Job = berth.submit(["python", "train.py"], n=2, name="typed", params={"lr": [0.1]}, after=[1, "2"])
status: int = job.wait("1h")
ended: "int | None" = berth.submit("true", after_ok=job, array=range(3)).exit_status
names: "list[str | None]" = [each.name for each in berth.jobs("failed")]
starts: "list[int | None]" = [waiter.starts_at_s for waiter in berth.queue()]
berth.cancel(job, "typed", 12, berth.jobs()[0], wait="1m")
berth.cancel(1.5)  # type: ignore[arg-type]
berth.submit(["true"], gpu=2)  # type: ignore[call-arg]
try:
    berth.lease(wait=0).release()
except berth.NotNow as error:
    print(error.verdicts[0].reason)
wrong: int = berth.pick().ids  # type: ignore[assignment]
berth.pick(gpu=3)  # type: ignore[call-arg]
berth.pick(free=[])  # type: ignore[arg-type]
train("three")  # type: ignore[arg-type]
"""
    )
    words = ["-m", "mypy", "--strict", "--cache-dir", tmp_path, "--config-file", ROOT / "pyproject.toml"]
    done = tool(*words, "--python-executable", PYTHON, "-p", "berth", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    done = tool(*words, "--python-executable", PYTHON, user, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", ["berth", "berth._lease", "berth._job", "README.md", "docs/python.md"])
def test_the_examples_hold(machine, page):
    code = """
import asyncio, doctest, importlib, os, sys
import berth
if sys.argv[1].endswith(".md"):
    # A reader types what stands on the page, and nothing before.
    result = doctest.testfile(sys.argv[2], module_relative=False, globs={})
else:
    names = {"berth": berth, "os": os, "asyncio": asyncio}
    result = doctest.testmod(importlib.import_module(sys.argv[1]), extraglobs=names)
print(result.attempted > 0, result.failed)
"""
    answer = machine.run(PYTHON, "-c", code, page, ROOT / page)
    assert answer.out == "True 0\n", answer.out + answer.err


def test_every_public_name_is_explained(machine):
    code = """
import berth
for name in berth.__all__:
    thing = getattr(berth, name)
    if not (thing.__doc__ or "").strip(): print(name)
    for part in vars(thing) if isinstance(thing, type) else ():
        if callable(getattr(thing, part)) and not part.startswith("_") and not getattr(thing, part).__doc__:
            print(name, part)
"""
    assert machine.run(PYTHON, "-c", code).out == ""


@pytest.mark.parametrize("missing", ["fmt", "nlohmann_json", "tomlplusplus"])
def test_a_missing_package_is_named_with_the_line_that_installs_all(tmp_path, missing):
    done = subprocess.run(
        [
            "cmake",
            "-S",
            ROOT,
            "-B",
            tmp_path,
            "-G",
            "Ninja",
            f"-DCMAKE_DISABLE_FIND_PACKAGE_{missing}=ON",
            "-DBERTH_PYTHON=ON",
        ],
        capture_output=True,
        text=True,
        timeout=TOOLS_DEADLINE_S,
    )
    said = " ".join(done.stderr.split())
    assert done.returncode != 0
    line = "sudo apt install g++ libfmt-dev nlohmann-json3-dev libtomlplusplus-dev python3-dev python3-venv"
    assert line in said
    assert line in " ".join((ROOT / "README.md").read_text().replace("\\\n", "").split())


def test_a_missing_compiler_is_named_too(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in "cmake", "ninja":
        found = subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip()
        (tools / name).symlink_to(found)
    done = subprocess.run(
        [tools / "cmake", "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja"],
        capture_output=True,
        text=True,
        timeout=TOOLS_DEADLINE_S,
        env={"PATH": str(tools)},
    )
    assert done.returncode != 0
    assert "sudo apt install g++" in done.stderr
    assert "CMAKE_CXX_COMPILER" not in done.stderr
