"""Where information about GPUs comes from; derive from this to have another source."""

from abc import ABC, abstractmethod
from typing import Any, List

from gpu_utilities.gpu import GPU


class GPUInfoObtainer(ABC):
    @abstractmethod
    def gpus_available(self) -> bool:
        """Whether this source has anything to tell on this machine."""

    @abstractmethod
    def gpus(self) -> List[GPU]:
        """The GPUs, or [] where there is none."""


def __getattr__(name: str) -> Any:
    # Versions before 0.2.0 have it here. It derives from the class above, so it cannot be imported
    # before that.
    if name != "TorchGPUInfoObtainer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpu_utilities.obtainers.torch import TorchGPUInfoObtainer

    return TorchGPUInfoObtainer
