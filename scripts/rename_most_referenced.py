"""Renames the most referenced symbol of a solution, and shows that it still builds and that the way back is exact.

    python scripts/rename_most_referenced.py SOLUTION --server roslyn|csharp-ls --server-path DLL [--no-build]

Works on a copy.  First run: rename, commit, ``dotnet build``; then rename back, commit, and compare all bytes.  Second
run: rename, undo, redo, undo, roll back, and compare all bytes.  The symbol is found by asking the server for the uses
of what is declared by the words that occur most.  Exit code 0 when everything held.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import anyio

from bridge.bindings import uses_of
from bridge.options import Options
from bridge.spots import Spot, Texts
from bridge.symbols import Outlines
from bridge.tools.call import CallContext
from bridge.tools.registry import Tools
from bridge.workbench import open_workbench
from bridge.workspace import Workspace
from lsp_client.navigation import CONSTRUCTOR_KIND, NAMESPACE_KIND

MOST_WORDS = 40
"""Words, by how often they occur, whose declarations are asked for."""

BUILD_WAIT = 1800.0
"""Seconds for one build of a large solution on two busy cores."""

BUILD_FOLDERS = frozenset({"bin", "obj", ".vs", ".git"})

Json = dict[str, object]


@dataclass(frozen=True)
class Found:
    """A symbol by its declaration, and how often it is used."""

    name: str
    spot: Spot
    uses: frozenset[Spot]


def bytes_of(root: Path) -> Mapping[Path, bytes]:
    """Every file but what builds write."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {
        path: path.read_bytes() for path in files if not BUILD_FOLDERS & set(path.relative_to(root).parts)
    }


