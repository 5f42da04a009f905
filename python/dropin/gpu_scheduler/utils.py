"""Under this name the original has what it reads `nvidia-smi` with; programs import it from here."""

from __future__ import annotations

import logging
from typing import Any, Callable, Optional

import berth
from berth_dropin import cards

logger = logging.getLogger("gpu_scheduler")


def _converted(value: Any, kind: Callable[[float], Any], default: Any) -> Any:
    """`default` for what `nvidia-smi` writes where it knows nothing: N/A, Unknown, [Not Supported]."""
    try:
        return kind(float(str(value).strip()))
    except (ValueError, OverflowError):
        return default


def safe_int_convert(value: Any, default: Optional[int] = None) -> Optional[int]:
    return _converted(value, int, default)


def safe_float_convert(value: Any, default: Optional[float] = None) -> Optional[float]:
    return _converted(value, float, default)


def _mib(amount: Optional[int]) -> int:
    return (amount or 0) >> 20


def _watts(amount_mw: Optional[int]) -> Optional[float]:
    return None if amount_mw is None else amount_mw / 1000


def get_nvidia_smi_data() -> dict:
    """UUID -> dict of nvidia_index, name, uuid, memory_total, memory_free, memory_used (MiB), power_draw, power_limit
    (W), temperature and utilization (percent). {} where there is no driver."""
    try:
        gpus = cards.usable()
    except berth.NoDriver as error:
        logger.error("Could not get nvidia-smi data: %s", error)
        return {}
    return {
        gpu.uuid: {
            "nvidia_index": gpu.index,
            "name": gpu.name,
            "uuid": gpu.uuid,
            "memory_total": _mib(gpu.memory.total_bytes),
            "memory_free": _mib(gpu.memory.free_bytes),
            "memory_used": _mib(gpu.memory.used_bytes),
            "power_draw": _watts(gpu.power_mw),
            "power_limit": _watts(gpu.power_limit_mw),
            "temperature": gpu.temperature_c,
            "utilization": gpu.utilization_percent or 0,
        }
        for gpu in gpus
    }


def match_pytorch_to_nvidia(device_id: int, nvidia_gpus: dict) -> Optional[dict]:
    """Of what `get_nvidia_smi_data` gave, that of PyTorch's device with this number; None where it is not there."""
    import torch

    try:
        uuid = str(torch.cuda.get_device_properties(device_id).uuid)
    except Exception:  # whatever CUDA has against this number
        return None
    return nvidia_gpus.get(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
