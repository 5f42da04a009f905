"""gpuselect on Berth: sets CUDA_VISIBLE_DEVICES to idle GPUs, and leases them for this process.

    >>> from gpuselect import gpuselect
    >>> gpuselect(count=2, name="A100")  # doctest: +SKIP
    '0,1'

Nobody else who asks Berth gets these until the process ends or calls `gpuselect` again. With set_cvd=False it
only looks.
"""

from berth_dropin.beside import warn_of_original

from gpuselect import nvmlgpuselect  # noqa: F401, as the original has it
from gpuselect.selection import GpuInfo, __filter_gpus, gpuselect, gpustatus  # noqa: F401, likewise

__all__ = ["GpuInfo", "gpuselect", "gpustatus"]

warn_of_original("gpuselect")
