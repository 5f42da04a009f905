#!/usr/bin/env python3
"""Coding agents, as a replay: each thinks, has a command run by `berth mcp`, and thinks again. By the official client
of the Model Context Protocol, which the Python that runs this must have.

sessions.py BERTH SESSIONS ROUNDS THINK_S COMPUTE_S    says how many seconds it took them all
"""

import asyncio
import os
import sys
import time

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def session(berth: str, rounds: int, think_s: float, compute_s: float) -> None:
    server = StdioServerParameters(command=berth, args=["mcp"], env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        for _ in range(rounds):
            await asyncio.sleep(think_s)
            answer = await client.call_tool("run", {"command": f"sleep {compute_s}"})
            if answer.is_error or "is done" not in answer.content[0].text:
                raise RuntimeError(answer.content[0].text)


async def main(berth: str, sessions: str, rounds: str, think_s: str, compute_s: str) -> None:
    begin = time.monotonic()
    each = (session(berth, int(rounds), float(think_s), float(compute_s)) for _ in range(int(sessions)))
    await asyncio.gather(*each)
    print(time.monotonic() - begin)


asyncio.run(main(*sys.argv[1:]))
