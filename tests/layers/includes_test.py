"""What a layer may include. The include path enforces the order of the layers; this enforces that the
core knows neither the system nor a library."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
CORE = sorted(
    path for path in (ROOT / "core").rglob("*") if path.suffix in {".h", ".cpp"} and "test" not in path.parts
)
ALLOWED = """algorithm array bit bitset cctype charconv cmath compare concepts cstddef cstdint cstdlib cstring expected
functional iterator limits map memory numeric optional random ranges set span string string_view system_error tuple
type_traits unordered_map unordered_set utility variant vector fmt/format.h fmt/ranges.h""".split()


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.name)
def test_the_core_includes_nothing_of_the_system(path):
    included = re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)
    assert [name for name in included if name not in ALLOWED and not name.startswith("berth/core/")] == []
