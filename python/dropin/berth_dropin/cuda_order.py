"""By which number CUDA knows a GPU in this process.

The driver's index counts in PCI bus order; CUDA counts by speed unless CUDA_DEVICE_ORDER says otherwise, and
only what CUDA_VISIBLE_DEVICES lets through. Only CUDA itself can tell, so it is asked: in a process of its own,
for what starts CUDA cannot be forked any more and can be given no other mask. A program in which CUDA is up
asked it before; there PyTorch knows."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import berth
from berth import _berth

# Hang guard: a driver that has to wake its boards takes seconds, one that is stuck never answers.
_DEADLINE_S = 60
_CANNOT_TELL = (OSError, subprocess.SubprocessError, berth.Error)


def _plain(uuid: str) -> str:
    return uuid.lower().replace("gpu-", "").replace("-", "")


_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")


@functools.lru_cache(maxsize=8)
def _asked(values: tuple) -> tuple[str, ...]:
    """UUIDs in CUDA's order where its variables have these values. Raises where CUDA cannot tell, which is not kept:
    it may be able to later."""
    given = {name: value for name, value in zip(_VARIABLES, values) if value is not None}
    answer = subprocess.run(
        # Not the interpreter: in a frozen program that is the program itself, and an embedded one
        # has none.
        [_berth.program(), "__cuda-order"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        timeout=_DEADLINE_S,
        check=True,
        text=True,
        env={**{name: value for name, value in os.environ.items() if name not in _VARIABLES}, **given},
    )
    return tuple(map(_plain, answer.stdout.split()))


def _of_torch() -> tuple[str, ...] | None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    found = []
    for i in range(torch.cuda.device_count()):
        uuid = getattr(torch.cuda.get_device_properties(i), "uuid", None)
        if uuid is None:
            return None
        found.append(_plain(str(uuid)))
    return tuple(found)


def _numbered(order: tuple[str, ...], gpus) -> dict[int, object]:
    by_uuid = {_plain(gpu.uuid): gpu for gpu in gpus}
    return {number: by_uuid[uuid] for number, uuid in enumerate(order) if uuid in by_uuid}


def ordinals(gpus) -> dict[int, object] | None:
    """CUDA's number -> device, of those that CUDA shows this process. None where CUDA cannot tell."""
    order = _of_torch()
    if order is None:
        try:
            order = _asked(tuple(os.environ.get(name) for name in _VARIABLES))
        except _CANNOT_TELL:
            return None
    return _numbered(order, gpus)


def unmasked_ordinals(gpus) -> dict[int, object]:
    """The same for a process that has set nothing, as most others have not. Where CUDA cannot tell, by the bus; so CUDA
    itself counts boards of one model, and then it is not asked."""
    if len({gpu.name for gpu in gpus}) <= 1:
        return dict(enumerate(gpus))
    try:
        return _numbered(_asked((None, None)), gpus)
    except _CANNOT_TELL:
        return dict(enumerate(gpus))


def count_by_bus() -> None:
    """Has CUDA count as the driver does, where it has not begun to count yet."""
    if not _berth.cuda_is_up():
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
