"""Some people of a lab still run an original. What that promises, with the race drawn out."""

import dataclasses
import re
import select
import shutil
import subprocess
import sys
import zipfile

import pytest
from desk import ENVIRONMENT, HERE, ORIGINALS
from simulated import eventually

pytestmark = pytest.mark.long

LAB = '[[device]]\nmodel = "1080Ti"\ncount = 2\n'
CLAIM = """
import logging, sys
from safe_gpu import safe_gpu
logging.basicConfig(level=logging.INFO, stream=sys.stderr)
tensor = getattr(safe_gpu, "pytorch_placeholder", None) or safe_gpu.PytorchPlaceholder()
def occupy(device_no):
    if {waits}: print("chosen", flush=True), input()
    return tensor(device_no)
safe_gpu.claim_gpus({count}, occupy)
print(*safe_gpu.gpu_owner.devices_taken, flush=True)
input()
"""
# How long the first stays between choosing and occupying once the second has come: without the lock
# the second would choose the same GPU within some hundredths of a second.
DRAWN_OUT_S = 0.5
INSTALL_S = 600  # a hang guard: pip unpacks wheels of 100 MB, and compiles what is in them


@pytest.fixture
def start(make_desk):
    """Starts a script of the original or of ours on one machine."""
    desk = make_desk(LAB)

    def run(whose: str, script: str, environment: str = "safe_gpu"):
        if whose == "ours":
            return desk.start_python(script, stdin=-1)
        if whose == "original before 2":
            environment = "safe_gpu_before_2"
        python = ORIGINALS / environment / "bin/python"
        if not python.exists():
            pytest.skip("needs the originals: ./dev setup")
        return desk.machine.start(python, "-c", script, stdin=-1, env={"PYTHONPATH": HERE / "standins"})

    run.desk = desk
    return run


def between(start, first: str, second: str, count: int):
    """Both processes, when the second has come while the first had chosen its GPU and not yet occupied it."""
    one = start(first, CLAIM.format(count=1, waits=True))
    assert one.stdout.readline() == "chosen\n"
    other = start(second, CLAIM.format(count=count, waits=False))
    while "acquiring lock" not in other.stderr.readline():
        assert other.poll() is None
    assert not select.select([other.stdout], [], [], DRAWN_OUT_S)[0]
    one.stdin.write("\n")
    one.stdin.flush()
    assert one.stdout.readline() == "0\n"
    return other


@pytest.mark.parametrize(
    "first, second",
    [
        ("original", "ours"),
        ("ours", "original"),
        ("original before 2", "ours"),
        ("ours", "original before 2"),
        ("ours", "ours"),
    ],
)
def test_safe_gpu_and_its_original_never_both_get_a_gpu(start, first, second):
    assert between(start, first, second, 1).stdout.readline() == "1\n"


@pytest.mark.parametrize("first, second", [("original", "ours"), ("ours", "original")])
def test_too_few_is_too_few_for_either(start, first, second):
    _, said = between(start, first, second, 2).communicate(timeout=30)
    assert "Required 2 GPUs, only found these free: ['1']" in said


def test_who_waits_in_line_does_not_take_what_an_original_took_between(start):
    """Ours waits while all is leased; the lease ends, and before ours comes to the lock of the original, that has
    occupied the GPU."""
    holder = start("ours", "import berth; lease = berth.lease(2); print(flush=True); input()")
    holder.stdout.readline()
    script = CLAIM.replace("occupy)\n", "occupy, wait=None)\n").format(count=1, waits=False)
    first_look = """
from safe_gpu import lock
import contextlib, logging
real = lock.held
@contextlib.contextmanager
def held(*arguments):
    lock.held = real
    print("granted", flush=True)
    input()
    with real(*arguments): yield
lock.held = held
"""
    waiting = start("ours", first_look + script)
    eventually(lambda: start.desk.machine.berth("queue", "--json").json["waiters"])
    holder.communicate("\n", timeout=30)
    assert waiting.stdout.readline() == "granted\n"
    original = start("original", CLAIM.format(count=1, waits=False))
    assert original.stdout.readline() == "0\n"
    waiting.stdin.write("\n")
    waiting.stdin.flush()
    assert waiting.stdout.readline() == "1\n"


@pytest.mark.parametrize(
    "ask",
    [
        "from gpuselect import gpuselect; print(gpuselect(), flush=True)",
        "from safe_gpu import safe_gpu; print(safe_gpu.GPUOwner().devices_taken[0], flush=True)",
        "from gpu_scheduler import GPUScheduler\nwith GPUScheduler(1) as ids: print(*ids, flush=True)",
        "import nvgpu; print(nvgpu.available_gpus(2)[0], flush=True)",
    ],
)
def test_what_a_process_of_an_original_uses_is_not_given_to_anybody(start, ask):
    process = start(
        "original",
        "import random; random.sample = random.choice = lambda all, *_: all[0] if not _ else all[:1]\n"
        "import gpuselect, torch\nvalue = gpuselect.gpuselect(devices=0)\n"
        "block = torch.zeros(1, device='cuda:0'); print(value, flush=True); input()",
        "gpuselect",
    )
    assert process.stdout.readline() == "0\n"
    assert start("ours", ask).stdout.readline() == "1\n"


