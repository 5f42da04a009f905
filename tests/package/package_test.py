"""What ./dev package and cmake --install leave, used as those who get it would."""

import os
import pathlib
import platform
import re
import subprocess

import pytest
from packages import ROOT, only, output
from simulated_machine import BUILD, Machine

pytestmark = [pytest.mark.package, pytest.mark.release_only]

NEWEST_GLIBC = (2, 34)
# The project has no mail host, and its list of changes is for people: the package goes to no
# archive.
UNFIT_TAGS = "bogus-mail-host,syntax-error-in-debian-changelog"
LOADED = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


@pytest.fixture(scope="module")
def tarball(tmp_path_factory) -> pathlib.Path:
    """The unpacked tarball."""
    directory = tmp_path_factory.mktemp("tarball")
    output("tar", "-xzf", only(f"berth-*-linux-{platform.machine()}.tar.gz"), "-C", directory)
    (top,) = directory.iterdir()
    return top


@pytest.fixture(scope="module")
def deb(tmp_path_factory) -> pathlib.Path:
    """The files of the Debian package."""
    directory = tmp_path_factory.mktemp("deb")
    output("dpkg-deb", "-x", only("*.deb"), directory)
    return directory


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> pathlib.Path:
    prefix = tmp_path_factory.mktemp("prefix")
    output("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


def shipped_programs(top: pathlib.Path) -> list:
    files = (path for path in top.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]


def test_the_packages_have_the_site(tarball, deb):
    for top in (tarball, deb / "usr"):
        assert (
            "forty runs over eight cards" in (top / "share/doc/berth/html/tasks/many-runs.html").read_text()
        )


def test_the_unpacked_tarball_runs(tarball, tmp_path):
    listed = output(tarball / "bin/berth", "--sim", "8xH100", "list", env={"HOME": str(tmp_path), "PATH": ""})
    assert listed.count("H100 80GB HBM3") == 8


def test_the_debian_package_runs(deb, tmp_path):
    listed = output(deb / "usr/bin/berth", "--sim", "2xT4", "list", env={"HOME": str(tmp_path), "PATH": ""})
    assert listed.count("T4") == 2


def test_nothing_newer_than_glibc_2_34_is_asked_for(tarball):
    programs = shipped_programs(tarball)
    assert {"berth", "berth-sim", "nvidia-smi", "libnvidia-ml.so.1"} <= {path.name for path in programs}
    for path in programs:
        wanted = re.findall(r"GLIBC_(\d+)\.(\d+)", output("readelf", "-W", "--version-info", path))
        assert max((int(major), int(minor)) for major, minor in wanted) <= NEWEST_GLIBC, path


def test_libstdcxx_and_fmt_are_inside(tarball):
    for path in shipped_programs(tarball):
        dynamic = output("readelf", "-W", "--dynamic", path)
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
        assert set(needed) <= LOADED | (
            {"libssl.so.3", "libcrypto.so.3", "libm.so.6"} if path.name == "berth-serve" else set()
        ), path
        assert "RPATH" not in dynamic and "RUNPATH" not in dynamic, path


def test_an_exception_passes_through_the_unwinder_that_is_inside(tarball, tmp_path):
    """toml++ throws where a file is malformed."""
    site = tmp_path / "site.toml"
    site.write_text("tolerance = [\n")
    answer = subprocess.run(
        [tarball / "bin/berth", "--sim", "1xT4", "pick"],
        env={"HOME": str(tmp_path), "PATH": "", "BERTH_SITE_FILE": str(site)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (answer.returncode, answer.stdout) == (1, "-1\n")
    assert f"{site}" in answer.stderr


def test_what_is_installed_lies_where_a_debian_user_expects_it(installed):
    for path in """bin/berth bin/berth-sim lib/libberth.a include/berth/berth.h include/berth/device/device.h
        lib/cmake/berth/berth-config.cmake lib/berth/sim/r550/libnvidia-ml.so.1 lib/berth/sim/bin/nvidia-smi
        lib/tmpfiles.d/berth.conf share/man/man1/berth.1.gz share/man/man1/berth-sim.1.gz share/bash-completion/completions/berth
        share/zsh/vendor-completions/_berth share/fish/vendor_completions.d/berth.fish
        share/berth/grafana-board.json share/berth/prometheus-rules.yml
        share/doc/berth/README.md share/doc/berth/copyright share/doc/berth/manual.md""".split():
        assert (installed / path).exists(), path


def test_the_completions_are_those_of_the_program(installed):
    script = installed / "share/bash-completion/completions/berth"
    assert script.read_text() == output(BUILD / "berth", "completion", "bash")
    output("bash", "-n", script)


@pytest.mark.parametrize("program", ["berth", "berth-sim"])
def test_the_manual_page_is_well_formed(installed, program):
    page = installed / f"share/man/man1/{program}.1.gz"
    done = subprocess.run(
        ["man", "--warnings", "-l", page],
        env=os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANROFFSEQ": ""},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "berth" in done.stdout


def test_the_debian_package_makes_the_lease_directory(deb):
    lines = (deb / "usr/lib/tmpfiles.d/berth.conf").read_text().splitlines()
    assert "d /run/berth         1777 root root -" in lines
    assert "systemd-tmpfiles --create" in output("dpkg-deb", "-I", only("*.deb"), "postinst")


def test_the_debian_package_depends_on_the_c_library_and_for_the_agent_on_openssl(deb):
    needed = output("dpkg-deb", "-f", only("*.deb"), "Depends")
    assert re.fullmatch(r"libc6 \(>= 2\.(\d\d)\), libssl3 \(>= [\d.]+\)\n", needed)


def test_lintian_finds_no_error():
    done = subprocess.run(
        ["lintian", "--allow-root", "--suppress-tags", UNFIT_TAGS, "--fail-on", "error", only("*.deb")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_cxx_program_finds_the_package_and_leases_through_it(installed, tmp_path):
    build = tmp_path / "example"
    output(
        "cmake", "-G", "Ninja", "-S", ROOT / "tests/example", "-B", build, f"-DCMAKE_PREFIX_PATH={installed}"
    )
    output("cmake", "--build", build)
    (tmp_path / "machine").mkdir()
    machine = Machine(tmp_path / "machine", "2xA100")
    answer = machine.run(build / "example", env={"BERTH_PROGRAM": installed / "bin/berth"})
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == "2 devices\npicked 0\nleased 0\n1 is still free\n"
