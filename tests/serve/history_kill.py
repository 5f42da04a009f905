"""An agent that is killed again and again while it writes its history: what it has answered must still be there, and
the file must be whole. As a program: history_kill.py [--minutes N]"""

import argparse
import contextlib
import http.client
import pathlib
import random
import sqlite3
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).parents[1]))

from agent import Agent
from jobs import holder
from simulated_machine import Machine


def counts(file: pathlib.Path) -> dict:
    """What a file says in itself, opened as whoever comes after a crash opens it."""
    with contextlib.closing(sqlite3.connect(file)) as history:
        assert history.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (of_hours,) = history.execute("SELECT total(leased_s) FROM hour").fetchone()
        (of_leases,) = history.execute("SELECT total(leased_s) FROM lease").fetchone()
        (leases,) = history.execute("SELECT count(DISTINCT id) FROM lease").fetchone()
        (samples,) = history.execute("SELECT count(*) FROM sample").fetchone()
        (watched,) = history.execute("SELECT count(*) FROM watched").fetchone()
    return {
        "hours": of_hours,
        "leases_hours": of_leases,
        "leases": leases,
        "samples": samples,
        "watched": watched,
    }


def answered(agent: Agent) -> dict:
    """What it says that it has written."""
    rows = agent.json("/api/v1/usage?by=user")["rows"]
    return {
        "hours": sum(row["leased_gpu_hours"] for row in rows) * 3600,
        "leases": sum(row["leases"] for row in rows),
    }


class Killing:
    """Rounds of one agent after the other on the same file."""

    def __init__(self, machine: Machine, seed: int):
        self.machine, self.random = machine, random.Random(seed)
        self.file = machine.directory / "history.db"
        self.before = {"hours": 0.0, "leases": 0}
        self.rounds = 0
        self.job = None

    def round(self) -> None:
        """Jobs come and go, some outlive an agent, somebody asks, and the agent is killed in the middle of it."""
        if self.job is None:
            self.job = holder(self.machine, "-n", "2")
        agent = Agent(self.machine, "--history", self.file)
        end = time.monotonic() + self.random.uniform(0, 1.3)
        said = self.before
        with contextlib.suppress(OSError, http.client.HTTPException):
            while time.monotonic() < end:
                said = answered(agent)
        agent.process.kill()
        agent.process.wait()
        if self.random.random() < 0.5:
            self.job.ends()
            self.job = None
        found = counts(self.file)
        assert abs(found["hours"] - found["leases_hours"]) < 0.01, found
        # An hour is told to four places.
        assert found["hours"] >= said["hours"] - 1, (said, found)
        assert found["leases"] >= said["leases"], (said, found)
        assert found["hours"] >= self.before["hours"] and found["leases"] >= self.before["leases"]
        self.before = found
        self.rounds += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(pathlib.Path(folder), "8xH100")
        killing = Killing(machine, options.seed)
        end = time.monotonic() + options.minutes * 60
        try:
            while time.monotonic() < end:
                killing.round()
        finally:
            machine.close()
            print(f"{killing.rounds} agents killed; the file has {counts(killing.file)}")


if __name__ == "__main__":
    main()
