"""The commands `nvgpu` and `nvl`."""

from __future__ import annotations

import argparse
import sys

import berth
from berth_dropin import cards, mask

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
    """What can be put into CUDA_VISIBLE_DEVICES."""
    indices = nvgpu.available_gpus()[: limit or None]
    boards = {str(gpu.index): gpu for gpu in cards.gpus()}
    print(mask.of([boards[index] for index in indices], list(boards.values())))


def main() -> int:
    options = _parser().parse_args()
    if options.command == "available":
        return _told(lambda: _print_available(options.limit))
    return _told(pretty_list_gpus)


def nvl() -> int:
    return _told(pretty_list_gpus)


if __name__ == "__main__":
    sys.exit(main())
