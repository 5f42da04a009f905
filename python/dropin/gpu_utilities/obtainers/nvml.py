"""GPUs as the driver knows them."""

from typing import List

import berth
from berth_dropin import cards, cuda_order
from gpu_utilities.gpu import GPU
from gpu_utilities.gpu_info_obtainer import GPUInfoObtainer


class NvmlGPUInfoObtainer(GPUInfoObtainer):
    """Asks the driver, and allocates nothing."""

    def gpus_available(self) -> bool:
        try:
            return bool(cards.gpus())
        except berth.NoDriver:
            return False

    def gpus(self) -> List[GPU]:
        """Those that CUDA shows this process and that nobody has leased, by CUDA's own numbers."""
        try:
            offered = cards.Look().on_offer()
        except berth.NoDriver:
            return []
        numbered = cuda_order.ordinals(offered)
        if numbered is None:
            numbered = {gpu.index: gpu for gpu in offered}
        return [
            _described(number, gpu) for number, gpu in numbered.items() if gpu.memory.free_bytes is not None
        ]


def _described(cuda_id: int, gpu) -> GPU:
    usable = gpu.memory.total_bytes - (gpu.memory.reserved_bytes or 0)
    return GPU(cuda_id, gpu.name, usable, usable - gpu.memory.free_bytes, gpu.uuid)
