"""gpu_utilities and gpu_utils: the document's example, extension by a user's own classes, and CUDA's numbers."""

import pytest
from desk import example

MACHINE = """
driver = "550.163.01"
[[device]]
model = "T4"
[[device]]
model = "V100"
minor = 0
[[device.process]]
pid = 4204242
ghost = true
used_mib = 20000
[[device]]
model = "V100"
minor = 1
"""
SETUP = """
from gpu_utilities.obtainers.nvml import NvmlGPUInfoObtainer
from gpu_utils.gpu_selector import GPUSelectorFactory, GPUSelectStrategy
def chosen(strategy, mib):
    return GPUSelectorFactory().selector(strategy).select(NvmlGPUInfoObtainer().gpus(), mib << 20).uuid
def uuids():
    import berth
    return [device.uuid for device in berth.devices()]
"""


def test_the_example(make_desk):
    answer = make_desk(MACHINE).python(example("gpu-utils.md", "selecting by memory"))
    assert answer.status == 0, answer.err
    assert answer.out.startswith("gpu {'cuda_id': ") and answer.out.endswith("} is the best option now!\n")


def test_the_example_where_there_is_no_gpu(make_desk):
    desk = make_desk('library_missing = true\n[[device]]\nmodel = "T4"\n')
    answer = desk.python(example("gpu-utils.md", "selecting by memory"))
    assert answer.status == 1 and answer.err.endswith("Exception: GPUs are unavailable\n")


def test_strategies_choose_by_free_memory(make_desk):
    t4, used, free = make_desk(MACHINE).ask(SETUP, "uuids()")[0]
    answers = make_desk(MACHINE).ask(
        SETUP,
        "chosen(GPUSelectStrategy.BEST_FIT, 800)",
        "chosen(GPUSelectStrategy.BEST_FIT, 13000)",
        "chosen(GPUSelectStrategy.WORST_FIT, 800)",
        "chosen(GPUSelectStrategy.BEST_FIT, 20000)",
    )
    assert answers == [used, t4, free, free]


def test_the_number_is_that_of_cuda_in_this_process(make_desk):
    """Neither the minor number nor the index: CUDA counts the faster cards first."""
    desk = make_desk(MACHINE)
    (t4, first, second), by_cuda = desk.ask(
        SETUP, "uuids()", "{gpu.cuda_id: gpu.uuid for gpu in NvmlGPUInfoObtainer().gpus()}"
    )
    assert by_cuda == {"0": first, "1": second, "2": t4}
    cases = [
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [t4, first, second]),
        ({"CUDA_VISIBLE_DEVICES": "2"}, [t4]),
    ]
    for env, expected in cases:
        assert desk.ask(SETUP, "[gpu.uuid for gpu in NvmlGPUInfoObtainer().gpus()]", env=env) == [expected]


def test_a_leased_gpu_is_not_offered_and_free_is_what_a_program_can_have(make_desk):
    desk = make_desk("2xV100")
    desk.start_python(
        "import berth; l = berth.lease(devices=0); print(flush=True); input()", stdin=-1
    ).stdout.readline()
    memory = "(gpu.max_available_memory_bytes >> 20, gpu.current_memory_utlization_bytes, gpu.free_memory_bytes() >> 20)"
    assert desk.ask(SETUP, f"[{memory} for gpu in NvmlGPUInfoObtainer().gpus()]") == [[[32510, 0, 32510]]]


def test_gpus_that_the_mask_hides_are_not_offered_in_place_of_a_leased_one(make_desk):
    desk = make_desk("4x3090")
    holder = desk.machine.start("berth", "run", "--devices", "2", "--", "sh", "-c", "echo; read x", stdin=-1)
    holder.stdout.readline()
    numbers = "[gpu.cuda_id for gpu in NvmlGPUInfoObtainer().gpus()]"
    for mask in ("2", "-1"):
        assert desk.ask(SETUP, numbers, env={"CUDA_VISIBLE_DEVICES": mask}) == [[]]


def test_where_cuda_cannot_tell_the_drivers_numbers_count_and_cuda_is_asked_again(make_desk):
    setup = SETUP + (
        "from berth_dropin import cuda_order\n"
        "numbers = lambda: [gpu.cuda_id for gpu in NvmlGPUInfoObtainer().gpus()]\n"
        "def broken(program=cuda_order._berth.program):\n"
        "    cuda_order._berth.program = lambda: '/bin/false'\n"
        "    try: return cuda_order.ordinals([]), numbers()\n"
        "    finally: cuda_order._berth.program = program\n"
    )
    env = {"CUDA_VISIBLE_DEVICES": "1"}
    assert make_desk("2xT4").ask(setup, "broken()", "numbers()", env=env) == [[None, [0, 1]], [0]]


