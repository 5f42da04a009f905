"""What a user may have of the whole lab: `lab_gpus` of the site file, kept by the agents of the line."""

import contextlib
import json
import os

import pytest
from desks import busy, place_of
from fleet_of_hosts import PATIENCE_S
from jobs import eventually
from simulated_machine import DEADLINE_S
from store_test import done, joined, lab, note, order  # noqa: F401

__all__ = ["lab"]

pytestmark = pytest.mark.store

USER = 4242
FULL = "your limit in the lab is 1 GPU at the same time (limits.lab_gpus in the site file), and you have 1"


def limit(lab, gpus):  # noqa: F811
    """The site file of the desks, whose agents start anew with it."""
    (lab.hosts[0].machine.directory / "site.toml").write_text(f"[limits]\nlab_gpus = {gpus}\n")
    for desk in lab.desks:
        desk.agent.terminate()
        desk.agent.wait(timeout=DEADLINE_S)
        desk.start_agent()


@contextlib.contextmanager
def one_more_of(lab, uid):  # noqa: F811
    """A start of this user's, from a desk that is none of these."""
    key = f"/berth/1/start/desk9-{'9' * 32}"
    value = json.dumps({"host": "gpu9", "pid": 1, "uid": uid, "gpus": 1})
    lab.etcd.ask("kv/put", key=key, value=value)
    yield
    lab.etcd.ask("kv/deleterange", key=key)


def heard(says, words):
    for line in says:
        if line == words + "\n":
            return
    raise AssertionError(f"the agent has not said: {words}")


def test_who_has_what_he_may_have_waits_beside_free_gpus_and_is_told_why(lab):  # noqa: F811
    limit(lab, 1)
    first, second = lab.desks
    runs = first.start("--", "sh", "-c", f"echo first >> {lab.folder}/order; exec sleep 1000")
    eventually(lambda: order(lab) == ["first"])
    answer = lab.anywhere("--no-wait", "--", "true", env=second.env())
    assert answer.returncode == 75
    assert FULL in answer.stderr
    never = lab.anywhere("-n", "2", "--", "true", env=second.env())
    assert never.returncode == 1
    assert "(limits.lab_gpus in the site file), and you ask for 2" in never.stderr
    waits = second.waits(*note(lab, "second"))
    # Those of the requests that were refused take a moment to end.
    eventually(
        lambda: all(
            host.envoys() == [] or host.machine.berth("list", "--json").json["leases"] for host in lab.hosts
        )
    )
    runs.terminate()
    out, err = waits.communicate(timeout=PATIENCE_S)
    assert waits.returncode == 0, err
    assert f"this request waits, because {FULL}" in err
    assert order(lab) == ["first", "second"]


def test_one_that_stands_on_a_host_lets_it_go_while_its_user_may_start_nothing(lab):  # noqa: F811
    limit(lab, 1)
    holder = busy(lab.hosts[0])
    waits = lab.desks[0].waits(*note(lab, "waits"), hosts="gpu1")
    eventually(lambda: joined(lab) == [1])
    with one_more_of(lab, os.geteuid()):
        eventually(lambda: joined(lab) == [0] and lab.hosts[0].envoys() == [])
        holder.terminate()
        holder.wait(timeout=DEADLINE_S)
        eventually(lambda: lab.hosts[0].tickets() == [])
        # The GPU is another's meanwhile, and not held for it.
        assert lab.hosts[0].machine.berth("run", "--no-wait", "--", "true").status == 0
        assert order(lab) == []
    done(waits)
    assert order(lab) == ["waits"]
    eventually(lambda: lab.etcd.keys("ticket") == {} == lab.etcd.keys("start"))


@pytest.mark.release_only  # a sanitizer would have to be preloaded first
def test_a_name_service_that_never_answers_keeps_nobody_else_waiting(lab, build):  # noqa: F811
    """Nobody knows whose limits apply: this user's requests wait, and the others' start."""
    if os.geteuid() != 0:
        pytest.skip("needs root: acts as other users")
    env = lab.hosts[0].machine.env
    env["LD_PRELOAD"] = f"{build / 'slow_names.so'} {env.get('LD_PRELOAD', '')}".strip()
    env["SLOW_UID"] = str(USER)
    limit(lab, 1)
    stuck, says = place_of(lab.desks[0], "ab" * 16, uid=USER)
    other = place_of(lab.desks[0], "cd" * 16)
    heard(other[1], "open gpu1")
    heard(says, "limit the name service of this machine has not said yet which limits apply to you")
    assert len(lab.etcd.keys("ticket")) == 1
    # It ends all the same.
    lab.desks[0].agent.terminate()
    assert lab.desks[0].agent.wait(timeout=DEADLINE_S) == 0
    for each in (stuck, says, *other):
        each.close()
