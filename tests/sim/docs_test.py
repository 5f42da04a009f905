"""docs/simulator.md says what the parser takes."""

import pathlib
import re
import subprocess

from simulated import GENERATIONS, SIM

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "simulator.md").read_text()


def test_the_example_is_a_scenario(tmp_path):
    example = tmp_path / "lab.toml"
    example.write_text(re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL).group(1))
    done = subprocess.run([SIM / "berth-sim", "--check", example], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_key_and_reading_is_on_the_page():
    source = "".join(path.read_text() for path in (ROOT / "sim" / "machine").glob("parse*.cpp"))
    keys = set(
        re.findall(
            r'(?:set|text|integer|number|boolean|duration_us|one_of|array|any|tables)\(\s*"(\w+)"', source
        )
    )
    keys |= set(re.findall(r'parse_mib\(table, "(\w+)"', source))
    readings = re.findall(r'\{"(\w+)", Reading::', (ROOT / "sim" / "machine" / "scenario.cpp").read_text())
    assert len(keys) > 50 and len(readings) == 31
    assert [word for word in sorted(keys | set(readings)) if not re.search(rf"\b{word}\b", PAGE)] == []


def test_every_generation_is_on_the_page_and_is_built():
    assert re.findall(r"^\| `(r[\d.]+)` \|", PAGE, re.MULTILINE) == GENERATIONS
    assert all((SIM / name / "libnvidia-ml.so.1").exists() for name in GENERATIONS)
