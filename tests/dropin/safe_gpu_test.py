"""safe_gpu: its document's examples, what it holds, and its lock."""

import fcntl
import re
import signal
import subprocess
import sys

import pytest
from desk import ENVIRONMENT, example
from simulated import as_nobody, let_others_in

LAB = """
[[device]]
model = "1080Ti"
[[device]]
model = "1080Ti"
[[device.process]]
pid = 4204242
ghost = true
[[device]]
model = "1080Ti"
[[device.process]]
pid = 4204243
ghost = true
type = "G"
used_mib = 90
[[device]]
model = "1080Ti"
"""
DISPLAY = """
[[device]]
model = "1080Ti"
display_active = true
[[device.process]]
pid = 4204242
ghost = true
used_mib = 300
"""
SETUP = """
import logging, os, sys
from safe_gpu import safe_gpu
logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s", stream=sys.stderr)
mask = lambda: os.environ.get("CUDA_VISIBLE_DEVICES")
"""


def test_the_example_with_one_gpu(make_desk):
    desk = make_desk(LAB)
    after = "\nimport os; print(gpu_owner.devices_taken, os.environ['CUDA_VISIBLE_DEVICES'])"
    answer = desk.python(example("safe-gpu.md", "one GPU") + after)
    assert (answer.status, answer.out) == (0, "[0] 0\n"), answer.err


def test_the_example_with_several_gpus(make_desk):
    text = "from safe_gpu import safe_gpu\nnb_gpus = 2\n" + example("safe-gpu.md", "several GPUs")
    answer = make_desk(LAB).python(text + "print(gpu_owner.devices_taken)")
    assert answer.out == "[0, 2]\n", answer.err


def logged(text: str) -> list:
    """(owner, message) of each line, in order."""
    return re.findall(r"^GPUOwner(\d) [-\d]{10} [:\d]{8},\d{3} \[INFO\] (.*)$", text, re.M)


def test_the_example_with_two_processes(make_desk):
    """Of two that start at once on three free GPUs, one waits until the other has occupied its own. The document's
    command sleeps for ten seconds wherever two could meet; here it is one."""
    command, *shown = example("safe-gpu.md", "two processes").splitlines()
    desk = make_desk(LAB)
    text = command.removeprefix("$ ").replace("--backend", "--sleep 1 --backend") + "; wait"
    (desk.directory / "gpu-acquisitor.py").symlink_to(ENVIRONMENT / "bin/gpu-acquisitor.py")
    lines = logged(desk.shell(text).err)
    for owner, count in (("1", 1), ("2", 2)):
        said = [message for who, message in lines if who == owner]
        masks = [message.partition("=")[2] for message in said if "=" in message]
        assert [len(mask.split(",")) for mask in masks] == [count]
        assert [re.sub("=.*", "", message) for message in said if not message.startswith("Allocated")] == [
            re.sub("=.*", "", message) for who, message in logged("\n".join(shown)) if who == owner
        ]
    masks = {mask for _, message in lines for mask in message.partition("=")[2].split(",")} - {""}
    assert masks == {"0", "2", "3"}
    first = next(who for who, message in lines if message == "lock acquired")
    second = {"1": "2", "2": "1"}[first]
    # The second has the lock only when the first has occupied its GPUs; between the two may stand
    # what others say.
    order = [line for line in lines if line[1] in ("lock acquired", "lock released")]
    assert {order.index((first, "lock released")), order.index((second, "lock acquired"))} == {1, 2}


def test_ours_can_also_wait(make_desk):
    desk = make_desk("1x1080Ti")
    words = ["gpu-acquisitor.py", "--sleep", "0", "--explicit-owner-object"]
    holder = desk.start_python("import berth; l = berth.lease(); print(flush=True); input()", stdin=-1)
    holder.stdout.readline()
    waiting = desk.machine.start(*words, "--wait", "forever", cwd=desk.directory)
    assert "only found these free: []" in desk.run(*words).err
    holder.send_signal(signal.SIGKILL)
    _, said = waiting.communicate(timeout=30)
    assert [message for _, message in logged(said)][-2:] == ["Allocated devices: [0]", "Finished"]


def test_a_wait_that_runs_out_is_an_error_like_too_few(make_desk):
    desk = make_desk("1x1080Ti")
    desk.start_python(
        "import berth; l = berth.lease(); print(flush=True); input()", stdin=-1
    ).stdout.readline()
    (answer,) = desk.ask(SETUP, "safe_gpu.GPUOwner(wait=0.1)")
    assert answer["raises"] == "RuntimeError" and "GPU 0: leased by" in answer["text"]


def test_a_claim_lasts_until_the_process_ends_and_nobody_else_gets_it(make_desk):
    desk = make_desk(LAB)
    script = (
        SETUP
        + "safe_gpu.claim_gpus(2, placeholder_fn=lambda device_no: device_no); print(flush=True); input()"
    )
    process = desk.start_python(script, stdin=-1)
    process.stdout.readline()
    assert desk.leased() == [0, 2]
    free, answer = desk.ask(SETUP, "safe_gpu.get_free_gpus()", "safe_gpu.GPUOwner(2)")
    assert free == ["3"]
    assert answer["text"].splitlines()[0] == (
        "Required 2 GPUs, only found these free: ['3']. Somebody didn't properly declare their resources?"
    )
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert desk.leased() == []


