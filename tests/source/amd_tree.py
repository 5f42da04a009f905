"""A machine's AMD GPUs as the kernel shows them: the files of sysfs and /proc that Berth and others read."""

import pathlib

TOTAL = 206141652992
USED = 297000960
FIRST_ID = 0xABC0


class AmdTree:
    """MI300X cards below `root`, which BERTH_SIM_ROOT names."""

    def __init__(self, root: pathlib.Path, cards: int):
        self.root = root
        self.put("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\n")
        (root / "sys/class/kfd/kfd/proc").mkdir(parents=True)
        (root / "proc").mkdir()
        for card in range(cards):
            self.add(card)

    def put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def add(self, card: int) -> None:
        node = f"sys/class/kfd/kfd/topology/nodes/{card + 1}"
        self.put(f"{node}/gpu_id", f"{1000 + card}\n")
        self.put(
            f"{node}/properties",
            f"simd_count 1216\ngfx_target_version 90402\nlocation_id {(card + 3) << 8}\ndomain 0\n"
            f"drm_render_minor {128 + card}\nunique_id {FIRST_ID + card}\n",
        )
        device = f"sys/class/drm/renderD{128 + card}/device"
        for name, value in {
            "vendor": "0x1002",
            "device": "0x74a1",
            "product_name": "AMD Instinct MI300X OAM",
            "mem_info_vram_total": TOTAL,
            "mem_info_vram_used": USED,
            "gpu_busy_percent": 5,
        }.items():
            self.put(f"{device}/{name}", f"{value}\n")

    def compute(self, card: int, pid: int, used_bytes: int) -> None:
        """A process of ROCm's is on the card."""
        self.put(f"sys/class/kfd/kfd/proc/{pid}/vram_{1000 + card}", f"{used_bytes}\n")
        memory = f"sys/class/drm/renderD{128 + card}/device/mem_info_vram_used"
        self.put(memory, f"{USED + used_bytes}\n")
