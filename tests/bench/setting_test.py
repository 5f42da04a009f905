"""What the parts of a run have in common."""

import pathlib

from setting import Bench


def test_what_is_measured_is_a_copy_as_an_installation_has_it(tmp_path):
    build, scratch = tmp_path / "build", tmp_path / "scratch"
    for folder in (build, scratch):
        folder.mkdir()
    for name in ("berth", "berth-serve"):
        (build / name).write_text(f"#!/bin/sh\necho {name}\n")
        (build / name).chmod(0o755)
    bench = Bench(build, scratch, runs=1)
    berth = pathlib.Path(bench.berth)
    assert berth.parent != build and bench.berth == str(berth)
    # berth looks for the agent beside itself.
    for name in ("berth", "berth-serve"):
        copy = berth.parent / name
        assert copy.read_text() == (build / name).read_text() and copy.stat().st_mode & 0o111
