"""Where information about GPUs comes from; derive from this to have another source."""

from abc import ABC, abstractmethod
from typing import List

from gpu_utilities.gpu import GPU


class GPUInfoObtainer(ABC):
    @abstractmethod
    def gpus_available(self) -> bool:
        """Whether this source has anything to tell on this machine."""

    @abstractmethod
    def gpus(self) -> List[GPU]:
        """The GPUs, or [] where there is none."""
