"""Picks, leases and explains the GPUs of this machine.

>>> import berth
>>> berth.pick(2, where="name~H100 and free>=20G")
Choice(0,1)
>>> with berth.lease(2) as lease:                  # waits for its turn; nobody else is given these two
...     lease.ids, os.environ["CUDA_VISIBLE_DEVICES"]
((0, 1), '0,1')

`snapshot` and `devices` look, `pick` chooses, `why` explains, `lease` takes, `submit` leaves a command to be run later;
`jobs` and `queue` list, `cancel` cancels. Nothing here loads the NVIDIA driver,
CUDA or a thread into your program: the `berth` program that comes with the package does what needs them, and it is
the same as `berth` in the shell. What can go wrong is an `Error`, with the reason of each device in `verdicts`.

Every request has these arguments, which mean what the options of `berth pick --help` mean:

n           how many devices (1)
where       a condition: an expression such as "name~A100 and free>=20G and (util<=5 or temp<80)", or a function
            that is called with each `Device` and says whether it will do
order       which of the matching GPUs: "auto", "index", "random", "best-fit", "worst-fit", "coolest", "least-power",
            "most-capable", "topology", or a function of a `Device` by whose result they are sorted
memory      a share: this much memory on a device that others may share; "20GiB", or bytes
            from 1 MiB up
shared      company is welcome, whether or not memory is promised
mps_percent where MPS runs: at most this many percent of a device's processors are used
devices     only among these: indices, UUIDs, or both in a list; exclude: none of these
name        the model's name has this in it
free, total at least this much memory; "20G", or bytes from 1 MiB up
util, mem_util, power, temp
            at most so many percent, percent, watts, degrees Celsius
processes   up to so many processes of others may already be there (0)
clean       nobody else computes there, so that times can be measured
seed        of order="random": the same seed, the same choice
time        how long it takes at most: seconds, or a time such as "2h"
mask        whether CUDA_VISIBLE_DEVICES (AMD: ROCR_VISIBLE_DEVICES) limits what can be had (True)

A function is applied here, once, to the machine as it is when you ask; the devices that it lets through are the
request's from then on, however long it waits.
"""

from __future__ import annotations

from . import _berth, _name_clash, _request
from ._berth import (
    Choice,
    Culprit,
    Device,
    Health,
    Memory,
    Mig,
    Process,
    Snapshot,
    Standing,
    Ticket,
    Verdict,
)
from ._errors import Error, Impossible, NoDriver, NotNow, TimedOut, Usage

__all__ = [
    "Choice",
    "Culprit",
    "Device",
    "Error",
    "Health",
    "Impossible",
    "Job",
    "Lease",
    "ListedJob",
    "Memory",
    "Mig",
    "NoDriver",
    "NotNow",
    "Process",
    "Snapshot",
    "Standing",
    "Ticket",
    "TimedOut",
    "Usage",
    "Verdict",
    "Waiter",
    "cancel",
    "devices",
    "jobs",
    "lease",
    "on_gpu",
    "pick",
    "queue",
    "snapshot",
    "submit",
    "why",
]

__version__: str = _berth.version
_name_clash.warn(__path__[0])

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._job import Job, ListedJob, Waiter, cancel, jobs, queue, submit
    from ._lease import Lease, lease, on_gpu


def __getattr__(name: str) -> object:
    # What leases is loaded for those who lease: to look and to pick, half as much will do.
    if name in ("Job", "ListedJob", "Waiter", "cancel", "jobs", "queue", "submit"):
        from . import _job

        globals().update(
            Job=_job.Job,
            ListedJob=_job.ListedJob,
            Waiter=_job.Waiter,
            cancel=_job.cancel,
            jobs=_job.jobs,
            queue=_job.queue,
            submit=_job.submit,
        )
        return globals()[name]
    if name not in ("Lease", "lease", "on_gpu"):
        raise AttributeError(f"module 'berth' has no attribute {name!r}")
    from . import _lease

    globals().update(Lease=_lease.Lease, lease=_lease.lease, on_gpu=_lease.on_gpu)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def snapshot() -> Snapshot:
    """All devices of the machine now.

    >>> machine = berth.snapshot()
    >>> len(machine.devices), machine.driver_version
    (8, '550.163.01')

    Raises `NoDriver` where there is none, or it does not work.
    """
    return _berth.snapshot()


def devices() -> tuple[Device, ...]:
    """The devices of `snapshot()`: GPUs by index, each followed by its MIG instances.

    Memory is in bytes, power in milliwatts, temperature in degrees Celsius, shares in percent. What the driver does
    not tell is None, which is not zero.

    >>> [device.index for device in berth.devices() if device.temperature_c < 80]
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    return _berth.snapshot().devices


def pick(
    n: int = 1,
    *,
    where: _request.Where | None = None,
    order: _request.Order | None = None,
    memory: _request.Size | None = None,
    shared: bool = False,
    mask: bool = True,
    time: _request.Time = None,
    **filters: Unpack[_request.Filters],
) -> Choice:
    """The n devices that the request would get now. Holds nothing: the next who asks may be told the same.

    The arguments are those of every request (see the module). str() of the choice is the value for
    CUDA_VISIBLE_DEVICES, to be set beside CUDA_DEVICE_ORDER=PCI_BUS_ID; it also has ids, uuids, devices and notes.

    >>> choice = berth.pick(2, where=lambda device: device.index > 2, order="index")
    >>> choice.ids, str(choice)
    ((3, 4), '3,4')

    Raises `NotNow` and `Impossible`, with the verdict on each device; TypeError, ValueError and `Usage` (which is
    a ValueError) name the argument at fault; as `snapshot`.
    """
    made = _request.request(n, where, order, memory, shared, filters, time)
    return _berth.pick(made, bool(mask))


def why(
    n: int = 1,
    *,
    where: _request.Where | None = None,
    order: _request.Order | None = None,
    memory: _request.Size | None = None,
    shared: bool = False,
    mask: bool = True,
    time: _request.Time = None,
    **filters: Unpack[_request.Filters],
) -> tuple[Verdict, ...]:
    """For every device whether the request would get it now, and if not, why not. The arguments are those of `pick`.

    >>> for verdict in berth.why(temp=20, devices=[0, 1]):
    ...     print(verdict.device.index, verdict.clause, verdict.reason)  # doctest: +ELLIPSIS
    0 thresholds temp <= 20 asked, it is 30 C
    1 thresholds temp <= 20 asked, it is 30 C
    2 static_filters not one of the devices asked for
    ...

    Raises as `snapshot`; TypeError, ValueError and `Usage` name the argument at fault.
    """
    made = _request.request(n, where, order, memory, shared, filters, time)
    return _berth.why(made, bool(mask))
