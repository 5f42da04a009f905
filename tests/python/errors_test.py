"""What is wrong is said by name."""

import os
import pathlib

# What is asked, the exception, and words of its text.
BAD = [
    ("pick('2')", "TypeError", "n must be an int, not '2'"),
    ("pick(1.0)", "TypeError", "n must be an int, not 1.0"),
    ("pick(0)", "ValueError", "n must be 1 or more, not 0"),
    ("pick(where='nam~x')", "Usage", "where: expression, column 1"),
    ("pick(where=3)", "TypeError", "where must be an expression or a function of a device, not 3"),
    ("pick(memory='lots')", "Usage", 'memory: "lots" is not an amount of memory'),
    ("pick(memory=0)", "Usage", "memory: must be more than nothing"),
    ("pick(memory=2.5)", "TypeError", "memory must be a str or an int, not 2.5"),
    (
        "pick(memory=20)",
        "Usage",
        'memory: 20 of what? write "20G" or "20M", or a number of bytes from 1048576 up',
    ),
    ("pick(memory='20')", "Usage", "memory: 20 of what? write 20G or 20M"),
    ("pick(free=20)", "Usage", 'free: 20 of what? write "20G" or "20M"'),
    ("pick(total='1048576')", "Usage", "total: 1048576 of what? write 1048576B or 1048576K"),
    ("submit(['true'], memory=20)", "Usage", 'memory: 20 of what? write "20G" or "20M"'),
    ("lease(wait='90')", "Usage", "wait: 90 of what? write 90s or 90m"),
    ("lease(time='2:30')", "Usage", "time: 2:30 of what? write 2h30m or 2m30s"),
    ("pick(free='20 parsecs')", "Usage", "free: "),
    ("pick(util='hot')", "Usage", "util: must be a whole number, 0 or more"),
    ("pick(temp=-1)", "Usage", "temp: must be a whole number, 0 or more"),
    ("pick(processes='1')", "TypeError", "processes must be an int, not '1'"),
    ("pick(seed=-1)", "ValueError", "seed must be 0 or more, not -1"),
    ("pick(order='hottest')", "Usage", "order: must be one of auto, index"),
    ("pick(order=1)", "TypeError", "order must be the name of an order or a function of a device, not 1"),
    ("pick(devices=1.5)", "TypeError", "devices must be an index, a UUID, or several in a list, not 1.5"),
    ("pick(devices=[None])", "TypeError", "devices must be an index"),
    ("pick(devices=9)", "Usage", "devices asked for"),
    ("pick(devices=1, exclude=1)", "Usage", "both asked for and excluded"),
    ("pick(gpus=1)", "TypeError", "there is no argument 'gpus': did you mean n?"),
    ("lease(count=2)", "TypeError", "there is no argument 'count': did you mean n?"),
    ("submit('true', gpus=2)", "TypeError", "there is no argument 'gpus': did you mean n?"),
    ("lease(gpu=2)", "TypeError", "there is no argument 'gpu': did you mean n or devices?"),
    ("lease(timeout=2)", "TypeError", "there is no argument 'timeout': did you mean wait?"),
    # It waits for nothing.
    ("pick(timeout=2)", "TypeError", "there is no argument 'timeout'"),
    ("lease(vram='2G')", "TypeError", "there is no argument 'vram': did you mean memory?"),
    ("why(memroy='2G')", "TypeError", "there is no argument 'memroy': did you mean memory?"),
    ("submit('true', job_name='a')", "TypeError", "there is no argument 'job_name': did you mean name?"),
    ("submit('true', retrys=1)", "TypeError", "there is no argument 'retrys': did you mean retries?"),
    ("lease(partition='a100')", "TypeError", "there is no argument 'partition'"),
    ("jobs('finished')", "Usage", "--state finished: must be one of waiting, held, in-line, "),
    ("cancel()", "TypeError", "cancel() needs a job: its number, its name, or a berth.Job"),
    ("why(n=None)", "TypeError", "n must be an int, not None"),
    ("lease(wait='soon')", "Usage", "wait: "),
    ("lease(wait=-1)", "ValueError", "wait must be 0 or more, not -1"),
    ("lease(wait=[1])", "TypeError", "wait must be None, seconds, or a time like '10m', not [1]"),
    ("lease(wait=float('nan'))", "ValueError", "wait must be 0 or more, not nan"),
    ("lease(note=3)", "TypeError", "note must be a str, not 3"),
    ("lease(on_wait=3)", "TypeError", "on_wait must be a function, not 3"),
    ("lease(placeholder='jax')", "ValueError", "placeholder must be a function or one of cuda, torch"),
    ("lease(placeholder=3)", "TypeError", "placeholder must be a name or a function"),
    ("pick(devices=[])", "ValueError", "devices must name at least one device"),
    ("lease(devices=())", "ValueError", "devices must name at least one device"),
    ("pick(where=lambda d: 1 / 0)", "ZeroDivisionError", "division by zero"),
]


