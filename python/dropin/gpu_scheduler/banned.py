"""The file in which a site bans GPUs from gpu_scheduler. Berth's own place for this is /etc/berth.toml."""

from __future__ import annotations

import os
import pathlib

# What the original bans where nobody says otherwise.
_NAMES = ("Quadro RTX 6000",)


def load_banned() -> tuple[list, list]:
    """Ids and parts of names, from $BANNED_GPUS_YAML or ~/banned_gpus.yaml; without such a file, those of the original.

    A file that cannot be understood is an error: a ban must not be lost in silence."""
    named = os.environ.get("BANNED_GPUS_YAML")
    path = pathlib.Path(named) if named else pathlib.Path.home() / "banned_gpus.yaml"
    if not path.exists():
        return [], list(_NAMES)
    try:
        import yaml
    except ImportError as error:
        raise ImportError(f"{path} bans GPUs, and reading it needs PyYAML: pip install pyyaml") from error
    found = yaml.safe_load(path.read_text()) or {}
    return list(found.get("banned_gpus") or []), list(found.get("banned_gpu_names") or [])
