"""Every command on the pages of docs/ that lead users is run, on a simulated machine.

A block of `sh` is run as it stands, in the order of its page. What is no part of Berth is replaced by the stand-ins below. A block
with a title (`sh title="as root"`) cannot be run here: of that, and of commands in the text, the part that is Berth's is
held against the program's own help."""

import json
import pathlib
import re
import shlex

import pytest
from jobs import eventually
from simulated_machine import Machine

# Forty runs at once take a sanitized build too long.
pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [
    *(f"docs/{name}.md" for name in "index admin trouble coming-from".split()),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/tasks").glob("*.md")),
]
BLOCK = re.compile(r"^( *)```(\w+)( title=[^\n]*)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:[^`\n]*[ (])?berth [^`\n]+)`")

# A program that uses GPUs: it must see some, and leaves a note of which.
JOB = 'test -n "$CUDA_VISIBLE_DEVICES" || exit 3\necho "$CUDA_VISIBLE_DEVICES $*" >>"$HOME/ran"'
NOTE = 'echo "$(basename "$0") $* BERTH_LEASE=${BERTH_LEASE:+set}" >>"$HOME/called"'
STANDINS = {
    "python": JOB,
    "jupyter": JOB,
    # As many processes as GPUs, as the pages say.
    "torchrun": 'test "$3" = "$(echo "$CUDA_VISIBLE_DEVICES" | tr , "\\n" | wc -l)" || exit 3\n' + JOB,
    "docker": NOTE,
    "podman": NOTE,
    "apptainer": NOTE + '\ntest -n "$CUDA_VISIBLE_DEVICES"',
    "busctl": NOTE,
    # It starts what comes after --, and asks whether that is there.
    "claude": NOTE
    + """
while test "$1" != --; do shift; done; shift
echo '{"jsonrpc": "2.0", "id": 1, "method": "ping"}' | "$@" | grep -q '"result"'""",
    "curl": NOTE,
    "sendmail": NOTE,
    "tmux": 'for word; do :; done\nexec sh -c "$word"',
    "systemd-run": 'test "$1 $2" = "--user --scope" && shift 2 && exec "$@"',
    "sudo": 'test "$1 $2" = "berth init" && mkdir -p "$HOME/root/run" "$HOME/root/etc" && exec berth init --root "$HOME/root"',
}


def blocks(page: str, language: str, *, titled: bool = False) -> list[str]:
    """The text of each such block, without its margin."""
    return [
        "".join(line.removeprefix(found[1]) for line in found[4].splitlines(keepends=True))
        for found in BLOCK.finditer((ROOT / page).read_text())
        if found[2] == language and bool(found[3]) == titled
    ]


