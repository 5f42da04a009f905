"""An original in the same environment: whichever was installed last has overwritten files of the other.

So only an original that was installed first can be told of at import: of one that came last it is the files that are
run, and ours are not asked. `berth doctor` tells of both."""

import json
import shlex
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


def _source() -> str:
    """What to give to pip so as to install berth-gpu-dropin again: from where it came."""
    try:
        origin = json.loads(metadata.distribution("berth-gpu-dropin").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        origin = {}
    return shlex.quote(origin.get("url", "./python/dropin"))


def warn_of_original(module: str) -> None:
    original = original_beside(module)
    if original is None:
        return
    name, source = original.split()[0], _source()
    where = " (in a checkout of Berth)" if source.startswith(".") else ""
    warnings.warn(
        f"both {original} and berth-gpu-dropin are installed here, and both have the module {module}. Remove the "
        f"original, which takes files of ours with it, and install ours again{where}: "
        f"pip uninstall -y {name} && pip install --force-reinstall --no-deps {source}",
        stacklevel=3,
    )
