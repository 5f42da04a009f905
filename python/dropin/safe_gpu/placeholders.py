"""Something small on a GPU, so that everybody sees that it is taken."""

from __future__ import annotations

import logging
from typing import Any


class PytorchPlaceholder:
    """A tensor of one number."""

    def __init__(self, logger=logging):
        self.logger = logger

    def __call__(self, device_no: int) -> Any:
        import torch

        return torch.zeros((1,), device=f"cuda:{device_no}")

    def release(self, placeholder: Any) -> None:
        self.logger.info("Did nothing, PyTorch doesn't expose interface for releasing GPUs")


class TensorflowPlaceholder:
    """A constant of one number."""

    def __init__(self, logger=logging):
        self.logger = logger

    def __call__(self, device_no: int) -> Any:
        import tensorflow

        with tensorflow.device(f"GPU:{device_no}"):
            return tensorflow.constant([1.0])

    def release(self, placeholder: Any) -> None:
        self.logger.info("Did nothing, TensorFlow doesn't expose interface for releasing GPUs")


class PyCudaPlaceholder:
    """A CUDA context."""

    def __init__(self, logger=logging):
        self.logger = logger

    def __call__(self, device_no: int) -> Any:
        import pycuda.driver

        pycuda.driver.init()
        return pycuda.driver.Device(device_no).make_context()

    def release(self, placeholder: Any) -> None:
        placeholder.detach()
        self.logger.info("Released a CUDA context")


# What versions before 2.0.0 have in place of the classes.


def pytorch_placeholder(device_no: int) -> Any:
    """PytorchPlaceholder as a plain function."""
    return PytorchPlaceholder()(device_no)


def tensorflow_placeholder(device_no: int) -> Any:
    """TensorflowPlaceholder as a plain function."""
    return TensorflowPlaceholder()(device_no)
