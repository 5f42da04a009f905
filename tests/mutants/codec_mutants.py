"""Deletes one statement after the other from the codecs, and one entry after the other from the tables of readings and
of what a request can say, and asks whether the unit tests notice.

All deletions are compiled in at once, each behind a switch that the environment sets, so that a mutant costs a run of a
test program and no compilation. What is deleted: statements that end with a semicolon, keys of JSON that is written, and
rows and entries of the tables. What is not: declarations and plain returns, without which nothing compiles.

The tests that are about codecs judge first; what they let pass is judged by all tests of its rooms. One that never ends is
counted apart. What changes nothing is named below with its reason, and must then survive.

Words on the command line are parts of paths: only codecs whose path has one of them are judged.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

from mutants import ROOT, TREE, build, configure, copy_tree

# The codec, and the rooms whose tests must notice.
CODECS = {
    "src/core/device/device_readings.cpp": ("device", "request", "view"),
    "src/core/request/request_fields.cpp": ("request", "view", "jobs"),
    "src/core/request/request_fields.h": ("jobs", "api"),
    "src/run/job/job_codec.cpp": ("job", "jobs"),
    "src/run/job/job_codec.h": ("job", "jobs"),
    "src/run/job/job.cpp": ("job", "jobs"),
    "src/core/base/record.cpp": ("base", "device", "queue"),
    "src/core/base/record_fields.h": ("device", "queue", "api", "usage"),
    "src/core/base/record_fields.cpp": ("device", "queue"),
    "src/core/device/device_readings.h": ("device",),
    "src/core/device/snapshot_codec.cpp": ("device",),
    "src/core/queue/ticket_codec.cpp": ("queue",),
    "src/run/api/lease_messages.cpp": ("api",),
    "src/core/site/site_keys.cpp": ("site",),
    "src/core/source/probe/probe.cpp": ("source",),
    "src/run/usage/receipt.cpp": ("usage",),
    "src/run/usage/run_samples.h": ("usage",),
    "src/run/usage/run_samples.cpp": ("usage",),
    "src/run/view/json.cpp": ("view",),
    "src/run/view/hosts_reader.cpp": ("view",),
    "src/run/view/json.h": ("view",),
}
# The tables: how each begins, what a row is, what is true of the whole one alone, and how a row of
# it may begin.
TABLES = {
    "device_readings.cpp": (
        "constexpr std::array kReadings{",
        "DeviceReading",
        r"// A record has all of them.*?static_assert\(are_names_unique\(\)\);",
    ),
    "request_fields.cpp": (
        "constexpr std::array kFields{",
        "RequestField",
        r"consteval bool says_one.*?static_assert\(is_table_whole\(\)\);",
    ),
}
# A table whose keys are deleted like those of JSON, and is made at run time for that.
AT_RUN_TIME = {"src/core/site/site_keys.cpp": ("constexpr auto kKeys = ", "const auto kKeys = ")}
BUILD = TREE / "build" / "codecs"
# The test files that are about codecs.
FIRST = {
    "base": "*record_test*",
    "device": "*codec_test*,*record_fields_test*,*device_readings_test*",
    "request": "*expression_test*,*filter_test*,*request_fields_test*",
    "queue": "*ticket_codec_test*",
    "view": "*host_report_test*,*readings_document_test*,*request_document_test*",
    "source": "*protocol_test*,*interrupted_test*,*probe_source_test*",
    "api": "*lease_messages_test*",
    "site": "*site_keys_test*,*site_file_test*",
    "usage": "*receipt_test*,*run_samples_test*",
    "job": "*job_test*,*job_codec_test*",
    "jobs": "*stored_request_test*",
}
# The others of this room ask the whole program.
ALL = {room: "*" for room in FIRST} | {"api": FIRST["api"]}
# What a deletion may take of a processor, whose work is seconds unbroken, and of memory.
PATIENCE_S = 30
MEMORY_BYTES = 4 << 30
# One that sleeps for ever takes nothing of a processor.
SLEEP_S = 600

SWITCH = TREE / "build" / "kept.h"
SWITCH_TEXT = """#pragma once
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>
namespace berth {
inline bool kept(std::size_t number) {
  static const char* const gone = std::getenv("BERTH_MUTANT");
  static const char* const reached = std::getenv("BERTH_REACHED");
  static const std::size_t gone_number = gone ? std::strtoul(gone, nullptr, 10) : 1000000;
  static std::array<bool, 10000> was_reached{};
  if (reached && !was_reached[number]) {
    was_reached[number] = true;
    if (std::FILE* file = std::fopen(reached, "a")) {
      std::fprintf(file, "%zu\\n", number);
      std::fclose(file);
    }
  }
  return number != gone_number;
}
template <class Rows>
auto without(std::size_t first, const Rows& rows) {
  std::vector<typename Rows::value_type> all;
  for (const auto& row : rows) {
    if (kept(first++)) all.push_back(row);
  }
  return all;
}
}  // namespace berth
"""
# All unused or missing is meant. What falls off the end of a function must not go on.
FLAGS = f"-O1 -w -D_GLIBCXX_ASSERTIONS -include {SWITCH} -fsanitize=return,unreachable -fsanitize-undefined-trap-on-error"

# Deletions that change nothing: the file, the beginning of the statement, why.
EQUIVALENT = [
    (
        "src/core/base/record_fields.h",
        "taken_ = true;",
        "the names of a record differ: it saves comparing on",
    ),
    (
        "src/core/device/snapshot_codec.cpp",
        "next_reading_ = 0;",
        "where a search begins, which goes all around",
    ),
    (
        "src/core/request/request_fields.cpp",
        ".kind = K::truth",
        "a row that says nothing of its kind is a flag",
    ),
    (
        "src/core/request/request_fields.cpp",
        '.key = "yield"',
        "each face of this row says itself what it calls it",
    ),
    (
        "src/core/base/record.cpp",
        "if (backslash == std::string_view::npos) return text;",
        "a text without a backslash comes out the same: it saves a copy",
    ),
]

DECLARATION = re.compile(
    r"^(const|constexpr|static|auto|using|template|return|explicit|friend|virtual|inline|typename|BERTH_LET|namespace|enum"
    r"|struct|class|public|private|case|default|static_assert|break|concept|requires)\b|"
    r"^[\w:]+(<.*>)?( const)?[&*]*( \w+::\*)? \w+(\[\d+\]|\{.*|\(.*| =.*)?;?$|^[\w:]+(<.*>)?[&*]* \w+\(.*\) (const )?\{|^//|^#|^\}"
)
ONE_LINE_BODY = re.compile(r"^(.*\) (?:const )?)\{ (?!return)(.*;) \}$")
JSON_KEY = re.compile(r'^(\s*(?:return \{)?\{)("\w+")(, .*)$')
ENTRY = re.compile(r"^(\s*)\.(\w+) = (.*?)(\}\)?,?|,)$")
# The compiler knows whether a row has them, where the table is whole.
OF_COMPILER = {"request_fields.cpp": {"words", "looser", "mcp"}}
# The first entry of a row may stand in the line that begins it.
ROW_BEGIN = re.compile(r"^(\s*(?:DeviceReading|RequestField|filter_field\()\{)(?:(\.\w+ = .*))?$")


@dataclasses.dataclass
class Place:
    """What one deletion deletes."""

    file: str
    line: int
    text: str

    @property
    def rooms(self) -> tuple:
        return CODECS[self.file]

    def reason(self) -> str:
        """Why it changes nothing, or ""."""
        found = [why for file, text, why in EQUIVALENT if file == self.file and self.text.startswith(text)]
        return found[0] if found else ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text.splitlines()[0]}"


class Sources:
    """The copies with a switch at each place."""

    def __init__(self):
        self.places: list[Place] = []

    def add(self, file: str, line: int, text: str) -> int:
        self.places.append(Place(file, line, text.strip()))
        return len(self.places) - 1

    def switched(self, file: str, text: str) -> str:
        lines = text.replace(*AT_RUN_TIME.get(file, ("", ""))).splitlines()
        if (table := TABLES.get(file.rpartition("/")[2])) is not None:
            lines = self._table(file, lines, *table)
        lines = self._statements(file, lines)
        return "\n".join(lines) + "\n"

    def _table(self, file: str, lines: list[str], first_line: str, row: str, of_whole: str) -> list[str]:
        """The table as a list that is made at run time, from which rows and entries can be missing."""
        begin = next(i for i, line in enumerate(lines) if line.startswith(first_line))
        end = lines.index("};", begin)
        rows = [i for i in range(begin + 1, end) if ROW_BEGIN.match(lines[i])]
        first = [self.add(file, at + 1, lines[at]) for at in rows][0]
        name = first_line.split()[-1].rstrip("{")
        of_compiler = OF_COMPILER.get(file.rpartition("/")[2], set())
        # What makes a row is run with switches in it.
        before = [line.replace(f"constexpr {row} ", f"{row} ") for line in lines[:begin]]
        out = [*before, f"const auto {name} = without({first}, std::vector<{row}>{{"]
        for number, whole in enumerate(lines[begin + 1 : end], begin + 2):
            begins = ROW_BEGIN.match(whole)
            start, line = (begins[1], begins[2] or "") if begins else ("", whole)
            if (entry := ENTRY.match(line)) and entry[2] not in {"name", "member"} | of_compiler:
                mutant = self.add(file, number, whole)
                value, rest_of_line = entry[3], entry[4]
                if value.startswith("{"):
                    value, rest_of_line = value + "}", rest_of_line.removeprefix("}")
                # What closes is of the value.
                while value.count("(") > value.count(")"):
                    value, rest_of_line = value + rest_of_line[0], rest_of_line[1:]
                kind = f"decltype({row}::{entry[2]})"
                line = f"{entry[1]}.{entry[2]} = kept({mutant}) ? {kind}({value}) : {row}{{}}.{entry[2]}{rest_of_line}"
            out.append(start + line)
        rest = re.sub(of_whole, "", "\n".join(["});", *lines[end + 1 :]]), flags=re.S)
        return out + rest.splitlines()

    def _statements(self, file: str, lines: list[str]) -> list[str]:
        out: list[str] = []
        index = 0
        before = "{"
        in_function = False
        while index < len(lines):
            line = lines[index]
            # Members and declarations stand no deeper than a class; statements of free functions
            # begin at two blanks. What stands in a requirement is not run.
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


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE_S, PATIENCE_S + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def outcome(room: str, files: str, environment: dict) -> str:
    """ "passed", "failed" or "hangs"."""
    try:
        status = subprocess.run(
            [BUILD / f"berth_{room}_test", "--abort-after=1", f"--source-file={files}"],
            cwd=TREE,
            env=os.environ | environment,
            capture_output=True,
            timeout=SLEEP_S,
            preexec_fn=limit,
        ).returncode
    except subprocess.TimeoutExpired:
        return "hangs"
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return "hangs"
    return "failed" if status else "passed"


def judge(place: Place, number: int) -> str:
    """ "killed", "hangs" or "survived"."""
    for files in (FIRST, ALL):
        for room in place.rooms:
            what = outcome(room, files[room], {"BERTH_MUTANT": str(number)})
            if what != "passed":
                return "killed" if what == "failed" else what
    return "survived"


def reached(rooms: set) -> set:
    """What the tests run, which all must pass."""
    with tempfile.NamedTemporaryFile("r") as numbers:
        for room in sorted(rooms):
            if outcome(room, ALL[room], {"BERTH_REACHED": numbers.name}) != "passed":
                raise RuntimeError(f"{BUILD}/berth_{room}_test does not pass without a deletion")
        return {int(line) for line in numbers}


def prepare(codecs: list[str]) -> list[Place]:
    copy_tree()
    sources = Sources()
    SWITCH.parent.mkdir(exist_ok=True)
    SWITCH.write_text(SWITCH_TEXT)
    for file in codecs:
        (TREE / file).write_text(sources.switched(file, (ROOT / file).read_text()))
    try:
        configure(
            BUILD,
            "-DCMAKE_BUILD_TYPE=Debug",
            f"-DCMAKE_CXX_FLAGS_DEBUG={FLAGS}",
            "-DCMAKE_UNITY_BUILD=ON",
            "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0",
        )
        build(sorted({f"berth_{room}_test" for file in codecs for room in CODECS[file]}), BUILD)
    finally:
        copy_tree()
    return sources.places


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="of the path of a codec; none: all")
    parts = parser.parse_args().parts
    codecs = [file for file in CODECS if not parts or any(part in file for part in parts)]
    if not codecs:
        parser.error("no codec has such a path")
    places = prepare(codecs)
    run = reached({room for place in places for room in place.rooms})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(
            pool.map(lambda n: judge(places[n], n) if n in run else "never reached", range(len(places)))
        )
    wrong = 0
    for number, (place, what) in enumerate(zip(places, outcomes, strict=True)):
        if place.reason() and what == "survived":
            outcomes[number] = "equivalent"
        elif what not in ("killed", "hangs") or place.reason():
            wrong += 1
            print(f"  {what}{', and named as equivalent' if place.reason() else ''}: {place}")
    counts = collections.Counter(outcomes)
    print(f"{len(places)} deletions: " + ", ".join(f"{n} {what}" for what, n in counts.most_common()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
