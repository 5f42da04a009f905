"""The recipes of the pages for containers, run as they are written, by real engines as far as no registry is needed."""

import json
import os
import re
import shlex
import shutil
import urllib.error
import urllib.request

import pytest
from docs_commands_test import blocks
from jobs import eventually
from machine import BASE, ROOT, USER_ID, Machine, NoMachine
from simulated_machine import BUILD

pytestmark = [pytest.mark.containers, pytest.mark.package, pytest.mark.release_only]

PAGE = "docs/tasks/containers.md"
# What would compute. It says what it was given.
PYTHON = """#!/bin/sh
echo "$* uid=$(id -u) gpus=$(env | grep '^GPU' | sort | tr '\\n' ,) lease=${BERTH_LEASE:+set}"
test ! -e /wait || exec sleep 1000
"""


@pytest.fixture(scope="module")
def machine():
    needed = ("dockerd", "podman", "crun", "docker-compose")
    missing = [name for name in needed if shutil.which(name) is None]
    if missing or not BASE.exists() or os.geteuid() != 0:
        pytest.skip("needs root and what `./dev test containers` installs")
    try:
        machine = Machine()
    except NoMachine as why:
        pytest.skip(str(why))
    try:
        machine.furnish()
        machine.start_docker()
        yield machine
    except NoMachine as why:
        pytest.skip(str(why))
    finally:
        machine.close()


@pytest.fixture(scope="module")
def images(machine):
    """`image`, which ends at once, and `waiting`, which does not, for each engine."""
    folder = machine.folder / "image"
    folder.mkdir()
    (folder / "python").write_text(PYTHON)
    (folder / "python").chmod(0o755)
    machine.root("docker", "import", BASE, "debian:12-slim")
    file = folder / "Containerfile"
    file.write_text("FROM debian:12-slim\nCOPY python /usr/bin/python\n")
    machine.root("docker", "build", "-t", "image", "-f", file, folder)
    file.write_text("FROM image\nCOPY python /wait\n")
    machine.root("docker", "build", "-t", "waiting", "-f", file, folder)
    for name in ("image", "waiting"):
        saved = machine.folder / f"{name}.tar"
        container = machine.root("docker", "create", name, "true").out.strip()
        machine.root("docker", "export", "--output", saved, container)
        machine.root("docker", "rm", container)
        saved.chmod(0o644)
        load = machine.as_user("podman", "import", "-q", saved, name, one_kind=True)
        answer = machine.run(load)
        assert answer.status == 0, answer.err
    return machine


def forget_that_podman_ran(machine: Machine) -> None:
    """As after a boot of the machine."""
    for entry in os.listdir("/proc"):
        if (
            entry.isdigit()
            and os.path.exists(f"/proc/{entry}")
            and os.stat(f"/proc/{entry}").st_uid == USER_ID
        ):
            os.kill(int(entry), 9)
    machine.root("sh", "-c", f"rm -rf /tmp/podman-run-{USER_ID} /tmp/containers-user-{USER_ID}")


def answer_of(process) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    return out


def docker_recipe() -> str:
    return blocks(PAGE, "sh")[0]


def podman_recipes() -> list[str]:
    return blocks(PAGE, "sh")[1:3]


def test_docker_gets_the_gpus_of_the_lease_and_no_others(images):
    said = answer_of(images.types(docker_recipe()))
    assert f"train.py uid={USER_ID} " in said and "lease=set" in said
    uuids = json.loads(images.berth("list", "--json").out)["devices"][0]["uuid"]
    assert f"NVIDIA_VISIBLE_DEVICES={uuids}" in images.asked.read_text()


def sleeper() -> int:
    """What runs in the container, by its number outside."""

    def found():
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/cmdline") as file:
                    is_it = file.read() == "sleep\0001000\0"
                if is_it and os.stat(f"/proc/{entry}").st_uid == USER_ID:
                    return int(entry)
            except OSError:  # it has ended meanwhile
                continue
        return None

    return eventually(found)


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_who_computes_in_a_container_is_known_and_ends_with_its_lease(images, engine):
    recipe = docker_recipe() if engine == "docker" else podman_recipes()[0]
    job = images.types(recipe.replace(" image ", " waiting "), one_kind=engine == "podman")
    images.shows(sleeper())
    machine = json.loads(images.berth("list", "--json").out)
    (lease,) = machine["leases"]
    (process,) = machine["devices"][0]["processes"]
    assert (process["lease"], process["assumed"]) == (lease["id"], False)
    answer = images.berth("release", lease["id"])
    assert answer.status == 0, answer.err
    job.communicate(timeout=60)
    images.shows()
    assert json.loads(images.berth("list", "--json").out)["devices"][0]["verdict"]["free"]


