"""GPUScheduler: a lease for a block."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from typing import Optional

import berth

from berth_dropin import asking, scheduler_locks

from gpu_scheduler import gpu_info
from gpu_scheduler.gpu_info import find_free_gpus

logger = logging.getLogger("gpu_scheduler")

# How often a GPU that an original has locked is looked at again: its lock tells nobody when it
# ends.
RETRY_S = 2.0
_ANY_COMPANY = 1 << 20
# MiB, or watts: in place of numbers that no board reaches, such as math.inf.
_MORE_THAN_ANY = 1 << 30


class GPUScheduler:
    """Leases `num_gpus` GPUs for a `with` block; the block gets their ids as PyTorch counts.

    memory_free_threshold_gb: GiB free at least. power_threshold_w, utilization_threshold_percent: at most; None for
    not asked. max_wait_time: seconds, then TimeoutError. specific_gpus: ids to choose among. debug_mode: asks nothing
    about load, and raises RuntimeError at once when there are too few. `poll_interval` and `timeout` have no effect:
    who waits stands in the queue and is woken.

    gpu_ids: what the block has, [] outside of it. locks: the lock files that are held for it. prev_device: PyTorch's
    default device before.
    """

    def __init__(
        self,
        memory_free_threshold_gb: float = 20,
        power_threshold_w: Optional[float] = 80,
        utilization_threshold_percent: Optional[float] = 1,
        max_wait_time: float = math.inf,
        poll_interval: float = 10,
        specific_gpus: Optional[list] = None,
        timeout: float = 10,
        num_gpus: int = 1,
        debug_mode: bool = False,
    ):
        self.memory_free_threshold_gb = memory_free_threshold_gb
        self.power_threshold_w = power_threshold_w
        self.utilization_threshold_percent = utilization_threshold_percent
        self.max_wait_time = max_wait_time
        self.poll_interval = poll_interval
        self.specific_gpus = specific_gpus
        self.timeout = timeout
        self.num_gpus = math.ceil(num_gpus)
        self.debug_mode = debug_mode
        self._lease: Optional[asking.Granted] = None
        self._holder = 0
        self.gpu_ids: list = []
        self.locks: list = []
        self._place: tuple = ()
        self.prev_device: Optional[int] = None

    def __enter__(self) -> list:
        if self.debug_mode:
            logger.info("🔧 DEBUG MODE: Bypassing all GPU checks and grabbing first available GPUs")
        try:
            ids = self._acquire()
            self._set_default_device(ids[0])
        except BaseException:
            self._give_back()
            raise
        return ids

    def __exit__(self, *exception) -> None:
        # An error of CUDA's that stays comes up at each later call: also there.
        try:
            self._restore_default_device()
        finally:
            self._give_back()

    # Waiting --------------------------------------------------------------------------------------

    def _acquire(self) -> list:
        """Stands in the queue. A GPU that an original has locked is passed over until its lock is seen to be free."""
        if (pretended := self._pretended()) is not None:
            return self._lock_pretended(pretended)
        end = time.monotonic() + (0 if self.debug_mode else self.max_wait_time)
        locked: set = set()
        while True:
            try:
                numbers = self._candidates(locked)
            except berth.NoDriver as error:
                raise self._failed(berth.Impossible(str(error))) from None
            left = max(0.0, end - time.monotonic())
            try:
                lease = self._ask(numbers, min(left, RETRY_S) if locked else left)
            except (berth.NotNow, berth.TimedOut, berth.Impossible) as refusal:
                if not locked or left == 0:
                    raise self._failed(refusal) from None
                if isinstance(refusal, berth.Impossible):
                    time.sleep(min(left, RETRY_S))
                locked = {gpu_id for gpu_id in locked if scheduler_locks.is_held(gpu_id, gpu_info.LOCK_DIR)}
                continue
            by_uuid = {gpu.uuid: gpu_id for gpu_id, gpu in numbers.items()}
            ids = sorted(by_uuid[uuid] for uuid in lease.held.uuids)
            held_by_others = self._lock(ids, is_part=lease.around is not None)
            if not held_by_others:
                self._lease, self.gpu_ids, self._holder = lease, ids, os.getpid()
                _of_this_thread().append(lease.id)
                self._announce(ids, numbers)
                return ids
            lease.release()
            locked |= held_by_others
            logger.info(
                "GPU %s is locked by another gpu_scheduler", ", ".join(map(str, sorted(held_by_others)))
            )

    def _told(self) -> Optional[list]:
        """What functions that a program has put in the place of ours say of the GPUs that are free; None where it has
        put none there."""
        is_ours = find_free_gpus is gpu_info.find_free_gpus
        if is_ours and not gpu_info.are_told_otherwise():
            return None
        bounds = (self.memory_free_threshold_gb, self.power_threshold_w, self.utilization_threshold_percent)
        found = find_free_gpus(*((0, None, None) if self.debug_mode else bounds))
        return [info for info in found if self.specific_gpus is None or info["gpu_id"] in self.specific_gpus]

    def _pretended(self) -> Optional[list]:
        """The ids of free GPUs in the test of a program, whose GPUs are not those of this machine."""
        told = self._told()
        if not told or all(map(gpu_info.is_there, told)):
            return None
        return [info["gpu_id"] for info in told]

    def _lock_pretended(self, ids: list) -> list:
        """As the original, which has nothing but its lock files."""
        chosen = ids[: self.num_gpus]
        if len(chosen) < self.num_gpus or (refused := self._lock(chosen, is_part=False)):
            why = f"GPU {refused} is locked" if len(chosen) == self.num_gpus else f"{len(ids)} are there"
            raise self._failed(berth.Impossible(why))
        self.gpu_ids, self._holder = chosen, os.getpid()
        return chosen

    def _candidates(self, locked: set) -> dict:
        """Id -> device, of those that this request may ever have."""
        bounds = (self.power_threshold_w, self.utilization_threshold_percent)
        if not self.debug_mode and any(bound is not None and bound < 0 for bound in bounds):
            return {}  # no reading is below 0
        wanted = None if self.specific_gpus is None else set(self.specific_gpus)
        if (told := self._told()) is not None:
            wanted = {info["gpu_id"] for info in told}
        return {
            gpu_id: gpu
            for gpu_id, gpu in gpu_info.numbered().items()
            if (wanted is None or gpu_id in wanted)
            and gpu_id not in locked
            and (self.debug_mode or not gpu_info.is_banned(gpu_id, gpu.name))
        }

    def _ask(self, numbers: dict, wait: float) -> asking.Granted:
        if len(numbers) < self.num_gpus:
            raise berth.Impossible(f"{self.num_gpus} asked for, and there are {len(numbers)} to choose among")
        uuids = [gpu.uuid for gpu in numbers.values()]
        if self.debug_mode:
            company = {"shared": True, "processes": _ANY_COMPANY, "order": "index"}
            return asking.lease(self.num_gpus, uuids, wait=0, note=asking.SCHEDULER_DEBUG, **company)
        where = self._thresholds(list(numbers.values()))
        return asking.lease(
            self.num_gpus,
            uuids,
            where=where or None,
            wait=wait,
            on_wait=self._report_wait,
            note=asking.SCHEDULER,
            # It would wait for these for ever: only this thread can leave their blocks.
            beside=tuple(_of_this_thread()),
        )

    def _thresholds(self, gpus) -> str:
        """The bounds as an expression. A board that lacks a reading is not judged by it."""
        asked = []
        if self.memory_free_threshold_gb > 0:
            mib = min(float(self.memory_free_threshold_gb) * 1024, _MORE_THAN_ANY)
            asked.append((f"free >= {math.ceil(mib)}MiB", []))
        if self.power_threshold_w is not None and self.power_threshold_w < _MORE_THAN_ANY:
            asked.append((f"power <= {_decimal(self.power_threshold_w)}W", _without(gpus, "power_mw")))
        if self.utilization_threshold_percent is not None and self.utilization_threshold_percent < 100:
            bound = _decimal(self.utilization_threshold_percent)
            asked.append((f"util <= {bound}", _without(gpus, "utilization_percent")))
        return " and ".join(
            "(" + " or ".join([condition, *(f'uuid = "{gpu.uuid}"' for gpu in exempt)]) + ")"
            for condition, exempt in asked
        )

    def _lock(self, ids: list, is_part: bool) -> set:
        """Takes the lock files of all; or of none, and returns the ids of those that others hold. A part of a lease that
        this program has may find them locked by that one."""
        taken, refused = [], set()
        for gpu_id in ids:
            locks = scheduler_locks.take(gpu_id, gpu_info.LOCK_DIR)
            if locks is None:
                if not is_part or scheduler_locks.is_held_by_others(gpu_id, gpu_info.LOCK_DIR):
                    refused.add(gpu_id)
            else:
                taken += locks
        if refused:
            scheduler_locks.release(taken)
        else:
            self.locks = taken
        return refused

    # Words ----------------------------------------------------------------------------------------

    def _prefix(self) -> str:
        return "🔧 DEBUG: " if self.debug_mode else ""

    def _announce(self, ids: list, numbers: dict) -> None:
        for gpu_id in ids:
            info = gpu_info.described(gpu_id, numbers[gpu_id])
            logger.info(
                "%sGPU %d (%s) acquired - Memory: %.2fGB free, Power: %sW, Utilization: %s%%",
                self._prefix(),
                gpu_id,
                info["name"],
                info["memory_free"] / 1024,
                info["power_draw"],
                info["utilization"],
            )
        logger.info("%sAcquired %d GPUs: %s", self._prefix(), len(ids), ids)

    def _report_wait(self, waiting) -> None:
        held = asking.WAITS_FOR_SAFE_GPU in waiting.reason and waiting.reason
        place = (waiting.position, waiting.behind and waiting.behind.id, held)
        if place != self._place:
            self._place = place
            logger.info("Waiting for %d GPUs: %s", self.num_gpus, waiting)

    def _failed(self, refusal: berth.Error) -> Exception:
        if self.debug_mode:
            free = sum(verdict.free for verdict in refusal.verdicts)
            return RuntimeError(f"🔧 DEBUG MODE: Could only acquire {free}/{self.num_gpus} GPUs: {refusal}")
        if isinstance(refusal, berth.Impossible):
            return TimeoutError(f"Couldn't acquire {self.num_gpus} GPUs, however long the wait: {refusal}")
        return TimeoutError(
            f"Couldn't acquire {self.num_gpus} GPUs within {self.max_wait_time} seconds: {refusal}"
        )

    # The block ------------------------------------------------------------------------------------

    def _set_default_device(self, gpu_id: int) -> None:
        try:
            import torch
        except ImportError:
            return
        if not torch.cuda.is_available():
            return
        self.prev_device = torch.cuda.current_device()
        torch.cuda.set_device(gpu_id)
        logger.info("%sSet GPU %d as the default CUDA device", self._prefix(), gpu_id)

    def _restore_default_device(self) -> None:
        if self.prev_device is None:
            return
        import torch

        torch.cuda.set_device(self.prev_device)
        self.prev_device = None

    def _give_back(self) -> None:
        # A fork that leaves the block leaves its parent in there.
        if self._holder in (0, os.getpid()):
            scheduler_locks.release(self.locks)
            if self._lease is not None:
                if self._lease.id in (mine := _of_this_thread()):
                    mine.remove(self._lease.id)
                self._lease.release()
                logger.info("Released GPUs: %s", self.gpu_ids)
        self._holder = 0
        self._lease = None
        self.locks = []
        self.gpu_ids = []


_blocks = threading.local()


def _of_this_thread() -> list[str]:
    """The ids of the leases of the blocks that this thread is inside of."""
    if not hasattr(_blocks, "leases"):
        _blocks.leases = []
    return _blocks.leases


def _decimal(bound) -> str:
    """Without an exponent. Readings are at least a thousandth."""
    return f"{float(bound):.6f}"


def _without(gpus, reading: str) -> list:
    return [gpu for gpu in gpus if getattr(gpu, reading) is None]
