"""How long a lease lasts, whatever becomes of its program."""

import os
import signal

import pytest

HOLD = """
lease = berth.lease(2)
"""


def test_ctrl_c_ends_a_wait_at_once(host):
    holder = host.start("berth.lease(2); say('ready'); hear()").says("ready")
    code = """
    try:
        berth.lease(on_wait=say_once("waits"))
    except KeyboardInterrupt as interrupt:
        kept = interrupt  # and with it the frames of the wait
        say("interrupted", os.environ.get("CUDA_VISIBLE_DEVICES"))
    hear()
    """
    waiter = host.start(code).says("waits").signal(signal.SIGINT).says("interrupted None")
    # When it says so its place is given up already.
    assert host.waiting() == 0
    waiter.tell().ends()
    holder.tell().ends()
    assert host.free() == 2


# What Python does with a Ctrl-C, it does between two steps of a function of its own: at its first
# one and at each line there may be one. `berth` itself is interrupted at its n-th such step, once,
# and what was raised is kept, with all that hangs on its frames.
INTERRUPTS = """
import itertools, traceback

def interrupted(way, n):
    left = [n]
    def trace(frame, event, _):
        if os.path.dirname(frame.f_code.co_filename) != os.path.dirname(berth.__file__):
            return None
        if event != "return":
            left[0] -= 1
            if left[0] == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace
    kept = None
    sys.settrace(trace)
    try:
        way()
    except KeyboardInterrupt as interrupt:
        kept = interrupt
    finally:
        sys.settrace(None)
    return kept

def leads_to(name):
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return ""

def held():
    return sum("/leases/" in leads_to(name) for name in os.listdir("/proc/self/fd"))

def by_name():
    global lease
    lease = berth.lease()

def by_with():
    with berth.lease() as lease:
        pass

def by_await():
    async def main():
        global lease
        lease = await berth.lease()
    import asyncio
    asyncio.run(main())
"""


@pytest.mark.parametrize("way", ["by_name", "by_with", "by_await"])
def test_a_ctrl_c_at_any_step_leaves_no_lease_and_no_variables(eight, way):
    code = f"""
    before = dict(os.environ)
    {way}()
    steps = 0
    if "lease" in globals():
        lease.release()
    for n in itertools.count(1):
        kept = interrupted({way}, n)
        if kept is None:
            break
        steps += 1
        assert held() == 0, (n, traceback.format_exception(None, kept, kept.__traceback__))
        assert dict(os.environ) == before, n
    say(steps > 20)
    """
    assert eight.says(INTERRUPTS + code.replace("\n    ", "\n"))[-1:] == ["True"]


def test_a_ctrl_c_that_comes_with_the_grant_is_met_before_anybody_has_the_lease(host):
    code = """
    from berth import _environment
    real = _environment.enter
    def entered(layer):
        real(layer)
        signal.raise_signal(signal.SIGINT) if hasattr(signal, "raise_signal") else os.kill(os.getpid(), signal.SIGINT)
    _environment.enter = entered
    kept = []
    for ask in berth.lease, lambda: berth.lease().__enter__():
        try:
            ask()
        except KeyboardInterrupt as interrupt:
            kept.append(interrupt)
        say(len(kept), os.environ.get("BERTH_LEASE"))
    hear()
    """
    program = host.start(code).says("1 None").says("2 None")
    assert host.free() == 2
    program.tell().ends()


def test_a_signal_handler_that_returns_lets_the_wait_go_on(host):
    holder = host.start("berth.lease(2); say('ready'); hear()").says("ready")
    code = r"""
    signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"handled\n"))
    say(berth.lease(on_wait=say_once("waits")).ids)
    """
    waiter = host.start(code).says("waits").signal(signal.SIGUSR1).says("handled")
    assert host.waiting() == 1
    holder.tell().ends()
    waiter.says("(0,)")


def test_a_killed_waiter_leaves_the_queue(host):
    holder = host.start("berth.lease(2); say('ready'); hear()").says("ready")
    waiter = host.start("berth.lease(on_wait=say_once('waits'))").says("waits")
    waiter.signal(signal.SIGKILL).ends()
    host.starts_waiting(0)
    holder.tell().ends()
    assert host.free() == 2


