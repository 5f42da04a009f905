#!/usr/bin/env python3
"""Deletes one statement after the other from the codecs, and one entry after the other from the table of readings, and
asks whether the unit tests notice.

All deletions are compiled in at once, each behind a switch that the environment sets, so that a mutant costs a run of a
test program and no compilation. What is deleted: statements that end with a semicolon, keys of JSON that is written, and
rows and entries of the table. What is not: declarations and plain returns, without which nothing compiles.
"""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

from mutants import ROOT, TREE, build, configure, copy_tree

# The codec, and the tests that must notice.
CODECS = {
    "src/berth/core/device_readings.cpp": ("core", "render"),
    "src/berth/core/record.cpp": ("core",),
    "src/berth/core/record_fields.h": ("core", "api"),
    "src/berth/core/record_fields.cpp": ("core",),
    "src/berth/core/snapshot_fields.h": ("core",),
    "src/berth/core/snapshot_codec.cpp": ("core",),
    "src/berth/core/ticket_codec.cpp": ("core",),
    "src/berth/api/lease_wire.cpp": ("api",),
    "src/berth/source/probe/protocol.cpp": ("source",),
    "src/berth/render/device_json.cpp": ("render",),
    "src/berth/render/host_report.cpp": ("render",),
    "src/berth/render/json_reader.cpp": ("render",),
    "src/berth/render/json_reader.h": ("render",),
    "src/berth/render/version_text.cpp": ("render",),
}
BUILD = TREE / "build" / "codecs"
# The test files that are about codecs: what others would notice is not asked.
FILES = {
    "core": "*codec_test*,*record*_test*,*device_readings_test*",
    "render": "*host_report_test*,*readings_document_test*",
    "source": "*protocol_test*,*interrupted_test*,*probe_source_test*",
    "api": "*lease_wire_test*",
}
# A mutant may make a test wait for ever.
PATIENCE_S = 300
SWITCH = "src/berth/core/mutant.h"
# The core may include nothing that reads the environment.
SWITCH_TEXT = """#pragma once
#include <vector>
extern "C" char* getenv(const char*) noexcept;
extern "C" int atoi(const char*) noexcept;
namespace berth {
inline bool kept(int number) {
  static const char* const gone = getenv("BERTH_MUTANT");
  static const int gone_number = gone == nullptr ? -1 : atoi(gone);
  return number != gone_number;
}
template <class Rows>
auto without(int first, const Rows& rows) {
  std::vector<typename Rows::value_type> all;
  for (const auto& row : rows) {
    if (kept(first++)) all.push_back(row);
  }
  return all;
}
}  // namespace berth
"""

DECLARATION = re.compile(
    r"^(const|constexpr|static|auto|using|template|return|explicit|friend|virtual|inline|typename|BERTH_LET|namespace|enum"
    r"|struct|class|public|private|case|default|static_assert|break|concept|requires)\b|"
    r"^[\w:]+(<.*>)?( const)?[&*]*( \w+::\*)? \w+(\[\d+\]|\{.*|\(.*| =.*)?;?$|^[\w:]+(<.*>)?[&*]* \w+\(.*\) (const )?\{|^//|^#|^\}"
)
ONE_LINE_BODY = re.compile(r"^(.*\) (?:const )?)\{ (?!return)(.*;) \}$")
JSON_KEY = re.compile(r'^(\s*(?:return \{)?\{)("\w+")(, .*)$')
ENTRY = re.compile(r"^(\s*)\.(\w+) = (.*?)(\},?|,)$")


