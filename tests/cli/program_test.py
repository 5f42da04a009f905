"""What holds for the program as a whole, whatever the command."""

import os
import pathlib
import re
import subprocess

import pytest
from schemas import checked
from terminal import on_terminal

ROOT = pathlib.Path(__file__).parents[2]
COMMANDS = ["list", "pick", "why", "run", "submit", "sbatch", "each", "jobs", "log", "attach", "wait", "edit", "retry", "forget", "receipt", "shell", "claim", "adopt", "queue", "timeline", "top", "mcp", "serve", "store", "usage", "simulate", "release",
            "extend", "cancel", "verify", "exclude", "include", "init", "prolog", "epilog", "doctor", "completion", "version", "help"]  # fmt: skip


def test_version(machine):
    answer = machine.berth("--version")
    assert (answer.status, answer.err) == (0, "")
    assert re.fullmatch(r"berth \d+\.\d+\.\d+\n", answer.out)
    assert machine.berth("version").out == answer.out
    assert f"berth {checked(machine.berth('version', '--json'), 'version')['berth']}\n" == answer.out


def test_help_names_every_command_and_every_command_has_help(machine):
    first = machine.berth("help").out
    assert first == machine.berth("--help").out == machine.berth("-h").out
    lines = first.splitlines()
    assert len(lines) < 24 and max(map(len, lines)) <= 80
    named = re.findall(r"^  (\w+)", first, re.MULTILINE)
    assert len(named) == 12
    named += [
        name for more in re.findall(r"\(more: (.*)\)$", first, re.MULTILINE) for name in more.split(", ")
    ]
    assert sorted(named) == sorted(COMMANDS)
    text = machine.berth("help", "--all").out
    assert sorted(re.findall(r"^  (\w+)", text, re.MULTILINE)) == sorted(COMMANDS)
    for command in COMMANDS:
        answer = machine.berth(command, "--help")
        assert answer.status == 0
        assert answer.out.startswith(f"berth {command}: ")
        assert machine.berth("help", command).out == answer.out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_an_example(machine, command):
    """It is of this command, and has no option that the command does not know. The manual page is made from the same text."""
    text = machine.berth(command, "--help").out
    examples = re.findall(rf"^    (.*\bberth {command}\b.*)$", text, re.MULTILINE)
    assert examples
    known = set(re.findall(r"(?<![\w-])(--?[a-zA-Z][a-z-]*)", text))
    for example in examples:
        ours = re.split(r" -- | #|\||\)", example.partition("berth ")[2])[0]
        assert set(re.findall(r"(?<=\s)--?[a-zA-Z][a-z-]*", ours)) <= known, example


def test_the_manual_has_an_example_of_each_command_that_its_help_has_too(machine):
    table = (ROOT / "docs/manual.md").read_text().partition("| For example |")[2].partition("\n\n")[0]
    shown = set()
    for names, example in re.findall(
        r"^\| `(?:sudo )?berth (.*?)\| [A-Z].* \| `(.*)` \|$", table, re.MULTILINE
    ):
        command = names.split()[0].rstrip("`,")
        shown |= {command} | set(re.findall(r", `(\w+)", names))
        assert f"    {example}" in machine.berth(command, "--help").out, command
    assert shown - {"ls"} == set(COMMANDS)


