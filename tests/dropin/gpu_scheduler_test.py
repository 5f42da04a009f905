"""gpu_scheduler: its document's examples, what it holds, and the lock files of its original."""

import fcntl
import os
import signal

import pytest
from desk import example
from simulated_machine import DEADLINE_S

LAB = """
[[device]]
model = "T4"
[[device]]
model = "H100"
power_w = 40
[[device]]
model = "H100"
power_w = 90
[[device]]
model = "H100"
power_w = 40
utilization = 30
[[device]]
model = "H100"
power_w = 40
"""
# As PyTorch counts: the four H100 are 0 to 3, the T4 is 4.


def prelude() -> str:
    """All but how often it looks is as a user has it."""
    return (
        "import berth_dropin.scheduler_locks as files\n"
        "import gpu_scheduler.scheduler\ngpu_scheduler.scheduler.RETRY_S = 0.1\n"
        "import torch\nmodel = torch.zeros(1)\nfrom gpu_scheduler import GPUScheduler\n"
    )


def holding(desk, arguments: str = "", code: str = "print(*ids, flush=True); input()"):
    """A process inside the block; its first line has the ids."""
    script = prelude() + f"with GPUScheduler({arguments}) as ids:\n    {code}\n"
    return desk.start_python(script, stdin=-1)


def block(desk, arguments: str, code: str = "print(*ids)") -> str:
    answer = desk.python(prelude() + f"with GPUScheduler({arguments}) as ids:\n    {code}\n")
    assert answer.status == 0, answer.err
    return answer.out.strip()


@pytest.mark.parametrize(
    "title, after",
    [
        ("quick start", "print(model.device, gpu_ids, torch.cuda.current_device())"),
        ("device handling", "print(device2, device3, torch.cuda.current_device())"),
        ("basic usage", "print(model.device)"),
        ("debug mode", "print(gpu_ids)"),
        ("git submodule", "print(gpu_ids)"),
    ],
)
def test_an_example_with_one_gpu(make_desk, title, after):
    desk = make_desk(LAB)
    # The block of the last example holds only a comment; a body is what its reader is to put there.
    text = example("gpu-scheduler.md", title).rstrip() + f"\n    {after}\n"
    answer = desk.python(prelude() + text)
    assert answer.status == 0, answer.err
    assert (
        answer.out.splitlines()[-1]
        in {
            "quick start": ["cuda [0] 0", "cuda [3] 3"],
            "device handling": ["cuda:0 cuda 0", "cuda:3 cuda 3"],
            "basic usage": ["cuda"],
            "debug mode": ["[4]"],
            "git submodule": ["[0]", "[3]"],
        }[title]
    )
    assert desk.leased() == []


def test_the_example_with_several_gpus(make_desk):
    desk = make_desk(LAB)
    answer = desk.python(
        prelude() + example("gpu-scheduler.md", "multiple GPUs") + "    print(device1, device2)\n"
    )
    assert answer.out == "Using GPUs: [0, 3]\ncuda:0 cuda:3\n", answer.err


def test_the_example_of_information(make_desk):
    desk = make_desk(LAB)
    answer = desk.python(prelude() + example("gpu-scheduler.md", "GPU information"))
    assert answer.status == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[:4] == [
        "GPU 0: NVIDIA H100 80GB HBM3",
        "  Memory: 81008MB free / 81559MB total",
        "  Power: 40.0W / 700.0W",
        "  Utilization: 0%",
    ]
    assert lines[-1] == "Found 2 free GPUs"


def test_ids_are_those_of_pytorch_and_the_mask_is_not_touched(make_desk):
    desk = make_desk(LAB)
    code = "import os, berth; print(ids, os.environ.get('CUDA_VISIBLE_DEVICES'), torch.cuda.get_device_name(ids[0]))"
    assert block(desk, "specific_gpus=[4], memory_free_threshold_gb=1", code) == "[4] None Tesla T4"
    env = {"CUDA_VISIBLE_DEVICES": "1,4"}
    assert desk.python(prelude() + "print(__import__('gpu_scheduler').get_gpu_names())", env=env).out == (
        "[{'gpu_id': 0, 'name': 'NVIDIA H100 80GB HBM3'}, {'gpu_id': 1, 'name': 'Tesla T4'}]\n"
    )


