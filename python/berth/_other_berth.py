"""PyPI's `berth` is another project with a package of this name. We are `berth-gpu`.

Whichever was installed last has overwritten files of the other. Of one that came after us it is the file that is run, and
nothing here is asked; so only one that came first can be told of."""

from __future__ import annotations

import os


def warn(package: str) -> None:
    """Says so where the other's traces lie beside `package`, the folder of ours."""
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
