"""The folders of src/berth: what the rows of CMakeLists.txt allow is all that a source includes, and nothing runs in
a circle. The include path says so of each build; this says it of the whole, also of headers that nothing compiles."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src/berth"


def rows() -> dict:
    """{layer: layers that its row names}."""
    text = (ROOT / "CMakeLists.txt").read_text()
    return {name: uses.split() for name, uses in re.findall(r"berth_layer\((\w+)(?: USES ([\w ]+))?\)", text)}


def allowed(layer: str, table: dict, above: tuple = ()) -> set:
    """The layer and all that it may see."""
    assert layer not in above, f"a circle: {' -> '.join([*above, layer])}"
    return {layer}.union(*(allowed(each, table, (*above, layer)) for each in table[layer]))


def included(layer: str) -> dict:
    """{layer that is included: a file that does}, without the tests, which may wire what they like."""
    found = {}
    for path in SOURCES.glob(f"{layer}/**/*"):
        if path.suffix in (".h", ".cpp") and "test" not in path.parts:
            for name in re.findall(r'#include [<"]berth/(\w+)/', path.read_text()):
                found.setdefault(name, path.relative_to(ROOT))
    return found


def test_every_folder_has_its_row():
    assert rows().keys() == {path.name for path in SOURCES.iterdir() if path.is_dir()}


@pytest.mark.parametrize("layer", sorted(rows()))
def test_a_layer_includes_only_what_its_row_allows(layer):
    table = rows()
    beyond = {name: str(path) for name, path in included(layer).items() if name not in allowed(layer, table)}
    assert not beyond


def test_no_folder_is_in_a_circle():
    graph = {layer: [name for name in included(layer) if name != layer] for layer in rows()}
    for layer in graph:
        allowed(layer, graph)
