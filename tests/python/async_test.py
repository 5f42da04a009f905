"""Leases in programs of asyncio."""

ASYNC = """
import asyncio

def run(main):
    asyncio.run(main())
"""


def says(host, code, **options):
    return host.says(ASYNC + code.replace("\n    ", "\n"), **options)


def test_async_with_takes_it_and_gives_it_back(host):
    code = """
    async def main():
        asked = berth.lease(2)
        say(asked, asked.held, os.environ.get("CUDA_VISIBLE_DEVICES"))
        async with asked as lease:
            say(lease.ids, os.environ["CUDA_VISIBLE_DEVICES"])
        say(asked.held, os.environ.get("CUDA_VISIBLE_DEVICES"))
        lease = await berth.lease()
        say(lease.ids)
        lease.release()
        with berth.lease() as lease:
            say(lease.ids)
    run(main)
    """
    assert says(host, code) == [
        "<berth.Lease, not taken yet> False None",
        "(0, 1) 0,1",
        "False None",
        "(0,)",
        "(0,)",
    ]
    assert host.free() == 2


def test_what_was_not_awaited_says_so(host):
    code = """
    async def main():
        try:
            berth.lease().ids
        except berth.Usage as error:
            say(error)
    run(main)
    """
    assert says(host, code) == ["this lease was not taken yet: await it, or use it by `with` or `async with`"]


def test_others_go_on_while_one_waits(host):
    code = """
    async def main():
        first = berth.lease(2, set_environ=False)
        await first
        waits = asyncio.Event()
        async def second():
            async with berth.lease(2, set_environ=False, on_wait=lambda waiting: waits.set()) as lease:
                say("second has", lease.ids)
        task = asyncio.create_task(second())
        await waits.wait()
        say("the loop goes on")
        first.release()
        await task
    run(main)
    """
    assert says(host, code) == ["the loop goes on", "second has (0, 1)"]


def test_a_cancelled_wait_leaves_the_queue_at_once(host):
    code = """
    async def main():
        first = await berth.lease(2, set_environ=False)
        waits = asyncio.Event()
        async def second():
            async with berth.lease(set_environ=False, on_wait=lambda waiting: waits.set()):
                say("never")
        task = asyncio.create_task(second())
        await waits.wait()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            say("cancelled")
        hear()
    run(main)
    """
    program = host.start(ASYNC + code.replace("\n    ", "\n")).says("cancelled")
    assert host.waiting() == 0
    program.tell().ends()


def test_wait_for_bounds_it(host):
    code = """
    async def main():
        first = await berth.lease(2, set_environ=False)
        try:
            await asyncio.wait_for(berth.lease(set_environ=False), 0.05)
        except asyncio.TimeoutError:
            say("timed out")
        try:
            await berth.lease(set_environ=False, wait=0)
        except berth.NotNow as error:
            say(len(error.verdicts))
    run(main)
    """
    assert says(host, code) == ["timed out", "2"]


def test_two_tasks_cannot_both_set_the_environment(host):
    code = """
    async def main():
        inside = asyncio.Event()
        async def one():
            async with berth.lease():
                inside.set()
                await asyncio.sleep(0)
                await done.wait()
        done = asyncio.Event()
        task = asyncio.create_task(one())
        await inside.wait()
        try:
            await berth.lease()
        except berth.Usage as error:
            say("another thread or task" in str(error))
        done.set()
        await task
        async with berth.lease():
            say("later it can")
    run(main)
    """
    assert says(host, code) == ["True", "later it can"]
    assert host.free() == 2


def test_a_coroutine_can_be_leased_for(host):
    code = """
    @berth.on_gpu(2)
    async def train(a):
        await asyncio.sleep(0)
        return a, os.environ["CUDA_VISIBLE_DEVICES"]
    async def main():
        say(await train(3), train.__name__)
    run(main)
    """
    assert says(host, code) == ["(3, '0,1') train"]


def test_a_partial_of_a_coroutine_can_be_leased_for(host):
    code = """
    import functools
    async def train(a, b):
        await asyncio.sleep(0)
        return a, b, os.environ["CUDA_VISIBLE_DEVICES"]
    async def main():
        say(await berth.on_gpu(2)(functools.partial(train, 3))(4))
    run(main)
    """
    assert says(host, code) == ["(3, 4, '0,1')"]
