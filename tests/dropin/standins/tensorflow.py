"""As much of TensorFlow as a placeholder touches."""

import contextlib

from torch import cuda

_blocks = []
_device = 0


@contextlib.contextmanager
def device(name):
    global _device
    _device = int(name.rpartition(":")[2])
    yield


def constant(values):
    _blocks.append(cuda._allocate(_device, 4 * len(values)))
    return _blocks[-1]
