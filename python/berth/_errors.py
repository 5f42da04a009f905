"""What can go wrong."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._berth import Verdict


class Error(RuntimeError):
    """Something of Berth went wrong; the others are kinds of it.

    str() of it says what happened and what to do next. `verdicts` has what was found about each device, where it
    came to that: a tuple of `berth.Verdict`.
    """

    verdicts: tuple[Verdict, ...]

    def __init__(self, message: str, verdicts: tuple[Verdict, ...] = ()):
        super().__init__(message)
        self.verdicts = tuple(verdicts)


class NoDriver(Error):
    """There is no NVIDIA driver here, or it does not work."""


class Impossible(Error):
    """Nothing on this machine can ever satisfy the request."""


class NotNow(Error):
    """The request could be satisfied, but not at this moment."""


class TimedOut(Error, TimeoutError):
    """The wait ran out. Also a TimeoutError."""


class Usage(Error, ValueError):
    """The request itself is wrong, whatever the machine. Also a ValueError."""
