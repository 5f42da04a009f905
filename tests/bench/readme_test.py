"""The README's figures are those of the benchmark page."""

import pathlib

import markdown

ROOT = pathlib.Path(__file__).parents[2]


def test_the_readme_has_the_headlines_of_the_page():
    readme, page = (ROOT / "README.md").read_text(), (ROOT / "docs/benchmarks.md").read_text()
    assert markdown.with_headlines(readme, page) == readme
    assert markdown.headlines_of(page).count("\n") > 5


def test_every_chart_of_the_page_is_there_and_none_besides():
    page = (ROOT / "docs/benchmarks.md").read_text()
    there = {f"benchmarks/{path.name}" for path in (ROOT / "docs/benchmarks").iterdir()}
    shown = {part.split(")", 1)[0] for part in page.split("](")[1:] if part.startswith("benchmarks/")}
    assert shown == there
