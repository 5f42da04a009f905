"""A machine on which one board is lost, hidden from this user, or split by MIG: the others can be had, and what is
set for them names them to CUDA, which does not count that one."""

import pytest

MIDDLE = {
    "lost": "lost = true",
    "hidden": "handle_result = 4",
    "split": 'mig = ["3g.40gb", "3g.40gb"]',
    "split into nothing": "mig = []",
}
H100 = '[[device]]\nmodel = "H100"\npower_w = 40\n'
USABLE = [0, 2, 3]


@pytest.fixture(params=MIDDLE)
def desk(make_desk, request):
    """Four boards; the second is the odd one."""
    return make_desk(f"{H100}{H100}{MIDDLE[request.param]}\n{H100}{H100}")


# What CUDA then shows, by the numbers of the driver; a tensor on each proves that it can be used.
SHOWN = """
import berth, torch
def shown():
    tensors = [torch.zeros(1, device=f"cuda:{i}") for i in range(torch.cuda.device_count())]
    uuids = [f"GPU-{torch.cuda.get_device_properties(i).uuid}" for i in range(len(tensors))]
    return [device.index for uuid in uuids for device in berth.devices() if device.uuid == uuid]
"""


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    "claim",
    [
        "from safe_gpu import safe_gpu; safe_gpu.GPUOwner({count})",
        "from gpuselect import gpuselect; gpuselect({count})",
        "lease = berth.lease({count}, wait=0)",
    ],
)
def test_cuda_shows_what_was_claimed(desk, claim, count):
    answer = desk.python(SHOWN + claim.format(count=count) + "\nprint(shown())")
    assert answer.status == 0, answer.err
    seen = eval(answer.out)
    assert len(seen) == count and set(seen) <= set(USABLE)
    if "gpuselect" not in claim:  # which chooses at random
        assert seen == USABLE[:count]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_scheduled_gpus_are_those_that_cuda_counts_so(desk, count):
    code = (
        SHOWN + "from gpu_scheduler import GPUScheduler\n"
        f"with GPUScheduler(num_gpus={count}) as ids:\n"
        "    everything = shown()\n"
        "    print([everything[i] for i in ids])\n"
    )
    answer = desk.python(code)
    assert answer.status == 0, answer.err
    assert eval(answer.out) == USABLE[:count]


def test_without_pytorch_a_schedulers_ids_are_cudas_as_well(desk):
    code = "from gpu_scheduler import GPUScheduler\nwith GPUScheduler(num_gpus=3) as ids: print(ids)"
    answer = desk.python(code, env={"PYTHONPATH": None})
    assert answer.out == "[0, 1, 2]\n", answer.err


@pytest.mark.parametrize(
    "words",
    [
        ["berth", "run", "-n", "2", "--"],
        ["gpuselect", "-c", "2", "--"],
        [
            "env",
            "CUDA_DEVICE_ORDER=PCI_BUS_ID",
            "sh",
            "-c",
            'CUDA_VISIBLE_DEVICES=$(berth pick -n 2) "$@"',
            "sh",
        ],
        [
            "env",
            "CUDA_DEVICE_ORDER=PCI_BUS_ID",
            "sh",
            "-c",
            'CUDA_VISIBLE_DEVICES=$(nvgpu available -l 2) "$@"',
            "sh",
        ],
    ],
)
def test_a_command_sees_as_many_as_it_asked_for(desk, words):
    answer = desk.run(*words, "python3", "-c", SHOWN + "print(shown())")
    assert answer.status == 0, answer.err
    seen = eval(answer.out)
    assert len(set(seen)) == 2 and set(seen) <= set(USABLE)


def test_too_few_says_what_is_wrong_with_each(desk):
    (answer,) = desk.ask("from safe_gpu import safe_gpu", "safe_gpu.GPUOwner(4)")
    assert answer["raises"] == "RuntimeError"
    assert answer["text"].startswith("Required 4 GPUs, only found these free: ['0', '2', '3']")


def test_the_workers_of_a_pool_have_the_same_mask(desk):
    code = (
        "import multiprocessing, os\nfrom gpuselect import gpuselect\nvalue = gpuselect(2)\n"
        "def mask(_): return os.environ['CUDA_VISIBLE_DEVICES']\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool: print(value, *set(pool.map(mask, range(9))))\n"
    )
    answer = desk.python(code)
    assert answer.status == 0, answer.err
    assert len(set(answer.out.split())) == 1


@pytest.mark.parametrize("position", ["a number in the lease", "a number of CUDA's own"])
def test_a_lease_without_a_mask_names_no_wrong_card(desk, position):
    lease = "berth.lease(2, wait=0, set_environ={})".format(position == "a number in the lease")
    (told,) = desk.ask("import berth", f"{lease}.torch_device(1)")
    if position == "a number in the lease":
        assert told == "cuda:1"
    else:
        assert told["raises"] == "Usage" and "lost, hidden or split by MIG" in told["text"]
