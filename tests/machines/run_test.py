"""berth run --anywhere: a command on the first of several hosts that has the GPUs, as its user meets it."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from fleet_of_hosts import PATIENCE_S
from jobs import eventually
from terminal_of_desk import Terminal

WHERE = 'echo "$BERTH_DIR $CUDA_VISIBLE_DEVICES"'


def where(out: str) -> str:
    """The host of the lease directory that a command has printed."""
    return pathlib.Path(out.split()[0]).parts[-1] and re.search(r"/(gpu\d+)/", out)[1]


def busy(host):
    """Somebody there has its one GPU."""
    process = host.machine.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == "ready\n"
    return process


def test_it_starts_on_the_one_that_is_free(two):
    gpu1, gpu2 = two.hosts
    busy(gpu1)
    answer = two.anywhere("--quiet", "--", "sh", "-c", WHERE)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert where(answer.stdout) == "gpu2"
    eventually(lambda: gpu1.envoys() + gpu2.envoys() == [])
    eventually(lambda: len(gpu1.tickets()) == 1 and gpu2.tickets() == [])


def test_an_ssh_that_ends_when_it_is_written_to_costs_its_host_and_no_other(two):
    version = two.hosts[0].machine.berth("version").out.split()[1]
    ssh = two.folder / "ssh"
    ssh.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f"*gpu1*) exec <&-; printf 'berth-envoy 1\\nversion={version}\\nend\\n'; exec sleep 1 ;;\n"
        f'*) exec {two.env["BERTH_SSH"]} "$@" ;;\n'
        "esac\n"
    )
    ssh.chmod(0o755)
    done = two.anywhere("--", "echo", "started", env={"BERTH_SSH": str(ssh)})
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr


def test_whichever_becomes_free_first_starts_it_and_the_other_line_is_left(two):
    gpu1, gpu2 = two.hosts
    busy(gpu1)
    holder = busy(gpu2)
    job = two.start_anywhere("--", "sh", "-c", WHERE)
    eventually(lambda: len(gpu1.tickets()) == 2 and len(gpu2.tickets()) == 2)
    first = job.stderr.readline() + job.stderr.readline() + job.stderr.readline()
    holder.terminate()
    out, err = job.communicate(timeout=PATIENCE_S)
    err = first + err
    assert (job.returncode, where(out)) == (0, "gpu2")
    assert "waiting for 1 whole GPU on 2 hosts" in err and "gpu1: first in line, 0 of 1 free" in err
    eventually(lambda: len(gpu1.tickets()) == 1 and gpu2.tickets() == [])


# ssh itself ends with 255.
@pytest.mark.parametrize("status", [42, 255])
def test_the_exit_status_is_the_commands(two, status):
    answer = two.anywhere("--", "sh", "-c", f"exit {status}", hosts="gpu1")
    assert (answer.returncode, answer.stderr) == (status, "")


def test_it_ends_by_the_signal_that_ended_the_command(two):
    assert two.anywhere("--", "sh", "-c", "kill -KILL $$", hosts="gpu1").returncode == -signal.SIGKILL


def test_streams_pass_as_they_are(two):
    data = bytes(range(256)) * 4096
    answer = subprocess.run(
        [
            two.hosts[0].machine.program,
            *("run", "--anywhere", "--hosts", "gpu1", "--", "sh", "-c", "cat; echo twice >&2; printf e >&2"),
        ],
        env=two.env,
        cwd=two.folder / "work",
        input=data,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert answer.stdout == data
    assert answer.stderr == b"twice\ne"


def test_standard_input_is_read_by_nobody_until_the_command_has_it(two):
    gpu1, gpu2 = two.hosts
    holder = busy(gpu1)
    busy(gpu2)
    job = two.start_anywhere("--", "head", "-n1", stdin=subprocess.PIPE)
    eventually(lambda: len(gpu1.tickets()) == 2 and len(gpu2.tickets()) == 2)
    job.stdin.write("one\n")
    job.stdin.flush()
    holder.terminate()
    assert job.stdout.readline() == "one\n"
    assert job.wait(timeout=PATIENCE_S) == 0


def test_signals_reach_the_command(two):
    ours = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    traps = "; ".join(f"trap 'echo got {each.name}' {each.name.removeprefix('SIG')}" for each in ours)
    script = f"{traps}; trap 'exit 7' USR2; echo ready; while :; do sleep 0.02; done"
    job = two.start_anywhere("--", "bash", "-c", script, hosts="gpu2")
    assert job.stdout.readline() == "ready\n"
    for each in ours:
        job.send_signal(each)
        assert job.stdout.readline() == f"got {each.name}\n"
    job.send_signal(signal.SIGUSR2)
    assert job.wait(timeout=PATIENCE_S) == 7


def test_where_nobody_reads_it_ends_as_a_command_here_would(two):
    job = two.start_anywhere("--", "yes", hosts="gpu1")
    assert job.stdout.readline() == "y\n"
    job.stdout.close()
    assert job.wait(timeout=PATIENCE_S) == -signal.SIGPIPE
    eventually(lambda: two.hosts[0].tickets() == [])


@pytest.mark.parametrize("whom", ["caller", "ssh", "envoy"])
def test_killed_while_it_waits_it_leaves_no_place(two, whom):
    gpu1, gpu2 = two.hosts
    busy(gpu1)
    busy(gpu2)
    job = two.start_anywhere("--", "true")
    eventually(lambda: len(gpu1.tickets()) == 2 and len(gpu2.tickets()) == 2)
    victims = {
        "caller": lambda: [job.pid],
        "ssh": two.own_ssh,
        "envoy": lambda: gpu1.envoys() + gpu2.envoys(),
    }
    for pid in victims[whom]():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(gpu1.tickets()) == 1 and len(gpu2.tickets()) == 1)
    eventually(lambda: gpu1.envoys() + gpu2.envoys() == [])
    assert job.wait(timeout=PATIENCE_S) != 0
    if whom != "caller":
        err = job.stderr.read()
        assert "the command starts on none of the hosts" in err and "the connection is lost" in err


HANGS_UP = """
import pathlib, signal, sys, time

