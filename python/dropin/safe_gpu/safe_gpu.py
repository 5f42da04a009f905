"""Owning GPUs."""

from __future__ import annotations

import fcntl
import logging
import operator
import os
import time
from collections.abc import Iterable
from typing import Any, Callable, Optional

import berth
from berth import _berth
from berth_dropin import asking, beside_scheduler, cards, mask, safe_gpu_files
from berth_dropin.safe_gpu_files import LOCK_FILENAME
from berth_dropin.beside import warn_of_original

from safe_gpu import lock
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
    "SafeLock",
    "SafeUmask",
    "TensorflowPlaceholder",
    "claim_gpus",
    "get_free_gpus",
    "get_nvidia_smi_value",
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


class NvidiasmiError(FileNotFoundError):
    """The driver does not answer. Where there is none, programs of the original catch a FileNotFoundError, as there is no
    `nvidia-smi` either."""


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


_our_free_gpus = get_free_gpus


def is_single_gpu_display_mode() -> bool:
    """Whether the only GPU of this machine also drives the display."""
    gpus = _gpus()
    return len(gpus) == 1 and bool(gpus[0].display_active)


# What programs of the original import beside its owners; ours has no use for them.


class SafeLock:
    """A record lock on an open file, for a block."""

    def __init__(self, fd: Any, logger: Any = None):
        self.logger = logger if logger else logging
        self._fd = fd

    def __enter__(self) -> None:
        self.logger.info("acquiring lock")
        fcntl.lockf(self._fd, fcntl.LOCK_EX)
        self.logger.info("lock acquired")

    def __exit__(self, *exception: object) -> None:
        fcntl.lockf(self._fd, fcntl.LOCK_UN)
        self.logger.info("lock released")


class SafeUmask:
    """A umask for a block."""

    def __init__(self, working_mask: int):
        self.old_mask: Optional[int] = None
        self.working_mask = working_mask

    def __enter__(self) -> None:
        self.old_mask = os.umask(self.working_mask)

    def __exit__(self, *exception: object) -> None:
        if self.old_mask is not None:
            os.umask(self.old_mask)


def get_nvidia_smi_value(nvidia_smi_lines: Iterable[str], key: str) -> str:
    """The last word of the first of these lines that has the key; KeyError where none has."""
    for line in nvidia_smi_lines:
        if key in line:
            return line.split()[-1]
    raise KeyError(f'"{key}" not found in the provided nvidia-smi output')


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
        nb_gpus = operator.index(nb_gpus)
        if nb_gpus < 0:
            raise ValueError(f"nb_gpus must be 0 or more, not {nb_gpus}")
        self.logger = logging if logger is None else logger
        self.debug_sleep = debug_sleep
        self.placeholder_fn = PytorchPlaceholder(self.logger) if placeholder_fn is None else placeholder_fn
        self.devices_taken: list[int] = []
        self.placeholders: list = []
        self._lease: Optional[asking.Granted] = None
        self._visible = ""
        self._uuids: tuple = ()
        if (earlier := _earlier(nb_gpus)) is not None:
            self._share(earlier)
            return
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

    def _share(self, earlier: GPUOwner) -> None:
        """What this program has. Its placeholders are there, and nobody else can have come."""
        self._lease, self._visible, self._uuids = earlier._lease, earlier._visible, earlier._uuids
        self.devices_taken, self.placeholders = list(earlier.devices_taken), list(earlier.placeholders)
        self.logger.info(f"Set CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']}")
        _remember(self)

    def _claim(self, nb_gpus: int, wait: Any) -> None:
        if nb_gpus == 0:
            with lock.held(LOCK_FILENAME, self.logger):
                mask.put("")
                self.logger.info("Set CUDA_VISIBLE_DEVICES=")
        elif wait == 0:
            with lock.held(LOCK_FILENAME, self.logger):
                self._occupy(_leased(nb_gpus, 0))
        else:
            while not self._claim_in_queue(nb_gpus, wait):
                pass

    def _claim_in_queue(self, nb_gpus: int, wait: Any) -> bool:
        """Stands in Berth's line without the lock of the original, which would keep all others out for so long. So
        an original can come between; then the answer is no."""
        # The lock that Berth would take for us would be in our own way.
        with safe_gpu_files.held_here():
            lease = _leased(nb_gpus, wait)
        try:
            with lock.held(LOCK_FILENAME, self.logger):
                if any(cards.strangers(gpu) for gpu in cards.gpus() if gpu.uuid in lease.held.uuids):
                    lease.release()
                    return False
                self._occupy(lease)
        except BaseException:
            lease.release()
            raise
        return True

    def _occupy(self, lease: asking.Granted) -> None:
        try:
            self._lease = lease
            self._visible, self._uuids = lease.held.visible_devices, lease.held.uuids
            # A subclass may have its own, with this one argument, which the original gives it as
            # texts.
            self.allocate_gpus([str(index) for index in lease.held.ids])
            _remember(self)
        except BaseException:
            self._lease = None
            lease.release()
            raise

    def allocate_gpus(self, gpu_device_numbers: list) -> None:
        """Sets the mask to GPUs that are leased, and occupies them."""
        if self._uuids and os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID") != "PCI_BUS_ID":
            # Only names mean the same GPUs in another order, which is the program's.
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(self._uuids)
        else:
            mask.put(self._visible or ",".join(map(str, gpu_device_numbers)))
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
        self.devices_taken.extend(map(int, gpu_device_numbers))

    def release_gpus(self) -> None:
        """Lets go of the placeholders, as far as their toolkit can, and of the lease."""
        release = getattr(self.placeholder_fn, "release", None)
        try:
            for device, placeholder in zip(self.devices_taken, self.placeholders):
                self.logger.info(f"Releasing placeholder on CUDA device: {device}")
                if release is not None:
                    release(placeholder)
        finally:
            if self._lease is not None:
                self._lease.release()
                self._lease = None


_latest: Optional[tuple[GPUOwner, int, Optional[str]]] = None


def _remember(owner: GPUOwner) -> None:
    global _latest
    _latest = owner, os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES")


def _earlier(nb_gpus: int) -> Optional[GPUOwner]:
    """Once CUDA is up, as in a cell of a notebook that is run again: the owner of what this process sees, if that is as
    much as is asked for. It cannot be shown anything else."""
    if _latest is None or not _berth.cuda_is_up():
        return None
    owner, pid, visible = _latest
    is_as_it_was = pid == os.getpid() and os.environ.get("CUDA_VISIBLE_DEVICES") == visible
    return owner if is_as_it_was and owner._lease is not None and len(owner._uuids) == nb_gpus else None


def _leased(count: int, wait: Any, **company: Any) -> asking.Granted:
    """Whole boards. Raises RuntimeError when too few are free."""
    boards = [gpu.uuid for gpu in _gpus() if cards.is_usable(gpu)]
    if get_free_gpus is not _our_free_gpus:  # a program has put its own in its place
        free = get_free_gpus()
        boards = [gpu.uuid for gpu in _gpus() if gpu.uuid in boards and str(gpu.index) in free]
    try:
        if len(boards) < count:
            raise berth.Impossible(
                f"{count} asked for, and this machine has {len(boards)}", _verdicts(boards)
            )
        return beside_scheduler.lease(
            count, boards, order="index", wait=wait, note=asking.SAFE_GPU, **company
        )
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
