"""nvgpu: its document's examples, the table, and the pages."""

import ast
import contextlib
import fcntl
import http.server
import json
import os
import pwd
import select
import socket
import subprocess
import sys
import threading

import pytest
from desk import example
from jobs import device_file
from simulated import as_nobody
from simulated_machine import DEADLINE_S

OLD_LAB = """
driver = "450.51.06"
[[device]]
model = "1070"
uuid = "GPU-3aa99ee6-4a9f-470e-3798-70aaed942689"
memory_mib = {first}
hidden_mib = 7881
[[device]]
model = "1080Ti"
uuid = "GPU-60410ded-5218-7b06-9c7a-124b77a22447"
memory_mib = {other}
hidden_mib = 10795
[[device]]
model = "1080Ti"
uuid = "GPU-d0a77bd4-cc70-ca82-54d6-4e2018cfdca6"
memory_mib = {other}
hidden_mib = 10789
"""


def the_machine_of_the_document() -> str:
    # Drivers of those days did not count their reserve in the total; the simulated ones take it
    # off.
    return OLD_LAB.format(first=8119 + 73, other=11178 + 86)


# The command --------------------------------------------------------------------------------------


def test_the_examples_that_grab(make_desk):
    desk = make_desk("1xT4+1xH100")
    text = example("nvgpu.md", "grabbing").replace(")\n", ")\necho $CUDA_VISIBLE_DEVICES\n")
    answer = desk.shell(text)
    assert (answer.status, answer.out, answer.err) == (0, "1,0\n1\n", "")


@pytest.mark.parametrize("limit, said", [("-l1", "1"), ("--limit=9", "1,0"), ("-l0", "1,0")])
def test_a_limit_takes_the_most_capable_first(make_desk, limit, said):
    answer = make_desk("1xT4+1xH100").run("nvgpu", "available", limit)
    assert (answer.status, answer.out) == (0, said + "\n")


def test_none_available_prints_an_empty_line(make_desk):
    desk = make_desk('[[device]]\nmodel = "T4"\nhidden_mib = 9000\n')
    answer = desk.run("nvgpu", "available")
    assert (answer.status, answer.out, answer.err) == (0, "\n", "")


def test_a_leased_gpu_is_not_available(desk):
    holder = desk.machine.start("berth", "run", "--devices", "1", "--", "sh", "-c", "echo; read x", stdin=-1)
    holder.stdout.readline()
    assert desk.run("nvgpu", "available").out == "0,2,3\n"
    asking = "[(row['is_available'], row['users'], row['pids']) for row in device_statuses()]"
    (told,) = desk.ask("from nvgpu.list_gpus import device_statuses", asking)
    user = pwd.getpwuid(os.getuid()).pw_name
    assert [tuple(row) for row in told] == [
        (index != 1, user if index == 1 else "", "") for index in range(4)
    ]
    assert desk.run("nvgpu", "list").out.splitlines()[3].split()[:2] == ["1", "[~]"]


def test_a_gpu_that_is_locked_without_a_ticket_is_not_available(make_desk):
    desk = make_desk("1xT4")
    path = device_file(desk.machine)
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert desk.run("nvgpu", "available").out == "\n"
        assert desk.run("nvgpu", "list").out.splitlines()[2].split()[:2] == ["0", "[!]"]


WITHOUT_ALL = """
[[device]]
model = "1080Ti"
[[device]]
model = "1080Ti"
lost = true
[[device]]
model = "H100"
mig = ["3g.40gb"]
[[device]]
model = "V100"
[[device.process]]
pid = 4204242
ghost = true
used_mib = 2000
"""


def test_a_board_that_is_lost_or_split_is_not_available(make_desk):
    desk = make_desk(WITHOUT_ALL)
    setup = "import nvgpu\nfrom nvgpu.list_gpus import device_statuses\n" + PAGES
    told = "[[row['is_available'], row['cmd']] for row in device_statuses()]"
    (available, rows, page) = desk.ask(setup, "nvgpu.available_gpus()", told, "page.get('/').text")
    assert available == ["0", "3"]
    assert rows == [[True, None], [False, "lost"], [False, "split by MIG"], [False, None]]
    assert page.count("[ ]") == 1
    marks = [line.split()[1] for line in desk.run("nvgpu", "list").out.splitlines()[2:]]
    assert marks == ["[", "[!]", "[!]", "[!]"]


