"""NuGet restore: whether a project needs one, and running it.

Without a restore a compiler sees none of a project's packages and reports hundreds of errors that are not there.  Some
servers never restore, so the bridge does, before they load.  A restore writes under ``obj`` only.

A restore that finds nothing to do leaves its files' times alone, so "older than the project file" can stay true for
ever; a ``Restorer`` remembers the state it has seen restored and does not ask twice for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from anyio import to_thread

from bridge.children import TAIL_LIMIT, ChildFailed, run
from bridge.generated_solution import write_generated_solution
from bridge.msbuild import error_lines
from bridge.nuget_files import ASSETS_NAME, RECORD_NAME, is_generated_by_restore
from bridge.projects import Project, Structure
from bridge.solutions import PathRefused

RESTORE_WAIT = 600.0
"""Seconds for all restoring of one load: a cold cache on a slow line takes minutes."""
NAME_LIMIT = 10
"""Projects named in a result's message."""
MESSAGE_LINES = 5
"""Lines of NuGet's own words in a result's message."""

_NOT_OF_THE_RESTORE = (".editorconfig", ".globalconfig", ASSETS_NAME)


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """What a restore did.  ``message`` is a sentence for people, with the tool's own errors when it failed."""

    succeeded: bool
    message: str
    output_tail: str
    seconds: float
    restored: tuple[Path, ...]
    """Projects that needed a restore before and no longer do."""
    unrestored: tuple[Path, ...]
    """Projects that still need one."""


def needs_restore(project: Project) -> str | None:
    """Why ``project`` needs a restore, as half a sentence; ``None`` when it has one, or when that is not known."""
    if project.assets_file is None:
        return None
    if is_unrestored(project):
        return "it was never restored, or its last restore failed"
    runtime = project.properties.get("RuntimeIdentifier")
    if runtime and not _is_restored_for(runtime, project.assets_file):
        return f"it was not restored for {runtime}"
    restored_at = project.assets_file.stat().st_mtime_ns
    for path, changed_at in _restore_inputs(project):
        if changed_at > restored_at:
            return f"{path.name} is newer than its restore"
    return None


def _is_restored_for(runtime: str, assets_file: Path) -> bool:
    """Whether the assets have a target for a runtime; such a target's name ends in it."""
    try:
        return f'/{runtime}"'.encode() in assets_file.read_bytes()
    except OSError:
        return False


def is_unrestored(project: Project) -> bool:
    """Whether the last restore of ``project`` left nothing, or failed: its packages are not all there."""
    if project.assets_file is None:
        return False
    if not project.assets_file.is_file():
        return True
    try:
        record = json.loads(project.assets_file.with_name(RECORD_NAME).read_bytes())
    except (OSError, ValueError):
        return False  # older NuGets leave no record
    return isinstance(record, dict) and record.get("success") is False


def unrestored(structure: Structure) -> tuple[Path, ...]:
    """The project files of ``structure`` whose packages are not all there, whoever tried to restore them."""
    return tuple(dict.fromkeys(project.path for project in structure.projects if is_unrestored(project)))


def _restore_inputs(project: Project) -> Iterator[tuple[Path, int]]:
    """The files a restore depends on, with their times of change in nanoseconds."""
    for path in project.inputs:
        if path.name in _NOT_OF_THE_RESTORE or is_generated_by_restore(path):
            continue
        try:
            yield path, path.stat().st_mtime_ns
        except OSError:
            continue


_Identity = tuple[str, Path | None, str | None]


def _identity(project: Project) -> _Identity:
    """What a restore is for: two workspaces may hold one project with different properties."""
    return project.id, project.assets_file, project.properties.get("RuntimeIdentifier")


