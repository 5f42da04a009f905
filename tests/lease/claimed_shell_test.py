"""A shell with a claim, as its user types into it: real shells on a pseudo-terminal."""

import os
import pty
import re
import select
import shutil
import signal
import sys
import time

import pytest
from lease_jobs import USES_DEVICES, alive, eventually, holder, leases, only_lease
from simulated_machine import DEADLINE_S
from terminal import on_terminal

# Not run in a sanitized build yet.
pytestmark = pytest.mark.release_only

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
EVERY_SHELL = pytest.mark.parametrize("kind", SHELLS)


class Shell:
    """One that somebody types into. What is said is told by its lines that begin with a mark."""

    def __init__(self, machine, kind: str, env: dict | None = None):
        if shutil.which(kind) is None:
            pytest.skip(f"needs {kind}")
        self.machine, self.kind, self.marks = machine, kind, 0
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            variables = machine.env | {"TERM": "dumb", "PS1": "$ "} | (env or {})
            os.execvpe(kind, SHELLS[kind], {name: str(value) for name, value in variables.items()})
        self.text = ""

    def type(self, line: str) -> None:
        os.write(self.terminal, (line + "\n").encode())

    def until(self, words: str) -> str:
        """All that was written up to these words."""
        deadline = time.monotonic() + DEADLINE_S
        while words not in self.text:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.terminal], [], [], left)[0], self.text
            self.text += os.read(self.terminal, 65536).decode(errors="replace")
        before, self.text = self.text.split(words, 1)
        return before

    def says(self, line: str) -> str:
        """What the line writes."""
        self.marks += 1
        # In two pieces, so that the line as it is typed is not taken for what it writes.
        self.type(f"echo beg'in'{self.marks}; {line}; echo en'd'{self.marks}")
        self.until(f"begin{self.marks}")
        return self.until(f"end{self.marks}").strip()

    def claim(self, options: str = "") -> str:
        words = f"{self.machine.program} claim {options}"
        return self.says(f"{words} | source" if self.kind == "fish" else f'eval "$({words})"')

    def variables(self) -> list[str]:
        names = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "BERTH_LEASE")
        return self.says("echo " + " ".join(f'"<${name}>"' for name in names)).split()[-3:]

    def close(self) -> None:
        os.close(self.terminal)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@pytest.fixture
def shell(make_machine):
    shells = []

    def start(kind: str, machine: str = "8xH100", env: dict | None = None) -> Shell:
        shells.append(Shell(make_machine(machine), kind, env))
        return shells[-1]

    yield start
    for each in shells:
        each.close()


CLEARED = ["<>", "<>", "<>"]


@EVERY_SHELL
def test_after_a_release_the_next_command_is_on_nobodys_gpu(shell, kind):
    it = shell(kind)
    it.claim("--devices 3")
    lease = only_lease(it.machine)
    assert it.variables() == ["<3>", "<PCI_BUS_ID>", f"<{lease}>"]
    it.says(f"{it.machine.program} release")
    assert it.variables() == CLEARED


@EVERY_SHELL
def test_it_is_told_that_the_variables_were_cleared(shell, kind):
    it = shell(kind)
    it.claim("--devices 3")
    lease = only_lease(it.machine)
    it.type(f"{it.machine.program} release")
    it.until(f"berth: the lease {lease[-6:]} has ended: CUDA_VISIBLE_DEVICES is cleared")


@EVERY_SHELL
def test_a_shell_that_idles_at_its_prompt_when_the_time_is_over_starts_nothing_on_the_gpu(shell, kind):
    it = shell(kind)
    it.claim("--time 1s --devices 3")
    it.says("true")
    eventually(lambda: leases(it.machine) == [])
    it.until("its time of 1s is over")
    # Nothing was typed since: the prompt that is shown is of before.
    assert it.variables() == CLEARED


def test_it_is_told_that_its_index_means_another_card_when_one_before_it_has_gone(shell):
    it = shell("bash", "3xH100", {"BERTH_SAMPLE": "20ms"})
    it.claim("--devices 1")
    uuids = [each["uuid"] for each in it.machine.berth("list", "--json").json["devices"]]
    rest = "".join(f'[[device]]\nmodel = "H100"\nuuid = "{uuid}"\n' for uuid in uuids[1:])
    it.machine.change(rest)
    it.until("with CUDA_VISIBLE_DEVICES=1, a program of this lease")
    it.until(f"set CUDA_VISIBLE_DEVICES={uuids[1]}")


