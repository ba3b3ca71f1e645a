"""The projects and documents behind a solution: who compiles what.

Two sources give the same shape: MSBuild's own evaluation (exact), and the SDK's default globs where no SDK is (said by
``Structure.source``).  A project for several target frameworks is several projects here, one a framework, as every
language server sees it.  What does not load is in the structure too: ``skipped`` by rule, ``failed`` with the reason.

Identifiers are hashes of paths: the same in every process and after every reload, without a table to keep.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import anyio
from anyio import to_thread

from bridge.default_globs import describe_malformed, glob_project, is_old_style
from bridge.msbuild import Evaluation, EvaluationFailed, MsBuild, conventional_files
from bridge.msbuild_xml import MalformedXml, read_xml
from bridge.solutions import PROJECT_SUFFIX, SolutionProject, read_projects, underlying_solution
from bridge.stable_ids import stable_guid

PROJECT_SKIPPED = "WorkspaceProjectSkipped"

Source = Literal["msbuild", "default globs"]
Progress = Callable[[int, int], None]
"""Told the number of projects done and the number known so far."""


@dataclass(frozen=True, slots=True)
class Document:
    """One source file as one project compiles it."""

    id: str
    path: Path
    project_id: str
    is_linked: bool
    """It lies outside the project's folder."""
    is_generated: bool
    """It lies under the folder for generated files: readable, never changed."""


@dataclass(frozen=True, slots=True)
class Project:
    """One C# project for one target framework."""

    id: str
    name: str
    path: Path
    target_framework: str | None
    """``None`` when it is not known without MSBuild."""
    documents: tuple[Document, ...]
    inputs: tuple[Path, ...]
    """Existing files that shape the project: itself, imports, ``.editorconfig``, assets of its restore."""
    directories: tuple[Path, ...]
    """Folders in which a new source file would join the project."""
    references: tuple[Path, ...] = ()
    """Project files it references directly."""
    absent_inputs: tuple[Path, ...] = ()
    """Files that would be inputs if they appeared, such as a nearer ``Directory.Build.props``."""
    assets_file: Path | None = None
    """What a restore leaves behind; ``None`` when it is not known without MSBuild."""
    intermediate_path: Path | None = None
    properties: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Evaluated properties by MSBuild's names; empty without MSBuild."""

    @property
    def directory(self) -> Path:
        """The folder of the project file."""
        return self.path.parent

    def is_generated(self, path: Path) -> bool:
        """Whether ``path`` lies where this project's builds write."""
        places = (self.intermediate_path, self.directory / "obj", self.directory / "bin")
        return any(place is not None and path.is_relative_to(place) for place in places)

    def document_for(self, path: Path) -> Document:
        """The document that ``path`` is, or would be as a new file, in this project."""
        return Document(
            id=document_id(os.path.relpath(path, self.directory).replace(os.sep, "/"), self.id),
            path=path,
            project_id=self.id,
            is_linked=not path.is_relative_to(self.directory),
            is_generated=self.is_generated(path),
        )


@dataclass(frozen=True, slots=True)
class SkippedProject:
    """A project that is left out by rule; ``code`` is ``WorkspaceProjectSkipped``."""

    path: Path
    reason: str
    code: str = PROJECT_SKIPPED


@dataclass(frozen=True, slots=True)
class FailedProject:
    """A C# project that should have been there; ``message`` holds MSBuild's own words where there are any."""

    path: Path
    message: str


@dataclass(frozen=True)
class Structure:
    """What a solution consists of, at one moment."""

    path: Path
    projects: tuple[Project, ...]
    skipped: tuple[SkippedProject, ...]
    failed: tuple[FailedProject, ...]
    source: Source
    solution_files: tuple[Path, ...]
    """The opened file, and for a filter the solution it filters."""
    notes: tuple[str, ...] = ()
    """What the default globs could not see."""

    @cached_property
    def _documents(self) -> Mapping[Path, tuple[Document, ...]]:
        found: dict[Path, list[Document]] = {}
        for project in self.projects:
            for document in project.documents:
                found.setdefault(document.path, []).append(document)
        return {path: tuple(documents) for path, documents in found.items()}

    @cached_property
    def _projects(self) -> Mapping[str, Project]:
        return {project.id: project for project in self.projects}

    @property
    def document_paths(self) -> frozenset[Path]:
        """Every source file once."""
        return frozenset(self._documents)

    def documents_at(self, path: Path) -> tuple[Document, ...]:
        """The documents of the file ``path``: several for a linked file or several frameworks, none for a stranger."""
        return self._documents.get(path, ())

    def project(self, project_id: str) -> Project | None:
        """The project with this id."""
        return self._projects.get(project_id)

    def owner_of(self, path: Path) -> Project | None:
        """The project that a file at ``path`` belongs to, or would as a new file: the nearest folder wins.

        Of a project for several frameworks, the first.
        """
        documents = self.documents_at(path)
        if documents:
            return self._projects[documents[0].project_id]
        around = [project for project in self.projects if path.is_relative_to(project.directory)]
        return max(around, key=lambda project: len(project.directory.parts), default=None)

    def compiling(self, path: Path) -> tuple[Project, ...]:
        """The projects that compile a file, or would as a new one: several for a linked file or several frameworks."""
        documents = self.documents_at(path)
        if documents:
            return tuple(self._projects[document.project_id] for document in documents)
        owner = self.owner_of(path)
        return () if owner is None else tuple(p for p in self.projects if p.path == owner.path)

    def may_compile(self, path: Path) -> tuple[Project, ...]:
        """The projects that compile a file; of a new one every project that might, for globs reach beyond their folder."""
        if self.documents_at(path):
            return self.compiling(path)
        above = frozenset(path.parents)
        return (
            tuple(p for p in self.projects if not above.isdisjoint((p.directory, *p.directories)))
            or self.projects
        )

    @cached_property
    def inputs(self) -> tuple[Path, ...]:
        """The solution, its filter, and every project's inputs, each once."""
        solutions = (self.path, underlying_solution(self.path)) if self.path.is_file() else (self.path,)
        return _each_once(
            solutions, *(project.inputs for project in self.projects), (f.path for f in self.failed)
        )

    @cached_property
    def absent_inputs(self) -> tuple[Path, ...]:
        """Files whose appearance would change the structure."""
        return _each_once(*(project.absent_inputs for project in self.projects))

    @cached_property
    def directories(self) -> tuple[Path, ...]:
        """Folders whose content of names is part of the structure, each once."""
        return _each_once(*(project.directories for project in self.projects))


