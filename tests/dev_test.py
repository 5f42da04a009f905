"""./dev itself, before it has installed or built anything."""

import pathlib
import subprocess

import pytest
from lab import DEADLINE_S

pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[1]


def dev(*words):
    return subprocess.run([ROOT / "dev", *words], capture_output=True, text=True, timeout=DEADLINE_S)


@pytest.mark.parametrize("help_word", ["-h", "--help"])
def test_a_question_for_the_help_of_a_command_starts_nothing(help_word):
    help_text = dev("help").stdout
    answer = dev("format", help_word)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, help_text, "")


def test_an_unknown_command_is_no_question_for_help():
    answer = dev("tset", "--help")
    assert (answer.returncode, answer.stdout) == (2, "")
