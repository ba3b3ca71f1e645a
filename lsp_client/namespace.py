"""The helper that gives a server a view of its folder: real paths, staged files, and a disk that stays untouched.

Run between the guard and the server as ``python -I -S namespace.py SOCKET_FD ROOT SCRATCH COUNT FOLDER... COMMAND...``;
it imports nothing of ours.  The COUNT folders are those of projects, in whose ``obj`` the server will write.  It is a
process of its own because only a process with one thread may leave its user namespace.

**Theory.**  The helper moves into a user namespace (where it may mount) and a mount namespace (where nobody else sees
what it mounts), and puts an overlay file system over the root: below lies the real tree, above an empty directory in
SCRATCH that takes every write.  Then it becomes the server by ``exec``; before that it has forked the *writer*, which
stays behind in the namespace and takes commands over the socket.  The writer keeps its rights in the namespace, the
server loses them.  The last process that leaves takes the mounts along, so nothing has to be unmounted.

*What is written goes through the mount*, never into the directory above: an overlay may not be changed from below or
above while it is mounted, and would not notice.  For the same reason a change of the real tree (a commit, somebody's
checkout) calls for a fresh view.  The old mount cannot be taken away, because the server works in it.  So a fresh
overlay is made aside, with the real tree below it again, which we hold by a descriptor, and moved on top of the root in
one step.  Whoever opens a path from then on gets the fresh view.  ``MOST_VIEWS`` bounds how many lie upon each other.
A file that changes without anybody being told, because it is no input of a project, may be seen as it was until then.
A root that is moved away takes its mounts along, one that is removed ends them, and the path leads to the real disk
again.  So each order begins with a look whether the view is still there; without it the bridge starts a new server.

Between the first write of a commit and the fresh view no caller asks the server anything, which is the bridge's part.
Stopping its processes for that time was weighed: readers that worked in a view while its files were replaced from below
met no error but the file that is gone, as they do on any disk.

Measured on two busy cores: the start takes 40 to 100 ms more than without a view, staging one file 0.3 ms and a hundred
files 20 ms, a fresh view 0.5 to 3 ms, with 400 files of the server's own up to 10 ms.  What costs is what the server
does with the news: an evaluation of its projects, 2 s for a small one (Roslyn's dialect), 0.1 s (csharp-ls).  A path looked
up below 500 views costs 24 µs in place of 6; each of them takes 10 kB of the kernel, 20 kB on disk and a line of the
server's own mount table, and none of the writer's memory or descriptors.  After 200 commits a server ran on as before.

*Build output* (``obj``, ``bin``).  Whatever the server writes stays in the view.  Projects were loaded with what it made,
so in a fresh view that lies *below* the real tree: where the real tree has such a file the fresh view shows the real one,
and a copy hides it at most until the next change on disk.  Copies of real files are left behind with the old view.

*What a process inside leaves for others* would lie in the temporary directory: build nodes and compiler servers are
found there.  They are switched off, and the server gets a private one, mounted over ``/var/tmp`` because names of
sockets must be short.  Process ids are the system's own: build hosts and the guard go by them.

Nothing is changed for the server where any step is refused: a forked trial goes through all of them first, and when it
fails the server is started as if there were no helper.

Messages on the socket are lines of JSON.  The first one is ours: ``{"ready": true}``, ``{"refused": reason}`` or
``{"error": errno}`` for a command that cannot be run.  Then each line from the bridge gets one line back:

    {"do": "show", "created": {path: text}, "gone": [path]}
        ->  {"created": [path], "gone": [path], "refused": {path: reason}} or {"error": reason}
    {"do": "renew"}
        ->  {} or {"error": reason}

Paths are relative to the root.  ``show`` names the whole difference to the real tree each time, and is told what that
is then.
"""

import contextlib
import ctypes
import errno
import json
import os
import re
import shutil
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator, Sequence

MOST_VIEWS = 500
"""Views that lie upon each other before a renewal is refused, which makes the bridge start a new server."""

PRIVATE_TEMPORARY = "/var/tmp"  # noqa: S108 - only a mount point: inside, a private directory lies over it
"""Where the server finds its private temporary directory.  Short, on every Linux, and rarely needed for anything else."""

