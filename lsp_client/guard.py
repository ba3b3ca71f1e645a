"""The guard: the parent process of a language server, which outlives the bridge just long enough to tidy up.

Run by ``process.spawn`` as ``python -I -S guard.py CONTROL_FD HANDED SCRATCH COMMAND...``; it imports nothing of
ours.  It starts the server with the pipes it was given, keeps none of them open itself, and then waits for one of
two things: the end of the server, or the end of the control socket, whose other end only the bridge holds.  The
kernel closes that end however the bridge dies, ``kill -9`` included.  In both cases everything the server has
started is killed before the guard leaves.

``HANDED`` are descriptors for the server alone (numbers with commas between, or nothing).  ``SCRATCH`` is nothing, or
``LOCK_FD:PATH``: a directory that the server and its like may use, removed when all of them are gone, and locked as
long as the guard lives.

How "everything" is found: the guard is a *child subreaper* (prctl, Linux).  A process whose parent dies
becomes a child of the guard instead of init, also after a double fork or in a session of its own, so the tree
under the guard stays complete, and "the guard has no children left" is the proof that nothing survived.
No rights are needed for that.  The server itself has a parent-death signal as well, in case somebody kills the
guard.  Where there is no prctl (macOS), the guard kills the server's process group; what has left that group is
out of its reach there.

Words on the control socket, one a line: ``pid N`` or ``error ERRNO`` once, later ``exit CODE`` (``-N`` for
signal N) when the server has ended, and the end of the stream when all that it left is gone too.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

KILL_BOUND = 5.0
"""Seconds for killing and reaping the tree.  Only a process stuck in the kernel takes more than moments."""

_RESCAN_SECONDS = 0.05  # a process may fork while the tree is read: look again this soon
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Start the server, wait for its end or the bridge's, leave nothing behind."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # the bridge may block signals; that is inherited
    control = int(sys.argv[1])
    handed = [int(number) for number in sys.argv[2].split(",") if number]
    lock, _, scratch = sys.argv[3].partition(":")
    for kept in (control, *([int(lock)] if lock else [])):
        os.set_inheritable(kept, False)  # noqa: FBT003 - the standard library's signature
    wakeups = _wake_on_child_end()
    subreaper = _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    server = _start(sys.argv[4:], control)
    for descriptor in handed:
        os.close(descriptor)
    if server is None:
        remove_tree(scratch)
        return
    _let_go_of_the_pipes()
    _say(control, f"pid {server}")
    code = _wait_for_an_end(server, control, wakeups)
    if code is not None:
        _say(control, f"exit {code}")  # at once: killing what it left may take a moment
    code_of_the_killed = _kill_everything(server, wakeups, subreaper=subreaper)
    if code is None:
        _say(control, f"exit {code_of_the_killed}")
    remove_tree(scratch)


def _start(command: list[str], control: int) -> int | None:
    """Fork and exec the server in a session of its own; its pid, or None when that failed (and was told)."""
    guard = os.getpid()
    read_end, write_end = os.pipe()  # closed by a successful exec, else it carries the errno
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == guard:  # else the guard died before the death signal was set
                # Python ignores these two, and ignoring is inherited.
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
                os.execvp(command[0], command)  # noqa: S606 - a list of arguments, no shell, is the point
        except OSError as error:
            os.write(write_end, b"%d" % (error.errno or 1))
        finally:
            os._exit(127)
    os.close(write_end)
    failure = os.read(read_end, 16)
    os.close(read_end)
    if not failure:
        return pid
    os.waitpid(pid, 0)
    _say(control, f"error {failure.decode()}")
    return None


def _let_go_of_the_pipes() -> None:
    """Only the server may hold its pipes: their ends are how the bridge and the server see each other go."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    os.chdir("/")
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)


def _wait_for_an_end(server: int, control: int, wakeups: int) -> int | None:
    """The server's exit code, or None when the bridge closed its end (or died)."""
    while True:
        readable, _, _ = select.select([control, wakeups], [], [])
        if wakeups in readable:
            code, _ = _reap(server, wakeups)
            if code is not None:
                return code
        if control in readable and not _still_there(control):
            return None


def _reap(server: int, wakeups: int) -> tuple[int | None, bool]:
    """Collect all ended children, adopted ones too: the server's exit code if it was one; are any left?"""
    with contextlib.suppress(BlockingIOError):
        os.read(wakeups, 4096)
    code = None
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == server:
                code = os.waitstatus_to_exitcode(ended[1])
    except ChildProcessError:
        return code, False
    return code, True


def _still_there(control: int) -> bool:
    try:
        return bool(os.read(control, 4096))
    except OSError:
        return False


def _kill_everything(server: int, wakeups: int, *, subreaper: bool) -> int:
    """Kill and reap until there are no children left, or the bound is over; the server's exit code."""
    deadline = time.monotonic() + KILL_BOUND
    server_code: int = -signal.SIGKILL
    if not subreaper:
        with contextlib.suppress(OSError):
            os.killpg(server, signal.SIGKILL)
    while time.monotonic() < deadline:
        code, any_left = _reap(server, wakeups)
        server_code = server_code if code is None else code
        if not any_left:
            break
        for pid in _descendants(os.getpid()) if subreaper else [server]:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        select.select([wakeups], [], [], _RESCAN_SECONDS)
    return server_code


def _descendants(root: int) -> list[int]:
    """All processes below ``root``, from /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the start-up time
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123 - as above
                    # "pid (name) state ppid ...": the name may hold anything, so read from its closing bracket
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    frontier = [root]
    while frontier:
        frontier = [child for parent in frontier for child in children.get(parent, [])]
        found += frontier
    return found


def remove_tree(path: str) -> None:
    """Take a directory of ours away, whatever modes a file system has left in it; nothing for no path.  Never raises."""
    if not path:
        return
    import shutil  # noqa: PLC0415 - the start of a server need not wait for it

    for folder, names, _ in os.walk(path):
        for inner in (f"{folder}/{name}" for name in names):
            with contextlib.suppress(OSError):  # an overlay leaves a directory that not even we may list
                if not os.path.islink(inner):  # noqa: PTH114 - as above
                    os.chmod(inner, 0o700)  # noqa: PTH101 - as above
    shutil.rmtree(path, ignore_errors=True)


def _wake_on_child_end() -> int:
    """A descriptor that becomes readable when a child ends."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return read_end


def _prctl(option: int, value: int) -> bool:
    """Set a process attribute; False where the system does not have it."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _say(control: int, line: str) -> None:
    with contextlib.suppress(OSError):  # the bridge is gone: the next look at the socket sees that
        os.write(control, line.encode("ascii") + b"\n")


if __name__ == "__main__":
    main()
