"""What can go wrong with a transaction, and whose fault it is.

    TransactionError                      every refusal and failure of this package; carries a code
      TextError                           a text, or an edit of one text
        UndecodableText                   the bytes are no text that we can give back unchanged
        OutOfRange                        a position or offset that the text does not have
        InsideSurrogatePair               a position in the middle of one character
        OverlappingEdits                  two edits of one text claim the same characters
        UnusableNewText                   text that the file cannot hold (lone surrogate, charset, NUL, mark)
      EditRefused                         a workspace edit that would leave what we can promise
        LinkedDocumentConflict            copies of one file are edited in ways that do not fit together
      RevisionCapacityReached             the transaction holds as many revisions as it may
      TransactionHistoryUnavailable       there is nothing to undo or to redo
      CommitConflict                      the disk is not what was read; nothing of anybody was overwritten
      CommitPreparationFailed             the system refused before the first change; the tree is as it was
        CommitUnrecordable                the state directory cannot hold the record of a commit
      CommitRecoveryCapacityReached       the record would be larger than recovery may be asked to read
      CommitFailed                        the system refused after the first change; `restored` tells the rest
        CommitUnconfirmed                 all is applied, but whether the disk knows that it is committed is open
      WorkspaceBusy                       somebody else holds the commit lock
      CommitLockFailed                    the lock cannot be used at all
      RecoveryPending                     an earlier commit here must be recovered first
      RecoveryRefused                     a record cannot be resolved, exported or discarded as asked

Codes are those of the published contract. A message names the file by its path and says what was wrong with it;
it never carries file contents.
"""

from collections.abc import Sequence
from pathlib import Path


class TransactionError(Exception):
    """A refusal or failure with a published code.

    `code` is what callers act on, `message` is for people, `paths` are the absolute paths it is about (may be empty).
    """

    code = "UnsupportedChange"

    def __init__(self, message: str, paths: Sequence[Path] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.paths = tuple(paths)


class TextError(TransactionError):
    """A text, or an edit of one text, that cannot be used. It knows no path; who does adds it to a new error."""


class UndecodableText(TextError):
    """The bytes are binary, or no encoding of ours gives them back unchanged; such a file is read-only to us."""


class OutOfRange(TextError):
    """A line, column, or offset that the text does not have."""


class InsideSurrogatePair(TextError):
    """A UTF-16 position between the two halves of one character."""


class OverlappingEdits(TextError):
    """Two edits of one text claim the same characters, or one place in an order that has two readings."""


class UnusableNewText(TextError):
    """New text that the file cannot hold: a lone surrogate, a character outside its charset, a NUL, a byte order mark."""


class EditRefused(TransactionError):
    """A workspace edit asks for something outside the source-only contract. Nothing of it was staged."""


class LinkedDocumentConflict(EditRefused):
    """Several edits of one file (one for each project it belongs to) overlap or touch without being equal."""

    code = "LinkedDocumentConflict"


class RevisionCapacityReached(TransactionError):
    """The transaction is at its last revision; undoing one makes room."""

    code = "RevisionCapacityReached"


class TransactionHistoryUnavailable(TransactionError):
    """There is no revision to move to in the asked direction."""

    code = "TransactionHistoryUnavailable"


class CommitConflict(TransactionError):
    """A target is not what the transaction was built on. The tree holds the before-image and every stranger's write."""

    code = "TransactionConflicted"


class CommitPreparationFailed(TransactionError):
    """The system refused before the first target was touched; the tree is unchanged and the commit may be tried again."""

    code = "CommitPreparationFailed"


class CommitFailed(TransactionError):
    """The system refused after the first target was touched.

    `restored` is true when the before-image is back. When it is false, `paths` are the files that are not restored, and
    `evidence` is the directory that still holds their originals.
    """

    code = "CommitFailed"

    def __init__(
        self, message: str, paths: Sequence[Path] = (), *, restored: bool, evidence: Path | None = None
    ) -> None:
        super().__init__(message, paths)
        self.restored = restored
        self.evidence = evidence


class CommitUnrecordable(CommitPreparationFailed):
    """The state directory is a link, somebody else's, open to others, or cannot be written; the tree is unchanged."""


class CommitRecoveryCapacityReached(TransactionError):
    """What recovery would need is larger than it may be asked to read; staging less makes it fit."""

    code = "CommitRecoveryCapacityReached"


class CommitUnconfirmed(CommitFailed):
    """Everything is applied, but the system refused to confirm the record that says so.

    Nothing is undone: the record may be on the disk. The next recovery reads it and completes the commit, or takes it
    back when the record never arrived.
    """

    def __init__(self, message: str, paths: Sequence[Path] = ()) -> None:
        super().__init__(message, paths, restored=False)


class WorkspaceBusy(TransactionError):
    """Another process commits or recovers in this root or in one that overlaps it."""

    code = "WorkspaceBusy"


class CommitLockFailed(TransactionError):
    """The lock file cannot be made, opened or kept; nothing was touched."""

    code = "CommitLockFailed"


class RecoveryPending(TransactionError):
    """An earlier commit under this root is unfinished; it must be recovered before anything new is written."""

    code = "RecoveryPending"


class RecoveryRefused(TransactionError):
    """A record cannot be resolved, exported or discarded in the way that was asked for."""

    code = "RecoveryPending"
