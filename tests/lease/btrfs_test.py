"""The lease directory on a file system whose number in /proc/locks is another than that of stat(): btrfs."""

import shutil
import subprocess

import pytest


@pytest.fixture
def on_btrfs(make_lab, tmp_path):
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("needs mkfs.btrfs")
    image, folder = tmp_path / "image", tmp_path / "btrfs"
    with image.open("wb") as file:
        file.truncate(128 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    folder.mkdir()
    if subprocess.run(["mount", "-o", "loop", image, folder], check=False).returncode != 0:
        pytest.skip("needs the right to mount a btrfs")
    lab = make_lab("1xH100")
    lab.env["BERTH_DIR"] = str(folder / "leases")
    lab.leases = folder / "leases"
    yield lab
    lab.close()
    subprocess.run(["umount", folder], check=True)


def test_a_lock_without_a_lease_is_seen_on_btrfs(on_btrfs):
    lab = on_btrfs
    lab.berth("run", "--", "true")
    (device,) = (lab.leases / "devices").iterdir()
    locker = lab.start("flock", device, "sh", "-c", "echo ready; exec sleep 1000")
    assert locker.stdout.readline() == "ready\n"
    (found,) = lab.berth("list", "--json").json["devices"]
    assert found["verdict"]["clause"] == "not_leased"
    assert lab.berth("pick").status == 75
    assert "locked" in lab.berth("why").out
    assert lab.berth("run", "--no-wait", "--", "true").status == 75
