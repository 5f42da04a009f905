"""Which GPUs a call of gpuselect gets, and for how long it keeps them."""

from __future__ import annotations

import logging
import math
import operator
import os
import random
import threading
from typing import Any, Callable, NamedTuple, Optional, Union

import berth
from berth import _berth
from berth_dropin import asking, beside_scheduler, cards, mask

from gpuselect import company, inherited
from gpuselect.status import GpuInfo, describe, gpustatus

__all__ = ["GpuInfo", "Question", "Shortage", "check", "gpuselect", "gpustatus"]

logger = logging.getLogger("gpuselect")
if not logger.handlers:
    logger.addHandler(logging.StreamHandler())
    logger.setLevel(logging.INFO)


ANY_COMPANY = 1 << 20


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
    seen = infos if question.selector is None else _with_lessees(infos)
    left = [info.device for info in _filtered(question, list(seen.values()), own)]
    logger.debug("GPUs left after filtering (%d requested): %d", question.count, len(left))
    return {uuid: info for uuid, info in infos.items() if info.device in left}


def _with_lessees(infos: dict[str, GpuInfo]) -> dict[str, GpuInfo]:
    """For a selector, which cannot see that an idle GPU is leased: whoever has it counts as a process."""
    look = cards.Look()
    leased = {gpu.uuid for gpu in look.gpus if look.is_of_others(gpu)}
    return {
        uuid: info._replace(processes=info.processes or 1) if uuid in leased else info
        for uuid, info in infos.items()
    }


def request(question: Question) -> dict:
    """The arguments for berth.pick; those for a lease, once `devices` is taken out of it. Raises Shortage when too few
    pass the filters.

    Who allows others on the card gets a share of it that promises no memory."""
    admitted = _admitted(question)
    if len(admitted) < question.count:
        raise Shortage(f"Requested {question.count} GPUs, but {len(admitted)} matched filters")
    others = math.floor(min(question.processes, ANY_COMPANY))
    if question.selector is not None:
        others = max(info.processes for info in admitted.values())
    # As the original's choice: a program that has called random.seed chooses the same again.
    made = {"devices": list(admitted), "order": "random", "seed": random.getrandbits(31)}
    return made if others == 0 else {**made, "processes": others, "shared": True}


def choose(question: Question, take: Callable) -> tuple[Any, list[str]]:
    """What `take(count, uuids, **asked)` gave, which is None where it had nothing to give, and the UUIDs of what is used
    beside that without a lease. Raises Shortage."""
    asked = request(question)
    admitted = asked.pop("devices")
    try:
        return take(question.count, admitted, **asked), []
    except (berth.NotNow, berth.Impossible) as refusal:
        verdicts = [verdict for verdict in refusal.verdicts if verdict.device.uuid in admitted]
        beside = company.welcome(verdicts, question.processes > 0, question.selector is not None)
        free = [verdict.device.uuid for verdict in verdicts if verdict.free]
        missing = question.count - len(free)
        if not 0 < missing <= len(beside):
            raise shortage(question, admitted, refusal) from None
    chosen = random.sample(beside, missing)
    try:
        return (take(len(free), free, **asked) if free else None), chosen
    except (berth.NotNow, berth.Impossible) as refusal:
        raise shortage(question, admitted, refusal) from None


def shortage(question: Question, admitted: list[str], refusal: berth.Error) -> Shortage:
    """The same in the words of gpuselect, with Berth's reasons."""
    matched = beside_scheduler.reasons(
        verdict for verdict in refusal.verdicts if verdict.device.uuid in admitted
    )
    taken = [f"GPU {device.label}: {reason}" for device, reason in matched if reason]
    text = f"Requested {question.count} GPUs, but {len(matched) - len(taken)} matched filters"
    return Shortage("; ".join([text, *taken]))


class _Selected(NamedTuple):
    """What this process has: `lease` for all of it but what it uses without one."""

    pid: int
    lease: Optional[asking.Granted]
    uuids: list[str]
    value: str