def test_an_idle_gpu_comes_before_one_with_somebodys_process(make_desk):
    """However capable that is: its memory is used to 7 %, and so it is available."""
    desk = make_desk(
        '[[device]]\nmodel = "V100"\n[[device.process]]\npid = 4204242\nghost = true\nused_mib = 2000\n'
        '[[device]]\nmodel = "1080Ti"\n'
    )
    assert desk.run("nvgpu", "available", "-l", "1").out == "1\n"
    assert desk.run("nvgpu", "available", "-l", "2").out == "1,0\n"


@pytest.fixture
def busy(make_desk):
    """A machine as the document shows one: free, a notebook, a script, a job of another user, and one unseen."""
    desk = make_desk("1x1070")
    processes = []

    def start(*words, prefix=()):
        process = subprocess.Popen([*prefix, *words], stdin=subprocess.PIPE)
        processes.append(process)
        return process.pid

    sleeping = ["-c", "input()"]
    (desk.directory / "train.py").write_text("input()")
    notebook = start(sys.executable, *sleeping, "-m", "ipykernel_launcher", "-f", "kernel.json")
    script = start(sys.executable, f"{desk.directory}/train.py", "--lr", "3")
    blocks = [
        "",
        f"[[device.process]]\npid = {notebook}\nused_mib = 7881\n",
        f"[[device.process]]\npid = {script}\n[[device.process]]\npid = 4195001\nghost = true\n",
        "[[device.process]]\npid = 4195002\nghost = true\nused_mib = 900\n",
    ]
    desk.machine.change(
        "".join(f'[[device]]\nmodel = "1080Ti"\nutilization = 46\n{block}' for block in blocks)
    )
    desk.pids = (notebook, script)
    yield desk
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("title", ["the table", "the shortcut"])
def test_the_examples_that_show_the_table(busy, title):
    command, *shown = example("nvgpu.md", title).splitlines()
    answer = busy.shell(command.removeprefix("$ "))
    assert (answer.status, answer.err) == (0, "")
    heading, rule, *rows = answer.out.splitlines()
    columns = "status type util. mem. used temp. MHz users since pids cmd"
    assert heading.split() == columns.split() and set(rule) == {"-", " "}
    if shown:
        assert [word for word in heading.split() if word not in ("mem.", "used")] == shown[0].split()
    assert [row.split()[:3] for row in rows] == [
        ["0", "[", "]"],
        ["1", "[~]", "NVIDIA"],
        ["2", "[~]", "NVIDIA"],
        ["3", "[!]", "NVIDIA"],
    ]
    notebook, script = busy.pids
    assert rows[1].endswith(f"{notebook}          jupyter") or rows[1].split()[-2:] == [
        str(notebook),
        "jupyter",
    ]
    assert " 46 %  8.35GB " in rows[1]
    assert rows[2].split()[-2] == f"{script},4195001" and rows[2].endswith("train.py") and "?" in rows[2]
    assert rows[3].split()[-2:] == ["?", "4195002"]


def test_the_table_has_colours_on_a_terminal(busy):
    out = busy.run("script", "-qec", "nvl", "/dev/null", env={"NO_COLOR": None}).out
    assert [f"\033[{code}m[" in out for code in (31, 32, 34)] == [True] * 3
    assert "\033" not in busy.run("script", "-qec", "nvl", "/dev/null", env={"NO_COLOR": "1"}).out


def test_a_job_of_another_user(make_desk):
    prefix = as_nobody()
    process = subprocess.Popen([*prefix, "sleep", "1000"])
    try:
        desk = make_desk(f'[[device]]\nmodel = "T4"\n[[device.process]]\npid = {process.pid}\n')
        (status,) = desk.ask("from nvgpu.list_gpus import device_statuses", "device_statuses()[0]")
    finally:
        process.kill()
        process.wait()
    assert (status["users"], status["pids"], status["cmd"]) == ("nobody", str(process.pid), "sleep 1000")