class Caller:
    """Calls tools, echoes the snapshot, and ends the run at a refusal."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._snapshot: object = None

    async def do(self, tool: str, **arguments: object) -> Json:
        """The data of an answer that must be a success."""
        if tool in {"rename-symbol", "transaction-history", "transaction-commit"}:
            arguments["expectedSnapshot"] = self._snapshot
        answer = await self._tools.call(tool, arguments, CallContext())
        if answer.is_error:
            raise SystemExit(f"{tool}: {answer.text}")
        self._snapshot = answer.envelope.get("snapshot", self._snapshot)
        return cast("Json", answer.envelope["data"])

    async def rename(self, document: Json, start: int, new_name: str) -> Json:
        """One rename in a transaction of its own, which is left open."""
        await self.do("transaction-start")
        place = {"span": {"document": document, "range": {"start": start, "length": 0}}}
        began = time.monotonic()
        data = await self.do("rename-symbol", symbol={"location": place}, newName=new_name)
        print(f"  {data['summary']} in {time.monotonic() - began:.1f} s")
        return data


async def most_referenced(workspace: Workspace) -> Found:
    """The declaration with most uses, among those that the most frequent words declare."""
    texts = Texts(workspace, workspace.overlay)
    session = await workspace.ready_session()
    outlines = Outlines(session, texts)
    written = [
        workspace.load.links.physical(path)
        for path in sorted(workspace.structure.document_paths)
        if not all(document.is_generated for document in workspace.structure.documents_at(path))
    ]
    counts = Counter(word.value for path in written for word in texts.scan(path).words)
    wanted = {word for word, _ in counts.most_common(MOST_WORDS * 10)}
    declared: dict[str, list[Spot]] = {}
    for path in written:
        for item in await outlines.of(path):
            word = texts.word_of(outlines.spot(path, item))
            if (
                word is not None
                and word.value in wanted
                and item.kind not in {NAMESPACE_KIND, CONSTRUCTOR_KIND}
            ):
                declared.setdefault(word.value, []).append(outlines.spot(path, item))
    best: Found | None = None
    for name in sorted(declared, key=lambda name: -counts[name])[:MOST_WORDS]:
        if best is not None and counts[name] <= len(best.uses):
            break  # no symbol is used more often than its name is written
        known: set[Spot] = set()
        for spot in declared[name]:
            if spot not in known:
                uses = await uses_of(session, texts, spot)
                known |= uses
                if best is None or len(uses) > len(best.uses):
                    best = Found(name, spot, uses)
    if best is None:
        raise SystemExit("No declaration was found.")
    return best


async def run(arguments: argparse.Namespace, copy: Path, state: Path) -> bool:
    """Both runs; whether everything held."""
    solution = copy / arguments.solution.name
    kind = cast("Literal['roslyn', 'csharp-ls']", arguments.server)
    options = Options(
        server=kind,
        server_path=arguments.server_path,
        state_directory=state,
        request_timeout=600.0,
        load_timeout=900.0,
    )
    before = bytes_of(copy)
    held = True
    async with open_workbench(options) as workbench:
        caller = Caller(Tools(workbench))
        await caller.do("workspace-open", path=str(solution))
        (workspace,) = workbench.workspaces
        found = await most_referenced(workspace)
        texts = Texts(workspace, workspace.overlay)
        word, text = texts.word_of(found.spot), texts.text(found.spot.path)
        if word is None or text is None:
            raise SystemExit(f"{found.spot.path} changed while it was looked at.")
        path = workspace.relative(texts.document(found.spot.path))
        document: Json = {"path": path}
        owners = workspace.structure.documents_at(texts.document(found.spot.path))
        if len(owners) > 1:
            document["project"] = {"projectId": owners[0].project_id}
        start = text.offset_at(text.position_of_index(word.start))
        files = len({use.path for use in found.uses})
        print(f"{found.name} ({path}): {len(found.uses)} uses in {files} files, {kind}")

        await caller.rename(document, start, f"{found.name}Renamed")
        await caller.do("transaction-history", direction="Undo")
        await caller.do("transaction-history", direction="Redo")
        await caller.do("transaction-history", direction="Undo")
        await caller.do("transaction-rollback")
        held &= told("undone: every byte as before", holds=bytes_of(copy) == before)

        await caller.rename(document, start, f"{found.name}Renamed")
        await caller.do("transaction-commit")
        changed = {p for p, data in bytes_of(copy).items() if before.get(p) != data}
        held &= told(f"committed: {len(changed)} files differ", holds=bool(changed))
        if not arguments.no_build:
            held &= told("dotnet build", holds=builds(solution))
        await caller.rename(document, start, found.name)
        await caller.do("transaction-commit")
        held &= told("renamed back: every byte as before", holds=bytes_of(copy) == before)
    return held


def told(what: str, *, holds: bool) -> bool:
    """Print what was looked at; the verdict."""
    print(f"  {'ok' if holds else 'FAILED'}  {what}", flush=True)
    return holds


def builds(solution: Path) -> bool:
    """Whether ``dotnet build`` succeeds; its errors are printed."""
    done = subprocess.run(
        [
            "dotnet",
            "build",
            str(solution),
            "-v",
            "q",
            "-nologo",
            "-p:UseSharedCompilation=false",
            "-nodeReuse:false",
        ],
        capture_output=True,
        text=True,
        timeout=BUILD_WAIT,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        print("\n".join(line for line in done.stdout.splitlines() if "error" in line)[:4000])
    return done.returncode == 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("solution", type=Path)
    parser.add_argument("--server", choices=["roslyn", "csharp-ls"], default="roslyn")
    parser.add_argument("--server-path", type=Path)
    parser.add_argument("--no-build", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rename-") as folder:
        copy = Path(folder).resolve() / "copy"
        shutil.copytree(arguments.solution.resolve().parent, copy, symlinks=True)
        for path in copy.rglob("*"):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o200)
        if not arguments.no_build and not builds(copy / arguments.solution.name):
            print("The solution does not build before the rename.")
            return 1
        return 0 if anyio.run(run, arguments, copy, Path(folder) / "state") else 1


if __name__ == "__main__":
    sys.exit(main())
