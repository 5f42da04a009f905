"""The original has all of gpuselect here, and programs import it from here."""

from berth_dropin import cards

from gpuselect.command import ids as _int_or_list  # noqa: F401
from gpuselect.command import main
from gpuselect.selection import GpuInfo, __filter_gpus, gpuselect, gpustatus, logger  # noqa: F401
from gpuselect.status import describe

__all__ = ["GpuInfo", "gpuselect", "gpustatus", "logger", "main", "pynvml_get_gpu_state"]


def pynvml_get_gpu_state(device_index: int) -> GpuInfo:
    """What is known of the GPU with this index. IndexError where there is none."""
    return describe(cards.gpus()[device_index])


if __name__ == "__main__":
    raise SystemExit(main())