class Desk:
    """A user's shell on a simulated machine."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.home = pathlib.Path(machine.env["HOME"])
        programs = machine.directory / "bin"
        programs.mkdir()
        (programs / "berth").symlink_to(machine.program)
        for name, text in STANDINS.items():
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        machine.env["PATH"] = f"{programs}:{machine.env['PATH']}"

    def types(self, text: str) -> str:
        """Runs it as a script of bash, and waits for what it left in the background."""
        answer = self.machine.run("bash", "-e", "-c", text + "\nwait", cwd=self.home)
        assert answer.status == 0, f"{text}\n{answer.out}{answer.err}"
        return answer.out

    def lines(self, name: str) -> list[str]:
        path = self.home / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def desk(machine) -> Desk:
    return Desk(machine)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")])
def test_each_block_does_what_the_page_says(page, desk, request):
    for text in blocks(page, "sh"):
        if "sudo" in text:
            request.getfixturevalue("as_user")  # only root can make what root owns
        desk.types(text)
    if any("python" in text for text in blocks(page, "sh")):
        # A job that was submitted runs in its own time.
        eventually(lambda: desk.lines("ran") + desk.lines("called"))


def test_forty_tasks_of_a_job_all_run(desk):
    number = desk.types(blocks("docs/tasks/many-runs.md", "sh")[0]).strip()
    assert desk.machine.berth("wait", number).status == 0
    assert sorted(int(line.split()[-1]) for line in desk.lines("ran")) == list(range(1, 41))


def test_forty_runs_in_a_terminal_all_run(desk):
    (text,) = (each for each in blocks("docs/tasks/many-runs.md", "sh") if each.startswith("mkdir -p logs"))
    desk.types(text)
    ran = [line.split() for line in desk.lines("ran")]
    assert sorted(int(words[-1]) for words in ran) == list(range(1, 41))
    assert {words[0] for words in ran} <= set("01234567")
    assert len(list((desk.home / "logs").iterdir())) == 40


def test_a_container_gets_the_gpus_of_the_lease_by_name(desk):
    for text in blocks("docs/tasks/containers.md", "sh"):
        desk.types(text)
    docker, one, two, *apptainer = desk.lines("called")
    assert re.search(r'--gpus "device=GPU-[0-9a-f-]+" ', docker)
    assert "--device nvidia.com/gpu=0 " in one
    assert "--device nvidia.com/gpu=0 --device nvidia.com/gpu=1 -e" in two
    assert len(apptainer) == 2
    assert all(line.endswith("BERTH_LEASE=set") for line in desk.lines("called"))


def test_the_kernel_runs_on_a_gpu(desk):
    desk.types(blocks("docs/tasks/editors.md", "sh")[-1])
    kernel = json.loads((desk.home / ".local/share/jupyter/kernels/one-gpu/kernel.json").read_text())
    assert "{connection_file}" in kernel["argv"]
    desk.types(shlex.join(kernel["argv"]))
    assert desk.lines("ran") == ["0 -m ipykernel_launcher -f {connection_file}"]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "json")])
def test_each_json_can_be_read(page):
    for text in blocks(page, "json"):
        json.loads(text)


def test_the_rules_of_the_page_for_admins_are_rules(machine):
    (text,) = blocks("docs/admin.md", "toml")
    (machine.directory / "site.toml").write_text(text)
    assert machine.berth("run", "--", "true").status == 0
    assert "excluded by the site: reserved for the demo; ask Ada" in machine.berth("why").out


@pytest.mark.python
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_each_python_block_runs(page, machine):
    from hosts import PYTHON

    for text in blocks(page, "python"):
        answer = machine.run(PYTHON, "-c", text)
        assert (answer.status, answer.err) == (0, "")
        assert answer.out == "cuda:0\n"


def ours(text: str) -> list[list[str]]:
    """The words of each call of berth in a line of shell, without the command that it runs."""
    found = []
    for part in re.findall(r"\bberth ([^|;&)]*)", text):
        try:
            words = shlex.split(part.rstrip('"'))
        except ValueError:  # the quote that opened before
            words = part.split()
        found.append(words[: words.index("--")] if "--" in words else words)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_each_command_in_the_text_is_one_of_ours(page, machine):
    text = (ROOT / page).read_text()
    # A heading is a message, and no command.
    inline = INLINE.findall(re.sub(r"^#.*", "", BLOCK.sub("", text), flags=re.MULTILINE))
    typed = "".join([*blocks(page, "sh"), *blocks(page, "sh", titled=True)])
    lines = [*inline, *re.sub(r" #.*", "", typed).splitlines()]
    commands = [words for line in lines for words in ours(line)]
    assert commands
    known = set(re.findall(r"^  (\w+)", machine.berth("help", "--all").out, re.MULTILINE))
    for words in commands:
        words = words[2:] if words[:1] == ["--sim"] else words
        if not words:
            continue
        assert words[0] in known, words
        told = machine.berth(words[0], "--help").out
        options = {word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)}
        assert options <= set(re.findall(r"(?<![\w-])(--?[a-zA-Z][a-z-]*)", told)), words


# What needs an id or an address of the reader's, or a terminal, goes on for ever, or asks an agent
# that is not there.
NOT_ALONE = re.compile(
    r"\b(ID|COMMAND|serve|usage|top|sudo|release|cancel|log|wait|attach|edit|extend|forget|retry)\b|--watch|^xargs -P 4$"
)


def test_what_takes_the_place_of_another_tools_command_works(desk):
    (desk.home / "gpu_commands.txt").write_text("python train.py --lr 0.1\npython train.py --lr 0.01\n")
    (desk.home / "job.sh").write_text("#!/bin/sh\npython train.py\n")
    rows = re.findall(r"^\| .* \| (.*) \|$", (ROOT / "docs/coming-from.md").read_text(), re.MULTILINE)
    commands = [text for row in rows for text in INLINE.findall(row) if not NOT_ALONE.search(text)]
    assert len(commands) > 20
    for text in commands:
        desk.types(text)
    assert len(desk.lines("ran")) > 10
