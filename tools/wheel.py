"""Puts a wheel together from what was compiled for one kind of machine: the package, an extension for each CPython, and, where a
Python environment has its programs and libraries, all that Berth's other packages have."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import scikit_build_core.build

# Of a whole system's concern, or the same as in the site.
LEFT_OUT = ("lib/systemd", "lib/tmpfiles.d", "share/doc")
SITE = "share/doc/berth/html"


def copied(source: pathlib.Path, target: pathlib.Path) -> None:
    """A wheel has no links: what one leads to is copied."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def add_metadata(top: pathlib.Path, tags: list, notices: list) -> pathlib.Path:
    """Returns the folder beside it for what lies outside of the package."""
    (metadata,) = [top / scikit_build_core.build.prepare_metadata_for_build_wheel(os.fspath(top))]
    lines = [
        "Wheel-Version: 1.0",
        "Generator: berth",
        "Root-Is-Purelib: false",
        *(f"Tag: {tag}" for tag in tags),
    ]
    (metadata / "WHEEL").write_text("\n".join(lines) + "\n")
    for notice in notices:
        name, path = notice.split("=", 1)
        copied(pathlib.Path(path), metadata / "licenses" / f"{name}.txt")
    return top / metadata.name.replace(".dist-info", ".data")


def add_programs(installed: pathlib.Path, data: pathlib.Path) -> None:
    for program in (installed / "bin").iterdir():
        copied(program, data / "scripts" / program.name)
    for path in installed.rglob("*"):
        place = path.relative_to(installed).as_posix()
        if (
            path.is_dir()
            or place.startswith("bin/")
            or (place.startswith(LEFT_OUT) and not place.startswith(SITE))
        ):
            continue
        copied(path, data / "data" / place)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--tag", action="append", required=True)
    options.add_argument("--installed", type=pathlib.Path, required=True, help="what cmake --install left")
    options.add_argument("--extensions", type=pathlib.Path, required=True)
    options.add_argument("--stub", type=pathlib.Path, required=True)
    options.add_argument(
        "--notice", action="append", default=[], help="NAME=FILE: the licence of what is linked in"
    )
    options.add_argument("--work", type=pathlib.Path, required=True)
    options.add_argument("--out", type=pathlib.Path, required=True)
    chosen = options.parse_args()

    shutil.rmtree(chosen.work, ignore_errors=True)
    chosen.work.mkdir(parents=True)
    for folder in ("berth", "hydra_plugins"):
        shutil.copytree(
            f"python/{folder}", chosen.work / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for extension in chosen.extensions.glob("_berth.*.so"):
        copied(extension, chosen.work / "berth" / extension.name)
    copied(chosen.stub, chosen.work / "berth/_berth.pyi")
    add_programs(chosen.installed, add_metadata(chosen.work, chosen.tag, chosen.notice))
    # What is packed has the time of SOURCE_DATE_EPOCH, in the order of the names.
    subprocess.run([sys.executable, "-m", "wheel", "pack", "-d", chosen.out, chosen.work], check=True)


if __name__ == "__main__":
    main()