class Restorer:
    """Restores solutions with one ``dotnet``, one at a time, and remembers what it has tried."""

    def __init__(self, dotnet: Path) -> None:
        self._dotnet = dotnet
        self._tried: dict[_Identity, frozenset[tuple[Path, int]]] = {}
        self._one_at_a_time = anyio.Lock()

    def pending(self, structure: Structure, *, retry: bool = False) -> dict[Path, str]:
        """The project files of ``structure`` that need a restore, and why.

        Without ``retry``, those are left out that were tried before and whose files are as they were then: a failed
        restore is not repeated at every load.
        """
        found: dict[Path, str] = {}
        for project in structure.projects:
            reason = needs_restore(project)
            if reason is not None and (retry or not self._was_tried(project)):
                found.setdefault(project.path, reason)
        return found

    def _was_tried(self, project: Project) -> bool:
        return self._tried.get(_identity(project)) == frozenset(_restore_inputs(project))

    async def restore(
        self,
        structure: Structure,
        *,
        environment: Mapping[str, str],
        directory: Path | None = None,
        seconds: float = RESTORE_WAIT,
    ) -> RestoreResult:
        """Restore the solution of ``structure``; when that fails, those of its projects that can be read.

        One unreadable project stops the restore of a whole solution, and the others would load without their packages.
        ``seconds`` bounds the whole.  Never raises for a restore that failed: the result says so.  Cancelling it ends
        the children.
        """
        started = anyio.current_time()
        async with self._one_at_a_time:
            before = await to_thread.run_sync(lambda: self.pending(structure, retry=True))
            attempt = _Attempt(
                self._dotnet,
                _restore_environment(environment),
                directory or structure.path.parent,
                started + seconds,
            )
            if not await attempt.restore(structure.path) and await to_thread.run_sync(
                _may_go_apart, structure, attempt
            ):
                await self._restore_the_readable(structure, attempt)
            left = await to_thread.run_sync(self._settle, structure)
        return RestoreResult(
            succeeded=not left and attempt.last_succeeded,
            message=_message(structure, before, left, attempt),
            output_tail="\n".join(attempt.outputs)[-TAIL_LIMIT:],
            seconds=anyio.current_time() - started,
            restored=tuple(path for path in before if path not in left),
            unrestored=left,
        )

    async def _restore_the_readable(self, structure: Structure, attempt: _Attempt) -> None:
        """All at once, through a solution of their own that lives as long as the restore."""
        readable = list(dict.fromkeys(project.path for project in structure.projects))
        try:
            with TemporaryDirectory(prefix="roslyn-bridge-restore-", ignore_cleanup_errors=True) as folder:
                generated = write_generated_solution(
                    readable[0], Path(folder), readable[1:], configurations=[attempt.configuration]
                )
                await attempt.restore(generated)
        except (OSError, PathRefused) as error:
            attempt.failures[f"its projects could not be restored apart from it: {error}"] = None

    def _settle(self, structure: Structure) -> tuple[Path, ...]:
        """Remember this try; the projects that are without their packages after it."""
        for project in structure.projects:
            self._tried[_identity(project)] = frozenset(_restore_inputs(project))
        return unrestored(structure)


def _may_go_apart(structure: Structure, attempt: _Attempt) -> bool:
    """Whether the solution is what failed, and not a package: then its projects may do better without it.

    It fails for a project that cannot be read, and for a configuration or platform that it does not have.
    """
    if not structure.projects:
        return False
    of_msbuild = any("error MSB" in words for words in attempt.failures)
    return (
        of_msbuild or bool(structure.failed) or any(is_unrestored(project) for project in structure.projects)
    )


def _restore_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a restore, in the words of a solution.

    Without a chosen target framework: a restore is for all of them, and one framework's would undo the others'.
    The platform that projects call ``AnyCPU`` is ``Any CPU`` to a solution, which refuses the other.
    """
    chosen = {name: value for name, value in environment.items() if name.lower() != "targetframework"}
    if chosen.get("Platform") == "AnyCPU":
        chosen["Platform"] = "Any CPU"
    return chosen


class _Attempt:
    """The runs of ``dotnet restore`` for one result, and what they said."""

    def __init__(
        self, dotnet: Path, environment: Mapping[str, str], directory: Path, deadline: float
    ) -> None:
        self._dotnet = dotnet
        self._environment = environment
        self._directory = directory
        self._deadline = deadline
        self.configuration = (
            f"{environment.get('Configuration', 'Debug')}|{environment.get('Platform', 'Any CPU')}"
        )
        self.failures: dict[str, None] = {}
        self.outputs: list[str] = []
        self.last_succeeded = False

    async def restore(self, path: Path) -> bool:
        self.last_succeeded = False
        seconds = self._deadline - anyio.current_time()
        if seconds <= 0:
            self.failures["there was no time left"] = None
            return False
        try:
            done = await run(
                [self._dotnet, "restore", path, "-noAutoResponse"],
                cwd=self._directory,
                environment=self._environment,
                seconds=seconds,
            )
        except ChildFailed as failure:
            self.failures[failure.message] = None
            self.outputs.append(failure.output_tail)
            return False
        self.outputs.append(done.output_tail)
        self.last_succeeded = done.returncode == 0
        if not self.last_succeeded:
            self.failures |= dict.fromkeys(
                error_lines(done.output_tail, MESSAGE_LINES)
                or [done.output_tail[-500:] or "it ended without a word"]
            )
        return self.last_succeeded


def _message(
    structure: Structure, before: Mapping[Path, str], left: Sequence[Path], attempt: _Attempt
) -> str:
    name, count = structure.path.name, len(dict.fromkeys(p.path for p in structure.projects))
    if not attempt.failures:
        return f"Restored the packages of {name} ({len(before)} of {count} projects needed it)."
    words = "\n".join(attempt.failures)
    if not left and attempt.last_succeeded:
        return f"Restored the {count} readable projects of {name}; as a whole it could not be:\n{words}"
    names = [path.name for path in left]
    more = f" and {len(names) - NAME_LIMIT} more" if len(names) > NAME_LIMIT else ""
    which = ", ".join(names[:NAME_LIMIT]) + more or "no project is known to be without its packages"
    return f"The restore of {name} failed ({which}):\n{words}"
