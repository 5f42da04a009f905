"""The command `gpu-scheduler`: prints free GPUs. It looks only; `berth run` also keeps them."""

from __future__ import annotations

import argparse
import logging
import math
import sys
import time

import berth

from gpu_scheduler.gpu_info import free_gpus


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpu-scheduler",
        description="Finds free GPUs and prints their ids, with commas between, for CUDA_VISIBLE_DEVICES.",
    )
    add = parser.add_argument
    add("--num-gpus", type=int, default=1, help="how many (default: %(default)s)")
    add("--memory-threshold-gb", type=float, default=20, help="GiB free at least (default: %(default)s)")
    add("--power-threshold-w", type=float, default=80, help="watts at most (default: %(default)s)")
    add("--utilization-threshold-percent", type=float, help="percent at most (default: not checked)")
    add("--no-wait", action="store_true", help="fail at once when there are too few (default: wait)")
    add("--poll-interval", type=float, default=10, help="seconds between two looks (default: %(default)s)")
    add("--max-wait-time", type=float, default=math.inf, help="seconds to wait at most (default: for ever)")
    return parser


def _found(options) -> list[int]:
    free = free_gpus(
        options.memory_threshold_gb, options.power_threshold_w, options.utilization_threshold_percent
    )
    return [info["gpu_id"] for info in free]


def _wait(options) -> list[int]:
    """Raises TimeoutError when there are too few and no more time."""
    begun = None
    while True:
        ids = _found(options)
        # The wait begins with the first look, however long that took.
        begun = begun or time.monotonic()
        if len(ids) >= options.num_gpus:
            return ids[: options.num_gpus]
        short = f"Found only {len(ids)} free GPU(s), but {options.num_gpus} requested"
        if options.no_wait:
            raise TimeoutError(short)
        waited = time.monotonic() - begun
        left = options.max_wait_time - waited
        if left <= 0:
            raise TimeoutError(f"Timeout after {options.max_wait_time:g} seconds. {short}")
        print(
            f"Waiting for {options.num_gpus} free GPU(s)... Found {len(ids)} free GPU(s). "
            f"Waiting {options.poll_interval:g} seconds... (elapsed: {waited:.0f}s)",
            file=sys.stderr,
        )
        time.sleep(min(options.poll_interval, left))


def main() -> int:
    options = _parser().parse_args()
    logging.getLogger("gpu_scheduler").setLevel(logging.WARNING)
    try:
        print(",".join(map(str, _wait(options))))
    except (TimeoutError, berth.Error) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