_selected: Optional[_Selected] = None
_holding = threading.Lock()


def _answers(question: Question, gpu) -> bool:
    """Whether it is one of those that the question names. How busy it is, is not asked: it is this program, or its
    parent, that uses it."""
    info = describe(gpu)
    if question.selector is not None:
        free = info.mem_total
        return bool(
            question.selector(info._replace(util=0, mem_util=0, mem_free=free, mem_used=0, processes=0))
        )
    return all(admits(info) for _, admits in _named(question))


def _kept(question: Question) -> Optional[str]:
    """The mask of this process, where that is what is asked for."""
    if _selected is None or _selected.pid != os.getpid():
        return None
    if len(_selected.uuids) != question.count or os.environ.get("CUDA_VISIBLE_DEVICES") != _selected.value:
        return None
    mine = [gpu for gpu in cards.gpus() if gpu.uuid in _selected.uuids]
    return _selected.value if all(_answers(question, gpu) for gpu in mine) else None


def _inherited(question: Question) -> Optional[str]:
    """The mask of the process whose worker this one is, or as many of its GPUs as are asked for. None when this process
    is no worker, or asks for something else: more GPUs, or others by device ID or name.

    The choice is the system's, since the workers of a pool may all have begun with the same seed."""
    is_fork = _selected is not None and _selected.pid != os.getpid()
    held = inherited.uuids() if is_fork or inherited.is_worker() else []
    gpus = cards.gpus() if held else []
    left = [gpu for gpu in gpus if gpu.uuid in held]
    if question.selector is None:
        left = [gpu for gpu in left if _answers(question, gpu)]
    if not held or len(left) < question.count:
        return None
    chosen = random.SystemRandom().sample(left, question.count)
    value = mask.of(sorted(chosen, key=lambda gpu: gpu.index), gpus)
    logger.debug("GPUs inherited from a parent process: %s", value)
    return value


def _replace_lease(question: Question) -> str:
    """Leases for as long as this process lives; what an earlier call leased is given back first. Once CUDA is up, only
    what is there can be given."""
    global _selected
    with _holding:
        mine = _selected is not None and _selected.pid == os.getpid()
        value = _kept(question) if _berth.cuda_is_up() else None
        if value is None and not mine:
            value = _inherited(question)
        if value is None or value != os.environ.get("CUDA_VISIBLE_DEVICES"):
            mask.check_effective()
        if value is not None:
            return value
        # What a fork finds here is its parent's, who goes on with it.
        if mine and _selected.lease is not None:
            _selected.lease.release()
        _selected = None
        lease, beside = choose(question, _leased)
        uuids = [*(lease.held.uuids if lease else ()), *beside]
        value = value_of(uuids) if beside else lease.held.visible_devices
        # Of a lease Berth tells.
        inherited.hand_down(uuids if beside else [])
        _selected = _Selected(os.getpid(), lease, uuids, value)
        return value


def value_of(uuids: list[str]) -> str:
    gpus = cards.gpus()
    return mask.of([gpu for gpu in gpus if gpu.uuid in uuids], gpus)


def _leased(count: int, uuids: list[str], **asked: Any) -> asking.Granted:
    return beside_scheduler.lease(count, uuids, wait=0, note=asking.GPUSELECT, **asked)


def picked(count: int, uuids: list[str], **asked: Any) -> berth.Choice:
    """The same, and holds nothing."""
    free = beside_scheduler.unlocked(uuids)
    if len(free) < count:
        raise berth.NotNow(beside_scheduler.LOCKED, berth.why(devices=uuids, mask=False))
    return berth.pick(count, devices=free, mask=False, **asked)


def look(question: Question) -> str:
    """The GPUs that the question would get now; holds nothing."""
    choice, beside = choose(question, picked)
    return value_of([*(choice.uuids if choice else ()), *beside])


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
