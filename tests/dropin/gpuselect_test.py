"""gpuselect: its document's examples, what it holds, and the faults that are left behind."""

import signal

import pytest
from desk import example

USED = """
[[device]]
model = "3090"
utilization = 5
memory_utilization = 3
[[device]]
model = "A6000"
[[device.process]]
pid = 4204242
ghost = true
used_mib = 500
[[device]]
model = "A6000"
[[device.process]]
pid = 4204243
ghost = true
used_mib = 50
type = "G"
[[device]]
model = "3090"
"""
MASK = '\nimport os; print(os.environ["CUDA_DEVICE_ORDER"], os.environ["CUDA_VISIBLE_DEVICES"])\n'
IMPORTED = "from gpuselect import gpuselect\n"


def ids(answer) -> list:
    """The GPUs that a script with MASK at its end got, sorted."""
    assert answer.status == 0, answer.err
    order, mask = answer.out.split()[-2:]
    assert order == "PCI_BUS_ID"
    return sorted(int(word) for word in mask.split(","))


@pytest.mark.parametrize("title", ["adding it to a script", "any idle GPU", "debug logging"])
def test_an_example_that_takes_any_idle_gpu(desk, title):
    assert ids(desk.python(example("gpuselect.md", title) + MASK))[0] in range(4)


def test_the_example_with_a_type_of_gpu(make_desk):
    desk = make_desk("1x3090+3xA6000")
    assert set(ids(desk.python(example("gpuselect.md", "a type of GPU") + MASK))) < {1, 2, 3}


def test_the_example_with_thresholds(make_desk):
    desk = make_desk(
        '[[device]]\nmodel = "3090"\nutilization = 9\n[[device.process]]\npid = 4204242\nghost = true'
    )
    assert ids(desk.python(example("gpuselect.md", "thresholds") + MASK)) == [0]


def test_the_example_with_specific_gpus_takes_as_many_as_it_names(desk):
    assert ids(desk.python(example("gpuselect.md", "specific GPUs") + MASK)) == [0, 1]


def test_the_example_with_a_custom_selection(make_desk):
    desk = make_desk('[[device]]\nmodel = "A6000"\n[[device]]\nmodel = "3090"\nutilization = 5\n')
    assert ids(desk.python(example("gpuselect.md", "a custom selection") + MASK)) == [1]


def test_the_example_of_errors(make_desk):
    answer = make_desk("2x3090").python(IMPORTED + example("gpuselect.md", "errors"))
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        "Failed to select GPUs: Requested 4 GPUs, but 2 matched filters",
        "Failed to select GPUs",
    ]


def test_the_example_that_reads_the_state(make_desk):
    told = '\nprint([gpu["device"] for gpu in gpu_info], len(all_gpu_info), sorted(gpu_info[0].keys()))'
    answer = make_desk(USED).python(
        example("gpuselect.md", "reading the state") + told, env={"CUDA_VISIBLE_DEVICES": "1,3"}
    )
    keys = [
        "device",
        "mem_utilization",
        "name",
        "performance_state",
        "power_usage",
        "processes",
        "temperature",
    ]
    assert answer.out == f"[1, 3] 4 {[*keys, 'utilization']}\n"


def test_the_state_by_attribute_and_by_key(make_desk):
    info = "gpustatus()[0]"
    answers = make_desk(USED).ask(
        "from gpuselect import gpustatus",
        f"[{info}.util, {info}['utilization'], {info}.mem_util, {info}['mem_utilization'], {info}[2]]",
        f"[{info}.get('nothing', 7), 'temperature' in {info}, dict({info})['name']]",
    )
    assert answers == [
        [5, 5, 3, 3, 5],
        [7, True, "NVIDIA GeForce RTX 3090"],
    ]