def test_without_pytorch_ids_count_by_bus_and_cuda_is_told_so(make_desk):
    desk = make_desk(LAB)
    code = "import gpu_scheduler, os; print(gpu_scheduler.get_gpu_names()[0]['name'], os.environ['CUDA_DEVICE_ORDER'])"
    assert desk.python(code, env={"PYTHONPATH": None}).out == "Tesla T4 PCI_BUS_ID\n"


def test_the_default_device_is_set_in_the_block_and_restored_after(make_desk):
    desk = make_desk(LAB)
    code = "print(torch.cuda.current_device())"
    answer = desk.python(
        prelude() + "torch.cuda.set_device(1)\n"
        f"with GPUScheduler(specific_gpus=[3]) as ids:\n    {code}\n{code}\n"
    )
    assert answer.out == "3\n1\n"


def test_the_lease_lasts_from_enter_to_exit(make_desk):
    desk = make_desk(LAB)
    process = holding(desk, "num_gpus=2")
    assert process.stdout.readline() == "0 3\n"
    assert desk.leased() == [1, 4]
    process.communicate("\n")
    assert desk.leased() == []


def test_who_waits_gets_the_gpu_when_the_block_ends(make_desk):
    desk = make_desk("1xH100")
    first = holding(desk)
    first.stdout.readline()
    second = holding(desk)
    assert "Waiting for 1 GPUs" in second.stderr.readline()
    first.send_signal(signal.SIGKILL)
    assert second.stdout.readline() == "0\n"


@pytest.mark.parametrize("for_ever", ["math.inf", "sys.maxsize"])
def test_a_wait_for_ever_however_it_is_written(make_desk, for_ever):
    desk = make_desk("1xH100")
    answer = desk.python(
        prelude() + f"import math, sys\nwith GPUScheduler(max_wait_time={for_ever}) as ids: print(ids)"
    )
    assert answer.out == "[0]\n", answer.err


def test_a_wait_that_runs_out(make_desk):
    desk = make_desk("1xH100")
    holding(desk).stdout.readline()
    answer = desk.python(prelude() + "with GPUScheduler(max_wait_time=0.2): pass")
    assert answer.status == 1
    assert (
        "TimeoutError: Couldn't acquire 1 GPUs within 0.2 seconds: " in answer.err
        and "leased by" in answer.err
    )


@pytest.mark.parametrize("arguments", ["num_gpus=9", "specific_gpus=[99]", "memory_free_threshold_gb=99"])
def test_what_no_wait_can_bring_is_refused_at_once(make_desk, arguments):
    desk = make_desk("1xH100")
    answer = desk.python(prelude() + f"with GPUScheduler({arguments}): pass")
    assert answer.status == 1 and "TimeoutError: Couldn't acquire " in answer.err


def test_thresholds_that_are_none_are_not_asked(make_desk):
    desk = make_desk(LAB)
    asked = "num_gpus=4, power_threshold_w=None, utilization_threshold_percent=None"
    assert block(desk, asked) == "0 1 2 3"
    assert block(desk, "num_gpus=3, utilization_threshold_percent=100") == "0 2 3"


def test_a_reading_that_a_board_lacks_is_not_held_against_it(make_desk):
    desk = make_desk('[[device]]\nmodel = "H100"\nunsupported = ["power", "utilization"]\n')
    assert block(desk, "") == "0"
    assert desk.ask("import gpu_scheduler as g", "len(g.find_free_gpus(power_threshold_w=1))") == [1]


def test_debug_mode_takes_what_is_in_use_but_not_what_is_held(make_desk):
    desk = make_desk(
        "[[device]]\nmodel = 'H100'\nutilization = 99\n[[device.process]]\npid = 4204242\nghost = true\n"
    )
    process = holding(desk, "debug_mode=True")
    assert process.stdout.readline() == "0\n"
    answer = desk.python(prelude() + "with GPUScheduler(debug_mode=True): pass")
    assert "RuntimeError: 🔧 DEBUG MODE: Could only acquire 0/1 GPUs" in answer.err


def test_banned_gpus_are_never_taken(make_desk):
    desk = make_desk("2xH100+2xT4")
    bans = "import gpu_scheduler.gpu_info as info; info.BANNED_GPUS.append(0); info.BANNED_GPU_NAMES.append('T4')\n"
    answer = desk.python(
        prelude() + bans + "with GPUScheduler(memory_free_threshold_gb=1) as ids: print(ids)"
    )
    assert answer.out == "[1]\n"


