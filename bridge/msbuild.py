"""What MSBuild says about a project, from its own JSON output.

``dotnet msbuild <project> -getItem:... -getProperty:...`` evaluates the project and runs no target: nothing is built,
nothing written.  It takes about half a second, so at most ``CONCURRENCY`` run at once and every answer is kept for the
life of the process, under the content of everything that went into it: the project and its imports, the files that
would join if they appeared, and the names in the folders that globs look into.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import anyio
from anyio import to_thread

from bridge.children import ChildFailed, Completed, run
from bridge.fingerprints import Fingerprints, source_directories, untouched_since
from bridge.msbuild_imports import ImportScan, imports_in_flattened, scan_imports
from bridge.nuget_files import ASSETS_NAME, is_generated_by_restore, is_inert

CONCURRENCY = 2
"""Evaluations at once: each is a .NET process of 100 MB that wants a core."""
EVALUATION_WAIT = 60.0
"""Seconds for one evaluation: half a second as a rule; an SDK that comes from a slow feed takes longer."""
ERROR_LINES = 10
"""Lines of MSBuild's own words that a failure carries."""
_ERROR_LINE = re.compile(r"(?:^|[\s:])error(?: [A-Z]+\d+)?\s*:", re.IGNORECASE)
_PROJECT_AT_END = re.compile(r"\s\[[^\[\]]*\]$")

PROPERTIES = (
    "AssemblyName",
    "BaseIntermediateOutputPath",
    "Configuration",
    "DefineConstants",
    "DirectoryBuildPropsPath",
    "DirectoryBuildTargetsPath",
    "DirectoryPackagesPropsPath",
    "IntermediateOutputPath",
    "IsTestProject",
    "LangVersion",
    "MSBuildProjectExtensionsPath",
    "MSBuildProjectName",
    "Nullable",
    "OutputType",
    "Platform",
    "RootNamespace",
    "RuntimeIdentifier",
    "TargetFramework",
    "TargetFrameworks",
    "UsingMicrosoftNETSdk",
)
_Sources = tuple[tuple[Path, ...], tuple[Path, ...]]
"""Files, present and absent, and folders."""
Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

ITEMS = ("Compile", "ProjectReference", "AdditionalFiles", "EditorConfigFiles")


class EvaluationFailed(Exception):
    """MSBuild could not evaluate a project.  ``message`` holds its own words."""

    def __init__(self, project: Path, message: str) -> None:
        super().__init__(message)
        self.project = project
        self.message = message


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One project as MSBuild evaluates it, for one target framework or, when it has several, for none."""

    project: Path
    properties: Mapping[str, str]
    compile: tuple[Path, ...]
    """The files to compile, as MSBuild orders them; without those a build generates."""
    references: tuple[Path, ...]
    """The projects it references directly."""
    inputs: tuple[Path, ...]
    """Files that went into the evaluation or shape the analysis (project, imports, ``.editorconfig``, assets)."""
    absent_inputs: tuple[Path, ...]
    """Files that do not exist and would be inputs if they did."""
    directories: tuple[Path, ...]
    """Folders whose names matter: a new source file in one becomes part of the project."""

    @property
    def assets_file(self) -> Path:
        """The file that a restore leaves behind."""
        return self.extensions_path / ASSETS_NAME

    @property
    def extensions_path(self) -> Path:
        """The folder for what a restore writes, ``obj`` by default."""
        written = self.properties.get("MSBuildProjectExtensionsPath") or "obj"
        return Path(os.path.normpath(self.project.parent / written.replace("\\", "/")))

    @property
    def intermediate_path(self) -> Path:
        """The folder for generated files, ``obj`` by default."""
        written = self.properties.get("BaseIntermediateOutputPath") or "obj"
        return Path(os.path.normpath(self.project.parent / written.replace("\\", "/")))

    @property
    def frameworks(self) -> tuple[str, ...]:
        """The target frameworks still to choose from; empty when the evaluation is for one already."""
        if self.properties.get("TargetFramework"):
            return ()
        return tuple(f.strip() for f in self.properties.get("TargetFrameworks", "").split(";") if f.strip())


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer, and what it was made from."""

    fingerprint: bytes
    sources: _Sources
    answer: Evaluation | EvaluationFailed

    def value(self) -> Evaluation:
        if isinstance(self.answer, EvaluationFailed):
            raise EvaluationFailed(self.answer.project, self.answer.message)
        return _with_present_inputs(self.answer)