def test_a_notice_of_a_claim_that_cannot_be_sent_is_named_on_the_terminal(shell):
    it = shell("bash")
    it.type(f"eval \"$({it.machine.program} claim --notify 'cmd:exit 3' --notify-on start)\"")
    it.until("berth: the notice to cmd:exit 3 about its start was not sent: exit status 3")


@EVERY_SHELL
def test_the_end_of_the_keeper_clears_them_at_the_next_prompt(shell, kind):
    it = shell(kind)
    it.claim("--devices 3")
    (lease,) = it.machine.berth("list", "--json").json["leases"]
    os.kill(lease["pid"], signal.SIGKILL)
    eventually(lambda: not alive(lease["pid"]))
    it.says("true")
    assert it.variables() == CLEARED


@EVERY_SHELL
def test_what_was_set_since_is_left_as_it_is(shell, kind):
    it = shell(kind)
    it.claim("--devices 3")
    it.says("set -gx CUDA_VISIBLE_DEVICES 6" if kind == "fish" else "export CUDA_VISIBLE_DEVICES=6")
    it.says(f"{it.machine.program} release")
    assert it.variables() == ["<6>", "<>", "<>"]


@EVERY_SHELL
def test_a_mask_of_before_comes_back_and_bounds_every_claim(shell, kind):
    it = shell(kind, env={"CUDA_VISIBLE_DEVICES": "4,5"})
    it.claim("--devices 5")
    it.claim()
    assert it.variables()[0] == "<4>"
    status = "$status" if kind == "fish" else "$?"
    assert it.says(f"{it.machine.program} claim --no-wait >/dev/null 2>&1; echo {status}").endswith("75")
    it.says(f"{it.machine.program} release")
    assert it.variables()[0] == "<5>"
    it.says(f"{it.machine.program} release")
    assert it.variables()[0] == "<4,5>"


@EVERY_SHELL
def test_if_the_first_lease_ends_while_a_second_one_is_waited_for_nothing_of_it_comes_back(shell, kind):
    it = shell(kind, machine="2xH100")
    it.claim("--devices 0")
    first = only_lease(it.machine)
    holder(it.machine, "--devices", "1")
    words = f"{it.machine.program} claim"
    it.type(f"{words} | source" if kind == "fish" else f'eval "$({words})"')
    eventually(lambda: it.machine.berth("queue", "--json").json["waiters"])
    assert it.machine.berth("release", first).status == 0
    assert it.variables()[:2] == ["<0>", "<PCI_BUS_ID>"]
    assert "beside" not in it.text
    second = max(leases(it.machine))
    it.says(f"{it.machine.program} release {second}")
    assert it.variables() == CLEARED


@EVERY_SHELL
def test_a_second_claim_is_another_gpu_beside(shell, kind):
    it = shell(kind)
    it.claim("--devices 3")
    first = only_lease(it.machine)
    said = " ".join(it.claim("--devices 6").split())
    second = max(leases(it.machine))
    assert re.search(
        r"berth: this shell now uses GPU 6 \(lease \w{6}\); you still hold GPU 3 \(lease \w{6}\)", said
    )
    assert it.variables() == ["<6>", "<PCI_BUS_ID>", f"<{second}>"]
    assert leases(it.machine) == [first, second]
    it.says(f"{it.machine.program} release")
    assert it.variables() == ["<3>", "<PCI_BUS_ID>", f"<{first}>"]
    it.says(f"{it.machine.program} release")
    assert it.variables() == CLEARED


@EVERY_SHELL
def test_claims_may_end_in_any_order(shell, kind):
    it = shell(kind)
    it.claim("--devices 3")
    first = only_lease(it.machine)
    it.claim("--devices 6")
    it.says(f"{it.machine.program} release {first}")
    assert it.variables()[0] == "<6>"
    it.says(f"{it.machine.program} release")
    assert it.variables() == CLEARED


@EVERY_SHELL
def test_inside_takes_a_part_of_the_claim(shell, kind):
    it = shell(kind)
    it.claim("--devices 3,4")
    outer = only_lease(it.machine)
    it.claim("--inside")
    visible, _, inner = it.variables()
    assert visible == "<3>"
    assert re.fullmatch(f"<{outer}/[0-9a-f]{{16}}>", inner)
    it.says(f"{it.machine.program} release")
    assert it.variables()[0] == "<3,4>"
    it.says(f"{it.machine.program} release")
    assert it.variables() == CLEARED


