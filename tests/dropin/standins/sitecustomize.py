"""Keeps the lock files of newer gpu_schedulers and of safe_gpu, which are in one place for all users, apart for each
test: its originals and ours have them in its home."""

import importlib.abc
import importlib.util
import os
import sys

HOME = os.path.expanduser("~")
PLACES = {
    "berth_dropin.scheduler_locks": {"NEWER_DIRECTORY": f"{HOME}/newer_gpu_locks"},
    "berth_dropin.safe_gpu_files": {
        "LOCK_FILENAME": f"{HOME}/tmp/safe_gpu/lock",
        "EARLIER_LOCK_FILENAME": f"{HOME}/tmp/lock",
    },
}
# Of an original the version says which.
ORIGINAL = "safe_gpu.safe_gpu"


class Moved(importlib.abc.MetaPathFinder):
    """Finds as the others do, and sets the places once the module is there."""

    def find_spec(self, name, path=None, target=None):  # noqa: ARG002
        if name not in PLACES and name != ORIGINAL:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            for key, value in PLACES.get(name, {}).items():
                setattr(module, key, value)
            usual = getattr(module, "LOCK_FILENAME", "")
            if usual.startswith("/tmp/") and usual.endswith("Across_Users"):  # an original's
                kind = "LOCK_FILENAME" if usual.startswith("/tmp/safe_gpu/") else "EARLIER_LOCK_FILENAME"
                os.makedirs(f"{HOME}/tmp", exist_ok=True)
                module.LOCK_FILENAME = PLACES["berth_dropin.safe_gpu_files"][kind]

        spec.loader.exec_module = exec_module
        return spec


os.makedirs(f"{HOME}/tmp", exist_ok=True)
sys.meta_path.insert(0, Moved())
