"""A fix-all of unused usings over a solution: our time beside ``dotnet format``'s, and whether both change the same files.

    python -m scripts.bench_fix_all [FOLDER] [--server KIND ...] [--server-path KIND=PATH ...] [--rounds N] [--no-build]

FOLDER holds a solution that builds without packages; it is copied, never changed.  Without one, a solution of some
20,000 lines is made.  To most of its files unused usings are added, so that there is something to mend.

Each contestant gets a copy of its own, restored before the clock starts:

- *dotnet format*: ``dotnet format style --diagnostics IDE0005 --no-restore``, which needs an ``.editorconfig`` that
  makes the rule a warning.  It has no server to keep: *cold* and *warm* are two runs, one after the other.
- each server: *cold* is everything from starting the bridge and the server until the commit is on disk (open, list,
  prepare, stage, commit); *warm* the same without starting and opening, on the same files written back.

In each round all of them have their turn, so that a machine that is slower for a minute is slower for everybody.  What
is compared is the fastest of the rounds; each round is printed.

*Floor* is the time in which a question of ours was with the server (cold: and the opening); what is left is the
bridge's.  The exit code is 1 when a contestant changed other files, its result does not build, or it was slower than
``dotnet format``.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import anyio
import psutil

from bridge.options import Options, read_options
from bridge.tools.call import CallContext
from bridge.tools.registry import Tools
from bridge.workbench import open_workbench
from scripts.bench_code_actions import Json, Questions

FORMAT = "dotnet format"
TITLE = "Remove unnecessary usings"
UNUSED = ("System.Xml", "System.Net.Http")
"""Namespaces that nothing in such a solution uses."""

PROJECTS, FILES, MEMBERS = 4, 40, 20
"""Of a solution of our own: with six lines a member, some 20,000 lines."""

ALL = 1_000_000
"""More documents than any solution has."""

PROJECT = """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net{version}</TargetFramework></PropertyGroup>
</Project>
"""

EDITORCONFIG = "root = true\n\n[*.cs]\ndotnet_diagnostic.IDE0005.severity = warning\n"

Texts = Mapping[Path, bytes]
"""The source files of a folder by relative path."""


@dataclass(frozen=True)
class Result:
    """What one contestant did, in seconds."""

    name: str
    cold: float
    warm: float
    cold_cpu: float
    """Of all processes but our own, for machines that have other work."""
    warm_cpu: float
    changed: Texts
    """The files that it changed, as it left them."""
    cold_floor: float | None = None
    warm_floor: float | None = None
    note: str = ""

    def __str__(self) -> str:
        def seconds(total: float, cpu: float, floor: float | None) -> str:
            own = "" if floor is None else f", floor {floor:.1f} s"
            return f"{total:6.1f} s (cpu {cpu:.1f} s{own})"

        return (
            f"{self.name:14} cold {seconds(self.cold, self.cold_cpu, self.cold_floor)}   "
            f"warm {seconds(self.warm, self.warm_cpu, self.warm_floor)}   "
            f"{len(self.changed)} files changed{self.note}"
        )


# --- the solution -------------------------------------------------------------------------------------------


def make_solution(folder: Path) -> None:
    """Projects that reference the ones before them; the same each time."""
    version = subprocess.run(["dotnet", "--version"], capture_output=True, text=True, check=True).stdout
    framework = ".".join(version.split(".")[:2])
    names = [f"Part{number}" for number in range(PROJECTS)]
    for number, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        references = "".join(f'<ProjectReference Include="../{n}/{n}.csproj" />' for n in names[:number])
        items = f"  <ItemGroup>{references}</ItemGroup>\n</Project>" if references else "</Project>"
        project = PROJECT.format(version=framework).replace("</Project>", items)
        (folder / name / f"{name}.csproj").write_text(project, encoding="utf-8")
        for file in range(FILES):
            (folder / name / f"Class{file}.cs").write_text(some_class(name, file), encoding="utf-8")
    projects = "".join(f'  <Project Path="{name}/{name}.csproj" />\n' for name in names)
    (folder / "Parts.slnx").write_text(f"<Solution>\n{projects}</Solution>\n", encoding="utf-8")


def some_class(namespace: str, number: int) -> str:
    """A class of ``MEMBERS`` methods."""
    methods = "\n".join(
        f"""    public List<int> Method{member}(int value)
    {{
        var numbers = new List<int> {{ value, {member}, {number} }};
        return numbers.Where(number => number > {member * number}).ToList();
    }}