def test_release_gives_the_lease_back(make_desk):
    desk = make_desk("1x1080Ti")
    script = SETUP + (
        "safe_gpu.claim_gpus(placeholder_fn=safe_gpu.PyCudaPlaceholder())\n"
        "print(len(safe_gpu.gpu_owner.placeholders), safe_gpu.gpu_owner.devices_taken, flush=True)\n"
        "safe_gpu.release_gpus(); print(flush=True); input()"
    )
    process = desk.start_python(script, stdin=-1)
    assert process.stdout.readline() == "1 [0]\n"
    process.stdout.readline()
    assert desk.leased() == []
    _, said = process.communicate("\n", timeout=30)
    assert "Releasing placeholder on CUDA device: 0" in said and "Released a CUDA context" in said


@pytest.mark.parametrize(
    "placeholder",
    [
        "safe_gpu.PytorchPlaceholder()",
        "safe_gpu.TensorflowPlaceholder()",
        "safe_gpu.PyCudaPlaceholder()",
        "safe_gpu.tensorflow_placeholder",
        "safe_gpu.pytorch_placeholder",
    ],
)
def test_a_placeholder_shows_on_the_gpus_that_were_claimed(make_desk, placeholder):
    listed = "[bool(d.processes) for d in __import__('berth').devices()]"
    owner, seen = make_desk("3x1080Ti").ask(
        SETUP, f"safe_gpu.claim_gpus(2, placeholder_fn={placeholder}) or mask()", listed
    )
    assert (owner, seen) == ("0,1", [True, True, False])


def test_a_function_is_called_with_visible_numbers_once_the_mask_is_set(make_desk):
    (seen,) = make_desk(LAB).ask(
        SETUP, "safe_gpu.GPUOwner(2, placeholder_fn=lambda device_no: (device_no, mask())).placeholders"
    )
    assert seen == [[0, "0,2"], [1, "0,2"]]


def test_a_placeholder_that_fails_logs_advice_and_gives_the_lease_back(make_desk):
    desk = make_desk("1x1080Ti")
    script = SETUP + (
        "def fail(device_no): raise RuntimeError('CUDA error: out of memory')\n"
        "try: safe_gpu.claim_gpus(placeholder_fn=fail)\n"
        "except RuntimeError as error: print(error, safe_gpu.gpu_owner, flush=True); input()"
    )
    process = desk.start_python(script, stdin=-1)
    assert process.stdout.readline() == "CUDA error: out of memory None\n"
    assert desk.leased() == []
    _, said = process.communicate("\n", timeout=30)
    assert "Failed to acquire placeholder." in said and said.rstrip().endswith("lock released")


def test_cuda_that_is_up_is_an_error_before_anything_is_held(make_desk):
    (answer,) = make_desk(LAB).ask(
        SETUP + "import torch; torch.zeros(1, device='cuda:0')", "safe_gpu.GPUOwner()"
    )
    assert answer["raises"] == "RuntimeError" and answer["text"].startswith(
        "CUDA is up in this process already"
    )


def test_the_only_gpu_of_a_display_is_taken_without_the_check(make_desk):
    taken, two, mode = make_desk(DISPLAY).ask(
        SETUP,
        "safe_gpu.GPUOwner(placeholder_fn=id).devices_taken",
        "safe_gpu.GPUOwner(2)",
        "safe_gpu.is_single_gpu_display_mode()",
    )
    assert (taken, mode) == ([0], True)
    assert (two["raises"], two["text"]) == ("ValueError", "Requested 2 GPUs on a machine with single one.")


def test_no_driver(make_desk):
    desk = make_desk('library_missing = true\n[[device]]\nmodel = "T4"\n')
    assert [
        answer["raises"] for answer in desk.ask(SETUP, "safe_gpu.GPUOwner()", "safe_gpu.get_free_gpus()")
    ] == ["NvidiasmiError"] * 2


@pytest.mark.parametrize("count, kind", [("-1", "ValueError"), ("'2'", "TypeError"), ("None", "TypeError")])
def test_a_count_that_is_none(make_desk, count, kind):
    (answer,) = make_desk(LAB).ask(SETUP, f"safe_gpu.GPUOwner({count})")
    assert answer["raises"] == kind


# The lock -----------------------------------------------------------------------------------------