@pytest.mark.parametrize(
    "words, message",
    [
        (["pik"], "unknown command 'pik', did you mean pick?; `berth help` lists the commands\n"),
        (["xyzzy"], "unknown command 'xyzzy'; `berth help` lists the commands\n"),
        (["lease"], "unknown command 'lease', did you mean run or claim?; `berth help` lists the commands\n"),
        (["status"], "unknown command 'status', did you mean list?; `berth help` lists the commands\n"),
        (["sleep", "3"], "unknown command 'sleep' (to run that program: berth run -- sleep); `berth help` "),
        (["run", "--gpus", "2", "--", "true"], "--gpus is Slurm's: write -n 2"),
        (
            ["run", "-g", "2", "--", "true"],
            "-g is not there: -n 2 says how many GPUs, --devices 0,1 says which",
        ),
        (["squeue"], "unknown command 'squeue', did you mean queue?; "),
        (["nvitop"], "unknown command 'nvitop', did you mean top?; "),
        (["list", "-i", "0"], "unknown option '-i', did you mean --devices?; "),
        (["-i", "0"], "unknown option '-i', did you mean --devices?; "),
        (["run", "--n", "2", "--", "true"], "unknown option '--n', did you mean -n (--count)?; "),
        (["run", "--gres=gpu:1", "--", "true"], "--gres is Slurm's: write -n 1"),
        (["list", "--hub", "http://hub", "-l"], "-l and --devices are for this machine, not for others"),
        (["list", "--devices", "9"], 'there is no device "9": this machine has 0-7'),
        (
            ["pick", "--mem=20G"],
            "--mem is memory of the machine in Slurm, and Berth does not limit that; for memory of a GPU write "
            "--memory\n",
        ),
        (["run", "--gpus", "all", "--", "true"], "--gpus is Docker's: write -n with the number of GPUs"),
        (["run", "-it", "--", "true"], "-it is not needed: the command has your input and your terminal\n"),
        (["run", "--rm", "--", "true"], "--rm is not needed: "),
        (["run", "--priority", "3", "--", "true"], "--priority is not needed: the queue has no priorities; "),
        (["submit", "--delay", "1h", "--", "true"], "unknown option '--delay', did you mean --at?; "),
        (
            ["submit", "--depends-on", "3", "--", "true"],
            "unknown option '--depends-on', did you mean --after?; ",
        ),
        (["run", "-d", "0", "--", "true"], "unknown option '-d', did you mean --devices?; "),
        (["submit", "-d", "afterok:7", "--", "true"], "-d is Slurm's: write --after-ok=7"),
        (["log", "--lines", "5"], "unknown option '--lines', did you mean --tail?; "),
        (["serve", "--port", "80"], "unknown option '--port', did you mean --listen?; "),
        (["hold", "3"], "unknown command 'hold', did you mean edit JOB --hold?; "),
        (["resume", "3"], "unknown command 'resume', did you mean edit JOB --no-hold?; "),
        (["history"], "unknown command 'history', did you mean receipt or usage?; "),
        (["info"], "unknown command 'info', did you mean list?; "),
        (["watch"], "unknown command 'watch', did you mean top?; "),
        (["-v"], "-v is not there: --version says the version, and `berth list -l` shows more\n"),
        (["rm", "3"], "unknown command 'rm', did you mean cancel or forget?; "),
        (["stop", "3"], "unknown command 'stop', did you mean cancel or release?; "),
        (["switch", "3", "4"], "unknown command 'switch', did you mean edit JOB --before OTHER?; "),
        (["reset"], "unknown command 'reset', did you mean cancel --all?; "),
        (["parallel", "2"], "parallel is not needed: as many jobs run as there are GPUs for; "),
        (["gflowd", "up"], "gflowd is not needed: no service runs; `berth help` lists the commands\n"),
        (
            ["run", "--gpus", "device=0,2", "--", "true"],
            "--gpus device=0,2 is Docker's: write --devices 0,2\n",
        ),
        (["run", "--gpus", '"device=1"', "--", "true"], "--gpus device=1 is Docker's: write --devices 1\n"),
        (["run", "--gpu", "0", "--", "true"], "--gpu is not there: -n 2 says how many GPUs, --devices 0,1"),
        (["run", "-d", "--", "true"], "-d is Docker's: `berth submit` runs it without your terminal\n"),
        (
            ["run", "-i", "-t", "--", "true"],
            "-i is not needed: the command has your input and your terminal\n",
        ),
        (
            ["run", "-o", "x", "--", "true"],
            "-o is Slurm's: berth run -- COMMAND > FILE, or `berth submit -o ",
        ),
        (["run", "-e", "A=1", "--", "true"], "-e is not needed: the command has your environment; "),
        (
            ["run", "--env", "A=1", "--", "true"],
            "--folder, --env and --near need --anywhere; to set a variable: berth run -- env A=1 COMMAND\n",
        ),
        (["submit", "-D", "/tmp", "--", "true"], "-D is not there: it runs in the folder in which you are"),
        (["run", "--nodes=1", "--", "true"], "--nodes is Slurm's: leave it out; what is run has one machine"),
        (
            ["submit", "--requeue", "--", "true"],
            "--requeue is for jobs that yield: add --yield; --rerun runs a job again that ",
        ),
        (
            ["queue", "-u", "ada"],
            "-u is not there: `berth list` and `berth queue` show all users, and `| grep USER` leaves the lines of ",
        ),
        (["cancel", "-u", "ada"], "unknown option '-u', did you mean --all?; "),
        (["jobs", "--all"], "--all is not needed: all of them are shown\n"),
        (["why", "-i", "0"], "unknown option '-i', did you mean --devices?; "),
        (["list", "--format=csv"], "unknown option '--format=csv', did you mean --csv?; "),
        (["cancel", "all"], "no job of yours is called all; --all means all\n"),
        (["run", "--name", "--", "true"], "--name needs a value: TEXT\n"),
        (["submit", "--memory", "--", "true"], "--memory needs a value: SIZE\n"),
        (["run", "--notify-on", "start", "--", "true"], "--notify-on says when to tell: --notify says whom"),
        (["submit", "--notify-on", "end", "--", "true"], "--notify-on says when to tell: --notify says whom"),
        (
            ["run", "-n", "99", "--", "true"],
            "99 GPUs are asked for, and a lease holds 56 at most; `berth list` ",
        ),
        (["why", "--devices", "3-0"], "--devices 3-0: a range goes from the lower index to the higher: 0-3"),
        (
            ["run", "--wait", "1h30", "--", "true"],
            '--wait 1h30: "1h30" is not a time: expected a number and ',
        ),
        (["--jsn"], "unknown option '--jsn'"),
        (["help", "xyzzy"], "there is no command 'xyzzy'; `berth help` lists them"),
        (["completion"], "completion for which shell? bash, zsh or fish"),
        (["completion", "tcsh"], "completion for which shell? bash, zsh or fish"),
        (["run"], "run which command? berth run [OPTIONS] -- COMMAND [ARG...]"),
        (["list", "--source", "x"], "--source x: must be one of nvml, nvidia-smi, amd, auto"),
        (["list", "--watch=soon"], "--watch soon: "),
    ],
)
def test_a_wrong_command_line_is_2_and_says_what_is_allowed(machine, words, message):
    answer = machine.berth(*words)
    assert (answer.status, answer.out) == (2, "-1\n" if words[0] == "pick" else "")
    assert answer.err.startswith(f"berth: {message}")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["list"], ["pick"], ["why"], ["doctor"], ["version"], ["help"], ["completion", "bash"]]
)
def test_an_answer_that_cannot_be_written_is_a_failure(machine, words):
    with open("/dev/full", "w") as full:
        answer = machine.berth(*words, stdout=full)
    assert answer.status == 1
    assert answer.err.endswith("berth: writing the answer: No space left on device\n")