def test_what_is_free(make_desk):
    desk = make_desk(LAB)
    holder = holding(desk, "specific_gpus=[0]")
    holder.stdout.readline()
    found = "[gpu['gpu_id'] for gpu in g.find_free_gpus({})]"
    assert desk.ask(
        "import gpu_scheduler as g, gpu_scheduler.gpu_info as i",
        found.format(""),
        found.format("memory_free_threshold_gb=20, power_threshold_w=80, utilization_threshold_percent=None"),
        "[i.is_gpu_locked(0), i.is_gpu_locked(1)]",
    ) == [[1, 3, 4], [2, 3], [True, False]]


def test_a_quadro_rtx_6000_is_banned_unless_a_file_says_otherwise(make_desk):
    """As in the original."""
    desk = make_desk("1xT4")
    names = "i.BANNED_GPU_NAMES"
    (desk.directory / "banned_gpus.yaml").write_text("banned_gpus: [3]\n")
    setup = "import gpu_scheduler.gpu_info as i"
    assert desk.ask(setup, names) == [["Quadro RTX 6000"]]
    env = {"BANNED_GPUS_YAML": desk.directory / "banned_gpus.yaml"}
    assert desk.ask(setup, names, "i.BANNED_GPUS", env=env) == [[], [3]]


@pytest.mark.parametrize(
    "text, without, said",
    [
        ("banned_gpus: [3\n", "", "while parsing"),
        ("- 3\n", "", "list"),
        ("banned_gpus: 3\n", "", "int"),
        ("banned_gpus: [3]\n", "import sys; sys.modules['yaml'] = None\n", "yaml"),
    ],
)
def test_a_file_of_banned_gpus_that_cannot_be_read_is_told_and_bans_nothing(make_desk, text, without, said):
    """As in the original: the program goes on."""
    desk = make_desk("1xT4")
    (desk.machine.directory / "home/banned_gpus.yaml").write_text(text)
    answer = desk.python(
        without + "import gpu_scheduler.gpu_info as i; print(i.BANNED_GPUS, i.BANNED_GPU_NAMES)"
    )
    assert (answer.status, answer.out) == (0, "[] []\n"), answer.err
    assert "Error loading banned GPUs from " in answer.err and said in answer.err


FAKED = """
import gpu_scheduler, gpu_scheduler.gpu_info as info, json, subprocess
from unittest import mock
def told(*ids, name="Fake 9000", **more):
    one = {"name": name, "memory_used": 0, "memory_total": 90000, "memory_free": 90000, "power_draw": 10.0,
           "power_limit": 300.0, "utilization": 0}
    return mock.patch("gpu_scheduler.gpu_info.get_gpu_info", lambda: [{"gpu_id": each, **one, **more} for each in ids])
def block(**asked):
    with gpu_scheduler.GPUScheduler(max_wait_time=0, **asked) as ids:
        listed = json.loads(subprocess.check_output(["berth", "list", "--json"]))["devices"]
        return ids, [device["index"] for device in listed if device["leases"]]
def within(patch, ask):
    with patch: return ask()
"""


@pytest.mark.parametrize("machine", ["2xH100", 'library_missing = true\n[[device]]\nmodel = "T4"\n'])
def test_a_test_of_a_program_has_the_gpus_that_it_tells_of_and_leases_none(make_desk, machine):
    leases = "ids" if "missing" in machine else "block"
    setup = FAKED.replace(
        "listed = json.loads", "listed = [] and json.loads" if leases == "ids" else "listed = json.loads"
    )
    if leases == "ids":
        setup = setup.replace('["berth", "list", "--json"]))["devices"]', '["true"]) or "0")')
    found, first, both, short, busy, unbanned = make_desk(machine).ask(
        setup,
        "within(told(0, 7), lambda: [gpu['gpu_id'] for gpu in gpu_scheduler.find_free_gpus(20, 80, 1)])",
        "within(told(5), block)",
        "within(told(0, 1), lambda: block(num_gpus=2))",
        "within(told(5), lambda: block(num_gpus=2))",
        "within(told(5, utilization=50), block)",
        "within(told(5, name='Quadro RTX 6000'), lambda: info.find_free_gpus())",
    )
    assert found == [0, 7] and first == [[5], []] and both == [[0, 1], []]
    assert short["raises"] == busy["raises"] == "TimeoutError"
    assert unbanned == []


