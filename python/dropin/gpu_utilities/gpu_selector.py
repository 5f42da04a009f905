"""Strategies to select a GPU by memory. A GPU fits when more than the expected amount is free."""

import random
from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import Dict, List, Type

from gpu_utilities.errors import EmptyGPUListError, NoGPUAvailableError
from gpu_utilities.gpu import GPU


class GPUSelectStrategy(Enum):
    BEST_FIT = auto()
    WORST_FIT = auto()
    RANDOM = auto()


class GPUSelector(ABC):
    """Derive from this to have another strategy."""

    @abstractmethod
    def select(self, gpus: List[GPU], expected_memory_consumption_bytes: int) -> GPU:
        """One of `gpus`. EmptyGPUListError if there is none, NoGPUAvailableError if none fits."""


def _free(gpu: GPU) -> int:
    return gpu.free_memory_bytes()


def _fitting(gpus: List[GPU], expected_bytes: int) -> List[GPU]:
    if not gpus:
        raise EmptyGPUListError()
    fitting = [gpu for gpu in gpus if _free(gpu) > expected_bytes]
    if not fitting:
        raise NoGPUAvailableError()
    return fitting


class BestFitGPUSelector(GPUSelector):
    """The one with the least free memory that fits."""

    def select(self, gpus: List[GPU], expected_memory_consumption_bytes: int) -> GPU:
        return min(_fitting(gpus, expected_memory_consumption_bytes), key=_free)


class WorstFitGPUSelector(GPUSelector):
    """The one with the most free memory."""

    def select(self, gpus: List[GPU], expected_memory_consumption_bytes: int) -> GPU:
        return max(_fitting(gpus, expected_memory_consumption_bytes), key=_free)


class RandomGPUSelector(GPUSelector):
    """Any that fits."""

    def select(self, gpus: List[GPU], expected_memory_consumption_bytes: int) -> GPU:
        return random.choice(_fitting(gpus, expected_memory_consumption_bytes))


_SELECTORS: Dict[GPUSelectStrategy, Type[GPUSelector]] = {
    GPUSelectStrategy.BEST_FIT: BestFitGPUSelector,
    GPUSelectStrategy.WORST_FIT: WorstFitGPUSelector,
    GPUSelectStrategy.RANDOM: RandomGPUSelector,
}


class GPUSelectorFactory:
    def selector(self, strategy: GPUSelectStrategy) -> GPUSelector:
        if strategy not in _SELECTORS:
            raise Exception(f"cannot initialize selector for strategy {strategy}")
        return _SELECTORS[strategy]()
