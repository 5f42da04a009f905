"""Adds up what the steps of ./dev left: test cases, checks, and skips by the capability that they name."""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree

# doctest's own summary of one program, and ctest's line about a program that failed.
CASES = re.compile(r"test cases:\s+\d+ \|\s+(\d+) passed \|\s+(\d+) failed \|\s+(\d+) skipped")
BROKEN = re.compile(r"\*\*\*(?:Failed|Exception|Timeout|Not Run)|No tests were found")


def read_doctest(path, counts):
    text = path.read_text(errors="replace")
    failed = 0
    for passed, broken, skipped in CASES.findall(text):
        counts["passed"] += int(passed)
        counts["skipped"] += int(skipped)
        failed += int(broken)
    # A program that a sanitizer ended prints no summary, or one without a failure.
    counts["failed"] += max(failed, len(BROKEN.findall(text)))


def read_pytest(path, counts, skips):
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None:
            counts["skipped"] += 1
            skips[skipped.get("message", "no reason given")] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
        else:
            counts["passed"] += 1


def read_check(path, counts):
    for line in path.read_text().splitlines():
        outcome, number = line.split()
        counts[outcome] += int(number)


def main(folder):
    total, skips = collections.Counter(), collections.Counter()
    for path in sorted(pathlib.Path(folder).iterdir()):
        counts = collections.Counter()
        if path.suffix == ".doctest":
            read_doctest(path, counts)
        elif path.suffix == ".xml":
            read_pytest(path, counts, skips)
        else:
            read_check(path, counts)
        total += counts
    for reason, number in sorted(skips.items()):
        print(f"  skipped {number}: {reason}")
    # The closing line that CI counts.
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
