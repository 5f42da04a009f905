"""The wheels, installed as a user does it: by pip, into a fresh environment, without an index and without a compiler.

The same is asked of a wheel that is put together here, from this machine's own release build, and of those that `./dev package`
compiles for older systems: these are marked `wheels`, as they take long to make (`./dev test wheels`)."""

import platform
import re
import sys
import zipfile

import pytest
from agent import Agent
from packages import ROOT, only, output
from simulated_machine import BUILD, Machine

pytestmark = [pytest.mark.package, pytest.mark.release_only]

# By kind of machine, as the names of the wheels say.
NEWEST_GLIBC = {"x86_64": (2, 17), "aarch64": (2, 28)}
FOR_OLD_SYSTEMS = pytest.param("for old systems", marks=pytest.mark.wheels)
EXTENSIONS = {".cpython-39", ".cpython-310", ".cpython-311", ".abi3"}
# Of glibc, under the names that it has had them since its beginning.
LOADED = re.compile(r"lib(c|m|dl|rt|util|pthread)\.so\.\d|ld-linux-(x86-64|aarch64)\.so\.\d")


def shipped(machine: str = platform.machine()):
    return only(f"berth_gpu-*_{machine}.whl")


def put_together(folder):
    """From the release build, and the extension if the part `python` of the tests has built it."""
    stub = folder / "_berth.pyi"
    stub.touch()
    output("cmake", "--install", BUILD, "--prefix", folder / "installed")
    tool = (
        sys.executable,
        ROOT / "tools/wheel.py",
        "--tag",
        f"cp39-abi3-linux_{platform.machine()}",
        "--stub",
        stub,
    )
    paths = ("--installed", folder / "installed", "--extensions", BUILD / "python/berth")
    output(*tool, *paths, "--work", folder / "work", "--out", folder, cwd=ROOT)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module", params=["put together here", FOR_OLD_SYSTEMS])
def wheel(request, tmp_path_factory):
    return shipped() if request.param == "for old systems" else put_together(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment")
    output(sys.executable, "-m", "venv", "--without-pip", folder)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin/python")
    output(*pip, "install", "-q", "--no-index", "--no-deps", wheel, env={"PATH": "", "HOME": str(folder)})
    return folder


@pytest.fixture
def machine(environment, tmp_path):
    """A simulated machine on which the wheel's program is used."""
    machine = Machine(tmp_path)
    machine.program = environment / "bin/berth"
    yield machine
    machine.close()


def test_the_installed_program_has_the_simulator_with_it(environment, tmp_path):
    listed = output(
        environment / "bin/berth", "--sim", "8xH100", "list", env={"HOME": str(tmp_path), "PATH": ""}
    )
    assert listed.count("H100 80GB HBM3") == 8


def test_the_agent_answers_with_its_page_and_the_pages_of_the_documentation(machine):
    agent = Agent(machine)
    status, headers, page = agent.get("/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "<script" in page
    assert len(agent.json("/api/v1/snapshot")["devices"]) == 8
    assert agent.get("/docs/")[0] == 200
    assert agent.ends() == 0


def test_a_cxx_program_finds_the_library_in_the_environment(machine, environment, tmp_path):
    machine.change("2xA100")
    build = tmp_path / "example"
    output(
        "cmake",
        "-G",
        "Ninja",
        "-S",
        ROOT / "tests/example",
        "-B",
        build,
        f"-DCMAKE_PREFIX_PATH={environment}",
    )
    output("cmake", "--build", build)
    answer = machine.run(build / "example", env={"BERTH_PROGRAM": machine.program})
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith("2 devices\n")


# What is put together here has an extension only after the part `python` of the tests.
@pytest.mark.parametrize("wheel", [FOR_OLD_SYSTEMS], indirect=True)
def test_python_leases_with_it(machine, environment):
    program = "import berth\nwith berth.lease(2) as lease: print(lease.ids, len(berth.snapshot().devices))"
    answer = machine.run(environment / "bin/python", "-c", program)
    assert (answer.out, answer.err) == ("(0, 1) 8\n", "")


def elf_files(path, folder) -> list:
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return [file for file in folder.rglob("*") if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]


@pytest.mark.wheels
@pytest.mark.parametrize("machine", NEWEST_GLIBC)
def test_nothing_newer_than_its_tag_says_is_asked_of_glibc(tmp_path, machine):
    path = shipped(machine)
    first, second = NEWEST_GLIBC[machine]
    assert f"manylinux_{first}_{second}_{machine}" in path.name
    files = elf_files(path, tmp_path)
    names = {file.name for file in files}
    assert {"berth", "berth-serve", "berth-sim", "nvidia-smi", "libnvidia-ml.so.1"} <= names
    assert {
        re.match(r"_berth(\.[\w]+(-\d+)?)", name)[1] for name in names if name.startswith("_berth")
    } == EXTENSIONS
    for file in files:
        told = output("readelf", "-W", "--version-info", "--dynamic", file)
        wanted = re.findall(r"GLIBC_(\d+)\.(\d+)", told)
        assert max((int(first), int(second)) for first, second in wanted) <= NEWEST_GLIBC[machine], file
        assert all(LOADED.fullmatch(name) for name in re.findall(r"\(NEEDED\).*\[(.*)\]", told)), file
        assert "RPATH" not in told and "RUNPATH" not in told, file


# The kernel hands each program of this kind to qemu, in a namespace of its own.
QEMU = "/usr/bin/qemu-aarch64-static"
MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
BY_QEMU = f"""set -e
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf %s ':aarch64:M::{MAGIC}:{MASK}:{QEMU}:F' >/proc/sys/fs/binfmt_misc/register
exec "$@"
"""


@pytest.mark.wheels
@pytest.mark.skipif(platform.machine() == "aarch64", reason="all other tests are of this wheel")
def test_the_programs_for_aarch64_run(tmp_path):
    with zipfile.ZipFile(shipped("aarch64")) as archive:
        archive.extractall(tmp_path)
    (data,) = tmp_path.glob("*.data")
    programs = tmp_path / "bin"
    (data / "scripts").rename(programs)
    (data / "data/lib").rename(tmp_path / "lib")
    for program in [*programs.iterdir(), *(tmp_path / "lib/berth/sim/bin").iterdir()]:
        program.chmod(0o755)
    berth = programs / "berth"

    def says(*words) -> str:
        env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "QEMU_LD_PREFIX": "/usr/aarch64-linux-gnu"}
        return output("unshare", "-Urm", "bash", "-c", BY_QEMU, "bash", berth, *words, env=env)

    assert says("--sim", "8xH100", "list").count("H100 80GB HBM3") == 8
    assert (
        says("--sim", "8xH100", "run", "-n", "2", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES") == "0,1\n"
    )
    assert "show this machine over HTTP" in says("serve", "--help")
