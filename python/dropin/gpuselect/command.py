"""The command `gpuselect`: prints the GPUs to use, or runs a command on them."""

from __future__ import annotations

import argparse
import logging
import os
import sys

import berth
from berth import _berth
from berth_dropin import asking, beside_scheduler, mask, safe_gpu_files

from gpuselect.selection import (
    ANY_COMPANY,
    Question,
    check,
    choose,
    logger,
    look,
    picked,
    request,
    shortage,
    value_of,
)


def ids(text: str):
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError("Parameter must be a single int or 'int1,int2,...'") from None
    return numbers[0] if len(numbers) == 1 else numbers


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpuselect",
        usage="%(prog)s [OPTIONS] [-- COMMAND...]",
        description="Prints the value for CUDA_VISIBLE_DEVICES, or leases the GPUs and runs COMMAND on them.",
    )
    parser.add_argument("-d", "--devices", type=ids, help="filter GPUs by device ID")
    parser.add_argument("-n", "--name", help="filter GPUs by substring match on their names")
    parser.add_argument("-u", "--util", type=int, default=0, help="filter GPUs by max utilization percentage")
    parser.add_argument(
        "-m", "--mem_util", type=int, default=0, help="filter GPUs by max memory utilization percentage"
    )
    parser.add_argument(
        "-c", "--count", type=int, default=1, help="number of GPUs that must match other filters"
    )
    parser.add_argument("-p", "--processes", type=int, default=0, help="filter GPUs by max process count")
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="do not print the value of CUDA_VISIBLE_DEVICES"
    )
    parser.add_argument(
        "-D", "--debug", action="store_true", help="display extra logging output for debugging"
    )
    return parser


def _parse(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options and the command, which begins after "--" or with the first word that is no option."""
    parser = _parser()
    if "--" in words:
        options, rest = parser.parse_known_args(words[: words.index("--")])
        command = words[words.index("--") + 1 :]
        if rest:
            parser.error(f"unexpected before --: {' '.join(rest)}")
        if not command:
            parser.error("no command after --")
        return options, command
    options, command = parser.parse_known_args(words)
    if command and command[0].startswith("-"):
        parser.error(f"unrecognized arguments: {command[0]}")
    return options, command


def _run(question: Question, command: list[str]) -> None:
    """Becomes `berth run`, which ends as the command ends."""
    os.environ["PYTHONUNBUFFERED"] = "1"
    if question.processes > 0:
        choice, beside = choose(question, picked)
        if beside:
            _run_beside(list(choice.uuids) if choice else [], beside, command)
    made = request(question)
    free = beside_scheduler.unlocked(made["devices"])
    if len(free) < question.count:
        raise shortage(
            question, made["devices"], berth.NotNow("", berth.why(devices=made["devices"], mask=False))
        )
    _become(
        question.count, free, ["--processes", str(made["processes"])] if "shared" in made else [], command
    )


def _run_beside(leased: list[str], beside: list[str], command: list[str]) -> None:
    """On GPUs of which some are used without a lease: `berth run` shows its command the others alone."""
    value = value_of([*leased, *beside])
    if leased:
        command = ["env", f"CUDA_VISIBLE_DEVICES={value}", *command]
        _become(len(leased), leased, ["--processes", str(ANY_COMPANY)], command)
    mask.put(value)
    os.execvp(command[0], command)


def _become(count: int, uuids: list[str], company: list[str], command: list[str]) -> None:
    words = ["run", "--no-wait", "--quiet", "-n", str(count), "--devices", ",".join(uuids)]
    words += ["--order", "random", "--mask", "ignore", "--note", asking.GPUSELECT_COMMAND]
    if company:
        words += ["--shared", *company]
    program = _berth.program()
    name, _, files = safe_gpu_files.variable().partition("=")
    os.environ[name] = files
    os.execv(program, [program, *words, "--", *command])


def main() -> int:
    options, command = _parse(sys.argv[1:])
    if options.debug:
        logger.setLevel(logging.DEBUG)
    try:
        question = check(
            Question(
                options.count,
                options.devices,
                options.name,
                options.util,
                options.mem_util,
                options.processes,
            )
        )
        if command:
            _run(question, command)
        value = look(question)
    except Exception as error:
        print(f"gpuselect: {error}", file=sys.stderr)
        return 1
    if not options.quiet:
        print(value)
    return 0