@pytest.mark.parametrize(
    "age_s, said",
    [
        (3, "just now"),
        (46, "46 seconds ago"),
        (60, "a minute ago"),
        (119, "a minute ago"),
        (3600, "an hour ago"),
        (14 * 3600, "14 hours ago"),
        (2 * 86400, "2 days ago"),
        (7 * 86400, "7 days ago"),
        (40 * 86400, "a month ago"),
        (800 * 86400, "2 years ago"),
    ],
)
def test_how_long_ago(desk, age_s, said):
    assert desk.ask("from nvgpu.list_gpus import humanized", f"humanized({age_s})") == [said]


def test_text_of_a_workload_cannot_move_the_cursor(desk):
    row = {"is_available": False, "users": "\033[2Jx", "memory": None, "utilization": None}
    row |= dict.fromkeys(("type", "temperature", "clock_mhz", "running_since", "pids", "cmd"))
    (cells,) = desk.ask("from nvgpu.list_gpus import cells", f"cells(0, {row!r})")
    assert "?[2Jx" in cells and not any("\033" in cell for cell in cells)


@pytest.mark.parametrize("words, status", [(["available", "-l", "x"], 2), (["bogus"], 2), ([], 2)])
def test_a_wrong_command_line(desk, words, status):
    assert desk.run("nvgpu", *words).status == status


@pytest.mark.parametrize("words", [["nvgpu", "available"], ["nvgpu", "list"], ["nvl"]])
def test_no_driver(make_desk, words):
    answer = make_desk('library_missing = true\n[[device]]\nmodel = "T4"\n').run(*words)
    assert (answer.status, answer.out) == (1, "") and answer.err.startswith("nvgpu: ")


def test_a_driver_without_a_gpu_is_an_error_of_every_command(make_desk):
    desk = make_desk('driver = "550.163.01"\n')
    for words in (["available"], ["list"]):
        answer = desk.run("nvgpu", *words)
        assert (answer.status, answer.out) == (1, ""), words
        assert answer.err == "nvgpu: the driver knows no GPU on this machine\n"
    raised, status = desk.ask(
        "from nvgpu.list_gpus import device_statuses\n" + PAGES,
        "device_statuses()",
        "page.get('/gpu_status').status_code",
    )
    assert "NoDriver" in raised["kinds"] and status == 503


# The Python API -----------------------------------------------------------------------------------


def test_the_example_of_the_api(make_desk):
    """The document prints what its machine answers: so does ours, on that machine."""
    text = example("nvgpu.md", "the Python API")
    desk = make_desk(the_machine_of_the_document())
    assert desk.python(text).status == 0
    *shown, _ = ast.literal_eval(
        text[text.index("\n[") + 1 :].replace("...", "Ellipsis").replace("Ellipsis", "None")
    )
    assert desk.ask("import nvgpu", "nvgpu.gpu_info()") == [shown]


def test_available_by_share_of_memory(make_desk):
    machine = "".join(f'[[device]]\nmodel = "T4"\nhidden_mib = {mib}\n' for mib in (0, 3072, 3073, 9000))
    assert make_desk(machine).ask(
        "import nvgpu", "nvgpu.available_gpus()", "nvgpu.available_gpus(max_used_percent=100)"
    ) == [["0", "1"], ["0", "1", "2", "3"]]


def test_the_same_boards_are_told_of_by_both_functions(make_desk):
    setup = "import nvgpu\nfrom nvgpu.list_gpus import device_statuses"
    pairs = "[[gpu['index'], gpu['type'], row['type']] for gpu, row in zip(gpu_info(), device_statuses())]"
    told, shares, available = make_desk(WITHOUT_ALL).ask(
        setup + "\nfrom nvgpu import gpu_info",
        pairs,
        "[gpu['mem_used_percent'] == 100 for gpu in gpu_info()]",
        "[gpu['index'] for gpu in gpu_info() if gpu['mem_used_percent'] <= 20]",
    )
    assert [index for index, _, _ in told] == ["0", "1", "2", "3"]
    assert all(one == other for _, one, other in told)
    assert shares[1] is True and "1" not in available