def _each_once(*groups: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path for group in groups for path in group))


def project_id(path: Path, name: str, target_framework: str | None) -> str:
    """The stable id of a project."""
    return stable_guid("project", str(path), name, target_framework or "")


def document_id(path_relative: str, project_id: str) -> str:
    """The stable id of a document.  ``path_relative`` is relative to the project's folder, with forward slashes."""
    return stable_guid("document", project_id, path_relative)


async def read_structure(
    target: Path,
    *,
    msbuild: MsBuild | None,
    environment: Mapping[str, str],
    directory: Path | None = None,
    on_progress: Progress | None = None,
) -> Structure:
    """The structure behind ``target``, a path from ``solutions.locate``.

    ``msbuild`` evaluates in ``environment`` (with the workspace's properties in it) from ``directory``, by default
    the target's folder; ``None`` reads by the default globs.  A ``.csproj`` brings its transitive project references
    along.  Raises ``PathRefused`` when the solution file cannot be read; projects that fail are in the answer.
    """
    listed, solution_files = await to_thread.run_sync(_listed, target)
    reader = _Reader(msbuild, environment, directory or target.parent, on_progress)
    follow = target.suffix.lower() == PROJECT_SUFFIX
    await reader.read(listed, follow=follow)
    outcomes = [reader.outcomes[path] for path in reader.order]
    return Structure(
        path=target,
        projects=tuple(project for outcome in outcomes for project in outcome.projects),
        skipped=tuple(outcome.skipped for outcome in outcomes if outcome.skipped is not None),
        failed=tuple(outcome.failed for outcome in outcomes if outcome.failed is not None),
        source="msbuild" if msbuild is not None else "default globs",
        solution_files=solution_files,
        notes=tuple(note for outcome in outcomes for note in outcome.notes),
    )


def _listed(target: Path) -> tuple[tuple[SolutionProject, ...], tuple[Path, ...]]:
    return read_projects(target), tuple(dict.fromkeys((target, underlying_solution(target))))


def transitive_references(structure: Structure, project: Path) -> tuple[Path, ...]:
    """Every project that ``project`` needs, itself left out, in the order found."""
    direct: dict[Path, dict[Path, None]] = {}
    for known in structure.projects:
        direct.setdefault(known.path, {}).update(dict.fromkeys(known.references))
    found: dict[Path, None] = {}
    waiting = list(direct.get(project, ()))
    while waiting:
        path = waiting.pop(0)
        if path != project and path not in found:
            found[path] = None
            waiting += direct.get(path, ())
    return tuple(found)


_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
"""What MSBuild takes for a letter written by its number; a project below such a folder cannot be built either."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one project file."""

    projects: tuple[Project, ...] = ()
    skipped: SkippedProject | None = None
    failed: FailedProject | None = None
    notes: tuple[str, ...] = ()