INSIDE = {
    "TMPDIR": PRIVATE_TEMPORARY,
    "MSBUILDDISABLENODEREUSE": "1",
    "UseSharedCompilation": "false",
    "DOTNET_CLI_USE_MSBUILD_SERVER": "0",
    "UseRazorBuildServer": "false",
}
"""The environment inside: nothing started there may serve, or be served by, a build outside."""

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNS = 0x00020000
_MS_BIND = 4096
_MS_MOVE = 8192
_MS_REC = 16384
_MS_PRIVATE = 1 << 18
_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PASSED = b"passed"
_PROBE = ".roslyn-bridge-probe"

_libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """The view cannot be had; the text says why, as the end of a sentence."""


def main() -> None:
    """Try, then do it: become the server, with the view or without."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    root, scratch, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
    projects, command = sys.argv[5 : 5 + count], sys.argv[5 + count :]
    guard = os.getppid()
    program = _find(command[0])
    if isinstance(program, int):
        _say(control, {"error": program})
        return
    reason = _reason_against(root, scratch, (program, *command), projects)
    if reason is None:
        os.mkdir(f"{scratch}/views")  # noqa: PTH102 - pathlib would double the start-up time
        tree = enter(root, scratch)
        _leave_writer(control, tree)
        os.environ.update(INSIDE)
        _give_up_rights()
    _say(control, {"ready": True} if reason is None else {"refused": reason})
    os.chdir(root)  # what we were started in is the real folder, below the view
    _die_with(guard)
    try:
        os.execv(program, command)  # noqa: S606 - a list of arguments, no shell, is the point
    except OSError as error:
        sys.exit(f"{program} could not be started: {error.strerror}")


def _find(name: str) -> str | int:
    """The program as ``execvp`` would find it, or the errno that it would fail with."""
    found = shutil.which(name)
    if found is not None:
        return found
    return errno.EACCES if os.path.exists(name) else errno.ENOENT  # noqa: PTH110 - as above


# --- the namespace --------------------------------------------------------------------------------------------


def _reason_against(root: str, scratch: str, command: Sequence[str], projects: Sequence[str]) -> str | None:
    """Why the view cannot be had, found out by a forked trial of all steps; ``None`` when it can."""
    if not sys.platform.startswith("linux"):
        return "it needs Linux"
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        word = b"the trial failed"
        try:
            _look_at_places(root, scratch, command)
            _look_at_owners(projects)
            os.mkdir(f"{scratch}/trial")  # noqa: PTH102 - as above
            enter(root, scratch, views="trial")
            word = _PASSED
        except Refused as refusal:
            word = str(refusal).encode("utf-8", "replace")
        except OSError as error:
            word = f"{error.filename or 'a step'}: {error.strerror}".encode("utf-8", "replace")
        finally:
            os.write(write_end, word)
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as end:  # noqa: PTH123 - a descriptor
        said = end.read()
    os.waitpid(pid, 0)
    if said == _PASSED:
        return None
    return said.decode("utf-8", "replace") or "the system ended the process that tried"


def _look_at_places(root: str, scratch: str, command: Sequence[str]) -> None:
    """Refuses what could be mounted, and would show something else than the tree."""
    if _is_below(scratch, root):
        raise Refused("the state directory lies inside the workspace")
    inner = [point for point in _mount_points() if _is_below(point, root) and point != root]
    if inner:
        raise Refused(f"other file systems are mounted inside the workspace ({', '.join(inner[:3])})")
    needed = [root, scratch, sys.executable, *command]
    needed += [
        value for name, value in os.environ.items() if name in {"HOME", "DOTNET_ROOT", "NUGET_PACKAGES"}
    ]
    hidden = [path for path in needed if _is_below(os.path.realpath(path), PRIVATE_TEMPORARY)]
    if hidden:
        raise Refused(f"{hidden[0]} lies in {PRIVATE_TEMPORARY}, which is private inside")


def _look_at_owners(projects: Sequence[str]) -> None:
    """Refuses build output that is not ours: an overlay takes no copy of it, so the server could not evaluate projects."""
    for project in projects:
        for folder, folders, names in os.walk(f"{project}/obj"):
            for path in (project, folder, *(f"{folder}/{name}" for name in (*folders, *names))):
                try:
                    status = os.lstat(path)
                except FileNotFoundError:  # a build is at work
                    continue
                if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                    raise Refused(f"{path} belongs to another user or group")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _mount_points() -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:  # noqa: PTH123 - as above
        fields = [line.split(" ") for line in lines]
    # The kernel writes blanks and the like in names as octal numbers.
    return [re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field[4]) for field in fields]


def enter(root: str, scratch: str, views: str = "views") -> "Tree":
    """Move this process into the namespaces and put the first view over the root.

    Raises ``Refused``, ``OSError``.
    """
    user, group = os.geteuid(), os.getegid()
    real = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        # We stay who we are: other owners and groups are strangers inside, which is the most a user may map.
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123 - as above
                file.write(text)
        _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    except OSError as error:
        raise Refused(f"the system grants no private mounts ({error.strerror})") from error
    os.close(real)
    # Held through a descriptor from inside: it means the real tree for ever, whatever is mounted over its path.
    real = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    tree = Tree(root, real, f"{scratch}/{views}")
    tree.renew()
    tree.probe()
    private = f"{scratch}/temporary"
    os.makedirs(private, mode=0o700, exist_ok=True)  # noqa: PTH103 - as above
    _mount(private, PRIVATE_TEMPORARY, None, _MS_BIND)
    return tree


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    if _libc.mount(*arguments, ctypes.c_ulong(flags), None if data is None else os.fsencode(data)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def _give_up_rights() -> None:
    """The server is to have no rights over the mounts: nothing that is executed from here on may get them back."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
            return  # the kernel knows no more of them


