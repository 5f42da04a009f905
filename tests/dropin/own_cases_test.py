"""Programs as people write them: loops, subclasses, threads, two tools in one program, errors, environment. Written
down before they were run; each is asked of ours and of its original, in a process each. gpu_scheduler's original is not
on PyPI: its cases have the answer that its document gives.

Where ours differs docs/dropin.md says why, and the case has our answer, too."""

from typing import Any, NamedTuple

import pytest
from differential_test import CLAIMING, IDLE, SELECTING, SOME_USED, SORTING, compare


class Case(NamedTuple):
    title: str
    question: str
    machine: str = IDLE
    env: dict = {}
    ours: Any = None  # where it differs


def titled(cases):
    return [pytest.param(case, id=case.title) for case in cases]


def ask(make_desk, case: Case, original: str, setup: str) -> None:
    if case.ours is None:
        compare(make_desk, case.machine, original, setup, case.question, env=case.env)
        return
    desk = make_desk(case.machine)
    (ours,) = desk.ask(setup, case.question, env=case.env)
    (theirs,) = desk.ask(setup, case.question, env=case.env, original=original)
    assert ours == case.ours and theirs != ours


# gpuselect ----------------------------------------------------------------------------------------

GPUSELECT = (
    SELECTING
    + """
import gpuselect as package, random, threading
from concurrent.futures import ThreadPoolExecutor
class Name(str): pass
class Index:
    def __init__(self, value): self.value = value
    def __index__(self): return self.value
    def __lt__(self, other): return self.value < other
    def __gt__(self, other): return self.value > other
class Selector:
    seen = 0
    def __call__(self, gpu):
        self.seen += 1
        return gpu.device % 2 == 1
def seeded(seed):
    random.seed(seed)
    return gpuselect(set_cvd=False)
def then(first, second):
    return second
def unpacked():
    told = []
    for device, name, util, mem_util, *rest in gpustatus():
        told.append((device, name, util, mem_util, len(rest)))
    device, name, *_, throttling = gpustatus()[1]
    return told, device, name
"""
)
GPUSELECT_CASES = [
    Case(
        "a loop of selections", "[len(gpuselect(count=count).split(',')) for count in (1, 4, 2, 4, 1, 3, 4)]"
    ),
    Case("a loop that only looks", "[sorted_ids(count=4, set_cvd=False)[0] for _ in range(10)]"),
    Case("a name that is a subclass of str", "sorted_ids(count=4, name=Name('1080'))"),
    Case("a selector that is an object", "sorted_ids(count=2, selector=Selector())"),
    Case(
        "threads that look",
        "[len(ids) for ids in ThreadPoolExecutor(4).map(lambda _: gpuselect(set_cvd=False), range(8))]",
    ),
    Case(
        "gpustatus sees what was selected", "then(gpuselect(devices=2), [gpu.device for gpu in gpustatus()])"
    ),
    Case("a count that is a bool", "len(gpuselect(count=True))"),
    # Of what numpy has the original takes; of these it does not.
    Case("a count by __index__", "len(gpuselect(count=Index(2)).split(','))", ours=2),
    Case("the mask of the program is not obeyed", "sorted_ids(count=4)", env={"CUDA_VISIBLE_DEVICES": "3"}),
    Case(
        "the mask afterwards",
        "(gpuselect(devices=1), os.environ['CUDA_VISIBLE_DEVICES'], os.environ['CUDA_DEVICE_ORDER'])",
    ),
    Case("the same seed, the same choice", "[seeded(seed) == seeded(seed) for seed in range(5)]"),
    Case("what gpustatus gives can be unpacked", "unpacked()"),
    Case("what gpustatus gives can be sorted", "[gpu[0] for gpu in sorted(gpustatus()[::-1])]"),
    Case("what gpustatus gives is hashable", "len(set(gpustatus()))"),
    Case("what gpustatus gives is a GpuInfo", "[isinstance(gpu, GpuInfo) for gpu in gpustatus()]"),
    Case("the module of all", "package.nvmlgpuselect.gpuselect is gpuselect"),
    Case("devices in a tuple", "gpuselect(devices=(3,))"),
    Case("an empty list of devices", "sorted_ids(count=4, devices=[])"),
    Case("silent, and too few", "[gpuselect(count=9, silent=True), os.environ.get('CUDA_VISIBLE_DEVICES')]"),
]


@pytest.mark.parametrize("case", titled(GPUSELECT_CASES))
def test_gpuselect(make_desk, case):
    ask(make_desk, case, "gpuselect", GPUSELECT)