@pytest.mark.parametrize(
    "machine", ["library_missing = true\n[[device]]\nmodel = 'T4'\n", "driver = '550.163.01'\n"]
)
@pytest.mark.parametrize("kind", ["FileNotFoundError", "subprocess.CalledProcessError", "berth.NoDriver"])
def test_what_a_program_catches_where_there_is_no_gpu(make_desk, machine, kind):
    """The original starts nvidia-smi, which is not there, or fails."""
    code = f"""
import berth, nvgpu, subprocess
for ask in (nvgpu.gpu_info, nvgpu.available_gpus):
    try: ask()
    except {kind} as error: print("none:", error, error.returncode)
"""
    answer = make_desk(machine).python(code)
    assert answer.out.count("none:") == 2 and answer.err == "", answer.err


NAMES = """
import importlib, inspect
def own(name):
    module = importlib.import_module(name)
    return sorted(
        name for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("__")
    )
"""


@pytest.mark.parametrize(
    "original, modules, left_out",
    [
        ("gpuselect", "gpuselect gpuselect.nvmlgpuselect", {"__scan_gpus"}),
        (
            "nvgpu",
            "nvgpu nvgpu.agent nvgpu.list_gpus nvgpu.master nvgpu.nvml nvgpu.webapp nvgpu.__main__",
            {"GpuStatus", "GpuClusterStatus", "GpuClusterStatusHTML", "parse_args"},
        ),
        ("safe_gpu", "safe_gpu safe_gpu.safe_gpu", set()),
        (
            "gpu_utilities",
            "gpu_utilities.errors gpu_utilities.gpu gpu_utilities.gpu_selector gpu_utilities.gpu_info_obtainer "
            "gpu_utilities.obtainers.nvml gpu_utilities.obtainers.torch gpu_utilities.utils.bytes",
            set(),
        ),
    ],
)
def test_every_function_of_an_original_is_there(desk, original, modules, left_out):
    theirs = desk.ask(NAMES, *(f"own({name!r})" for name in modules.split()), original=original)
    has = "[name for name in {} if not hasattr(importlib.import_module({!r}), name)]"
    asked = [has.format(names, module) for names, module in zip(theirs, modules.split())]
    missing = desk.ask(NAMES, *asked)
    assert sum(map(len, theirs)) > 3
    assert {name for names in missing for name in names} <= left_out, missing


# The pages ----------------------------------------------------------------------------------------

PAGES = "import json\nfrom nvgpu.webapp import app\npage = app.test_client()\n"


def configured(desk, text: str) -> dict:
    (desk.directory / "nvgpu_master.cfg").write_text(text)
    return {"NVGPU_CLUSTER_CFG": desk.directory / "nvgpu_master.cfg"}


def test_what_an_agent_tells(desk):
    status, cluster = desk.ask(PAGES, "page.get('/gpu_status').json", "page.get('/cluster_status').json")
    assert status["hostname"] == socket.gethostname() and cluster == [status]
    assert set(status["gpus"][0]) == {
        *("type", "is_available", "pids", "users", "running_since", "utilization", "memory", "clock_mhz"),
        *("temperature", "cmd"),
    }


def test_no_agents_show_nothing(desk):
    env = configured(desk, "AGENTS = []\n")
    assert desk.ask(PAGES, "page.get('/cluster_status').json", "page.get('/').status", env=env) == [
        [],
        "200 OK",
    ]


def test_an_agent_without_a_driver_says_so(make_desk):
    desk = make_desk('library_missing = true\n[[device]]\nmodel = "T4"\n')
    status, (own,), page = desk.ask(
        PAGES,
        "page.get('/gpu_status').status_code",
        "page.get('/cluster_status').json",
        "page.get('/').status_code",
    )
    assert status == 503 and "driver" in own["error"].lower() and page == 200


