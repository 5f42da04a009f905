"""Leases."""

from __future__ import annotations

import os
import sys

from . import _berth, _environment, _request
from ._errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    import types
    from collections.abc import Callable, Generator, Iterator
    from typing import Any, Literal, TypeVar, Union, overload

    from typing_extensions import Unpack

    from ._placeholder import Placed, Placeholder

    Function = TypeVar("Function", bound=Callable[..., Any])
    Wait = Union[None, int, float, str]
    Ending = Literal["well", "badly", "by_others"]
    OnWait = Callable[[_berth.Standing], object]
else:

    def overload(function):
        return function


# Those of a function that contains await: `async def`, with yield or without.
_COROUTINE = 0x80 | 0x200

# Whoever does not keep the object keeps the lease nevertheless, until the process ends.
_held: set[Lease] = set()


class Lease(_berth.Entered):
    """Devices that nobody else is given, made by `berth.lease`.

    The lease belongs to this process and to those forked from it, and ends with the last of them, or with
    `release()`. Programs that the process starts do not hold it.
    """

    def __init__(
        self,
        request: _berth.Request,
        *,
        mask: bool,
        wait: Wait,
        note: str | None,
        on_wait: OnWait | None,
        placeholder: Placeholder | None,
        set_environ: bool,
    ):
        super().__init__()
        if note is not None and not isinstance(note, str):
            raise TypeError(f"note must be a str, not {note!r}")
        if on_wait is not None and not callable(on_wait):
            raise TypeError(f"on_wait must be a function, not {on_wait!r}")
        self._request = request
        self._mask = bool(mask)
        self._wait_ms = _request.wait_ms(wait)
        self._note = note or ""
        self._on_wait = on_wait
        self._placed = None if placeholder is None else _placed_by(placeholder)
        self._set_environ = bool(set_environ)
        self._held: _berth.HeldLease | None = None
        self._released = False
        self._ended: _berth.HeldLease | None = None  # as long as its receipt can still be asked for
        self._receipt: dict[str, Any] | None = None
        self._layer: _environment.Layer | None = None
        self._pid = os.getpid()

    # Asking ---------------------------------------------------------------------------------------

    def _start(self) -> _berth.LeaseWait:
        if self._released:
            raise Usage("this lease was released: ask for a new one")
        if self._set_environ:
            _environment.check()
        variables, beside = _environment.surroundings()
        if self._on_wait is not None:
            beside = []  # it may release them
        more_variables, kept = _environment.added()
        variables, beside = variables + more_variables, beside + kept
        return _berth.LeaseWait.start(self._request, self._note, self._wait_ms, self._mask, variables, beside)

    def _see(self, wait: _berth.LeaseWait) -> None:
        waiting = wait.look()
        if waiting is not None and self._on_wait is not None:
            self._on_wait(waiting)

    def _hold(self, held: _berth.HeldLease) -> None:
        self._pid = os.getpid()
        self._held = held
        _held.add(self)
        if self._set_environ:
            _environment.check()
            values = {**dict.fromkeys(held.unset), **held.variables, "BERTH_LEASE": held.path}
            names = zip((device.uuid for device in held.devices), held.visible_devices.split(","))
            self._layer = _environment.Layer(held.id, next(iter(held.variables)), dict(names), values)
            _environment.enter(self._layer)
        if self._placed is not None:
            self._placed.put([self._ordinal(i) for i in range(len(held.devices))])
        # A Ctrl-C that has come by now is met here, where it ends the lease, and not by a caller
        # who does not have the lease yet.
        _berth.check_signals()

    def _give_up(self, wait: _berth.LeaseWait | None, held: _berth.HeldLease | None) -> None:
        # At once, and not when the traceback of what was raised is forgotten.
        if wait is not None:
            wait.cancel()
            held = held or wait.take_lease()
        if self._held is not None:
            self._end(True, "by_others")
        elif held is not None:
            held.release("by_others")

    def _acquire(self) -> Lease:
        if self._held is not None:
            return self
        wait = held = None
        try:
            wait = self._start()
            while (held := wait.take_lease()) is None:
                wait.sleep()
                self._see(wait)
            self._hold(held)
            return self
        except BaseException:
            self._give_up(wait, held)
            raise

    async def _acquire_async(self) -> Lease:
        if self._held is not None:
            return self
        import asyncio

        wait = held = None
        try:
            loop = asyncio.get_running_loop()
            wait = self._start()
            while (held := wait.take_lease()) is None:
                await _readable(loop, wait.fileno())
                self._see(wait)
            self._hold(held)
            return self
        except BaseException:
            self._give_up(wait, held)
            raise

    # That of _berth.Entered, in C: Python meets a Ctrl-C at the first step of a function of its
    # own, where the lease would be there already and its __exit__ not yet due.
    if TYPE_CHECKING:

        def __enter__(self) -> Lease: ...

    async def __aenter__(self) -> Lease:
        try:
            await self._acquire_async()
            if self._layer is not None:
                self._layer.is_block = True
            return self
        except BaseException:
            if self._held is not None:
                self._end(True, "by_others")
            raise

    def __await__(self) -> Generator[Any, None, Lease]:
        return self._acquire_async().__await__()

    async def __aexit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        self._leave(kind)

    def _leave(self, kind: type[BaseException] | None = None, *_: object) -> None:
        # What is no Exception ends a program from outside, as Ctrl-C does.
        ending: Ending = "well" if kind is None else "badly" if issubclass(kind, Exception) else "by_others"
        # A fork that comes to the end of the block gives up its own part, not its parent's.
        self._end(self._pid == os.getpid(), ending)

    def release(self) -> None:
        """Ends the lease now, for all processes that share it. Does nothing the second time."""
        self._end(True, "well")

    def _end(self, for_all: bool, ending: Ending) -> None:
        # Each step may be done twice: a Ctrl-C between two of them is met by a second call.
        self._released = True
        _held.discard(self)
        try:
            # In a fork, what the parent has put on the devices is the parent's.
            if self._placed is not None and self._pid == os.getpid():
                self._placed.take_away()
        finally:
            if self._layer is not None:
                _environment.leave(self._layer)
                self._layer = None
            if self._held is not None and for_all:
                self._held.release(ending)
                self._ended = self._held
            self._held = None

    @property
    def receipt(self) -> dict[str, Any] | None:
        """What the lease had and used, as `berth receipt --json` says it: wait, time, GPUs, energy, and of a lease that
        lasted a minute also memory and use. To be asked for after the end of the lease, in the process that ended it.

        None: there is no receipt, as of a lease in a `berth run` of this same program, whose receipt has it.
        """
        if not self._released:
            raise Usage("the receipt is there when the lease has ended: call release(), or leave its `with`")
        if self._ended is not None:
            import json

            text = self._ended.receipt()
            self._ended = None
            if text is not None:
                (self._receipt,) = json.loads(text)["runs"]
        return self._receipt

    # What it is -----------------------------------------------------------------------------------

    def _now(self) -> _berth.HeldLease:
        if self._held is None:
            raise Usage(
                "this lease was released"
                if self._released
                else "this lease was not taken yet: await it, or use it by `with` or `async with`"
            )
        return self._held

    @property
    def id(self) -> str:
        """Its name, as `berth list` shows it: 16 hexadecimal digits."""
        return self._now().id

    @property
    def devices(self) -> tuple[_berth.Device, ...]:
        """The devices as they were when they were granted, in index order."""
        return self._now().devices

    @property
    def ids(self) -> tuple[int, ...]:
        """Their indices in PCI bus order; a MIG instance has its GPU's."""
        return tuple(device.index for device in self.devices)

    @property
    def uuids(self) -> tuple[str, ...]:
        return tuple(device.uuid for device in self.devices)

    @property
    def visible_devices(self) -> str:
        """The value of the first of `variables`: indices; or UUIDs where one is a MIG instance, or a GPU of the machine
        is lost, hidden or split, so that the runtime does not count as the driver does."""
        return self._now().visible_devices

    @property
    def variables(self) -> dict[str, str]:
        """What shows a job these devices and no others.

        CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, or for AMD devices ROCR_VISIBLE_DEVICES.
        """
        return self._now().variables

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known about the choice, one sentence each."""
        return self._now().notes

    def torch_device(self, i: int = 0) -> str:
        """What PyTorch calls the i-th device of the lease in this process, such as "cuda:0".

        With `set_environ=False` the number is that among the devices that the process sees anyway.
        """
        if not isinstance(i, int):
            raise TypeError(f"i must be an int, not {i!r}")
        return f"cuda:{self._ordinal(i)}"

    def _ordinal(self, i: int) -> int:
        """CUDA's number in this process of the i-th device."""
        count = len(self._now().devices)
        if not -count <= i < count:
            raise IndexError(f"the lease has {count} devices, and no device {i}")
        if self._layer is not None:
            return self._layer.group.number(self.devices[i % count].uuid)
        if (ordinal := self._now().ordinals[i]) is None:
            raise Usage(
                f"CUDA's number of GPU {self.devices[i].label} in this process is not known: "
                "either CUDA_VISIBLE_DEVICES hides it, or the models differ and CUDA counts the fastest first; "
                "then set CUDA_DEVICE_ORDER=PCI_BUS_ID before CUDA starts and before the lease. Or a GPU of this "
                "machine is lost, hidden or split by MIG, and CUDA does not count it; then name GPUs by UUID in "
                "CUDA_VISIBLE_DEVICES, or leave set_environ as it is"
            )
        return ordinal

    @property
    def held(self) -> bool:
        """Whether this process holds it."""
        return self._held is not None

    def __len__(self) -> int:
        return len(self.devices)

    def __iter__(self) -> Iterator[_berth.Device]:
        return iter(self.devices)

    def __repr__(self) -> str:
        if self._held is None:
            return f"<berth.Lease, {'released' if self._released else 'not taken yet'}>"
        labels = ", ".join(device.label for device in self.devices)
        return f"<berth.Lease {self.id} of GPU {labels}>"


