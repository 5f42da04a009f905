"""CUDA in the program that leases: when it is too late for a mask, and placeholders."""

import pytest

CUDA_UP = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
"""


def test_cuda_that_is_up_is_seen_and_named(host):
    code = """
    try:
        berth.lease()
    except berth.Error as error:
        say(type(error).__name__, error)
    say(berth.lease(set_environ=False).torch_device())
    """
    first, second = host.says(CUDA_UP + code.replace("\n    ", "\n"))
    assert first.startswith("Error CUDA is up in this process already")
    assert "take the lease before the first use of CUDA, or use lease(set_environ=False)" in first
    assert second == "cuda:0"


def test_a_library_that_is_only_loaded_is_not_up(host):
    code = "import ctypes; ctypes.CDLL('libcuda.so.1')\nwith berth.lease() as lease: say(lease.ids)"
    assert host.says(code) == ["(0,)"]


def test_cuda_that_came_up_while_waiting_gives_the_lease_back(host):
    holder = host.start("berth.lease(2); say('ready'); hear()").says("ready")
    code = """
    import ctypes
    def told(waiting):
        say("waits")
        ctypes.CDLL("libcuda.so.1").cuInit(0)
    try:
        berth.lease(on_wait=told)
    except berth.Error as error:
        say(str(error).split(",")[0])
    hear()
    """
    waiter = host.start(code).says("waits")
    holder.tell().ends()
    while (line := waiter.hears()) == "waits":
        pass
    assert line == "CUDA is up in this process already"
    assert host.free() == 2


def test_cuda_placeholder_is_on_every_device_until_the_end_of_the_lease(eight):
    code = """
    def pids():
        return {d.index: [p.pid for p in d.processes] for d in berth.devices() if d.processes}
    with berth.lease(2, devices="3,6", placeholder="cuda"):
        say(pids() == {3: [os.getpid()], 6: [os.getpid()]})
    say(pids())
    """
    assert eight.says(code) == ["True", "{}"]


def test_a_fork_leaves_the_placeholder_alone(host):
    code = """
    lease = berth.lease(placeholder="cuda")
    child = os.fork()
    if child == 0:
        lease._leave()
        os._exit(0)
    os.waitpid(child, 0)
    say([p.pid for p in berth.devices()[0].processes] == [os.getpid()])
    """
    assert host.says(code) == ["True"]


def test_a_placeholder_that_fails_gives_the_lease_back(make_machine):
    from hosts import Host

    host = Host(make_machine("1xH100"))
    code = """
    def broken(ordinal):
        raise MemoryError("no room")
    try:
        berth.lease(placeholder=broken)
    except MemoryError as error:
        say(error, os.environ.get("CUDA_VISIBLE_DEVICES"))
    with berth.lease(wait=0):
        say("free again")
    """
    assert host.says(code) == ["no room None", "free again"]


def test_a_function_is_called_with_visible_numbers_and_kept(eight):
    code = """
    class Mine:
        def __call__(self, ordinal):
            say("put", ordinal, os.environ["CUDA_VISIBLE_DEVICES"])
            return ordinal + 10
        def release(self, thing):
            say("taken", thing)
    with berth.lease(2, devices="3,6", placeholder=Mine()):
        say("inside")
    with berth.lease(placeholder=lambda ordinal: say("plain", ordinal)):
        pass
    """
    assert eight.says(code) == [
        "put 0 3,6",
        "put 1 3,6",
        "inside",
        "taken 11",
        "taken 10",
        "plain 0",
    ]


FRAMEWORKS = {
    "torch": """
def zeros(count, device):
    print("torch.zeros", count, device)
""",
    "tensorflow": """
import contextlib
@contextlib.contextmanager
def device(name):
    print("device", name)
    yield
def zeros(count):
    print("zeros", count)
""",
    "pycuda": "",
}
SAID = {
    "torch": ["torch.zeros 1 cuda:0"],
    "tensorflow": ["device GPU:0", "zeros 1"],
    "pycuda": ["init", "Device 0", "make_context", "pop", "inside", "detach"],
}
PYCUDA_DRIVER = """
def init():
    print("init")
class Context:
    def pop(self): print("pop")
    def detach(self): print("detach")
class Device:
    def __init__(self, ordinal): print("Device", ordinal)
    def make_context(self):
        print("make_context")
        return Context()
"""


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_each_framework_is_called_as_it_wants(host, tmp_path, name):
    """A stand-in of the same name: the real one is too big, and needs a real GPU."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text(FRAMEWORKS[name])
    (folder / "driver.py").write_text(PYCUDA_DRIVER)
    code = f"with berth.lease(placeholder='{name}'): say('inside') if '{name}' == 'pycuda' else None"
    assert host.says(code, env={"PYTHONPATH": tmp_path, "PYTHONUNBUFFERED": "1"}) == SAID[name]


def test_a_framework_that_is_not_there_is_an_import_error_and_gives_the_lease_back(host):
    code = """
    try:
        berth.lease(placeholder="pycuda")
    except ImportError as error:
        say(error.name, len(berth._lease._held))
    """
    assert host.says(code) == ["pycuda 0"]
