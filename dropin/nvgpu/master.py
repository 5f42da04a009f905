"""The reports of many machines. All are asked at once: one that is slow delays nobody."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import berth

from nvgpu.agent import machine_status
from nvgpu.list_gpus import device_table, format_table

TIMEOUT_S = 5
_AT_ONCE = 64


def _own_report() -> dict:
    try:
        return machine_status()
    except berth.Error as error:
        return {"error": str(error)}


def _fetched(url: str, token) -> dict:
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    # An agent is a machine of one's own network: a proxy for the outside has no way to it.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=TIMEOUT_S) as answer:
        return json.load(answer)


def download_report(host: str, token=None) -> dict:
    """What the agent at this URL tells, or {"error": text}."""
    try:
        report = _fetched(host.rstrip("/") + "/gpu_status", token)
    except urllib.error.HTTPError as error:
        return {"error": f"Bad response ({error.code})"}
    except urllib.error.URLError as error:
        timed_out = isinstance(error.reason, TimeoutError)
        return {"error": "Connection timeout" if timed_out else "Host not available"}
    except TimeoutError:
        return {"error": "Connection timeout"}
    except OSError:
        return {"error": "Host not available"}
    except ValueError:
        return {"error": "Bad response (not JSON)"}
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
    return all(isinstance(row, dict) and row.keys() >= _KEYS for row in report["gpus"])


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
