"""gpu_scheduler on Berth: leases GPUs for a block, and waits for them in the queue.

    from gpu_scheduler import GPUScheduler

    with GPUScheduler(memory_free_threshold_gb=20) as gpu_ids:
        device = f"cuda:{gpu_ids[0]}"

It does not set CUDA_VISIBLE_DEVICES: the ids count all GPUs as PyTorch counts them.
"""

import logging

from berth_dropin.beside import warn_of_original

from gpu_scheduler.gpu_info import (
    cleanup_stale_locks,
    find_free_gpus,
    get_gpu_info,
    get_gpu_memory_usage,
    get_gpu_names,
    get_gpu_power_usage,
    get_gpu_utilization,
    get_total_num_gpus,
)
from gpu_scheduler.scheduler import GPUScheduler

__version__ = "0.1.0"  # of the original whose interface this is

__all__ = [
    "GPUScheduler",
    "cleanup_stale_locks",
    "find_free_gpus",
    "get_gpu_info",
    "get_gpu_memory_usage",
    "get_gpu_names",
    "get_gpu_power_usage",
    "get_gpu_utilization",
    "get_total_num_gpus",
]

# As the original does, before anything is said: a program that has set up its logging gets the
# lines where it has its own, and one that has not gets them on the error stream.
logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")

warn_of_original("gpu_scheduler")