def test_the_page_escapes_what_workloads_made(busy):
    evil = busy.directory / "<script>alert(1)</script>.py"
    evil.parent.mkdir(parents=True, exist_ok=True)
    evil = busy.directory / "<b>x.py"
    evil.write_text("input()")
    process = subprocess.Popen([sys.executable, str(evil)], stdin=subprocess.PIPE)
    busy.machine.change(f'[[device]]\nmodel = "T4"\n[[device.process]]\npid = {process.pid}\n')
    try:
        (html,) = busy.ask(PAGES, "page.get('/').text")
    finally:
        process.kill()
        process.communicate()
    assert "&lt;b&gt;x.py" in html and "<b>" not in html


def test_a_token_is_asked_for(desk):
    env = configured(desk, "AGENTS = ['self']\nTOKEN = 'secret'\n")
    get = "page.get('/gpu_status'{}).status_code"
    assert desk.ask(
        PAGES,
        get.format(""),
        get.format(", headers={'Authorization': 'Bearer secret'}"),
        get.format(", headers={'Authorization': 'Bearer other'}"),
        get.format(", auth=('anybody', 'secret')"),
        env=env,
    ) == [401, 200, 401, 200]


def as_hub_file(desk, text: str):
    (desk.directory / "nvgpu_master.cfg").write_text(text)
    return desk.run("python3", "-m", "nvgpu.agents", "nvgpu_master.cfg")


def test_a_hub_of_berth_reads_what_is_made_of_the_masters_file(desk):
    """The file is that of nvgpu's document, with what else Python lets one write."""
    answer = as_hub_file(
        desk,
        "# nvgpu_master.cfg\n'''About\nthis'''\nimport_name = print('executed')\nAGENTS = [\n"
        "         'self', # node01 - master\n         'http://node02' ':1080',\n]; DEBUG = True\n",
    )
    assert answer.status == 0, answer.err
    assert answer.out == (
        '[[agent]]\nurl = "self"\n[[agent]]\nurl = "http://node02:1080"\n'
        "# insecure = true    # asks over plain HTTP without a token: anybody on the network could answer\n"
    )
    assert as_hub_file(desk, "").out == '[[agent]]\nurl = "self"\n'
    assert as_hub_file(desk, "AGENTS = ()\nTOKEN = None\n").out == ""
    secret = as_hub_file(desk, "AGENTS = ('http://n:1',)\nTOKEN = 'geheim'\n").out
    assert "token-file" in secret and "geheim" not in secret and "insecure" not in secret


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AGENTS = []\n\nimport os\n", "nvgpu_master.cfg:3: only NAME = VALUE is read here"),
        ("AGENTS += ['a']\n", "nvgpu_master.cfg:1: only NAME = VALUE is read here"),
        ("AGENTS = ['a'] + more\n", "nvgpu_master.cfg:1: AGENTS must be a literal"),
        ("AGENTS = 'self'\n", "AGENTS must be a list of texts"),
        ("AGENTS = ['self',\n 3]\n", "AGENTS must be a list of texts"),
        ("AGENTS = ['self\n]\n", "line 1"),
    ],
)
def test_a_masters_file_that_cannot_be_read_is_told_with_its_line(desk, text, words):
    answer = as_hub_file(desk, text)
    assert answer.status == 1 and words in answer.err


def test_a_relative_configuration_is_one_of_the_current_directory(desk):
    configured(desk, "AGENTS = ['http://127.0.0.1:9']\n")
    asked = "page.get('/cluster_status').json"
    (report,) = desk.ask(PAGES, asked, env={"NVGPU_CLUSTER_CFG": "nvgpu_master.cfg"})
    assert report == [{"error": "Host not available"}]


