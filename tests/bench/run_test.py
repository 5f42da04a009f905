"""When a run replaces the page, and when not. Nothing is measured and nothing installed."""

import markdown
import pytest
import remarks
import run
import shelf
from results import OURS, Figure, Row, Table

OLD = f"old\n{markdown.HEADLINES}\n\nnothing\n\n## Rest\n"


def row(bench, took_ms=2.5):
    return Row(
        2, "pick", "Pick", "?", [Table("pick", "8", "ms", [Figure("berth pick", OURS, values=[took_ms])])]
    )


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A tree with an old page, and a run of one part."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/benchmarks.md").write_text(OLD)
    (tmp_path / "README.md").write_text(f"{remarks.README_BEGIN}\nold\n{remarks.README_END}\n")
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "README", tmp_path / "README.md")
    monkeypatch.setattr(run, "PARTS", {"pick": (2, row)})
    monkeypatch.setattr(run, "shortages", list)
    monkeypatch.setattr(run.signal, "signal", lambda *_: None)
    monkeypatch.setattr(shelf, "install_all", lambda: None)
    monkeypatch.setattr(shelf, "versions", lambda: [("nvitop", "1.7.2", "PyPI")])
    return tmp_path


def page(place):
    return (place / "docs/benchmarks.md").read_text()


def test_a_whole_run_replaces_the_page_and_the_readmes_table(place):
    assert run.main([]) == 0
    assert "| **berth pick** | 2.50 | 2.50 – 2.50 | 1 | 1.00 |" in page(place)
    assert "| pick one of 8 GPUs | 2.50 ms |" in (place / "README.md").read_text()
    assert [path.name for path in (place / "docs/benchmarks").iterdir()] == ["02-pick.svg"]


@pytest.mark.parametrize("words", [["pick"], ["--quick"]])
def test_a_part_or_a_quick_run_leaves_the_page_as_it_was(place, words):
    assert run.main(words) == 0
    assert page(place) == OLD
    assert "2.50" in (place / "build/bench/benchmarks.md").read_text()


def test_a_part_that_is_computed_replaces_its_section_and_needs_no_peer(place, monkeypatch):
    assert run.main([]) == 0
    monkeypatch.setattr(run, "COMPUTED", {"pick"})
    monkeypatch.setattr(run, "shortages", lambda: ["10 MiB of memory are free, 6000 MiB are needed"])
    monkeypatch.setattr(run, "PARTS", {"pick": (2, lambda bench: row(bench, 1.25))})
    assert run.main(["pick"]) == 0
    assert "| **berth pick** | 1.25 |" in page(place) and "| pick one of 8 GPUs | 2.50 ms |" in page(place)
    assert [path.name for path in (place / "docs/benchmarks").iterdir()] == ["02-pick.svg"]


def test_an_interrupted_run_leaves_the_page_as_it_was(place, monkeypatch):
    def interrupted(bench):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "PARTS", {"pick": (2, row), "python": (4, interrupted)})
    with pytest.raises(KeyboardInterrupt):
        run.main([])
    assert page(place) == OLD


def test_a_part_that_cannot_be_asked_is_a_row_that_says_so(place, monkeypatch):
    def fails(bench):
        raise OSError("no room")

    monkeypatch.setattr(run, "PARTS", {"pick": (2, row), "python": (4, fails)})
    assert run.main([]) == 1
    assert "Not measured: no room." in page(place) and "**berth pick**" in page(place)


def test_too_little_memory_is_said_before_anything_starts(place, monkeypatch):
    monkeypatch.setattr(run, "shortages", lambda: ["10 MiB of memory are free, 6000 MiB are needed"])
    with pytest.raises(SystemExit, match="10 MiB of memory"):
        run.main([])
    assert page(place) == OLD


def test_this_machine_is_asked_what_it_has(monkeypatch):
    monkeypatch.setattr(run, "NEEDED_MEMORY_MIB", 1 << 40)
    monkeypatch.setattr(run, "NEEDED_DISK_MIB", 1 << 40)
    told = "\n".join(run.shortages())
    assert "MiB of memory are free" in told and "MiB of disk are free" in told


def test_an_unknown_part_is_refused(place, capsys):
    with pytest.raises(SystemExit):
        run.main(["pikc"])
    assert "no such part: pikc" in capsys.readouterr().err