def hung_up(*_):
    pathlib.Path(sys.argv[1]).write_text("hung up\\n")
    sys.exit()

signal.signal(signal.SIGHUP, hung_up)
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("whom", ["caller", "ssh"])
def test_a_connection_lost_while_it_runs_ends_the_command(two, whom):
    (gpu1, _) = two.hosts
    mark = two.folder / "mark"
    job = two.start_anywhere("--", sys.executable, "-c", HANGS_UP, mark, hosts="gpu1")
    assert job.stdout.readline() == "ready\n"
    for pid in [job.pid] if whom == "caller" else two.own_ssh():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: mark.exists() and mark.read_text() == "hung up\n")
    eventually(lambda: gpu1.tickets() == [])
    if whom == "ssh":
        assert job.wait(timeout=PATIENCE_S) == 1
        assert "gpu1 was lost while the command ran there" in job.stderr.read()


def test_one_that_is_deaf_to_a_lost_connection_is_ended_all_the_same(two):
    (gpu1, _) = two.hosts
    job = two.start_anywhere("--", "sh", "-c", "trap '' HUP; echo ready; exec sleep 1000", hosts="gpu1")
    assert job.stdout.readline() == "ready\n"
    job.kill()
    eventually(lambda: gpu1.tickets() == [])


def test_a_command_that_yields_ends_for_a_user_of_its_host(two):
    (gpu1, _) = two.hosts
    job = two.start_anywhere("--yield", "--", "sh", "-c", "echo begun; exec sleep 60", hosts="gpu1")
    assert job.stdout.readline() == "begun\n"
    local = gpu1.machine.start_berth("run", "--", "echo", "local")
    assert local.stdout.readline() == "local\n"
    out, err = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == -signal.SIGTERM
    assert "waits for this GPU, and this job yields (--yield)" in err


# What passes


