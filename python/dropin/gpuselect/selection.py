"""Which GPUs a call of gpuselect gets, and for how long it keeps them."""

from __future__ import annotations

import logging
import operator
import os
import random
import threading
from typing import Callable, NamedTuple, Optional, Union

import berth
from berth_dropin import asking, beside_scheduler, cards, mask

from gpuselect import inherited
from gpuselect.status import GpuInfo, describe, gpustatus

__all__ = ["GpuInfo", "Question", "Shortage", "check", "gpuselect", "gpustatus"]

logger = logging.getLogger("gpuselect")
if not logger.handlers:
    logger.addHandler(logging.StreamHandler())
    logger.setLevel(logging.INFO)


class Shortage(Exception):
    """Fewer GPUs than asked for."""


class Question(NamedTuple):
    """What a caller asks for. `selector` replaces all filters but `count`."""

    count: int = 1
    devices: Union[int, list, None] = None
    name: Optional[str] = None
    util: int = 0
    mem_util: int = 0
    processes: int = 0
    selector: Optional[Callable[[GpuInfo], bool]] = None


def check(question: Question) -> Question:
    """The question with its devices in a list and its count made to fit them. Raises on nonsense."""
    question = question._replace(count=operator.index(question.count))
    if question.count < 1:
        raise Exception("GPU count must be >= 1")
    if question.devices is not None and question.name is not None:
        raise Exception("Use only one of 'devices' and 'name' parameters")
    if min(question.util, question.mem_util, question.processes) < 0:
        raise Exception("Utilization/process count thresholds must be >= 0")
    if question.devices is None:
        return question
    devices = [question.devices] if isinstance(question.devices, int) else list(question.devices)
    count = question.count
    if len(devices) > count:
        logger.warning(
            "count=%d but %d device IDs were specified, setting count=%d", count, len(devices), len(devices)
        )
        count = len(devices)
    return question._replace(devices=devices, count=count)


def _named(question: Question) -> list:
    """Name and predicate of the filters on what a GPU is, whatever its load."""
    if question.devices:
        return [("Device ID", lambda gpu: gpu.device in question.devices)]
    if question.name is not None:
        return [("Device name", lambda gpu: question.name in gpu.name)]
    return []


def _filters(question: Question, own: dict[int, int]) -> list:
    """Name and predicate of each filter, in the order in which they are applied. `own`: how many processes of this
    program are on a GPU, which do not count."""
    if question.selector is not None:
        return [("Selector", question.selector)]
    return [
        *_named(question),
        ("Utilization", lambda gpu: gpu.util is not None and gpu.util <= question.util),
        ("Memory utilization", lambda gpu: gpu.mem_util is not None and gpu.mem_util <= question.mem_util),
        ("Processes", lambda gpu: gpu.processes - own.get(gpu.device, 0) <= question.processes),
    ]


def _filtered(question: Question, infos: list[GpuInfo], own: dict[int, int]) -> list[GpuInfo]:
    for name, admits in _filters(question, own):
        passed = [info for info in infos if admits(info)]
        logger.debug("%s filter matched %d / %d GPUs", name, len(passed), len(infos))
        infos = passed
    return infos


def __filter_gpus(
    gpu_info: list[GpuInfo],
    count: int,
    devices: list,
    name: Optional[str],
    util: int,
    mem_util: int,
    processes: int,
    selector: Optional[Callable[[GpuInfo], bool]],
) -> list[GpuInfo]:
    """Of `gpu_info` those that pass, chosen at random down to `count`. The original's own tests ask it."""
    left = _filtered(Question(count, devices, name, util, mem_util, processes, selector), gpu_info, {})
    return left if count > len(left) else random.sample(left, count)


def _admitted(question: Question) -> dict[str, GpuInfo]:
    """UUID -> what is known, of the GPUs that pass the filters. One that is split into MIG instances, or does
    not answer, is never offered."""
    gpus = cards.gpus()
    logger.debug("GPU count: %d", len(gpus))
    for device in question.devices or ():
        if device < 0 or device not in [gpu.index for gpu in gpus]:
            raise Exception(f"Invalid device ID {device}")
    infos = {gpu.uuid: describe(gpu) for gpu in gpus if cards.is_usable(gpu)}
    for info in infos.values():
        logger.debug("Device %d: %s", info.device, info)
    own = {gpu.index: len(cards.computing(gpu)) - len(cards.strangers(gpu)) for gpu in gpus}
    left = _filtered(question, list(infos.values()), own)
    logger.debug("GPUs left after filtering (%d requested): %d", question.count, len(left))
    return {uuid: info for uuid, info in infos.items() if info in left}