# nvgpu --------------------------------------------------------------------------------------------

NVGPU = """
import nvgpu, threading
import nvgpu.agent, nvgpu.list_gpus, nvgpu.master, nvgpu.nvml
from concurrent.futures import ThreadPoolExecutor
def attempted(call):
    try: return call()
    except Exception as error: return type(error).__mro__[-3].__name__
def replaced(gpus):
    nvgpu.gpu_info = lambda: [{"index": index, "mem_used_percent": share} for index, share in gpus]
    return nvgpu.available_gpus(), nvgpu.available_gpus(50)
def host(name):
    nvgpu.agent.hostname = name
    return nvgpu.agent.machine_status()["hostname"]
"""
NVGPU_CASES = [
    Case("a loop", "[len(nvgpu.available_gpus()) for _ in range(10)]"),
    Case(
        "bounds",
        "[sorted(nvgpu.available_gpus(bound)) for bound in (0, 1, 50.5, 100, -1, float('inf'))]",
        SOME_USED,
    ),
    Case("a bound by name", "sorted(nvgpu.available_gpus(max_used_percent=99))", SOME_USED),
    Case("a bound that is no number", "nvgpu.available_gpus('20')"),
    Case("no bound", "nvgpu.available_gpus(None)"),
    Case(
        "threads",
        "len({str(info) for info in ThreadPoolExecutor(4).map(lambda _: nvgpu.gpu_info(), range(8))})",
    ),
    Case(
        "the mask is not obeyed",
        "[gpu['index'] for gpu in nvgpu.gpu_info()]",
        env={"CUDA_VISIBLE_DEVICES": "1"},
    ),
    Case("an empty mask is not obeyed", "len(nvgpu.gpu_info())", env={"CUDA_VISIBLE_DEVICES": ""}),
    Case(
        "the types of what it tells",
        "[[type(value).__name__ for value in gpu.values()] for gpu in nvgpu.gpu_info()]",
    ),
    Case("a command of its own", "nvgpu._run_cmd(['echo', 'one\\ntwo'])"),
    Case("a command that fails", "nvgpu._run_cmd(['false'])"),
    Case("another name of the host", "host('gpu7')"),
    Case("a list of GPUs of one's own", "replaced([('4', 3.0), ('7', 30.0)])"),
    Case("a context of the driver", "nvgpu.nvml.nvml_context().__enter__()"),
    Case("no GPU", "attempted(nvgpu.gpu_info) == []", 'driver = "550.163.01"\n'),
    Case(
        "an agent that is not there, twice",
        "nvgpu.master.gather_reports(['http://127.0.0.1:9', 'http://127.0.0.1:9/'])",
    ),
    Case("a command in a tuple", "nvgpu.list_gpus.parse_cmd_roughly(('python', 'a.py'))"),
]


@pytest.mark.parametrize("case", titled(NVGPU_CASES))
def test_nvgpu(make_desk, case):
    ask(make_desk, case, "nvgpu", NVGPU)


# gpu_utilities ------------------------------------------------------------------------------------

