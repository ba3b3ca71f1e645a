"""The main job, shown to a visitor: list code actions, stage one, look at the diff, commit; then roll one back.

Everything goes through the real front door: the bridge runs as a child and is spoken to over MCP stdio, and the
files are a copy of the sample solution in a temporary folder.  The exit code is 0 only if every step held.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import anyio
from mcp import Client, StdioServerParameters

from lsp_client.discovery import discover, install_hint
from lsp_client.failures import DotnetSdkNotFound, LanguageServerNotFound

SAMPLE = Path(__file__).parent / "sample"
TWO_TYPES = "src/Greenhouse/Plants.cs"
SECOND_TYPE = "class Bed"
WITHOUT_BRACES = "src/Greenhouse/Watering.cs"
CALL_TIMEOUT = 300.0
"""Seconds for one call; the first one loads a solution with a cold compiler."""

Json = dict[str, object]


class DemoFailedError(Exception):
    """A step that the demo counts on did not hold."""


def say(text: str = "") -> None:
    print(text, flush=True)


def headline(text: str) -> None:
    say(f"\n== {text}")


def choose_server() -> list[str]:
    """The options for the best server at hand, and a word to the visitor about it.

    An installed Roslyn server comes first.  The toolchain that may lie beside the project has a stand-in for it, and
    csharp-ls; they are not installed, so discovery does not know them.
    """
    for kind in ("roslyn", "csharp-ls"):
        try:
            found = discover(kind, None)
        except (LanguageServerNotFound, DotnetSdkNotFound):
            path = os.environ.get({"roslyn": "ROSLYN_LS", "csharp-ls": "CSHARP_LS"}[kind])
            if path is None:
                continue
            what = (
                "the toolchain's stand-in for Microsoft's Roslyn server"
                if kind == "roslyn"
                else "csharp-ls of the toolchain"
            )
            say(f"Server: {what}.")
            if kind == "roslyn":
                say(f"Microsoft's own is installed by: {install_hint('roslyn')}")
            return ["--server", kind, "--server-path", path]
        say(f"Server: {found.dialect.display_name}, {found.origin}.")
        if kind != "roslyn":
            say(f"A better one is installed by: {install_hint('roslyn')}")
        return ["--server", kind]
    say("Server: the embedded one, which knows syntax only. It is a stand-in: no .NET server was found here.")
    say(f"A better one is installed by: {install_hint('roslyn')}")
    return ["--server", "embedded"]


@dataclass
class Bridge:
    """The bridge as an agent sees it: tools by name, and the last snapshot to echo."""

    client: Client
    root: Path
    snapshot: Json

    async def call(self, tool: str, **arguments: object) -> Json:
        """The data of one answer.  Raises DemoFailedError for a refusal."""
        result = await self.client.call_tool(tool, arguments, read_timeout_seconds=CALL_TIMEOUT)
        envelope = cast("Json", result.structured_content)
        if not envelope["ok"]:
            raise DemoFailedError(f"{tool}: {envelope['error']}")
        if envelope.get("snapshot"):
            self.snapshot = cast("Json", envelope["snapshot"])
        return cast("Json", envelope["data"])

    async def stage(self, document: str, needle: str, wanted: str) -> None:
        """Show what is offered at ``needle`` and stage the first action whose title starts with ``wanted``."""
        data = await self.call(
            "list-code-actions",
            document={"path": document},
            range={"start": offset_of(self.root / document, needle), "length": 0},
            expectedSnapshot=self.snapshot,
            kinds="All",
        )
        items = cast("list[Json]", cast("Json", data["actions"])["items"])
        say(f"{document}: {len(items)} actions at {needle!r}:")
        for item in items:
            inferred = ", inferred" if item.get("kindInferred") else ""
            say(f"    [{item['kind']}{inferred}] {' > '.join(cast('list[str]', item['titlePath']))}")
        chosen = next((item for item in items if str(item["title"]).startswith(wanted)), None)
        if chosen is None:
            raise DemoFailedError(f"the server offers no {wanted!r} here")
        staged = await self.call(
            "stage-code-action", actionId=chosen["actionId"], expectedSnapshot=self.snapshot
        )
        say(f"Staged. {staged['summary']}")


def offset_of(path: Path, needle: str) -> int:
    """The zero-based UTF-16 offset of ``needle`` in a UTF-8 file, its byte order mark not counted."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        text = file.read()
    return len(text[: text.index(needle)].encode("utf-16-le")) // 2


