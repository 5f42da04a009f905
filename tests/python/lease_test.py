"""A lease in a program: what it sets, shows and gives back."""

import pytest
from hosts import Host

ENVIRONMENT = """
def environment():
    return [os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "BERTH_LEASE")]
"""


def test_the_environment_is_set_inside_and_restored(eight):
    code = """
    before = environment()
    with berth.lease(2, devices="5,6") as lease:
        say(environment() == ["5,6", "PCI_BUS_ID", lease.id], subprocess.getoutput("echo $CUDA_VISIBLE_DEVICES"))
    say(before, environment() == before)
    """
    said = eight.says(ENVIRONMENT + code.replace("\n    ", "\n"), env={"CUDA_VISIBLE_DEVICES": "5,6,7"})
    assert said == ["True 5,6", "['5,6,7', None, None] True"]


def test_a_lease_says_what_it_is(eight):
    code = """
    lease = berth.lease(2, devices=[3, 4], note="mine")
    say(lease.ids, [u[:4] for u in lease.uuids], [d.index for d in lease], len(lease), lease.visible_devices)
    say(lease.torch_device(), lease.torch_device(1), lease.torch_device(-1), lease.held, lease.notes)
    say(repr(lease) == f"<berth.Lease {lease.id} of GPU 3, 4>", len(lease.id))
    lease.release()
    lease.release()
    say(repr(lease), lease.held)
    for question in lambda: lease.ids, lambda: lease.__enter__():
        try:
            question()
        except berth.Usage as error:
            say(error)
    """
    assert eight.says(code) == [
        "(3, 4) ['GPU-', 'GPU-'] [3, 4] 2 3,4",
        "cuda:0 cuda:1 cuda:1 True ()",
        "True 16",
        "<berth.Lease, released> False",
        "this lease was released",
        "this lease was released: ask for a new one",
    ]


def test_torch_device_takes_an_index_of_the_lease(host):
    code = """
    with berth.lease() as lease:
        for i in 1, "0":
            try:
                lease.torch_device(i)
            except (IndexError, TypeError) as error:
                say(error)
    """
    assert host.says(code) == ["the lease has 1 devices, and no device 1", "i must be an int, not '0'"]


def test_the_host_is_the_holder(host):
    program = host.start('lease = berth.lease(note="night run"); say(lease.id); hear()')
    lease = program.hears()
    (listed,) = host.machine.berth("list", "--json").json["leases"]
    assert (listed["id"], listed["pid"], listed["note"]) == (lease, program.pid, "night run")
    assert listed["request"] == "1 whole GPU"
    assert not listed["kept"]


def test_a_process_of_the_host_on_its_device_is_no_outsider(host):
    program = host.start('lease = berth.lease(placeholder="cuda"); say("ready"); hear()').says("ready")
    (process,) = host.machine.berth("list", "--json").json["devices"][0]["processes"]
    assert process["pid"] == program.pid
    assert process["lease"]


def test_release_ends_the_program_that_holds_it(host):
    program = host.start("lease = berth.lease(); say(lease.id); hear()")
    assert host.machine.berth("release", program.hears()).status == 0
    assert program.ends() == -15
    assert host.free() == 2


def test_a_lease_inside_a_lease_gets_only_its_devices(eight):
    code = """
    with berth.lease(2, devices="4,5") as outer:
        with berth.lease() as inner:
            say(inner.ids, os.environ["CUDA_VISIBLE_DEVICES"], os.environ["BERTH_LEASE"] == f"{outer.id}/{inner.id}")
        say(os.environ["CUDA_VISIBLE_DEVICES"])
        try:
            berth.lease(3)
        except berth.Impossible:
            say("impossible")
    """
    assert eight.says(code) == ["(4,) 4 True", "4,5", "impossible"]


def test_leases_may_end_in_any_order(eight):
    code = """
    with berth.lease(4, devices="0,1,2,3") as outer:
        inner = berth.lease(1)
        outer.release()
        say(os.environ["CUDA_VISIBLE_DEVICES"])
        inner.release()
        say(os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("BERTH_LEASE"))
    """
    assert eight.says(code) == ["0", "None None"]