# Ours that lease, each as people start it; a line says which GPU, and CUDA starts only then.
LEASING = {
    "gpuselect()": "from gpuselect import gpuselect; got = gpuselect()",
    "GPUScheduler": "from gpu_scheduler import GPUScheduler; block = GPUScheduler(1); got = block.__enter__()[0]",
}
USE = """
import torch
print(got, flush=True)
input()
kept = torch.zeros(1, device=f"cuda:{got if 'block' in dir() else 0}")
print("uses", flush=True)
input()
"""


@pytest.mark.parametrize("ask", LEASING.values(), ids=LEASING)
@pytest.mark.parametrize("original", ["original", "original before 2"])
def test_an_original_safe_gpu_waits_until_ours_uses_its_gpu(start, ask, original):
    # The file is missing, as after a boot. Its place is there: /tmp stands for it.
    (start.desk.machine.directory / "home/tmp").mkdir()
    ours = start("ours", ask + USE)
    got = int(ours.stdout.readline())
    theirs = start(original, CLAIM.format(count=1, waits=False))
    while "acquiring lock" not in theirs.stderr.readline():
        assert theirs.poll() is None
    assert not select.select([theirs.stdout], [], [], DRAWN_OUT_S)[0]
    ours.stdin.write("\n")
    ours.stdin.flush()
    assert ours.stdout.readline() == "uses\n"
    assert int(theirs.stdout.readline()) == 1 - got


