"""The blocks of docs/dropin.md as they stand: the install lines with the real wheels, and the keys of the site file."""

import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest
from desk import ENVIRONMENT
from mixed_test import wheel_of

PAGE = (pathlib.Path(__file__).parents[2] / "docs/dropin.md").read_text()
KEYS = re.findall(r"\n\n((?:    (?:\w+ = \[.*|\[\[.*\n    .*\n    .*)\n)+)", PAGE)
MODULES = ["gpuselect", "nvgpu", "gpu_utilities", "gpu_scheduler", "safe_gpu"]


def test_the_install_lines_leave_both_distributions_and_no_original(make_desk, tmp_path):
    desk = make_desk("1x1080Ti")
    environment, downloads = tmp_path / "env", tmp_path / "downloads"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = f"{sys.executable} -m pip --python {environment / 'bin/python'}"
    # Flask and PyYAML, which pip would get from an index.
    packages = environment / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    (packages / "venv.pth").write_text(sysconfig.get_path("purelib"))
    # What is asked whether to remove it, is.
    (environment / "bin/pip").write_text(f'#!/bin/sh\nyes | exec {pip} --disable-pip-version-check "$@"\n')
    (environment / "bin/pip").chmod(0o755)
    original = wheel_of(tmp_path, "nvgpu", "0.10.0")
    subprocess.run([environment / "bin/pip", "install", "--no-index", original], check=True)
    downloads.mkdir()
    wheels = [*ENVIRONMENT.parents[1].glob("wheel/berth_gpu-*.whl"), *ENVIRONMENT.parent.glob("wheel/*.whl")]
    before = {wheel.name: wheel.read_bytes() for wheel in wheels}
    for wheel in wheels:
        shutil.copy(wheel, downloads)
    (block,) = re.findall(r"\n```sh\n(.*?)```", PAGE, re.S)
    path = f"{environment / 'bin'}:{desk.machine.env['PATH']}"
    done = desk.machine.run(
        "bash", "-e", "-c", block, cwd=downloads, env={"PATH": path, "PIP_NO_INDEX": "1"}, timeout=600
    )
    assert done.status == 0, done.err
    assert {wheel.name: wheel.read_bytes() for wheel in downloads.iterdir()} == before
    code = f"import berth, {', '.join(MODULES)}; print(hasattr(nvgpu, 'original'))"
    answer = desk.run(environment / "bin/python", "-c", code, env={"PYTHONPATH": None})
    assert (answer.status, answer.out) == (0, "False\n"), answer.err


@pytest.mark.parametrize("keys", KEYS)
def test_the_keys_for_the_site_file_are_keys(machine, keys):
    (machine.directory / "site.toml").write_text(keys)
    answer = machine.berth("pick")
    assert (answer.status, answer.err) == (0, "")


def test_there_are_keys():
    assert len(KEYS) == 3