"""
        for member in range(MEMBERS)
    )
    usings = "using System.Collections.Generic;\nusing System.Linq;\n"
    return f"{usings}\nnamespace {namespace};\n\npublic class Class{number}\n{{\n{methods}}}\n"


def sources(folder: Path) -> Texts:
    """All source files but generated ones."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*.cs"))
        if not {"obj", "bin"} & set(path.parts)
    }


def add_unused_usings(folder: Path) -> None:
    """To three of four files; with the line ends and the byte order mark that they have."""
    for number, (path, data) in enumerate(sources(folder).items()):
        if number % 4 == 3:
            continue
        mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
        line_end = b"\r\n" if b"\r\n" in data else b"\n"
        added = b"".join(b"using %s;%s" % (name.encode(), line_end) for name in UNUSED)
        (folder / path).write_bytes(mark + added + data[len(mark) :])


def copy_for(name: str, template: Path) -> Path:
    """A restored copy for one contestant."""
    folder = template.parent / name
    shutil.copytree(template, folder, ignore=shutil.ignore_patterns("obj", "bin", ".git", ".vs"))
    dotnet(folder, "restore", str(solution_in(folder)))
    return folder


def solution_in(folder: Path) -> Path:
    """The one solution of a folder."""
    found = [path for path in folder.iterdir() if path.suffix in {".slnx", ".sln"}]
    if len(found) != 1:
        sys.exit(f"{folder} holds {len(found)} solutions, not one")
    return found[0]


def dotnet(folder: Path, *arguments: str) -> bool:
    """Run ``dotnet``; whether it ended well."""
    done = subprocess.run(["dotnet", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-1000:])
    return done.returncode == 0


def write_back(folder: Path, texts: Texts) -> None:
    """Undo what a contestant did."""
    for path, data in texts.items():
        if (folder / path).read_bytes() != data:
            (folder / path).write_bytes(data)


def changed_in(folder: Path, before: Texts) -> Texts:
    """The files that differ."""
    return {path: data for path, data in sources(folder).items() if before.get(path) != data}


# --- the contestants ----------------------------------------------------------------------------------------


def run_format(folder: Path) -> Result:
    """``dotnet format``, and again."""
    (folder / ".editorconfig").write_text(EDITORCONFIG, encoding="utf-8")
    before = sources(folder)
    command = ("format", "style", str(solution_in(folder)), "--diagnostics", "IDE0005", "--severity", "warn")
    times: list[tuple[float, float]] = []
    changed: Texts = {}
    for _ in ("cold", "warm"):
        write_back(folder, before)
        cpu, started = cpu_of_ended(), time.perf_counter()
        if not dotnet(folder, *command, "--no-restore"):
            sys.exit("dotnet format failed")
        times.append((time.perf_counter() - started, cpu_of_ended() - cpu))
        changed = changed_in(folder, before)
    (cold, cold_cpu), (warm, warm_cpu) = times
    return Result(FORMAT, cold, warm, cold_cpu, warm_cpu, changed)


def cpu_of_ended() -> float:
    """Processor seconds of all processes that we have started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_of_living() -> float:
    """Processor seconds so far of all processes below this one, and of theirs that have ended."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


STEPS = ("workspace-open", "list-code-actions", "prepare-fix-all", "stage-code-action", "transaction-commit")


