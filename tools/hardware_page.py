"""Takes what `./dev hardware` has seen over into docs/hardware.md: a row of its first table for each row that a machine has shown."""

import argparse
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "hardware"))
import table

PAGE = pathlib.Path(__file__).parents[1] / "docs/hardware.md"


class Refused(Exception):
    """The file cannot be taken over; the words say why."""


def read_results(path):
    try:
        results = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {error}") from error
    if not isinstance(results, dict) or (results.get("kind"), results.get("version")) != (
        "berth-hardware",
        1,
    ):
        raise Refused(f"{path} is not what ./dev hardware writes")
    if results.get("simulated"):
        raise Refused(f"{path} is of the simulated driver, which shows nothing of a real one")
    if not results.get("driver") or not isinstance(results.get("rows"), list):
        raise Refused(f"{path} names no driver: it did not start there")
    return results


def assumed(page):
    """The rows of the second table."""
    return re.findall(r"^\| `(\w+)` \|", page.partition("\n## Assumed")[2], re.M)


def take(page, results):
    """The page with these rows, in the order of its second table. A row of the same machine is replaced."""
    before, head, rest = page.partition(table.HEAD)
    if not head:
        raise Refused("docs/hardware.md has no table of what was seen")
    lines = rest.split("\n")
    end = next(number for number, line in enumerate(lines) if not line.startswith("| "))
    seen = {}
    for line in lines[:end]:
        row, where, result = re.split(r" (?<!\\)\| ", line[2:].removesuffix(" |"), maxsplit=2)
        seen[row, where] = result
    known = assumed(page)
    unknown = [row["row"] for row in results["rows"] if row["row"] not in known]
    if unknown:
        raise Refused(
            f"docs/hardware.md has no row {unknown[0]}: take the file over with the Berth that wrote it"
        )
    seen.update(table.shown(results))
    place = {f"`{row}`": number for number, row in enumerate(known)}
    ordered = sorted(seen, key=lambda key: (place.get(key[0], len(place)), key[1]))
    return before + head + "".join(table.line(*key, seen[key]) for key in ordered) + "\n".join(lines[end:])


def main():
    options = argparse.ArgumentParser(prog="./dev hardware --take", description=__doc__)
    options.add_argument("file", type=pathlib.Path, help="what a run has written: hardware.json")
    options.add_argument("--into", type=pathlib.Path, default=PAGE, help="the page (docs/hardware.md)")
    chosen = options.parse_args()
    try:
        results = read_results(chosen.file)
        page = chosen.into.read_text()
        try:
            fresh = take(page, results)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise Refused(f"{chosen.file} is damaged: {type(error).__name__} {error}") from error
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    chosen.into.write_text(fresh)
    if not results.get("complete"):
        print("the run was cut off: these are the rows up to there")
    print(f"{chosen.into}: {len(table.shown(results))} rows of {table.where(results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
