#!/usr/bin/env python3
"""Checks what Berth assumes of the NVIDIA driver, on the machine that this is run on, and says what it has seen.

Each check is a process of its own with a bound, so that a driver that hangs stops nothing. No setting of a GPU is changed, and
nothing is left but the file of the results. docs/hardware.md in Berth's repository explains the rows."""

import argparse
import collections
import contextlib
import ctypes
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

if sys.version_info < (3, 8):
    sys.exit("%s is older than 3.8" % sys.executable)

import driver
import leases
import machine
import rows
import sharing
import table

HERE = pathlib.Path(__file__).resolve().parent
ABOUT_S = 30  # for the driver to start and to show its GPUs
LEAST_S = 5  # with less time left, no check is begun
ENDING_S = 2.0  # for what a check has left to end

Check = collections.namedtuple("Check", "seconds rows function subject", defaults=[machine.Machine])
CHECKS = {
    "start": Check(30, ["wake", "cgroup", "module", "reload", "lost"], rows.start),
    "symbols": Check(15, ["symbols"], rows.symbols),
    "memory": Check(15, ["memory"], rows.memory),
    "integrated": Check(20, ["integrated"], rows.integrated),
    "order": Check(20, ["uuids", "order"], rows.order),
    "processes": Check(35, ["pids", "entries"], rows.processes),
    "draining": Check(35, ["draining"], rows.draining),
    "handover": Check(35, ["handover"], leases.handover),
    "lease": Check(40, ["lease"], leases.lease),
    "receipt": Check(50, ["receipt"], leases.receipt),
    "trial": Check(45, ["trial"], leases.trial),
    "shares": Check(40, ["shares"], sharing.shares),
    "mps": Check(50, ["mps"], sharing.mps),
    "counters": Check(15, ["accounting", "energy"], rows.counters),
    "health": Check(15, ["health"], rows.health),
    "kernel": Check(15, ["xid"], rows.kernel),
    "mig": Check(15, ["mig"], rows.mig),
    "smi": Check(20, ["smi"], rows.smi),
    "topology": Check(30, ["nvlink", "nvswitch"], leases.topology),
    "times": Check(40, ["times"], leases.times),
    # The last one: it is told which others hung.
    "hang": Check(30, ["hang"], leases.hang, machine.Program),
}
LONGEST_S = 470  # the whole run: a check that has no time left is not begun
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


# In the process of one check ----------------------------------------------------------------------


def about():
    """What this machine is, as JSON on standard output."""
    try:
        here = machine.Machine([])
    except (OSError, driver.Failed) as error:
        sys.exit("%s; %s" % (error, words_of_smi()))
    if not here.handles and not here.refused:
        sys.exit("the driver shows no GPU")
    names = [here.nvml.name(handle) for handle in here.handles.values()]
    names += ["GPU that answers %d" % code for code, those in here.refused.items() for _ in those]
    print(json.dumps({"driver": here.nvml.driver, "gpus": names}))


def words_of_smi():
    try:
        done = machine.Program([]).run("nvidia-smi")
    except OSError:
        return "there is no nvidia-smi"
    said = machine.last_line(done.stderr) or machine.last_line(done.stdout)
    return "nvidia-smi ends with %d: %s" % (done.returncode, said)


def run_check(name, cut):
    """Prints a row a line as JSON. What ends the check early is the outcome of the rows that it has not reached."""
    left = list(CHECKS[name].rows)

    def say(row, outcome, came):
        left.remove(row)
        print(json.dumps([row, outcome, came]), flush=True)

    try:
        for row in CHECKS[name].function(CHECKS[name].subject(cut)):
            say(*row)
        outcome, why = rows.OTHERWISE, "the check says nothing of it"
    except machine.NotShown as error:
        outcome, why = rows.NOT_SHOWN, str(error)
    except driver.Failed as error:
        outcome, why = (rows.NOT_SHOWN if error.shows_nothing else rows.OTHERWISE), str(error)
    except FileNotFoundError as error:
        outcome, why = rows.NOT_SHOWN, "there is no " + str(error.filename)
    except Exception as error:  # it is one result among others, and not the end of the run
        outcome, why = rows.OTHERWISE, "%s: %s" % (type(error).__name__, error)
    for row in left[:]:
        say(row, outcome, why)