def _placed_by(placeholder: Placeholder) -> Placed:
    from . import _placeholder

    return _placeholder.Placed(_placeholder.named(placeholder))


def _rebound(caller: types.FrameType) -> Lease | None:
    """In a notebook, where a cell is run again and again: the lease that the name still has to which the caller is about
    to assign the next. Nobody could release it any more."""
    if not hasattr(sys, "ps1") or caller.f_code.co_name != "<module>":
        return None
    import opcode

    code, at = caller.f_code.co_code, caller.f_lasti + 2
    while at < len(code) and opcode.opname[code[at]] == "CACHE":
        at += 2
    if at >= len(code) or opcode.opname[code[at]] != "STORE_NAME":
        return None
    name = caller.f_code.co_names[code[at + 1]]
    lease = caller.f_locals.get(name)
    if not isinstance(lease, Lease) or lease not in _held or lease._pid != os.getpid():
        return None
    # The name, `_held`, `lease`, and the argument of this call. A lease in a `with` is in use.
    is_named_elsewhere = sys.getrefcount(lease) > 4
    return None if is_named_elsewhere or (lease._layer is not None and lease._layer.is_block) else lease


async def _readable(loop: asyncio.AbstractEventLoop, file: int) -> None:
    seen = loop.create_future()
    # Once: until the loop comes to us, it would be called at each turn.
    loop.add_reader(file, lambda: None if seen.done() else seen.set_result(None))
    try:
        await seen
    finally:
        loop.remove_reader(file)


