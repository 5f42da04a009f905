"""The ways to a host that ssh knows, and hosts that differ from the desk: another clock, another user id."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from types import SimpleNamespace

import pytest
from clock import Clock
from fleet_of_hosts import PATIENCE_S, Machines
from jobs import eventually
from simulated_machine import BUILD
from terminal_of_desk import Terminal

WHERE = 'echo "$BERTH_DIR $CUDA_VISIBLE_DEVICES"'
A_DAY_S = 86400


def busy(host, *options):
    """Somebody there has its one GPU."""
    process = host.machine.start_berth("run", *options, "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == "ready\n"
    return process


def configure(machines, text: str) -> None:
    """What ssh is told before all else."""
    machines.ssh_config.write_text(text + machines.ssh_config.read_text())


@pytest.fixture
def shared(two):
    """gpu1 and gpu2, to each of which all ssh of the desk share one connection."""
    with tempfile.TemporaryDirectory(prefix="cm") as sockets:  # the path of a socket is short
        configure(
            two,
            f"Host *\n  ControlMaster auto\n  ControlPath {sockets}/%n\n  ControlPersist 600\nHost none\n",
        )
        yield two
        for name in os.listdir(sockets):
            words = [*two.env["BERTH_SSH"].split(), "-O", "exit", name]
            subprocess.run(words, env=two.env, stderr=subprocess.DEVNULL)


def test_runs_share_a_connection_where_ssh_does(shared):
    for status in (0, 3):
        answer = shared.anywhere("--", "sh", "-c", f"echo out; echo err >&2; exit {status}")
        assert (answer.returncode, answer.stdout, answer.stderr) == (status, "out\n", "err\n")
    # The host that comes second may be let go before there is a connection.
    assert sorted(len(host.sessions()) for host in shared.hosts) in ([0, 1], [1, 1])
    eventually(lambda: all(host.tickets() == [] and host.envoys() == [] for host in shared.hosts))


def test_a_caller_that_is_killed_ends_its_command_and_not_the_connection(shared):
    (gpu1, _) = shared.hosts

    def start():
        words = ("--memory", "10G", "--", "sh", "-c", "echo ready; exec sleep 1000")
        job = shared.start_anywhere(*words, hosts="gpu1")
        assert job.stdout.readline() == "ready\n"
        return job

    first, second = start(), start()  # one after the other: two at once may both make a connection
    first.kill()
    eventually(lambda: len(gpu1.tickets()) == 1)
    assert second.poll() is None and len(gpu1.sessions()) == 1
    second.send_signal(signal.SIGTERM)
    assert second.wait(timeout=PATIENCE_S) == -signal.SIGTERM


def test_a_host_behind_another_is_reached_by_its_jump(two):
    gpu1, gpu2 = two.hosts
    configure(two, "Host gpu2\n  ProxyJump gpu1\n")
    # ssh starts the jump itself, with the same configuration.
    job = two.start_anywhere("--", "sh", "-c", f"{WHERE}; exec sleep 1000", hosts="gpu2")
    assert "/gpu2/" in job.stdout.readline()
    assert gpu1.sessions() and gpu2.sessions() and gpu1.envoys() == []
    job.terminate()
    assert job.wait(timeout=PATIENCE_S) == -signal.SIGTERM
    gpu1.stop()
    for pid in gpu1.sessions():
        os.kill(pid, signal.SIGKILL)
    assert "gpu2: " in two.anywhere("--", "true", hosts="gpu2").stderr


@pytest.mark.release_only
@pytest.mark.parametrize("ahead_s", [A_DAY_S, -A_DAY_S])
def test_a_host_whose_clock_is_a_day_off_is_chosen_as_any_other(machines, ahead_s):
    clock = Clock(machines_lab(machines), wall=ahead_s)
    gpu1 = machines.add("gpu1", "1xH100", **{name: str(value) for name, value in clock.env.items()})
    gpu2 = machines.add("gpu2", "1xH100")
    out = machines.anywhere("--", "sh", "-c", f"{WHERE}; date +%s", hosts="gpu1").stdout
    assert "/gpu1/" in out and abs(int(out.split()[-1]) - time.time() - ahead_s) < A_DAY_S / 2
    holders = [busy(gpu1, "--time", "1h"), busy(gpu2, "--time", "2h")]
    why = machines.run("why", "--anywhere", "--hosts", "gpu1,gpu2", "--json")
    told = {host["host"]: host["offer"]["starts_in_s"] for host in json.loads(why.stdout)["hosts"]}
    assert list(told) == ["gpu1", "gpu2"]
    assert 3600 - PATIENCE_S < told["gpu1"] <= 3600 and 7200 - PATIENCE_S < told["gpu2"] <= 7200
    job = machines.start_anywhere("--wait", "1h", "--", "sh", "-c", WHERE)
    eventually(lambda: len(gpu1.tickets()) == 2 and len(gpu2.tickets()) == 2)
    holders[0].terminate()
    out, _ = job.communicate(timeout=PATIENCE_S)
    assert (job.returncode, "/gpu1/" in out) == (0, True)
    assert machines.run("list", "--anywhere", "--hosts", "gpu1,gpu2").returncode == 0


def machines_lab(machines):
    """As much of a Machine as a Clock wants."""
    return SimpleNamespace(directory=machines.folder, build=BUILD)


@pytest.fixture
def open_machines():
    """Hosts that every user may enter: pytest's own directories are closed to others."""
    if os.geteuid() != 0:
        pytest.skip("needs root: acts as other users")
    with tempfile.TemporaryDirectory(prefix="berth-lab-") as directory:
        path = pathlib.Path(directory)
        path.chmod(0o755)
        pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        machines = Machines(path)
        yield machines
        machines.close()


