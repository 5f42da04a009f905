"""safe_gpu on Berth: claims idle GPUs for this process.

    from safe_gpu import safe_gpu

    gpu_owner = safe_gpu.GPUOwner()

Nobody else who asks Berth, and no copy of the original, gets these until the process ends or releases them.
"""

from safe_gpu.placeholders import (
    PyCudaPlaceholder,
    PytorchPlaceholder,
    TensorflowPlaceholder,
    pytorch_placeholder,
    tensorflow_placeholder,
)
from safe_gpu.safe_gpu import claim_gpus, release_gpus

__all__ = [
    "PyCudaPlaceholder",
    "PytorchPlaceholder",
    "TensorflowPlaceholder",
    "claim_gpus",
    "pytorch_placeholder",
    "release_gpus",
    "tensorflow_placeholder",
]