def test_a_program_that_tells_of_some_of_its_gpus_gets_of_those(make_desk):
    desk = make_desk("3xH100")
    setup = (
        FAKED
        + "real = info.get_gpu_info\nlast = mock.patch('gpu_scheduler.gpu_info.get_gpu_info', lambda: real()[2:])\n"
    )
    part = (
        "mock.patch('gpu_scheduler.gpu_info.get_gpu_utilization', lambda: [{'gpu_id': 0, 'utilization': 99}])"
    )
    answers = desk.ask(
        setup,
        "within(last, lambda: block(power_threshold_w=None))",
        f"within({part}, lambda: block(power_threshold_w=None))",
        f"within({part}, lambda: [gpu['utilization'] for gpu in info.get_gpu_info()])",
    )
    assert answers == [[[2], [2]], [[1], [1]], [99, 0, 0]]


def test_a_count_may_be_a_float_and_no_reading_is_below_zero(make_desk):
    desk = make_desk("2xH100")
    asked = "memory_free_threshold_gb=1, power_threshold_w=None, max_wait_time=0"
    one, two, text, util, power = desk.ask(
        "from gpu_scheduler import GPUScheduler",
        f"GPUScheduler({asked}, num_gpus=1.0).__enter__()",
        f"GPUScheduler({asked}, num_gpus=1.5)._give_back() or GPUScheduler({asked}, num_gpus=1.5).num_gpus",
        "GPUScheduler(num_gpus='1')",
        f"GPUScheduler({asked}, utilization_threshold_percent=-1).__enter__()",
        "GPUScheduler(memory_free_threshold_gb=1, power_threshold_w=-1, max_wait_time=0).__enter__()",
    )
    assert (one, two, text["raises"]) == ([0], 2, "TypeError")
    assert util["raises"] == power["raises"] == "TimeoutError"


def test_what_the_block_has_is_told_by_the_scheduler(make_desk):
    desk = make_desk("2xH100")
    code = (
        "s = GPUScheduler(num_gpus=2)\nprint(s.gpu_ids, s.locks, s.prev_device)\n"
        "with s: print(s.gpu_ids, len(s.locks) > 0, s.prev_device)\n"
        "print(s.gpu_ids, s.locks, s.prev_device)\n"
        "import gpu_scheduler; print(gpu_scheduler.__version__)\n"
    )
    answer = desk.python(prelude() + code)
    assert answer.out == "[] [] None\n[0, 1] True 0\n[] [] None\n0.1.0\n", answer.err


def test_without_a_driver_there_is_no_gpu_and_a_script_goes_on(make_desk):
    desk = make_desk('library_missing = true\n[[device]]\nmodel = "T4"\n')
    setup = "import gpu_scheduler as g, gpu_scheduler.utils as u"
    names = "get_gpu_info get_gpu_names get_gpu_memory_usage get_gpu_power_usage get_gpu_utilization find_free_gpus"
    asked = [f"g.{name}()" for name in names.split()]
    answers = desk.ask(
        setup, *asked, "g.get_total_num_gpus()", "u.get_nvidia_smi_data()", "g.GPUScheduler().__enter__()"
    )
    assert answers[:-1] == [[]] * len(asked) + [0, {}]
    assert answers[-1]["raises"] == "TimeoutError" and "driver" in answers[-1]["text"]


def test_its_lines_are_in_the_log_of_the_program(make_desk):
    """Which has set it up before, as with the original."""
    desk = make_desk("1xH100")
    code = (
        "import logging; logging.basicConfig(filename='own.log', level=logging.INFO, format='%(message)s')\n"
    )
    answer = desk.python(code + prelude() + "with GPUScheduler(): pass\n")
    assert (answer.status, answer.err) == (0, "")
    assert "Acquired 1 GPUs: [0]\n" in (desk.directory / "own.log").read_text()


