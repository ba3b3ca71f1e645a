"""Error codes: each one is produced here, and carries the next step that the table of codes promises.

``EXPECTED`` is written down from the description of behaviour, not taken from the code under test.
"""

import errno
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest

from bridge.errors import CONTINUATIONS, Action, BridgeError, continuation_for
from bridge.tools.call import CallContext, UnknownTool
from tests.bridge.agent import Agent, Refusal, Scene, opened, real_bridge, scene, write_solution
from tests.bridge.played_server import Offer, create, insert
from tests.bridge.promises import keeps
from transactions.commit import commit
from transactions.recovery import recover
from transactions.system import System

FILE = "Core/Apple.cs"
NOBODY = "01234567-89ab-cdef-0123-456789abcdef"
LISTING: Mapping[str, object] = {"document": {"path": FILE}, "kinds": "All"}

REVISE = ("ReviseRequest", ())
RETRY = ("RetryRequest", ())
COMMIT_OR_ROLL_BACK = ("ChooseTool", ("transaction-commit", "transaction-rollback"))


def call(tool: str) -> tuple[str, tuple[str, ...]]:
    return ("CallTool", (tool,))


EXPECTED: Mapping[str, tuple[str | None, tuple[str, ...]]] = {
    "WorkspaceNotOpen": call("workspace-open"),
    "WorkspaceAlreadyOpen": (None, ()),
    "WorkspaceCapacityReached": (None, ()),
    "WorkspaceNotSupported": (None, ()),
    "WorkspaceLoadFailed": (None, ()),
    "WorkspaceLoadTimedOut": (None, ()),
    "WorkspacePathInvalid": (None, ()),
    "WorkspacePathAmbiguous": (None, ()),
    "WorkspaceRootInvalid": (None, ()),
    "WorkspaceProjectOutsideRoot": (None, ()),
    "WorkspaceChangedDuringLoad": RETRY,
    "WorkspaceMsBuildPropertiesInvalid": (None, ()),
    "WorkspaceSelectorRequired": REVISE,
    "WorkspaceSelectorInvalid": REVISE,
    "WorkspaceSelectorNotFound": REVISE,
    "WorkspaceSelectorMismatch": REVISE,
    "WorkspaceBusy": RETRY,
    "WorkspaceOutOfDate": call("workspace-reload"),
    "WorkspaceReloadBlocked": COMMIT_OR_ROLL_BACK,
    "TransactionOpen": COMMIT_OR_ROLL_BACK,
    "NoActiveTransaction": call("transaction-start"),
    "TransactionAlreadyActive": COMMIT_OR_ROLL_BACK,
    "TransactionOwnedByWorkspace": COMMIT_OR_ROLL_BACK,
    "TransactionConflicted": call("transaction-rollback"),
    "TransactionHistoryUnavailable": (None, ()),
    "RevisionCapacityReached": call("transaction-history"),
    "SnapshotMismatch": REVISE,
    "UnsupportedChange": (None, ()),
    "LinkedDocumentConflict": (None, ()),
    "RecoveryPending": ("ResolveExternally", ()),
    "CommitLockFailed": RETRY,
    "CommitPreparationFailed": RETRY,
    "CommitFailed": RETRY,
    "CommitRecoveryCapacityReached": call("transaction-rollback"),
    "InvalidRequest": (None, ()),
    "InvalidRange": (None, ()),
    "DocumentNotFound": REVISE,
    "DocumentAmbiguous": REVISE,
    "DocumentSelectorInvalid": REVISE,
    "ProjectNotFound": REVISE,
    "ProjectAmbiguous": REVISE,
    "ProjectSelectorInvalid": REVISE,
    "ActionAmbiguous": REVISE,
    "ActionExpired": REVISE,
    "ActionUnavailable": REVISE,
    "ActionReferenceCapacityExceeded": REVISE,
    "CodeActionsUnavailable": (None, ()),
    "LanguageServerNotFound": (None, ()),
    "DotnetSdkNotFound": (None, ()),
    "LanguageServerFailed": RETRY,
    "NotSupported": (None, ()),
    "DocumentInSeveralProjects": (None, ()),
    "UnhandledException": (None, ()),
}

