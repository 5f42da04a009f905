"""Every block of shell on every page has the shape of commands: a formatter that wraps prose joins lines, and what is left
may still run, and do something else.

tests/docs_commands_test.py runs the blocks of the pages that lead users, and tests/dropin/page_test.py those of
docs/dropin.md."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for folder in (".", "docs/**", "packaging/**", "clients/**", "python/**")
    for page in ROOT.glob(f"{folder}/*.md")
)
SHELL = ("sh", "bash", "console")
# What a block of commands may begin a line with; other words are prose, or what is left of a line.
PROGRAMS = set(
    """apt berth berth-serve berth-sim busctl cat cd claude cmake command cp curl docker echo env etcdctl eval exec export flock gh git gpuselect
    jupyter make mkdir mktemp nohup nvidia-smi openssl pip podman python python3 rm seq set setsid sleep ssh sudo systemctl
    systemd-run tail tar tee test timeout tmux torchrun umask unset wait xargs apptainer : . [""".split()
)
KEYWORDS = set("if then else elif fi for while until do done case esac exit break { } ( )".split())
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
FENCE = re.compile(r"( *)```(\w*)[^\n]*")
# The words of one command of a line: what stands between operators, and behind "--" another's.
OPERATOR = re.compile(r"[;&|(){}]|\$\(|\s--\s|\bsudo\b|\bexec\b|\bthen\b|\bdo\b")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")


def shell_blocks(text: str) -> list[str]:
    """The blocks of commands: by their language, or indented and beginning as a command does."""
    found, lines = [], text.split("\n")
    i = 0
    while i < len(lines):
        if fence := FENCE.fullmatch(lines[i]):
            end = next(j for j in range(i + 1, len(lines)) if lines[j].strip() == "```")
            if fence[2] in SHELL:
                found.append("\n".join(line.removeprefix(fence[1]) for line in lines[i + 1 : end]))
            i = end + 1
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()):
            end = i
            margin = re.match(" *", lines[i])[0]  # more in a list, whose text has four
            while end < len(lines) and (lines[end].startswith(margin) or not lines[end].strip()):
                end += 1
            block = [line[len(margin) :] for line in lines[i:end]]
            if block[0].split()[0] in PROGRAMS | {"$"}:
                found.append("\n".join(block).rstrip())
            i = end
        else:
            i += 1
    return found


def commands(block: str) -> list[str]:
    """The lines that begin a command. With prompts, what has none is the answer."""
    lines = block.split("\n")
    if any(line.startswith("$ ") for line in lines):
        return [line[2:] for line in lines if line.startswith("$ ")]
    found, end, is_open = [], "", False
    for line in lines:
        if end:
            end = "" if line.strip() == end else end
            continue
        if not is_open and line.strip() and not line.lstrip().startswith("#"):
            found.append(line.strip())
        if heredoc := HEREDOC.search(line):
            end = heredoc[1]
        is_open ^= QUOTED.sub("", line).count("'") % 2 == 1
        if line.rstrip().endswith(("\\", "|", "&&")):
            is_open = True
        elif not QUOTED.sub("", line).count("'"):
            is_open = False if not end else is_open
    return found


def is_command(word: str) -> bool:
    if word in PROGRAMS | KEYWORDS or ASSIGNMENT.match(word) or word.startswith("~/"):
        return True
    file = ROOT / word
    return "/" in word and file.is_file() and os.access(file, os.X_OK)


def faults(block: str) -> list[str]:
    """What does not look like the commands that somebody has written."""
    found = []
    for line in commands(block):
        code, _, comment = line.partition(" #")
        if not is_command(code.split()[0]):
            found.append(f"begins with no command: {line}")
        if comment.split()[-1:] and comment.split()[-1] in ("pip", "berth", "sudo", "python3", "docker"):
            found.append(f"the comment ends with the beginning of a command: {line}")
        for part in OPERATOR.split(QUOTED.sub("", code)):
            words = part.split()
            # `pip install X pip install Y`: two lines in one.
            if (
                words
                and words[0] in PROGRAMS
                and any(words[i : i + 2] == words[:2] for i in range(1, len(words)) if len(words) > 2)
            ):
                found.append(f"two commands in one line: {line}")
    if any(line.startswith("$ ") for line in block.split("\n")):
        return found
    syntax = subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True)
    return found + ([syntax.stderr] if syntax.returncode else [])


@pytest.mark.parametrize("page", PAGES)
def test_each_line_of_a_block_of_commands_is_a_command(page):
    found = [fault for block in shell_blocks((ROOT / page).read_text()) for fault in faults(block)]
    assert found == []


def test_there_are_blocks():
    assert sum(len(shell_blocks((ROOT / page).read_text())) for page in PAGES) > 100
    assert shutil.which("bash")


@pytest.mark.parametrize(
    "block",
    [
        # As a formatter left it once: `install` overwrites the one wheel by the other.
        "pip uninstall gpuselect # those that you have pip\ninstall a.whl b.whl",
        "pip install a.whl # or, in a checkout: pip install .\n./python/dropin",
        "pip install a.whl pip install b.whl",
        "berth run -- true\nand the job ends",
        "berth run -- sh -c 'true",
    ],
)
def test_lines_that_a_formatter_has_joined_are_found(block):
    assert faults(block)