def test_the_state_is_a_dict_for_whoever_writes_it_down(make_desk):
    """The document's keys for json, a copy, or a data frame; the fields of the original beside them."""
    status = "gpustatus()[0]"
    answers = make_desk(USED).ask(
        "import copy, json, pickle\nfrom gpuselect import gpustatus",
        f"json.loads(json.dumps({status}))",
        f"isinstance({status}, dict), sorted({status}.keys()), {status}.fan_speed",
        f"[copy.deepcopy({status}).mem_total, pickle.loads(pickle.dumps({status}))[1], {status}[:2]]",
        f"{status}.nothing",
    )
    assert answers[0] == {
        "device": 0,
        "name": "NVIDIA GeForce RTX 3090",
        "utilization": 5,
        "mem_utilization": 3,
        "processes": 0,
    } | {key: answers[0][key] for key in ("performance_state", "power_usage", "temperature")}
    assert answers[1][0] is True and answers[1][1] == sorted(answers[0])
    assert answers[2][1:] == ["NVIDIA GeForce RTX 3090", [0, "NVIDIA GeForce RTX 3090"]]
    assert answers[3]["raises"] == "AttributeError"


def test_the_state_is_a_dict_in_every_hand_and_can_be_unpacked_and_sorted(make_desk):
    """json with indent, Flask, and data frames look at the type; a loop is about keys; an assignment about values."""
    setup = """
import json
import flask
from gpuselect import GpuInfo, gpustatus
def written_by_flask():
    app = flask.Flask("x")
    app.debug = True
    with app.app_context():
        return flask.jsonify(gpustatus()).json
def unpacked():
    told = []
    for device, name, *rest in gpustatus():
        told.append([device, name, len(rest)])
    device, name, util, mem_util, *_ = gpustatus()[0]
    return told[-1], [device, util, mem_util]
def columns(rows):  # as pandas has them: of named tuples it takes the fields
    first = rows[0]
    return list(first._fields) if isinstance(first, tuple) else list(dict(first))
status = gpustatus()
first = status[0]
"""
    loop, json_text, flask_text, frame, unpacked, ordered, kinds = make_desk(USED).ask(
        setup,
        "[first[key] for key in first] == list(first.values()) and list(first) == list(first.keys())",
        "json.loads(json.dumps(status, indent=2)) == json.loads(json.dumps(status)) == [dict(gpu) for gpu in status]",
        "written_by_flask() == [dict(gpu) for gpu in status]",
        "columns(status)",
        "unpacked()",
        "[gpu.device for gpu in sorted(status[::-1])] + [max(status).device, sorted(first)[0]]",
        "[isinstance(first, kind) for kind in (dict, GpuInfo, tuple)] + [isinstance((1,), GpuInfo), len(first)]",
    )
    assert (loop, json_text, flask_text) == (True, True, True)
    assert "utilization" in frame and "util" not in frame
    assert unpacked == [[3, "NVIDIA GeForce RTX 3090", 12], [0, 5, 3]]
    assert ordered == [0, 1, 2, 3, 3, "device"]
    assert kinds == [True, True, False, False, 8]


def test_a_card_without_a_fan_is_no_error(make_desk):
    assert make_desk("1xH100").ask(
        "import gpuselect as g", "g.gpustatus()[0].fan_speed", "g.gpuselect()"
    ) == [
        None,
        "0",
    ]


@pytest.mark.parametrize(
    "reasons, throttling",
    [('"gpu_idle"', 0), ('"app_clocks"', 0), ("", 0), ('"sw_power_cap"', 1), ('"gpu_idle", "hw_thermal"', 1)],
)
def test_a_card_throttles_when_something_slows_it_down(make_desk, reasons, throttling):
    desk = make_desk(f'[[device]]\nmodel = "3090"\nutilization = 9\nthrottle = [{reasons}]\n')
    assert desk.ask("import gpuselect", "gpuselect.gpustatus()[0].is_throttling") == [throttling]


# What a call holds --------------------------------------------------------------------------------


def test_a_call_leases_until_the_process_ends(desk):
    process = desk.start_python(IMPORTED + "print(gpuselect(count=3), flush=True); input()", stdin=-1)
    mine = sorted(int(word) for word in process.stdout.readline().split(","))
    assert desk.leased() == mine
    (other,) = set(range(4)) - set(mine)
    assert desk.ask(IMPORTED, "gpuselect(set_cvd=False)", "gpuselect(count=2, silent=True)") == [
        str(other),
        "",
    ]
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert desk.leased() == []


