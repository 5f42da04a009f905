"""Owning GPUs."""

from __future__ import annotations

import logging
import os
import time
from typing import Any, Callable, Optional

import berth
from berth_dropin import beside_scheduler, cards, mask
from berth_dropin.beside import warn_of_original

from safe_gpu import lock
from safe_gpu.lock import LOCK_FILENAME
from safe_gpu.placeholders import (
    PyCudaPlaceholder,
    PytorchPlaceholder,
    TensorflowPlaceholder,
    pytorch_placeholder,
    tensorflow_placeholder,
)

__all__ = [
    "GPUOwner",
    "LOCK_FILENAME",
    "NvidiasmiError",
    "PyCudaPlaceholder",
    "PytorchPlaceholder",
    "TensorflowPlaceholder",
    "claim_gpus",
    "get_free_gpus",
    "gpu_owner",
    "is_single_gpu_display_mode",
    "pytorch_placeholder",
    "release_gpus",
    "tensorflow_placeholder",
]

warn_of_original("safe_gpu")

_ADVICE = """
                Failed to acquire placeholder.
                Race condition with someone not using `GPUOwner` ?
                Or CUDA was already initialized when calling `claim_gpus()`?
                """
_ANY_COMPANY = 1 << 20


class NvidiasmiError(Exception):
    """The driver does not answer."""


def _gpus() -> list:
    try:
        gpus = cards.gpus()
    except berth.NoDriver as error:
        raise NvidiasmiError(str(error)) from error
    if not gpus:
        raise NvidiasmiError("No devices were found")
    return gpus


def get_free_gpus() -> list[str]:
    """Indices of the GPUs that nobody computes on and nobody has leased."""
    _gpus()
    return [str(gpu.index) for gpu in cards.Look().on_offer() if not cards.computing(gpu)]


def is_single_gpu_display_mode() -> bool:
    """Whether the only GPU of this machine also drives the display."""
    gpus = _gpus()
    return len(gpus) == 1 and bool(gpus[0].display_active)


