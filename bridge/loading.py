"""From a path to a loaded solution: the server to run, the projects, what a restore did, and the inputs watched.

``Loader`` holds what outlives one workspace: options, the state directory, and the memories of MSBuild and restore
for each ``dotnet``.  ``LoadRequest`` is what the caller asked for, settled once; ``Load`` is what one look at the
disk found, and is replaced whole by the next look.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from anyio import to_thread

from bridge.dotnet import SdkMissing, check_sdk, child_environment
from bridge.errors import BridgeError
from bridge.generated_solution import write_generated_solution
from bridge.head_start import HeadStart, head_start
from bridge.links import Links, read_links
from bridge.msbuild import MsBuild
from bridge.msbuild_properties import MsBuildProperties
from bridge.options import Options
from bridge.progress import ProgressSink, Stage, to_nobody
from bridge.projects import Structure, read_structure, transitive_references
from bridge.restore import Restorer, unrestored
from bridge.state_directory import StateDirectory
from lsp_client.dialects.base import Dialect, LoadReport, LoadTarget
from lsp_client.discovery import ServerLaunch, discover, find_dotnet
from lsp_client.failures import DotnetSdkNotFound, LanguageServerNotFound
from lsp_client.supervisor import Supervisor, Waits
from transactions.baseline import Inputs
from transactions.errors import UndecodableText
from transactions.text import SourceText

# The workspace's folder is the server's working directory; -P keeps Python from importing anything that lies there.
EMBEDDED_COMMAND = (sys.executable, "-P", "-m", "bridge.embedded_server")

SHAPING_SUFFIXES = frozenset(
    {
        ".cs",
        ".csproj",
        ".props",
        ".targets",
        ".editorconfig",
        ".globalconfig",
        ".sln",
        ".slnx",
        ".slnf",
        ".rsp",
    }
)
VIEWS = "views"
"""The folder of the state directory in which servers with a tree of their own write."""

SHAPING_NAMES = frozenset(
    {"global.json", "nuget.config", "packages.lock.json", ".editorconfig", ".globalconfig"}
)
"""The last two are nothing but a suffix, which for ``Path`` is none."""

Severity = Literal["Info", "Warning", "Error"]
_SEVERITIES: Mapping[str, Severity] = {"error": "Error", "warning": "Warning", "info": "Info"}


@dataclass(frozen=True, slots=True)
class LoadDiagnostic:
    """One thing a load had to say."""

    id: str
    severity: Severity
    message: str


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What was asked for: where, with which properties, by which server, in which environment."""

    path: Path
    root: Path
    properties: MsBuildProperties
    launch: ServerLaunch
    dotnet: Path | None
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Load:
    """What was found: projects, the inputs they were read from, and what there was to say about it."""

    structure: Structure
    inputs: Inputs
    notes: tuple[LoadDiagnostic, ...]
    links: Links
    report: LoadReport | None = None

    @property
    def document_count(self) -> int:
        """Documents that are not generated, one for each project that compiles the file."""
        return sum(not document.is_generated for p in self.structure.projects for document in p.documents)

    def reported(self, report: LoadReport) -> Load:
        """This load with what the server said about it."""
        return replace(self, report=report)

    def accept(self, written: Mapping[Path, bytes | None]) -> None:
        """Take our own commit as known, under every name of its files; blocks."""
        names = self.links.names
        self.inputs.accept({name: sha256 for path, sha256 in written.items() for name in names(path)})

    @property
    def diagnostics(self) -> tuple[LoadDiagnostic, ...]:
        """Everything worth telling, errors first."""
        told = (*self.notes, *_report_diagnostics(self.report))
        return tuple(sorted(told, key=lambda d: ("Error", "Warning", "Info").index(d.severity)))


def shapes_a_load(path: Path) -> bool:
    """Whether a new or vanished file of this name can change what is loaded."""
    return path.suffix.lower() in SHAPING_SUFFIXES or path.name.lower() in SHAPING_NAMES