def test_a_second_lease_is_another_gpu_beside_and_the_process_sees_both(eight):
    code = """
    def environment():
        return os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("BERTH_LEASE")
    a = berth.lease(devices="5")
    b = berth.lease(2, devices="3,4", wait=0)
    say(a.ids, b.ids, environment() == ("5,3,4", b.id))
    say(a.torch_device(), b.torch_device(), b.torch_device(1), b.visible_devices)
    with berth.lease(devices="0") as part:
        say(part.ids, environment() == ("5,3,4,0", part.id))
        with berth.lease() as inside:
            say(inside.ids, environment() == ("0", f"{part.id}/{inside.id}"))
    say(environment() == ("5,3,4", b.id))
    a.release()
    say(environment() == ("3,4", b.id), b.torch_device())
    b.release()
    say(environment())
    """
    assert eight.says(code) == [
        "(5,) (3, 4) True",
        "cuda:0 cuda:1 cuda:2 3,4",
        "(0,) True",
        "(0,) True",
        "True",
        "True cuda:0",
        "(None, None)",
    ]


def test_the_one_in_the_middle_may_end_first(eight):
    code = """
    a, b, c = (berth.lease(devices=str(i)) for i in (6, 2, 4))
    b.release()
    say(os.environ["CUDA_VISIBLE_DEVICES"], os.environ["BERTH_LEASE"] == c.id, c.torch_device())
    c.release()
    say(os.environ["CUDA_VISIBLE_DEVICES"], os.environ["BERTH_LEASE"] == a.id)
    a.release()
    say(os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("BERTH_LEASE"))
    """
    assert eight.says(code) == ["6,4 True cuda:1", "6 True", "None None"]


def test_two_shares_of_one_gpu_are_one_gpu_of_the_process(make_machine):
    host = Host(make_machine("1xH100"))
    code = """
    a = berth.lease(memory="20G")
    b = berth.lease(memory="20G", wait=0)
    say(os.environ["CUDA_VISIBLE_DEVICES"], a.torch_device(), b.torch_device())
    a.release()
    say(os.environ["CUDA_VISIBLE_DEVICES"], b.torch_device())
    """
    assert host.says(code) == ["0 cuda:0 cuda:0", "0 cuda:0"]


def test_a_share_is_bounded_where_mps_runs_until_another_lease_is_beside_it(make_machine):
    host = Host(make_machine("2xH100"))
    code = """
    def bounds():
        names = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
        return [os.environ.get(name) for name in names]
    os.environ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = "90"
    with berth.lease(memory="20G", mps_percent=30) as lease:
        say(bounds(), lease.variables["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"])
        say(bounds())
    say(bounds())
    a = berth.lease(memory="20G", devices="0")
    say(bounds())
    b = berth.lease(memory="10G", devices="1")
    say(bounds())  # the numbers of two masks are not those of one
    b.release()
    say(bounds())
    a.release()
    say(bounds())
    """
    assert host.says(code) == [
        "['0=20480M', '30'] 30",
        "['0=20480M', '30']",
        "[None, '90']",
        "['0=20480M', '90']",
        "[None, '90']",
        "['0=20480M', '90']",
        "[None, '90']",
    ]


def test_a_mask_of_before_bounds_each_of_them(eight):
    code = """
    a = berth.lease()
    b = berth.lease()
    say(a.ids, b.ids)
    try:
        berth.lease(wait=0)
    except berth.NotNow:
        say("no third")
    b.release()
    a.release()
    say(os.environ["CUDA_VISIBLE_DEVICES"])
    """
    assert eight.says(code, env={"CUDA_VISIBLE_DEVICES": "2,7"}) == ["(2,) (7,)", "no third", "2,7"]


def test_one_that_could_only_wait_for_its_own_thread_is_refused(host):
    code = """
    a = berth.lease(2)
    try:
        berth.lease()
    except berth.NotNow as error:
        say("it would wait for itself" in str(error), a.id[-6:] in str(error))
    with a:
        say(berth.lease().ids)
    """
    assert host.says(code) == ["True True", "(0,)"]


