"""What gpu_scheduler asks of PyTorch, for measuring it without a GPU: the devices that nvidia-smi lists."""

import subprocess
import types


def _uuids():
    words = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


cuda = types.SimpleNamespace(
    is_available=lambda: True,
    device_count=lambda: len(_uuids()),
    get_device_properties=lambda index: types.SimpleNamespace(uuid=_uuids()[index], name="", total_memory=0),
    current_device=lambda: 0,
    set_device=lambda index: None,
)
