"""CUDA_VISIBLE_DEVICES of this process."""

import os

from berth import _berth


def check_effective() -> None:
    """Raises RuntimeError when CUDA is up here: it has read the mask and will not read it again."""
    if _berth.cuda_is_up():
        raise RuntimeError(
            "CUDA is up in this process already and no longer looks at CUDA_VISIBLE_DEVICES: "
            "ask for GPUs before the first use of CUDA"
        )


def put(value: str) -> None:
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    os.environ["CUDA_VISIBLE_DEVICES"] = value