GPU_UTILITIES = (
    SORTING
    + """
from concurrent.futures import ThreadPoolExecutor
from gpu_utilities.errors import GPUUtilsError, NoGPUAvailableError
import gpu_utilities.obtainers.nvml as module
class Last(GPUSelector):
    def select(self, gpus, expected_memory_consumption_bytes):
        return gpus[-1]
class Fixed(GPUInfoObtainer):
    def gpus_available(self): return True
    def gpus(self): return listed
class Half(GPUSelector): pass
class Faked:
    def DeviceQuery(self, query):
        memory = {"total": 10, "free": 4, "unit": "MiB"}
        return {"gpu": [{"minor_number": 5, "product_name": "n", "uuid": "u", "fb_memory_usage": memory}]}
class Replaced:
    getInstance = staticmethod(Faked)
def best(amount):
    return GPUSelectorFactory().selector(GPUSelectStrategy.BEST_FIT).select(obtainer.gpus(), amount)
def replaced():
    module.nvidia_smi = Replaced
    return [vars(gpu) for gpu in NvmlGPUInfoObtainer().gpus()]
def caught(kind, amount):
    try: return best(amount)
    except kind as error: return [type(error).__name__, isinstance(error, Exception), str(error)]
"""
)
GPU_UTILITIES_CASES = [
    Case("a loop", "[len(obtainer.gpus()) for _ in range(10)]"),
    Case("a selector of one's own", "vars(Last().select(Fixed().gpus(), 5))"),
    Case("an obtainer of one's own", "pick('WORST_FIT', 5, Fixed().gpus())"),
    Case("a subclass that lacks its method", "Half()"),
    Case(
        "threads",
        "len({str(found()) for _ in ThreadPoolExecutor(4).map(lambda _: obtainer.gpus(), range(8))})",
    ),
    Case("an error is of its kind", "caught(GPUUtilsError, 1 << 60)"),
    Case("more than any has", "caught(NoGPUAvailableError, 1 << 50)"),
    Case("a driver of one's own", "[vars(gpu) for gpu in NvmlGPUInfoObtainer(Faked()).gpus()]"),
    Case("a driver in its place", "replaced()"),
    Case("an order by CUDA_DEVICE_ORDER", "found()", env={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
    Case("a name of a strategy", "[strategy.name for strategy in GPUSelectStrategy]"),
    Case("a GPU in words", "[str(GPU(3, 'a', 5, 2)), GPU(3, 'a', 5, 2).uuid]"),
    Case("a GPU that is more than full", "GPU(0, 'n', 10, 30).free_memory_bytes()"),
    Case(
        "units there and back",
        "[convert(convert(7, UnitSize.GiB, UnitSize.KiB), UnitSize.KiB, UnitSize.GiB) for _ in range(3)]",
    ),
]


@pytest.mark.parametrize("case", titled(GPU_UTILITIES_CASES))
def test_gpu_utilities(make_desk, case):
    ask(make_desk, case, "gpu_utilities", GPU_UTILITIES)


# safe_gpu -----------------------------------------------------------------------------------------

SAFE_GPU = (
    CLAIMING
    + """
class Index:
    def __init__(self, value): self.value = value
    def __index__(self): return self.value
    def __lt__(self, other): return self.value < other
    def __gt__(self, other): return self.value > other
    def __eq__(self, other): return self.value == other
class Owner(safe_gpu.GPUOwner):
    def allocate_gpus(self, numbers):
        self.numbers = numbers
        super().allocate_gpus(numbers)
class Bare(safe_gpu.GPUOwner):
    def allocate_gpus(self, gpu_device_numbers):
        self.devices_taken = [int(number) for number in gpu_device_numbers]
class Released:
    log = []
    def __call__(self, device_no): return device_no
    def release(self, placeholder): self.log.append(placeholder)
def cycle(owner):
    owner.release_gpus()
    return owner.devices_taken, owner.placeholders, Released.log
def replaced(free):
    safe_gpu.get_free_gpus = lambda: free
    return claimed(1)[0]
def elsewhere(path):
    safe_gpu.LOCK_FILENAME = path
    claimed(1)
    return os.path.exists(path)
def number(device_no): return device_no
"""
)
SAFE_GPU_CASES = [
    Case(
        "a subclass with one argument",
        "(lambda owner: [owner.numbers, owner.devices_taken])(Owner(2, number, logger))",
    ),
    Case("a subclass that takes over", "Bare(1, number, logger).devices_taken"),
    Case("owner and release", "cycle(safe_gpu.GPUOwner(2, Released(), logger))"),
    Case("what release says", "[cycle(safe_gpu.GPUOwner(2, Released(), logger)), said][1]"),
    Case("a count that is a bool", "claimed(True)[0]"),
    Case("a count by __index__", "safe_gpu.GPUOwner(Index(2), number, logger).devices_taken"),
    Case("another lock file", "elsewhere(os.path.expanduser('~/deep/er/lock'))"),
    Case("a list of free GPUs of one's own", "replaced(['2', '3'])"),
    Case("claim_gpus and its owner", "[claim_gpus(1, number, logger), safe_gpu.gpu_owner.devices_taken]"),
    Case("the mask before is not obeyed", "claimed(4)[0]", env={"CUDA_VISIBLE_DEVICES": "1"}),
    Case(
        "an order of one's own stays",
        "[claimed(1)[0], os.environ['CUDA_DEVICE_ORDER']]",
        env={"CUDA_DEVICE_ORDER": "FASTEST_FIRST"},
    ),
    Case("too many", "claimed(5)"),
    Case("a placeholder that counts", "[claimed(3, lambda device_no: device_no * 2)[1], len(said)]"),
    Case(
        "a lock for a block",
        "[safe_gpu.SafeLock(open(os.path.expanduser('~/x'), 'w'), logger).__enter__(), said]",
    ),
    Case("a umask for a block", "[safe_gpu.SafeUmask(0o27).__enter__(), os.umask(0)]"),
    Case(
        "a value of nvidia-smi", "safe_gpu.get_nvidia_smi_value(['Attached GPUs : 4', 'x'], 'Attached GPUs')"
    ),
    Case("a value that is not there", "safe_gpu.get_nvidia_smi_value(['x'], 'Display Mode')"),
    Case(
        "arguments by name",
        "safe_gpu.GPUOwner(nb_gpus=1, placeholder_fn=number, logger=logger, debug_sleep=0.01).devices_taken",
    ),
]


@pytest.mark.parametrize("case", titled(SAFE_GPU_CASES))
def test_safe_gpu(make_desk, case):
    ask(make_desk, case, "safe_gpu", SAFE_GPU)


# gpu_scheduler ------------------------------------------------------------------------------------

GPU_SCHEDULER = """
import logging, os, threading
import gpu_scheduler, gpu_scheduler.scheduler, torch
from fractions import Fraction
from gpu_scheduler import GPUScheduler, find_free_gpus, get_gpu_info
logging.disable()
class Small(GPUScheduler):
    def __init__(self, **more):
        super().__init__(memory_free_threshold_gb=1, **more)
def block(use=lambda gpu_ids: None, **asked):
    asked.setdefault("memory_free_threshold_gb", 1)
    asked.setdefault("max_wait_time", 30)
    with GPUScheduler(**asked) as gpu_ids:
        use(gpu_ids)
        return gpu_ids
def compute(gpu_ids):
    kept.append(torch.zeros(1, device=f"cuda:{gpu_ids[0]}"))
kept = []
def threads(count):
    met, ids = threading.Barrier(count), []
    def one(): block(lambda gpu_ids: (ids.extend(gpu_ids), met.wait()))
    all = [threading.Thread(target=one) for _ in range(count)]
    [each.start() for each in all], [each.join() for each in all]
    return sorted(ids)
def nested():
    with GPUScheduler(1) as outer, GPUScheduler(1) as inner:
        return sorted(outer + inner)
def replaced(ids):
    gpu_scheduler.scheduler.find_free_gpus = lambda *_, **__: [{"gpu_id": id} for id in ids]
    return block()
def failed():
    try:
        with GPUScheduler(1): raise ValueError("of the block")
    except ValueError as error: return [str(error), block()]
"""
ONE = '[[device]]\nmodel = "1080Ti"\n'
GPU_SCHEDULER_CASES = [
    (Case("a loop of 100 blocks that use CUDA", "[block(compute) for _ in range(100)][-1]", ONE), [0]),
    (Case("a tensor before the block", "[compute([0]), block(compute)]", ONE), [None, [0]]),
    (Case("a subclass", "[Small(max_wait_time=9).__enter__()]"), [[0]]),
    (Case("threads in blocks of their own", "threads(4)"), [0, 1, 2, 3]),
    (Case("a block within a block", "nested()"), [0, 1]),
    (Case("an error of the block", "failed()"), ["of the block", [0]]),
    (Case("a bound of power that is infinite", "block(power_threshold_w=float('inf'))"), [0]),
    (Case("a tiny bound of utilization", "block(utilization_threshold_percent=1e-7)"), [0]),
    (
        Case(
            "a tiny bound of power",
            "[block(power_threshold_w=1e5), block(power_threshold_w=Fraction(401, 2))]",
        ),
        [[0], [0]],
    ),
    (Case("a bound of memory that is a fraction", "block(memory_free_threshold_gb=Fraction(3, 2))"), [0]),
    (Case("a bound of memory that is tiny", "block(memory_free_threshold_gb=1e-9)"), [0]),
    (Case("some of the ids", "block(specific_gpus=[2, 3], num_gpus=2)"), [2, 3]),
    (Case("a count that is a bool", "block(num_gpus=True)"), [0]),
    (Case("a list of free GPUs of one's own", "replaced([3])"), [3]),
    (
        Case("ids among what the mask shows", "block(num_gpus=2)", IDLE, {"CUDA_VISIBLE_DEVICES": "1,3"}),
        [0, 1],
    ),
    (
        Case(
            "readings that are not there are 0",
            "[gpu['power_draw'] for gpu in get_gpu_info()]",
            '[[device]]\nmodel = "1080Ti"\nunsupported = ["power"]\n',
        ),
        [0.0],
    ),
]


@pytest.mark.parametrize(
    "case, answer", [pytest.param(*each, id=each[0].title) for each in GPU_SCHEDULER_CASES]
)
def test_gpu_scheduler(make_desk, case, answer):
    assert make_desk(case.machine).ask(GPU_SCHEDULER, case.question, env=case.env) == [answer]
