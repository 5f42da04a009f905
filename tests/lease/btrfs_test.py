"""The lease directory on a file system whose number in /proc/locks is another than that of stat(): btrfs."""

import shutil
import subprocess

import pytest


@pytest.fixture
def on_btrfs(make_machine, tmp_path):
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("needs mkfs.btrfs")
    image, folder = tmp_path / "image", tmp_path / "btrfs"
    with image.open("wb") as file:
        file.truncate(128 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    folder.mkdir()
    if subprocess.run(["mount", "-o", "loop", image, folder], check=False).returncode != 0:
        pytest.skip("needs the right to mount a btrfs")
    machine = make_machine("1xH100")
    machine.env["BERTH_DIR"] = str(folder / "leases")
    machine.leases = folder / "leases"
    yield machine
    machine.close()
    subprocess.run(["umount", folder], check=True)


def test_a_lock_without_a_lease_is_seen_on_btrfs(on_btrfs):
    machine = on_btrfs
    machine.berth("run", "--", "true")
    (device,) = (machine.leases / "devices").iterdir()
    locker = machine.start("flock", device, "sh", "-c", "echo ready; exec sleep 1000")
    assert locker.stdout.readline() == "ready\n"
    (found,) = machine.berth("list", "--json").json["devices"]
    assert found["verdict"]["clause"] == "not_leased"
    assert machine.berth("pick").status == 75
    assert "locked" in machine.berth("why").out
    assert machine.berth("run", "--no-wait", "--", "true").status == 75