def _die_with(guard: int) -> None:
    """Leaving the user namespace has cleared the death signal that the guard had set."""
    if not sys.platform.startswith("linux"):
        return
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != guard:
        os.kill(os.getpid(), signal.SIGKILL)


# --- the tree -------------------------------------------------------------------------------------------------


class Tree:
    """The views over one root, of which the newest counts, and what is staged in that."""

    def __init__(self, root: str, real: int, directory: str) -> None:
        self._root = root
        self._real = real
        self._directory = directory
        self._views = 0
        self._device = -1
        self.created: dict[str, str] = {}
        self.gone: set[str] = set()
        self._brought_back: set[str] = set()
        self._folders: list[str] = []  # made for created files, the inner ones after the outer ones

    def renew(self) -> None:
        """Put a fresh view of the real tree on top, with nothing staged.  Raises ``Refused``."""
        if self._views:
            self._require_own_root()
        if self._views == MOST_VIEWS:
            raise Refused(f"{MOST_VIEWS} views lie upon each other")
        place = f"{self._directory}/{self._views}"
        made = f"{self._directory}/made"
        for folder in (made, f"{place}/upper", f"{place}/work", f"{place}/aside"):
            os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - as above
        shutil.copymode(self._root, f"{place}/upper")
        try:
            if self._views:
                staged = self.created.keys() | self._brought_back
                _carry_over(f"{self._directory}/{self._views - 1}/upper", made, staged)
            self._mount_view(place, made)
        except OSError as error:
            raise Refused(
                f"no overlay can be mounted there ({error.strerror}; the state directory is on {_kind_of(place)})"
            ) from error
        self._views += 1
        self._device = os.stat(self._root).st_dev  # noqa: PTH116 - as above
        self.created.clear()
        self.gone.clear()
        self._brought_back.clear()
        self._folders.clear()

    def _mount_view(self, place: str, made: str) -> None:
        """From above: what is written from now on, the real tree, what only the server has made."""
        # Named by descriptors: in the option text a path would need two kinds of escapes.
        upper, work, below = (
            os.open(folder, os.O_PATH | os.O_CLOEXEC) for folder in (f"{place}/upper", f"{place}/work", made)
        )
        try:
            layers = f"lowerdir=/proc/self/fd/{self._real}:/proc/self/fd/{below}"
            ours = f"upperdir=/proc/self/fd/{upper},workdir=/proc/self/fd/{work}"
            _mount("overlay", f"{place}/aside", "overlay", 0, f"{layers},{ours},userxattr")
            _mount(f"{place}/aside", self._root, None, _MS_MOVE)
        finally:
            for descriptor in (upper, work, below):
                os.close(descriptor)

    def probe(self) -> None:
        """Create and delete something in the root.  Raises ``Refused`` where that cannot be."""
        try:
            os.setxattr(self._directory, "user.overlay.probe", b"")
        except OSError as error:
            # An overlay does without them in silence; then copies of real files cannot be told from what the server has made.
            kind = _kind_of(self._directory)
            raise Refused(f"the state directory is on {kind}, which keeps no extended attributes") from error
        try:
            self._write(_PROBE, "")
            os.unlink(f"{self._root}/{_PROBE}")  # noqa: PTH108 - as above
        except OSError as error:
            raise Refused(f"nothing can be written in the workspace's folder ({_reason(error)})") from error

    def _require_own_root(self) -> None:
        """A folder that was moved away takes its mounts along, one that was removed ends them: then the path leads to the
        real disk again, or to another tree.  Raises ``Refused``."""
        try:
            device = os.stat(self._root).st_dev  # noqa: PTH116 - as above
        except OSError as error:
            raise Refused(f"the workspace's folder cannot be looked at ({error.strerror})") from error
        if device != self._device:
            raise Refused("the workspace's folder was replaced by another one")

    def show(self, created: dict[str, str], gone: list[str]) -> dict[str, str]:
        """Stage exactly this; the reason for each path where it could not be done.  Raises ``Refused``."""
        self._require_own_root()
        refused: dict[str, str] = {}
        steps: list[tuple[str, Callable[[str], None]]] = []
        steps += [(path, self._take_away) for path in sorted(self.created.keys() - created.keys())]
        steps += [(path, self._bring_back) for path in sorted(self.gone - set(gone))]
        steps += [(path, self._remove) for path in sorted(set(gone) - self.gone)]
        changed = sorted(path for path, text in created.items() if self.created.get(path) != text)
        steps += [(path, lambda path: self._put(path, created[path])) for path in changed]
        for path, step in steps:
            try:
                step(path)
            except OSError as error:
                refused[path] = _reason(error)
        return refused

    def _put(self, path: str, text: str) -> None:
        if path not in self.created:
            self._make_folders(path)
        try:
            self._write(path, text, exclusive=path not in self.created)
        except FileExistsError:
            same = os.path.realpath(f"{self._root}/{path}")
            if all(same != os.path.realpath(f"{self._root}/{other}") for other in self.created):
                raise
            # A linked folder gives one file two names: under the other one it has been put there already.
        self.created[path] = text

    def _make_folders(self, path: str) -> None:
        folder = self._root
        for name in path.split("/")[:-1]:
            self._check_inside(folder)
            folder = f"{folder}/{name}"
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)  # noqa: PTH102 - as above
                self._folders.append(folder)

    def _write(self, path: str, text: str, *, exclusive: bool = True) -> None:
        self._check_inside(os.path.dirname(f"{self._root}/{path}"))  # noqa: PTH120 - as above
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (os.O_EXCL if exclusive else os.O_TRUNC)
        descriptor = os.open(f"{self._root}/{path}", flags, 0o644)
        with self._whole_or_none(path), open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(text.encode("utf-8", "surrogatepass"))

    @contextlib.contextmanager
    def _whole_or_none(self, path: str) -> Iterator[None]:
        """What was not written to its end, on a full disk for one, is taken away again."""
        try:
            yield
        except OSError:
            self.created.pop(path, None)
            with contextlib.suppress(OSError):
                os.unlink(f"{self._root}/{path}")  # noqa: PTH108 - as above
            raise

    def _check_inside(self, folder: str) -> None:
        """A link may lead out of the view, and there lies the real disk.  Folders of a view have its device number."""
        if os.stat(folder).st_dev != self._device:  # noqa: PTH116 - as above
            raise OSError(errno.EXDEV, "a link on the way leads out of the workspace")

    def _take_away(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._root}/{path}")  # noqa: PTH108 - as above
        del self.created[path]
        for folder in reversed(self._folders):
            with contextlib.suppress(OSError):  # something lies in it, ours or the server's
                os.rmdir(folder)  # noqa: PTH106 - as above
        self._folders = [folder for folder in self._folders if os.path.isdir(folder)]  # noqa: PTH112 - as above

    def _remove(self, path: str) -> None:
        self._check_inside(os.path.dirname(f"{self._root}/{path}"))  # noqa: PTH120 - as above
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._root}/{path}")  # noqa: PTH108 - as above
        self.gone.add(path)

    def _bring_back(self, path: str) -> None:
        """A copy of the real file; what becomes of that one later is seen by the next fresh view."""
        with contextlib.suppress(
            FileNotFoundError, FileExistsError
        ):  # gone by now, or back under its other name
            source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._real)
            with open(source, "rb") as real:  # noqa: PTH123 - a descriptor
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                target = os.open(f"{self._root}/{path}", flags, stat.S_IMODE(os.fstat(source).st_mode))
                with self._whole_or_none(path), open(target, "wb") as copy:  # noqa: PTH123 - a descriptor
                    shutil.copyfileobj(real, copy)
            self._brought_back.add(path)
        self.gone.discard(path)