def test_a_killed_waiter_leaves_the_queue_although_a_fork_of_it_lives(host):
    host.start("berth.lease(2); say('ready'); hear()").says("ready")
    code = """
    def told(waiting):
        if os.fork() == 0:
            signal.pause()
        say("waits")
    berth.lease(on_wait=told)
    """
    waiter = host.start(code, start_new_session=True).says("waits")
    waiter.signal(signal.SIGKILL).ends()
    try:
        host.starts_waiting(0)
    finally:
        os.killpg(waiter.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "sys.exit(3)",
        "os._exit(3)",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "raise RuntimeError('an exception')",
        "os.execvp('true', ['true'])",
        "os.abort()",
    ],
)
@pytest.mark.parametrize("way", ["lease = berth.lease(2)", "with berth.lease(2) as lease:"])
def test_every_end_of_the_program_ends_the_lease(host, way, ending):
    then = f"say('holds'); hear(); {ending}"
    code = f"{way} {then}" if way.endswith(":") else f"{way}; {then}"
    if ending.startswith("raise") or way.endswith(":"):
        code = (
            f"{way}\n    say('holds'); hear()\n    {ending}"
            if way.endswith(":")
            else f"{way}\nsay('holds'); hear()\n{ending}"
        )
    program = host.start(code).says("holds")
    assert host.free() == 0
    program.tell().ends()
    assert host.free() == 2


def test_a_fork_holds_the_lease_until_it_ends_too(host):
    code = """
    lease = berth.lease(2)
    if os.fork() == 0:
        say("fork", os.getpid())
        signal.pause()
    say("parent")
    os._exit(0)
    """
    program = host.start(code, start_new_session=True)
    lines = {program.hears().split()[0] for _ in range(2)}
    assert lines == {"fork", "parent"}
    program.ends()
    assert host.free() == 0
    os.killpg(program.pid, signal.SIGKILL)
    host.becomes_free(2)


def test_a_fork_that_leaves_the_block_does_not_end_its_parents_lease(host):
    code = """
    with berth.lease(2):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            say("child has ended")
            hear()
    """
    program = host.start(code).says("child has ended")
    assert host.free() == 0
    program.tell().ends()
    assert host.free() == 2


def test_release_in_a_fork_ends_it_for_all(host):
    code = """
    lease = berth.lease(2)
    child = os.fork()
    if child == 0:
        lease.release()
        os._exit(0)
    os.waitpid(child, 0)
    say("child has ended")
    hear()
    """
    program = host.start(code).says("child has ended")
    assert host.free() == 2
    program.tell().ends()


def test_a_spawned_program_does_not_hold_it(host):
    code = """
    lease = berth.lease(2)
    child = subprocess.Popen(["sleep", "1000"], close_fds=False)
    say(child.pid)
    """
    program = host.start(code)
    child = int(program.hears())
    program.ends()
    try:
        assert host.free() == 2
    finally:
        os.kill(child, signal.SIGKILL)


PARALLEL = """
import multiprocessing
import berth

def work(conn, own):
    if own:
        with berth.lease(own, set_environ=False) as lease:
            conn.send(lease.ids)
            conn.recv()
    else:
        conn.send("ready")
        conn.recv()

def start(method, own):
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, own), daemon=False)
    process.start()
    return process, ours
"""


@pytest.fixture
def parallel(host, tmp_path):
    """A host whose programs can import `parallel`: multiprocessing needs a module that it can import again."""
    (tmp_path / "parallel.py").write_text(PARALLEL)
    host.machine.env["PYTHONPATH"] = str(tmp_path)
    return host


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_worker_that_is_a_program_of_its_own_does_not_hold_it(parallel, method):
    code = """
    from parallel import start
    if __name__ == "__main__":
        lease = berth.lease(2)
        process, pipe = start(sys.argv[1], 0)
        say(pipe.recv())
        lease = None
        berth._lease._held.clear()
        hear()
        say("going")
        os._exit(0) if sys.argv[1] == "never" else None
        pipe.send("end")
        process.join()
    """
    program = parallel.start(code, method).says("ready")
    # Only the parent's part is gone with its object; a worker that had one would keep the lease.
    assert parallel.free() == 2
    program.tell().says("going").ends()


