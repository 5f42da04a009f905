"""What an agent tells of its machine."""

from __future__ import annotations

import socket

from nvgpu.list_gpus import device_statuses


def machine_status() -> dict:
    """{"hostname": …, "gpus": device_statuses()}. Raises berth.NoDriver."""
    return {"hostname": socket.gethostname(), "gpus": device_statuses()}
