"""The page in the build, and as berth-serve serves it."""

import json
import pathlib
import re
import subprocess

import pytest
from agent import Agent, curl

ROOT = pathlib.Path(__file__).parents[2]


def configure(source: pathlib.Path, node: str) -> str:
    """What a build without one of the page's tools says."""
    script = source / "needs.cmake"
    script.write_text(f"include({ROOT}/packaging/cmake/page.cmake)\nberth_needs_page_tools()\n")
    done = subprocess.run(
        ["cmake", f"-DPROJECT_SOURCE_DIR={source}", f"-DBERTH_NODE={node}", "-P", script],
        capture_output=True,
        text=True,
    )
    return " ".join(done.stderr.split())


def node(folder: pathlib.Path, version: str) -> str:
    program = folder / "node"
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o755)
    return str(program)


def test_a_build_that_could_make_no_page_is_refused_with_the_remedy(tmp_path):
    for missing, said in [
        (configure(tmp_path, "BERTH_NODE-NOTFOUND"), "Node.js 20.19 or newer, and there is none here"),
        (configure(tmp_path, node(tmp_path, "v18.20.4")), 'says "v18.20.4"'),
        (configure(tmp_path, node(tmp_path, "v24.19.0")), "which web/node_modules lacks"),
    ]:
        assert said in missing
        assert "./dev setup" in missing
        assert "-DBERTH_SERVE=OFF" in missing
    vite = tmp_path / "web/node_modules/vite/bin/vite.js"
    vite.parent.mkdir(parents=True)
    vite.touch()
    assert configure(tmp_path, node(tmp_path, "v24.19.0")) == ""


def assets(page: str) -> list:
    return re.findall(r'(?:src|href)="\./(assets/[^"]+)"', page)


def test_the_page_is_in_the_program(agent):
    status, headers, page = agent.get("/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert headers["Cache-Control"] == "no-cache"
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';")
    assert "unsafe" not in policy
    assert re.search("<script[^>]*>[^<]|<style|style=| on[a-z]+=", page) is None
    assert len(assets(page)) >= 2
    for path in assets(page):
        status, headers, text = agent.get(f"/{path}")
        assert (status, headers["Cache-Control"]) == (200, "public, max-age=31536000, immutable")
        assert headers["Content-Type"].split(";")[0] == (
            "text/javascript" if path.endswith(".js") else "text/css"
        )
        assert text


def test_only_the_page_is_there_for_those_without_the_token(machine, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-secret-of-one-word\n")
    token.chmod(0o600)
    agent = Agent(machine, "--token-file", token)
    status, _, page = agent.get("/")
    assert status == 200
    assert [agent.get(f"/{path}")[0] for path in assets(page)] == [200] * len(assets(page))
    assert agent.get("/api/v1/snapshot")[0] == 401


def test_what_crosses_the_network_for_the_page_is_small(agent):
    origin = f"http://127.0.0.1:{agent.port}/"
    sizes = [
        int(curl("--compressed", "-o/dev/null", "-w%{size_download}", origin + path).stdout)
        for path in ["", *assets(agent.get("/")[2])]
    ]
    assert sum(sizes) < 45_000


@pytest.mark.parametrize("name", ["preact", "vite", "typescript"])
def test_each_package_is_pinned_and_named_where_dependencies_are(name):
    pinned = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    assert re.fullmatch(r"[0-9.]+", pinned[f"node_modules/{name}"]["version"])
    assert re.search(name, (ROOT / "docs/dependencies.md").read_text(), re.I)
