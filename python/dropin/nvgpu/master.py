"""The reports of many machines. All are asked at once: one that is slow delays nobody."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import netrc
import os
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import berth

from nvgpu.agent import machine_status
from nvgpu.list_gpus import device_table, format_table

TIMEOUT_S = 5
_AT_ONCE = 64
# Of a machine with some hundred devices, each with long commands.
_MOST_BYTES = 4 << 20


def _own_report() -> dict:
    try:
        return machine_status()
    except berth.Error as error:
        return {"error": str(error)}


class _Cut:
    """A connection whose every step has its timeout is still without end for who sends a byte now and then: here
    all of them together have one."""

    def connect(self):
        super().connect()
        end = threading.Timer(TIMEOUT_S, _cut, [self.sock])
        end.daemon = True
        end.start()


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


class _Connection(_Cut, http.client.HTTPConnection):
    pass


class _SecureConnection(_Cut, http.client.HTTPSConnection):
    pass


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, request):
        return self.do_open(_Connection, request)


class _SecureHandler(urllib.request.HTTPSHandler):
    def https_open(self, request):
        return self.do_open(_SecureConnection, request)


def _with_login(url: str) -> tuple[str, str]:
    """The URL without "user:password@", and what the header Authorization says for these, or for what ~/.netrc ($NETRC)
    has for the host; "" for nothing."""
    parts = urllib.parse.urlsplit(url)
    user, password = parts.username, parts.password or ""
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    if user is None:
        with contextlib.suppress(OSError, netrc.NetrcParseError):
            found = netrc.netrc(os.environ.get("NETRC")).authenticators(parts.hostname or "")
            if found is not None:
                user, password = found[0], found[2] or ""
    if not user:
        return bare, ""
    pair = f"{urllib.parse.unquote(user)}:{urllib.parse.unquote(password)}"
    return bare, "Basic " + base64.b64encode(pair.encode()).decode()


def _fetched(url: str, token) -> dict:
    bare, login = _with_login(url)
    request = urllib.request.Request(bare)
    if token or login:
        request.add_header("Authorization", f"Bearer {token}" if token else login)
    # With the proxies that the environment names, as the original has it; no_proxy names who needs
    # none.
    opener = urllib.request.build_opener(_Handler, _SecureHandler)
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        text = answer.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise ValueError("too long")
    return json.loads(text)


def _what_failed(error: Exception, begun: float) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"Bad response ({error.code})"
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError) or time.monotonic() - begun >= TIMEOUT_S:
        return "Connection timeout"
    if isinstance(error, http.client.HTTPException):
        return "Bad response (not HTTP)"
    return "Host not available" if isinstance(error, OSError) else "Bad response (not JSON)"


def download_report(host: str, token=None) -> dict:
    """What the agent at this URL tells, or {"error": text}."""
    begun = time.monotonic()
    try:
        report = _fetched(host.rstrip("/") + "/gpu_status", token)
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        return {"error": _what_failed(error, begun)}
    return report if _is_report(report) else {"error": "Bad response (not a report)"}


_KEYS = {
    "type",
    "is_available",
    "pids",
    "users",
    "running_since",
    "utilization",
    "clock_mhz",
    "temperature",
    "cmd",
}


def _is_report(report) -> bool:
    if not isinstance(report, dict) or not isinstance(report.get("gpus"), list):
        return False
    return all(_is_row(row) for row in report["gpus"])


def _is_row(row) -> bool:
    """Older agents tell no memory."""
    return (
        isinstance(row, dict)
        and row.keys() >= _KEYS
        and isinstance(row["users"], str)
        and isinstance(row.get("memory"), (dict, type(None)))
    )


def gather_reports(hosts: list[str], token=None) -> list[dict]:
    """One report a host, in their order; 'self' is this machine, without HTTP."""
    if not hosts:
        return []
    with ThreadPoolExecutor(min(len(hosts), _AT_ONCE)) as pool:
        return list(
            pool.map(lambda host: _own_report() if host == "self" else download_report(host, token), hosts)
        )


def title(host: str, report: dict) -> str:
    return f"{host} ({report['hostname']})" if "hostname" in report else host


def format_reports_to_ansi(hosts: list[str], reports: list[dict]) -> str:
    """All reports as text, each under the name of its host."""
    parts = []
    for host, report in zip(hosts, reports):
        body = report["error"] if "error" in report else format_table(device_table(report["gpus"]))
        parts.append(f"{title(host, report)}\n{body}")
    return "\n\n".join(parts)