class _Reader:
    """Reads project files at once, as many as the sources allow, and follows references when asked to."""

    def __init__(
        self,
        msbuild: MsBuild | None,
        environment: Mapping[str, str],
        directory: Path,
        on_progress: Progress | None,
    ) -> None:
        self._msbuild = msbuild
        self._environment = environment
        self._directory = directory
        self._on_progress = on_progress
        self.order: list[Path] = []
        self.outcomes: dict[Path, _Outcome] = {}

    async def read(self, listed: Sequence[SolutionProject], *, follow: bool) -> None:
        """Fill ``outcomes``; a level of references is read when the level before it is known."""
        level = list(listed)
        while level:
            self.order += [item.path for item in level]
            async with anyio.create_task_group() as readers:
                for item in level:
                    readers.start_soon(self._read_one, item)
            if not follow:
                return
            needed = _each_once(
                *(project.references for item in level for project in self.outcomes[item.path].projects)
            )
            fresh = [path for path in needed if path not in self.outcomes]
            level = [
                SolutionProject(
                    path,
                    path.stem,
                    "csharp" if path.suffix.lower() == PROJECT_SUFFIX else "other",
                    path.suffix,
                )
                for path in fresh
            ]

    async def _read_one(self, item: SolutionProject) -> None:
        self.outcomes[item.path] = await self._outcome(item)
        if self._on_progress is not None:
            self._on_progress(len(self.outcomes), len(self.order))

    async def _outcome(self, item: SolutionProject) -> _Outcome:
        early = await to_thread.run_sync(_outcome_before_reading, item)
        if early is not None:
            return early
        if self._msbuild is None:
            return await to_thread.run_sync(_globbed, item, self._directory)
        escape = _ESCAPE.search(str(item.path))
        if escape is not None:
            message = f"MSBuild reads {escape[0]!r} in this path as an escaped character and finds no sources there."
            return _Outcome(failed=FailedProject(item.path, message))
        try:
            return await self._evaluated(item, self._msbuild)
        except EvaluationFailed as failure:
            return _Outcome(failed=FailedProject(item.path, failure.message))

    async def _evaluated(self, item: SolutionProject, msbuild: MsBuild) -> _Outcome:
        outer = await self._evaluate(msbuild, item.path, None)
        if outer.properties.get("UsingMicrosoftNETSdk", "").lower() != "true":
            return _Outcome(skipped=SkippedProject(item.path, "The project is not in the SDK style."))
        if not outer.frameworks:
            return _Outcome((_project(outer, outer.properties.get("TargetFramework") or None),))
        inner: dict[str, Evaluation] = {}

        async def evaluate_for(framework: str) -> None:
            inner[framework] = await self._evaluate(msbuild, item.path, framework)

        try:
            async with anyio.create_task_group() as frameworks:
                for framework in outer.frameworks:
                    frameworks.start_soon(evaluate_for, framework)
        except* EvaluationFailed as failures:
            first = failures.exceptions[0]
            raise EvaluationFailed(item.path, str(first)) from first
        return _Outcome(tuple(_project(inner[framework], framework) for framework in outer.frameworks))

    async def _evaluate(self, msbuild: MsBuild, path: Path, framework: str | None) -> Evaluation:
        return await msbuild.evaluate(
            path, environment=self._environment, directory=self._directory, framework=framework
        )


def _outcome_before_reading(item: SolutionProject) -> _Outcome | None:
    """What can be said without evaluating: another language, a missing file, a project from before SDKs."""
    if item.kind != "csharp":
        return _Outcome(skipped=SkippedProject(item.path, f"The project is no C# project ({item.type})."))
    try:
        is_there = item.path.is_file()
    except OSError as error:  # a name that no system takes
        return _Outcome(failed=FailedProject(item.path, f"The path cannot be used: {error.strerror}."))
    if not is_there:
        return _Outcome(failed=FailedProject(item.path, "The project file does not exist."))
    try:
        root = read_xml(item.path)
    except MalformedXml as error:
        if "DOCTYPE" in error.reason:
            return _Outcome(failed=FailedProject(item.path, describe_malformed(error)))
        return None  # MSBuild has better words, and the place
    if is_old_style(root):
        return _Outcome(skipped=SkippedProject(item.path, "The project is not in the SDK style."))
    return None


def _project(evaluation: Evaluation, framework: str | None) -> Project:
    path = evaluation.project
    name = evaluation.properties.get("MSBuildProjectName") or path.stem
    bare = Project(
        id=project_id(path, name, framework),
        name=name,
        path=path,
        target_framework=framework,
        documents=(),
        inputs=evaluation.inputs,
        directories=evaluation.directories,
        references=evaluation.references,
        absent_inputs=evaluation.absent_inputs,
        assets_file=evaluation.assets_file,
        intermediate_path=evaluation.intermediate_path,
        properties=evaluation.properties,
    )
    return _with_documents(bare, evaluation.compile)


def _with_documents(project: Project, files: Iterable[Path]) -> Project:
    return replace(project, documents=tuple(project.document_for(path) for path in files))


def _globbed(item: SolutionProject, directory: Path) -> _Outcome:
    try:
        seen = glob_project(item.path)
    except MalformedXml as error:
        return _Outcome(failed=FailedProject(item.path, describe_malformed(error)))
    present, absent = conventional_files(item.path, directory)
    below = (folder / ".editorconfig" for folder in seen.directories)
    bare = Project(
        id=project_id(item.path, item.path.stem, seen.target_framework),
        name=item.path.stem,
        path=item.path,
        target_framework=seen.target_framework,
        documents=(),
        inputs=tuple(dict.fromkeys((item.path, *present, *(path for path in below if path.is_file())))),
        directories=seen.directories,
        references=seen.references,
        absent_inputs=absent,
    )
    notes = tuple(f"{item.path}: {note}" for note in seen.notes)
    return _Outcome((_with_documents(bare, seen.files),), notes=notes)