def test_a_later_call_first_gives_back_what_the_earlier_one_held(desk):
    assert desk.ask(IMPORTED, "gpuselect(count=4)", "gpuselect(count=4)", "gpuselect(devices=2)") == [
        "0,1,2,3",
        "0,1,2,3",
        "2",
    ]


def test_a_look_holds_nothing_and_leaves_the_mask_alone(desk):
    mask = "__import__('os').environ.get('CUDA_VISIBLE_DEVICES')"
    setup = IMPORTED + "import subprocess, json"
    listed = (
        "[d['leases'] for d in json.loads(subprocess.check_output(['berth', 'list', '--json']))['devices']]"
    )
    assert desk.ask(setup, "gpuselect(devices=3, set_cvd=False)", mask, listed) == [
        "3",
        None,
        [[], [], [], []],
    ]


def test_who_allows_company_shares_the_card_and_is_promised_no_memory(make_desk):
    desk = make_desk(USED)
    script = IMPORTED + "print(gpuselect(name='A6000', processes=1, count=2), flush=True); input()"
    first = desk.start_python(script, stdin=-1)
    assert first.stdout.readline() == "1,2\n"
    assert desk.ask(IMPORTED, "gpuselect(name='A6000', processes=1, count=2)") == ["1,2"]
    (alone,) = desk.ask(IMPORTED, "gpuselect(name='A6000')")
    assert alone["text"].startswith("Requested 1 GPUs, but 0 matched filters; GPU 2: leased by")


def test_a_selector_that_admits_a_used_card_shares_it(make_desk):
    desk = make_desk(USED)
    script = IMPORTED + "print(gpuselect(selector=lambda gpu: gpu.device == 1), flush=True); input()"
    assert [desk.start_python(script, stdin=-1).stdout.readline() for _ in range(2)] == ["1\n", "1\n"]


def holder(desk, call: str = "gpuselect()", computes: bool = False):
    """A program that has what the call selects."""
    compute = "import torch; kept = torch.zeros(1, device='cuda:0')\n" if computes else ""
    process = desk.start_python(
        IMPORTED + f"value = {call}\n{compute}print(value, flush=True); input()", stdin=-1
    )
    process.selected = process.stdout.readline().strip()
    return process


@pytest.mark.parametrize("computes", [False, True])
@pytest.mark.parametrize(
    "asked", ["util=10, processes=1", "selector=lambda gpu: gpu.util <= 5 and '3090' in gpu.name"]
)
def test_what_another_program_has_by_gpuselect_is_for_whoever_allows_company(make_desk, asked, computes):
    """The document: "up to 1 other active process"; and a selector "overrides all other filtering parameters"."""
    desk = make_desk("1x3090")
    holder(desk, computes=computes)
    alone, beside, look, mask, leases = desk.ask(
        IMPORTED + "import berth, os",
        "gpuselect(silent=True)",
        f"gpuselect({asked})",
        f"gpuselect({asked}, set_cvd=False)",
        "os.environ['CUDA_VISIBLE_DEVICES']",
        "len({culprit.lease for verdict in berth.why(mask=False) for culprit in verdict.culprits})",
    )
    assert (alone, beside, look, mask, leases) == ("", "0", "0", "0", 1)


def test_whoever_allows_company_gets_a_gpu_of_his_own_where_there_is_one(make_desk):
    desk = make_desk("2x3090")
    first = holder(desk)
    second = holder(desk, "gpuselect(processes=1)")
    assert {first.selected, second.selected} == {"0", "1"} and desk.leased() == [0, 1]
    assert desk.ask(IMPORTED, "gpuselect(count=2, processes=1)") == ["0,1"]


def test_only_so_much_company_as_is_allowed_and_none_for_what_others_have_leased(make_desk):
    desk = make_desk("1x3090")
    first = holder(desk, computes=True)
    second = holder(desk, "gpuselect(processes=1)", computes=True)
    assert second.selected == "0"
    assert desk.ask(IMPORTED, "gpuselect(processes=1, silent=True)", "gpuselect(processes=2)") == ["", "0"]
    assert desk.ask(IMPORTED, "gpuselect(selector=lambda gpu: gpu.processes == 0, silent=True)") == [""]
    for process in (first, second):
        process.communicate("\n")
    desk.machine.start("berth", "run", "--", "sh", "-c", "echo; read x", stdin=-1).stdout.readline()
    refused, selected = desk.ask(
        IMPORTED, "gpuselect(processes=1)", "gpuselect(selector=lambda gpu: True, silent=True)"
    )
    assert "GPU 0: leased by" in refused["text"] and selected == ""


