"""Row 11, its last part: a hub whose machines change, beside many that have its page open."""

from __future__ import annotations

import dataclasses
import http.client
import multiprocessing
import pathlib
import re
import selectors
import socket
import sys
import time
import zlib

from setting import ROOT

sys.path.append(str(ROOT / "tests/web"))
import fleet

SETTLED_S = 6  # each machine has been asked, and each page has what is there
BETWEEN_S = 0.01
PATIENCE_S = 30
# What is another at each look while a GPU computes, in marks of tests/bench/agents.c.
READINGS = {"utilization_percent": "@S", "temperature_c": "@S", "power_mw": "@S@S@S", "sm_clock_mhz": "1@S0"}


def changing(machine: fleet.Machine) -> str:
    """A machine of eight GPUs as its agent tells of it, with marks where that changes."""
    document = fleet.Fleet([machine.number], is_hub=False).hosts()
    host = document["hosts"][0]
    for time_s in ("seen_s", "snapshot.taken_at_s"):
        part = host["snapshot"] if "." in time_s else host
        part[time_s.rpartition(".")[2]] = f"={fleet.NOW_S // 10000}@S@S"
    for device in host["snapshot"]["devices"]:
        device |= {name: f"={mark}" for name, mark in READINGS.items() if device["processes"]}
    return re.sub(r'"=([^"]*)"', r"\1", fleet.compact(document))


def write_machines(file: pathlib.Path, count: int) -> str:
    file.write_text("".join(changing(fleet.Machine(number)) + "\n" for number in range(count)))
    return str(file)


@dataclasses.dataclass
class Beside:
    """What was seen in the window."""

    bytes_a_second: float  # of one page
    plain_a_second: float
    events_a_second: float
    waits_ms: list[float]  # for /healthz


def open_page(port: int) -> socket.socket:
    page = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    page.sendall(b"GET /api/v1/hosts/changes HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
    return page


def hold_pages(port: int, count: int, until: float, told: multiprocessing.Queue) -> None:
    """Reads what so many pages are sent; tells of the first, which alone is unpacked, the bytes a second."""
    pages = selectors.DefaultSelector()
    opened = [open_page(port) for _ in range(count)]
    for page in opened:
        page.setblocking(False)
        pages.register(page, selectors.EVENT_READ)
    first, head, unpack = opened[0] if opened else None, b"", zlib.decompressobj(31)
    begin, packed, plain, events = time.monotonic() + SETTLED_S, 0, 0, 0
    while (now := time.monotonic()) < until:
        for key, _ in pages.select(until - now):
            text = key.fileobj.recv(1 << 18)
            if key.fileobj is not first:
                continue
            if b"\r\n\r\n" not in head:
                head += text
                text = head.partition(b"\r\n\r\n")[2]
            shown = unpack.decompress(text)
            if now >= begin:
                packed, plain = packed + len(text), plain + len(shown)
                events += shown.count(b"event: change\n") + shown.count(b"event: host\n")
    seconds = until - begin
    told.put((packed / seconds, plain / seconds, events / seconds))


def ask_health(port: int, begin: float, until: float, told: multiprocessing.Queue) -> None:
    """Milliseconds that each of many questions took, one after another over one connection."""
    waits = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    while (asked := time.monotonic()) < until:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        if asked >= begin:
            waits.append((time.monotonic() - asked) * 1000)
        time.sleep(BETWEEN_S)
    told.put(waits)


def beside(port: int, pages: int, seconds: float) -> Beside:
    begin = time.monotonic() + SETTLED_S
    until = begin + seconds
    of_pages, of_health = multiprocessing.Queue(), multiprocessing.Queue()
    others = [
        multiprocessing.Process(target=hold_pages, args=(port, pages, until, of_pages)),
        multiprocessing.Process(target=ask_health, args=(port, begin, until, of_health)),
    ]
    for each in others:
        each.start()
    seen = Beside(*of_pages.get(), of_health.get())
    for each in others:
        each.join()
    return seen


def most_resident_mib(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)[1]) / 1024


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
