"""PyPI's `berth` is another project, and it has a package `berth` too. Ours is `berth-gpu`.

If both are installed, the later one has overwritten files of the earlier one. If the later one is
not ours, none of our code runs. So we can warn only if ours came later."""

from __future__ import annotations

import os


def warn(package: str) -> None:
    """Warns if the other project is installed beside `package`, the folder of ours."""
    try:
        # importlib.metadata would say it too, at the price of all else that an import of Berth
        # costs.
        names = os.listdir(os.path.dirname(package))
    except OSError:
        return
    if any(name.startswith("berth-") and name.endswith((".dist-info", ".egg-info")) for name in names):
        import warnings

        warnings.warn(
            "another project named berth is installed here beside berth-gpu, and both have the module and the "
            "program berth. Remove the other, which takes files of ours with it, and install ours again (in a "
            "checkout of Berth): pip uninstall -y berth && pip install --force-reinstall --no-deps .",
            stacklevel=3,
        )
