#!/usr/bin/env python3
"""Shows that two processes never claim the same GPU: it draws out the time between choosing and occupying one.

On a machine with three free GPUs:

    python3 gpu-acquisitor.py --id 1 --nb-gpus 1 & python3 gpu-acquisitor.py --id 2 --nb-gpus 2

One of them waits until the other has occupied its GPUs. With --wait it also waits for GPUs that are not free.
"""

import argparse
import logging
import time

from safe_gpu import safe_gpu

PLACEHOLDERS = {
    "pytorch": safe_gpu.PytorchPlaceholder,
    "tf": safe_gpu.TensorflowPlaceholder,
    "pycuda": safe_gpu.PyCudaPlaceholder,
}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Claims GPUs slowly.")
    parser.add_argument("--sleep", type=float, default=10.0, help="seconds between choosing and occupying")
    parser.add_argument("--id", type=int, default=0, help="a number that tells processes apart")
    parser.add_argument("--nb-gpus", type=int, default=1, help="how many")
    parser.add_argument("--backend", choices=PLACEHOLDERS, default="pytorch", help="what occupies a GPU")
    parser.add_argument(
        "--explicit-owner-object", action="store_true", help="make a GPUOwner instead of calling claim_gpus()"
    )
    parser.add_argument("--wait", default=0, help="wait for free GPUs, at most so long: 10m, or forever")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    logging.basicConfig(
        format=f"GPUOwner{options.id} %(asctime)s [%(levelname)s] %(message)s", level=logging.INFO
    )
    arguments = (options.nb_gpus, PLACEHOLDERS[options.backend](), None, options.sleep)
    wait = None if options.wait == "forever" else options.wait
    if options.explicit_owner_object:
        owner = safe_gpu.GPUOwner(*arguments, wait=wait)
    else:
        safe_gpu.claim_gpus(*arguments, wait=wait)
        owner = safe_gpu.gpu_owner
    logging.info(f"Allocated devices: {owner.devices_taken}")
    time.sleep(options.sleep)
    logging.info("Finished")


if __name__ == "__main__":
    main()
