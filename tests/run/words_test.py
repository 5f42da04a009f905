"""What `berth run` and its like say to people: what they got, what they wait for, and what was probably meant."""

import os
import pty
import re
import signal

import pytest
from jobs import eventually
from lease_jobs import holder, leases
from terminal import on_terminal


def test_who_asks_for_it_is_told_which_gpus_it_got(machine):
    assert machine.berth("run", "--", "true").err == ""
    answer = machine.berth("run", "-v", "-n", "2", "--", "true")
    assert re.fullmatch(r"berth: GPU 0,1 \(lease [0-9a-f]{6,}\)\n", answer.err)


def test_on_a_terminal_everybody_is(machine):
    status, text = on_terminal(machine, "run", "--", "echo", "done")
    assert status == 0
    assert re.fullmatch(r"berth: GPU 0 \(lease [0-9a-f]{6,}\)\ndone\nberth: ran \d+ m?s on GPU 0\n", text)


@pytest.mark.parametrize(
    "words, hint",
    [
        (["cd /tmp && ls"], "a line for the shell is written so: berth run -- sh -c 'cd /tmp && ls'"),
        (["FOO=1", "env"], "to set a variable for the command: berth run -- env FOO=1 env"),
        (["{crlf}"], "its lines end as Windows has them: sed -i 's/\\r$//' {crlf}"),
    ],
)
def test_what_was_meant_is_told_where_it_cannot_be_started(machine, words, hint):
    script = machine.directory / "train.sh"
    script.write_bytes(b"#!/bin/sh\r\necho hello\r\n")
    script.chmod(0o755)
    words = [word.replace("{crlf}", str(script)) for word in words]
    answer = machine.berth("run", "--", *words)
    assert answer.status in (126, 127)
    assert answer.err.startswith("berth: ") and answer.err.endswith(
        f"; {hint}\n".replace("{crlf}", str(script))
    )
    assert leases(machine) == []


def test_where_there_is_only_python3_it_is_named(machine):
    programs = machine.directory / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to("/bin/sh")
    answer = machine.berth("run", "--", "python", "train.py", "--seed", "7", env={"PATH": programs})
    told = "there is python3: berth run -- python3 train.py --seed 7"
    assert (answer.status, answer.err) == (127, f"berth: python: there is no such command on PATH; {told}\n")


@pytest.mark.release_only  # a sanitizer needs more address space than the limit
def test_whatever_file_is_typed_as_a_command_is_not_read_without_end(machine):
    fifo = machine.directory / "train"
    os.mkfifo(fifo)
    for word in (fifo, "/dev/zero"):
        # A limit, so that a fault here costs this machine nothing.
        answer = machine.run(
            "sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh", machine.program, "run", "--", word
        )
        assert answer.status == 126
        assert answer.err == f"berth: {word}: Permission denied\n"


def test_a_mask_that_is_inherited_is_named_where_it_makes_one_wait(make_machine):
    machine = make_machine("2xH100")
    holder(machine, "--devices", "1")
    env = {"CUDA_VISIBLE_DEVICES": "1"}
    words = ("run", "--wait", "1s", "--", "true")
    told = "berth: CUDA_VISIBLE_DEVICES=1 is set, so the job waits for no other GPU; "
    answer = machine.berth(*words, env=env)
    assert answer.status == 124
    assert told + "to wait for any: `unset CUDA_VISIBLE_DEVICES` or --mask ignore\n" in answer.err
    assert machine.berth("run", "--mask", "ignore", "--", "true", env=env).status == 0
    holder(machine, "--devices", "0")
    assert told not in machine.berth(*words, env={"CUDA_VISIBLE_DEVICES": "0,1"}).err