def test_once_cuda_has_looked_its_numbers_stay(eight):
    code = """
    a, b = berth.lease(devices="5"), berth.lease(devices="3")
    class Up:
        cuda_is_up = staticmethod(lambda: True)
    berth._environment._berth = Up
    a.release()
    say(b.torch_device(), os.environ["CUDA_VISIBLE_DEVICES"])
    """
    assert eight.says(code) == ["cuda:1 3"]


def test_one_that_nobody_keeps_lasts_until_the_program_ends(host):
    program = host.start("berth.lease(2); import gc; gc.collect(); say('ready'); hear()").says("ready")
    assert host.free() == 0
    program.tell().ends()
    assert host.free() == 2


def test_an_exception_in_the_block_gives_it_back(host):
    code = """
    try:
        with berth.lease(2):
            raise KeyError("mine")
    except KeyError as error:
        say(error, os.environ.get("CUDA_VISIBLE_DEVICES"))
    with berth.lease(2, wait=0):
        say("again")
    """
    assert host.says(code) == ["'mine' None", "again"]


def test_the_environment_can_be_left_alone(eight):
    code = """
    lease = berth.lease(2, devices="5,6", set_environ=False)
    say(os.environ.get("BERTH_LEASE"), lease.torch_device(0), lease.torch_device(1))
    os.environ["CUDA_VISIBLE_DEVICES"] = "3,6"
    with berth.lease(devices=3, set_environ=False) as other:
        say(other.torch_device(), os.environ["CUDA_VISIBLE_DEVICES"])
    """
    assert eight.says(code) == ["None cuda:5 cuda:6", "cuda:0 3,6"]


def test_a_device_that_the_mask_hides_has_no_number(eight):
    code = """
    with berth.lease(devices=5, mask=False, set_environ=False) as lease:
        try:
            lease.torch_device()
        except berth.Usage as error:
            say(error)
    """
    said = eight.says(code, env={"CUDA_VISIBLE_DEVICES": "0"})
    assert len(said) == 1
    assert said[0].startswith(
        "CUDA's number of GPU 5 in this process is not known: either CUDA_VISIBLE_DEVICES"
    )


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({}, "CUDA_DEVICE_ORDER=PCI_BUS_ID before CUDA starts"),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, "CUDA_DEVICE_ORDER=PCI_BUS_ID before CUDA starts"),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, "cuda:1"),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}, "cuda:0"),
        ({"CUDA_VISIBLE_DEVICES": "{second},{first}"}, "cuda:0"),
    ],
)
def test_where_cuda_may_count_otherwise_a_number_is_told_only_if_it_is_known(make_machine, env, said):
    host = Host(make_machine("1xT4+1xH100"))
    first, second = (device["uuid"] for device in host.machine.berth("list", "--json").json["devices"])
    env = {name: text.format(first=first, second=second) for name, text in env.items()}
    code = """
    with berth.lease(devices=1, mask=False, set_environ=False) as lease:
        try:
            say(lease.torch_device())
        except berth.Usage as error:
            say(error)
    """
    (line,) = host.says(code, env=env)
    assert said in line


def test_shared_leases_share_a_device(make_machine):
    from hosts import Host

    host = Host(make_machine("1xH100"))
    code = """
    a = berth.lease(memory="30G", set_environ=False)
    b = berth.lease(memory="30G", set_environ=False, wait=0)
    c = berth.lease(shared=True, set_environ=False, wait=0)
    say(a.ids, b.ids, c.ids)
    try:
        berth.lease(memory="30G", set_environ=False, wait=0)
    except berth.NotNow as error:
        say(error.verdicts[0].reason.split(",")[0])
    """
    assert host.says(code) == ["(0,) (0,) (0,)", "leased by root"]


def test_no_waiting_and_waiting_in_vain(host):
    holder = host.start("berth.lease(2); say('ready'); hear()").says("ready")
    code = """
    for wait in 0, "0", 0.05:
        try:
            berth.lease(wait=wait)
        except berth.Error as error:
            say(type(error).__name__, len(error.verdicts))
    """
    assert host.says(code) == ["NotNow 2", "NotNow 2", "TimedOut 2"]
    assert host.waiting() == 0
    holder.tell().ends()