def lease(
    n: int = 1,
    *,
    where: _request.Where | None = None,
    order: _request.Order | None = None,
    memory: _request.Size | None = None,
    shared: bool = False,
    mask: bool = True,
    time: _request.Time = None,
    wait: Wait = None,
    note: str | None = None,
    on_wait: OnWait | None = None,
    placeholder: Placeholder | None = None,
    set_environ: bool = True,
    **filters: Unpack[_request.Filters],
) -> Lease:
    """Takes n devices that nobody else is given until they are released. Waits in line where they are taken.

    >>> with berth.lease(2, note="ablation 7") as lease:
    ...     lease.ids, lease.torch_device(1), os.environ["CUDA_VISIBLE_DEVICES"]
    ((0, 1), 'cuda:1', '0,1')

    >>> lease = berth.lease(memory="20GiB", wait=0)        # a share of a device, now or not at all
    >>> lease.release()

    >>> async def train():
    ...     async with berth.lease(wait="10m") as lease:   # nothing blocks; `await berth.lease()` does as well
    ...         return lease.ids
    >>> asyncio.run(train())
    (0,)

    The lease is this process's and its forks', until the last of them ends or one says `release()`. One that is not
    used by `with` and not released lasts until the end of the program. In a notebook, `lease = berth.lease()` first
    releases what `lease` still has: a cell that is run again takes no more GPUs than before.

    The arguments beside those of every request (see `help(berth)`):

    time         how long it takes at most, for others to reckon with: seconds, or a time such as "2h". The program
                 itself has to keep it; None: it does not say
    wait         None, math.inf: for ever; 0: not at all; seconds, or a time such as "10m"
    note         shown to others beside the lease
    on_wait      called with a `Standing` when the wait begins, when it changes, and every few seconds
    set_environ  whether `variables` and BERTH_LEASE are set in os.environ, and restored at the end (True). A process
                 has one environment: threads that lease for themselves say False
    placeholder  "cuda", "torch", "tensorflow", "pycuda", or a function of CUDA's number of a device: puts something
                 on each device at once, so that tools that look at processes see it in use

    A lease that the same thread took before is beside this one: this one gets other devices, and the process sees those
    of both, which `torch_device` counts. Within the `with` of a lease, and in a program that was started inside of one
    (BERTH_LEASE), there are only the devices of that lease. Ctrl-C and every other exception leave the queue at
    once. In an `async def` the lease is not taken at the call but when it is awaited or entered.

    Raises `NotNow` (wait=0), `TimedOut` and `Impossible`, with the verdict on each device; `Error` when CUDA is up
    already, so that a mask would have no effect; TypeError, ValueError and `Usage` name the argument at fault; as
    `snapshot`.
    """
    asked = Lease(
        _request.request(n, where, order, memory, shared, filters, time, lease.__kwdefaults__ or ()),
        mask=mask,
        wait=wait,
        note=note,
        on_wait=on_wait,
        placeholder=placeholder,
        set_environ=set_environ,
    )
    # In a coroutine nothing may block: there it is taken when it is awaited or entered.
    caller = sys._getframe(1)
    if caller.f_code.co_flags & _COROUTINE:
        return asked
    # Once CUDA is up, the new one is refused, and what is there stays.
    if (earlier := _rebound(caller)) is not None and not (asked._set_environ and _berth.cuda_is_up()):
        earlier.release()
    return asked._acquire()


@overload
def on_gpu(n: Function) -> Function: ...
@overload
def on_gpu(n: int = 1, **terms: Any) -> Callable[[Function], Function]: ...  # noqa: F811
def on_gpu(n: Any = 1, **terms: Any) -> Any:  # noqa: F811
    """Makes each call of a function, or of an `async def`, run inside a lease of its own. Takes what `lease` takes.

    >>> @berth.on_gpu(2)
    ... def train():
    ...     return os.environ["CUDA_VISIBLE_DEVICES"]
    >>> train()
    '0,1'
    """
    if callable(n):
        return on_gpu()(n)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        import functools
        import inspect

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                "on_gpu is for functions: a generator's body runs when its caller has left the lease"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def leased(*arguments: Any, **keywords: Any) -> Any:
                async with lease(n, **terms):
                    return await function(*arguments, **keywords)

            return leased

        @functools.wraps(function)
        def leased_now(*arguments: Any, **keywords: Any) -> Any:
            with lease(n, **terms):
                return function(*arguments, **keywords)

        return leased_now

    return decorate