def test_the_lock_is_held_from_the_look_to_the_end_of_the_placeholder(make_desk):
    desk = make_desk(LAB)
    script = SETUP + (
        "def occupy(device_no): print('occupying', flush=True); input()\n"
        "safe_gpu.claim_gpus(placeholder_fn=occupy); print('occupied', flush=True); input()"
    )
    process = desk.start_python(script, stdin=-1)
    process.stdout.readline()
    places = desk.machine.directory / "home/tmp"
    with open(places / "safe_gpu/lock", "r+") as file, open(places / "lock", "r+") as earlier:
        for each in (file, earlier):
            with pytest.raises(BlockingIOError):
                fcntl.lockf(each, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "occupied\n"
        for each in (file, earlier):
            fcntl.lockf(each, fcntl.LOCK_EX)


def test_the_lock_is_for_all_users_whatever_the_umask(make_desk, tmp_path):
    place = tmp_path / "safe_gpu"
    code = (
        f"import os; os.umask(0o077)\nfrom safe_gpu import safe_gpu\n"
        f"safe_gpu.LOCK_FILENAME = {str(place / 'lock')!r}\nsafe_gpu.GPUOwner(placeholder_fn=lambda device_no: 0)\n"
    )
    assert make_desk(LAB).python(code).status == 0
    assert (place.stat().st_mode & 0o7777, (place / "lock").stat().st_mode & 0o7777) == (0o777, 0o666)
    prefix = as_nobody()
    let_others_in(tmp_path)
    opened = subprocess.run(
        [*prefix, sys.executable, "-c", f"open({str(place / 'lock')!r}, 'a')"], capture_output=True
    )
    assert opened.returncode == 0, opened.stderr


AROUND = {
    "berth run": ("berth", "run", "--devices", "1", "--"),
    "gpuselect --": ("gpuselect", "-d", "1", "--"),
    "gpuselect()": (),
}


@pytest.mark.parametrize("around", AROUND)
def test_in_a_lease_it_does_not_wait_for_the_lock_that_is_kept_for_it(make_desk, around):
    """Nobody starts CUDA here, so Berth keeps the lock for the lease all the while."""
    desk = make_desk("4x3090")
    path = desk.machine.directory / "home/tmp/safe_gpu/lock"
    if around == "berth run":
        (desk.machine.directory / "site.toml").write_text(f'safe_gpu_locks = ["{path}"]\n')
    before = "import gpuselect; gpuselect.gpuselect()" if around == "gpuselect()" else ""
    script = f"{before}\nfrom safe_gpu import safe_gpu\nsafe_gpu.GPUOwner(1, lambda device_no: 0)\nprint('has it', flush=True); input()"
    process = desk.machine.start(*AROUND[around], "python3", "-c", script, stdin=-1, cwd=desk.directory)
    assert process.stdout.readline() == "has it\n"
    with path.open("r+") as file, pytest.raises(BlockingIOError):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    process.communicate("\n")


def test_a_script_for_a_version_before_2(make_desk):
    """The document's script is of those days: it hands the plain functions over."""
    script = SETUP + (
        "backends = {'pytorch': safe_gpu.pytorch_placeholder, 'tf': safe_gpu.tensorflow_placeholder}\n"
        "owner = safe_gpu.GPUOwner(2, backends['pytorch'], logging.getLogger('GPUOwner1'), 0.0)\n"
        "print(owner.placeholders[1].device)"
    )
    answer = make_desk(LAB).python(script)
    assert answer.out == "cuda:1\n", answer.err


def test_a_placeholder_that_cannot_be_released_does_not_keep_the_lease(make_desk):
    setup = SETUP + (
        "import berth\n"
        "class Stuck:\n"
        "    def __call__(self, number): return number\n"
        "    def release(self, placeholder): raise RuntimeError('CUDA error')\n"
        "free = lambda: sum(verdict.free for verdict in berth.why(mask=False))\n"
    )
    claim = "safe_gpu.claim_gpus(placeholder_fn=Stuck())"
    before, _, held, error, after = make_desk(LAB).ask(
        setup, "free()", claim, "free()", "safe_gpu.release_gpus()", "free()"
    )
    assert error["raises"] == "RuntimeError" and (held, after) == (before - 1, before)


def test_once_cuda_is_up_a_claim_that_is_made_again_has_what_is_there(make_desk):
    """A cell of a notebook that is run again."""
    setup = SETUP + "def owned(count=1): return safe_gpu.GPUOwner(count).devices_taken\n"
    first, again, claimed, more, released, leases = make_desk(LAB).ask(
        setup + "import berth",
        "owned()",
        "owned()",
        "[safe_gpu.claim_gpus(), safe_gpu.gpu_owner.devices_taken, len(safe_gpu.gpu_owner.placeholders)]",
        "owned(2)",
        "safe_gpu.release_gpus()",
        "[verdict.clause for verdict in berth.why(mask=False) if verdict.clause == 'not_leased']",
    )
    assert first == again == [0] and claimed == [None, [0], 1]
    assert more["raises"] == "RuntimeError" and more["text"].startswith("CUDA is up")
    assert (released, leases) == (None, [])


def test_what_a_program_catches_where_there_is_no_driver(make_desk):
    """There is no nvidia-smi either, which the original starts."""
    desk = make_desk('library_missing = true\n[[device]]\nmodel = "T4"\n')
    (raised,) = desk.ask(SETUP, "safe_gpu.claim_gpus()")
    assert raised["raises"] == "NvidiasmiError" and "FileNotFoundError" in raised["kinds"]
    assert "driver" in raised["text"].lower()
