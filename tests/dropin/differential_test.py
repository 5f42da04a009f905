"""The same machine, the same question, the same answer as the original gives.

Where ours differs on purpose docs/dropin.md says why, and the test of that drop-in has it."""

import re
import subprocess

import pytest
from desk import ORIGINALS
from simulated import as_nobody

IDLE = '[[device]]\nmodel = "1080Ti"\ncount = 4\n'
SOME_USED = """
[[device]]
model = "1080Ti"
[[device]]
model = "1080Ti"
utilization = 46
memory_utilization = 12
[[device.process]]
pid = 4195001
ghost = true
used_mib = 7881
[[device]]
model = "1080Ti"
[[device.process]]
pid = 4195002
ghost = true
type = "G"
used_mib = 90
"""
PARTLY = """
[[device]]
model = "V100"
[[device.process]]
pid = 4195001
ghost = true
used_mib = 20000
[[device]]
model = "T4"
[[device]]
model = "1080Ti"
"""
SEVERAL = """
[[device]]
model = "1080Ti"
[[device.process]]
pid = 4195003
ghost = true
used_mib = 300
[[device.process]]
pid = {mine}
used_mib = 10
[[device.process]]
pid = {other}
used_mib = 400
[[device]]
model = "1080Ti"
"""
NONE_FREE = """
[[device]]
model = "1080Ti"
count = 2
[[device.process]]
pid = 4195001
ghost = true
used_mib = 10000
"""
MACHINES = {
    "idle": IDLE,
    "some used": SOME_USED,
    "memory partly used": PARTLY,
    "none free": NONE_FREE,
}
NO_GPU = 'driver = "550.163.01"\n'
NO_DRIVER = "library_missing = true\n" + IDLE


@pytest.fixture(params=MACHINES)
def machine(request) -> str:
    return MACHINES[request.param]


def compare(make_desk, machine: str, original: str, setup: str, *questions: str, env=None) -> list:
    """The answers, the same from both. Of an error its kind and first words count, not what Berth adds to them."""
    desk = make_desk(machine)
    ours = desk.ask(setup, *questions, env=env)
    theirs = desk.ask(setup, *questions, env=env, original=original)
    for question, our, their in zip(questions, ours, theirs):
        if isinstance(their, dict) and "raises" in their:
            assert their["raises"] in our["kinds"], (question, our, their)
            if their["raises"] != "TypeError":  # whose words are the interpreter's
                assert our["text"].startswith(their["text"]), (question, our, their)
        else:
            assert our == their, question
    return theirs


# gpuselect ----------------------------------------------------------------------------------------

SELECTING = """
from gpuselect import GpuInfo, gpuselect, gpustatus
def sorted_ids(*arguments, **named):
    value = gpuselect(*arguments, **named)
    return sorted(value.split(",")), os.environ.get("CUDA_DEVICE_ORDER")
def state(**named):
    return [[getattr(gpu, field) for field in GpuInfo._fields[:-1]] for gpu in gpustatus(**named)]
"""


@pytest.mark.parametrize("name", ["idle", "some used", "memory partly used", "none free"])
def test_gpuselect(make_desk, name):
    count = {"idle": 4, "some used": 2, "memory partly used": 2, "none free": 0}[name]
    machine = MACHINES[name].replace('"V100"', '"3090"').replace('"T4"', '"A6000"')
    compare(
        make_desk,
        machine,
        "gpuselect",
        SELECTING,
        "state(only_cvd=False)",
        f"sorted_ids(count={count or 1})",
        f"sorted_ids(count={count + 1})",
        f"sorted_ids(count={count + 1}, silent=True)",
        f"sorted_ids(count={count or 1}, set_cvd=False)",
        "sorted_ids(util=50, mem_util=20, processes=1, count=2, devices=[0, 1])",
        "sorted_ids(name='A6000')",
        "sorted_ids(name='a6000')",
        "sorted_ids(name='')[1:]" if count else "0",
        "sorted_ids(selector=lambda gpu: gpu.device == 1)",
        "sorted_ids(selector=lambda gpu: False)",
    )


