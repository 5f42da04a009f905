"""The documents that lead a newcomer name files that are there."""

import collections
import pathlib
import re

import pytest
from rooms_test import place, rows

pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[1]
# "queue/plan.cpp", "source/nvml/", "src/cli/berth/main.cpp": a path, and no command or expression.
PATH = re.compile(r"`((?:[\w-]+/)+(?:[\w-]+\.(?:h|cpp|py|md|ts))?)`")


def paths(page: str) -> list[str]:
    return PATH.findall((ROOT / "docs" / page).read_text())


PAGES_OF_FILES = [
    *("design.md", "one-request.md", "adding.md"),
    *sorted(f"design/{path.name}" for path in (ROOT / "docs/design").glob("*.md")),
    *sorted(f"decisions/{path.name}" for path in (ROOT / "docs/decisions").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES_OF_FILES)
def test_each_path_is_there(page):
    # adding.md names two files that its reader would add.
    named = [path for path in paths(page) if "acme" not in path and "uptime" not in path]
    assert len(named) > 20 or page.startswith(("design/", "decisions/"))
    assert [path for path in named if not ((ROOT / path).exists() or place(path).exists())] == []


@pytest.mark.parametrize("page, most", [("one-request.md", 80), ("design.md", 150), ("words.md", 90)])
def test_what_a_newcomer_reads_first_is_short(page, most):
    assert len((ROOT / "docs" / page).read_text().splitlines()) <= most


def test_the_table_of_rooms_is_that_of_the_build():
    design = (ROOT / "docs/design.md").read_text()
    told = {
        row[1]: set(re.findall(r"[\w/]+", row[2].replace("{fmt}", "")))
        for row in re.finditer(r"^\| `([\w/]+)/` \|[^|]*\| ([^|]*) \|$", design, re.M)
    }
    assert told == {room: set(uses) for room, uses in rows().items()}


# Also an alias, unless it is the same name somewhere else.
TYPE = re.compile(
    r"^\s*(?:(?:struct|class|enum class) (\w+)(?: final)?(?: : [\w:, ]+)? \{|using (\w+) = (?![\w:]*::\2;))",
    re.M,
)


def sources(pattern: str):
    for path in (ROOT / "src").rglob(pattern):
        if "test" not in path.parts:
            yield path


def types_in(text: str) -> set[str]:
    return {name or alias for name, alias in TYPE.findall(text)}


def test_a_type_is_found():
    text = "struct Lease final : Face {\n  using Gate = int;\n};\nusing Task = other::Task;\nclass Queue;\n"
    assert types_in(text) == {"Lease", "Gate"}


def words_of(heading: str) -> list[str]:
    """The first column of the table below a heading of docs/words.md."""
    table = (ROOT / "docs/words.md").read_text().partition(heading)[2].partition("\n## ")[0]
    return re.findall(r"^\| (\w+) \|", table, re.M)[1:]


def test_one_word_is_one_thing():
    words = words_of("## Words\n")
    assert len(words) == len(set(words)) > 25
    types = collections.defaultdict(list)
    for path in sources("*.[hc]*"):
        for name in types_in(path.read_text()):
            types[name.lower()].append(path.relative_to(ROOT).as_posix())
    assert {word: types[word] for word in words if len(types[word]) > 1} == {}
    headers = "".join(path.read_text().lower() for path in sources("*.h"))
    assert [word for word in words if not re.search(rf"\b{word}", headers)] == []


# The names that have a word of the second table in its one sense. Before you add one, ask whether
# it has.
IN_ITS_SENSE = {
    # A line of text.
    "line": """AgentLine all_lines as_lines BodyLine command_lines ended_line first_line in_one_line JobScriptLine kill_line
        last_line last_lines line_of line_with_srun LockLine printable_lines progress_line
        read_client_line RecordLine split_line table_lines unlisted_lines verdict_lines words_of_bad_line""",
    # A pure step, and the time between two samples.
    "step": """caller_step EndStep lab_agent_step leased_run_step next_step poller_step runner_step Step step_of
        StepInput task_run_step""",
}
NAMED = re.compile(r"^\s*(?:struct|class|enum class|using) (\w+)", re.M)
FUNCTION = re.compile(
    r"^[ \t]*(?:\[\[nodiscard\]\] |(?:static|virtual|explicit|constexpr|inline|const) )*[\w:<>,*& ]+?[\s&*](\w+)\(",
    re.M,
)


def words_in(name: str) -> set[str]:
    """Of a name in either style, each without the s of a plural."""
    parts = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().split("_")
    return {part.removesuffix("s") for part in parts} | set(parts)


def test_a_name_is_taken_apart():
    assert words_in("kMostLines") >= {"most", "line"} and "place" in words_in("has_places_left")


def test_no_name_has_a_word_in_another_sense():
    words = words_of("## Words that had several meanings")
    assert len(words) > 8 and set(IN_ITS_SENSE) < set(words)
    names = set()
    for path in sources("*.[hc]*"):
        text = re.sub(r"//.*", "", path.read_text())
        names |= set(NAMED.findall(text))
        if path.suffix == ".h":
            names |= {path.stem, *FUNCTION.findall(text)}
    for word in words:
        found = {name for name in names if word in words_in(name)}
        assert found == set(IN_ITS_SENSE.get(word, "").split()), word


def test_a_ticket_is_skipped_and_only_a_device_is_passed_over():
    """The facts have such devices, also where the queue is decided."""
    of_tickets = re.compile(r"(?<!\.)\bpassed_over\b(?!\.h)|\bpass(?:ed|es)? (?:\w+ )?over\b", re.I)
    texts = [path.read_text() for room in ("queue", "lab_queue") for path in sources(f"{room}/**/*.[hc]*")]
    assert len(texts) > 30
    assert [found for text in texts for found in of_tickets.findall(text)] == []


# Of a person or a thing that a reader has to guess.
GUESSED = re.compile(r"^ *///? (?:Who|Whoever|What|One|Those) |//.*\b(?:he|him|his|himself)\b", re.M)


def test_a_comment_of_a_source_begins_with_its_thing():
    paths = [path for path in (ROOT / "src").rglob("*.cpp") if "test" not in path.parts]
    assert [(path.name, line) for path in paths for line in GUESSED.findall(path.read_text())] == []


LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"(?:\s*\n?\s*"((?:[^"\\\n]|\\.)*)")*')


def texts_of_the_program() -> str:
    """All literals of the program and of the Python package, a line each: pieces joined, and `…` for what is filled in."""
    found = []
    for path in [*(ROOT / "src").rglob("*.cpp"), *(ROOT / "python/berth").glob("*.py")]:
        if "test" not in path.parts:
            for literal in LITERAL.finditer(path.read_text()):
                text = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', literal[0]))
                found.append(re.sub(r"\{[^{}]*\}", "…", text.replace('\\"', '"')))
    return "\n".join(found)


def test_each_message_that_is_explained_is_one_of_the_program():
    messages = re.findall(r"^### `(.*)`$", (ROOT / "docs/trouble.md").read_text(), re.MULTILINE)
    assert len(messages) == len(set(messages)) > 30
    texts = texts_of_the_program()
    for message in messages:
        # A name that is put in front when the message is made is no part of the literal.
        pattern = re.escape(message.removesuffix(" …").removeprefix("… ").strip("…")).replace(
            "…", "[^\n]{0,200}?"
        )
        assert re.search(pattern, texts), message


PAGES_OF_SHORT_SENTENCES = [
    *("README.md", "CONTRIBUTING.md", "SECURITY.md"),
    *(
        f"docs/{name}.md"
        for name in "index queue jobs manual admin machines serve coming-from compared questions card python".split()
    ),
    *("docs/expressions.md", "docs/words.md"),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/tasks").glob("*.md")),
    *(f"docs/{page}" for page in PAGES_OF_FILES),
]
MOST_WORDS = 25


def without_code(text: str) -> str:
    """Without blocks of code, comments, headings, tables and pictures."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.S | re.M)
    # Behind an empty line, four columns are code, but in a list.
    text = re.sub(
        r"(?<=\n\n)((?:    .*\n)+)(?=\n)", lambda code: "" if code[1].lstrip()[0] != "-" else code[1], text
    )
    return re.sub(r"^ *(?:\||#|!\[).*$", "", text, flags=re.M)


def paragraphs(text: str) -> list[str]:
    """Each in one line, items of lists too."""
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", without_code(text))
    return [" ".join(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", block).split()) for block in blocks if block.strip()]


def sentences(paragraph: str) -> list[str]:
    # A piece of code is one word, and so is its end; a row of links is no sentence.
    text = re.sub(r"`[^`]*`", "Code", paragraph)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("**", "")
    return [] if " · " in text else re.split(r"""(?<=[.!?])[)"]?\s+(?=["(*A-Z…])""", text)


def test_a_long_sentence_is_found():
    text = "# A title\n\n- One. Two `a. b. C`: [three](x. Y). Four.\n\n    code code\n\n| a | b |\n"
    assert [sentences(each) for each in paragraphs(text)] == [["One.", "Two Code: three.", "Four."]]


@pytest.mark.parametrize("page", PAGES_OF_SHORT_SENTENCES)
def test_a_page_has_short_sentences(page):
    long = [
        sentence
        for paragraph in paragraphs((ROOT / page).read_text())
        for sentence in sentences(paragraph)
        if sum(bool(re.search(r"\w", word)) for word in sentence.split()) > MOST_WORDS
    ]
    assert long == []


WIDTH = 100
# `./dev bench` and `./dev readings` write these.
GENERATED = {"docs/benchmarks.md", "docs/readings.md", "docs/requests.md"}
PAGES = {
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
}


SOURCES = ["src", "sim", "clients", "python", "tools", "tests"]
# A comment with a table or a drawing in it, and a line that a tool reads, have the lines that they
# need.
WIDE = re.compile(r"\S {2,}|NOLINT|clang-format|shellcheck|noqa")


def test_comments_have_lines_that_a_diff_can_show():
    comment = re.compile(rf"(?=.{{{WIDTH + 1}}})\s*(?://[/!]?|#) ")
    paths = [
        path
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".cpp", ".h", ".c", ".py", ".sh"}
        # `./dev bench` keeps the peers in such a folder.
        and not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]
    wide = [
        (path.name, line)
        for path in paths
        for line in path.read_text().splitlines()
        if comment.match(line) and not WIDE.search(line.strip())
    ]
    assert len(paths) > 700 and wide == []


@pytest.mark.parametrize("page", sorted(PAGES - GENERATED))
def test_prose_has_lines_that_a_diff_can_show(page):
    """Tables and code have the lines that they need, and so has a link."""
    whole = re.compile(r"`[^`\n]*`|!?\[[^\[\]\n]*\]\([^() \n]*\)")
    lines = [line for line in without_code((ROOT / page).read_text()).splitlines() if len(line) > WIDTH]
    ends = re.compile(r"^\s*(?:[-*]|\d+\.)? *")
    assert [
        line for line in lines if " " in ends.sub("", whole.sub(lambda link: "x" * len(link[0]), line))
    ] == []


PLACE = re.compile(r"^\| .* \| `([\w/.]+)` \| `([\w:]+)` \|$", re.M)


def test_what_a_page_says_of_where_a_rule_is_holds():
    """The file has the function, or the table, as a definition."""
    rows = PLACE.findall((ROOT / "docs/where.md").read_text())

    def is_there(file, name):
        path = place(file)
        definition = rf"^ *(?!return|//)[\w:<>*&, \[\]]*\b{re.escape(name)}(?:\(| =|\{{)"
        return path.exists() and re.search(definition, path.read_text(), re.M)

    assert len(rows) > 40 and [row for row in rows if not is_there(*row)] == []
    assert not is_there("queue/backfill.cpp", "thinning") and not is_there("queue/backfill.py", "thinning")


PACKAGES = sorted((ROOT / "src").glob("*/README.md"))


@pytest.mark.parametrize("page", PACKAGES, ids=lambda page: page.parent.name)
def test_the_page_of_a_package_is_short_and_names_what_others_may_include(page):
    """Each room has its row; a header that it names is public, or one of a folder that is named there."""
    text = page.read_text()
    assert len(text.splitlines()) <= 60
    listed = page.with_name("public.txt")
    public = listed.read_text() if listed.exists() else ""
    for rooms, told in re.findall(r"^\| ((?:`[\w/-]+/`(?:, )?)+) \| (.*) \|$", text, re.M):
        for room in re.findall(r"`([\w/-]+)/`", rooms):
            assert (page.parent / room).is_dir(), room
            for header in re.findall(r"`((?:model/)?\w+\.h)`", told):
                assert f"{room}/{header}\n" in public, header


def test_each_package_has_its_page():
    folders = {path.parent.name for path in PACKAGES}
    assert folders == {path.name for path in (ROOT / "src").iterdir()}
