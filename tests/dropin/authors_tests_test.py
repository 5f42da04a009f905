"""The originals' own tests, as their authors published them, against ours and against what they were written for."""

import re
import shutil
import xml.etree.ElementTree

import pytest
from desk import HERE, ORIGINALS

SOURCES = ["gpu_utilities_0.1", "gpu_utilities_0.3"]


@pytest.fixture(params=SOURCES)
def sources(request):
    folder = ORIGINALS / request.param
    if not folder.exists():
        pytest.skip("needs the originals: ./dev setup")
    return folder


def outcomes(desk, sources, *path) -> dict:
    """Name of each test -> how it ended, with `path` before all else that Python finds."""
    place = desk.directory / "tests"
    shutil.copytree(sources / "tests", place, dirs_exist_ok=True)
    env = {"PYTHONPATH": ":".join(map(str, [*path, HERE / "standins"]))}
    report = desk.directory / "report.xml"
    words = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--rootdir={place}",
        f"--junitxml={report}",
        place,
    ]
    answer = desk.run("python3", *words, env=env)
    assert answer.status in (0, 1), answer.out + answer.err
    cases = xml.etree.ElementTree.parse(report).iter("testcase")
    return {
        f"{case.get('classname')}.{case.get('name')}": [
            child.tag for child in case if child.tag != "system-out"
        ]
        for case in cases
    }


def count_in(sources) -> int:
    texts = [path.read_text() for path in (sources / "tests").glob("test_*.py")]
    return sum(len(re.findall(r"^ *def test_", text, re.M)) for text in texts)


def test_the_authors_tests(make_desk, sources):
    desk = make_desk("2xT4")
    ours = outcomes(desk, sources)
    assert len(ours) == count_in(sources) > 0
    assert set(map(tuple, ours.values())) == {()}, ours
    assert ours == outcomes(desk, sources, sources)