def test_a_worker_by_fork_holds_it(parallel):
    code = """
    from parallel import start
    lease = berth.lease(2)
    process, pipe = start("fork", 0)
    say(pipe.recv())
    lease = None
    berth._lease._held.clear()
    hear()
    pipe.send("end")
    process.join()
    say("joined")
    hear()
    """
    program = parallel.start(code).says("ready")
    assert parallel.free() == 0
    program.tell().says("joined")
    parallel.becomes_free(2)
    program.tell().ends()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_lease_for_themselves(parallel, method):
    code = """
    from parallel import start
    if __name__ == "__main__":
        workers = [start(sys.argv[1], 1) for _ in range(2)]
        say(sorted(pipe.recv() for _, pipe in workers))
        for process, pipe in workers:
            pipe.send("end")
        for process, pipe in workers:
            process.join()
    """
    assert parallel.says(code, method) == ["[(0,), (1,)]"]
    assert parallel.free() == 2


def test_threads_lease_for_themselves(eight):
    code = """
    found, all_have = [], threading.Barrier(8)
    def work():
        with berth.lease(set_environ=False) as lease:
            all_have.wait(30)
            found.append(lease.torch_device())
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    say(sorted(found) == [f"cuda:{i}" for i in range(8)])
    """
    assert eight.says(code) == ["True"]
    assert eight.free() == 8


def test_two_threads_cannot_both_set_the_environment(eight):
    code = """
    inside, done = threading.Event(), threading.Event()
    def work():
        with berth.lease():
            inside.set()
            done.wait(30)
    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(30)
    try:
        berth.lease()
    except berth.Usage as error:
        say("another thread or task" in str(error), "set_environ=False" in str(error))
    done.set()
    thread.join()
    with berth.lease():
        say("later it can")
    """
    assert eight.says(code) == ["True True", "later it can"]


def test_the_program_gets_no_threads_handlers_children_or_driver(host):
    code = """
    def self():
        handlers = [signal.getsignal(number) for number in signal.valid_signals()]
        return handlers, len(os.listdir("/proc/self/task")), signal.pthread_sigmask(signal.SIG_BLOCK, [])
    before = self()
    files = len(os.listdir("/proc/self/fd"))
    def children():
        return open(f"/proc/self/task/{os.getpid()}/children").read()
    for ask in berth.snapshot, berth.pick, berth.why, berth.lease:
        ask()
        say(ask.__name__, children())
    try:
        berth.lease(9)
    except berth.Impossible:
        say("refused", children())
    say(self() == before, len(os.listdir("/proc/self/fd")) == files + 3)
    maps = open("/proc/self/maps").read()
    say("libnvidia-ml" in maps, "libcuda" in maps)
    """
    assert host.says(code) == [
        "snapshot ",
        "pick ",
        "why ",
        "lease ",
        "refused ",
        "True True",
        "False False",
    ]


def test_a_host_at_its_limit_of_open_files_has_all_of_a_lease_or_nothing(eight):
    code = """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def leads_to(name):
        try:
            return os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            return ""

    def leave(room):
        used = {int(name) for name in os.listdir("/proc/self/fd")}
        unused = [number for number in range(soft) if number not in used]
        resource.setrlimit(resource.RLIMIT_NOFILE, (unused[room], hard))

    def try_with(room):
        all_of_them = berth.lease(8)
        mine = None

        def go_on(waiting):
            all_of_them.release()
            leave(room)

        # Taken in the environment of no other lease, so that the other one is waited for.
        del os.environ["BERTH_LEASE"]
        try:
            mine = berth.lease(4, mask=False, set_environ=False, on_wait=go_on)
        except (OSError, berth.Error):
            pass
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if mine is None:
            return 0
        held = sum("/devices/" in leads_to(name) for name in os.listdir("/proc/self/fd"))
        mine.release()
        return held

    say(sorted({try_with(room) for room in range(12)}), berth.lease(8, wait=0).held)
    """
    assert eight.says(code) == ["[0, 4] True"]