def test_what_programs_import_from_utils(make_desk):
    desk = make_desk("2xT4")
    setup = "import torch\nfrom gpu_scheduler.utils import *\nfrom gpu_scheduler import utils\ndata = utils.get_nvidia_smi_data()"
    numbers, matched, none = desk.ask(
        setup,
        "[safe_int_convert(v, 7) for v in (' 12.9 ', 'N/A', '[Not Supported]', None)] + [safe_float_convert('1.5')]",
        "[match_pytorch_to_nvidia(i, data)['nvidia_index'] for i in range(2)]",
        "match_pytorch_to_nvidia(5, data)",
    )
    assert (numbers, matched, none) == ([12, 7, 7, 7, 1.5], [0, 1], None)


# The lock files of the original -------------------------------------------------------------------


def original_lock(directory, gpu_id: int):
    """Held as the original holds it."""
    directory.mkdir(exist_ok=True)
    file = open(directory / f"gpu_{gpu_id}.lock", "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


@pytest.mark.parametrize("place", ["home/.gpu_locks", "home/newer_gpu_locks"])
def test_a_gpu_that_an_original_has_locked_is_passed_over(make_desk, place):
    desk = make_desk("2xH100")
    with original_lock(desk.machine.directory / place, 0):
        assert block(desk, "") == "1"


def test_who_waits_for_a_lock_of_an_original_gets_the_gpu_after_it(make_desk):
    desk = make_desk("1xH100")
    file = original_lock(desk.machine.directory / "home/.gpu_locks", 0)
    process = holding(desk)
    assert "GPU 0 is locked by another gpu_scheduler" in process.stderr.readline()
    file.close()
    assert process.stdout.readline() == "0\n"


def test_our_lock_is_one_that_the_original_respects(make_desk):
    desk = make_desk("1xH100")
    process = holding(desk)
    process.stdout.readline()
    for place in ("home/.gpu_locks", "home/newer_gpu_locks"):
        with open(desk.machine.directory / place / "gpu_0.lock") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    process.communicate("\n")
    with open(desk.machine.directory / "home/.gpu_locks/gpu_0.lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_lock_counts_only_on_the_file_that_its_name_leads_to(make_desk):
    """The original removes a file after it has let go of it: whoever opened it before then locks a file without a
    name. The test removes it at that very moment."""
    desk = make_desk("1xH100")
    setup = prelude() + (
        "import fcntl, os\nreal, removed = fcntl.flock, []\n"
        "def flock(descriptor, how):\n"
        "    if not removed:\n"
        "        removed.append(os.readlink(f'/proc/self/fd/{descriptor}'))\n"
        "        os.unlink(removed[0])\n"
        "    return real(descriptor, how)\n"
        "fcntl.flock = flock\n"
        "taken = files.take(0, os.path.expanduser('~/.gpu_locks'))\n"
    )
    there = "[os.fstat(t).st_nlink for t in taken], os.path.exists(removed[0])"
    assert desk.ask(setup, f"[{there}]") == [[[1, 1], True]]


def test_a_file_that_is_removed_after_it_was_locked_is_locked_anew(make_desk):
    """The same a moment later: the original comes to remove it when ours has seen that the name is right."""
    setup = (
        "import os, types, berth_dropin.scheduler_locks as files\n"
        "path, removed = os.path.expanduser('~/.gpu_locks/gpu_0.lock'), []\n"
        "def settle(_):\n"
        "    if not removed: removed.append(os.unlink(path))\n"
        "files.time = types.SimpleNamespace(sleep=settle)\n"
        "taken = files.take(0, os.path.dirname(path))\n"
    )
    assert make_desk("1xH100").ask(setup, "[os.fstat(t).st_nlink for t in taken], len(removed)") == [
        [[1, 1], 1]
    ]


# The other drop-ins beside an original that holds an idle GPU -------------------------------------

PLACES = ["home/.gpu_locks", "home/newer_gpu_locks"]
# The H100 with PyTorch's number 0 has the driver's number 1.
IDLE_LAB = LAB.replace("utilization = 30\n", "").replace("power_w = 90\n", "")


@pytest.mark.parametrize("place", PLACES)
def test_what_an_original_has_locked_is_on_offer_nowhere(make_desk, place):
    desk = make_desk(IDLE_LAB)
    with original_lock(desk.machine.directory / place, 0):
        setup = "import nvgpu, gpuselect\nfrom safe_gpu import safe_gpu\nfrom nvgpu.list_gpus import device_statuses\n"
        setup += "from gpu_utilities.obtainers.nvml import NvmlGPUInfoObtainer as Obtainer"
        available, rows, free, obtained, looked, taken, owned = desk.ask(
            setup,
            "sorted(nvgpu.available_gpus())",
            "[[row['is_available'], row['users']] for row in device_statuses()]",
            "safe_gpu.get_free_gpus()",
            "sorted(gpu.cuda_id for gpu in Obtainer().gpus())",
            "gpuselect.gpuselect(devices=1, set_cvd=False)",
            "gpuselect.gpuselect(count=3, name='H100')",
            "safe_gpu.GPUOwner(4, id)",
        )
    assert (available, free, obtained) == (["0", "2", "3", "4"], ["0", "2", "3", "4"], [1, 2, 3, 4])
    assert rows[:2] == [[True, ""], [False, "?"]]
    locked = "GPU 1: locked by an original gpu_scheduler"
    assert looked["text"] == f"Requested 1 GPUs, but 0 matched filters; {locked}"
    assert taken == "2,3,4"
    assert "only found these free: ['0']" in owned["text"] and locked in owned["text"]


@pytest.mark.parametrize("words", [["gpuselect", "-d", "1", "--", "true"], ["gpuselect", "-d", "1"]])
def test_the_command_gpuselect_does_not_take_it_either(make_desk, words):
    desk = make_desk(IDLE_LAB)
    with original_lock(desk.machine.directory / PLACES[0], 0):
        answer = desk.run(*words)
    assert (answer.status, answer.out) == (1, "")
    assert "locked by an original gpu_scheduler" in answer.err


def is_locked(path) -> bool:
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize(
    "claim",
    ["import gpuselect; gpuselect.gpuselect(devices=2)", "from safe_gpu import *; claim_gpus(2, id)"],
)
def test_gpu_scheduler_sees_what_the_others_lease(make_desk, claim):
    """Idle as it is: by its own lock. GPU 2 of the driver is PyTorch's 1; safe_gpu takes the driver's 0 and 1."""
    desk = make_desk(IDLE_LAB)
    place = desk.machine.directory / "home/.gpu_locks"
    place.mkdir()
    process = desk.start_python(f"{claim}; print(flush=True); input()", stdin=-1)
    process.stdout.readline()
    held = {int(path.stem.partition("_")[2]) for path in place.iterdir() if is_locked(path)}
    assert held == ({1} if "gpuselect" in claim else {0, 4})
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not any(is_locked(path) for path in place.iterdir())


def test_a_later_selection_and_a_release_give_the_locks_back(make_desk):
    desk = make_desk("2xH100")
    (desk.machine.directory / "home/.gpu_locks").mkdir()
    setup = (
        "import berth_dropin.scheduler_locks as locks\nfrom gpuselect import gpuselect\nfrom safe_gpu import safe_gpu\n"
        "held = lambda: [locks.is_held(i, locks.DIRECTORY) for i in range(2)]"
    )
    first, second, both, one = desk.ask(
        setup,
        "gpuselect(devices=0) and held()",
        "gpuselect(devices=1) and held()",
        "safe_gpu.claim_gpus(1, id) or held()",
        "safe_gpu.release_gpus() or held()",
    )
    assert (first, second, both, one) == ([True, False], [False, True], [True, True], [False, True])


def test_what_only_looks_makes_nothing(make_desk):
    desk = make_desk("2xH100")
    assert desk.ask("from gpuselect import gpuselect", "gpuselect(devices=0, set_cvd=False)") == ["0"]
    assert not any((desk.machine.directory / place).exists() for place in PLACES)


def test_who_shares_a_gpu_takes_no_lock_of_it(make_desk):
    desk = make_desk("1xH100")
    (desk.machine.directory / "home/.gpu_locks").mkdir()
    script = "from gpuselect import gpuselect; print(gpuselect(processes=1), flush=True); input()"
    assert [desk.start_python(script, stdin=-1).stdout.readline() for _ in range(2)] == ["0\n", "0\n"]


def test_an_original_that_locks_between_the_look_and_the_lease_keeps_its_gpu(make_desk):
    desk = make_desk("2xH100")
    setup = (
        "import berth_dropin.scheduler_locks as locks\nfrom safe_gpu import safe_gpu\n"
        "real = locks.locked\n"
        "def first_look(gpus):\n    locks.locked = real\n    return set()\n"
        "locks.locked = first_look"
    )
    with original_lock(desk.machine.directory / PLACES[0], 0):
        assert desk.ask(setup, "safe_gpu.GPUOwner(1, id).devices_taken") == [[1]]


# The command --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, status, out, err",
    [
        ([], 0, "0\n", ""),
        (["--num-gpus", "3"], 0, "0,2,3\n", ""),
        (["--num-gpus=4", "--power-threshold-w=100"], 0, "0,1,2,3\n", ""),
        (
            ["--num-gpus=4", "--utilization-threshold-percent=10", "--no-wait"],
            1,
            "",
            "Error: Found only 2 free GPU(s), but 4 requested\n",
        ),
        (
            ["--memory-threshold-gb", "99", "--no-wait"],
            1,
            "",
            "Error: Found only 0 free GPU(s), but 1 requested\n",
        ),
    ],
)
def test_the_command(make_desk, words, status, out, err):
    answer = make_desk(LAB).run("gpu-scheduler", *words)
    assert (answer.status, answer.out, answer.err) == (status, out, err)


def test_the_command_waits_and_says_so(make_desk):
    idle = '[[device]]\nmodel = "H100"\n'
    desk = make_desk(f"{idle}{idle}process = [{{pid = {os.getpid()}, used_mib = 70000}}]\n")
    waiting = desk.machine.start(
        "gpu-scheduler", "--num-gpus", "2", "--poll-interval", "0.1", cwd=desk.directory
    )
    said = waiting.stderr.readline()
    assert said.startswith("Waiting for 2 free GPU(s)... Found 1 free GPU(s).")
    desk.machine.change(idle + idle)
    assert waiting.communicate(timeout=DEADLINE_S)[0] == "0,1\n"
    assert waiting.returncode == 0


def test_the_command_waits_no_longer_than_it_was_told(make_desk):
    answer = make_desk("1xH100").run(
        "gpu-scheduler", "--num-gpus", "2", "--max-wait-time", "0.1", "--poll-interval", "0.1"
    )
    assert (answer.status, answer.out) == (1, "")
    # Whether it has waited depends on how long the first look took.
    error = answer.err.splitlines()[-1]
    assert error == "Error: Timeout after 0.1 seconds. Found only 1 free GPU(s), but 2 requested"


def test_the_command_without_a_driver(make_desk):
    answer = make_desk('library_missing = true\n[[device]]\nmodel = "T4"\n').run("gpu-scheduler")
    assert (answer.status, answer.out) == (1, "") and answer.err.startswith("Error: ")


def test_an_error_of_cuda_at_the_end_of_the_block_keeps_nothing(desk):
    code = (
        prelude()
        + "import berth\n"
        + "def broken(index): raise RuntimeError('CUDA error: an illegal memory access was encountered')\n"
        + "try:\n"
        + "    with GPUScheduler(): torch.cuda.set_device = broken\n"
        + "except RuntimeError as error: print(error)\n"
        + "print(sum(verdict.free for verdict in berth.why()))\n"
    )
    answer = desk.python(code)
    assert answer.out == "CUDA error: an illegal memory access was encountered\n4\n", answer.err


# A process is no stranger to its own request ------------------------------------------------------

ONE = '[[device]]\nmodel = "3090"\n'
TENSOR = "import torch; kept = torch.zeros(1, device='cuda:0')\n"


@pytest.mark.parametrize(
    "before",
    [
        "from gpuselect import gpuselect; gpuselect()",
        "from safe_gpu import safe_gpu; safe_gpu.claim_gpus()",
        "from safe_gpu import safe_gpu; owner = safe_gpu.GPUOwner(1, lambda device_no: device_no)",
        "import berth; lease = berth.lease()",
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', "
        + repr(TENSOR + "print(flush=True); input()")
        + "], stdin=-1, stdout=-1); child.stdout.readline()",
    ],
)
def test_what_the_program_has_already_is_not_in_its_way(make_desk, before):
    """A tool before, a lease before, or a child that computes."""
    code = prelude() + before + "\nwith GPUScheduler(1, max_wait_time=60) as ids: print(ids)\n"
    answer = make_desk(ONE).python(code)
    assert answer.out.splitlines()[-1:] == ["[0]"], answer.err


@pytest.mark.parametrize("tool", ["gpuselect", "berth run"])
def test_a_tensor_of_the_program_is_not_in_its_way_inside_of_a_lease(make_desk, tool):
    desk = make_desk(ONE)
    script = prelude() + TENSOR + "with GPUScheduler(1, max_wait_time=60) as ids: print(ids)\n"
    (desk.directory / "script.py").write_text(script)
    answer = desk.run(*tool.split(), "--", "python3", "script.py")
    assert answer.out == "[0]\n", answer.err


def test_a_child_of_a_program_that_has_selected_has_its_part(make_desk):
    code = (
        "from gpuselect import gpuselect\nimport subprocess, sys\ngpuselect()\n"
        "child = 'from gpu_scheduler import GPUScheduler\\nwith GPUScheduler(1) as ids: print(ids, flush=True)'\n"
        "subprocess.run([sys.executable, '-c', child], check=True)\n"
    )
    answer = make_desk(ONE).python(code)
    assert answer.out == "[0]\n", answer.err


def test_who_would_wait_for_his_own_block_is_told(make_desk):
    code = prelude() + "with GPUScheduler(1):\n    GPUScheduler(1).__enter__()\n"
    answer = make_desk(ONE).python(code)
    assert "TimeoutError" in answer.err and "it would wait for itself" in answer.err


def test_what_is_a_part_of_a_selection_outlives_the_next_one(make_desk):
    """gpuselect() again gives back what it had, but not under a block that is inside of it."""
    code = prelude() + (
        "from gpuselect import gpuselect\nimport subprocess, json\n"
        "def leased():\n"
        "    told = json.loads(subprocess.check_output(['berth', 'list', '--json']))['devices']\n"
        "    return [device['index'] for device in told if device['leases']]\n"
        "gpuselect(devices=0)\n"
        "block = GPUScheduler(1, max_wait_time=60)\n"
        "block.__enter__()\n"
        "from berth_dropin import mask; mask.check_effective = lambda: None\n"
        "gpuselect(devices=1)\nprint(leased())\nblock.__exit__(None, None, None)\nprint(leased())\n"
    )
    answer = make_desk('[[device]]\nmodel = "3090"\ncount = 2\n').python(code)
    assert answer.out == "[0, 1]\n[1]\n", answer.err


@pytest.mark.parametrize(
    "broken", ["sys.executable = None", "sys.executable = sys.argv[0]; sys.frozen = True"]
)
def test_a_program_without_an_interpreter_of_its_own_is_not_started_again(make_desk, broken):
    code = (
        "import sys; print('started', flush=True); "
        + broken
        + "\n"
        + prelude()
        + "with GPUScheduler(1) as ids: print(ids)\n"
    )
    code += "from gpu_utilities.obtainers.nvml import NvmlGPUInfoObtainer\nprint([gpu.cuda_id for gpu in NvmlGPUInfoObtainer().gpus()])\n"
    desk = make_desk(ONE)
    (desk.directory / "frozen.py").write_text("#!/usr/bin/env python3\n" + code)
    (desk.directory / "frozen.py").chmod(0o755)
    answer = desk.run(desk.directory / "frozen.py")
    assert answer.out == "started\n[0]\n[0]\n", answer.err


def test_a_fork_that_leaves_the_block_leaves_its_parent_in_there(make_desk):
    code = prelude() + (
        "import os\nwith GPUScheduler(1) as ids:\n"
        "    if (pid := os.fork()) == 0: raise SystemExit\n"
        "    os.waitpid(pid, 0)\n"
        "    os.system('berth run --no-wait -- echo taken')\n"
    )
    answer = make_desk(ONE).python(code)
    assert "taken" not in answer.out, answer.err


@pytest.mark.parametrize(
    "finder", ["__import__('gpu_scheduler').find_free_gpus()", "__import__('nvgpu').available_gpus()"]
)
def test_a_card_on_which_nothing_may_compute_is_not_offered(make_desk, finder):
    prohibited = '[[device]]\nmodel = "3090"\ncompute_mode = "prohibited"\n'
    assert make_desk(prohibited).ask("", finder) == [[]]
