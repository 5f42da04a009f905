"""The GPUs as the originals know them: whole boards by index, and what computes on them."""

from __future__ import annotations

import berth

# The questions whose failure takes a card out of any offer, whatever its load. They come before all others
# that a default request can fail.
NOT_ON_OFFER = frozenset({"healthy", "not_excluded", "in_lease", "not_leased", "not_draining"})


def gpus() -> list[berth.Device]:
    """The boards in PCI bus order. MIG instances have no place in the originals' numbers."""
    return [device for device in berth.snapshot().devices if device.mig is None]


def not_on_offer() -> dict[str, str]:
    """UUID -> reason of those that nobody may be pointed to now: leased, excluded by the site, broken, or
    outside the lease that this process runs in."""
    return {
        verdict.device.uuid: verdict.reason
        for verdict in berth.why(mask=False)
        if verdict.clause in NOT_ON_OFFER
    }


def lessees() -> dict[str, list[str]]:
    """UUID -> names of those who have leased it; "?" has locked it without a ticket."""
    return {
        verdict.device.uuid: [culprit.user or "?" for culprit in verdict.culprits] or ["?"]
        for verdict in berth.why(mask=False)
        if verdict.clause == "not_leased"
    }


def on_offer() -> list[berth.Device]:
    taken = not_on_offer()
    return [gpu for gpu in gpus() if gpu.state == "ok" and gpu.uuid not in taken]


def computing(gpu: berth.Device) -> list[berth.Process]:
    """The processes that compute on it, by pid; [] also where the driver does not tell."""
    listed = [process for process in gpu.processes or () if process.kind != "graphics"]
    return sorted(listed, key=lambda process: process.pid)


def used_with_reserve(gpu: berth.Device) -> int | None:
    """Bytes that are not free: with the driver's own part, as most tools count."""
    memory = gpu.memory
    if memory.total_bytes is None or memory.free_bytes is None:
        return None
    return memory.total_bytes - memory.free_bytes