NOT_PRODUCED: Mapping[str, str] = {
    "WorkspaceInputEvaluationFailed": "inputs that cannot be evaluated are load diagnostics of their projects",
    "WorkspaceReloadNotRequired": "the issue lets a reload always work",
    "TransactionOwnershipChanged": "the slot is the workspace's own member and cannot be lost",
    "InvalidMutationProposal": "a server's edit names files, so it cannot belong to another workspace",
    "MutationCandidateChanged": "needs a prepared fix-all: test_fix_all.py",
    "FixAllUnavailable": "needs a listed fix: test_fix_all.py",
    "FixAllLimitExceeded": "needs a listed fix: test_fix_all.py",
    **dict.fromkeys(
        (
            *("SymbolNotFound", "SymbolAmbiguous", "SymbolSelectorInvalid", "SymbolCannotBeRenamed"),
            *("LocationNotFound", "LocationAmbiguous", "LocationSelectorInvalid"),
            *("RenameConflict", "RenameUnverified", "RenameOptionUnavailable"),
        ),
        "needs a server that knows symbols: test_rename_tool.py",
    ),
    "DocumentNotSeen": "needs a server that answers about more than code actions: test_formatting_tools.py",
    "NewCompilerErrors": "needs a server that compiles: test_validation_gate.py",
    "CompilerValidationIncomplete": "needs a server that compiles: test_validation_gate.py",
    "CompilerValidationUnavailable": "needs --commit-validation: test_validation_gate.py",
}


# --- one way to each code -----------------------------------------------------------------------------------


async def open_refused(made: Scene, path: Path, **more: object) -> Refusal:
    return await made.agent.refused("workspace-open", path=str(path), **more)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


async def not_open(made: Scene) -> Refusal:
    return await made.agent.refused("workspace-status")


