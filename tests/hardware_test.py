"""What `./dev hardware` packs, run as on a machine with a GPU: from a folder that has nothing else, on the simulated driver."""

import json
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
from simulated_machine import BUILD

pytestmark = pytest.mark.release_only

ROOT = pathlib.Path(__file__).parents[1]
PATIENCE_S = 300  # a hang guard for a whole run, which takes some seconds on a machine that does nothing else
# No check of a healthy driver is cut off by the load of this machine.
UNHURRIED = ("--bound", "120")
HUNG_S = 6  # for a check that hangs in any case
PYTHON = "/usr/bin/python3"

# The rows that two H100 without MIG, of one model, cannot show.
HIDDEN = "wake lost cgroup module reload integrated pids mps mig hang".split()
SHOWN = "symbols memory uuids order entries draining handover lease receipt trial shares accounting energy health xid smi nvlink nvswitch times".split()


def dev(*words):
    return subprocess.run([ROOT / "dev", *words], capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.fixture(scope="session")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed")
    done = dev("hardware", "--pack", "--build", BUILD, "--to", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"with the program of {BUILD}, of " in done.stdout
    return folder / "berth-hardware.tar.gz"


class Unpacked:
    """The folder on a machine, and what a run leaves there."""

    def __init__(self, archive, folder):
        self.top = folder / "berth-hardware"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.results = folder / "results.json"
        subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
        self.packed = self.state()

    def state(self):
        return {path.name: path.stat().st_mtime_ns for path in self.top.rglob("*")}

    def words(self, *words):
        return [self.top / "run", "--json", self.results, *words]

    def env(self, more):
        return {"PYTHON": PYTHON, "TMPDIR": self.temporary, **more}

    def run(self, machine, *words, env=None, **options):
        answer = machine.run(
            *self.words(*words),
            env=self.env(env or {}),
            cwd=self.temporary,
            timeout=PATIENCE_S,
            **options,
        )
        self.leaves_nothing(machine)
        return answer

    def leaves_nothing(self, machine):
        assert machine.inhabitants() == []
        assert list(self.temporary.iterdir()) == []
        assert self.state() == self.packed

    def outcomes(self):
        return {row["row"]: row["outcome"] for row in json.loads(self.results.read_text())["rows"]}

    def came(self, row):
        rows = json.loads(self.results.read_text())["rows"]
        return next(one["came"] for one in rows if one["row"] == row)


@pytest.fixture
def unpacked(archive, tmp_path):
    return Unpacked(archive, tmp_path)


def other_pythons():
    """Of other versions than the system's, the oldest first: those on the PATH, and pyenv's."""
    names = [shutil.which(f"python3.{minor}") for minor in range(8, 16)]
    if shutil.which("pyenv"):
        root = subprocess.run(["pyenv", "root"], capture_output=True, text=True).stdout.strip()
        names += map(str, pathlib.Path(root).glob("versions/3.*/bin/python3"))
    found = {}
    for name in filter(None, [PYTHON, *names]):
        words = [name, "-c", "import sys; print(*sys.version_info[:2], sys.executable)"]
        said = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S).stdout.split()
        version = tuple(map(int, said[:2]))
        if version >= (3, 8):
            found.setdefault(version, said[2])
    _, *others = found.items()
    return [python for _, python in sorted(others)]


def changing_calls(machine):
    log = (machine.file.parent / f"{machine.file.name}.d/calls.log").read_text()
    calls = set(re.findall(r"\bnvml\w+", log))
    assert len(calls) > 30
    return [call for call in calls if re.search(r"Device(Set|Clear|Reset|Create|Remove|Modify)", call)]


def test_every_row_is_run_and_nothing_is_left(unpacked, make_machine):
    machine = make_machine('call_log = true\n[[device]]\nmodel = "H100"\ncount = 2\n')
    answer = unpacked.run(machine, *UNHURRIED)
    assert (answer.status, answer.err) == (0, "")
    said, _, table = answer.out.partition("\n\n| Row | GPU, driver | Result |\n|---|---|---|\n")
    first, shown, program, *lines = said.splitlines()
    assert first == f"{len(lines)} rows in about a minute, in 470 s at most"
    assert shown == "2 × NVIDIA H100 80GB HBM3, 550.163.01"
    assert program.startswith("berth ") and f"(the program of {BUILD}, of " in program
    *shown, _, last = table.splitlines()
    assert last == f"written: {unpacked.results}"
    assert [row.split("`")[1] for row in shown] == [row for row in unpacked.outcomes() if row in SHOWN]
    expected = {**dict.fromkeys(HIDDEN, "not shown"), **dict.fromkeys(SHOWN, "seen")}
    assert unpacked.outcomes() == expected, answer.out
    assert [line[:10].strip() for line in lines] == list(unpacked.outcomes().values())
    results = json.loads(unpacked.results.read_text())
    assert (results["complete"], results["simulated"], results["driver"]) == (True, True, "550.163.01")
    assert changing_calls(machine) == []


def test_any_python_runs_it(unpacked, make_machine):
    others = other_pythons()
    if not others:
        pytest.skip("needs another version of Python")
    machine = make_machine("2xH100")
    for python in {others[0], others[-1]}:
        env = {"PYTHON": python, "PYTHONIOENCODING": "ascii"}
        answer = unpacked.run(machine, "--only", "start,memory,processes,lease", *UNHURRIED, env=env)
        assert (answer.status, answer.err) == (0, "")
        outcomes = unpacked.outcomes()
        assert "otherwise" not in outcomes.values() and outcomes["lease"] == outcomes["entries"] == "seen"


@pytest.mark.parametrize(
    "machine, check, row, outcome, came",
    [
        ('driver = "535.54.03"\n[[device]]\nmodel = "H100"\n', "processes", "entries", "seen", "v3 32, v2 24"),
        ('driver = "450.80.02"\n[[device]]\nmodel = "V100"\n', "processes", "entries", "seen", "unsuffixed 16"),
        ('driver = "450.80.02"\n[[device]]\nmodel = "V100"\n', "memory", "memory", "not shown", "only the older call"),
        ('[[device]]\nmodel = "H100"\npersistence = false\n', "start", "wake", "seen", "no persistence mode: GPU 0"),
        ('[[device]]\nmodel = "H100"\nhandle_result = 4\n[[device]]\nmodel = "T4"\n', "start", "cgroup", "seen", "GPU 0 answers 4"),
        ('[[device]]\nmodel = "H100"\nlost = true\n[[device]]\nmodel = "T4"\n', "start", "lost", "seen", "ends with 15, -i 1 ends with 0"),
        ('[[device]]\nmodel = "GB10"\n', "integrated", "integrated", "seen", "answers 3"),
        ('[[device]]\nmodel = "GB10"\nunified_memory = "system"\n', "integrated", "integrated", "otherwise", "total of"),
        ('[[device]]\nmodel = "T4"\n', "order", "order", "not shown", "one GPU"),
        ('[[device]]\nmodel = "A100"\nmig = ["3g.20gb", "3g.20gb"]\n', "mig", "mig", "seen", "its instances 0 processes, 0 processes"),
        ('[[device]]\nmodel = "A100"\nmig = ["3g.20gb"]\n', "lease", "lease", "not shown", "no whole GPU"),
        ('[[device]]\nmodel = "H100"\n[[fault]]\ncall = "cuInit"\nresult = 999\n', "lease", "lease", "not shown", "cuInit answers 999"),
        ('[[device]]\nmodel = "H100"\n[[fault]]\ncall = "cuInit"\nresult = 999\n', "trial", "trial", "otherwise", "999"),
        ('driver = "570.124.06"\n[[device]]\nmodel = "A100"\nremap_pending = true\nrecovery_action = "drain_p2p"\n', "health", "health", "seen", "row remap pending 1, row remap failed 0, recovery action 3"),
        ('[[device]]\nmodel = "H100"\nunsupported = ["energy"]\n', "receipt", "receipt", "not shown", "nvmlDeviceGetTotalEnergyConsumption answers 3"),
        ('[[device]]\nmodel = "H100"\ncompute_mode = "exclusive_process"\n', "shares", "shares", "not shown", "no process could use the GPU"),
        ('[[device]]\nmodel = "H100"\n[[fault]]\ncall = "nvmlDeviceRegisterEvents"\nresult = 3\n', "kernel", "xid", "otherwise", "an event set for Xids answers 3"),
        ('[[device]]\nmodel = "H100"\n[[fault]]\ncall = "nvmlDeviceGetMemoryInfo_v2"\nresult = 25\n', "symbols", "symbols", "otherwise", "MemoryInfo_v2: 25"),
        ('[[device]]\nmodel = "H100"\n[[fault]]\ncall = "nvmlDeviceGetMemoryInfo_v2"\ncrash = true\n', "memory", "memory", "otherwise", "ended by signal 11"),
        ('[[device]]\nmodel = "H100"\n[[device.process]]\npid = 4000000\nghost = true\nused_mib = 9000\n', "lease", "lease", "not shown", "no process could use the GPU: "),
    ],
)  # fmt: skip
def test_a_row_says_what_this_machine_shows(unpacked, make_machine, machine, check, row, outcome, came):
    answer = unpacked.run(make_machine(machine), "--only", check, *UNHURRIED)
    assert (answer.status, answer.err) == (0, "")
    assert unpacked.outcomes()[row] == outcome, answer.out
    assert came in unpacked.came(row)


def test_the_mask_of_its_user_holds(unpacked, machine):
    unpacked.run(machine, "--only", "counters", *UNHURRIED, env={"CUDA_VISIBLE_DEVICES": "5"})
    assert unpacked.came("energy").startswith("GPU 5: ")


def hanging(call, device=""):
    return f'[[device]]\nmodel = "H100"\ncount = 2\n[[fault]]\ncall = "{call}"\n{device}hang = true\n'


# The program of Berth waits 0.3 s here for a driver that hangs.
SOON = {"BERTH_DRIVER_DEADLINE_MS": "300"}


def test_a_call_that_hangs_stops_nothing(unpacked, make_machine):
    machine = make_machine(hanging("nvmlDeviceGetMemoryInfo_v2", "device = 1\n"))
    words = ("--only", "memory,mig,hang", "--bound", HUNG_S)
    assert unpacked.run(machine, *words, env=SOON).status == 0
    assert unpacked.outcomes()["memory"] == "otherwise"
    assert unpacked.came("memory") == f"the check did not return within {HUNG_S} s"
    # What comes after it is asked all the same; on a slow machine also that may take longer than
    # the bound.
    assert list(unpacked.outcomes()) == ["memory", "mig", "hang"]
    assert unpacked.outcomes()["hang"] != "not shown"


def test_a_driver_that_never_starts_ends_the_run(unpacked, make_machine):
    machine = make_machine(hanging("nvmlInit*"))
    answer = unpacked.run(machine, "--bound", HUNG_S, env=SOON)
    assert answer.status == 0 and f"the driver does not start within {HUNG_S} s\n" in answer.out
    assert {"the driver does not start"} == {
        row["came"] for row in json.loads(unpacked.results.read_text())["rows"] if row["row"] != "hang"
    }
    taken = dev("hardware", "--take", unpacked.results)
    assert taken.returncode == 1 and "is of the simulated driver" in taken.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_whoever_ends_it_finds_nothing_left(unpacked, make_machine, number):
    machine = make_machine(hanging("nvmlDeviceGetMemoryInfo_v2"))
    words = unpacked.words("--only", "mig,memory", *UNHURRIED)
    run = machine.start(*words, env=unpacked.env({}), cwd=unpacked.temporary)
    for line in run.stdout:
        if line.startswith("not shown  mig "):
            break
    run.send_signal(number)  # it waits for the check that hangs, or is about to
    assert run.wait(PATIENCE_S) == 128 + number
    unpacked.leaves_nothing(machine)
    results = json.loads(unpacked.results.read_text())
    assert results["complete"] is False and [row["row"] for row in results["rows"]] == ["mig"]


@pytest.mark.parametrize(
    "machine, why",
    [
        ('init_result = 18\n[[device]]\nmodel = "H100"\n', "nvmlInit_v2 answers 18; nvidia-smi ends with 18: "),
        ('library_missing = true\n[[device]]\nmodel = "H100"\n', "cannot open shared object file"),
        ('driver = "550.163.01"\n', "nvmlInit_v2 answers 28"),
    ],
)  # fmt: skip
def test_without_a_driver_it_says_so(unpacked, make_machine, machine, why):
    answer = unpacked.run(make_machine(machine), *UNHURRIED)
    assert answer.status == 69 and not unpacked.results.exists()
    assert answer.err.startswith("there is no NVIDIA driver here that answers: ") and why in answer.err


def test_a_program_that_does_not_run_here_leaves_the_rows_of_the_driver(unpacked, machine):
    program = unpacked.top / "berth"
    program.unlink()
    program.write_text("#!/bin/sh\necho 'version GLIBC_2.34 not found' >&2; exit 1\n")
    program.chmod(0o755)
    unpacked.packed = unpacked.state()
    answer = unpacked.run(machine, "--only", "memory,times", *UNHURRIED)
    assert "berth, which does not run here (version GLIBC_2.34 not found)" in answer.out
    assert unpacked.outcomes() == {"memory": "seen", "times": "otherwise"}
    assert "GLIBC_2.34" in unpacked.came("times")


@pytest.mark.parametrize(
    "words, why",
    [
        (["--only", "memory,nope"], "no check nope"),
        (["--json", "/nowhere/results.json"], "/nowhere/results.json cannot be written"),
        (["--json", "/"], "/ cannot be written"),
        (["--bound", "0"], "--bound"),
        (["--bound", "soon"], "--bound"),
        (["surplus"], "surplus"),
    ],
)
def test_a_wrong_word_stops_it_at_once(unpacked, machine, words, why):
    answer = unpacked.run(machine, *words)
    assert (answer.status, answer.out) == (2, "") and why in answer.err


@pytest.mark.parametrize(
    "python, why",
    [("/nowhere/python3", "there is no /nowhere/python3 here"), ("false", "false is older than 3.8")],
)
def test_without_a_python_it_says_so(unpacked, machine, python, why):
    answer = unpacked.run(machine, env={"PYTHON": python})
    assert (answer.status, answer.out) == (69, "") and why in answer.err


def test_a_python_without_its_library_is_named(unpacked, machine, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncase $* in *ctypes*) exit 1 ;; esac\nexec {PYTHON} "$@"\n')
    python.chmod(0o755)
    answer = unpacked.run(machine, env={"PYTHON": python})
    assert (answer.status, answer.out) == (69, "")
    assert answer.err.startswith(f"{python} has no module ctypes: ")


def test_without_nvidia_smi_the_other_rows_are_seen(unpacked, machine):
    unpacked.run(machine, "--only", "smi,times", *UNHURRIED, env={"PATH": "/usr/bin:/bin"})
    assert unpacked.outcomes() == {"smi": "not shown", "times": "seen"}
    assert unpacked.came("smi") == "there is no nvidia-smi" and "there is no nvidia-smi" in unpacked.came(
        "times"
    )


def test_a_result_that_cannot_be_written_ends_it(unpacked, machine):
    results = unpacked.top.parent / "closed/results.json"
    results.parent.mkdir()
    results.with_name("results.json.new").mkdir()
    answer = unpacked.run(machine, "--json", results)
    assert answer.status == 1
    assert answer.err == f"the checks end here: [Errno 21] Is a directory: '{results}.new'\n"


def inside(archive_folder, text):
    """What the packed Python says of itself."""
    words = [PYTHON, "-B", "-c", f"import check, json; print(json.dumps({text}))"]
    done = subprocess.run(words, cwd=archive_folder, check=True, capture_output=True, timeout=PATIENCE_S)
    return json.loads(done.stdout)


def test_the_page_has_each_row_and_the_bound_of_all(unpacked):
    page = (ROOT / "docs/hardware.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|", page.partition("\n## Assumed")[2], re.M)
    assert sorted(rows) == sorted(inside(unpacked.top, "[r for c in check.CHECKS.values() for r in c.rows]"))
    longest = inside(unpacked.top, "check.LONGEST_S")
    assert longest < 8 * 60 and f"at most {longest:.0f} s" in page


# The page -----------------------------------------------------------------------------------------

RESULTS = {
    "kind": "berth-hardware",
    "version": 1,
    "simulated": False,
    "complete": True,
    "driver": "570.1",
    "gpus": ["NVIDIA H100", "NVIDIA H100", "Tesla T4"],
    "rows": [
        {"row": "memory", "outcome": "seen", "came": "reserved 5 | 6 MiB\nand more"},
        {"row": "symbols", "outcome": "otherwise", "came": "13"},
        {"row": "mig", "outcome": "not shown", "came": "no GPU is split"},
    ],
}
WHERE = "2 × NVIDIA H100, 1 × Tesla T4, 570.1"


@pytest.fixture
def take(tmp_path):
    """take(results) on an empty page; the page, and how the command ended."""
    page = tmp_path / "hardware.md"
    text = (ROOT / "docs/hardware.md").read_text()
    page.write_text(
        re.sub(r"(\| Row \| GPU, driver \| Result \|\n\|---\|---\|---\|\n)(\| .*\n)*", r"\1", text)
    )

    def run(results):
        file = tmp_path / "results.json"
        file.write_text(results if isinstance(results, str) else json.dumps(results))
        before = page.read_text()
        done = dev("hardware", "--take", file, "--into", page)
        if done.returncode != 0:
            assert page.read_text() == before
        return page.read_text(), done

    return run


def seen_rows(page):
    return page.partition("|---|---|---|\n")[2].partition("\n\n")[0].splitlines()


def test_results_become_rows_of_the_page(take):
    page, done = take(RESULTS)
    assert (done.returncode, done.stderr) == (0, "")
    table = [
        f"| `symbols` | {WHERE} | **otherwise**: 13 |",
        f"| `memory` | {WHERE} | reserved 5 \\| 6 MiB and more |",
    ]
    assert seen_rows(page) == table
    assert take(RESULTS)[0] == page
    other = {**RESULTS, "driver": "580.2", "rows": [{"row": "memory", "outcome": "seen", "came": "7"}]}
    newer = {**RESULTS, "rows": [{"row": "symbols", "outcome": "seen", "came": "0"}]}
    take(other)
    page, _ = take(newer)
    assert seen_rows(page) == [
        f"| `symbols` | {WHERE} | 0 |",
        table[1],
        f"| `memory` | {WHERE.replace('570.1', '580.2')} | 7 |",
    ]


def test_a_run_that_was_cut_off_is_taken_as_far_as_it_came(take):
    page, done = take({**RESULTS, "complete": False})
    assert len(seen_rows(page)) == 2 and "the run was cut off" in done.stdout


@pytest.mark.parametrize(
    "results, why",
    [
        ("{", "results.json: "),
        ("[]", "is not what ./dev hardware writes"),
        ({**RESULTS, "version": 2}, "is not what ./dev hardware writes"),
        ({**RESULTS, "simulated": True}, "is of the simulated driver"),
        ({**RESULTS, "driver": None}, "names no driver"),
        ({**RESULTS, "rows": [{"row": "nope", "outcome": "seen", "came": ""}]}, "has no row nope"),
        ({**RESULTS, "rows": [{"row": "mig"}]}, "is damaged"),
        ({**RESULTS, "rows": ["mig"]}, "is damaged"),
        ({**RESULTS, "gpus": 3}, "is damaged"),
    ],
)
def test_what_is_no_result_changes_nothing(take, results, why):
    _, done = take(results)
    assert done.returncode == 1 and why in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words, why",
    [
        (["--pack", "--build", "/nowhere"], "no program /nowhere/berth"),
        (["--build"], "give --build a folder"),
        (["--pack", "surplus"], "has no use for surplus"),
        (["--take", "/nowhere/results.json"], "No such file"),
    ],
)
def test_a_wrong_word_packs_nothing(words, why):
    done = dev("hardware", *words)
    assert done.returncode != 0 and why in done.stderr


def test_a_checkout_without_a_driver_says_how_to_go_on(tmp_path, make_machine):
    machine = make_machine('library_missing = true\n[[device]]\nmodel = "H100"\n')
    words = [ROOT / "dev", "hardware", "--build", BUILD, "--to", tmp_path / "packed"]
    answer = machine.run(*words, env={"TMPDIR": tmp_path}, timeout=PATIENCE_S)
    assert answer.status == 0 and "there is no NVIDIA driver here" in answer.err
    assert f"packed {tmp_path}/packed/berth-hardware.tar.gz, with the program of {BUILD}" in answer.out
