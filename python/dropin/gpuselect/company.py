"""GPUs that a call of gpuselect uses without a lease of its own, since Berth leases them to nobody now.

Those of the program that has started this one, as long as they look idle: the original gives them, too. And for a call
that allows company, by `processes` or by a selector, what another program has by gpuselect: its document says that
others may come. A selector stands in place of every filter, also of Berth's, for memory that no process explains."""

from __future__ import annotations

import os

from berth_dropin import asking, own

_BY_GPUSELECT = (asking.GPUSELECT, asking.GPUSELECT_COMMAND)


def welcome(verdicts, by_processes: bool, by_selector: bool) -> list[str]:
    """The UUIDs of such GPUs among those of `verdicts`, which say why Berth refuses each."""
    family = {held.lease for held in own.leases(verdicts) if held.pid != os.getpid()}
    return [
        verdict.device.uuid
        for verdict in verdicts
        if _is_held_by(verdict, lambda culprit: culprit.lease in family and culprit.note == asking.GPUSELECT)
        or ((by_processes or by_selector) and _has_room(verdict))
        or (by_selector and verdict.clause == "no_hidden_holder")
    ]


def _is_held_by(verdict, admits) -> bool:
    return verdict.clause == "not_leased" and bool(verdict.culprits) and all(map(admits, verdict.culprits))


def _has_room(verdict) -> bool:
    """In an exclusive compute mode only one process can compute on a GPU."""
    alone = verdict.device.compute_mode not in (None, "shared")
    return not alone and _is_held_by(verdict, lambda culprit: culprit.note in _BY_GPUSELECT)
