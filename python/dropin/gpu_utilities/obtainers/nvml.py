"""GPUs as the driver knows them."""

from typing import Any, Dict, List, Optional

import berth
from berth_dropin import cards, cuda_order
from gpu_utilities.gpu import GPU
from gpu_utilities.gpu_info_obtainer import GPUInfoObtainer
from gpu_utilities.utils.bytes import UnitSize

_QUERY = "name,uuid,index,memory.free,memory.total,memory.reserved"


class nvidia_smi:  # noqa: N801
    """What the original asks. A program that puts its own in this place has that asked."""

    @staticmethod
    def getInstance() -> Optional[Any]:  # noqa: N802
        return None


class NvmlGPUInfoObtainer(GPUInfoObtainer):
    """Asks the driver, and allocates nothing.

    nvsmi: an object to ask instead, with the method `DeviceQuery` of pynvml's nvidia_smi; what it tells is passed on."""

    def __init__(self, nvsmi: Optional[Any] = None) -> None:
        self.nvsmi = nvidia_smi.getInstance() if nvsmi is None else nvsmi

    def gpus_available(self) -> bool:
        if self.nvsmi is not None:
            return True
        try:
            return bool(cards.gpus())
        except berth.NoDriver:
            return False

    def gpus(self) -> List[GPU]:
        """Those that CUDA shows this process and that nobody has leased, by CUDA's own numbers."""
        if self.nvsmi is not None:
            return [_told(gpu) for gpu in self.nvsmi.DeviceQuery(_QUERY)["gpu"]]
        try:
            look = cards.Look()
        except berth.NoDriver:
            return []
        usable = [gpu for gpu in look.gpus if cards.is_usable(gpu)]
        numbered = cuda_order.ordinals(usable)
        if numbered is None:
            numbered = dict(enumerate(usable))
        return [
            _described(number, gpu)
            for number, gpu in numbered.items()
            if look.is_on_offer(gpu) and gpu.memory.free_bytes is not None
        ]


def _described(cuda_id: int, gpu) -> GPU:
    usable = gpu.memory.total_bytes - (gpu.memory.reserved_bytes or 0)
    return GPU(cuda_id, gpu.name, usable, usable - gpu.memory.free_bytes, gpu.uuid)


def _told(gpu: Dict[str, Any]) -> GPU:
    memory = gpu["fb_memory_usage"]
    unit = UnitSize[memory["unit"]]
    return GPU(
        int(gpu["minor_number"]),
        gpu["product_name"],
        unit.to_bytes(memory["total"]),
        unit.to_bytes(memory["total"] - memory["free"]),
        gpu["uuid"],
    )