def test_a_closed_stdout_is_a_failure_and_no_file_is_written_in_its_place(machine):
    answer = machine.run("sh", "-c", f"{machine.program} pick >&-")
    assert answer.status == 1
    assert answer.err == "berth: writing the answer: Bad file descriptor\n"


def test_all_standard_descriptors_closed_still_ends(machine):
    assert machine.run("sh", "-c", f"{machine.program} pick <&- >&- 2>&-").status == 1


def test_a_reader_that_has_gone_is_a_failure_and_no_signal(machine):
    ours, theirs = os.pipe()
    os.close(ours)
    answer = machine.berth("list", stdout=theirs)
    os.close(theirs)
    assert answer.status == 1
    assert "Broken pipe" in answer.err


def test_sim_is_understood_before_and_after_the_command(machine):
    clean = {"BERTH_SIM": None, "LD_LIBRARY_PATH": None, "BERTH_DIR": None}
    for words in (
        ["--sim", machine.file, "pick"],
        ["pick", "--sim", machine.file],
        ["pick", f"--sim={machine.file}"],
    ):
        answer = machine.berth(*words, env=clean)
        assert (answer.status, answer.out) == (0, "0\n"), answer.err
    answer = machine.berth("pick", "--sim=", env=clean)
    assert answer.status == 2