def request(question: Question) -> dict:
    """The arguments for berth.pick; those for a lease, once `devices` is taken out of it. Raises Shortage when too few
    pass the filters.

    Who allows others on the card gets a share of it that promises no memory."""
    admitted = _admitted(question)
    if len(admitted) < question.count:
        raise Shortage(f"Requested {question.count} GPUs, but {len(admitted)} matched filters")
    company = question.processes
    if question.selector is not None:
        company = max(info.processes for info in admitted.values())
    # As the original's choice: a program that has called random.seed chooses the same again.
    made = {"devices": list(admitted), "order": "random", "seed": random.getrandbits(31)}
    return made if company == 0 else {**made, "processes": company, "shared": True}


def shortage(question: Question, admitted: list[str], refusal: berth.Error) -> Shortage:
    """The same in the words of gpuselect, with Berth's reasons."""
    matched = beside_scheduler.reasons(
        verdict for verdict in refusal.verdicts if verdict.device.uuid in admitted
    )
    taken = [f"GPU {device.label}: {reason}" for device, reason in matched if reason]
    text = f"Requested {question.count} GPUs, but {len(matched) - len(taken)} matched filters"
    return Shortage("; ".join([text, *taken]))


_held: Optional[asking.Granted] = None
_holder: Optional[int] = None
_holding = threading.Lock()


def _inherited(question: Question) -> Optional[str]:
    """The mask of a process from which this one descends, or as many of its GPUs as are asked for. None when there
    is no such process, or this one asks for something else: more GPUs, or others by device ID or name.

    How busy they are is not asked: it is the parent that uses them. The choice is the system's, since the workers of
    a pool may all have begun with the same seed."""
    held = inherited.uuids()
    if not held:
        return None
    gpus = cards.gpus()
    left = [gpu for gpu in gpus if gpu.uuid in held]
    if question.selector is None:
        left = [gpu for gpu in left if all(admits(describe(gpu)) for _, admits in _named(question))]
    if len(left) < question.count:
        return None
    chosen = random.SystemRandom().sample(left, question.count)
    value = mask.of(sorted(chosen, key=lambda gpu: gpu.index), gpus)
    logger.debug("GPUs inherited from a parent process: %s", value)
    return value


def _replace_lease(question: Question) -> str:
    """Leases for as long as this process lives; what an earlier call leased is given back first."""
    global _held, _holder
    with _holding:
        mine = _holder == os.getpid()
        inherited_mask = None if mine else _inherited(question)
        if inherited_mask is None or inherited_mask != os.environ.get("CUDA_VISIBLE_DEVICES"):
            mask.check_effective()
        if inherited_mask is not None:
            return inherited_mask
        # What a fork finds here is its parent's, who goes on with it.
        if _held is not None and mine:
            _held.release()
        _held = None
        asked = request(question)
        admitted = asked.pop("devices")
        try:
            _held = beside_scheduler.lease(question.count, admitted, wait=0, note=asking.GPUSELECT, **asked)
        except (berth.NotNow, berth.Impossible) as refusal:
            raise shortage(question, admitted, refusal) from None
        _holder = os.getpid()
        return _held.held.visible_devices


def look(question: Question) -> str:
    """The GPUs that the question would get now; holds nothing."""
    asked = request(question)
    admitted = asked.pop("devices")
    try:
        free = beside_scheduler.unlocked(admitted)
        if len(free) < question.count:
            raise berth.NotNow(beside_scheduler.LOCKED, berth.why(devices=admitted, mask=False))
        return berth.pick(question.count, devices=free, mask=False, **asked).visible_devices
    except (berth.NotNow, berth.Impossible) as refusal:
        raise shortage(question, admitted, refusal) from None


def gpuselect(
    count: int = 1,
    devices: Union[int, list, None] = None,
    name: Optional[str] = None,
    util: int = 0,
    mem_util: int = 0,
    processes: int = 0,
    selector: Optional[Callable[[GpuInfo], bool]] = None,
    silent: bool = False,
    set_cvd: bool = True,
) -> str:
    """Selects idle GPUs, leases them and sets CUDA_VISIBLE_DEVICES to them.

    count: how many. devices: an index or several, to choose among. name: part of the model's name, letter case
    counts. util, mem_util: percent at most. processes: at most so many on the card. selector: a function of a
    GpuInfo in place of all these but `count`. silent: "" instead of an error when there are too few. set_cvd=False:
    only look, lease nothing and leave CUDA_VISIBLE_DEVICES alone.

    Returns the value of CUDA_VISIBLE_DEVICES. Raises Exception when there are too few, or for nonsense in the
    arguments; berth.NoDriver.
    """
    question = Question(count, devices, name, util, mem_util, processes, selector)
    logger.debug(
        "count=%s,devices=%s,name=%s,util=%s,mem_util=%s,processes=%s,silent=%s", *question[:6], silent
    )
    question = check(question)
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    try:
        value = _replace_lease(question) if set_cvd else look(question)
    except Shortage:
        if silent:
            return ""
        raise
    if set_cvd:
        mask.put(value)
        logger.debug("CUDA_VISIBLE_DEVICES=%s", value)
    return value