def test_a_selector_that_looks_at_processes_sees_who_has_leased_an_idle_gpu(make_desk):
    desk = make_desk("1x3090")
    holder(desk)
    assert desk.ask(
        IMPORTED,
        "gpuselect(selector=lambda gpu: gpu.processes == 0, silent=True)",
        "gpuselect(selector=lambda gpu: gpu.processes == 1)",
    ) == ["", "0"]


def test_a_selector_decides_about_memory_that_no_process_explains(make_desk):
    desk = make_desk('[[device]]\nmodel = "3090"\nhidden_mib = 513\n')
    refused, given = desk.ask(
        IMPORTED, "gpuselect()", "gpuselect(selector=lambda gpu: gpu.mem_free > 20 << 30)"
    )
    assert "hidden holder" in refused["text"] and given == "0"


def test_the_workers_of_a_program_that_uses_a_gpu_beside_another_have_it_too(make_desk):
    desk = make_desk("1x3090")
    holder(desk, computes=True)
    answer = desk.python(POOL.format(method="spawn", before="", asked="processes=1"))
    assert (answer.status, answer.out) == (0, "0 0\n"), answer.err


def test_a_command_may_have_company_too(make_desk):
    desk = make_desk("1x3090")
    holding = desk.machine.start("gpuselect", "--", "sh", "-c", "echo; read x", stdin=-1)
    holding.stdout.readline()
    shown = ["--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES $PYTHONUNBUFFERED; exit 7"]
    assert desk.run("gpuselect", *shown).status == 75
    answer = desk.run("gpuselect", "-p", "1", *shown)
    assert (answer.status, answer.out, answer.err) == (7, "0 1\n", "")
    assert desk.ask(IMPORTED, "gpuselect(processes=1)") == ["0"]


def test_cuda_that_is_up_is_an_error_and_not_silence(desk):
    (answer,) = desk.ask(IMPORTED + "import torch; torch.zeros(1, device='cuda:0')", "gpuselect()")
    assert answer["text"].startswith("CUDA is up in this process already")


def test_once_cuda_is_up_the_same_call_gives_what_is_there(desk):
    """A cell that is run again, or the second task of a worker."""
    again, pair, named, other = desk.ask(
        IMPORTED
        + "import torch; first = gpuselect(count=2, name='3090'); kept = torch.zeros(1, device='cuda:0')",
        "[gpuselect(count=2, name='3090') == first, gpuselect(count=2) == first]",
        "gpuselect(count=2, selector=lambda gpu: gpu.processes == 0 and gpu.util == 0) == first",
        "gpuselect(count=2, name='A6000')",
        "gpuselect(count=1)",
    )
    assert (again, pair) == ([True, True], True)
    assert named["raises"] == other["raises"] == "RuntimeError"


# Children -----------------------------------------------------------------------------------------

POOL = """
import multiprocessing, os
{before}
from gpuselect import gpuselect
value = gpuselect({asked})
def mask(_): return os.environ["CUDA_VISIBLE_DEVICES"]
if __name__ == "__main__":
    with multiprocessing.get_context("{method}").Pool(6) as pool:
        print(value, *set(pool.map(mask, range(60))))
"""
# A server of forkserver that began before the selection has an environment without it.
EARLIER_SERVER = """
if __name__ == "__main__":
    from multiprocessing import forkserver
    forkserver.ensure_running()
"""


@pytest.mark.parametrize(
    "method, before",
    [("spawn", ""), ("forkserver", ""), ("forkserver", EARLIER_SERVER), ("fork", "")],
)
def test_the_workers_of_a_pool_inherit_the_selection(desk, method, before):
    """More workers than the machine has GPUs: were each to lease its own, the pool would never come to an end."""
    answer = desk.python(POOL.format(method=method, before=before, asked="count=2"))
    assert answer.status == 0, answer.err
    parent, *workers = answer.out.split()
    assert workers == [parent]