def test_jobs_and_receipts_of_a_simulated_machine_are_apart_from_those_of_the_user(machine):
    def inside(*words):
        answer = machine.berth("--sim", machine.file, *words)
        assert answer.status == 0, answer.err
        return answer

    assert inside("submit", "--", "true").out == "1\n"
    inside("wait", "1")
    inside("run", "--", "true")
    assert [each["id"] for each in inside("jobs", "--json").json["jobs"]] == ["1"]
    assert not (machine.directory / "home/.local").exists()
    assert machine.berth("submit", "--", "true").out == "1\n"
    assert machine.berth("wait", "1").status == 0
    inside("forget", "1")
    assert [each["id"] for each in machine.berth("jobs", "--json").json["jobs"]] == ["1"]


def test_a_malformed_machine_is_a_wrong_use_with_file_and_line(machine, tmp_path):
    scenario = tmp_path / "bad.toml"
    scenario.write_text('[[device]]\nmodel = "Hundred"\n')
    for words in (
        ["--sim", scenario, "list"],
        ["pick", "--sim", scenario],
        ["run", "--sim", scenario, "true"],
    ):
        answer = machine.berth(*words)
        assert (answer.status, answer.out) == (2, "")
        assert answer.err.startswith(f"berth-sim: {scenario}:2: ") and "Hundred" in answer.err
    assert machine.run(machine.build / "sim/berth-sim", scenario, "--", "true").status == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_option(machine, shell):
    script = machine.berth("completion", shell)
    assert (script.status, script.err) == (0, "")
    for word in [*COMMANDS, "count", "where", "mem-util", "hold", "watch"]:
        assert word in script.out
    assert "__probe" not in script.out


def options_of(machine, command) -> set[str]:
    help_text = machine.berth(command, "--help").out
    return set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", help_text, re.MULTILINE))


def complete(machine, *words) -> list[str]:
    """What bash would offer at the end of this line."""
    line = " ".join(f"'{word}'" for word in words)
    script = f"""
source <({machine.program} completion bash)
COMP_WORDS=({line}); COMP_CWORD=$(({len(words)} - 1))
_berth
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return machine.run("bash", "--norc", "-c", script).out.split()


def test_bash_completes_commands_options_and_values(machine):
    assert complete(machine, "berth", "pi") == ["pick"]
    assert complete(machine, "berth", "pick", "--mem") == ["--mem-util", "--memory"]
    assert complete(machine, "berth", "pick", "--ids", "") == ["index", "uuid"]
    assert complete(machine, "berth", "completion", "") == [
        "bash",
        "zsh",
        "fish",
        "--help",
    ] or "bash" in complete(machine, "berth", "completion", "")
    assert complete(machine, "berth", "--sim", "8xH100", "li") == ["list"]
    assert complete(machine, "berth", "ls", "--w") == ["--watch"]


def test_what_others_habits_mean_is_there(machine):
    """A command or an option that a message names can be typed."""
    source = (ROOT / "src/run/command/habits.cpp").read_text()
    pairs = re.findall(r'^    \{"([^"]+)", "([^"]+)"\}', source, re.MULTILINE)
    assert len(pairs) > 40
    known = set(COMMANDS)
    options = {f"--{name}" for each in [*COMMANDS, "help"] for name in options_of(machine, each)} | {
        "--version"
    }
    for _, meant in pairs:
        for one in meant.split(" or "):
            words = one.split()
            if words[0].startswith("--"):
                assert words[0] in options, meant
                continue
            assert words[0] in known, meant
            assert {word[2:] for word in words if word.startswith("--")} <= options_of(machine, words[0]), (
                meant
            )


def test_the_manual_page_has_every_option_and_is_sound_roff(machine):
    page = machine.berth("__manual").out
    for command in COMMANDS:
        for option in options_of(machine, command):
            assert f"\\-\\-{option.replace('-', chr(92) + '-')}\\fR" in page, option
    for section in ("EXIT STATUS", "ENVIRONMENT", "FILES"):
        assert f".SH {section}\n" in page
    checker = subprocess.run(["sh", "-c", "command -v groff"], capture_output=True)
    if checker.returncode != 0:
        pytest.skip("needs groff")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, text=True, capture_output=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_message_is_folded_between_words_on_a_terminal_and_nowhere_else(machine):
    words = ["run", "--wait", "1h30" + "x" * 40 + " y" * 30, "--", "true"]
    whole = machine.berth(*words).err
    assert whole.count("\n") == 1 and len(whole) > 160
    status, shown = on_terminal(machine, *words)
    assert status == 2
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert shown.replace("\n", " ") == whole.replace("\n", " ")