class MsBuild:
    """Evaluates projects with one ``dotnet``.  One for the process: it holds the answers."""

    def __init__(self, dotnet: Path) -> None:
        self.dotnet = dotnet
        self.evaluations_run = 0
        """How many times MSBuild was really asked."""
        self._fingerprints = Fingerprints(is_inert)
        self._kept: dict[tuple[Path, str | None, bytes], _Kept] = {}
        self._limiter = anyio.CapacityLimiter(CONCURRENCY)
        self._threads = anyio.CapacityLimiter(CONCURRENCY)

    async def evaluate(
        self,
        project: Path,
        *,
        environment: Mapping[str, str],
        directory: Path,
        framework: str | None = None,
    ) -> Evaluation:
        """The evaluation of ``project`` for ``framework`` (``None``: as the project and ``environment`` say).

        ``directory`` is where ``dotnet`` runs: its ``global.json`` chooses the SDK.  Raises ``EvaluationFailed``.
        Cancelling it ends the child.
        """
        key = (project, framework, _digest(environment, directory))
        kept = self._kept.get(key)
        if (
            kept is not None
            and await self._in_thread(self._fingerprints.of, *kept.sources) == kept.fingerprint
        ):
            return kept.value()
        async with self._limiter:
            started_ns = time.time_ns()
            answer = await self._answer(project, environment, directory, framework)
            sources = await self._in_thread(_sources_of, answer, directory)
        if sources is not None:
            fresh = _Kept(await self._in_thread(self._fingerprints.of, *sources), sources, answer)
            if await self._in_thread(untouched_since, (*sources[0], *sources[1]), started_ns):
                self._kept[key] = fresh
        if isinstance(answer, EvaluationFailed):
            raise answer
        return answer

    async def _in_thread(self, call: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        return await to_thread.run_sync(call, *arguments, limiter=self._threads)

    async def _answer(
        self, project: Path, environment: Mapping[str, str], directory: Path, framework: str | None
    ) -> Evaluation | EvaluationFailed:
        """Ask MSBuild; its refusal is an answer that can be kept as well, no answer at all is raised."""
        questions = [f"-getProperty:{','.join(PROPERTIES)}", f"-getItem:{','.join(ITEMS)}"]
        completed = await self._msbuild(project, questions, environment, directory, framework)
        if completed.returncode != 0:
            return EvaluationFailed(project, _error_text(completed))
        understood = await self._in_thread(
            _understand, project, _json(project, completed), directory, self.dotnet
        )
        if understood.complete:
            return understood.value
        return await self._with_flattened(understood.value, environment, directory, framework)

    async def _msbuild(
        self,
        project: Path,
        arguments: list[str],
        environment: Mapping[str, str],
        directory: Path,
        framework: str | None,
    ) -> Completed:
        chosen = [f"-property:TargetFramework={framework}"] if framework else []
        # Response files hold command-line habits; a language server does not read them, so neither do we.
        command: list[str | Path] = [
            self.dotnet,
            "msbuild",
            project,
            "-nologo",
            "-noAutoResponse",
            *chosen,
            *arguments,
        ]
        self.evaluations_run += 1
        try:
            return await run(command, cwd=directory, environment=environment, seconds=EVALUATION_WAIT)
        except ChildFailed as failure:
            tail = f" Last words: {failure.output_tail[-500:]}" if failure.output_tail else ""
            raise EvaluationFailed(project, f"MSBuild gave no answer: {failure.message}{tail}") from failure

    async def _with_flattened(
        self, value: Evaluation, environment: Mapping[str, str], directory: Path, framework: str | None
    ) -> Evaluation | EvaluationFailed:
        """Complete the inputs from the flattened project."""
        completed = await self._msbuild(value.project, ["-preprocess"], environment, directory, framework)
        if completed.returncode != 0:
            return EvaluationFailed(value.project, _error_text(completed))
        home = self.dotnet.resolve().parent
        found = imports_in_flattened(completed.stdout.decode("utf-8", "replace"))
        ours = (path for path in found if not path.is_relative_to(home))
        return replace(value, inputs=tuple(dict.fromkeys((*value.inputs, *ours))))


@dataclass(frozen=True, slots=True)
class _Understood:
    value: Evaluation
    complete: bool
    """Whether the inputs hold every import."""


def _json(project: Path, completed: Completed) -> Mapping[str, object]:
    try:
        value: object = json.loads(completed.stdout)
    except ValueError as error:
        raise EvaluationFailed(
            project, f"MSBuild answered no JSON: {completed.output_tail[-500:]}"
        ) from error
    if not isinstance(value, dict):
        raise EvaluationFailed(project, "MSBuild answered JSON of another shape.")
    return value


def _digest(environment: Mapping[str, str], directory: Path) -> bytes:
    text = "\0".join(f"{name}={value}" for name, value in sorted(environment.items()))
    return sha256(f"{directory}\0{text}".encode("utf-8", "surrogateescape")).digest()


def error_lines(output: str, limit: int = ERROR_LINES) -> list[str]:
    """The lines in which MSBuild or NuGet reports an error, each once, without the project named at their end.

    Not every line with the word: a project may be called so.
    """
    lines = (line.strip() for line in output.splitlines() if _ERROR_LINE.search(line))
    return list(dict.fromkeys(_PROJECT_AT_END.sub("", line) for line in lines))[:limit]


def _error_text(completed: Completed) -> str:
    tail = completed.output_tail
    return "\n".join(error_lines(tail)) or tail[-1000:] or "MSBuild failed without a word."


def _understand(project: Path, answer: Mapping[str, object], directory: Path, dotnet: Path) -> _Understood:
    written = answer.get("Properties")
    properties = {k: v for k, v in written.items() if isinstance(v, str)} if isinstance(written, dict) else {}
    compiled = _full_paths(answer, "Compile")
    scan = scan_imports(project, properties)
    configs = _editor_configs(project.parent)
    present, absent = _governing_files(project, directory)
    value = Evaluation(
        project=project,
        properties=properties,
        compile=compiled,
        references=_full_paths(answer, "ProjectReference"),
        inputs=(),
        absent_inputs=(),
        directories=_directories(project, compiled),
    )
    assets = value.assets_file
    inputs = (
        *_outside_sdk(scan, dotnet),
        *present,
        *configs,
        *_full_paths(answer, "EditorConfigFiles"),
        *_full_paths(answer, "AdditionalFiles"),
        assets,
    )
    value = replace(value, inputs=tuple(dict.fromkeys(inputs)), absent_inputs=(*scan.absent, *absent))
    return _Understood(_with_present_inputs(value), scan.complete)


def _with_present_inputs(value: Evaluation) -> Evaluation:
    """The same evaluation with its inputs sorted anew into those that are there and those that are not."""
    known = tuple(dict.fromkeys((*value.inputs, *value.absent_inputs)))
    present = tuple(path for path in known if path.is_file())
    if present == value.inputs:
        return value
    there = frozenset(present)
    return replace(value, inputs=present, absent_inputs=tuple(path for path in known if path not in there))


def _outside_sdk(scan: ImportScan, dotnet: Path) -> tuple[Path, ...]:
    home = dotnet.resolve().parent
    return tuple(path for path in scan.present if not path.is_relative_to(home))


def _full_paths(answer: Mapping[str, object], item: str) -> tuple[Path, ...]:
    """Each file of an item list once, absolute and normalised, in MSBuild's order."""
    items = answer.get("Items")
    listed = items.get(item) if isinstance(items, dict) else None
    found: dict[Path, None] = {}
    for entry in listed if isinstance(listed, list) else ():
        path = entry.get("FullPath") if isinstance(entry, dict) else None
        if isinstance(path, str) and path:
            found[Path(os.path.normpath(path))] = None
    return tuple(found)


def _directories(project: Path, compiled: tuple[Path, ...]) -> tuple[Path, ...]:
    holding = {path.parent for path in compiled}  # also outside, and in folders the walk leaves out
    return tuple(sorted({*source_directories([project.parent]), *(d for d in holding if d.is_dir())}))


def _editor_configs(folder: Path) -> tuple[Path, ...]:
    """Every place at or above ``folder`` where an ``.editorconfig`` is or may appear."""
    return tuple(directory / ".editorconfig" for directory in (folder, *folder.parents))


def _governing_files(project: Path, directory: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The ``global.json`` and NuGet configurations that govern an evaluation, present and absent."""
    places = dict.fromkeys((directory, *directory.parents, project.parent, *project.parent.parents))
    names = ("global.json", "NuGet.config", "nuget.config", "NuGet.Config")
    present = [place / name for place in places for name in names if (place / name).is_file()]
    absent = [place / "global.json" for place in places if place / "global.json" not in present]
    return tuple(present), tuple(absent)


def conventional_files(project: Path, directory: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files that shape a project by their name and place, and its plain imports: those there, those absent.

    For a project that is not evaluated; what a restore generates means nothing to it and is left out.
    """
    scan = scan_imports(project, {})
    present, absent = _governing_files(project, directory)
    known = dict.fromkeys((*scan.present, *scan.absent, *present, *absent, *_editor_configs(project.parent)))
    told = [path for path in known if not is_generated_by_restore(path)]
    there = frozenset(path for path in told if path.is_file())
    return tuple(p for p in told if p in there), tuple(p for p in told if p not in there)


def _sources_of(answer: Evaluation | EvaluationFailed, directory: Path) -> _Sources | None:
    """What an answer was made from; ``None`` for a failure whose causes cannot be seen from here."""
    if isinstance(answer, Evaluation):
        files = (path for path in (*answer.inputs, *answer.absent_inputs) if path.name != ASSETS_NAME)
        return tuple(files), answer.directories
    scan = scan_imports(answer.project, {})
    present, absent = _governing_files(answer.project, directory)
    return ((*scan.present, *scan.absent, *present, *absent), ()) if scan.complete else None