def _carry_over(upper: str, made: str, staged: set[str]) -> None:
    """Link what the server has made in the last view into the layer below the real tree."""
    for folder, _, names in os.walk(upper):
        place = os.path.relpath(folder, upper)
        for name in names:
            path = os.path.normpath(f"{place}/{name}")
            source, target = f"{upper}/{path}", f"{made}/{path}"
            with contextlib.suppress(FileNotFoundError):
                if path in staged or (_is_copy(source) and not os.path.lexists(target)):
                    continue
                os.unlink(target)  # noqa: PTH108 - as above
            if stat.S_ISREG(os.lstat(source).st_mode):  # else it marks a file that the server has deleted
                os.makedirs(f"{made}/{place}", exist_ok=True)  # noqa: PTH103 - as above
                os.link(source, target)


def _is_copy(path: str) -> bool:
    """Whether the overlay has made this file as a copy of one below, which it does before that is written to."""
    try:
        os.getxattr(path, "user.overlay.origin", follow_symlinks=False)
    except OSError:
        return False
    return True


def _reason(error: OSError) -> str:
    if error.errno == errno.EOVERFLOW:
        return "it belongs to another user or group"
    return error.strerror or str(error)


def _kind_of(path: str) -> str:
    """The type of the file system that holds ``path``."""
    best, kind = "", "an unknown file system"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:  # noqa: PTH123 - as above
        for line in lines:
            left, _, right = line.partition(" - ")
            point = left.split(" ")[4]
            if _is_below(path, point) and len(point) >= len(best):
                best, kind = point, right.split(" ")[0]
    return kind


