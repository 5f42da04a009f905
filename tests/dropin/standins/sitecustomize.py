"""Keeps the lock files of newer gpu_schedulers, which are in one place for all users, apart for each test."""

import os

try:
    from berth_dropin import scheduler_locks
except ImportError:  # an original's environment
    pass
else:
    scheduler_locks.NEWER_DIRECTORY = os.path.expanduser("~/newer_gpu_locks")