def test_bad_arguments_are_named(host):
    code = """
    for line in sys.stdin.read().splitlines():
        try:
            eval("berth." + line)
            say("it was taken")
        except Exception as error:
            say(type(error).__name__, "|", isinstance(error, (TypeError, ValueError, ZeroDivisionError)), "|", str(error).splitlines()[0])
    """
    said = host.says(code, input="\n".join(asked for asked, _, _ in BAD))
    assert len(said) == len(BAD)
    for (asked, kind, words), line in zip(BAD, said):
        found, is_pythonic, text = line.split(" | ", 2)
        assert (found, is_pythonic) == (kind, "True"), (asked, line)
        assert words in text, (asked, line)


def test_every_code_of_the_core_has_its_exception(host):
    code = """
    for kind in berth.NoDriver, berth.Impossible, berth.NotNow, berth.TimedOut, berth.Usage:
        say(issubclass(kind, berth.Error), kind("text").verdicts, str(kind("text", (1, 2))), kind("text", (1, 2)).verdicts)
    say(issubclass(berth.TimedOut, TimeoutError), issubclass(berth.Usage, ValueError), issubclass(berth.Error, RuntimeError))
    """
    assert host.says(code) == ["True () text (1, 2)"] * 5 + ["True True True"]


def test_refusals_carry_the_verdicts(host):
    code = """
    def complaint(ask):
        try:
            ask()
        except berth.Error as error:
            say(type(error).__name__, len(error.verdicts), str(error).splitlines()[0])
            say([verdict.clause for verdict in error.verdicts])
    complaint(lambda: berth.pick(temp=1))
    complaint(lambda: berth.pick(name="T4"))
    complaint(lambda: berth.pick(where=lambda d: False))
    complaint(lambda: berth.lease(temp=1, wait=0))
    complaint(lambda: berth.lease(temp=1, wait=0.01))
    complaint(lambda: berth.lease(name="T4"))
    """
    said = host.says(code)
    assert said[0] == "NotNow 2 not now: 1 whole GPU, temp <= 1 wanted, none free"
    assert said[1] == "['thresholds', 'thresholds']"
    assert said[2].startswith("Impossible 2 this machine can never satisfy the request")
    assert said[3] == "['static_filters', 'static_filters']"
    assert said[4].startswith("Impossible 2 ")
    assert said[6].startswith("NotNow 2 not now: 1 whole GPU")
    assert said[8].startswith("TimedOut 2 gave up after 10 ms; not now")
    assert said[10].startswith("Impossible ")


ASK_BOTH = """
for ask in berth.snapshot, lambda: berth.lease(wait=0):
    try:
        ask()
        say("answered")
    except berth.Error as error:
        say(type(error).__name__, error)
"""


def test_a_missing_program_is_named_with_the_remedy(host):
    first, second = host.says(ASK_BOTH, env={"BERTH_PROGRAM": "/no/such/berth"})
    assert first == second
    assert first == (
        "Error BERTH_PROGRAM=/no/such/berth is no program that can be run; unset it, or let it name the berth program"
    )


def test_a_package_without_its_program_says_where_it_looked(host, tmp_path):
    package = tmp_path / "berth"
    installed = pathlib.Path(host.says("say(os.path.dirname(berth.__file__))")[0])
    package.mkdir()
    for file in installed.iterdir():
        if file.is_file():
            (package / file.name).write_bytes(file.read_bytes())
    # Not the one of the environment, which Python would still find beside its own library.
    first, second = host.says(ASK_BOTH, env={"PYTHONPATH": tmp_path, "PATH": "/usr/bin:/bin"})
    assert first == second
    assert first.startswith(
        f"Error the berth program is missing: it is neither near {package} nor on PATH. Install"
    )


def test_a_program_of_another_version_is_refused(host, tmp_path):
    version = host.says("say(berth.__version__)")[0].encode()
    other = tmp_path / "berth"
    other.write_bytes(host.machine.program.read_bytes().replace(version, b"9" * len(version)))
    other.chmod(0o755)
    first, second = host.says(ASK_BOTH, env={"BERTH_PROGRAM": other})
    for said in first, second:
        assert "the berth program that was found is of version 99999" in said
        assert "install both from one version, or let BERTH_PROGRAM name the right program" in said


def test_a_program_that_is_no_berth_is_an_error(host, tmp_path):
    other = tmp_path / "berth"
    other.write_text("#!/bin/sh\nexit 2\n")
    other.chmod(0o755)
    first, second = host.says(ASK_BOTH, env={"BERTH_PROGRAM": other})
    assert first.startswith("Error ") or first.startswith("NoDriver "), first
    assert f"{other} has ended without an answer to the request for a lease" in second
    assert "BERTH_PROGRAM can name another" in second


def test_a_lease_directory_that_is_not_fit_is_named(host, tmp_path):
    shared = tmp_path / "leases"
    shared.mkdir()
    os.chmod(shared, 0o777)
    said = host.says(ASK_BOTH, env={"BERTH_DIR": shared})
    assert said[0] == "answered"
    assert said[1].startswith("Error ") and "sticky" in said[1]
