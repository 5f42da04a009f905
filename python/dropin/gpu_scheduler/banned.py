"""The file in which a site bans GPUs from gpu_scheduler. Berth's own place for this is /etc/berth.toml."""

from __future__ import annotations

import logging
import os
import pathlib

logger = logging.getLogger("gpu_scheduler")

# What the original bans where nobody says otherwise.
_NAMES = ("Quadro RTX 6000",)


def load_banned() -> tuple[list, list]:
    """Ids and parts of names, from $BANNED_GPUS_YAML or ~/banned_gpus.yaml; without such a file, those of the original.
    A file that cannot be understood bans nothing, and a warning says so."""
    named = os.environ.get("BANNED_GPUS_YAML")
    path = pathlib.Path(named) if named else pathlib.Path.home() / "banned_gpus.yaml"
    if not path.exists():
        return [], list(_NAMES)
    try:
        return _read(path)
    except Exception as error:  # whatever the parser, the disk, or the text itself has against it
        logger.warning("Error loading banned GPUs from %s: %s. Using empty lists.", path, error)
        return [], []


def _read(path: pathlib.Path) -> tuple[list, list]:
    import yaml

    found = yaml.safe_load(path.read_text()) or {}
    return list(found.get("banned_gpus") or []), list(found.get("banned_gpu_names") or [])
