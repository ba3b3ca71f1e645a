"""Runs a piece of a scenario in a process of its own, because it is going to be killed or stopped."""

import os
import signal
import sys
import warnings
from collections.abc import Callable

_ENDS = (
    *("committed", "refused", "conflict", "taken back", "unrestored", "unconfirmed", "interrupted", "broken"),
    *("pending", "busy", "nothing", "settled", "incomplete"),
)
_OTHER = 99

KILLED = "killed"
STOPPED = "stopped"


def fork(work: Callable[[], str]) -> int:
    """Starts a child that does `work`, which gives a word of how it ended. Gives the child's id."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # threads of a test runner hold no locks that we need
        child = os.fork()
    if child:
        return child
    code = _OTHER
    try:
        end = work()
        code = _ENDS.index(end) + 1 if end in _ENDS else _OTHER
    except BaseException as error:  # noqa: BLE001  # nothing may leave a forked child but its exit code
        sys.stderr.write(f"in a child: {error!r}\n")
    finally:
        os._exit(code)


def wait(child: int) -> str:
    """The word that a child ended with, "killed" or "stopped"."""
    _, status = os.waitpid(child, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return STOPPED
    if os.WIFSIGNALED(status):
        return KILLED if os.WTERMSIG(status) == signal.SIGKILL else f"signal {os.WTERMSIG(status)}"
    code = os.WEXITSTATUS(status)
    return _ENDS[code - 1] if 0 < code <= len(_ENDS) else "broken"


def in_child(work: Callable[[], str]) -> str:
    """Both at once, for a child that is not stopped."""
    return wait(fork(work))


def proceed(child: int) -> str:
    """Lets a stopped child go on and waits for it."""
    os.kill(child, signal.SIGCONT)
    return wait(child)