class Caller:
    """Calls tools as a front door does."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._snapshot: Json = {}
        self.took: dict[str, float] = {}
        """Seconds of the newest call of each tool."""

    async def call(self, tool: str, **arguments: object) -> Json:
        """One call that must succeed; its data."""
        started = time.perf_counter()
        answer = await self._tools.call(tool, arguments, CallContext())
        self.took[tool] = time.perf_counter() - started
        if answer.is_error:
            sys.exit(f"{tool}: {answer.text}")
        self._snapshot = cast("Json", answer.envelope.get("snapshot", self._snapshot))
        return cast("Json", answer.envelope["data"])

    async def on_snapshot(self, tool: str, **arguments: object) -> Json:
        """The same with the newest snapshot echoed."""
        return await self.call(tool, expectedSnapshot=self._snapshot, **arguments)

    async def offered(self, path: Path) -> list[Json]:
        """The fixes at the start of a file."""
        data = await self.on_snapshot(
            "list-code-actions",
            document={"path": path.as_posix()},
            range={"start": 0, "length": 0},
            kinds="CodeFixes",
        )
        return cast("list[Json]", cast("Json", data["actions"])["items"])

    async def listed(self, path: Path) -> str:
        """The id of the fix, offered at the start of a file."""
        items = await self.offered(path)
        found = next((item for item in items if item["title"] == TITLE), None)
        if found is None or "Solution" not in cast("list[str]", found.get("fixAllScopes", [])):
            sys.exit(f"{TITLE!r} for the whole solution is not among {[item['title'] for item in items]}")
        return str(found["actionId"])

    async def meet_changes(self, path: Path) -> None:
        """Have files that were committed or written back taken in, by the bridge and by the server."""
        await self.call("transaction-start")
        await self.offered(path)
        await self.call("transaction-rollback")

    def steps(self) -> str:
        """How long each step took."""
        return ", ".join(f"{tool} {self.took[tool]:.1f}" for tool in STEPS)

    async def fix_all(self, path: Path) -> Json:
        """The whole way from the list to the disk; what was prepared."""
        await self.call("transaction-start")
        action = await self.listed(path)
        prepared = await self.on_snapshot(
            "prepare-fix-all", actionId=action, scope="Solution", maxChanges=ALL, affectedDocumentsLimit=ALL
        )
        await self.on_snapshot("stage-code-action", actionId=prepared["actionId"])
        await self.on_snapshot("transaction-commit")
        return prepared


async def run_server(options: Options, folder: Path) -> Result:
    """One server, from its start, and again while it is there."""
    before = sources(folder)
    first = next(path for path, data in before.items() if UNUSED[0].encode() in data)
    questions = Questions()
    started = time.perf_counter()
    async with open_workbench(options) as workbench:
        caller = Caller(Tools(workbench))
        await caller.call("workspace-open", path=str(solution_in(folder)), workspaceRoot=str(folder))
        opened = time.perf_counter() - started
        questions.watch((await workbench.workspaces[0].supervisor.session()).connection)
        prepared = await caller.fix_all(first)
        cold, cold_cpu, cold_floor = (
            time.perf_counter() - started,
            cpu_of_living(),
            opened + questions.seconds,
        )
        print(f"{options.server:14} cold: {caller.steps()}")
        changed = changed_in(folder, before)
        # One after the other: so many at once would be a reason to start the server anew.
        await caller.meet_changes(first)
        write_back(folder, before)
        await caller.meet_changes(first)
        asked, cpu, started = questions.seconds, cpu_of_living(), time.perf_counter()
        await caller.fix_all(first)
        warm, warm_cpu, warm_floor = (
            time.perf_counter() - started,
            cpu_of_living() - cpu,
            questions.seconds - asked,
        )
        print(f"{options.server:14} warm: {caller.steps()}")
    write_back(folder, before)
    return Result(
        options.server,
        cold,
        warm,
        cold_cpu,
        warm_cpu,
        changed,
        cold_floor=cold_floor,
        warm_floor=warm_floor,
        note=_note(prepared),
    )


def _note(prepared: Json) -> str:
    counts = prepared["affectedDiagnosticCount"], prepared["remainingDiagnosticCount"]
    counted = (
        f", diagnostics {counts[0]} -> {counts[1]}" if None not in counts else ", diagnostics not counted"
    )
    return counted + (", by the bridge" if prepared.get("emulated") else "")


# --- the verdict --------------------------------------------------------------------------------------------


def fastest(rounds: Sequence[Result]) -> Result:
    """The fastest cold and the fastest warm of one contestant.  Every round must have changed the same."""
    if any(result.changed != rounds[0].changed for result in rounds):
        sys.exit(f"{rounds[0].name} did not change the same in each round")
    cold, warm = min(rounds, key=lambda r: r.cold), min(rounds, key=lambda r: r.warm)
    return replace(
        cold, warm=warm.warm, warm_cpu=warm.warm_cpu, warm_floor=warm.warm_floor, changed=rounds[0].changed
    )


def judged(result: Result, judge: Result, folder: Path, *, build: bool) -> bool:
    """Say how a server compares; whether all is well."""
    problems = []
    if result.changed.keys() != judge.changed.keys():
        odd = sorted(map(str, result.changed.keys() ^ judge.changed.keys()))
        problems.append(f"{len(odd)} files are changed by one alone, such as {odd[0]}")
    if result.cold >= judge.cold or result.warm >= judge.warm:
        problems.append(f"slower than {judge.name}")
    for path, data in result.changed.items() if build else ():
        (folder / path).write_bytes(data)
    if build and not dotnet(
        folder, "build", str(solution_in(folder)), "--no-restore", "-v", "q", "-p:UseSharedCompilation=false"
    ):
        problems.append("does not build")
    same = sum(judge.changed.get(path) == data for path, data in result.changed.items())
    built = ", builds" if build else ""
    print(f"{result}\n{'':14} {same} of them with the same bytes as after {judge.name}{built}")
    for problem in problems:
        print(f"{'':14} NOT WELL: {problem}")
    return not problems


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="A fix-all of unused usings, beside dotnet format.")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--server", action="append", choices=["roslyn", "csharp-ls"])
    parser.add_argument("--server-path", action="append", default=[], metavar="KIND=PATH")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each; the fastest counts")
    parser.add_argument("--no-build", action="store_true", help="do not build the results")
    given = parser.parse_args()
    paths = dict(cast("str", pair).split("=", 1) for pair in given.server_path)
    with tempfile.TemporaryDirectory(prefix="fix-all-", ignore_cleanup_errors=True) as work:
        template = Path(work).resolve() / "template"
        if given.folder is None:
            make_solution(template)
        else:
            shutil.copytree(
                given.folder, template, ignore=shutil.ignore_patterns("obj", "bin", ".git", ".vs")
            )
        add_unused_usings(template)
        texts = sources(template)
        lines = sum(len(data.splitlines()) for data in texts.values())
        print(f"{len(texts)} files, {lines} lines; load {os.getloadavg()[0]:.1f}")
        kinds = given.server or ["roslyn", "csharp-ls"]
        folders = {name: copy_for(name, template) for name in (FORMAT, *kinds)}
        results: dict[str, list[Result]] = {name: [] for name in folders}
        for number in range(given.rounds):
            for name, folder in folders.items():
                if name == FORMAT:
                    result = run_format(folder)
                    write_back(folder, texts)
                else:
                    state = f"{work}/state-{number}"  # nothing is remembered from one round to the next
                    given_options = {"server": name, "server_path": paths.get(name), "state_directory": state}
                    result = anyio.run(run_server, read_options(given_options), folder)
                print(result)
                results[name].append(result)
        print(f"the fastest of {given.rounds}:")
        judge = fastest(results[FORMAT])
        print(judge)
        well = bool(judge.changed)
        for kind in kinds:
            well &= judged(fastest(results[kind]), judge, folders[kind], build=not given.no_build)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
