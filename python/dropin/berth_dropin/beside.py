"""An original in the same environment: whichever was installed last has overwritten files of the other."""

import warnings
from importlib import metadata

ORIGINALS = {
    "gpuselect": "gpuselect",
    "nvgpu": "nvgpu",
    "gpu_utilities": "gpu-utilities",
    "gpu_scheduler": "gpu-scheduler",
    "safe_gpu": "safe-gpu",
}


def original_beside(module: str):
    """The distribution that has this module, too, as "nvgpu 0.10.0"; None where there is none."""
    try:
        found = metadata.distribution(ORIGINALS[module])
    except metadata.PackageNotFoundError:
        return None
    return f"{found.metadata['Name']} {found.version}"


def warn_of_original(module: str) -> None:
    original = original_beside(module)
    if original is None:
        return
    name = original.split()[0]
    warnings.warn(
        f"both {original} and berth-dropin are installed here, and both have the module {module}; "
        f"remove one: pip uninstall {name} && pip install --force-reinstall --no-deps berth-dropin",
        stacklevel=3,
    )