class Loader:
    """Loads for all workspaces of one process."""

    def __init__(
        self, options: Options, state: StateDirectory, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._options = options
        self._state = state
        self._environ = environ
        self._msbuilds: dict[Path, MsBuild] = {}
        self._restorers: dict[Path, Restorer] = {}

    async def request(self, path: Path, root: Path, properties: MsBuildProperties) -> LoadRequest:
        """Choose the server and check that it can run.

        Raises ``LanguageServerNotFound``, ``DotnetSdkNotFound``.
        """
        launch = await to_thread.run_sync(self._discover)
        if launch.dialect.syntax_only:
            return LoadRequest(path, root, properties, launch, None, dict(self._environ))
        dotnet = find_dotnet(self._environ)
        environment = child_environment(self._environ, dotnet=dotnet, properties=properties)
        try:
            await check_sdk(dotnet, environment, path.parent)
        except SdkMissing as error:
            raise DotnetSdkNotFound(error.message) from error
        return LoadRequest(path, root, properties, launch, dotnet, environment)

    def _discover(self) -> ServerLaunch:
        options = self._options
        if options.server_path is not None and not options.server_path.exists():
            raise LanguageServerNotFound((str(options.server_path),), "Check --server-path.")
        return discover(
            options.server,
            options.server_path,
            self._environ,
            Path.home(),
            embedded_command=EMBEDDED_COMMAND,
        )

    async def look(
        self, request: LoadRequest, tell: ProgressSink = to_nobody, *, again: bool = False
    ) -> Load:
        """Read the projects, restore them when that is due and allowed, and record every input.

        A restore that failed before is tried again only when a person asked for it (``again``).

        Raises ``BridgeError`` (``WorkspaceLoadFailed``, ``WorkspaceNotSupported``, ``WorkspaceProjectOutsideRoot``,
        ``WorkspaceMsBuildPropertiesInvalid``) and ``PathRefused``.
        """
        structure = await self._read(request, Stage(tell, 0, 20))
        notes: list[LoadDiagnostic] = []
        if request.dotnet is not None:
            restorer = self._restorers.setdefault(request.dotnet, Restorer(request.dotnet))
            structure = await self._restored(
                request, restorer, structure, notes, Stage(tell, 20, 50), again=again
            )
        _require_usable(request, structure)
        notes += [
            *_property_notes(request),
            *_structure_notes(structure),
            *framework_notes(request.launch.dialect, structure),
        ]
        return Load(structure, await _captured(structure), tuple(notes), await _linked(structure))

    async def capture_again(self, load: Load) -> Load:
        """The same projects over the present state of their inputs."""
        return replace(load, inputs=await _captured(load.structure))

    async def count_again(self, request: LoadRequest, load: Load) -> Load:
        """The documents after files came or went by our own hand; the inputs are known already."""
        structure = await self._read(request, Stage(to_nobody, 0, 0))
        return replace(load, structure=structure, links=await _linked(structure))

    def starts_ahead(self, request: LoadRequest) -> bool:
        """Whether a server can start before the projects are known: its command line and its view do not need them."""
        return self._options.server_view == "text" and request.launch.dialect.accepts(request.path)

    async def head_start(self, request: LoadRequest) -> HeadStart | None:
        """What the server may begin to load before the projects are read; ``None``: nothing."""
        if request.dotnet is None:
            return None
        return await to_thread.run_sync(head_start, request.path, request.root)

    def supervise_ahead(self, request: LoadRequest, start: HeadStart | None) -> Supervisor:
        """The keeper of a server that starts, or even loads, before it is told the projects by ``retarget``."""
        projects = () if start is None else start.projects
        target = LoadTarget(request.path, request.root, projects)
        return self._supervisor(request, target, ahead="process" if start is None else "load")

    def supervise(self, request: LoadRequest, load: Load) -> Supervisor:
        """The keeper of this workspace's server; it is not running yet."""
        return self._supervisor(request, self.target(request, load))

    def _supervisor(
        self, request: LoadRequest, target: LoadTarget, *, ahead: Literal["process", "load"] | None = None
    ) -> Supervisor:
        options = self._options
        return Supervisor(
            request.launch,
            target,
            request.environment,
            Waits(
                load_timeout=options.load_timeout,
                request_timeout=options.request_timeout,
                restart_timeout=options.restart_timeout,
            ),
            log_directory=self._state.directory("server-logs"),
            text_reader=read_text,
            tree_directory=self._state.directory(VIEWS) if options.server_view == "overlay" else None,
            ahead=ahead,
            warms_up=options.warm_up == "auto",
        )

    def target(self, request: LoadRequest, load: Load) -> LoadTarget:
        """What the server is asked to open: the path itself, or a solution made for it."""
        path = request.path
        projects = tuple(dict.fromkeys(project.path for project in load.structure.projects))
        if not request.launch.dialect.accepts(path):
            directory = self._state.directory("solutions")
            if path in projects:
                path = write_generated_solution(path, directory, transitive_references(load.structure, path))
            else:  # a filter: the projects it keeps
                path = write_generated_solution(projects[0], directory, projects[1:], stands_for=path)
        return LoadTarget(
            path,
            request.root,
            projects,
            documents=load.document_count,
        )

    async def reload_server(
        self, request: LoadRequest, load: Load, supervisor: Supervisor, tell: ProgressSink = to_nobody
    ) -> Load:
        """The same load in a new server process."""
        supervisor.on_progress = Stage(tell, 50, 100)
        try:
            report = await supervisor.reload(self.target(request, load), request.environment)
        finally:
            supervisor.on_progress = None  # whoever watched this load is not there for later ones
        return load.reported(report)

    async def _read(self, request: LoadRequest, stage: Stage) -> Structure:
        def progressed(done: int, known: int) -> None:
            stage(100 * done / max(known, 1), f"Read {done} of {known} projects")

        return await read_structure(
            request.path,
            msbuild=self._msbuild(request.dotnet),
            environment=request.environment,
            on_progress=progressed,
        )

    def _msbuild(self, dotnet: Path | None) -> MsBuild | None:
        return None if dotnet is None else self._msbuilds.setdefault(dotnet, MsBuild(dotnet))

    async def _restored(
        self,
        request: LoadRequest,
        restorer: Restorer,
        structure: Structure,
        notes: list[LoadDiagnostic],
        stage: Stage,
        *,
        again: bool,
    ) -> Structure:
        pending = await to_thread.run_sync(partial(restorer.pending, structure, retry=again))
        if not pending:
            missing = await to_thread.run_sync(unrestored, structure)
            if missing:
                names = ", ".join(path.name for path in missing[:5])
                message = f"Packages of {len(missing)} projects are not all there, and restoring them failed before: {names}."
                notes.append(LoadDiagnostic("WorkspaceRestoreFailed", "Error", message))
            return structure
        if self._options.restore == "never":
            names = ", ".join(f"{path.name} ({why})" for path, why in sorted(pending.items())[:5])
            message = f"{len(pending)} projects need a restore, and --restore never forbids it: {names}."
            notes.append(LoadDiagnostic("WorkspaceRestoreNeeded", "Warning", message))
            return structure
        stage(0, f"Restoring packages of {len(pending)} projects")
        result = await restorer.restore(structure, environment=request.environment)
        done = LoadDiagnostic("WorkspaceRestored", "Info", result.message)
        failed = LoadDiagnostic("WorkspaceRestoreFailed", "Error", result.message)
        notes.append(done if result.succeeded else failed)
        return await self._read(request, stage)


async def _captured(structure: Structure) -> Inputs:
    documents = (d.path for p in structure.projects for d in p.documents if not d.is_generated)
    files = dict.fromkeys((*structure.inputs, *structure.absent_inputs, *documents))
    return await to_thread.run_sync(Inputs.capture, tuple(files), structure.directories, shapes_a_load)


async def _linked(structure: Structure) -> Links:
    return await to_thread.run_sync(read_links, structure.document_paths)


def read_text(path: Path) -> str | None:
    """The text of a file as a server should have it: decoded, without byte order mark."""
    try:
        return SourceText.decode(path.read_bytes()).text
    except (OSError, UndecodableText):
        return None


def _require_usable(request: LoadRequest, structure: Structure) -> None:
    if not structure.projects:
        reasons = [f"{f.path.name}: {f.message}" for f in structure.failed]
        reasons += [f"{s.path.name}: {s.reason}" for s in structure.skipped]
        if not reasons:
            raise BridgeError("WorkspaceLoadFailed", f"{request.path.name} names no project.")
        code = "WorkspaceLoadFailed" if structure.failed else "WorkspaceNotSupported"
        raise BridgeError(code, f"No project of {request.path.name} can be used. {' '.join(reasons[:5])}")
    for project in structure.projects:
        if not project.path.is_relative_to(request.root):
            raise BridgeError(
                "WorkspaceProjectOutsideRoot",
                f"{project.path} lies outside the workspace root {request.root}; give a workspaceRoot that holds it.",
            )
    _require_target_framework(request, structure)


def _require_target_framework(request: LoadRequest, structure: Structure) -> None:
    """A server that chooses a framework itself must not be believed to have taken the caller's."""
    wanted = request.properties.target_framework
    dialect = request.launch.dialect
    if wanted is None or (dialect.supports_target_framework and not dialect.syntax_only):
        return
    if dialect.syntax_only:
        others = sorted({p.path.name for p in structure.projects if p.target_framework != wanted})
        if others:
            raise BridgeError(
                "WorkspaceMsBuildPropertiesInvalid",
                f"{dialect.display_name} does not evaluate projects, so {wanted} cannot be promised for "
                f"{', '.join(others)}.",
            )
        return
    # The environment sets the property, so every project that lets it be set reports the wanted framework. What
    # counts is what the project files allow: only where that is one framework, the server's own choice is the same.
    several = sorted(
        {p.path.name for p in structure.projects if ";" in (p.properties.get("TargetFrameworks") or "")}
    )
    others = sorted({p.path.name for p in structure.projects if p.target_framework not in (None, wanted)})
    if several or others:
        raise BridgeError(
            "WorkspaceMsBuildPropertiesInvalid",
            f"{dialect.display_name} chooses the target framework itself, so {wanted} cannot be promised for "
            f"{', '.join(several or others)}. Open the workspace without targetFramework, or with the Roslyn server.",
        )


def _property_notes(request: LoadRequest) -> list[LoadDiagnostic]:
    """Properties without an effect are said: an agent would take the answers for those of another build."""
    if not request.launch.dialect.syntax_only or request.properties == MsBuildProperties():
        return []
    message = (
        f"{request.launch.dialect.display_name} does not evaluate projects: msBuildProperties have no effect."
    )
    return [LoadDiagnostic("WorkspacePropertiesWithoutEffect", "Warning", message)]


def framework_notes(dialect: Dialect, structure: Structure) -> list[LoadDiagnostic]:
    """That projects are counted once for each framework while the server answers for one of them."""
    if dialect.loads_every_framework:
        return []
    frameworks: dict[Path, list[str]] = {}
    for project in structure.projects:
        frameworks.setdefault(project.path, []).append(project.target_framework or "unknown")
    several = [f"{path.name} ({', '.join(names)})" for path, names in frameworks.items() if len(names) > 1]
    if not several:
        return []
    message = (
        f"{dialect.display_name} loads one target framework of each project, which it chooses itself; counted are "
        f"all of them. Answers are for that one alone in {len(several)} of {len(frameworks)} projects: "
        f"{', '.join(several[:5])}."
    )
    return [LoadDiagnostic("WorkspaceFrameworksNotLoaded", "Warning", message)]


def _structure_notes(structure: Structure) -> list[LoadDiagnostic]:
    notes = [
        LoadDiagnostic("WorkspaceProjectLoadFailed", "Error", f"{f.path}: {f.message}")
        for f in structure.failed
    ]
    notes += [LoadDiagnostic(s.code, "Warning", f"{s.path}: {s.reason}") for s in structure.skipped]
    if structure.source == "default globs":
        message = "Projects and documents were counted by the default globs, without MSBuild."
        notes.append(LoadDiagnostic("WorkspaceCountsEstimated", "Info", message))
    return notes + [LoadDiagnostic("WorkspaceCountsEstimated", "Info", note) for note in structure.notes]


def _report_diagnostics(report: LoadReport | None) -> tuple[LoadDiagnostic, ...]:
    if report is None:
        return ()
    told = [
        LoadDiagnostic("LanguageServerLoadMessage", _SEVERITIES[m.severity], m.text)
        for m in report.messages
        if m.severity != "info"
    ]
    limits = [LoadDiagnostic("LanguageServerLimits", "Info", limit) for limit in report.limits]
    return (*_view_notes(report), *told, *limits)


def _view_notes(report: LoadReport) -> list[LoadDiagnostic]:
    """That the wish for ``--server-view overlay`` was not met."""
    if report.tree_refused is None:
        return []
    message = f"--server-view overlay cannot be had, so the server sees staged files as texts only: {report.tree_refused}."
    return [LoadDiagnostic("WorkspaceServerViewText", "Warning", message)]
