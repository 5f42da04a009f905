"""A short run of the chaos of a lab; ./dev chaos --lab makes a long one. And its detectors, on made-up faults."""

import os
import pathlib
import random
import subprocess
import types

import pytest
from chaos.lab_chaos import LabChaos, run_lab_chaos
from chaos.lab_evidence import Request, command, faults_by_jobs, faults_of_requests
from chaos.overlaps import live_lease, place_of
from etcd import ETCD
from fleet_of_hosts import SSHD, words_of
from jobs import DEADLINE_S, eventually

pytestmark = [
    pytest.mark.store,
    # A sanitized program starts too slowly for much to happen in a short run.
    pytest.mark.release_only,
    pytest.mark.skipif(ETCD is None or SSHD is None, reason="needs etcd-server and openssh-server"),
]


@pytest.mark.parametrize("members", [1, 3])
def test_whatever_is_killed_or_stopped_each_request_starts_once_and_none_is_lost(tmp_path, members):
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}: ./dev chaos --lab --seed {seed} --members {members} --round 6 --minutes 0")
    # What an agent that is killed leaves in the store goes 30 s later.
    chaos = run_lab_chaos(tmp_path, seed, members, 6, spared=("kill_an_agent",))
    assert chaos.faults == []
    assert chaos.looks > 10
    assert chaos.done["ended with 0"] > 0


@pytest.mark.parametrize(
    "second, faults",
    [
        (("r1", "gpu2", "0"), ["double start"]),
        (("r2", "gpu1", "0"), ["overlap of names"]),
        (("r1", "gpu1", "0"), ["double start", "overlap of names"]),
        (("r2", "gpu1", "1"), []),
        (("r2", "gpu2", "0"), []),
    ],
)
def test_two_starts_of_a_request_and_two_owners_of_a_gpu_are_noticed(tmp_path, second, faults):
    def start(name, host, device, life_ms):
        env = os.environ | {"CHAOS_HOST": host, "CUDA_VISIBLE_DEVICES": device}
        words = [str(word) for word in command(name, tmp_path, life_ms, "plain")]
        return subprocess.Popen(words, env=env, start_new_session=True)

    first = start("r1", "gpu1", "0", 60_000)
    try:
        own_name = f"@{place_of(tmp_path)}.gpu1/0/0\n"
        eventually(lambda: own_name in pathlib.Path("/proc/net/unix").read_text())
        assert start(*second, 1).wait(DEADLINE_S) == 0
        assert [fault.partition(":")[0] for fault in faults_by_jobs(tmp_path)] == faults
    finally:
        os.killpg(first.pid, 9)
        first.wait(DEADLINE_S)


@pytest.mark.parametrize("devices, overlaps", [(["a", "a"], True), (["a", "b"], False)])
def test_two_leases_of_one_gpu_on_a_host_are_noticed(tmp_path, devices, overlaps):
    chaos = LabChaos(tmp_path, 0, 1)
    leases = tmp_path / "leases"
    leases.mkdir()
    chaos.machines.hosts = [
        types.SimpleNamespace(name="gpu1", machine=types.SimpleNamespace(leases=tmp_path))
    ]
    files = [live_lease(leases / str(at), [device]) for at, device in enumerate(devices)]
    chaos.look()
    assert [fault.startswith("overlap of locks on gpu1: a") for fault in chaos.faults] == [True] * overlaps
    for file in files:
        os.close(file)


def test_what_an_envoy_has_forked_and_is_no_command_yet_counts_as_the_command(tmp_path):
    (tmp_path / "__envoy").write_text("(while :; do sleep 1000; done) & echo $!; wait")
    envoy = subprocess.Popen(
        ["sh", "__envoy"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        child = int(envoy.stdout.readline())
        request = Request("r1", types.SimpleNamespace(pid=0), tmp_path, ("gpu1",))
        kinds = [LabChaos.kind_of(pid, words_of(pid), request) for pid in (envoy.pid, child)]
        assert kinds == ["envoy", "job"]
    finally:
        os.killpg(envoy.pid, 9)
        envoy.communicate(timeout=DEADLINE_S)


def test_what_is_left_in_the_end_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("chaos.lab_chaos.PATIENCE_S", 1)
    chaos = LabChaos(tmp_path, 0, 1)
    try:
        chaos.open()
        holder = chaos.machines.hosts[0].machine.start_berth(
            "run", "--", "sh", "-c", "echo ready; exec sleep 1000"
        )
        assert holder.stdout.readline() == "ready\n"
        chaos.etcd.ask("kv/put", key="/berth/1/start/desk0-0123456789abcdef", value="gpu1 1")
        chaos.finish()
    finally:
        chaos.close()
    found = [fault.split(": ")[0] for fault in chaos.faults]
    assert found == ["left over on gpu1", "left over on gpu1", "left over in the store"]


LOST = "gpu1 was lost while the command ran there: the connection ended"
NOWHERE = "the command starts on none of the hosts: gpu1: the connection ended"


@pytest.mark.parametrize(
    "status, lines, of_request, said, fault",
    [
        (0, "start end", {}, "", None),
        (1, "", {}, "", "lost"),
        (0, "", {}, "", "lost"),
        (1, "start end", {}, "", "lost"),
        (1, "start", {}, LOST, "touched"),
        (-9, "", {"killed": {"client"}}, "", None),
        (-9, "start", {"killed": {"job"}}, "", None),
        (0, "", {"killed": {"client"}}, "", "success without a start"),
        (1, "start", {"cut_off": {"gpu1"}}, LOST, None),
        (1, "start", {"cut_off": {"gpu2"}}, LOST, "touched"),
        (1, "", {"cut_off": {"gpu1"}}, NOWHERE, "lost"),
        (1, "", {"cut_off": {"gpu1", "gpu2"}}, NOWHERE, None),
        (-13, "", {"cut_off": {"gpu1", "gpu2"}}, "", "lost"),
        (None, "", {"cut_off": {"gpu1", "gpu2"}}, "", "lost"),
        (1, "start", {"cut_off": {"gpu1", "gpu2"}}, NOWHERE, "started though it was told that it does not"),
        (1, "", {}, "asking the agent at /desk.sock: Connection refused", None),
        (1, "", {"was_stopped_for_long": True}, "gpu1 was lost when the command was to start", None),
        (1, "", {"was_stopped_for_long": True}, NOWHERE, "lost"),
    ],
)
def test_what_nobody_has_killed_and_has_not_run_is_noticed(tmp_path, status, lines, of_request, said, fault):
    errors = tmp_path / "errors"
    errors.write_text(said)
    (tmp_path / "starts").write_text("".join(f"{line} r1 gpu1 1\n" for line in lines.split()))
    request = Request("r1", None, errors, ("gpu1", "gpu2"), status=status, **of_request)
    found = [each.partition(":")[0] for each in faults_of_requests(tmp_path, [request])]
    assert found == ([fault] if fault else [])