def test_what_it_runs_on_either_gpu_belongs_to_the_lease_of_that_gpu(shell, tmp_path):
    program = tmp_path / "uses.py"
    program.write_text(USES_DEVICES)
    it = shell("bash")
    it.claim("--devices 3")
    it.claim("--devices 6")
    ids = leases(it.machine)
    for mask in "3", "6":
        it.type(f"CUDA_VISIBLE_DEVICES={mask} {sys.executable} {program} 0 &")

    def seen():
        devices = it.machine.berth("list", "--json").json["devices"]
        return [(d["index"], p["lease"]) for d in devices for p in d["processes"]]

    eventually(lambda: seen() == [(3, ids[0]), (6, ids[1])])


@pytest.mark.parametrize("options", ["", "--devices 0"])
def test_a_claim_that_could_only_wait_for_itself_is_refused(shell, options):
    it = shell("bash", "1xT4")
    it.claim()
    said = " ".join(it.claim(options).split())
    assert "it would wait for itself: it has GPU 0 (lease" in said
    assert "berth release" in said and "--inside" in said
    assert len(leases(it.machine)) == 1
    assert it.variables()[0] == "<0>"


def test_a_claim_that_could_only_wait_for_its_own_limit_is_refused(make_machine):
    machine = make_machine("8xH100")
    (machine.directory / "site.toml").write_text("[limits]\ngpus = 4\n")
    it = Shell(machine, "bash")
    try:
        it.claim("-n 3")
        it.claim("-n 1 --time 1h")
        said = " ".join(it.claim("-n 2").split())
        assert "it would wait for itself: it has GPU 0,1,2 (lease" in said
        assert "already, and your limit is 4 GPUs at the same time (limits.gpus in the site file)" in said
        assert len(leases(machine)) == 2
    finally:
        it.close()


def test_one_that_others_could_make_room_for_waits(make_machine):
    machine = make_machine("2xT4")
    other = holder(machine)
    it = Shell(machine, "bash")
    try:
        it.claim()
        it.type(f"eval \"$({machine.program} claim)\"; echo se'cond'")
        eventually(lambda: len(machine.berth("queue", "--json").json["waiters"]) == 1)
        other.kill()
        it.until("second")
        assert len(machine.berth("list", "--json").json["leases"]) == 2
    finally:
        it.close()


def test_hooks_of_the_user_stay(shell):
    it = shell("bash")
    it.says("seen=0; PROMPT_COMMAND='seen=$((seen + 1));'; trap 'echo mine' URG")
    it.claim("--devices 3")
    before = int(it.says("echo $seen"))
    it.says(f"{it.machine.program} release")
    assert int(it.says("echo $seen")) > before
    assert it.variables() == CLEARED
    assert "mine" in it.says("kill -URG $$; true")


def test_a_shell_within_is_not_troubled_by_the_hook(shell):
    it = shell("bash")
    it.says("export PROMPT_COMMAND=true")
    it.claim("--devices 3")
    it.type("bash --norc --noprofile -i")
    assert "not found" not in it.says("true") + it.says("true")


@pytest.mark.parametrize("kind", ["bash", "zsh"])
def test_a_status_is_what_it_was_behind_the_hook(shell, kind):
    it = shell(kind)
    it.claim()
    it.type("(exit 7)")
    it.type("echo sta'tus' $?")
    assert it.until("status 7")


def test_where_a_directory_has_an_odd_name_its_words_stay_one(make_machine, tmp_path):
    machine = make_machine("8xH100")
    odd = tmp_path / "it's a \\ $dir"
    odd.mkdir(mode=0o755)
    machine.env["BERTH_DIR"] = str(odd / "berth")
    for kind in SHELLS:
        it = Shell(machine, kind)
        try:
            it.claim("--devices 3")
            assert it.variables()[0] == "<3>"
            it.says(f"{machine.program} release")
            assert it.variables() == CLEARED
        finally:
            it.close()


def test_on_a_terminal_that_nobody_evaluates_it_leases_nothing_and_says_the_line(machine):
    status, text = on_terminal(machine, "claim", "-n", "2", "--note", "two words", columns=200)
    assert status == 2
    assert text.endswith("type: eval \"$(berth claim -n 2 --note 'two words')\"\n")
    assert leases(machine) == []


def test_a_script_gets_no_hooks(machine):
    script = f'eval "$({machine.program} claim)"; echo "<${{PROMPT_COMMAND-}}>"; trap; declare -F'
    assert machine.run("bash", "-c", script).out == "<>\n"
