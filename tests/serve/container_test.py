"""What the agent sees and says where a container begins, and the recipe that ships."""

import os
import pathlib
import re
import subprocess

import pytest
import yaml
from agent import Agent
from jobs import eventually, holder
from simulated_machine import PRIVATE_PIDS

DEPLOY = pathlib.Path(__file__).parents[2] / "packaging/deploy"


@pytest.fixture(scope="module")
def namespaces():
    """Words that give a command the right to make namespaces of its own."""
    words = () if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user")
    tried = subprocess.run([*words, *PRIVATE_PIDS, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip("needs namespaces: " + tried.stderr)
    return words


def said(agent: Agent, words: str) -> bool:
    """At its start, and to its clients."""
    heard = any(words in line for line in agent.warnings)
    assert heard == any(words in line for line in agent.json("/api/v1/health")["warnings"])
    return heard


def test_who_sees_all_says_nothing_of_pids(agent):
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":
        pytest.skip("needs to run outside of containers")
    assert not said(agent, "process numbers here")


def test_hidden_pids_are_said_and_leases_are_seen_all_the_same(namespaces, machine):
    job = holder(machine)
    agent = Agent(machine, within=(*namespaces, *PRIVATE_PIDS))
    assert said(agent, "this container numbers its processes itself")
    assert said(agent, "start it with --pid=host")
    (lease,) = agent.json("/api/v1/leases")["leases"]
    assert lease["devices"]
    job.ends()
    eventually(lambda: not agent.json("/api/v1/leases")["leases"])


HIDDEN = 'mount -t proc -o hidepid=invisible proc /proc && exec "$@"'


def test_a_proc_that_hides_others_is_said(as_user, open_machine):
    within = ("unshare", "--mount", "sh", "-c", HIDDEN, "sh", *as_user(8420))
    if subprocess.run([*within, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs to mount /proc")
    open_machine.directory.chmod(0o777)
    assert said(Agent(open_machine, within=within), "/proc hides the processes of other users (hidepid)")


def test_a_container_without_the_lease_directory_says_so(machine):
    if pathlib.Path("/run/berth").exists():
        pytest.skip("needs a machine without /run/berth")
    agent = Agent(machine, env={"BERTH_DIR": None, "container": "oci"})
    assert said(agent, "this container has no /run/berth, so no lease of the machine is seen")
    agent.ends()
    assert not said(Agent(machine, env={"container": "oci"}), "this container has no /run/berth")


READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def test_the_lease_directory_need_only_be_readable(namespaces, machine):
    machine.berth("run", "--", "true")
    within = (*namespaces, "unshare", "--mount", "sh", "-c", READ_ONLY, machine.leases)
    agent = Agent(machine, within=within)
    job = holder(machine)
    eventually(lambda: agent.json("/api/v1/leases")["leases"])
    assert agent.json("/api/v1/health")["status"] == "ok"
    devices = agent.json("/api/v1/snapshot")["devices"]
    assert sum(not device["verdict"]["free"] for device in devices) == 1
    job.ends()
    eventually(lambda: not agent.json("/api/v1/leases")["leases"])


def test_no_recipe_makes_a_folder_of_a_file_that_is_not_there():
    words = (DEPLOY.parents[1] / "docs/serve.md").read_text()
    recipe = words[words.index("# docker run") : words.index("`packaging/deploy/compose.yaml`")]
    assert re.findall(r"-v (\S+?):", recipe) == ["berth-state"]
    assert "touch /etc/berth.toml" in words
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for service in services.values():
        for mount in service["volumes"]:
            needs_it = mount["type"] == "bind" and mount["source"] != "/etc/passwd"
            assert mount.get("bind") == ({"create_host_path": False} if needs_it else None)


@pytest.mark.parametrize("service", ["agent", "hub"])
def test_what_the_recipe_starts_takes_its_options(machine, tmp_path, service):
    recipe = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    (secret,) = recipe["secrets"]
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    token.chmod(0o400)
    agents = tmp_path / "agents.toml"
    agents.write_text('[[agent]]\nurl = "self"\n')
    here = {f"/run/secrets/{secret}": token, "/etc/berth-agents.toml": agents}
    options = [here.get(word, word) for word in recipe["services"][service]["command"]]
    at = options.index("--listen")
    listen = options[at + 1].replace(":8420", ":0")
    del options[at : at + 2]
    assert token in options
    assert Agent(machine, *options, listen=listen).get("/api/v1/hosts")[0] == 401
