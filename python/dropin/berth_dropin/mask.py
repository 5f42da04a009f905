"""CUDA_VISIBLE_DEVICES of this process."""

import os

from berth import _berth

from berth_dropin import cards


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


def of(chosen: list, gpus: list) -> str:
    """The value that names `chosen` of all boards `gpus`. Indices, unless CUDA counts otherwise than the driver: what
    comes after a board that is lost, hidden or split has another number there, and only its UUID names it."""
    by_index = all(cards.is_usable(gpu) for gpu in gpus)
    return ",".join(str(gpu.index) if by_index else gpu.uuid for gpu in chosen)
