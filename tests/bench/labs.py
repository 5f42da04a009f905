"""Rows 17 to 19: many machines."""
from __future__ import annotations
import anywhere
from results import Row
from setting import Bench
def lab(bench: Bench) -> list[Row]:
    return [anywhere.free_host(bench), anywhere.hand_over(bench)]
