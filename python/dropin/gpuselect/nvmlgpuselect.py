"""The original has all of gpuselect here, and programs import it from here."""

from gpuselect.selection import GpuInfo, __filter_gpus, gpuselect, gpustatus, logger  # noqa: F401

__all__ = ["GpuInfo", "gpuselect", "gpustatus", "logger"]