def test_both_names_are_the_same_classes(make_desk):
    setup = "import gpu_utilities.errors as a, gpu_utils.errors as b, gpu_utils.utils.bytes as c, gpu_utilities.utils.bytes as d"
    assert make_desk("1xT4").ask(setup, "a is b and c is d") == [True]


def test_a_users_own_obtainer_and_selector_work_with_the_rest(make_desk):
    setup = """
from gpu_utilities.gpu import GPU
from gpu_utilities.gpu_info_obtainer import GPUInfoObtainer
from gpu_utils.gpu_selector import GPUSelector, GPUSelectorFactory, GPUSelectStrategy
from gpu_utilities.obtainers.nvml import NvmlGPUInfoObtainer
class Mine(GPUInfoObtainer):
    def gpus_available(self): return True
    def gpus(self): return [GPU(0, "small", 10, 0), GPU(1, "large", 100, 0)]
class Last(GPUSelector):
    def select(self, gpus, expected_memory_consumption_bytes): return gpus[-1]
"""
    assert make_desk("2xT4").ask(
        setup,
        "GPUSelectorFactory().selector(GPUSelectStrategy.BEST_FIT).select(Mine().gpus(), 10).name",
        "Last().select(NvmlGPUInfoObtainer().gpus(), 1).cuda_id",
    ) == ["large", 1]


def test_the_older_obtainer_warns_and_allocates_nothing(make_desk):
    desk = make_desk("1xT4")
    answer = desk.python(
        "import warnings; warnings.simplefilter('error')\n"
        "from gpu_utilities.obtainers.torch import TorchGPUInfoObtainer\n"
        "try: TorchGPUInfoObtainer()\n"
        "except DeprecationWarning as warning: print(warning)\n"
        "warnings.simplefilter('ignore')\n"
        "found = TorchGPUInfoObtainer()\n"
        "print(found.gpus_available(), found.gpus()[0].current_memory_utlization_bytes)\n"
    )
    assert answer.out == "TorchGPUInfoObtainer is deprecated since 0.2.0, use NvmlGPUInfoObtainer\nTrue 0\n"


@pytest.mark.parametrize(
    "question, kinds",
    [
        ("GPUSelectorFactory().selector(GPUSelectStrategy.RANDOM).select([], 1)", "EmptyGPUListError"),
        ("chosen(GPUSelectStrategy.RANDOM, 1 << 30)", "NoGPUAvailableError"),
    ],
)
def test_errors(make_desk, question, kinds):
    (answer,) = make_desk(MACHINE).ask(SETUP, question)
    assert answer["kinds"][:3] == [kinds, "GPUUtilsError", "Exception"]


def test_an_object_to_ask_in_place_of_the_driver(make_desk):
    """As a program's own tests hand one over."""
    setup = (
        SETUP
        + """
class Smi:
    def DeviceQuery(self, asked):
        memory = {"total": 16, "free": 10, "used": 6, "unit": "MiB"}
        return {"gpu": [{"minor_number": "3", "product_name": "T4", "uuid": "GPU-1", "fb_memory_usage": memory}]}
one = NvmlGPUInfoObtainer(nvsmi=Smi())
"""
    )
    questions = ["one.gpus_available()", "vars(one.gpus()[0])", "one.nvsmi.__class__.__name__"]
    expected = {"cuda_id": 3, "name": "T4", "uuid": "GPU-1"}
    expected |= {"max_available_memory_bytes": 16 << 20, "current_memory_utlization_bytes": 6 << 20}
    assert make_desk("1xT4").ask(setup, *questions) == [True, expected, "Smi"]


def test_the_older_obtainer_where_versions_before_0_2_have_it(make_desk):
    setup = "import gpu_utilities.gpu_info_obtainer as old, gpu_utilities.obtainers.torch as new"
    same, wrong = make_desk("1xT4").ask(
        setup, "old.TorchGPUInfoObtainer is new.TorchGPUInfoObtainer", "old.Nothing"
    )
    assert same is True and wrong["raises"] == "AttributeError"
