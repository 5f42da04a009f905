"""docs/jobs.md: what it tells people to type works as it says."""

import pathlib
import re

import pytest
from jobs import eventually
from simulated_machine import DEADLINE_S

pytestmark = pytest.mark.long

PAGE = (pathlib.Path(__file__).parents[2] / "docs/jobs.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)


def test_each_block_of_the_page_does_what_it_says(machine):
    stubs = machine.directory / "bin"
    stubs.mkdir()
    (stubs / "python").write_text(
        '#!/bin/sh\ntest "$BERTH_ARRAY_INDEX" -o "$3" != 39 -a "$3" != 40 || exec sleep 1000\necho "trained $3"\n'
    )
    (stubs / "python").chmod(0o755)
    machine.env["PATH"] = f"{stubs}:{machine.program.parent}:{machine.env['PATH']}"
    assert len(BLOCKS) == 16
    said = []
    for block in BLOCKS:
        answer = machine.run("bash", "-euc", block, cwd=machine.directory, timeout=2 * DEADLINE_S)
        # What runs in the foreground says how far it is.
        assert answer.status == 0 and (answer.err == "" or "berth each" in block), block
        said.append(answer.out)
        if len(said) == 1:
            assert (
                machine.berth(
                    "wait", *(str(number) for number in range(1, 39)), timeout=2 * DEADLINE_S
                ).status
                == 0
            )
    assert said[0].split() == [str(number) for number in range(1, 41)]
    # An array, parameters, the commands of a file, three after each other, a singleton, tonight,
    # one that may fail, one that may be cut off, one that yields, one that is told of, a script.
    changed = said.pop(5)
    assert "job 48 is held" in changed and changed.endswith("cancelled job 48\n")
    assert said[1:11] == ["41\n42\n", "", "46\n", "47\n", *(f"{number}\n" for number in range(49, 55))]
    assert said[11].endswith("trained 7\n") and "seed 40" in said[11]
    assert said[12] == "cancelled job 39\ncancelled job 40\n"
    assert said[13] == "56\n"
    others = [str(number) for number in range(41, 57) if number != 48]
    assert machine.berth("wait", *others, timeout=2 * DEADLINE_S).status == 0
    told = {each["id"]: each for each in machine.berth("jobs", "--json").json["jobs"]}
    assert told["56"]["name"] == "eval" and told["55"]["exit_status"] == 0
    assert (
        told["44"]["ended_s"] <= told["45"]["started_s"] and told["45"]["ended_s"] <= told["46"]["started_s"]
    )
    assert machine.berth("log", "41.99").out == "trained 99\n"
    assert machine.berth("log", "42").out.count("trained") == 4
    eventually(lambda: (machine.directory / "told.txt").exists())
    assert (machine.directory / "told.txt").read_text() == "job 53 ended with status 0\n"
    assert "39" not in told and "38" in told