# --- the writer -----------------------------------------------------------------------------------------------


def _leave_writer(control: socket.socket, tree: Tree) -> None:
    """Fork the writer; it becomes the guard's child, so that the server has no child that it does not know."""
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0:
            try:
                os.setsid()
                _let_go_of_the_pipes()
                _serve(control, tree)
            finally:
                os._exit(0)
        os._exit(0)
    os.waitpid(pid, 0)


def _let_go_of_the_pipes() -> None:
    """Only the server may hold its pipes."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    os.chdir("/")


def _serve(control: socket.socket, tree: Tree) -> None:
    """Do what the bridge says until it has gone."""
    with control.makefile("rb") as lines:
        for line in lines:
            _say(control, _answer(json.loads(line), tree))


def _answer(order: dict[str, object], tree: Tree) -> dict[str, object]:
    if order["do"] == "show":
        created, gone = order["created"], order["gone"]
        if not isinstance(created, dict) or not isinstance(gone, list):
            return {"error": "an order in a form that is not known"}
        try:
            refused = tree.show(created, gone)
        except Refused as error:
            return {"error": str(error)}
        return {"created": sorted(tree.created), "gone": sorted(tree.gone), "refused": refused}
    try:
        tree.renew()
    except (Refused, OSError) as error:
        return {"error": str(error)}
    return {}


def _say(control: socket.socket, message: dict[str, object]) -> None:
    with contextlib.suppress(OSError):  # the bridge is gone, and the guard is about to end us
        control.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