OTHER_UID = 12345


def test_a_host_that_knows_the_user_by_another_id_serves_him(open_machines):
    machines = open_machines
    machines.add("gpu1", "1xH100")
    program = f'#!/bin/sh\nexec setpriv --reuid={OTHER_UID} --regid={OTHER_UID} --clear-groups @BERTH@ "$@"\n'
    gpu2 = machines.add("gpu2", "1xH100", program=program)
    gpu2.machine.leases.mkdir(exist_ok=True)
    gpu2.machine.leases.chmod(0o1777)
    assert machines.anywhere("--folder", "/", "--", "id", "-u", hosts="gpu2").stdout == f"{OTHER_UID}\n"
    busy(machines.hosts[0])
    job = machines.start_anywhere("--folder", "/", "--", "sh", "-c", "id -u; exec sleep 1000")
    assert job.stdout.readline() == f"{OTHER_UID}\n"
    assert f"uid {OTHER_UID} 1" in machines.run("list", "--anywhere", "--hosts", "gpu1,gpu2").stdout
    job.kill()
    eventually(lambda: gpu2.tickets() == [])


def test_ctrl_z_goes_to_the_command_and_stops_nothing(two):
    terminal = Terminal(
        two,
        *("run", "--anywhere", "--hosts", "gpu1", "--", "bash", "-c"),
        # By turns of `read`, since bash runs a trap that came just before a `read` only after it.
        "trap 'echo key-came' TSTP; echo ready; until read -r -t 1 line; do :; done; echo got-$line",
    )
    terminal.until("ready")
    terminal.type("\x1a")
    terminal.until("key-came")
    terminal.type("on\n")
    terminal.until("got-on")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0
    plain = Terminal(
        two, "run", "--anywhere", "--hosts", "gpu1", "--", "sh", "-c", "echo ready; read a; echo is-$a"
    )
    plain.until("ready")
    plain.type("\x1a")
    plain.type("there\n")
    plain.until("is-there")
    assert plain.process.wait(timeout=PATIENCE_S) == 0
