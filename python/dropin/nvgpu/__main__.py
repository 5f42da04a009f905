"""The commands `nvgpu` and `nvl`."""

from __future__ import annotations

import argparse
import sys

import berth

import nvgpu
from nvgpu.list_gpus import pretty_list_gpus


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nvgpu", description="NVIDIA GPU tools.")
    commands = parser.add_subparsers(dest="command", required=True)
    available = commands.add_parser("available", help="print the GPUs that can be used")
    available.add_argument("-l", "--limit", type=int, help="Max number of GPUs")
    commands.add_parser("list", help="show the GPUs and who uses them")
    return parser


def _told(action) -> int:
    try:
        action()
    except berth.Error as error:
        print(f"nvgpu: {error}", file=sys.stderr)
        return 1
    return 0


def _print_available(limit) -> None:
    gpus = nvgpu.available_gpus()
    print(",".join(gpus[:limit] if limit else gpus))


def main() -> int:
    options = _parser().parse_args()
    if options.command == "available":
        return _told(lambda: _print_available(options.limit))
    return _told(pretty_list_gpus)


def nvl() -> int:
    return _told(pretty_list_gpus)


if __name__ == "__main__":
    sys.exit(main())
