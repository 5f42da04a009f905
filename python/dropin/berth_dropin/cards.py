"""The GPUs as the originals know them: whole boards by index, and what computes on them."""

from __future__ import annotations

import berth

from berth_dropin import own, scheduler_locks

# The questions whose failure takes a card out of any offer, whatever its load. They come before all
# others that a default request can fail.
NOT_ON_OFFER = frozenset({"healthy", "not_excluded", "in_lease", "not_leased", "not_draining"})


def gpus() -> list[berth.Device]:
    """The boards in PCI bus order. MIG instances have no place in the originals' numbers."""
    return [device for device in berth.snapshot().devices if device.mig is None]


class Look:
    """The boards, and what Berth would say to whoever asked for each of them alone."""

    def __init__(self) -> None:
        self.gpus = gpus()
        self.verdicts = {
            verdict.device.uuid: verdict
            for verdict in berth.why(mask=False)
            if verdict.device.uuid and verdict.device.mig is None
        }
        self._own_holders = {held.pid for held in own.leases(self.verdicts.values())}
        self.locked = scheduler_locks.locked([gpu for gpu in self.gpus if is_usable(gpu)])

    def is_on_offer(self, gpu: berth.Device) -> bool:
        """Whether somebody may be pointed to it: it answers, is whole, and nobody has leased it or locked it by an
        original gpu_scheduler, but this program itself; nor has the site excluded it, and it is of the lease that this process runs in."""
        verdict = self.verdicts.get(gpu.uuid)
        if not is_usable(gpu) or gpu.uuid in self.locked or verdict is None:
            return False
        if verdict.clause == "compute_mode" and "prohibited" in verdict.reason:
            return False
        return verdict.clause not in NOT_ON_OFFER or self._is_own_lease(verdict)

    def _is_own_lease(self, verdict) -> bool:
        holders = {culprit.pid for culprit in verdict.culprits}
        return verdict.clause == "not_leased" and bool(holders) and holders <= self._own_holders

    def on_offer(self) -> list[berth.Device]:
        return [gpu for gpu in self.gpus if self.is_on_offer(gpu)]

    def is_of_others(self, gpu: berth.Device) -> bool:
        """Whether somebody has leased it who is not of this program."""
        verdict = self.verdicts.get(gpu.uuid)
        return verdict is not None and verdict.clause == "not_leased" and not self._is_own_lease(verdict)

    def is_idle(self, gpu: berth.Device) -> bool:
        """Whether nobody computes on it, nor has memory of it that no listed process explains."""
        verdict = self.verdicts.get(gpu.uuid)
        return verdict is not None and verdict.free

    def lessees(self, gpu: berth.Device) -> list[str]:
        """The names of those who have leased it; "?" has locked it without a ticket."""
        verdict = self.verdicts.get(gpu.uuid)
        if verdict is None or verdict.clause != "not_leased":
            return ["?"] if gpu.uuid in self.locked else []
        return [culprit.user or "?" for culprit in verdict.culprits] or ["?"]


def usable() -> list[berth.Device]:
    """The boards that CUDA counts: one that is lost, hidden from this process or split has no number of its own."""
    return [gpu for gpu in gpus() if is_usable(gpu)]


def is_usable(gpu: berth.Device) -> bool:
    return gpu.state == "ok" and not gpu.mig_enabled


def computing(gpu: berth.Device) -> list[berth.Process]:
    """The processes that compute on it, by pid; [] also where the driver does not tell."""
    listed = [process for process in gpu.processes or () if process.kind != "graphics"]
    return sorted(listed, key=lambda process: process.pid)


def strangers(gpu: berth.Device) -> list[berth.Process]:
    """Of these the ones that are not of this program."""
    return [process for process in computing(gpu) if not own.is_own(process.pid)]


def used_with_reserve(gpu: berth.Device) -> int | None:
    """Bytes that are not free: with the driver's own part, as most tools count."""
    memory = gpu.memory
    if memory.total_bytes is None or memory.free_bytes is None:
        return None
    return memory.total_bytes - memory.free_bytes