@pytest.mark.parametrize(
    "question",
    [
        "gpuselect(count=0)",
        "gpuselect(count='a')",
        "gpuselect(devices=0, name='x')",
        "gpuselect(devices=9)",
        "gpuselect(devices=[0, -1])",
        "gpuselect(devices='0')",
        "gpuselect(util=-1)",
        "gpuselect(mem_util=-1)",
        "gpuselect(processes=-1)",
        "gpuselect(name=3)",
        "gpuselect(selector=3)",
        "gpuselect(selector=lambda gpu: 1 / 0)",
        "gpuselect(silent=True, devices=9)",
    ],
)
def test_gpuselect_refuses_the_same(make_desk, question):
    (their,) = compare(make_desk, IDLE, "gpuselect", SELECTING, question)
    assert "raises" in their


FILTERING = """
import gpuselect
infos = [gpuselect.GpuInfo(i, "A6000" if i % 2 else "3090", i, 9 - i, 1, 2, 3, i // 3, *range(6)) for i in range(9)]
def filtered(count=9, devices=(), name=None, util=99, mem_util=99, processes=9, selector=None):
    asked = (count, list(devices), name, util, mem_util, processes, selector)
    return sorted(gpu.device for gpu in getattr(gpuselect, "__filter_gpus")(infos, *asked))
"""


def test_the_filter_that_gpuselects_own_tests_ask(make_desk):
    compare(
        make_desk,
        IDLE,
        "gpuselect",
        FILTERING,
        "filtered()",
        "filtered(9, util=4)",
        "filtered(2, util=1)",
        "filtered(mem_util=3)",
        "filtered(processes=0)",
        "filtered(name='A6000', util=6)",
        "filtered(devices=[7, 2, 4], processes=1)",
        "filtered(selector=lambda gpu: gpu.device > 6)",
        "len(filtered(3))",
    )


@pytest.mark.parametrize(
    "mask, seen", [("1,3", [1, 3]), ("", [0, 1, 2, 3]), ("all", [0, 1, 2, 3]), ("9", [])]
)
def test_gpustatus_of_a_mask(make_desk, mask, seen):
    question = "[gpu.device for gpu in gpustatus()]"
    assert compare(make_desk, IDLE, "gpuselect", SELECTING, question, env={"CUDA_VISIBLE_DEVICES": mask}) == [
        seen
    ]


@pytest.mark.parametrize(
    "words",
    [["-c", "4"], ["-c", "4", "-q"], ["-d", "x"], ["-c", "x"], ["-c", "5"], ["-d", "0,1,2,3", "-c", "4"]],
)
def test_the_command_gpuselect(make_desk, words):
    desk = make_desk(IDLE)
    ours = desk.run("gpuselect", *words)
    theirs = original_command(desk, "gpuselect", "gpuselect", *words)
    assert (ours.status, sorted(ours.out)) == (theirs.status, sorted(theirs.out))


def original_command(desk, environment: str, name: str, *words):
    program = ORIGINALS / environment / "bin" / name
    if not program.exists():
        pytest.skip("needs the originals: ./dev setup")
    return desk.run(program, *words, env={"PYTHONPATH": None, "PYTHONWARNINGS": "ignore"})


# nvgpu --------------------------------------------------------------------------------------------

ASKING = """
import nvgpu
from nvgpu.list_gpus import device_statuses, parse_cmd_roughly
def statuses():
    told = []
    for row in device_statuses():
        memory = row.pop("memory")
        told.append([row, memory.total, memory.free, memory.used])
    return told
"""


def test_nvgpu(make_desk, machine):
    compare(
        make_desk,
        machine,
        "nvgpu",
        ASKING,
        "nvgpu.gpu_info()",
        "sorted(nvgpu.available_gpus())",
        "sorted(nvgpu.available_gpus(0))",
        "sorted(nvgpu.available_gpus(max_used_percent=90))",
        "statuses()",
    )


def several(make_desk):
    """A machine with a process of this user, one of another, and one of a container."""
    prefix = as_nobody()
    processes = [subprocess.Popen(["sleep", "1000"]), subprocess.Popen([*prefix, "sleep", "2000"])]
    return SEVERAL.format(mine=processes[0].pid, other=processes[1].pid), processes


def ended(processes):
    for process in processes:
        process.kill()
        process.wait()