def test_what_programs_of_the_original_import_of_its_pages(desk):
    setup = (
        PAGES
        + """
from flask.views import MethodView
from nvgpu.list_gpus import colored
from nvgpu.webapp import ansi_text_to_html, api
class Hello(MethodView):
    def get(self, name="you"): return {"hello": name}
api.add_resource(Hello, "/hello", "/hello/<name>")
"""
    )
    shown = "ansi_text_to_html('<b>\\033[31m[!]\\033[0m\\033[32mx')"
    pages, html, plain, coloured = desk.ask(
        setup,
        "[page.get('/hello').json, page.get('/hello/a').json]",
        shown,
        "colored('x', 'red') + colored('y')",
        "[__import__('os').environ.pop('NO_COLOR', 0), __import__('os').environ.update(FORCE_COLOR='1'), colored('x', 'red')][2]",
    )
    assert pages == [{"hello": "you"}, {"hello": "a"}]
    assert html.startswith("<!doctype html>") and html.count("<span") == html.count("</span>") == 2
    assert "&lt;b&gt;" in html and "<b>" not in html and "\033" not in html and ">[!]</span>" in html
    assert (plain, coloured) == ("xy", "\033[31mx\033[0m")


def test_a_configuration_that_is_not_there_is_an_error(desk):
    (answer,) = desk.ask("", "__import__('nvgpu.webapp')", env={"NVGPU_CLUSTER_CFG": "/nonexistent"})
    assert answer["raises"] == "FileNotFoundError"


class Agent(http.server.BaseHTTPRequestHandler):
    """An agent that answers as its path begins: /broken, /html, /odd, /huge, /noise, /slow, or /together."""

    together = threading.Barrier(3)

    def do_GET(self):
        kind = self.path.split("/")[1]
        if kind == "together":
            self.together.wait(DEADLINE_S)
        if kind == "noise":
            self.wfile.write(b"no HTTP at all\r\n\r\n")
            return
        if kind == "slow":
            # A byte now and then, each in time; until the other end has had enough.
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(b"H")
                    self.wfile.flush()
                    if select.select([self.connection], [], [], 0.1)[0] and not self.connection.recv(1):
                        return
        self.send_response(500 if kind == "broken" else 200)
        self.end_headers()
        text = {"odd": b'{"gpus": [{"type": 1}]}', "huge": b'{"gpus": []}' + b" " * (5 << 20)}
        with contextlib.suppress(OSError):
            self.wfile.write(text.get(kind, b"<html>"))

    def log_message(self, *_):
        pass


@pytest.fixture
def agents():
    """The address of a server of such agents."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Agent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def reports_of(desk, hosts, timeout_s):
    setup = f"from nvgpu import master\nmaster.TIMEOUT_S = {timeout_s}"
    (reports,) = desk.ask(setup, f"master.gather_reports({hosts!r})")
    return reports


def test_what_a_master_says_of_its_agents(desk, agents):
    hosts = ["self", "http://127.0.0.1:9"]
    hosts += [f"{agents}/{kind}" for kind in ("broken", "html", "odd", "huge", "noise")]
    reports = reports_of(desk, hosts, DEADLINE_S)
    assert reports[0]["hostname"] == socket.gethostname()
    assert [report["error"] for report in reports[1:]] == [
        "Host not available",
        "Bad response (500)",
        "Bad response (not JSON)",
        "Bad response (not a report)",
        "Bad response (not JSON)",
        "Bad response (not HTTP)",
    ]


def test_a_master_has_enough_of_an_agent_that_is_silent_or_slow(desk, agents):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hosts = [f"http://127.0.0.1:{silent.getsockname()[1]}", f"{agents}/slow"]
        reports = reports_of(desk, hosts, 1)
    assert [report["error"] for report in reports] == ["Connection timeout"] * 2


def test_a_master_asks_all_at_once(desk, agents):
    """None of these answers before all have been asked."""
    reports = reports_of(desk, [f"{agents}/together"] * Agent.together.parties, DEADLINE_S)
    assert [report["error"] for report in reports] == ["Bad response (not JSON)"] * Agent.together.parties


def test_a_report_of_an_older_agent_is_shown(desk):
    row = dict.fromkeys(("type", "running_since", "utilization", "clock_mhz", "temperature", "cmd"))
    row |= {"is_available": True, "pids": "", "users": ""}
    setup = "from nvgpu import master"
    shown = f"master.format_reports_to_ansi(['old'], [{{'gpus': [{row!r}]}}])"
    known, text, bad = desk.ask(
        setup,
        f"master._is_report({{'gpus': [{row!r}]}})",
        shown,
        f"master._is_report({{'gpus': [{row | {'memory': 3}!r}]}})",
    )
    assert known and "N/A" in text and not bad


def fetched(command: str, pages: list) -> str:
    """A program that starts the server as the document does, and prints what the pages answer."""
    return f"""