def tree(root: Path) -> dict[str, str]:
    """Every file under ``root`` with the hash of its bytes; build output is left out."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not {"bin", "obj", ".vs"} & set(path.relative_to(root).parts)
    }


async def show_diff(bridge: Bridge) -> None:
    """Print the staged diff of every document."""
    preview = await bridge.call("transaction-preview")
    for changed in cast("list[Json]", preview["documents"]):
        path = cast("Json", changed["document"])["path"]
        say(f"\n{changed['changeKind']}: {path}")
        detailed = await bridge.call("transaction-preview", document={"path": path}, includeDiff=True)
        for hunk in cast("list[Json]", cast("Json", detailed["diff"])["hunks"]):
            old = f"{hunk['originalStartLine']},{hunk['originalLineCount']}"
            new = f"{hunk['updatedStartLine']},{hunk['updatedLineCount']}"
            say(f"@@ -{old} +{new} @@")
            for line in cast("list[str]", hunk["lines"]):
                say(line)


def report_state(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Print what became of each file."""
    for path in sorted(before.keys() | after.keys()):
        if path not in before:
            state = "added"
        elif path not in after:
            state = "deleted"
        else:
            state = "unchanged" if before[path] == after[path] else "changed"
        say(f"    {state:<10} {path}")


async def main_job(bridge: Bridge) -> None:
    """Open, list, stage, preview, undo, redo, commit; then a second transaction that is rolled back."""
    root = bridge.root
    headline("Open")
    opened = await bridge.call("workspace-open", path=str(root / "Sample.slnx"), alias="sample")
    server = cast("Json", opened["server"])
    say(f"{opened['projectCount']} projects, {opened['documentCount']} documents")
    say(f"answered by {server['name']} {server.get('version') or ''}")
    for diagnostic in cast("list[Json]", opened["loadDiagnostics"]):
        say(f"    {diagnostic['severity']}: {diagnostic['message']}")

    headline("List code actions and stage one")
    before = tree(root)
    await bridge.call("transaction-start")
    await bridge.stage(TWO_TYPES, SECOND_TYPE, "Move type to")

    headline("The staged diff")
    await show_diff(bridge)
    if tree(root) != before:
        raise DemoFailedError("a file changed before the commit")
    say("\nNothing of this is on disk yet.")

    headline("Undo, redo, commit")
    for direction in ("Undo", "Redo"):
        moved = await bridge.call(
            "transaction-history", direction=direction, expectedSnapshot=bridge.snapshot
        )
        say(f"{direction}: revision {cast('Json', moved['transaction'])['revision']}")
    committed = await bridge.call("transaction-commit", expectedSnapshot=bridge.snapshot)
    if not committed["committed"]:
        raise DemoFailedError("nothing was committed")
    after = tree(root)
    say("Committed. The files now:")
    report_state(before, after)

    headline("A second transaction, rolled back")
    await bridge.call("transaction-start")
    await bridge.stage(WITHOUT_BRACES, "if (", "")
    rolled_back = await bridge.call("transaction-rollback")
    if tree(root) != after:
        raise DemoFailedError("the rolled back transaction left something behind")
    say(f"Rolled back ({rolled_back['state']}); every file is as the commit left it.")
    await bridge.call("workspace-close")


def copied_sample(folder: Path) -> Path:
    """A writable copy of the sample, whatever the permissions of the original are."""
    root = folder.resolve() / "sample"
    shutil.copytree(SAMPLE, root)
    for path in root.rglob("*"):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    return root


async def run(root: Path, options: Sequence[str]) -> None:
    """Start the bridge as an agent's client would, and do the main job over its standard streams."""
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "bridge", "mcp", *options], env=dict(os.environ)
    )
    failures: list[DemoFailedError] = []
    async with Client(command, mode="legacy") as client:
        try:
            await main_job(Bridge(client, root, {}))
        except DemoFailedError as failure:
            failures.append(failure)  # raised outside, where no task group wraps it
    if failures:
        raise failures[0]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="roslyn-bridge-demo-") as name:
        folder = Path(name)
        options = [*choose_server(), "--state-directory", str(folder / "state")]
        try:
            anyio.run(run, copied_sample(folder), options)
        except DemoFailedError as failure:
            raise SystemExit(f"The demo did not hold: {failure}") from failure
    say("\nThe demo held. Next: README.md.")


if __name__ == "__main__":
    main()
