"""The metrics, the board and the alerts that ship, judged by Prometheus itself."""

import contextlib
import getpass
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request

import pytest
from agent import Agent
from hub import Hub
from jobs import eventually, holder, waiter
from simulated_machine import DEADLINE_S
from submitted import submit

ROOT = pathlib.Path(__file__).parents[2]
DEPLOY = ROOT / "packaging/deploy"
BOARD = json.loads((DEPLOY / "grafana-board.json").read_text())
RULES = DEPLOY / "prometheus-rules.yml"
TARGETS = [(panel, target) for panel in BOARD["panels"] for target in panel["targets"]]
# What a person chooses on the board.
CHOSEN = {"$instance": ".*", "$window": "1d"}


def expression(target: dict) -> str:
    """As Grafana sends it."""
    text = target["expr"]
    for name, value in CHOSEN.items():
        text = text.replace(name, value)
    assert "$" not in text
    return text


@pytest.fixture
def busy(make_machine):
    """The agent of a machine with an idle lease, somebody who waits, and an outsider."""
    machine = make_machine(
        '[[device]]\nmodel = "H100"\ncount = 2\n'
        f'[[device]]\nmodel = "H100"\nprocess = [{{pid = {os.getpid()}, used_mib = 1000}}]\n'
    )
    agent = Agent(machine)
    job = holder(machine, "-n", "2", "--note", 'a "note"\\ of\nmine')
    waiter(machine, "-n", "3")
    eventually(lambda: "\nberth_queue_waiters 1\n" in agent.get("/metrics")[2])
    yield agent
    job.ends()


class Prometheus:
    """A real one that scrapes one agent, with the rules that ship."""

    def __init__(self, agent: Agent, folder: pathlib.Path):
        (folder / "prometheus.yml").write_text(
            f"rule_files: [{RULES}]\n"
            "scrape_configs:\n"
            "  - job_name: berth\n"
            "    scrape_interval: 100ms\n"
            "    scrape_timeout: 100ms\n"
            f"    static_configs: [{{targets: ['127.0.0.1:{agent.port}']}}]\n"
        )
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.process = subprocess.Popen(
            [
                *("prometheus", f"--config.file={folder}/prometheus.yml"),
                *(f"--storage.tsdb.path={folder}/data", f"--web.listen-address={self.address}"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, query: str) -> list:
        """The series; none while it is not up."""
        words = urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(f"http://{self.address}/api/v1/query?{words}") as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return []

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(DEADLINE_S)


@pytest.fixture
def prometheus(busy, tmp_path):
    if shutil.which("prometheus") is None:
        pytest.skip("needs Prometheus")
    with contextlib.closing(Prometheus(busy, tmp_path)) as started:
        yield started


def test_promtool_finds_no_fault(busy):
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=busy.get("/metrics")[2], capture_output=True, text=True
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_an_absent_value_is_an_absent_series(make_machine):
    agent = Agent(make_machine('[[device]]\nmodel = "T4"\n[[device]]\nmodel = "T4"\nlost = true\n'))
    text = agent.get("/metrics")[2]
    assert text.count("\nberth_device_up{") == 2
    assert text.count("\nberth_device_temperature_celsius{") == 1


def test_whom_the_site_file_ignores_is_no_outsider(make_machine):
    machine = make_machine(
        f'[[device]]\nmodel = "T4"\nprocess = [{{pid = {os.getpid()}, used_mib = 1000}}]\n'
    )
    agent = Agent(machine)
    assert "\nberth_device_outsiders{" in agent.get("/metrics")[2]
    eventually(lambda: re.search(r"\nberth_device_outsiders{.*} 1\n", agent.get("/metrics")[2]))
    (machine.directory / "site.toml").write_text(f'ignored_users = ["{getpass.getuser()}"]\n')
    eventually(lambda: re.search(r"\nberth_device_outsiders{.*} 0\n", agent.get("/metrics")[2]))
    assert re.search(r"\nberth_device_processes{.*} 1\n", agent.get("/metrics")[2])


def test_a_real_prometheus_finds_something_for_all_that_the_board_shows(prometheus):
    assert eventually(lambda: prometheus.ask("sum(berth_device_free)"))[0]["value"][1] == "0"
    for panel, target in TARGETS:
        series = eventually(lambda asked=expression(target): prometheus.ask(asked))
        labels = set(series[0]["metric"])
        assert set(re.findall(r"{{(\w+)}}", target.get("legendFormat", ""))) <= labels, panel["title"]
        if panel["type"] == "table":
            (filtered, _) = panel["transformations"]
            assert set(filtered["options"]["include"]["names"]) <= labels | {"Value"}, panel["title"]


def test_what_board_alerts_and_documentation_name_is_served(busy, make_machine):
    hub = Hub(make_machine("1xT4"), f"busy=http://127.0.0.1:{busy.port}")
    eventually(lambda: hub.json("/api/v1/hosts")["summary"]["users"])
    machine = make_machine("1xT4")
    with_job = Agent(machine)
    submit(machine, "--", "sleep", "1000")
    of_jobs = eventually(lambda: "\nberth_jobs{" in (text := with_job.get("/metrics")[2]) and text)
    texts = busy.get("/metrics")[2] + hub.get("/metrics")[2] + of_jobs
    served = set(re.findall(r"^# TYPE (\w+)", texts, re.MULTILINE))
    for text in (json.dumps(TARGETS), RULES.read_text(), (ROOT / "docs/serve.md").read_text()):
        named = set(re.findall(r"\bberth_[a-z_]+[a-z]\b", text))
        assert named
        assert {re.sub("_(bucket|sum|count)$", "", name) for name in named} <= served


def test_each_alert_comes_when_it_should_and_not_before(tmp_path):
    plays = tmp_path / "alerts.yml"
    plays.write_text(
        (pathlib.Path(__file__).parent / "alerts_test.yml").read_text().replace("RULES", str(RULES))
    )
    assert set(re.findall(r"alert: (\w+)", RULES.read_text())) == set(
        re.findall(r"alertname: (\w+)$", plays.read_text(), re.MULTILINE)
    )
    for words in (("check", "rules", RULES), ("test", "rules", plays)):
        checked = subprocess.run(["promtool", *words], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_server_tells_how_it_is_itself(machine):
    agent = Agent(machine, "--history", machine.directory / "history.db")
    hub = Hub(machine, f"a=http://127.0.0.1:{agent.port}", "gone=http://127.0.0.1:1")
    hub.sees("a")
    assert agent.get("/none")[0] == 404
    eventually(lambda: "\nberth_history_up 1\n" in agent.get("/metrics")[2])
    text = agent.get("/metrics")[2]
    assert 'berth_serve_answers_total{status="404"} 1\n' in text
    assert re.search(r'berth_serve_connections\{at="network"\} [12]\n', text)
    assert 'berth_serve_connections{at="socket"} 0\n' in text
    assert "berth_history_lost_samples_total 0\n" in text

    def polls(outcome: str) -> int:
        found = re.search(rf'berth_hub_polls_total\{{outcome="{outcome}"\}} (\d+)', hub.get("/metrics")[2])
        return int(found[1])

    eventually(lambda: polls("answered") > 1 and polls("failed") > 1)
    assert float(re.search(r"\nberth_hub_poll_seconds_total (\S+)", hub.get("/metrics")[2])[1]) > 0