@pytest.mark.parametrize("asked", ["devices=3", "name='3090'", "selector=lambda gpu: True", "processes=1"])
def test_workers_inherit_whatever_the_selection_was_made_by(desk, asked):
    answer = desk.python(POOL.format(method="spawn", before="", asked=asked))
    assert answer.status == 0, answer.err
    assert len(set(answer.out.split())) == 1


CHILD = """
import subprocess, sys
from gpuselect import gpuselect
print(gpuselect(devices={parent}), flush=True)
subprocess.run([sys.executable, "-c", "from gpuselect import gpuselect; print(gpuselect({asked}))"], check=True)
"""


@pytest.mark.parametrize(
    "parent, asked, given",
    [
        ("[1, 2]", "", {"0", "3"}),
        ("[1, 2]", "count=2", {"0,3"}),
        ("[1, 2]", "devices=2", {"2"}),
        ("1", "devices=3", {"3"}),
        ("1", "count=3", {"0,2,3"}),
        ("1", "count=4", {"0,1,2,3"}),
    ],
)
def test_a_program_that_a_selecting_one_starts(desk, parent, asked, given):
    """It selects for itself, and gets what its parent has only where that is needed."""
    answer = desk.python(CHILD.format(parent=parent, asked=asked))
    assert answer.status == 0, answer.err
    assert answer.out.splitlines()[1] in given


SPREAD = """
import subprocess, sys
from gpuselect import gpuselect
first = gpuselect()
{compute}
child = "from gpuselect import gpuselect; print(gpuselect(silent=True), flush=True); input()"
started = [subprocess.Popen([sys.executable, "-c", child], stdin=-1, stdout=-1, text=True) for _ in range({count})]
print(sorted(process.stdout.readline().strip() for process in started), first)
[process.communicate("\\n") for process in started]
"""


def test_programs_that_a_selecting_one_starts_are_spread(desk):
    """The fourth has the GPU on which the parent itself computes nothing."""
    answer = desk.python(SPREAD.format(count=4, compute=""))
    spread, first = answer.out.rsplit(maxsplit=1)
    assert eval(spread) == ["0", "1", "2", "3"], (answer.out, answer.err)


def test_a_program_does_not_get_the_gpu_on_which_the_one_that_started_it_computes(desk):
    answer = desk.python(
        SPREAD.format(count=4, compute="import torch; kept = torch.zeros(1, device='cuda:0')")
    )
    spread, first = answer.out.rsplit(maxsplit=1)
    assert eval(spread) == ["", *sorted({"0", "1", "2", "3"} - {first})], (answer.out, answer.err)


def test_a_fork_that_selects_does_not_end_its_parents_lease(desk):
    code = (
        "import os\nfrom gpuselect import gpuselect\ngpuselect(devices=1)\n"
        "if os.fork() == 0:\n"
        "    print(gpuselect(), gpuselect(devices=2), flush=True)\n"
        "    os._exit(0)\n"
        "os.wait(); print(flush=True); input()\n"
    )
    process = desk.start_python(code, stdin=-1)
    assert process.stdout.readline() == "1 2\n"
    process.stdout.readline()
    assert desk.leased() == [1]


def test_a_child_that_outlives_the_selection_leases_for_itself(desk):
    child = IMPORTED + "input(); print(gpuselect(devices=1), flush=True); input()"
    code = (
        IMPORTED + "import os, subprocess, sys\ngpuselect(devices=1)\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "os._exit(0)"
    )
    process = desk.start_python(code, stdin=-1)
    process.wait()
    assert desk.leased() == []
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "1\n"
    assert desk.leased() == [1]


# The command --------------------------------------------------------------------------------------


def test_the_example_that_prints(desk):
    answer = desk.shell(example("gpuselect.md", "printing"))
    assert (answer.status, answer.err) == (0, "") and answer.out.strip() in "0123"


def test_the_example_of_a_wrapper(desk):
    (desk.directory / "my_scripy.py").write_text("import sys\nprint(sys.argv[1:])" + MASK)
    answer = desk.shell(example("gpuselect.md", "a wrapper"))
    assert answer.out.startswith("['arg1', 'arg2']\n") and len(ids(answer)) == 1