def test_nvgpu_with_several_processes_of_several_users(make_desk):
    machine, processes = several(make_desk)
    try:
        users = "[[row[0][key] for key in ('users', 'pids', 'cmd', 'is_available')] for row in statuses()]"
        ((busy, free),) = compare(make_desk, machine, "nvgpu", ASKING, users)
    finally:
        ended(processes)
    assert busy[0].split(",")[-1] == "?" and "nobody" in busy[0] and free[3] is True


# What both say of a process that was started for this test; nvgpu_test.py has the words for each
# age.
AGE = re.compile(r"just now|(?:a|an|\d+) (?:second|minute|hour)s? ago")


@pytest.mark.parametrize("words", [["nvgpu", "list"], ["nvl"]])
def test_the_table_of_nvgpu(make_desk, words):
    machine, processes = several(make_desk)
    try:
        desk = make_desk(machine)
        ours = desk.run(*words)
        theirs = original_command(desk, "nvgpu", *words)
    finally:
        ended(processes)
    # Columns are as wide as their content, which differs by a blank or two. The two looked at
    # different moments.
    lines = [
        [AGE.sub("AGE", line).split() for line in answer.out.splitlines() if "--" not in line]
        for answer in (ours, theirs)
    ]
    assert any("AGE" in words for words in lines[0])
    assert lines[0] == lines[1] and len(lines[0]) == 3


@pytest.mark.parametrize(
    "words", [["available"], ["available", "-l", "1"], ["available", "-l", "0"], ["available", "-l", "-1"]]
)
def test_the_command_nvgpu(make_desk, words):
    desk = make_desk(SOME_USED.replace("used_mib = 90", "used_mib = 9000"))
    ours, theirs = desk.run("nvgpu", *words), original_command(desk, "nvgpu", "nvgpu", *words)
    assert (ours.status, ours.out) == (theirs.status, theirs.out)


@pytest.mark.parametrize(
    "args",
    [
        ["python", "train.py", "x"],
        ["python", "/home/u/train.py", "b.py"],
        ["python", "-m", "train"],
        ["a" * 25],
        ["a" * 26],
        ["a" * 10] * 4,
        ["./foo.py"],
        [],
    ],
)
def test_what_nvgpu_calls_a_command(make_desk, args):
    compare(make_desk, IDLE, "nvgpu", ASKING, f"parse_cmd_roughly({args!r})")


def test_the_reports_of_nvgpu(make_desk):
    setup = "from nvgpu.master import gather_reports"
    errors = compare(
        make_desk, IDLE, "nvgpu", setup, "gather_reports(['http://127.0.0.1:9'])", "gather_reports([])"
    )
    assert errors == [[{"error": "Host not available"}], []]


# gpu_utilities ------------------------------------------------------------------------------------

SORTING = """
from gpu_utilities.gpu import GPU
from gpu_utilities.gpu_selector import GPUSelector, GPUSelectorFactory, GPUSelectStrategy
from gpu_utilities.gpu_info_obtainer import GPUInfoObtainer
from gpu_utilities.obtainers.nvml import NvmlGPUInfoObtainer
from gpu_utilities.utils.bytes import UnitSize, convert
listed = [GPU(0, "n", 100, 30, "u"), GPU(1, "m", 200, 20), GPU(2, "z", 200, 120)]
def pick(strategy, amount, gpus=listed):
    return vars(GPUSelectorFactory().selector(getattr(GPUSelectStrategy, strategy)).select(gpus, amount))
obtainer = NvmlGPUInfoObtainer()
def found():
    return sorted((gpu.name, gpu.uuid, gpu.free_memory_bytes()) for gpu in obtainer.gpus())
"""


def test_gpu_utilities(make_desk, machine):
    compare(make_desk, machine, "gpu_utilities", SORTING, "obtainer.gpus_available()", "found()")


@pytest.mark.parametrize("nothing", [NO_GPU, NO_DRIVER])
def test_gpu_utilities_where_there_is_nothing(make_desk, nothing):
    asked = ["obtainer.gpus_available()", "found()"]
    assert compare(make_desk, nothing, "gpu_utilities", SORTING, *asked) == [False, []]