class Sources:
    """The mutants of all files; `places` has what each deletes."""

    def __init__(self):
        self.places: list[tuple[str, int, str, tuple]] = []

    def add(self, file: str, line: int, text: str) -> int:
        self.places.append((file, line, text.strip(), CODECS[file]))
        return len(self.places) - 1

    def switched(self, file: str, text: str) -> str:
        lines = text.splitlines()
        if file.endswith("device_readings.cpp"):
            lines = self._table(file, lines)
        lines = self._statements(file, lines)
        first_include = next(i for i, line in enumerate(lines) if line.startswith("#include"))
        lines.insert(first_include + 1, '#include "berth/core/mutant.h"')
        return "\n".join(lines) + "\n"

    def _table(self, file: str, lines: list[str]) -> list[str]:
        """The table as a list that is made at run time, from which rows and entries can be missing."""
        begin = next(i for i, line in enumerate(lines) if line.startswith("constexpr std::array kReadings{"))
        end = lines.index("};", begin)
        rows = [i for i in range(begin, end) if "DeviceReading{.name" in lines[i]]
        first = [self.add(file, row + 1, lines[row]) for row in rows][0]
        out = [*lines[:begin], f"const auto kReadings = without({first}, std::vector<DeviceReading>{{"]
        for number, line in enumerate(lines[begin + 1 : end], begin + 2):
            if (entry := ENTRY.match(line)) and entry[2] not in ("name", "member"):
                mutant = self.add(file, number, line)
                value, rest_of_line = entry[3], entry[4]
                if value.startswith("{"):
                    value, rest_of_line = value + "}", rest_of_line.removeprefix("}")
                kind = f"decltype(DeviceReading::{entry[2]})"
                line = f"{entry[1]}.{entry[2]} = kept({mutant}) ? {kind}({value}) : DeviceReading{{}}.{entry[2]}{rest_of_line}"
            out.append(line)
        rest = "\n".join(["});", *lines[end + 1 :]])
        rest = re.sub(
            r"// A record has all of them.*?static_assert\(are_names_unique\(\)\);", "", rest, flags=re.S
        )
        return out + rest.splitlines()

    def _statements(self, file: str, lines: list[str]) -> list[str]:
        out: list[str] = []
        index = 0
        before = "{"
        in_function = False
        while index < len(lines):
            line = lines[index]
            # Members and declarations stand no deeper than a class; statements of free functions begin at two blanks.
            # What stands in a requirement is not run.
            if line.startswith("concept ") and line.endswith("{"):
                end = lines.index("};", index)
                out += lines[index : end + 1]
                before, index = "};", end + 1
                continue
            if re.match(r"^(struct|class|enum) .*\{$", line):
                in_function = False
            elif line and not line.startswith((" ", "}")) and line.endswith("{"):
                in_function = True
            depth = len(line) - len(line.lstrip())
            if key := JSON_KEY.match(line):
                mutant = self.add(file, index + 1, line)
                out.append(f'{key[1]}kept({mutant}) ? {key[2]} : "gone"{key[3]}')
                before, index = line.strip(), index + 1
                continue
            if (body := ONE_LINE_BODY.match(line)) and "requires" not in line:
                mutant = self.add(file, index + 1, line)
                out.append(f"{body[1]}{{ if (kept({mutant})) {{ {body[2]} }} }}")
                before, index = line.strip(), index + 1
                continue
            end = index
            may_begin = before.endswith((";", "{", "}", ":")) and depth >= (2 if in_function else 4)
            while (
                may_begin
                and not lines[end].endswith((";", "{", "}"))
                and end + 1 < len(lines)
                and end < index + 8
            ):
                end += 1
            unit = lines[index : end + 1]
            text = "\n".join(unit)
            whole = text.endswith(";") and all(text.count(a) == text.count(b) for a, b in ("()", "{}", "[]"))
            followed = lines[end + 1].strip() if end + 1 < len(lines) else ""
            if (
                may_begin
                and whole
                and not DECLARATION.match(line.strip())
                and not line.strip().startswith("else")
            ):
                while followed.startswith("else") and not followed.endswith("{"):
                    end += 1
                    while not lines[end].endswith(";"):
                        end += 1
                    followed = lines[end + 1].strip()
                mutant = self.add(file, index + 1, text)
                out.append(f"if (kept({mutant})) {{")
                out += lines[index : end + 1]
                out.append("}")
            else:
                end = index
                out.append(line)
            before = re.sub(r"\s*//.*", "", lines[end]).strip() or before
            index = end + 1
        return out


def notices(tests: tuple, number: int) -> bool:
    for layer in tests:
        try:
            done = subprocess.run(
                [BUILD / f"berth_{layer}_test", "--abort-after=1", f"--source-file={FILES[layer]}"],
                cwd=TREE,
                env=os.environ | {"BERTH_MUTANT": str(number)},
                capture_output=True,
                timeout=PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            return True
        if done.returncode != 0:
            return True
    return False


def main() -> int:
    copy_tree()
    sources = Sources()
    (TREE / SWITCH).write_text(SWITCH_TEXT)
    for file in CODECS:
        (TREE / file).write_text(sources.switched(file, (ROOT / file).read_text()))
    try:
        configure(BUILD, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DBERTH_PRECOMPILE=ON")
        build(sorted({f"berth_{layer}_test" for tests in CODECS.values() for layer in tests}), BUILD)
        for tests in sorted(set(CODECS.values())):
            if notices(tests, -1):
                raise RuntimeError(f"the tests of {', '.join(tests)} fail without a mutant")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            caught = list(
                pool.map(
                    lambda number: notices(sources.places[number][3], number), range(len(sources.places))
                )
            )
    finally:
        copy_tree()
    for (file, line, text, _), was_caught in zip(sources.places, caught, strict=True):
        if not was_caught:
            print(f"  SURVIVED {file}:{line}: {pathlib.PurePath(text.splitlines()[0])}")
    print(f"{sum(caught)} of {len(caught)} deletions caught")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