def test_the_examples_that_run_commands(make_desk):
    desk = make_desk("2x3090+2xA6000")
    (desk.directory / "foo.py").write_text(MASK)
    answer = desk.shell(example("gpuselect.md", "running commands"))
    assert (answer.status, answer.err) == (0, "")
    masks = [line.split()[1].split(",") for line in answer.out.splitlines()]
    assert [len(mask) for mask in masks] == [1, 2, 1, 1] and masks[2][0] in "23"


def test_the_example_with_docker(desk):
    answer = desk.shell(example("gpuselect.md", "docker"))
    assert answer.status == 0, answer.err
    words = answer.out.splitlines()
    assert words[:2] == ["run", "--gpus"] and words[-4:] == ["--rm", "-it", "gpu_container", "nvidia-smi"]
    # The shell splits nothing: Docker gets device="0,1", with the quotes that its parser wants.
    kind, _, listed = words[2].strip('"').partition("=")
    assert kind == "device" and len(listed.split(",")) == 2


def test_a_command_ends_as_it_ends_and_nothing_is_printed_beside_it(desk):
    answer = desk.run("gpuselect", "--", "sh", "-c", "echo out; echo $PYTHONUNBUFFERED; echo err >&2; exit 7")
    assert (answer.status, answer.out, answer.err) == (7, "out\n1\n", "err\n")


def test_a_command_has_the_terminal(desk):
    answer = desk.run("script", "-qec", "gpuselect -- test -t 1", "/dev/null")
    assert (answer.status, answer.out) == (0, "")


def test_a_command_holds_its_gpus(desk):
    running = desk.machine.start("gpuselect", "-c", "4", "--", "sh", "-c", "echo; read x", stdin=-1)
    running.stdout.readline()
    assert desk.leased() == [0, 1, 2, 3]
    answer = desk.run("gpuselect", "-q", "--", "echo", "never")
    assert (answer.status, answer.out) == (75, "")
    assert "leased by" in answer.err


@pytest.mark.parametrize(
    "words, status, said",
    [
        (["-c", "9"], 1, "gpuselect: Requested 9 GPUs, but 4 matched filters\n"),
        (["-c", "0"], 1, "gpuselect: GPU count must be >= 1\n"),
        (["-d", "7"], 1, "gpuselect: Invalid device ID 7\n"),
        (["-d", "0", "-n", "x"], 1, "gpuselect: Use only one of 'devices' and 'name' parameters\n"),
        (["-u", "-1"], 1, "gpuselect: Utilization/process count thresholds must be >= 0\n"),
        (["-c", "9", "--", "echo"], 1, "gpuselect: Requested 9 GPUs, but 4 matched filters\n"),
        (["-d", "x"], 2, "Parameter must be a single int or 'int1,int2,...'\n"),
        (["--bogus"], 2, "unrecognized arguments: --bogus\n"),
        (["--"], 2, "no command after --\n"),
    ],
)
def test_a_wrong_command_line(desk, words, status, said):
    answer = desk.run("gpuselect", *words)
    assert (answer.status, answer.out) == (status, "") and answer.err.endswith(said)


def test_the_command_by_the_name_of_its_module(desk):
    words = ["python3", "-W", "ignore", "-m", "gpuselect.nvmlgpuselect"]
    shown = desk.run(*words, "-d", "2")
    assert (shown.status, shown.out) == (0, "2\n")
    run = desk.run(*words, "-d", "3", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exit 7")
    assert (run.status, run.out) == (7, "3\n")
    setup = "from gpuselect import nvmlgpuselect as module"
    assert desk.ask(setup, "module.pynvml_get_gpu_state(1).device", "module._int_or_list('0,2')") == [
        1,
        [0, 2],
    ]


def test_quiet_prints_nothing_and_debug_says_why(desk):
    assert desk.run("gpuselect", "-q") == desk.run("true")
    answer = desk.run("gpuselect", "-D")
    assert "GPU count: 4\n" in answer.err and "GPUs left after filtering (1 requested): 4\n" in answer.err


def test_no_driver(make_desk):
    answer = make_desk('library_missing = true\n[[device]]\nmodel = "3090"\n').run("gpuselect")
    assert (answer.status, answer.out) == (1, "") and answer.err.startswith("gpuselect: ")
