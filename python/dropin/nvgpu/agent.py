"""What an agent tells of its machine."""

from __future__ import annotations

import socket

from nvgpu.list_gpus import device_statuses


hostname = socket.gethostname()  # a program may set another


def machine_status() -> dict:
    """{"hostname": …, "gpus": device_statuses()}. Raises berth.NoDriver."""
    return {"hostname": hostname, "gpus": device_statuses()}
