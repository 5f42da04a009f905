"""A made-up hub: as many machines of eight GPUs as wanted, the same at each run.

It answers as docs/openapi.yaml has it, so that the page is tested and measured with a hundred machines without a
hundred agents. What it says is tested against the schemas.
"""

import dataclasses
import json
import math
import pathlib
import random

MIB = 1024**2
NOW_S = 1_790_000_000
USERS = ["ada", "bob", "carla", "dmitri", "emre", "fatima", "goran", "hanna", "ivo", "jun", "kofi", "lena"]
COMMANDS = [
    "python train.py --config configs/llama3-8b.yaml",
    "torchrun --nproc-per-node 4 pretrain.py --resume",
    "python -m jupyterlab --no-browser",
    "python eval.py --split test --batch 64",
    "./build/simulate --steps 2e9",
]
NOTES = [None, None, "paper deadline, please ask", None, "sweep 3 of 8"]
MODELS = [
    ("NVIDIA H100 80GB HBM3", 81559, "9.0", 700),
    ("NVIDIA A100-SXM4-80GB", 81920, "8.0", 400),
    ("NVIDIA A100-SXM4-40GB", 40960, "8.0", 400),
    ("NVIDIA L40S", 46068, "8.9", 350),
]
SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "docs/schema/list.json").read_text())
# What this fleet does not make up of a device is not known.
NOT_KNOWN = {
    part: dict.fromkeys(SCHEMA["$defs"][part]["required"]) for part in ("device", "memory", "health")
}


def counted(devices: int) -> str:
    return "1 whole GPU" if devices == 1 else f"{devices} whole GPUs"


def ticket(number: int) -> str:
    return f"{0x17F0_0000_0000_0000 + number * 7919:016x}"