async def already_open(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    return await open_refused(made, made.solution)


async def not_supported(made: Scene) -> Refusal:
    return await open_refused(made, write(made.file("F.fsproj"), "<Project />"))


async def load_failed(made: Scene) -> Refusal:
    return await open_refused(made, write(made.file("Broken.sln"), "not at all"))


async def path_invalid(made: Scene) -> Refusal:
    return await open_refused(made, made.file("Nowhere.sln"))


async def path_ambiguous(made: Scene) -> Refusal:
    write(made.file("Another.slnx"), "<Solution />")
    return await open_refused(made, made.root)


async def root_invalid(made: Scene) -> Refusal:
    return await open_refused(made, made.solution, workspaceRoot="relative")


async def project_outside_root(made: Scene) -> Refusal:
    text = '<Solution><Project Path="../Core/Core.csproj" /></Solution>'
    return await open_refused(made, write(made.file("In/In.slnx"), text))


async def changed_during_load(made: Scene) -> Refusal:
    made.server.while_loading = lambda: write(made.file(FILE), "class Changed { }")
    return await open_refused(made, made.solution)


async def properties_invalid(made: Scene) -> Refusal:
    return await open_refused(made, made.solution, msBuildProperties={"configuration": " "})


async def of_selector(selector: object, made: Scene) -> Refusal:
    await made.agent.open(made.solution, alias="a")
    await made.agent.open(write_solution(made.root.parent / "other"), alias="b")
    return await made.agent.refused("workspace-status", workspace=selector)


async def mismatched(made: Scene) -> Refusal:
    return await of_selector({"alias": "b", "path": str(made.solution)}, made)


async def reload_blocked(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    await made.agent.start()
    return await made.agent.refused("workspace-reload")


async def transaction_open(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    await made.agent.start()
    return await made.agent.refused("workspace-close")


async def no_transaction(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    return await made.agent.refused("transaction-rollback")


async def already_active(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    await made.agent.start()
    return await made.agent.refused("transaction-start")


async def owned_by_another(made: Scene) -> Refusal:
    await made.agent.open(made.solution, alias="a")
    await made.agent.start()
    await made.agent.open(write_solution(made.root.parent / "other"), alias="b")
    return await made.agent.refused("transaction-start", workspace={"alias": "b"})


async def conflicted(made: Scene) -> Refusal:
    await started(made)
    write(made.file(FILE), "class Changed { }")
    return await made.agent.refused("list-code-actions", **LISTING)


async def started(made: Scene) -> Agent:
    await made.agent.open(made.solution)
    await made.agent.start()
    return made.agent


async def no_history(made: Scene) -> Refusal:
    return await (await started(made)).refused("transaction-history", direction="Undo")


async def snapshot_mismatch(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    stale = {**made.agent.snapshot, "snapshotId": NOBODY}
    return await made.agent.refused("list-code-actions", **LISTING, expectedSnapshot=stale)


async def staging_refused(offers: Callable[[Path], list[Offer]], made: Scene) -> Refusal:
    agent = await started(made)
    made.server.offers = offers(made.root)
    (action, *_) = await agent.actions(FILE)
    return await agent.refused("stage-code-action", actionId=action.action_id)


def outside(root: Path) -> list[Offer]:
    return [Offer("Outside", lambda _path, _text: create(root.parent / "Out.cs", ""))]


def contradicting(_root: Path) -> list[Offer]:
    return [Offer("Two", lambda path, _text: [insert(path, "// a\n"), insert(path, "// b\n")])]


def without_edit(_root: Path) -> list[Offer]:
    return [Offer("Nothing", None)]


def doubled(_root: Path) -> list[Offer]:
    return [Offer("Same", None), Offer("Same", None)]


async def expired(made: Scene) -> Refusal:
    return await (await started(made)).refused("stage-code-action", actionId=NOBODY)


async def listing_refused(made: Scene, **arguments: object) -> Refusal:
    await made.agent.open(made.solution)
    return await made.agent.refused("list-code-actions", **{**LISTING, **arguments})


async def ambiguous_document(made: Scene) -> Refusal:
    project = made.file("App/App.csproj")
    item = '<ItemGroup><Compile Include="../Core/Apple.cs" /></ItemGroup></Project>'
    write(project, project.read_text(encoding="utf-8").replace("</Project>", item))
    return await listing_refused(made)


async def unreadable(made: Scene) -> Refusal:
    made.file(FILE).write_bytes(b"\0\xff")
    return await listing_refused(made)


async def server_failed(made: Scene) -> Refusal:
    async def garbage(_params: msgspec.Raw) -> object:
        return 5

    made.server.answers["textDocument/codeAction"] = garbage
    return await listing_refused(made)


async def invalid_request(made: Scene) -> Refusal:
    return await made.agent.refused("workspace-open")


async def unhandled(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    made.agent.workspace.snapshot = None  # type: ignore[method-assign,assignment]  # something nobody foresaw
    return await made.agent.refused("workspace-status")


async def busy(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    async with made.server.held("textDocument/codeAction") as held, anyio.create_task_group() as tasks:
        tasks.start_soon(made.agent.actions, FILE)
        await held.reached.wait()
        refusal = await made.agent.refused("transaction-start")
        held.released.set()
    return refusal


async def out_of_date(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    write(made.file(FILE), "class Changed { }")
    return await made.agent.refused("list-code-actions", **LISTING)


async def capacity(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    return await open_refused(made, write_solution(made.root.parent / "other"))


async def revisions(made: Scene) -> Refusal:
    agent = await started(made)
    await agent.stage_first(FILE)
    return await agent.refused("stage-code-action", actionId=NOBODY)


async def format_refused(made: Scene, *, tool: str, **target: object) -> Refusal:
    await started(made)
    return await made.agent.refused(tool, **target)


async def unknown_link(made: Scene) -> Refusal:
    """A file of two projects, on a server that has no document for it."""

    async def nothing(_params: msgspec.Raw) -> object:
        return None

    project = made.file("App/App.csproj")
    item = '<ItemGroup><Compile Include="../Core/Apple.cs" /></ItemGroup></Project>'
    write(project, project.read_text(encoding="utf-8").replace("</Project>", item))
    made.server.answers["textDocument/codeAction"] = nothing
    made.server.answers["textDocument/documentSymbol"] = nothing
    return await listing_refused(made, document={"path": FILE, "project": {"name": "App"}})


async def references(made: Scene) -> Refusal:
    made.server.offers = [Offer("A", None), Offer("B", None)]
    return await listing_refused(made)


async def timed_out(made: Scene) -> Refusal:
    made.server.loads = False
    return await open_refused(made, made.solution)


async def commit_refused(made: Scene) -> Refusal:
    await made.agent.start()
    await made.agent.stage_first(FILE)
    return await made.agent.refused("transaction-commit")


async def not_locked(made: Scene) -> Refusal:
    write(made.file(".vs"), "in the way")
    await made.agent.open(made.solution)
    return await commit_refused(made)


async def nothing_prepared(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    write(made.agent.workbench.state_directory.path / "recovery", "in the way")
    return await commit_refused(made)


async def recovery_pending(made: Scene) -> Refusal:
    await made.agent.open(made.solution)
    write(made.file(".vs/roslyn-bridge/pending") / ("0" * 32), "the marker of another bridge")
    return await made.agent.refused("transaction-start")


Way = Callable[[Scene], Awaitable[Refusal]]

WAYS: Mapping[str, tuple[Way, Mapping[str, object]]] = {
    "WorkspaceNotOpen": (not_open, {}),
    "WorkspaceAlreadyOpen": (already_open, {}),
    "WorkspaceCapacityReached": (capacity, {"max_workspaces": 1}),
    "WorkspaceNotSupported": (not_supported, {}),
    "WorkspaceLoadFailed": (load_failed, {}),
    "WorkspaceLoadTimedOut": (timed_out, {"load_timeout": 0.3}),
    "WorkspacePathInvalid": (path_invalid, {}),
    "WorkspacePathAmbiguous": (path_ambiguous, {}),
    "WorkspaceRootInvalid": (root_invalid, {}),
    "WorkspaceProjectOutsideRoot": (project_outside_root, {}),
    "WorkspaceChangedDuringLoad": (changed_during_load, {}),
    "WorkspaceMsBuildPropertiesInvalid": (properties_invalid, {}),
    "WorkspaceSelectorRequired": (partial(of_selector, None), {}),
    "WorkspaceSelectorInvalid": (partial(of_selector, {}), {}),
    "WorkspaceSelectorNotFound": (partial(of_selector, {"alias": "c"}), {}),
    "WorkspaceSelectorMismatch": (mismatched, {}),
    "WorkspaceBusy": (busy, {"lease_wait": 0.0}),
    "WorkspaceOutOfDate": (out_of_date, {"external_changes": "report"}),
    "WorkspaceReloadBlocked": (reload_blocked, {}),
    "TransactionOpen": (transaction_open, {}),
    "NoActiveTransaction": (no_transaction, {}),
    "TransactionAlreadyActive": (already_active, {}),
    "TransactionOwnedByWorkspace": (owned_by_another, {}),
    "TransactionConflicted": (conflicted, {}),
    "TransactionHistoryUnavailable": (no_history, {}),
    "RevisionCapacityReached": (revisions, {"max_transaction_revisions": 1}),
    "SnapshotMismatch": (snapshot_mismatch, {}),
    "UnsupportedChange": (partial(staging_refused, outside), {}),
    "LinkedDocumentConflict": (partial(staging_refused, contradicting), {}),
    "RecoveryPending": (recovery_pending, {}),
    "CommitLockFailed": (not_locked, {}),
    "CommitPreparationFailed": (nothing_prepared, {}),
    "InvalidRequest": (invalid_request, {}),
    "InvalidRange": (partial(listing_refused, range={"start": 10**6}), {}),
    "DocumentNotFound": (partial(listing_refused, document={"path": "No.cs"}), {}),
    "DocumentAmbiguous": (ambiguous_document, {}),
    "DocumentSelectorInvalid": (partial(listing_refused, document={}), {}),
    "ProjectNotFound": (partial(listing_refused, document={"path": FILE, "project": {"name": "No"}}), {}),
    "ProjectSelectorInvalid": (partial(listing_refused, document={"path": FILE, "project": {}}), {}),
    "ActionAmbiguous": (partial(staging_refused, doubled), {}),
    "ActionExpired": (expired, {}),
    "ActionUnavailable": (partial(staging_refused, without_edit), {}),
    "ActionReferenceCapacityExceeded": (references, {"code_action_reference_limit": 1}),
    "CodeActionsUnavailable": (unreadable, {}),
    "LanguageServerFailed": (server_failed, {}),
    "NotSupported": (partial(format_refused, tool="format-document", document={"path": FILE}), {}),
    "ProjectAmbiguous": (
        partial(format_refused, tool="format-project", project={"targetFramework": "net8.0"}),
        {},
    ),
    "DocumentInSeveralProjects": (unknown_link, {}),
    "LanguageServerNotFound": (lambda made: open_refused(made, made.solution), {"server_path": Path("/no")}),
    "UnhandledException": (unhandled, {}),
}


@keeps("error.codes")
@pytest.mark.anyio
@pytest.mark.parametrize("code", WAYS)
async def test_the_code_is_produced_with_its_next_step(tmp_path: Path, code: str) -> None:
    way, options = WAYS[code]
    async with scene(tmp_path, **options) as made:
        refusal = await way(made)
        assert refusal.code == code, refusal.message
        assert (refusal.kind, refusal.tools) == EXPECTED[code]
        assert refusal.message
        assert bool(refusal.instruction) is (refusal.kind is not None)
        assert (refusal.correlation_id is not None) is (code == "UnhandledException")


@keeps("error.codes")
@pytest.mark.anyio
async def test_without_a_dotnet_command_a_server_that_needs_one_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DOTNET_ROOT", raising=False)
    async with real_bridge(tmp_path, server="csharp-ls", server_path=Path("/bin/true")) as agent:
        refusal = await agent.refused("workspace-open", path=str(write_solution(tmp_path / "shop")))
        assert (refusal.code, refusal.kind) == ("DotnetSdkNotFound", None)


class FailingSystem(System):
    """A disk that fails right after the first exchange, and does not take it back unless it ``recovers``."""

    def __init__(self, *, recovers: bool) -> None:
        self.recovers = recovers
        self.broken = False

    def exchange(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        self._work_or_fail()
        super().exchange(old, old_directory, new, new_directory)
        if not self.broken:
            self.broken = True
            self._fail()

    def move(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        self._work_or_fail()
        super().move(old, old_directory, new, new_directory)

    def _work_or_fail(self) -> None:
        if self.broken and not self.recovers:
            self._fail()

    def _fail(self) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@keeps("error.codes")
@pytest.mark.anyio
@pytest.mark.parametrize("recovers", [True, False])
async def test_a_commit_that_fails_says_whether_it_could_be_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, recovers: bool
) -> None:
    system = FailingSystem(recovers=recovers)
    monkeypatch.setattr("bridge.committing.commit", partial(commit, system=system))
    monkeypatch.setattr("bridge.recoveries.recover", partial(recover, system=system))
    async with opened(tmp_path) as made:
        await made.agent.start()
        await made.agent.stage_first(FILE)
        before = made.file(FILE).read_bytes()
        refusal = await made.agent.refused("transaction-commit")
        assert refusal.code == "CommitFailed"
        if recovers:
            assert refusal.kind == "RetryRequest"
            assert made.file(FILE).read_bytes() == before
            assert (await made.agent.commit()).committed
        else:
            assert refusal.kind == "ResolveExternally"
            system.recovers = True
            assert (await made.agent.commit()).committed, "recovered by itself when the fault is lifted"


# --- the list is whole --------------------------------------------------------------------------------------


@keeps("error.codes")
@pytest.mark.anyio
async def test_a_commit_that_recovery_could_not_hold_asks_for_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transactions.file_journal.ORIGINALS_MAX_BYTES", 10)
    async with opened(tmp_path) as made:
        refusal = await commit_refused(made)
        assert refusal.code == "CommitRecoveryCapacityReached"
        assert (refusal.kind, refusal.tools) == EXPECTED[refusal.code]


ELSEWHERE = {"DotnetSdkNotFound", "CommitFailed", "CommitRecoveryCapacityReached"}
"""Produced by the tests just above."""


@keeps("error.codes")
def test_every_code_is_produced_or_has_a_reason_not_to_be() -> None:
    assert WAYS.keys() | ELSEWHERE == EXPECTED.keys()
    assert EXPECTED.keys() | NOT_PRODUCED.keys() == CONTINUATIONS.keys()
    assert not EXPECTED.keys() & NOT_PRODUCED.keys()


@keeps("error.codes")
@pytest.mark.parametrize("action", Action)
def test_every_next_step_has_a_shape_and_an_instruction(action: Action) -> None:
    continuation = continuation_for(action)
    assert continuation is not None
    assert continuation.instruction
    assert len(continuation.tools) == {"CallTool": 1, "ChooseTool": 2}.get(continuation.kind, 0)


def test_a_code_nobody_listed_cannot_be_raised() -> None:
    with pytest.raises(KeyError):
        BridgeError("NoSuchCode", "")


# --- what nobody foresaw, and bad input ---------------------------------------------------------------------


@keeps("error.unexpected")
@pytest.mark.anyio
async def test_an_unforeseen_failure_is_told_by_an_id_and_its_text_goes_to_the_log_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path) as made:

        async def secret(_context: object) -> None:
            raise ValueError("secret in /home/somebody/file.cs")

        made.agent.workspace.ready_session = secret  # type: ignore[method-assign,assignment]  # something nobody foresaw
        with caplog.at_level(logging.ERROR):
            refusal = await made.agent.refused("list-code-actions", **LISTING)
        assert refusal.code == "UnhandledException"
        assert refusal.correlation_id is not None
        assert refusal.correlation_id in refusal.message
        assert "secret" not in refusal.message
        assert refusal.correlation_id in caplog.text
        await made.agent.status()
        await made.agent.start()


@keeps("request.unknown-field")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments", "meant"),
    [
        ("workspace-open", {"Path": "/x"}, "path"),
        ("workspace-open", {"path": "/x", "workspace_root": "/"}, "workspaceRoot"),
        ("workspace-status", {"detial": "Full"}, "detail"),
        ("workspace-status", {"workspace": {"allias": "a"}}, "alias"),
        ("transaction-history", {"direction": "undo"}, "Undo"),
        ("transaction-preview", {"includeDif": True}, "includeDiff"),
        ("list-code-actions", {"document": {"file": "a", "pth": "b"}, "kinds": "All"}, "path"),
        ("list-code-actions", {**LISTING, "range": {"start": 0, "lenght": 1}}, "length"),
        ("list-code-actions", {"document": {"path": "a"}, "kinds": "Refactoring"}, "Refactorings"),
        ("stage-code-action", {"actionID": NOBODY}, "actionId"),
    ],
)
async def test_a_misspelt_field_is_refused_with_the_one_that_was_meant(
    tmp_path: Path, tool: str, arguments: dict[str, object], meant: str
) -> None:
    async with opened(tmp_path) as made:
        refusal = await made.agent.refused(tool, **arguments)
        assert (refusal.code, refusal.kind) == ("InvalidRequest", None)
        assert f"Did you mean '{meant}'?" in refusal.message


@keeps("request.types")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("workspace-open", {"path": 5}, "path"),
        ("workspace-open", {}, "path"),
        ("workspace-open", {"path": None}, "path"),
        ("workspace-open", {"path": "/x", "msBuildProperties": []}, "msBuildProperties"),
        ("workspace-status", {"detail": "Everything"}, "detail"),
        ("workspace-status", {"workspace": "a"}, "workspace"),
        ("workspace-close", {"workspace": {"workspaceId": "5"}}, "workspace.workspaceId"),
        ("transaction-preview", {"contextLines": -1}, "contextLines"),
        ("transaction-preview", {"includeDiff": "yes"}, "includeDiff"),
        ("list-code-actions", {**LISTING, "limit": 1.5}, "limit"),
        ("list-code-actions", {**LISTING, "limit": 2**31}, "limit"),
        ("list-code-actions", {**LISTING, "range": {"start": True}}, "range.start"),
        ("list-code-actions", {**LISTING, "expectedSnapshot": {}}, "expectedSnapshot"),
        ("stage-code-action", {"actionId": "not a uuid"}, "actionId"),
    ],
)
async def test_a_wrong_type_is_refused_by_the_name_of_its_field(
    tmp_path: Path, tool: str, arguments: dict[str, object], field: str
) -> None:
    async with opened(tmp_path) as made:
        refusal = await made.agent.refused(tool, **arguments)
        assert refusal.code == "InvalidRequest"
        assert f"'{field}" in refusal.message
        assert await made.agent.actions(FILE, limit=1.0)


HUGE = "x" * 10_000_000


@keeps("request.large")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("workspace-open", {"path": HUGE}),
        ("workspace-open", {"path": "/" + HUGE}),
        ("workspace-open", {HUGE: 1, "path": "/x"}),
        ("workspace-status", {"workspace": {"alias": HUGE}}),
        ("workspace-status", {"workspace": {"path": "/" + HUGE}}),
        ("workspace-status", {"detail": HUGE}),
        ("list-code-actions", {"document": {"path": HUGE}, "kinds": "All"}),
        ("list-code-actions", {"document": {"documentId": HUGE}, "kinds": "All"}),
        ("list-code-actions", {"document": {"path": FILE, "project": {"name": HUGE}}, "kinds": "All"}),
        ("stage-code-action", {"actionId": HUGE}),
    ],
)
async def test_ten_megabytes_are_refused_briefly(
    tmp_path: Path, tool: str, arguments: dict[str, object]
) -> None:
    async with opened(tmp_path) as made:
        refusal = await made.agent.refused(tool, **arguments)
        assert refusal.code != "UnhandledException"
        assert len(refusal.message) < 5000
        assert await made.agent.actions(FILE)


@keeps("request.large")
@pytest.mark.anyio
async def test_megabytes_of_ids_to_filter_by_are_taken(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        ids = [f"CS{number:07d}" for number in range(300_000)]
        assert await made.agent.actions(FILE, diagnosticIds=ids)


@keeps("request.surrogates")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("workspace-open", {"path": "/x\ud800"}),
        ("workspace-open", {"path": "/x", "\udfff": 1}),
        ("workspace-open", {"path": "/x", "alias": "\udc00"}),
        ("list-code-actions", {"document": {"path": "a\ud83d.cs"}, "kinds": "All"}),
        ("list-code-actions", {**LISTING, "diagnosticIds": ["\ud800"]}),
    ],
)
async def test_half_a_character_is_refused(tmp_path: Path, tool: str, arguments: dict[str, object]) -> None:
    async with opened(tmp_path) as made:
        refusal = await made.agent.refused(tool, **arguments)
        assert refusal.code == "InvalidRequest"
        assert "surrogate" in refusal.message
        refusal.message.encode("utf-8")
        assert await made.agent.actions(FILE)


@keeps("request.surrogates")
@pytest.mark.anyio
async def test_half_a_character_from_the_server_reaches_no_file_and_no_client(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.answers["textDocument/codeAction"] = _half_a_title
        (action,) = await made.agent.actions(FILE)
        action.title.encode("utf-8")
        del made.server.answers["textDocument/codeAction"]


async def _half_a_title(_params: msgspec.Raw) -> object:
    return msgspec.Raw(b'[{"title": "Half \\ud83d", "kind": "refactor"}]')


@keeps("request.unknown-field")
@pytest.mark.anyio
async def test_an_unknown_tool_is_the_front_doors_to_refuse_with_the_nearest_name(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        for name, nearest in (("workspace-opn", "workspace-open"), ("zzz", None), (HUGE, None)):
            with pytest.raises(UnknownTool) as unknown:
                await made.agent.tools.call(name, {}, CallContext())
            assert unknown.value.nearest == nearest
            assert len(str(unknown.value)) < 500
        answer = await made.agent.tools.call("workspace-list", None, CallContext())
        assert not answer.is_error