def test_the_command_has_the_environment_and_the_folder_of_the_caller(two):
    env = {**two.env, "MINE": "1 2'\n3", "SSH_AUTH_SOCK": "/nowhere", "CUDA_VISIBLE_DEVICES": "7"}
    script = 'printf "%s|" "$MINE" "${SSH_AUTH_SOCK-none}" "$PWD" "$CUDA_VISIBLE_DEVICES"'
    answer = two.anywhere("--", "sh", "-c", script, hosts="gpu1", env=env)
    assert answer.stdout == f"1 2'\n3|none|{two.folder / 'work'}|0|"
    answer = two.anywhere("--env", "none", "--", "sh", "-c", 'echo "${MINE-none}"', hosts="gpu1", env=env)
    assert answer.stdout == "none\n"
    answer = two.anywhere(
        "--env", "MINE", "--folder", "/", "--", "sh", "-c", 'echo "$MINE"; pwd', hosts="gpu1", env=env
    )
    assert answer.stdout == "1 2'\n3\n/\n"


def test_a_host_without_the_folder_or_the_program_is_left_out_with_its_reason(two):
    answer = two.anywhere("--folder", "/no/such", "--", "true")
    assert answer.returncode == 1
    assert "the folder /no/such cannot be entered there" in answer.stderr and "--folder" in answer.stderr
    answer = two.anywhere("--", "no-such-program")
    assert answer.returncode == 1
    assert "there is no such command on PATH" in answer.stderr


def test_without_waiting_it_is_refused_with_the_reasons_of_every_host(two):
    for host in two.hosts:
        busy(host)
    answer = two.anywhere("--no-wait", "--", "true")
    assert answer.returncode == 75
    assert answer.stderr.count("leased by") == 2
    assert two.anywhere("--wait", "1s", "--", "true").returncode == 124


# Hosts that are not as they should be

OTHER_VERSION = """#!/bin/sh
printf 'berth-envoy 1\\nversion=0.0.1\\nend\\n'
exec cat > /dev/null
"""
TOO_OLD = """#!/bin/sh
echo "berth: unknown command '__envoy'; there are list, run" >&2
exit 2
"""


def test_each_host_that_cannot_is_left_out_with_what_to_do_and_the_others_serve(machines):
    machines.add("gpu1", "1xH100")
    machines.add("gpu2", program="")
    machines.add("gpu3", program=OTHER_VERSION)
    machines.add("gpu4", program=TOO_OLD)
    machines.add_silent("gpu5")
    machines.add_down("gpu6")
    for bad, words in {
        "gpu2": "there is no berth for a shell without a terminal. Install Berth there",
        "gpu3": "its Berth is version 0.0.1",
        "gpu4": "its Berth is too old for --anywhere",
        "gpu6": "it runs no ssh server on this port",
        "gpu7": "no address is known for this name",
    }.items():
        hosts = f"{bad},gpu1"
        if bad == "gpu7":
            machines.ssh_config.write_text(
                "Host gpu7\n  HostName no.such.invalid\n" + machines.ssh_config.read_text()
            )
        alone = machines.anywhere("--", "true", hosts=bad)
        assert (alone.returncode, alone.stdout) == (1, "")
        assert words in alone.stderr and bad in alone.stderr
        answer = machines.anywhere("--", "sh", "-c", WHERE, hosts=hosts)
        assert (answer.returncode, where(answer.stdout)) == (0, "gpu1"), answer.stderr
    answer = machines.anywhere("--", "sh", "-c", WHERE, hosts="gpu5,gpu1")
    assert (answer.returncode, where(answer.stdout)) == (0, "gpu1"), answer.stderr


def test_one_that_asks_a_password_or_has_another_key_is_told_as_such(machines):
    gpu1 = machines.add("gpu1", "1xH100")
    (gpu1.folder / "authorized_keys").write_text("")
    assert "ssh-copy-id gpu1" in machines.anywhere("--", "true").stderr
    machines.known_hosts.write_text("")
    assert "ssh does not know its host key. Run ssh gpu1 true once" in machines.anywhere("--", "true").stderr


def test_a_login_shell_that_prints_disturbs_nothing(machines):
    gpu1 = machines.add("gpu1", "1xH100", program="#!/bin/sh\necho Welcome; echo berth-envoy of the day\n")
    real = gpu1.machine.program
    script = gpu1.folder / "bin/berth"
    script.write_text(script.read_text() + f'exec {real} "$@"\n')
    answer = machines.anywhere("--", "echo", "done")
    assert (answer.returncode, answer.stdout) == (0, "done\n"), answer.stderr


