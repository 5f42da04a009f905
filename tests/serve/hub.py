"""A running `berth serve --hub`, as its clients see it."""

import pathlib

from agent import Agent
from jobs import eventually
from simulated_machine import Machine


class Hub(Agent):
    """Asks each second, and waits a second for an answer."""

    SOCKET = "hub.sock"

    def __init__(self, machine: Machine, *agents, options=(), **more):
        words = [word for each in agents for word in ("--agent", each)]
        super().__init__(machine, "--hub", "--every", "1", "--agent-wait", "1", *words, *options, **more)

    def hosts(self) -> dict[str, dict]:
        return {host["name"]: host for host in self.json("/api/v1/hosts")["hosts"]}

    def row(self, name: str) -> dict:
        return self.hosts()[name]

    def error(self, name: str, is_late: bool = False) -> str:
        """What is told of a host that is down. That an answer was late may be the fault of this machine: unless it is
        to be late, the next one tells."""

        def told() -> str | None:
            said = (self.hosts().get(name) or {}).get("error")
            is_told = said != NOT_YET and (is_late or not (said or "").startswith("no answer within"))
            return said if is_told else None

        return eventually(told)

    def sees(self, name: str) -> dict:
        """The host as soon as it is up. What was only just read from a file is not told yet."""
        return eventually(lambda: (host := self.hosts().get(name)) and host["state"] == "up" and host)


NOT_YET = "it has not been asked yet"


def agents_file(path: pathlib.Path, *agents: dict) -> pathlib.Path:
    """A TOML file with these agents."""

    def written(value) -> str:
        return str(value).lower() if isinstance(value, bool) else f'"{value}"'

    path.write_text(
        "".join(
            "[[agent]]\n" + "".join(f"{key} = {written(value)}\n" for key, value in agent.items())
            for agent in agents
        )
    )
    return path
