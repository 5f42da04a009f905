"""An original and one of ours that ask at the same moment, over and over: they never both get one GPU. docs/dropin.md
has what was seen with BERTH_ROUNDS=300, which takes ten minutes."""

import itertools
import os
import pathlib
import random
from collections import Counter

import pytest
from desk import HERE, ORIGINALS

ROUNDS = int(os.environ.get("BERTH_ROUNDS", "4"))
# How far apart the two begin, and how long each takes until it starts CUDA.
APART_S = 0.05
UNTIL_CUDA_S = 0.1

# A process for each round, forked where all is imported, so that the two meet. It says what it got,
# and keeps it.
SERVER = """
import os, random, select, signal, sys, time
import torch
{imports}
def used(index=0):
    time.sleep(random.random() * {until_cuda})
    return torch.zeros(1, device=f"cuda:{{index}}")
def ask():
    {ask}
def over(pid, how):
    return os.waitpid(pid, how)[0] != 0
os.write(1, b"ready\\n")
while began := os.read(0, 64):
    pid = os.fork()
    if pid == 0:
        time.sleep(float(began))
        try:
            kept = ask()
        except Exception as error:
            os.write(2, f"{{error!r}}\\n".encode())
            os._exit(1)
        os.write(1, b"got\\n")
        signal.pause()
    while not select.select([0], [], [], 0.01)[0]:
        if pid and over(pid, os.WNOHANG):
            pid = 0
            os.write(1, b"none\\n")
    os.read(0, 64)
    if pid:
        os.kill(pid, signal.SIGTERM)
        over(pid, 0)
    os.write(1, b"over\\n")
"""
USE = f"""
import os, random, signal, time, torch
time.sleep(random.random() * {UNTIL_CUDA_S})
kept = torch.zeros(1, device="cuda:0")
os.write(1, b"got\\n")
signal.pause()
"""
OURS = {
    "safe_gpu": ("from safe_gpu import safe_gpu", "return safe_gpu.GPUOwner(1, used)"),
    "gpuselect()": ("from gpuselect import gpuselect", "gpuselect(); return used()"),
    "GPUScheduler": (
        "from gpu_scheduler import GPUScheduler",
        "block = GPUScheduler(1); (index,) = block.__enter__(); return block, used(index)",
    ),
    "berth.lease()": ("import berth", "lease = berth.lease(); return lease, used()"),
    "gpuselect --": ("", f"os.execvp('gpuselect', ['gpuselect', '--', 'python3', '-c', {USE!r}])"),
    "berth run": ("", f"os.execvp('berth', ['berth', 'run', '--', 'python3', '-c', {USE!r}])"),
}
# PyPI has no original of gpu_scheduler: what it does, in short.
SCHEDULER = (
    f"import pathlib, subprocess; sys.path.insert(0, {str(HERE.parent / 'lease')!r})\n"
    "from original_scheduler import OriginalLock\n"
    "def idle():\n"
    "    query = ['nvidia-smi', '--format=csv,noheader']\n"
    "    uses = subprocess.check_output([*query, '--query-compute-apps=gpu_bus_id']).decode()\n"
    "    cards = subprocess.check_output([*query, '--query-gpu=index,gpu_bus_id']).decode().splitlines()\n"
    "    return [line.split(',')[0] for line in cards if line.split(', ')[1] not in uses]\n"
    "def lock():\n"
    "    while True:\n"
    "        for index in idle():\n"
    "            held = OriginalLock(pathlib.Path.home() / f'.gpu_locks/gpu_{index}.lock')\n"
    "            if held.acquire():\n"
    "                os.environ['CUDA_VISIBLE_DEVICES'] = index\n"
    "                return held"
)
THEIRS = {
    "safe_gpu 2.0.0": ("safe_gpu", *OURS["safe_gpu"]),
    "safe_gpu 1.5.1": ("safe_gpu_before_2", *OURS["safe_gpu"]),
    "gpu_scheduler": (None, SCHEDULER, "return lock(), used()"),
}


class Side:
    """One of the two, which begins and ends as it is told."""

    def __init__(self, desk, imports: str, ask: str, original: str | None = None):
        script = SERVER.format(imports=imports, ask=ask, until_cuda=UNTIL_CUDA_S)
        python, env = "python3", {}
        if original:
            python, env = ORIGINALS / original / "bin/python", {"PYTHONPATH": HERE / "standins"}
            if not python.exists():
                pytest.skip("needs the originals: ./dev setup")
        said = (desk.directory / f"{original or 'ours'}.{id(self)}.err").open("w")
        self.process = desk.machine.start(python, "-c", script, stdin=-1, stderr=said, env=env)
        assert self.hear() == "ready"

    def hear(self) -> str:
        return self.process.stdout.readline().strip()

    def say(self, text: str) -> None:
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()


def gpus_in_use(desk) -> int:
    query = ("nvidia-smi", "--format=csv,noheader", "--query-compute-apps=gpu_bus_id")
    return len(set(desk.run(*query).out.split()))


# The command takes no lock of gpu_scheduler, as docs/dropin.md says.
PAIRS = [pair for pair in itertools.product(THEIRS, OURS) if pair != ("gpu_scheduler", "gpuselect --")]


@pytest.mark.parametrize("theirs, ours", PAIRS)
def test_an_original_and_ours_that_ask_at_once_never_get_one_gpu(make_desk, theirs, ours):
    desk = make_desk("2x1080Ti")
    home = desk.machine.directory / "home"
    locks = {
        "safe_gpu 2.0.0": ("safe_gpu_locks", home / "tmp/safe_gpu/lock"),
        "safe_gpu 1.5.1": ("safe_gpu_locks", home / "tmp/lock"),
        "gpu_scheduler": ("gpu_scheduler_locks", home / ".gpu_locks"),
    }
    # The files are missing, as after a boot. Their place is there: /tmp stands for it.
    key, path = locks[theirs]
    (home / "tmp").mkdir()
    if key == "gpu_scheduler_locks":  # there once an original has been here
        path.mkdir()
    if ours in ("berth run", "berth.lease()"):
        (desk.machine.directory / "site.toml").write_text(f'{key} = ["{path}"]\n')
    original, *words = THEIRS[theirs]
    sides = [Side(desk, *words, original=original), Side(desk, *OURS[ours])]
    came = Counter()
    for _ in range(ROUNDS):
        for side in sides:
            side.say(f"{random.random() * APART_S}")
        said = [side.hear() for side in sides]
        assert set(said) <= {"got", "none"}
        came["two GPUs" if gpus_in_use(desk) == said.count("got") else "one GPU for both"] += 1
        came["a refusal"] += "none" in said
        for side in sides:
            side.say("")
        assert [side.hear() for side in sides] == ["over", "over"]
    print(f"{theirs} beside {ours}: {dict(came)}")
    notes = "".join(file.read_text()[-2000:] for file in pathlib.Path(desk.directory).glob("*.err"))
    assert came["one GPU for both"] == 0 and came["a refusal"] <= ROUNDS / 2, notes
