"""Request and answer of ``rename-symbol``."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from schemas.selectors import SymbolSelector, WorkspaceRequest
from schemas.snapshots import ExpectedSnapshot
from schemas.transactions import EXPECTED_SNAPSHOT, StagedMutation
from schemas.wire import Data, Flag, Given, Integer, Omittable, OrNull, Page, Text

MentionKind: TypeAlias = Literal["Comment", "String", "InactiveCode", "OtherFile"]


class RenameSymbolRequest(WorkspaceRequest):
    """Rename one symbol.  An option that the language server cannot honour is refused where it would matter."""

    symbol: SymbolSelector = Field(description="Give one of location and documentationCommentId.")
    new_name: str = Field(description="A C# identifier; a keyword needs a leading @.")
    rename_overloads: Omittable[Flag] = Field(None, description="Left out: no.")
    rename_in_strings: Omittable[Flag] = Field(None, description="Left out: no.")
    rename_in_comments: Omittable[Flag] = Field(None, description="Left out: no.")
    rename_file: Omittable[Flag] = Field(
        None, description="Of a type: also the file that bears its name. Left out: no."
    )
    allow_conflicts: Omittable[Flag] = Field(None, description="Stage it in spite of conflicts; lists them.")
    expected_snapshot: ExpectedSnapshot = Field(description=EXPECTED_SNAPSHOT)


class Mention(Data):
    """A place where the old name stands and was left."""

    kind: Given[MentionKind]
    path: Text = Field(description="Relative to the workspace root.")
    line: Integer = Field(description="Counted from one.")
    column: Integer = Field(description="Counted from one, in UTF-16 units.")
    text: Given[Text] = Field(description="The line, cut short.")


class RenameSymbolData(StagedMutation):
    """What was staged, and what was left as it was."""

    not_renamed: OrNull[Page[Mention]] = Field(
        None, description="The old name in comments, strings, code that is not compiled, and other files."
    )
    dropped_edits: OrNull[Integer] = Field(
        None, description="Edits in generated files that were left out; the next build writes these anew."
    )
    conflicts: OrNull[tuple[Text, ...]] = Field(None, description="What allowConflicts let through.")
    notes: OrNull[tuple[Text, ...]] = Field(None, description="What else there is to know about this rename.")