def test_the_command_gpuselect_waits_until_an_original_safe_gpu_has_its_gpu(start):
    one = start("original", CLAIM.format(count=1, waits=True))
    assert one.stdout.readline() == "chosen\n"
    ours = start.desk.machine.start("gpuselect", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert not select.select([ours.stdout], [], [], DRAWN_OUT_S)[0]
    one.stdin.write("\n")
    one.stdin.flush()
    assert one.stdout.readline() == "0\n"
    # It asked for what was idle when it looked, and does not wait.
    out, said = ours.communicate(timeout=30)
    assert out == "1\n" or "uses it" in said or ours.returncode == 75


def wheel_of(folder, project, version, needs=""):
    """A distribution whose module has a file that one of ours may have too."""
    path = folder / f"{project}-{version}-py3-none-any.whl"
    name = f"{project}-{version}.dist-info"
    files = {
        f"{project}/__init__.py": "original = True\n",
        f"{name}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n{needs}",
        f"{name}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in (*files, f"{name}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in {**files, f"{name}/RECORD": record}.items():
            wheel.writestr(file, text)
    return path


@pytest.fixture
def environment(tmp_path):
    """An environment of its own with pip, and the three wheels."""
    wheels = [*ENVIRONMENT.parents[1].glob("wheel/berth_gpu-*.whl"), *ENVIRONMENT.parent.glob("wheel/*.whl")]
    folder = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = f"{sys.executable} -m pip --python {folder / 'bin/python'}"
    (folder / "bin/pip").write_text(f'#!/bin/sh\nexec {pip} -q --disable-pip-version-check "$@"\n')
    (folder / "bin/pip").chmod(0o755)

    def install(*paths):
        subprocess.run([folder / "bin/pip", "install", "--no-index", "--no-deps", *paths], check=True)

    install.folder = folder
    install.berth, install.dropin = wheels
    install.original = wheel_of(tmp_path, "nvgpu", "0.10.0")
    install.other_berth = wheel_of(tmp_path, "berth", "1.3.5")
    return install


def test_what_the_originals_bring_along_comes_along_with_ours():
    """Flask for nvgpu's pages, PyYAML for gpu_scheduler's list of banned GPUs: only the install line changes."""
    (wheel,) = ENVIRONMENT.parent.glob("wheel/berth_gpu_dropin-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        required = re.findall(r"^Requires-Dist: ([\w-]+)(.*)$", archive.read(name).decode(), re.M)
    assert [name for name, _ in required] == ["berth-gpu", "flask", "pyyaml"]
    assert not any("extra" in rest for _, rest in required)


def imported(desk, environment, module="nvgpu"):
    code = f"import {module}; print(hasattr({module}, 'original'))"
    return desk.run(environment.folder / "bin/python", "-c", code, env={"PYTHONPATH": None})


def test_an_original_that_was_installed_first_is_named_at_import_and_the_advice_helps(make_desk, environment):
    desk = make_desk(LAB)
    environment(environment.original)
    environment(environment.berth, environment.dropin)
    answer = imported(desk, environment)
    assert (answer.status, answer.out) == (0, "False\n")
    assert "both nvgpu 0.10.0 and berth-gpu-dropin are installed here" in answer.err
    advice = re.search(r"(pip uninstall .*)$", answer.err, re.M).group(1)
    done = desk.shell(
        f"PATH={environment.folder / 'bin'}:$PATH PIP_NO_INDEX=1; export PIP_NO_INDEX; {advice}",
        timeout=INSTALL_S,
    )
    assert done.status == 0, done.err
    assert imported(desk, environment) == dataclasses.replace(answer, err="")


def test_of_an_original_that_was_installed_last_the_files_run_and_doctor_says_so(make_desk, environment):
    desk = make_desk(LAB)
    environment(environment.berth, environment.dropin)
    environment(environment.original)
    answer = imported(desk, environment)
    assert (answer.status, answer.out, answer.err) == (0, "True\n", "")
    said = desk.run(environment.folder / "bin/berth", "doctor").out
    assert "WARN  drop-ins: the original nvgpu is installed beside berth-gpu-dropin" in said


def test_the_distribution_is_ours_by_name_and_what_requires_an_original_is_installed_without_it(
    make_desk, environment, tmp_path
):
    desk = make_desk(LAB)
    environment(environment.berth, environment.dropin)
    environment(wheel_of(tmp_path, "trainer", "1.0", "Requires-Dist: safe-gpu\n"))
    script = """
from importlib import metadata
import safe_gpu.safe_gpu, trainer
for name in ("berth-gpu-dropin", "gpuselect", "nvgpu", "gpu-utilities", "gpu-scheduler", "safe-gpu"):
    try: print(bool(metadata.version(name)))
    except metadata.PackageNotFoundError: print("not found")
"""
    answer = desk.run(environment.folder / "bin/python", "-c", script, env={"PYTHONPATH": None})
    assert (answer.out.split("\n"), answer.err) == (["True", *["not found"] * 5, ""], "")


def test_doctor_names_an_original_in_the_environment_of_the_program(make_desk, tmp_path):
    desk = make_desk(LAB)
    packages = tmp_path / "lib/python3.11/site-packages"
    program = tmp_path / "bin/berth"
    program.parent.mkdir()
    shutil.copy(ENVIRONMENT / "bin/berth", program)
    for name in ("berth_gpu_dropin-0.1.0", "safe_gpu-2.0.0"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
    answer = desk.run(program, "doctor")
    assert "WARN  drop-ins: the original safe_gpu is installed beside berth-gpu-dropin" in answer.out
    assert "in a checkout of Berth: pip uninstall -y safe_gpu && pip install" in answer.out
    assert "--no-deps ./python/dropin" in answer.out
    assert "drop-ins" not in desk.run(ENVIRONMENT / "bin/berth", "doctor").out


def test_another_project_named_berth_that_was_installed_first_is_named_and_the_advice_helps(
    make_desk, environment
):
    desk = make_desk(LAB)
    environment(environment.other_berth)
    environment(environment.berth)
    answer = imported(desk, environment, "berth")
    assert (answer.status, answer.out) == (0, "False\n")
    assert "another project named berth is installed here beside berth-gpu" in answer.err
    said = desk.run(environment.folder / "bin/berth", "doctor").out
    assert "WARN  Python package: another project named berth is installed here beside berth-gpu" in said
    advice = "pip uninstall -y berth && pip install --force-reinstall --no-deps ."
    assert advice in answer.err and advice in said
    # The wheel takes the place of the checkout, which would be compiled.
    done = desk.shell(
        f"PATH={environment.folder / 'bin'}:$PATH PIP_NO_INDEX=1; export PIP_NO_INDEX; "
        + advice.removesuffix(".")
        + str(environment.berth),
        timeout=INSTALL_S,
    )
    assert done.status == 0, done.err
    assert imported(desk, environment, "berth") == dataclasses.replace(answer, err="")
    assert "Python package" not in desk.run(environment.folder / "bin/berth", "doctor").out


def test_inside_a_lease_only_its_gpus_are_on_offer(desk):
    """Whoever leased the others is not looked at there: they are not of this lease, which comes first."""
    code = "from berth_dropin import cards; print([gpu.index for gpu in cards.Look().on_offer()])"
    holder = desk.machine.start("berth", "run", "--devices", "1", "--", "sh", "-c", "echo; read x", stdin=-1)
    holder.stdout.readline()
    answer = desk.run("berth", "run", "--devices", "0", "--", "python3", "-c", code)
    assert (answer.status, answer.out) == (0, "[0]\n"), answer.err
