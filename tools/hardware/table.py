"""What a machine has shown, as rows of the first table of docs/hardware.md."""

import collections
import re

HEAD = "| Row | GPU, driver | Result |\n|---|---|---|\n"
SHOWN = {"seen": "", "otherwise": "**otherwise**: "}


def cell(text):
    """Of a table: in one line, and without its bars."""
    return re.sub(r"\s+", " ", str(text)).replace("|", "\\|").strip()


def where(results):
    gpus = collections.Counter(results["gpus"])
    names = ", ".join("%d × %s" % (number, name) for name, number in gpus.items()) or "no GPU"
    return cell("%s, %s" % (names, results["driver"]))


def shown(results):
    """The results by row and machine."""
    return {
        ("`%s`" % row["row"], where(results)): SHOWN[row["outcome"]] + cell(row["came"])
        for row in results["rows"]
        if row["outcome"] in SHOWN
    }


def line(row, machine, result):
    return "| %s | %s | %s |\n" % (row, machine, result)