class GPUOwner:
    """Leases `nb_gpus` idle GPUs until the process ends or `release_gpus()`, and sets CUDA_VISIBLE_DEVICES to them.

    placeholder_fn: called with 0, 1, … for each GPU, once the mask is set; what it returns is kept. logger: in place
    of the root logger. debug_sleep: seconds to sleep before the placeholders. wait: seconds, a time like "10m", or
    None for as long as it takes; by default it does not wait.

    Raises RuntimeError when too few GPUs are free, ValueError when more than one is asked for where there is only
    that of the display, NvidiasmiError when the driver does not answer, and what a placeholder raises.
    """

    def __init__(
        self,
        nb_gpus: int = 1,
        placeholder_fn: Optional[Callable[[int], Any]] = None,
        logger: Any = None,
        debug_sleep: float = 0.0,
        *,
        wait: Any = 0,
    ):
        if nb_gpus < 0:
            raise ValueError(f"nb_gpus must be 0 or more, not {nb_gpus}")
        self.logger = logging if logger is None else logger
        self.debug_sleep = debug_sleep
        self.placeholder_fn = PytorchPlaceholder(self.logger) if placeholder_fn is None else placeholder_fn
        self.devices_taken: list[int] = []
        self.placeholders: list = []
        self._lease: Optional[beside_scheduler.Lease] = None
        mask.check_effective()
        if is_single_gpu_display_mode():
            self._claim_the_display(nb_gpus)
        else:
            self._claim(nb_gpus, wait)

    def _claim_the_display(self, nb_gpus: int) -> None:
        self.logger.info("Running on a machine with single GPU used for actual display")
        if nb_gpus != 1:
            raise ValueError(f"Requested {nb_gpus} GPUs on a machine with single one.")
        self._occupy(_leased(1, 0, shared=True, processes=_ANY_COMPANY))

    def _claim(self, nb_gpus: int, wait: Any) -> None:
        if nb_gpus == 0:
            with lock.held(self.logger):
                mask.put("")
                self.logger.info("Set CUDA_VISIBLE_DEVICES=")
        elif wait == 0:
            with lock.held(self.logger):
                self._occupy(_leased(nb_gpus, 0))
        else:
            while not self._claim_in_line(nb_gpus, wait):
                pass

    def _claim_in_line(self, nb_gpus: int, wait: Any) -> bool:
        """Stands in Berth's line without the lock of the original, which would keep all others out for so long. So
        an original can come between; then the answer is no."""
        lease = _leased(nb_gpus, wait)
        try:
            with lock.held(self.logger):
                if any(cards.computing(gpu) for gpu in cards.gpus() if gpu.uuid in lease.held.uuids):
                    lease.release()
                    return False
                self._occupy(lease)
        except BaseException:
            lease.release()
            raise
        return True

    def _occupy(self, lease: beside_scheduler.Lease) -> None:
        try:
            self._lease = lease
            self.allocate_gpus(list(lease.held.ids), lease.held.visible_devices)
        except BaseException:
            self._lease = None
            lease.release()
            raise

    def allocate_gpus(self, gpu_device_numbers: list[int], visible_devices: Optional[str] = None) -> None:
        mask.put(",".join(map(str, gpu_device_numbers)) if visible_devices is None else visible_devices)
        self.logger.info(f"Set CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']}")
        time.sleep(self.debug_sleep)
        for ordinal in range(len(gpu_device_numbers)):
            try:
                self.placeholders.append(self.placeholder_fn(ordinal))
            except ImportError:
                raise
            except Exception:
                self.logger.error(_ADVICE)
                raise
        self.devices_taken = gpu_device_numbers

    def release_gpus(self) -> None:
        """Lets go of the placeholders, as far as their toolkit can, and of the lease."""
        release = getattr(self.placeholder_fn, "release", None)
        try:
            for ordinal, placeholder in enumerate(self.placeholders):
                self.logger.info(f"Releasing placeholder on CUDA device: {ordinal}")
                if release is not None:
                    release(placeholder)
        finally:
            self.placeholders = []
            if self._lease is not None:
                self._lease.release()
                self._lease = None


def _leased(count: int, wait: Any, **company: Any) -> beside_scheduler.Lease:
    """Whole boards. Raises RuntimeError when too few are free."""
    boards = [gpu.uuid for gpu in _gpus() if cards.is_usable(gpu)]
    try:
        if len(boards) < count:
            raise berth.Impossible(
                f"{count} asked for, and this machine has {len(boards)}", _verdicts(boards)
            )
        return beside_scheduler.lease(count, boards, order="index", wait=wait, note="safe_gpu", **company)
    except (berth.NotNow, berth.TimedOut, berth.Impossible) as refusal:
        raise RuntimeError(_too_few(count, refusal)) from None


def _verdicts(boards: list[str]) -> tuple:
    return berth.why(devices=boards, mask=False) if boards else ()


def _too_few(count: int, refusal: berth.Error) -> str:
    found = beside_scheduler.reasons(refusal.verdicts or berth.why(mask=False))
    free = [str(device.index) for device, reason in found if not reason]
    text = f"Required {count} GPUs, only found these free: {free}. Somebody didn't properly declare their resources?"
    return "\n".join([text, *(f"GPU {device.label}: {reason}" for device, reason in found if reason)])


gpu_owner: Optional[GPUOwner] = None


def claim_gpus(
    nb_gpus: int = 1,
    placeholder_fn: Optional[Callable[[int], Any]] = None,
    logger: Any = None,
    debug_sleep: float = 0.0,
    *,
    wait: Any = 0,
) -> None:
    """A GPUOwner for the whole program, kept in `gpu_owner`; the same arguments and errors."""
    global gpu_owner
    gpu_owner = GPUOwner(nb_gpus, placeholder_fn, logger, debug_sleep, wait=wait)


def release_gpus() -> None:
    """Releases what `claim_gpus` claimed."""
    if gpu_owner is not None:
        gpu_owner.release_gpus()