def test_the_strategies_of_gpu_utilities(make_desk):
    compare(
        make_desk,
        IDLE,
        "gpu_utilities",
        SORTING,
        *(
            f"pick({strategy!r}, {amount})"
            for strategy in ("BEST_FIT", "WORST_FIT")
            for amount in (-1, 10, 69, 70, 79, 80, 179)
        ),
        "pick('RANDOM', 179)",
        "pick('BEST_FIT', 180)",
        "pick('WORST_FIT', 180)",
        "pick('RANDOM', 180)",
        "pick('BEST_FIT', 1, [])",
        "GPUSelectorFactory().selector('BEST_FIT')",
        "GPUSelectorFactory().selector(None)",
        "[str(listed[0]), listed[0].to_torch_device(), listed[0].free_memory_bytes()]",
        "GPUSelector()",
        "GPUInfoObtainer()",
    )


def test_the_units_of_gpu_utilities(make_desk):
    compare(
        make_desk,
        IDLE,
        "gpu_utilities",
        SORTING,
        *(
            f"convert({size}, UnitSize.{unit}, UnitSize.{target})"
            for size, unit, target in [
                (1, "KiB", "B"),
                (1536, "B", "KiB"),
                (1.5, "MiB", "KiB"),
                (3, "PiB", "GiB"),
                (-1500, "B", "KiB"),
            ]
        ),
        "[(unit.name, unit.multiplier(), unit.traditional_name(), unit.to_bytes(2)) for unit in UnitSize]",
    )


# safe_gpu -----------------------------------------------------------------------------------------

CLAIMING = """
import logging, os, sys
from safe_gpu import safe_gpu, claim_gpus
said = []
class Listed(logging.Handler):
    def emit(self, record): said.append((record.levelname, record.getMessage()))
logger = logging.getLogger("mine")
logger.setLevel(logging.INFO)
logger.addHandler(Listed())
def claimed(count, placeholder=lambda device_no: device_no):
    said.clear()
    owner = safe_gpu.GPUOwner(count, placeholder, logger)
    return [owner.devices_taken, owner.placeholders, os.environ["CUDA_VISIBLE_DEVICES"], said]
def fail(device_no):
    raise RuntimeError("CUDA error: out of memory")
"""


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_safe_gpu(make_desk, machine, count):
    asked = ["safe_gpu.get_free_gpus()", "safe_gpu.is_single_gpu_display_mode()", f"claimed({count})", "said"]
    compare(make_desk, machine, "safe_gpu", CLAIMING, *asked)


def test_safe_gpu_sorts_what_it_names(make_desk):
    """The original sorts "10" before "2"; the set is the same."""
    asked = "sorted(safe_gpu.get_free_gpus(), key=int)"
    (free,) = compare(make_desk, '[[device]]\nmodel = "1080Ti"\ncount = 12\n', "safe_gpu", CLAIMING, asked)
    assert free == [str(index) for index in range(12)]


@pytest.mark.parametrize(
    "question",
    [
        "claimed(1, fail)",
        "claimed(1, safe_gpu.PytorchPlaceholder(logger))[0]",
        "claimed(1, safe_gpu.TensorflowPlaceholder(logger))[0]",
        "claimed(1, safe_gpu.PyCudaPlaceholder(logger))[0]",
        "claim_gpus(1, safe_gpu.PyCudaPlaceholder(logger), logger) or safe_gpu.release_gpus() or said",
        "claim_gpus(1, safe_gpu.PytorchPlaceholder(logger), logger) or safe_gpu.release_gpus() or said",
        "claim_gpus(1, safe_gpu.TensorflowPlaceholder(logger), logger) or safe_gpu.release_gpus() or said",
    ],
)
def test_what_safe_gpu_says(make_desk, question):
    compare(make_desk, IDLE, "safe_gpu", CLAIMING, question, "said")


def test_safe_gpu_on_the_only_gpu_of_a_display(make_desk):
    display = (
        '[[device]]\nmodel = "1080Ti"\ndisplay_active = true\n[[device.process]]\npid = 42\nghost = true\n'
    )
    compare(
        make_desk,
        display,
        "safe_gpu",
        CLAIMING,
        "safe_gpu.is_single_gpu_display_mode()",
        "claimed(1)",
        "claimed(2)",
    )


@pytest.mark.parametrize("nothing", [NO_GPU, NO_DRIVER])
def test_safe_gpu_where_there_is_nothing(make_desk, nothing):
    desk = make_desk(nothing)
    for original in ("", "safe_gpu"):
        (answer,) = desk.ask(CLAIMING, "claimed(1)", original=original)
        assert answer["raises"] == "NvidiasmiError"