@pytest.mark.parametrize("number", [0, 1])
def test_podman_gets_a_name_for_each_gpu_and_the_first_one_after_a_boot_ends_too(images, number):
    forget_that_podman_ran(images)
    said = answer_of(images.types(podman_recipes()[number], one_kind=True))
    assert f"gpus={'GPU0=yes,' if number == 0 else 'GPU0=yes,GPU1=yes,'} lease=set" in said
    assert json.loads(images.berth("list", "--json").out)["leases"] == []


@pytest.fixture(scope="module")
def berth_image(images):
    """`berth`, by the last stage of the recipe, from the package that `./dev package` has made; and with it, in place of
    NVIDIA's runtime, the driver."""
    folder = images.folder / "berth"
    shutil.copytree(BUILD / "sim/r550", folder / "r550")
    (package,) = (ROOT / "dist").glob("*.deb")
    shutil.copy(package, folder)
    shutil.copy(images.file, folder / "lab.toml")
    recipe = (ROOT / "packaging/deploy/Containerfile").read_text()
    last = recipe[recipe.rindex("FROM debian:12-slim") :]
    first = "FROM debian:12-slim AS build\nCOPY *.deb /src/dist/\n"
    driver = "COPY r550 lab.toml /sim/\nENV BERTH_SIM=/sim/lab.toml LD_LIBRARY_PATH=/sim\n"
    (folder / "Containerfile").write_text(first + last + driver)
    # Its packages come over the machine's own network.
    build = ["/usr/bin/docker", "build", "--network", "host", "-t", "berth"]
    images.root("env", "DOCKER_BUILDKIT=1", *build, "-f", folder / "Containerfile", folder)
    return images


def agent_recipe() -> str:
    """What root types, without the prompts."""
    words = (ROOT / "docs/serve.md").read_text()
    section = words[words.index("## In a container") : words.index("The Containerfile needs BuildKit")]
    return re.search(r"    # (install [\s\S]*)", section)[1].replace("\n    # ", "\n")


def agent_says(machine: Machine, path: str, port: int = 8420) -> dict:
    token = machine.root("cat", "/etc/berth-serve.token").out.strip()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    request.add_header("Authorization", f"Bearer {token}")

    def answer():
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return json.load(response)
        except (OSError, urllib.error.URLError):
            return None

    return eventually(answer)


def test_the_agent_in_a_container_sees_the_leases_of_the_machine(berth_image):
    machine = berth_image
    machine.root("bash", "-ec", agent_recipe())
    try:
        eventually(lambda: agent_says(machine, "/api/v1/health")["history"]["status"] == "ok")
        health = agent_says(machine, "/api/v1/health")
        assert (health["status"], health["warnings"]) == ("ok", [])
        job = machine.types("berth run -- sleep 1000")
        eventually(lambda: agent_says(machine, "/api/v1/leases")["leases"])
        job.terminate()
        job.communicate(timeout=60)
    finally:
        machine.root("docker", "rm", "--force", "berth")


def test_compose_starts_the_agent_and_a_hub(berth_image):
    machine = berth_image
    machine.root("bash", "-ec", agent_recipe().splitlines()[0])
    agents = machine.folder / "agents.toml"
    agents.write_text(
        'token-file = "/run/secrets/berth-token"\n[[agent]]\nname = "here"\nurl = "http://localhost:8420"\n'
    )
    machine.root("install", "-m", "644", agents, "/etc/berth-agents.toml")
    # Debian 12 has Compose 1 only, which does not know this key.
    text = (ROOT / "packaging/deploy/compose.yaml").read_text()
    file = machine.folder / "compose.yaml"
    file.write_text(text.replace(", bind: {create_host_path: false}", ""))
    machine.root(*shlex.split(f"docker-compose -f {file} --profile hub up -d agent hub"))
    assert agent_says(machine, "/api/v1/health")["status"] == "ok"
    (host,) = agent_says(machine, "/api/v1/hosts", 8421)["hosts"]
    assert host["name"] == "here"
    machine.root(*shlex.split(f"docker-compose -f {file} --profile hub down"))
