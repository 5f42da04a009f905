"""What requests and their commands leave behind in the chaos of a lab, and which faults that shows.

None of it is from the store, or from what Berth says that it has done, but for why a request of which something was
killed has failed."""

import collections
import dataclasses
import pathlib
import subprocess

from chaos.overlaps import place_of
from simulated_machine import BUILD

# Of a request that came when the agent of its desk was not there.
TURNED_AWAY = "asking the agent at "
NOWHERE = "the command starts on none of the hosts"
# NAME FILE PROGRAM PLACE LOG LIFE_MS FORM
SCRIPT = (
    'echo "start $1 $CHAOS_HOST $$" >>"$2"; "$3" "$4.$CHAOS_HOST" 1 "$5" 1 "$6" "$7" && echo "end $1" >>"$2"'
)


@dataclasses.dataclass
class Request:
    name: str
    process: subprocess.Popen
    errors: pathlib.Path
    hosts: tuple
    desk: str = ""
    killed: set = dataclasses.field(default_factory=set)  # what of it
    cut_off: set = dataclasses.field(default_factory=set)  # hosts, by a kill of its ssh or its envoy
    was_stopped_for_long: bool = False
    status: int | None = None

    def said(self) -> str:
        return self.errors.read_text(errors="replace") if self.errors.exists() else ""

    def was_turned_away(self) -> bool:
        return self.status == 1 and TURNED_AWAY in self.said()

    def may_fail(self) -> bool:
        """By what was done to it alone, whatever has become of agents and of the store."""
        said = " ".join(self.said().split())
        if self.killed & {"client", "job"} or self.was_turned_away():
            return True
        if self.status is None or self.status < 0:
            return False  # a signal that was not ours, or no end
        # The host that was to start it, or did; or each host on which it could wait.
        lost = [
            f"{host} {how}"
            for host in self.cut_off
            for how in ("was lost ", "had granted the GPUs, and was lost ")
        ]
        if self.cut_off >= set(self.hosts) or any(words in said for words in lost):
            return True
        # A host waits 30 s for its word.
        return self.was_stopped_for_long and " was lost when " in said


def command(name: str, folder: pathlib.Path, life_ms: int, form: str) -> list:
    """What a request runs, on the host that has $CHAOS_HOST."""
    log, job = folder / "log", BUILD / "chaos_job"
    return ["sh", "-c", SCRIPT, "sh", name, folder / "starts", job, place_of(folder), log, life_ms, form]


def lines_of(path: pathlib.Path) -> list:
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def faults_by_jobs(folder: pathlib.Path) -> list:
    """What the commands themselves have seen: two owners of a GPU, and two starts of a request."""
    starts = collections.defaultdict(list)
    for what, name, *where in lines_of(folder / "starts"):
        if what == "start":
            starts[name].append(where)
    doubles = [f"double start: {name} on {where}" for name, where in starts.items() if len(where) > 1]
    found = [words for words in lines_of(folder / "log") if words[:1] == ["OVERLAP"]]
    return doubles + [f"overlap of names: {' '.join(words)}" for words in found]


def faults_of_requests(folder: pathlib.Path, requests: list) -> list:
    """Those that nobody has killed must have started, and their commands must have come to their end."""
    lines = lines_of(folder / "starts")
    started = {name for what, name, *_ in lines if what == "start"}
    ended = {name for what, name, *_ in lines if what == "end"}
    found = []
    for each in requests:
        told = f"{each.name} ended with {each.status}; killed of it: {sorted(each.killed | each.cut_off) or 'nothing'}"
        told += f" (hosts {','.join(each.hosts)}); it said: {' '.join(each.said().split())[-600:]}"
        if each.name in started and (NOWHERE in each.said() or each.was_turned_away()):
            found.append(f"started though it was told that it does not: {told}")
        elif each.name in started - ended and not each.may_fail():
            found.append(f"touched: the command of {told}")
        elif (each.status != 0 or each.name not in started) and not each.may_fail():
            found.append(f"lost: {told}")
        elif each.status == 0 and each.name not in started:
            found.append(f"success without a start: {told}")
    return found
