"""What the bridge promises, line by line with its source, and the mark by which a test says that it keeps a promise.

``behaviour`` is the description of behaviour that the project works from, ``commit`` its page on commits, ``issue`` the
issue that this part was built for.  ``test_promises.py`` fails when a line has no test, and when a test names none.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

_Test = TypeVar("_Test", bound=Callable[..., object])


def keeps(*promises: str) -> Callable[[_Test], _Test]:
    """Marks a test as one that fails when a promise is broken."""
    del promises  # read from the source: a test need not be imported to be counted

    def unchanged(test: _Test) -> _Test:
        return test

    return unchanged


PROMISES: Mapping[str, tuple[str, str]] = {
    # opening and closing
    "open.accepts": (
        "issue 5",
        "A solution, a filter, a project, or a folder with exactly one of them is opened.",
    ),
    "open.path-errors": (
        "issue 5, Must show",
        "Each path that cannot be opened has its code and a sentence.",
    ),
    "open.candidates": ("issue 5", "An ambiguous folder is refused with the candidates."),
    "open.root": (
        "behaviour 1",
        "The root is given and checked, else the nearest Git folder, else the file's folder.",
    ),
    "open.project-outside-root": ("behaviour 1", "Every project lies under the root."),
    "open.in-use": (
        "behaviour 1",
        "A path or alias in use is WorkspaceAlreadyOpen, also while it is still loading.",
    ),
    "open.capacity": ("behaviour 1", "There is a limit to open workspaces, checked again after the load."),
    "open.properties": (
        "behaviour 1",
        "Only five build properties exist; unknown and empty ones are refused.",
    ),
    "open.skipped": (
        "behaviour 1",
        "What is no SDK-style C# project is skipped with a diagnostic, never in silence.",
    ),
    "open.progress": ("issue, Must show", "Opening streams progress that never goes back."),
    "open.ready": ("behaviour 15", "Opening returns only when questions will be answered truly."),
    "open.at-once": (
        "issue 5, Must show",
        "A server starts while the projects are read, and loads when they are known.",
    ),
    "warm-up": (
        "issue 5, Must show",
        "A server compiles a little before anybody asks, and nobody waits for that.",
    ),
    "open.changed-during-load": (
        "behaviour 1",
        "Inputs that move during the load are WorkspaceChangedDuringLoad.",
    ),
    "open.load-failures": ("issue 5, Must show", "A server that cannot load says why, with its last words."),
    "open.cancelled": ("issue 3", "A cancelled opening leaves no workspace and no process."),
    "list.owner": ("behaviour 3", "The list names the workspace that owns the transaction."),
    "status.details": ("behaviour 1", "Load diagnostics are told at full detail only."),
    "close.transaction": ("behaviour 1", "An open transaction blocks closing."),
    "close.releases": ("behaviour 1", "Closing ends the server; the path can be opened again."),
    "reload.always": ("issue 5", "Without a transaction a reload always works."),
    "reload.blocked": ("behaviour 1", "A transaction blocks the reload; a conflicted one says to roll back."),
    "workspace.states": ("behaviour 1", "The states of a workspace and what moves it are a table."),
    # selectors
    "select.workspace": ("behaviour 1, 6", "Each way a workspace selector can be wrong has its code."),
    "select.document": ("behaviour 6", "Each way a document selector can be wrong has its code."),
    "select.range": (
        "behaviour 2, 5",
        "A range outside of the text or inside of a character is InvalidRange.",
    ),
    "select.symbol": (
        "behaviour 6",
        "Each way a symbol or location selector can be wrong has its code; nothing is guessed.",
    ),
    "select.snapshot-first": (
        "behaviour 2",
        "The snapshot is checked before document and range are looked at.",
    ),
    # renames
    "rename.whole": ("issue 5 (3), C21", "A rename reaches every use as one revision, or is refused."),
    "rename.name": ("issue 5 (3)", "The new name is judged by the bridge, not by the server."),
    "rename.same-name": ("behaviour 3", "The name that a symbol has already stages nothing."),
    "rename.binding": (
        "issue 5 (3), C23",
        "A rename that would change what a use means is RenameConflict, also when it compiles.",
    ),
    "rename.errors": ("issue 5 (3)", "A rename that brings compiler errors is RenameConflict."),
    "rename.allow-conflicts": ("issue 5 (3)", "allowConflicts lets conflicts through and lists them."),
    "rename.kinds": (
        "issue 5 (3), C30",
        "What assemblies declare, Main and overrides of theirs is not renamed.",
    ),
    "rename.options": (
        "issue 5 (3)",
        "An option is honoured, or refused where it matters, never passed over.",
    ),
    "rename.mentions": ("issue 5 (3)", "The old name in text that is not renamed is listed."),
    "rename.generated": ("issue 5 (3), C27", "Edits in generated files are dropped and counted."),
    "rename.new-files": (
        "issue 5 (7)",
        "A staged new file takes part in a rename where the server tells of uses in it; else RenameUnverified with the reason.",
    ),
    "rename.unverified": ("issue 5 (3)", "What cannot be proved is RenameUnverified."),
    "rename.server": ("issue 5", "A rename survives its server, and leaves it on the current texts."),
    # snapshots
    "snapshot.echo": ("behaviour 2", "All four members are compared; any difference is SnapshotMismatch."),
    "snapshot.null-is-not-zero": ("behaviour 2", "A snapshot from before a transaction fails inside of it."),
    "snapshot.start": ("behaviour 2", "Starting a transaction keeps the committed id, at revision 0."),
    "snapshot.stage": ("behaviour 2", "Staging gives a new id and the next revision."),
    "snapshot.undo": ("behaviour 2, 16.1", "Undo and redo restore the id which that revision had."),
    "snapshot.branch": ("behaviour 2", "Staging after undo gives a new id and drops what could be redone."),
    "snapshot.rollback": ("behaviour 2", "Rolling back returns to the committed id."),
    "snapshot.commit": ("behaviour 2, 16.1", "Committing gives a new id and keeps the epoch."),
    "snapshot.reload": ("behaviour 2", "A reload gives a new epoch and a new id."),
    # transactions
    "transaction.twice": ("behaviour 3", "A second start on the same workspace is TransactionAlreadyActive."),
    "transaction.one-slot": (
        "behaviour 3",
        "There is one transaction in the process; the refusal names its owner.",
    ),
    "transaction.needed": (
        "behaviour 3",
        "Staging, history, preview, commit and rollback need a transaction.",
    ),
    "transaction.info": ("behaviour 3", "What may be done next follows from position, count and limit."),
    "transaction.capacity": (
        "behaviour 3",
        "At the limit a stage is refused before anything is asked; undo frees it.",
    ),
    "transaction.history-ends": (
        "behaviour 3",
        "With nothing to undo or redo: TransactionHistoryUnavailable.",
    ),
    "transaction.no-change": ("behaviour 3", "A mutation that changes nothing adds no revision."),
    "transaction.no-change-after-branch": (
        "behaviour 2",
        "An undone branch survives a mutation that changes nothing.",
    ),
    "preview.order": (
        "behaviour 3",
        "A preview lists added, then modified, then deleted documents, against the baseline.",
    ),
    "preview.diff": ("behaviour 3", "A diff needs its document, and that has to be a changed one."),
    "preview.move": ("commit 7", "A move is Deleted and Added, linked both ways."),
    "preview.conflicted": ("behaviour 3, commit 7", "A preview works in a conflicted transaction."),
    "preview.still": ("commit 7", "A preview asks the server nothing and moves nothing."),
    "preview.errors": (
        "issue 4, commit 7",
        "A preview tells errors made and mended against the disk, or why it cannot; never an error.",
    ),
    "preview.unreliable": (
        "commit 7",
        "What depends on a file that the server takes for no member is marked, never silently wrong.",
    ),
    "preview.patch": (
        "commit 7",
        "A patch of bytes is given on demand, and tools make of it what the commit makes.",
    ),
    "commit.validation": (
        "issue 4, commit 7",
        "The gate covers changed projects and dependants; moved errors are not new, one more is.",
    ),
    "commit.validation-incomplete": (
        "behaviour 17, commit 7",
        "What cannot be validated is refused, and a server without diagnostics cannot validate.",
    ),
    "commit.nothing": (
        "behaviour 16.3",
        "At revision 0 a commit says committed: false and leaves the transaction open.",
    ),
    "commit.stale": ("behaviour 2", "A stale snapshot at commit asks for another preview."),
    "commit.writes": ("behaviour 4", "A commit writes, creates and deletes exactly what was previewed."),
    "commit.conflict": (
        "behaviour 16.6, commit 6",
        "A target that changed since staging is never overwritten.",
    ),
    "rollback.writes-nothing": ("behaviour 3", "Rolling back writes nothing: all bytes stay."),
    "commit.one-at-a-time": (
        "behaviour 9, issue 4",
        "Of two bridges that commit at once, the second one sees the first one's change as a conflict.",
    ),
    "commit.lock": (
        "behaviour 4, commit 4",
        "A held lock is waited for within --lease-wait, then WorkspaceBusy; one that cannot be used is CommitLockFailed.",
    ),
    "commit.disk-full": (
        "issue 4, Must show",
        "A full disk refuses the commit; tree and transaction stay, and it is committed when there is room.",
    ),
    # crashes
    "recovery.start": ("commit 5", "What a crash left is completed or taken back when a bridge starts."),
    "recovery.background": (
        "commit 5",
        "The start waits for no recovery; workspace tools wait a bounded time.",
    ),
    "recovery.pending": (
        "commit 5, behaviour 6",
        "An unfinished commit is RecoveryPending for the roots that overlap its own, and for no other.",
    ),
    "recovery.status": ("issue 4, 2", "server-status tells what is unfinished."),
    "recovery.state-directory": (
        "issue 4, Bad input",
        "A state directory that cannot be used is refused with a sentence, and nothing is written.",
    ),
    "recovery.way-out": ("issue 4, 2", "A person can list, explain, resolve, export and discard."),
    # several bridges
    "instances.told": (
        "behaviour 9",
        "Bridges on one workspace see each other, as a warning and in the status.",
    ),
    "commit.exchange": ("commit.md 3", "A file system without exchange of files is named by server-status."),
    "instances.whole": (
        "behaviour 9",
        "A status file is whole whenever it is read, and a live bridge always has one.",
    ),
    "instances.stale": ("behaviour 9", "The status file of a dead bridge is removed by the next one."),
    "instances.advice": ("behaviour 9", "Nothing about other bridges ever refuses a call."),
    "instances.tidy": ("issue 4, 5", "Closing leaves nothing of ours; what is there is hidden from git."),
    "bytes.kept": (
        "issue 4, Must show",
        "Bytes nobody edited stay: BOMs, encodings, line ends, missing last line ends.",
    ),
    # leases
    "lease.busy": ("behaviour 3", "With no wait, a held lease is WorkspaceBusy at once."),
    "lease.waits": ("issue 5", "By default a call waits a bounded time for the lease."),
    "lease.queries": ("behaviour 3", "So many queries run at once as the option says, and no more."),
    "lease.freed": ("behaviour 3", "Leases are free after every end of a call, cancellation included."),
    "parallel.calls": ("issue 5", "Calls in parallel are all answered, each for one state."),
    # code actions
    "actions.flat": ("issue 5", "Nested actions are flat, with all titles from the menu down."),
    "actions.fix-all": ("issue 5", "Fix All entries become scopes of the plain action and are no leaves."),
    "actions.limit": ("behaviour 5", "The limit bounds leaves; 0 gives none; the count is still the whole."),
    "actions.kinds": ("behaviour 5", "The kinds filter keeps what was asked for."),
    "actions.undecided": ("issue 5", "A filter that cannot be decided is said, never guessed."),
    "actions.left-out": ("behaviour 5", "What needs a command or a dialog is left out, and counted."),
    "actions.staged-text": (
        "issue 5",
        "List, stage, list again answers for the staged text; undo takes the server back.",
    ),
    "view.members": (
        "issue 5",
        "With --server-view overlay staged files are in the server's folder, and the disk does not change.",
    ),
    "view.fallback": ("issue 5", "Where the overlay cannot be had, texts are shown, and the reason is said."),
    "actions.created": (
        "issue 5",
        "A staged new file is a document, and what cannot be known about it is said.",
    ),
    "actions.unreadable": ("behaviour 6", "A file that is no text is refused, never answered as empty."),
    "actions.id-used": ("behaviour 5", "A stage uses the id up."),
    "actions.id-expired": (
        "behaviour 5",
        "Ids are unknown after their lifetime, and never were known to others.",
    ),
    "actions.id-other-snapshot": ("behaviour 5", "An id of another snapshot is SnapshotMismatch."),
    "actions.gone": ("behaviour 5", "An action that is not offered any more is ActionUnavailable."),
    "actions.ambiguous": ("behaviour 5", "An action that cannot be told from another is never staged."),
    "actions.refused-edit": (
        "behaviour 3, 5",
        "An edit beyond source text is UnsupportedChange, and nothing of it is staged.",
    ),
    "actions.location": (
        "behaviour 2",
        "Places count from zero in UTF-16 units, on the text of the snapshot.",
    ),
    "actions.store": (
        "behaviour 5, 6",
        "More actions than ids can be kept for are refused; old ids make room.",
    ),
    "actions.modified": (
        "issue 5, 5",
        "Content modified on unmoved text lists once more; not exactly one match is refused with its code.",
    ),
    "fix-all.scopes": ("behaviour 5", "Only a scope that is listed on the item; FixAllUnavailable else."),
    "fix-all.reach": ("cases C34", "A fix-all that would change something outside of its scope is refused."),
    "fix-all.one-step": ("cases C36", "All edits of a fix-all are one staged step, undone as one."),
    "fix-all.documents": (
        "behaviour 5, contract",
        "The affected documents are bounded, their count is whole; nothing is staged.",
    ),
    "fix-all.limit": (
        "behaviour 5",
        "More changed documents than maxChanges: FixAllLimitExceeded, nothing prepared.",
    ),
    "fix-all.same": (
        "behaviour 5, 16",
        "Staging computes it again; any difference is MutationCandidateChanged and uses the id up.",
    ),
    "fix-all.bound": ("behaviour 5", "A prepared id is of one snapshot and one server, and is used once."),
    "fix-all.counts": (
        "issue 5, 2",
        "The diagnostics before and after are counted, or null with the reason; never a part of them.",
    ),
    "fix-all.way-back": (
        "issue 5, 2",
        "After a preparation, however it ended, the server is back at the exact revision and nothing is staged.",
    ),
    "emulated.by-hand": (
        "issue 5, 2",
        "The bridge's own fix-all gives what its single fixes would give one after the other.",
    ),
    "emulated.one-diagnostic": (
        "issue 5, 2",
        "It is offered where exactly one diagnostic comes into question, hidden ones included; never for suppressions.",
    ),
    "emulated.titles": ("issue 5, 2", "Titles mean the same fix when equal or of one form of a closed list."),
    "emulated.generated": (
        "issue 5, 2",
        "Generated code is left out of the bridge's own fix-all, and no fix-all is offered there.",
    ),
    "emulated.ends": (
        "issue 5, 2",
        "Rounds, fixes and seconds are bounded; a fix that leaves no fewer is refused, and so is what is cut short.",
    ),
    "emulated.linked": (
        "issue 5, 2",
        "A file of several projects that has the diagnostic too refuses the whole, with the reason.",
    ),
    "actions.unresolvable": ("issue 5, 5 and 8", "What turns out to have no edit is ActionUnavailable."),
    # odd edits
    "edits.create-by-insert": ("cases C1", "An insert into a missing file creates it."),
    "edits.whole": ("cases C3", "An edit that is less than its title says is refused as incomplete."),
    "edits.order": ("cases C7", "Operations happen in order on a virtual tree; edits follow a move."),
    "edits.one-base": (
        "issue 5, 5",
        "All edits of a document refer to one text, equal ones collapse only across lists of edits.",
    ),
    "edits.linked": (
        "issue 5, 6",
        "For a file of several projects equal edits are one, and touching ones conflict.",
    ),
    "edits.refused": ("cases C61", "One edit that cannot be applied refuses all of them."),
    "edits.version": ("issue 5, 5", "An edit made for another version of an open document is refused."),
    "edits.document-changes": ("issue 5, 5", "documentChanges win over changes."),
    "edits.apply-edit": (
        "issue 5, 5",
        "workspace/applyEdit is taken once, while our own command runs, and at no other time.",
    ),
    "edits.commands": (
        "issue 5, 5",
        "No command is run that the dialect does not know to bring an edit alone.",
    ),
    # formatting
    "format.document": (
        "issue 5, 4",
        "A document or a range of it is formatted as one revision; nothing to format is staged: false.",
    ),
    "format.project": (
        "issue 5, 4",
        "A project is formatted in one revision, generated files left out, and what was not is named.",
    ),
    "format.options": (
        "issue 5, 4",
        "The options are those of .editorconfig, as far as the protocol has words.",
    ),
    "format.refused": (
        "issue 5, 4",
        "What cannot be formatted is refused with a code before anything is asked, or as a whole.",
    ),
    "several-projects.said": (
        "issue 5, 6",
        "Where the server has no document for a file of several projects that is said, never answered as nothing.",
    ),
    # external change
    "external.picked-up": (
        "issue 5",
        "A change on disk outside of a transaction is picked up before the next answer.",
    ),
    "external.told": ("issue 5", "The server is told of it before it is asked."),
    "external.report": ("issue 5", "With report, it is WorkspaceOutOfDate until a reload."),
    "external.conflict": (
        "behaviour 1, commit 6",
        "In a transaction any changed input is a conflict; rolling back leads on.",
    ),
    "external.same-bytes": ("commit 6", "The same bytes under a new time are no change."),
    "external.hinted": (
        "issue 4, 4",
        "A change on disk is told while nobody calls; no snapshot moves because of it.",
    ),
    "external.hint-only": (
        "issue 4, 4",
        "Without a watch, or with one that fails, the workspace works on; what is unclear is looked at.",
    ),
    "external.own": ("behaviour 16.7", "Our own commits and build folders are no external change."),
    # the server's death
    "death.restart": (
        "issue, Must show",
        "A server killed at any moment is started anew; callers get an answer in time.",
    ),
    "death.staged": ("issue, Must show", "Staged work is intact, and visible to the new server."),
    "death.ids": ("issue, Must show", "Ids of a dead server are ActionExpired; epoch and snapshot stay."),
    "death.hang": ("issue 3", "A server that does not answer ends in a failure within the bound."),
    "death.close": ("issue 3", "A workspace whose server is dead or silent can be closed."),
    "call.cancelled": ("issue 3", "A cancelled call leaves no lease, no question and no half-staged edit."),
    "leak.none": (
        "issue, Must show",
        "A hundred listings leak no documents, questions, tasks, files or memory.",
    ),
    # requests
    "request.unknown-field": ("issue, Bad input", "An unknown field is refused with the nearest known one."),
    "request.types": ("issue, Bad input", "A wrong type is refused by name."),
    "request.large": ("issue, Bad input", "Megabytes in an argument are refused briefly."),
    "request.surrogates": ("issue, Bad input", "A lone surrogate is refused, and the process stays up."),
    "request.before-and-after": ("issue, Bad input", "Requests before open and after close have their code."),
    "error.codes": ("behaviour 6", "Every code has the continuation that the table gives it."),
    "error.unexpected": ("behaviour 10", "What nobody foresaw is answered without its text, under an id."),
}