def test_a_host_whose_disk_is_full_leaves_the_others(two):
    gpu1, _ = two.hosts
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=1777", "tmpfs", str(gpu1.machine.leases)]
    if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        assert gpu1.machine.berth("list").status == 0
        filler = gpu1.machine.leases / "full"
        with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        answer = two.anywhere("--", "sh", "-c", WHERE)
        assert (answer.returncode, where(answer.stdout)) == (0, "gpu2"), answer.stderr
    finally:
        subprocess.run(["umount", "-l", str(gpu1.machine.leases)], check=True)


# Names


def test_a_name_that_ssh_or_a_shell_would_read_is_refused(machines):
    machines.add("gpu1", "1xH100")
    answer = machines.run("run", "--anywhere", "--hosts=-oProxyCommand=touch$IFS/tmp/x", "--", "true")
    assert answer.returncode == 2
    assert "host" in answer.stderr


def test_hosts_come_from_the_site_file_and_can_be_named_and_left_out(two):
    two.site.write_text('hosts = ["gpu1", { name = "gpu2", program = "berth" }]\n')
    assert where(two.run("run", "--anywhere", "--host", "gpu2", "--", "sh", "-c", WHERE).stdout) == "gpu2"
    assert where(two.run("run", "--anywhere", "--not-host", "gpu1", "--", "sh", "-c", WHERE).stdout) == "gpu2"
    answer = two.run("run", "--anywhere", "--host", "gpu9", "--", "true")
    assert (answer.returncode, answer.stderr) == (
        2,
        "berth: no host is called 'gpu9'; there are gpu1, gpu2\n",
    )
    two.site.write_text('hosts = ["-v"]\n')
    assert "desk.toml:1" in two.run("run", "--anywhere", "--", "true").stderr
    two.site.write_text("")
    assert "which hosts?" in two.run("run", "--anywhere", "--", "true").stderr
    assert two.run("run", "--hosts", "gpu1", "--", "true").returncode == 2


# Terminals


def test_on_a_terminal_the_command_has_one_with_its_window_and_keys(two):
    script = "tty -s && stty size; trap 'stty size' WINCH; trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.02; done"
    terminal = Terminal(two, "run", "--anywhere", "--hosts", "gpu1,gpu2", "--", "bash", "-c", script)
    seen = terminal.until("ready")
    assert "30 100" in seen and re.search(r"berth: gpu[12]: GPU 0 \(lease [0-9a-f]{6}\)", seen)
    terminal.resize(40, 120)
    terminal.until("40 120")
    terminal.type("\x03")
    terminal.until("interrupted")
    assert terminal.process.wait(timeout=PATIENCE_S) == 3
    eventually(lambda: two.hosts[0].tickets() + two.hosts[1].tickets() == [])


def test_a_terminal_that_goes_ends_the_command_there(two):
    (gpu1, _) = two.hosts
    terminal = Terminal(
        two, "run", "--anywhere", "--hosts", "gpu1", "--", "sh", "-c", "echo ready; exec sleep 1000"
    )
    terminal.until("ready")
    terminal.process.kill()
    eventually(lambda: gpu1.tickets() == [])


def test_a_shell_is_the_users_shell_there(two):
    terminal = Terminal(two, "shell", "--anywhere", "--hosts", "gpu2")
    terminal.until("this shell has GPU 0 until it ends")
    terminal.type("echo in-$((40+2))-$BERTH_DIR; exit 5\n")
    assert "/gpu2/" in terminal.until("in-42-") + terminal.until("gpu2/")
    assert terminal.process.wait(timeout=PATIENCE_S) == 5


def test_a_command_that_cannot_ask_other_hosts_says_which_can(two):
    answer = two.run("pick", "--anywhere")
    assert answer.returncode == 2
    assert "berth pick cannot ask other hosts; these commands can: list, why, queue," in answer.stderr
    claim = two.run("claim", "--anywhere")
    assert claim.returncode == 2
    assert "a claim is for the shell that you are in" in claim.stderr
    assert "berth shell --anywhere" in claim.stderr
    assert two.anywhere("--exec", "--", "true").returncode == 2
    assert two.anywhere("--yield", "--requeue", "--", "true").returncode == 2
