"""The older source. It answers as the newer one does and allocates nothing; it stays for those who import it."""

import warnings
from typing import List

from gpu_utilities.gpu import GPU
from gpu_utilities.gpu_info_obtainer import GPUInfoObtainer
from gpu_utilities.obtainers.nvml import NvmlGPUInfoObtainer


class TorchGPUInfoObtainer(GPUInfoObtainer):
    """Deprecated since 0.2.0: use NvmlGPUInfoObtainer."""

    def __init__(self) -> None:
        warnings.warn(
            "TorchGPUInfoObtainer is deprecated since 0.2.0, use NvmlGPUInfoObtainer",
            DeprecationWarning,
            stacklevel=2,
        )
        import torch

        self._torch = torch

    def gpus_available(self) -> bool:
        return self._torch.cuda.is_available()

    def gpus(self) -> List[GPU]:
        return NvmlGPUInfoObtainer().gpus() if self.gpus_available() else []