import os, signal, subprocess, sys, time, urllib.request
server = subprocess.Popen({command!r}, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
while b"Running on" not in server.stderr.readline():
    assert server.poll() is None
for page in {pages!r}:
    print(urllib.request.urlopen("http://127.0.0.1:1080" + page).read().decode())
os.killpg(server.pid, signal.SIGTERM)
"""


def in_a_network_of_its_own() -> list:
    """The port of the document may be in use here: words that run a command where it is not."""
    prefix = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs network namespaces and ip")
    return prefix


def test_the_example_of_an_agent(desk):
    (desk.directory / "fetch.py").write_text(fetched(example("nvgpu.md", "an agent"), ["/gpu_status"]))
    answer = desk.run(*in_a_network_of_its_own(), "python3", "fetch.py")
    assert answer.status == 0, answer.err
    assert len(json.loads(answer.out)["gpus"]) == 4


def test_the_example_of_a_master(desk):
    path = configured(desk, example("nvgpu.md", "the config of a master"))["NVGPU_CLUSTER_CFG"]
    command = example("nvgpu.md", "a master").replace("/path/to/nvgpu_master.cfg", str(path))
    (desk.directory / "fetch.py").write_text(fetched(command, ["/cluster_status", "/"]))
    answer = desk.run(*in_a_network_of_its_own(), "python3", "fetch.py")
    assert answer.status == 0, answer.err
    own, *others = json.loads(answer.out.splitlines()[0])
    assert len(own["gpus"]) == 4 and others == [{"error": "Host not available"}] * 3
    for name in ("self", "http://node02:1080", "http://node03:1080", "http://node04:1080"):
        assert name in answer.out


def served(desk):
    """An agent of ours on a port that was free; its address."""
    command = "from nvgpu.webapp import app; app.run(port=0)"
    process = desk.machine.start("python3", "-c", command, cwd=desk.directory)
    for line in process.stderr:
        if "Running on " in line:
            return line.split("Running on ")[1].split()[0]
    raise AssertionError("no agent")


def test_the_page_of_an_original_master_survives_an_agent_of_ours(desk):
    url = served(desk)
    setup = "from nvgpu.master import *\nfrom nvgpu.webapp import ansi_text_to_html"
    hosts = f"['self', {url!r}]"
    page = f"ansi_text_to_html(format_reports_to_ansi({hosts}, gather_reports({hosts})))"
    (html,) = desk.ask(setup, page, original="nvgpu")
    assert isinstance(html, str), html
    assert "RTX 3090" in html and "replace the master" in html


def test_a_script_with_requests_gets_the_whole_report_of_an_agent(desk):
    asking = "__import__('requests').get({!r}).json()".format(served(desk) + "/gpu_status")
    (report,) = desk.ask("", f"len({asking}['gpus'])", original="nvgpu")
    assert report == 4


@pytest.mark.parametrize("module", ["nvgpu.list_gpus", "nvgpu"])
def test_the_table_by_the_name_of_its_module(desk, module):
    words = ["list"] if module == "nvgpu" else []
    answer = desk.run("python3", "-m", module, *words)
    assert (answer.status, answer.out) == (0, desk.run("nvl").out)


def test_the_pages_by_the_name_of_their_module(desk):
    prefix = in_a_network_of_its_own()
    answer = desk.run(*prefix, "python3", "-c", fetched("python3 -m nvgpu.webapp", ["/gpu_status"]))
    assert json.loads(answer.out)["hostname"] == socket.gethostname(), answer.err