def hold(mib):
    """A context with memory, until standard input ends."""
    try:
        cuda = driver.Cuda()
        uuids = [device.uuid for device in cuda.devices()]
        cuda.use(0, mib << 20)
    except (OSError, driver.Failed) as error:
        sys.exit(str(error))
    mask = os.environ.get("CUDA_VISIBLE_DEVICES")
    print(json.dumps({"pid": os.getpid(), "uuids": uuids, "mask": mask}), flush=True)
    sys.stdin.read()


# In the process that runs them --------------------------------------------------------------------


def descendants():
    """All processes below this one; as their reaper it also has those whose parent is gone."""
    children = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):  # it has ended
            after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(after_name[1]), []).append(int(entry.name))
    found, ahead = [], [os.getpid()]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def end_all():
    """Ends what a check has left. Returns those that no signal ends: the driver has them."""
    deadline = time.monotonic() + ENDING_S
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        left = descendants()
        if not left or time.monotonic() > deadline:
            return left
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def cleared_environment(folder):
    """Nothing of Berth's own settings, and all that is written lies in one folder that is removed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BERTH_", "XDG_"))}
    of_the_machine = ("BERTH_SIM", "BERTH_SIM_ROOT", "BERTH_DRIVER_DEADLINE_MS")
    kept.update({name: os.environ[name] for name in of_the_machine if name in os.environ})
    (folder / "site.toml").touch()
    (folder / "home").mkdir()
    places = {
        "BERTH_DIR": folder / "leases",
        "BERTH_SITE_FILE": folder / "site.toml",
        "HOME": folder / "home",
    }
    # CUDA keeps what it has compiled in a folder of the user's home.
    return {**kept, "LC_ALL": "C", **{name: os.fspath(path) for name, path in places.items()}}


class Part:
    """A part of the run in a process of its own, with an end. What it has printed lies in a file: no pipe keeps us waiting."""

    def __init__(self, folder, environment, words, seconds):
        self.seconds = seconds
        with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
            process = subprocess.Popen(
                [sys.executable, "-B", os.fspath(HERE / "check.py"), *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment,
                cwd=os.fspath(folder),
                start_new_session=True,
            )
            try:
                self.status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.status = None
            self.kept_by_driver = end_all()
        self.out = (folder / "out").read_text(errors="replace")
        self.last_word = machine.last_line((folder / "err").read_text(errors="replace"))

    @property
    def rows(self):
        """Those whose line is whole."""
        found = []
        for line in self.out.splitlines():
            with contextlib.suppress(ValueError):
                found.append(tuple(json.loads(line)))
        return found

    @property
    def how_it_ended(self):
        if self.status is None:
            kept = "; process %d hangs in the driver" % self.kept_by_driver[0] if self.kept_by_driver else ""
            return "the check did not return within %d s%s" % (self.seconds, kept)
        if self.status < 0:
            return "the check ended by signal %d" % -self.status
        return "the check ended with status %d: %s" % (self.status, self.last_word)


class Results:
    """The file is written anew after each row: what was seen is kept, however the run ends."""

    def __init__(self, path, facts):
        self.path = pathlib.Path(path)
        self.facts = {**facts, "complete": False, "rows": []}
        self.write()

    def write(self):
        fresh = self.path.with_name(self.path.name + ".new")
        try:
            fresh.write_text(json.dumps(self.facts, indent=2) + "\n")
            os.replace(fresh, self.path)
        finally:
            with contextlib.suppress(OSError):
                fresh.unlink()

    def add(self, row, outcome, came):
        self.facts["rows"].append({"row": row, "outcome": outcome, "came": came})
        self.write()
        print("%-10s %-11s %s" % (outcome, row, came), flush=True)

    def complete(self):
        """What was seen is also told as a table to paste."""
        self.facts["complete"] = True
        self.write()
        print(
            "\n"
            + table.HEAD
            + "".join(table.line(*key, text) for key, text in table.shown(self.facts).items())
        )
        print("written: %s" % self.path)


class Run:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.environment = cleared_environment(folder)
        self.deadline = time.monotonic() + LONGEST_S

    def left(self):
        """The seconds that this run still has. If its user gives a bound, each check may take that long."""
        return None if self.options.bound else self.deadline - time.monotonic() - 2 * ENDING_S

    def part(self, words, seconds):
        return Part(self.folder, self.environment, words, self.options.bound or min(seconds, self.left()))

    def program(self):
        """What was packed, as it says itself."""
        try:
            pipe = subprocess.PIPE
            done = subprocess.run(
                [HERE / "berth", "--version"], stdout=pipe, stderr=pipe, env=self.environment
            )
        except OSError as error:
            return "berth, which does not run here (%s)" % error.strerror
        said = machine.last_line(done.stdout) or machine.last_line(done.stderr)
        return said if done.returncode == 0 else "berth, which does not run here (%s)" % said

    def facts(self, driver_version, gpus):
        packed = HERE / "PACKED"
        return {
            "kind": "berth-hardware",
            "version": 1,
            "taken_at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "simulated": "BERTH_SIM" in os.environ,
            "driver": driver_version,
            "gpus": gpus,
            "program": self.program(),
            "packed": packed.read_text().strip() if packed.exists() else None,
            "python": platform.python_version(),
            "kernel": platform.release(),
            "glibc": " ".join(platform.libc_ver()),
        }

    def check(self, name, cut, results):
        check = CHECKS[name]
        if not self.options.bound and self.left() < LEAST_S:
            for row in check.rows:
                results.add(row, rows.NOT_SHOWN, "the time of the run was over: --only %s" % name)
            return True
        part = self.part(["--check", name, "--cut", ",".join(cut)], check.seconds)
        for row in part.rows:
            results.add(*row)
        for row in check.rows[len(part.rows) :]:
            results.add(row, rows.OTHERWISE, part.how_it_ended)
        return part.status is not None

    def checks(self, hangs_at_start, results):
        cut = ["the start of the driver"] if hangs_at_start else []
        for name in self.options.only:
            if hangs_at_start and name != "hang":
                for row in CHECKS[name].rows:
                    results.add(row, rows.NOT_SHOWN, "the driver does not start")
            elif not self.check(name, cut, results):
                cut.append(name)

    def whole(self):
        count = sum(len(CHECKS[name].rows) for name in self.options.only)
        print("%d rows in about a minute, in %d s at most" % (count, LONGEST_S), flush=True)
        about = self.part(["--about"], ABOUT_S)
        if about.status not in (0, None):
            said = "there is no NVIDIA driver here that answers: " + about.last_word
            print(said, file=sys.stderr)
            return leases.NO_DRIVER
        told = json.loads(about.out) if about.status == 0 else {"driver": None, "gpus": []}
        facts = self.facts(told["driver"], told["gpus"])
        results = Results(self.options.json, facts)
        print(
            table.where(facts) if facts["driver"] else "the driver does not start within %d s" % about.seconds
        )
        print(
            "%s (%s), Python %s" % (facts["program"], facts["packed"] or "not packed", facts["python"]),
            flush=True,
        )
        self.checks(about.status is None, results)
        results.complete()
        return 0


def names_of_checks(text):
    names = text.split(",")
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        raise argparse.ArgumentTypeError("no check %s; there are %s" % (unknown[0], ", ".join(CHECKS)))
    return names


def seconds(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def file_to_write(text):
    path = pathlib.Path(text).absolute()
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise argparse.ArgumentTypeError("%s cannot be written" % path)
    return path


def read_options():
    options = argparse.ArgumentParser(
        prog="berth-hardware", description=__doc__.split("\n")[0], allow_abbrev=False
    )
    options.add_argument(
        "--json",
        type=file_to_write,
        metavar="FILE",
        help="where the results go (hardware.json)",
        default="hardware.json",
    )
    options.add_argument(
        "--only",
        type=names_of_checks,
        metavar="LIST",
        help="these checks: " + ", ".join(CHECKS),
        default=list(CHECKS),
    )
    options.add_argument(
        "--bound", type=seconds, metavar="S", help="each check may take S seconds, instead of its own bound"
    )
    # What a run says to its own parts.
    options.add_argument("--about", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--check", help=argparse.SUPPRESS)
    options.add_argument("--cut", default="", help=argparse.SUPPRESS)
    options.add_argument("--hold", type=int, help=argparse.SUPPRESS)
    return options.parse_args()


def run_whole(options):
    def end(number, _):
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    sys.stdout.reconfigure(errors="replace")  # a terminal need not know all letters
    folder = None
    try:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="berth-hardware-"))
        return Run(options, folder).whole()
    except OSError as error:
        print("the checks end here: %s" % error, file=sys.stderr)
        return 1
    finally:
        end_all()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def run_part(options):
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if options.hold is not None:
        hold(options.hold)
    elif options.about:
        about()
    else:
        run_check(options.check, [word for word in options.cut.split(",") if word])


def main():
    options = read_options()
    if options.about or options.check or options.hold is not None:
        return run_part(options)
    return run_whole(options)


if __name__ == "__main__":
    sys.exit(main())
