"""The other name of gpu_utilities, which its document imports as well: the same modules, not copies."""

import importlib
import sys

_MODULES = (
    "errors",
    "gpu",
    "gpu_info_obtainer",
    "gpu_selector",
    "obtainers",
    "obtainers.nvml",
    "obtainers.torch",
    "utils",
    "utils.bytes",
)

for _name in _MODULES:
    sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"gpu_utilities.{_name}")
    if "." not in _name:
        globals()[_name] = sys.modules[f"{__name__}.{_name}"]
