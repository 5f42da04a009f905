"""The lines by which the README installs from the sources, run as they stand there, on a Debian 12 that has nothing else."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

pytestmark = [pytest.mark.package, pytest.mark.wheels, pytest.mark.release_only]

ROOT = pathlib.Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
# It compiles all of Berth; only something that hangs takes longer, on any machine.
DEADLINE_S = 3 * 3600
PREPARE = """set -e
printf '#!/bin/sh\\nexec "$@"\\n' >/usr/local/bin/sudo && chmod +x /usr/local/bin/sudo
echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/99-nobody-is-asked
apt-get -q update
"""
# How this machine reaches the registries.
OF_THIS_MACHINE = (
    "etc/apt/sources.list", "etc/apt/apt.conf.d", "etc/pip.conf", "etc/resolv.conf", "etc/hosts",
    "etc/ssl/certs/ca-certificates.crt",
)  # fmt: skip


def lines_of_readme() -> str:
    (lines,) = re.findall(r"```sh\n(sudo apt install .*?)```", README, re.DOTALL)
    return lines


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A Debian 12 with what every Debian has, and with a checkout."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap")
    folder = tmp_path_factory.mktemp("bare") / "root"
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", folder],
        capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr
    for name in OF_THIS_MACHINE:
        here, there = pathlib.Path("/", name), folder / name
        if here.is_dir():
            # What decides which packages are there is none of a bare machine.
            shutil.copytree(here, there, dirs_exist_ok=True, ignore=shutil.ignore_patterns("docker-*"))
        elif here.is_file():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here, there)
    checkout = folder / "root/berth"
    for name in subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, checkout / name)
    yield folder
    shutil.rmtree(folder)


def inside(bare, script: str) -> str:
    """What a shell prints that begins in the checkout; its mounts end with it."""
    variables = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    # A folder of this machine's.
    variables.pop("PIP_FIND_LINKS", None)
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
         'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" bash -c "cd ~/berth && $1"', bare, script],
        env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
             "DEBIAN_FRONTEND": "noninteractive", **variables},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return done.stdout


def test_the_lines_of_the_readme_install_what_its_next_section_uses(bare):
    inside(bare, PREPARE)
    inside(bare, f"set -e\n{lines_of_readme()}")
    listed = inside(bare, "~/gpu/bin/berth --sim 8xH100 list")
    assert listed.count("H100 80GB HBM3") == 8
    asked = inside(
        bare,
        "PATH=~/gpu/bin:$PATH; berth-sim 2xA100 -- python -c 'import berth; print(berth.pick(2).ids)'; "
        "berth-sim 2xA100 -- berth run -n 2 -- printenv CUDA_VISIBLE_DEVICES; "
        "berth-sim 2xA100 -- nvidia-smi -L | wc -l",
    )
    assert asked.split("\n") == ["(0, 1)", "0,1", "2", ""]
    assert inside(bare, "zcat ~/gpu/share/man/man1/berth.1.gz").startswith(".")
    told = inside(bare, "~/gpu/bin/berth serve 2>&1 || true")
    assert "what pip builds from the sources lacks it" in told
