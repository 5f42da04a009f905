"""The connection to a host before it speaks: an ssh server that turns away, a login shell or settings that say no."""

import contextlib
import socket
import threading

import pytest
from fleet_of_hosts import free_port

TURNED_AWAY = "its ssh server closed each of four connections at once"


class Door:
    """The port of a host, which closes the first connections at once as sshd does above MaxStartups."""

    def __init__(self, machines, host, closes):
        self.closes, self.came = closes, 0
        self.behind = host.port
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        machines.listeners.append(self.listener)
        machines.name(host.name, self.listener.getsockname()[1])
        threading.Thread(target=self.open, daemon=True).start()

    def open(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                come, _ = self.listener.accept()
                self.came += 1
                if self.came <= self.closes:
                    come.close()
                    continue
                there = socket.create_connection(("127.0.0.1", self.behind))
                for one, other in ((come, there), (there, come)):
                    threading.Thread(target=self.pass_on, args=(one, other), daemon=True).start()

    @staticmethod
    def pass_on(one, other) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)


@pytest.fixture
def host(machines):
    return machines.add("gpu1", "1xH100")


def test_a_host_that_turns_away_three_times_is_asked_again(machines, host):
    door = Door(machines, host, closes=3)
    answer = machines.anywhere("--", "echo", "done")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "done\n", "")
    assert door.came == 4


def test_what_only_looks_asks_again_as_well(machines, host):
    Door(machines, host, closes=2)
    answer = machines.run("list", "--anywhere", "--hosts", "gpu1")
    assert answer.returncode == 0 and TURNED_AWAY not in answer.stdout + answer.stderr


def test_one_that_goes_on_turning_away_is_told_with_what_to_change_and_costs_the_others_nothing(two):
    gpu1, _ = two.hosts
    door = Door(two, gpu1, closes=1000)
    alone = two.anywhere("--", "true", hosts="gpu1")
    assert alone.returncode == 1
    assert TURNED_AWAY in alone.stderr and "MaxStartups in sshd_config" in alone.stderr
    assert door.came == 4
    assert two.anywhere("--", "echo", "done").stdout == "done\n"


def test_an_ssh_that_says_so_after_the_envoy_has_spoken_is_not_started_again(two):
    version = two.hosts[0].machine.berth("version").out.split()[1]
    ssh = two.folder / "ssh"
    ssh.write_text(
        f"#!/bin/sh\necho started >> {two.folder}/starts\n"
        f"printf 'berth-envoy 1\\nversion={version}\\nend\\n'\n"
        "echo 'kex_exchange_identification: Connection closed by remote host' >&2\nexit 255\n"
    )
    ssh.chmod(0o755)
    answer = two.anywhere("--", "true", hosts="gpu1", env={"BERTH_SSH": str(ssh)})
    assert answer.returncode == 1 and "the connection is lost" in answer.stderr
    assert (two.folder / "starts").read_text() == "started\n"


def test_what_a_login_shell_that_lets_nobody_in_says_is_told(machines, host):
    config = host.folder / "sshd_config"
    config.write_text(
        config.read_text() + "ForceCommand echo This account is currently not available.; exit 1\n"
    )
    host.stop()
    host.start()
    answer = machines.anywhere("--", "true")
    assert answer.returncode == 1
    assert "ended with exit status 1 (This account is currently not available.)" in answer.stderr
    assert "Try: ssh gpu1 berth version" in answer.stderr


def test_an_ssh_that_passes_nothing_on_is_told_with_what_to_change(machines, host):
    machines.ssh_config.write_text("Host gpu1\n  StdinNull yes\n" + machines.ssh_config.read_text())
    answer = machines.anywhere("--", "true")
    assert answer.returncode == 1
    assert "StdinNull" in answer.stderr and "Host gpu1" in answer.stderr