@pytest.mark.parametrize("wait", ["None", "'10m'", "600"])
def test_a_waiter_is_told_and_gets_it_in_the_end(host, wait):
    holder = host.start("berth.lease(2, note='the holder'); say('ready'); hear()").says("ready")
    code = """
    def told(waiting):
        say(waiting.position, waiting.behind, waiting.waited_s < 100)
        say(waiting)
    lease = berth.lease(wait=%s, on_wait=told)
    say("got", lease.ids)
    """
    waiter = host.start(code % wait).says("1 None True")
    assert waiter.hears().startswith("first in line")
    second = host.start("""
    def told(waiting):
        say(waiting.position, waiting.behind.pid, waiting.behind.command != "")
    berth.lease(on_wait=told)
    """)
    assert second.hears() == f"2 {waiter.pid} True"
    holder.tell().ends()
    while "got" not in (line := waiter.hears()):
        pass
    assert line == "got (0,)"


def test_what_on_wait_raises_leaves_the_queue(host):
    holder = host.start("berth.lease(2); say('ready'); hear()").says("ready")
    code = """
    def told(waiting):
        raise KeyError("enough")
    try:
        berth.lease(on_wait=told)
    except KeyError as error:
        kept = error  # and with it the frames of the wait
        say(error)
    hear()
    """
    program = host.start(code).says("'enough'")
    assert host.waiting() == 0
    program.tell().ends()
    holder.tell().ends()


def test_a_function_can_be_leased_for(eight):
    code = """
    @berth.on_gpu(n=2, devices="3,4", note="in a function")
    def train(a, *, b):
        "Trains."
        return a + b, os.environ["CUDA_VISIBLE_DEVICES"]

    @berth.on_gpu
    def small():
        return os.environ["CUDA_VISIBLE_DEVICES"]

    say(train(1, b=2), train.__name__, train.__doc__, small() != "", os.environ.get("CUDA_VISIBLE_DEVICES"))
    try:
        @berth.on_gpu(1)
        def steps():
            yield 1
    except TypeError as error:
        say(error)
    """
    assert eight.says(code) == [
        "(3, '3,4') train Trains. True None",
        "on_gpu is for functions: a generator's body runs when its caller has left the lease",
    ]


# A notebook runs the text of a cell as often as one likes, in one namespace.
NOTEBOOK = """
sys.ps1 = "In: "
names = {"berth": berth, "say": say}
def run_cell(text):
    exec(compile(text, "<cell>", "exec"), names)
    return names
"""


def left_by(host, code: str) -> int:
    """How many GPUs the program has once it has come so far."""
    program = host.start(NOTEBOOK + code + "\nsay('done'); hear()\n")
    program.says("done")
    return 8 - host.free()


@pytest.mark.parametrize(
    "cell, left",
    [
        ("lease = berth.lease(wait=0)", 1),
        ("lease = berth.lease(\n    wait=0,\n    note='afternoon',\n)", 1),
        ("lease = berth.lease(wait=0, set_environ=False)", 1),
        ("for _ in range(3):\n    lease = berth.lease(wait=0)", 1),
        # Here each is still in somebody's hand, or nobody says that he is done with it.
        (
            "leases = [*names, berth.lease(wait=0)] if (names := globals().get('leases')) else [berth.lease(wait=0)]",
            3,
        ),
        ("lease = berth.lease(wait=0)\nkept = [*globals().get('kept', []), lease]", 3),
        ("berth.lease(wait=0)", 3),
        ("def take():\n    lease = berth.lease(wait=0)\n    return lease\nlease = take()", 3),
    ],
)
def test_a_cell_that_is_run_again_takes_no_more_than_before(eight, cell, left):
    assert left_by(eight, f"for _ in range(3): run_cell({cell!r})") == left


def test_a_program_that_is_no_notebook_keeps_each_lease(eight):
    assert left_by(eight, "del sys.ps1\nfor _ in range(3): run_cell('lease = berth.lease(wait=0)')") == 3


def test_a_lease_in_its_block_is_not_taken_from_it(eight):
    cell = "with berth.lease(wait=0) as lease:\n    held = lease\n    del held\n    lease = berth.lease(wait=0)\n    print(lease.held)"
    assert eight.says(NOTEBOOK + f"run_cell({cell!r})") == ["True"]