def test_a_job_in_the_background_draws_no_live_line(make_machine):
    machine = make_machine("1xH100")
    holder(machine)
    # With job control (-m) a shell gives each job a group of its own, and keeps the terminal.
    script = f"set -m; '{machine.program}' run --wait 3s -- true & wait %1"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve("/bin/bash", ["bash", "-c", script], machine.env | {"TERM": "xterm"})
    written = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        written += piece
    os.close(terminal)
    os.waitpid(pid, 0)
    assert b"waiting for 1 whole GPU" in written
    assert b"\r\x1b[K" not in written
    assert b"gave up after " in written


def test_what_holds_a_lease_after_its_command_is_named(machine):
    job = machine.start_berth("run", "--", "bash", "-c", "exec -a tmux sleep 1000 & echo $!")
    left = int(job.stdout.readline())
    named = eventually(lambda: (out := machine.berth("list").out).count(" has ended, and ") and out)
    assert re.search(
        rf"^the command of lease [0-9a-f]+ has ended, and {left} \(tmux\) still holds it; berth ", named, re.M
    )
    checked = machine.berth("doctor").out
    assert "ssh-agent or tmux that is to stay is started outside of the lease" in " ".join(checked.split())
    os.kill(left, signal.SIGTERM)
    assert job.wait(30) == 0
    assert "has ended" not in machine.berth("list").out


def test_what_holds_the_lease_of_a_command_that_replaced_berth_is_named_too(machine):
    job = machine.start_berth("run", "--exec", "--", "bash", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
    left = int(job.stdout.readline())
    assert job.wait(30) == 0
    assert f"has ended, and {left} (sleep) still holds it" in " ".join(machine.berth("list").out.split())
    os.kill(left, signal.SIGKILL)
    eventually(lambda: leases(machine) == [] or "has ended" not in machine.berth("list").out)


def test_a_range_of_devices_is_each_of_them(machine):
    assert machine.berth("pick", "--devices", "1-3,6").out == "1,2,3,6\n"


def test_a_pick_that_fails_shows_a_script_no_gpu(make_machine):
    machine = make_machine("1xH100")
    holder(machine)
    answer = machine.berth("pick")
    assert (answer.status, answer.out) == (75, "-1\n")
    assert machine.berth("pick", "--json").out == ""
    script = f"export CUDA_VISIBLE_DEVICES=$('{machine.program}' pick); '{machine.program}' list --json >/dev/null; echo $CUDA_VISIBLE_DEVICES"
    assert machine.run("bash", "-c", script).out == "-1\n"
    assert "-1" not in on_terminal(machine, "pick")[1]


def test_init_of_a_simulated_machine_leaves_the_real_one_alone(machine):
    answer = machine.berth("init", env={"BERTH_SIM": "1"})
    assert (answer.status, answer.out) == (2, "")
    assert "would change this machine and not the simulated one" in answer.err


def test_a_key_that_is_not_known_stops_grants_and_not_looks(machine):
    (machine.directory / "site.toml").write_text("hiden_tolerance = '1G'\n")
    wrong = "site.toml:1: unknown key 'hiden_tolerance', did you mean hidden_tolerance?"
    for look in ("list", "queue", "why"):
        answer = machine.berth(look)
        assert answer.status == 0
        assert wrong in answer.err and answer.err.endswith("; nothing is granted until it is corrected\n")
    for words in (["pick"], ["run", "--", "true"], ["claim"]):
        answer = machine.berth(*words)
        assert answer.status == 1
        assert wrong in answer.err
    assert wrong in " ".join(machine.berth("doctor").out.split())


@pytest.mark.parametrize("typed", ["train", "{folder}/train"])
def test_a_script_whose_interpreter_is_gone_is_not_said_to_be_missing(machine, typed):
    script = machine.directory / "train"
    script.write_text("#!/nowhere/python\n")
    script.chmod(0o755)
    env = {"PATH": f"{machine.directory}:{machine.env['PATH']}"}
    answer = machine.berth("run", "--", typed.format(folder=machine.directory), env=env)
    assert answer.status == 127
    assert answer.err == (
        f"berth: {script}: this file is there, but not the program that its first line names to run it\n"
    )
