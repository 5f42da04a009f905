"""The file of nvgpu's master as the one that a hub of Berth reads, without executing it.

python -m nvgpu.agents nvgpu_master.cfg > agents.toml
berth serve --hub --agents agents.toml
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

_TOKEN = """\
# TOKEN is not copied. Write it into a file that other users cannot read, and name that file:
# token-file = "/etc/berth-serve.token"
"""
_PLAIN = "# insecure = true    # asks over plain HTTP without a token: anybody on the network could answer\n"


def settings(path: str) -> dict:
    """What the file assigns to AGENTS and TOKEN. ValueError, with the line, for what is no literal."""
    found = {"AGENTS": ["self"], "TOKEN": None}
    for statement in ast.parse(Path(path).read_bytes(), path).body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # a text that stands alone is a comment
        names = statement.targets if isinstance(statement, ast.Assign) else [None]
        if not all(isinstance(name, ast.Name) for name in names):
            raise ValueError(
                f"{path}:{statement.lineno}: only NAME = VALUE is read here, and nothing executed"
            )
        for name in names:
            if name.id not in found:
                continue
            try:
                found[name.id] = ast.literal_eval(statement.value)
            except ValueError:
                raise ValueError(f"{path}:{statement.lineno}: {name.id} must be a literal") from None
    agents = found["AGENTS"]
    if not isinstance(agents, (list, tuple)) or not all(isinstance(each, str) for each in agents):
        raise ValueError(f"{path}: AGENTS must be a list of texts: ['self', 'http://node02:1080']")
    return found


def hub_file(path: str) -> str:
    """The same agents in the TOML of `berth serve --hub --agents`."""
    found = settings(path)
    text = _TOKEN if found["TOKEN"] else ""
    for url in found["AGENTS"]:
        text += f"[[agent]]\nurl = {json.dumps(url)}\n"  # a text of JSON is one of TOML
        if url.startswith("http:") and not found["TOKEN"]:
            text += _PLAIN
    return text


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m nvgpu.agents FILE > agents.toml", file=sys.stderr)
        return 2
    try:
        print(hub_file(sys.argv[1]), end="")
    except (OSError, ValueError, SyntaxError) as error:
        print(f"nvgpu.agents: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