@dataclasses.dataclass
class Machine:
    """One host. `tick` is what changes: the readings, not who has what. `far`: users who wait here and
    on all machines that name them. Each starts on the last of these the soonest."""

    number: int
    down: bool = False
    stale: bool = False
    far: list[str] = dataclasses.field(default_factory=list)
    gpus: int = 8

    @property
    def name(self) -> str:
        return f"node{self.number + 1:03}"

    def host(self, tick: int) -> dict:
        chance = random.Random(self.number)
        snapshot = self._snapshot(chance, tick)
        return {
            "name": self.name,
            "url": f"https://{self.name}.lab:8420",
            "state": "down" if self.down else "up",
            "error": "connecting to node.lab:8420: connection refused" if self.down else None,
            "seen_s": NOW_S - 340 if self.down else NOW_S + tick,
            "snapshot": snapshot,
            "queue": {
                "kind": "berth-queue",
                "version": 1,
                "waiters": self._waiters(chance, snapshot),
                "unlisted": [],
            },
        }

    def _snapshot(self, chance: random.Random, tick: int) -> dict:
        model = MODELS[(self.number // 3) % len(MODELS)]
        leases, devices, index = [], [], 0
        while index < self.gpus:
            kind = chance.choices(["leased", "idle", "free", "outsider"], [70, 10, 15, 5])[0]
            count = min(chance.choice([1, 1, 2, 4]), self.gpus - index) if kind == "leased" else 1
            lease = self._lease(chance, len(leases), [self.uuid(index + i) for i in range(count)])
            if kind in ("leased", "idle"):
                leases.append(lease)
            for _ in range(count):
                devices.append(self._device(chance, model, index, kind, lease, tick))
                index += 1
        return {
            "kind": "berth-list",
            "version": 1,
            "taken_at_s": NOW_S - (340 if self.down or self.stale else -tick),
            "source": "nvml",
            "driver_version": "570.124.06",
            "cuda_version": "12.8",
            "stale_reason": "GPU 3: the driver does not respond since 14:02" if self.stale else None,
            "inside_lease": False,
            "own_lease": None,
            "notes": [],
            "host": self.name,
            "labels": [],
            "devices": devices,
            "leases": leases,
            "waiting": 0,
            "odd_tickets": [],
            "unlisted": [],
        }

    def uuid(self, index: int) -> str:
        return f"GPU-{random.Random(self.number * 64 + index).getrandbits(64):016x}-{self.number:04x}-{index}"

    def _lease(self, chance: random.Random, number: int, devices: list) -> dict:
        return {
            "id": ticket(self.number * 100 + number),
            "phase": "granted",
            "uid": 1000,
            "user": chance.choice(USERS),
            "pid": 12000 + number,
            "kept": False,
            "job_pid": None,
            "slurm_job": None,
            "asked_at": None,
            "since_s": NOW_S - chance.randrange(60, 400_000),
            "time_s": None if number % 2 else 500_000,
            "until_s": None if number % 2 else NOW_S + 7200,
            "yield_s": 30 if number % 3 == 0 else None,
            "ending": False,
            "count": len(devices),
            "shared": False,
            "promise_bytes": None,
            "devices": devices,
            "command": chance.choice(COMMANDS),
            "note": chance.choice(NOTES),
            "job": None,
            "request": counted(len(devices)),
        }

    def _device(
        self, chance: random.Random, model: tuple, index: int, kind: str, lease: dict, tick: int
    ) -> dict:
        name, total_mib, capability, limit_w = model
        base = chance.randrange(55, 100) if kind in ("leased", "outsider") else 0
        busy = max(0, min(100, base + round(8 * math.sin(tick / 3 + index + self.number)))) if base else 0
        used = round(total_mib * (chance.uniform(0.3, 0.95) if kind != "free" else 0.005))
        user = {"leased": lease["user"], "outsider": chance.choice(USERS)}.get(kind)
        process = {
            "pid": 20_000 + index,
            "kind": "compute",
            "used_bytes": (used - 300) * MIB if kind != "free" else None,
            "uid": 1000,
            "user": user,
            "command": chance.choice(COMMANDS),
            "container": None,
            "started_at_s": NOW_S - chance.randrange(60, 90_000),
            "ending": False,
            "lease": lease["id"] if kind == "leased" else None,
            "assumed": False,
        }
        held = [lease["id"]] if kind in ("leased", "idle") else []
        return NOT_KNOWN["device"] | {
            "index": index,
            "label": str(index),
            "uuid": self.uuid(index),
            "name": name,
            "vendor": "nvidia",
            "pci_bus_id": f"0000:{index + 1:02X}:00.0",
            "mig": None,
            "mig_enabled": False,
            "state": "ok",
            "compute_capability": capability,
            "compute_mode": "shared",
            "memory": NOT_KNOWN["memory"]
            | {
                "kind": "dedicated",
                "total_bytes": total_mib * MIB,
                "used_bytes": used * MIB,
                "free_bytes": (total_mib - used) * MIB,
                "reserved_bytes": 600 * MIB,
            },
            "utilization_percent": busy,
            "temperature_c": 30 + busy // 2,
            "power_mw": round((60 + (limit_w - 80) * busy / 100) * 1000),
            "power_limit_mw": limit_w * 1000,
            "sm_clock_mhz": 1410 if busy else 210,
            "health": NOT_KNOWN["health"]
            | {
                "row_remap_failed": False,
                "row_remap_pending": self.number % 40 == 7 and index == 5,
                "ecc_uncorrected": 0,
            },
            "processes": [process] if kind in ("leased", "outsider") else [],
            "passed_over": [],
            "leases": held,
            "idle": (kind == "idle") if held else None,
            "idle_since_s": NOW_S - chance.randrange(600, 40_000) if kind == "idle" else None,
            "verdict": self._verdict(kind, index, lease, process, (total_mib - used) * MIB),
        }

    def _verdict(self, kind: str, index: int, lease: dict, process: dict, free_bytes: int) -> dict:
        if kind == "free":
            return {
                "free": True,
                "clause": None,
                "reason": None,
                "culprits": [],
                "more_culprits": 0,
                "free_bytes": free_bytes,
            }
        is_outsider = kind == "outsider"
        who = process if is_outsider else lease
        words = "used without a lease by" if is_outsider else "leased by"
        culprit = {
            "user": who["user"],
            "pid": who["pid"],
            "command": who["command"],
            "since_s": NOW_S - 5000,
            "lease": None if is_outsider else lease["id"],
            "note": None,
        }
        return {
            "free": False,
            "clause": "no_outsider" if is_outsider else "not_leased",
            "reason": f"{words} {who['user']}, {who['command'].split()[1]}",
            "culprits": [culprit],
            "more_culprits": 0,
            "free_bytes": free_bytes if is_outsider else 0,
        }

    def _waiters(self, chance: random.Random, snapshot: dict) -> list:
        waiters = []
        for position in range(1, chance.choice([2, 3]) if self.number % 9 == 0 else 1):
            count = chance.choice([1, 2, 8])
            waiters.append(
                {
                    **self._waiter(position, count, chance.choice(USERS)),
                    "since_s": NOW_S - chance.randrange(30, 20_000),
                    "command": chance.choice(COMMANDS),
                }
            )
        for user in self.far:
            far = self._waiter(len(waiters) + 1, 1, user)
            starts_at_s = NOW_S + 90_000 - self.number
            waiters.append({**far, "asked_at": f"desk1:{user}", "starts_at_s": starts_at_s})
        snapshot["waiting"] = len(waiters)
        return waiters

    def _waiter(self, position: int, count: int, user: str) -> dict:
        return {
            "position": position,
            "id": ticket(self.number * 100 + 50 + position),
            "uid": 1000,
            "user": user,
            "pid": 30_000 + position,
            "kept": False,
            "job_pid": None,
            "slurm_job": None,
            "asked_at": None,
            "since_s": NOW_S - 60,
            "time_s": None,
            "yield_s": None,
            "count": count,
            "shared": False,
            "promise_bytes": None,
            "command": "python far.py",
            "note": None,
            "job": None,
            "request": f"{counted(count)}, free >= 30G",
            "candidates": ["*"],
            "behind": None if position == 1 else ticket(self.number * 100 + 50 + position - 1),
            "starts_at_s": NOW_S + 7200 if position == 1 else None,
            "stopped": False,
            "held_back": False,
            "reason": f"{max(0, count - 1)} of 8 free; GPU 1 leased ada 2 h"
            if position == 1
            else "behind one earlier rival",
        }


class Fleet:
    """A hub over these machines, or an agent of one, which has looked `tick` times."""

    def __init__(self, machines, is_hub: bool = True):
        self.machines = [Machine(number) for number in machines]
        self.is_hub = is_hub
        self.tick = 0
        self.line: list[str] = []  # `asked_at` of those in the queue of the lab

    def hosts(self) -> dict:
        hosts = [machine.host(self.tick) for machine in self.machines]
        line = self._line() if self.line else {}
        return {"kind": "berth-hosts", "version": 1, **self._overview(hosts), **line, "hosts": hosts}

    def _line(self) -> dict:
        return {"line": [{"asked_at": each, "place": at} for at, each in enumerate(self.line, 1)]}

    def _overview(self, hosts: list) -> dict:
        devices = [(host, each) for host in hosts for each in host["snapshot"]["devices"]]

        def is_free(host: dict, device: dict) -> bool:
            return host["state"] == "up" and device["verdict"]["free"]

        models = {}
        for host, device in devices:
            key = (device["name"], device["memory"]["total_bytes"])
            row = models.setdefault(key, {"devices": 0, "free": 0, "hosts": set()})
            row["devices"] += 1
            if is_free(host, device):
                row["free"] += 1
                row["hosts"].add(host["name"])
        leases = [lease for host in hosts for lease in host["snapshot"]["leases"]]
        # What waits on several hosts counts once.
        waiters = list(
            {
                each["asked_at"] or each["id"]: each for host in hosts for each in host["queue"]["waiters"]
            }.values()
        )
        users = sorted({each["user"] for each in leases + waiters})
        return {
            "number": self.tick + 1,
            "time_s": NOW_S + self.tick,
            "every_s": 5,
            "hub": self.is_hub,
            "summary": {
                "devices": len(devices),
                "free": sum(is_free(host, device) for host, device in devices),
                "models": [
                    {
                        "name": name,
                        "memory_total_bytes": total,
                        "devices": row["devices"],
                        "free": row["free"],
                        "hosts_with_free": len(row["hosts"]),
                    }
                    for (name, total), row in models.items()
                ],
                "users": [
                    {
                        "user": user,
                        "devices": sum(lease["count"] for lease in leases if lease["user"] == user),
                        "leases": sum(lease["user"] == user for lease in leases),
                        "waiting": sum(waiter["user"] == user for waiter in waiters),
                    }
                    for user in users
                ],
            },
        }

    def changes(self, known: dict[str, dict]) -> str:
        """The events for a client that knows so much of the hosts."""
        import jsonpatch  # the benchmarks, which use the rest, do without it

        hosts = [machine.host(self.tick) for machine in self.machines]
        summary = {**self._overview(hosts), "hosts": [host["name"] for host in hosts]}
        number = summary["number"]
        lines = []
        for host in hosts:
            if before := known.get(host["name"]):
                patch = jsonpatch.make_patch(before, host).patch
                lines.append(f"event: change\ndata: {compact({'name': host['name'], 'patch': patch})}\n")
            else:
                lines.append(f"event: host\ndata: {compact(host)}\n")
            known[host["name"]] = host
        lines.append(f"event: line\ndata: {compact(self._line())}\n")
        return "\n".join([*lines, f"event: summary\nid: {number}\ndata: {compact(summary)}\n\n"])

    def match(self, expression: str) -> dict:
        """The model's name alone is understood: name~WORD. The real server has the language."""
        word = expression.removeprefix("name~").lower()
        return {
            "kind": "berth-match",
            "version": 1,
            "devices": [
                {"host": host["name"], "uuid": device["uuid"]}
                for host in self.hosts()["hosts"]
                for device in host["snapshot"]["devices"]
                if word in device["name"].lower()
            ],
        }

    def timeline(self, name: str) -> dict:
        """Six hours each way: what the machine tells now, and a past that is made up."""
        (host,) = [each.host(self.tick) for each in self.machines if each.name == name]
        snapshot, now_s = host["snapshot"], NOW_S + self.tick
        span = {"from_s": now_s - 21_600, "now_s": now_s, "to_s": now_s + 21_600}
        leases = {lease["id"]: lease for lease in snapshot["leases"]}
        waiters = host["queue"]["waiters"]
        rows = [self._row(device, leases, waiters, span) for device in snapshot["devices"]]
        ends = [
            (bar["expected_s"] or bar["until_s"], bar["expected_s"] is not None, row)
            for row in rows
            for bar in row["bars"]
            if bar["kind"] == "lease" and bar["end"] != "over"
        ]
        at_s, expected, row = min(ends, key=lambda end: end[0], default=(None, None, None))
        return {
            "kind": "berth-timeline",
            "version": 1,
            **span,
            "step_s": 300,
            "next": None
            if row is None
            else {"uuid": row["uuid"], "gpu": row["gpu"], "at_s": at_s, "expected": expected},
            "rows": rows,
            "queue": [
                {key: waiter[key] for key in ("id", "user", "position", "count", "starts_at_s")}
                | {"what": waiter["command"], "until_s": None}
                for waiter in waiters
            ],
        }

    def _row(self, device: dict, leases: dict, waiters: list, span: dict) -> dict:
        chance = random.Random(device["uuid"])

        def bar(kind: str, end: str, from_s: int, until_s: int, owner: dict) -> dict:
            return {
                "kind": kind,
                "end": end,
                "from_s": from_s,
                "until_s": until_s,
                "user": owner["user"],
                "what": owner["command"],
                "id": owner.get("id"),
                "whole": True,
                "yields": False,
                "expected_s": None,
                "peak_mib": 31_744 if end == "over" else None,
                "use_percent": 72 if end == "over" else None,
                "energy_mj": 770_400_000 if end == "over" else None,
                "clean": True if end == "over" else None,
            }

        begun_s = span["from_s"] + chance.randrange(0, 6000)
        ended_s = begun_s + chance.randrange(1800, 9000)
        former = {"user": chance.choice(USERS), "command": "", "id": ticket(chance.randrange(10**6))}
        bars = [bar("lease", "over", begun_s, ended_s, former)]
        for lease in (leases[each] for each in device["leases"]):
            until_s = lease["until_s"]
            from_s = max(ended_s + 300, lease["since_s"])
            bars.append(bar("lease", "limit" if until_s else "open", from_s, until_s or span["to_s"], lease))
            if not until_s:
                bars[-1]["expected_s"] = span["now_s"] + 5400
        if device["verdict"]["clause"] == "no_outsider":
            bars.append(bar("outsider", "open", span["now_s"] - 5000, span["to_s"], device["processes"][0]))
        for waiter in waiters:
            if device["uuid"] in waiter.get("starts_on", []):
                bars.append(bar("reservation", "open", waiter["starts_at_s"], span["to_s"], waiter))
        loads = []
        for at_s in range(span["from_s"], span["now_s"], 300):
            held = any(each["from_s"] <= at_s < each["until_s"] for each in bars)
            use = round(72 + 20 * math.sin(at_s / 900 + device["index"]) + chance.randrange(-6, 6))
            loads.append(use if held and not (device["idle"] and at_s > ended_s) else 0)
        return {
            "uuid": device["uuid"],
            "gpu": device["label"],
            "free": device["verdict"]["free"],
            "idle": bool(device["idle"]),
            "idle_since_s": device["idle_since_s"],
            "bars": sorted(bars, key=lambda each: each["from_s"]),
            "loads": loads,
        }

    def history(self, uuid: str, span_s: int) -> dict:
        to_s, step_s = NOW_S + self.tick, max(10, span_s // 300)
        rows = []
        for time_s in range(to_s - span_s, to_s, step_s):
            phase = 2 * math.pi * (time_s % 21_600) / 21_600
            leased = math.sin(phase) > -0.4
            use = round(70 + 25 * math.sin(9 * phase) + 5 * math.sin(41 * phase)) if leased else 0
            rows.append([time_s, use, 52_000 if leased else 400, 32 + use // 2, 70 + 5.5 * use, int(leased)])
        return {
            "kind": "berth-history",
            "version": 1,
            "device": uuid,
            "from_s": to_s - span_s,
            "to_s": to_s,
            "step_s": step_s,
            "columns": [
                "time_s",
                "utilization_percent",
                "memory_used_mib",
                "temperature_c",
                "power_w",
                "leased",
            ],
            "rows": rows,
            "leases": [],
        }

    def usage(self) -> dict:
        return {
            "kind": "berth-usage",
            "version": 1,
            "from_s": NOW_S - 7 * 86400,
            "to_s": NOW_S,
            "by": "user",
            "complete": True,
            "missing": [],
            "unwatched_s": 0,
            "rows": [
                {
                    "user": user,
                    "leases": 4 + i,
                    "leased_gpu_hours": 310.5 - 20 * i,
                    "used_gpu_hours": 250.0 - 19 * i,
                }
                for i, user in enumerate(USERS)
            ],
        }


def compact(document: dict) -> str:
    return json.dumps(document, separators=(",", ":"))
