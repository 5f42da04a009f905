"""A hub as the list of hosts."""

import pytest
from agent import Agent
from hub import Hub


@pytest.fixture
def hub(two):
    """Of gpu1 and gpu2, as ssh knows them. It takes the first for a machine of its own."""
    agents = [Agent(host.machine) for host in two.hosts]
    words = [f"{host.name}=http://127.0.0.1:{agent.port}" for host, agent in zip(two.hosts, agents)]
    hub = Hub(two.hosts[0].machine, *words)
    for host in two.hosts:
        hub.sees(host.name)
    return hub


def url_of(hub: Hub) -> str:
    return f"http://127.0.0.1:{hub.port}"


def test_a_command_starts_on_a_host_of_the_hub(two, hub):
    held = two.hosts[0].machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert held.stdout.readline() == "ready\n"
    answer = two.anywhere("-v", "--", "true", hosts=url_of(hub))
    assert answer.returncode == 0, answer.stderr
    assert "gpu2" in answer.stderr


def test_the_site_names_its_hub_and_a_users_own_hosts_come_first(two, hub):
    two.site.write_text(f'hub = {{ url = "{url_of(hub)}", insecure = true }}\n')
    assert "2 hosts" in two.run("list", "--anywhere").stdout
    assert "gpu1" not in two.run("list", "--anywhere", "--not-host", "gpu1").stdout
    own = two.folder / "home/.config/berth.toml"
    own.parent.mkdir()
    own.write_text('hosts = ["gpu2"]\n')
    assert "1 host:" in two.run("list", "--anywhere").stdout


def test_a_hub_that_wants_a_token_is_shown_the_one_that_the_site_names(two, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n")
    token.chmod(0o600)
    agent = Agent(two.hosts[0].machine)
    hub = Hub(two.hosts[0].machine, f"gpu1=http://127.0.0.1:{agent.port}", options=("--token-file", token))
    refused = two.run("list", "--anywhere", "--hosts", url_of(hub))
    assert refused.returncode == 1
    assert url_of(hub) in refused.stderr and "token" in refused.stderr
    two.site.write_text(f'hub = {{ url = "{url_of(hub)}", token_file = "{token}" }}\n')
    assert "1 host:" in two.run("list", "--anywhere").stdout
    assert "1 host:" in two.run("list", "--anywhere", "--hosts", url_of(hub)).stdout


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "gopher://hub", "http://"])
def test_a_hub_that_cannot_be_asked_is_named_with_the_way_out(two, url):
    answer = two.anywhere("--", "true", hosts=url)
    assert answer.returncode == 1
    assert "the hub does not say which hosts there are: " in answer.stderr and url in answer.stderr
    assert "to name them yourself: --hosts gpu1,gpu2" in answer.stderr


def test_an_agent_that_ssh_could_not_be_given_is_refused(two, hub):
    bad = Hub(two.hosts[1].machine, options=(f"--agent=-oProxyCommand=http://127.0.0.1:{hub.port}",))
    answer = two.anywhere("--", "true", hosts=url_of(bad))
    assert answer.returncode == 1
    assert "ssh would take it for an option" in answer.stderr
