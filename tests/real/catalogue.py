"""Tries what a server offers: every action listed for some files is staged on a fresh transaction, judged, rolled back.

A staged action is *broken* when

* its syntax errors: the server's own diagnostics of the staged text hold a syntax error that the text on disk has not;
* its bytes: the staged texts differ from what a simple second reading of the server's answer gives.  That reading is
  made here, from the answer as it came over the wire, and shares no code with the bridge's planning;
* it is half: a file that the answer changes is not staged, another one is, or a refusal left something behind.

A syntax error that is in the server's own answer, byte by byte, is a defect of the server's: ``KNOWN_DEFECTS`` names
those that are known, and they are counted apart.  So is what compiles no longer though its syntax is right, such as an
extracted base class in C# of the wrong accessibility: it is counted by title.

Two offers are of one *template* when their titles differ in names only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import cast
from urllib.parse import unquote, urlsplit

import msgspec

from bridge.options import Options
from bridge.projects import Document
from bridge.tools.call import CallContext
from bridge.tools.registry import Tools
from bridge.workbench import Workbench, open_workbench
from bridge.workspace import Workspace
from lsp_client.connection import Connection
from transactions.text import SourceText

Json = dict[str, object]

SYNTAX_ERRORS = frozenset(
    f"CS{number}"
    for number in (
        *(
            1001,
            1002,
            1003,
            1004,
            1007,
            1009,
            1010,
            1011,
            1012,
            1013,
            1014,
            1015,
            1017,
            1019,
            1020,
            1021,
            1022,
        ),
        *(
            1023,
            1024,
            1025,
            1026,
            1027,
            1028,
            1029,
            1030,
            1031,
            1032,
            1035,
            1038,
            1039,
            1040,
            1041,
            1043,
            1044,
        ),
        *(
            1056,
            1513,
            1514,
            1515,
            1517,
            1519,
            1520,
            1521,
            1525,
            1528,
            1529,
            1534,
            1535,
            1553,
            1575,
            1585,
            1597,
        ),
        *(
            1611,
            1646,
            1733,
            2001,
            7000,
            7002,
            8025,
            8055,
            8076,
            8086,
            8087,
            8088,
            8089,
            8095,
            8180,
            8181,
            8183,
        ),
        *(
            8384,
            8389,
            8504,
            8505,
            8635,
            8641,
            8803,
            8805,
            8842,
            8997,
            8998,
            8999,
            9000,
            9001,
            9002,
            9003,
            9004,
        ),
    )
)
"""Ids that the C# compiler's lexer and parser give (ErrorCode in the compiler's sources)."""

_IN_A_LOCAL_FUNCTION = frozenset({"CS1001", "CS1003", "CS1022", "CS1513", "CS1519", "CS1520"})
"""A member with an access modifier among the statements of a method."""

_HALF_OF_A_CONDITION = frozenset({"CS1002", "CS1028"})
"""A member or type moved together with one half of the #if that stands around it."""

KNOWN_DEFECTS: Mapping[tuple[str, str], frozenset[str]] = {
    ("roslyn", "Move static members to another type..."): frozenset({"CS1004"}),
    ("csharp-ls", "Move static members to another type..."): _HALF_OF_A_CONDITION,
    ("csharp-ls", "Extract base class..."): _HALF_OF_A_CONDITION,
    ("csharp-ls", "Move type to …"): _HALF_OF_A_CONDITION,
    ("roslyn", "Move type to …"): _HALF_OF_A_CONDITION,
    **{
        (server, f"Introduce parameter for {what}{sign}into extracted method to invoke at call sites"): (
            _IN_A_LOCAL_FUNCTION
        )
        for server, sign in (("roslyn", " > "), ("csharp-ls", " - "))
        for what in ("'…'", "all occurrences of '…'")
    },
}
"""Syntax errors that a refactoring itself writes, by server and template; each was seen in the server's own answer."""

MOST_LISTED = 1000


@dataclass(frozen=True)
class Offer:
    """One listed action and how to find it again; ``start`` and ``length`` are UTF-16 units."""

    document_id: str
    path: str
    start: int
    length: int
    title_path: tuple[str, ...]

    @property
    def template(self) -> str:
        return template_of(" > ".join(self.title_path))


def template_of(title: str) -> str:
    """A title with its names taken out: two offers that differ in names only have the same one."""
    title = re.sub(r"'[^']*(?:'(?=\w)[^']*)*'|\"[^\"]*\"|“[^”]*”", "'…'", title)
    title = re.sub(r"^using [\w.=<> ]+;", "using …;", title)
    title = re.sub(r"(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*(?:<.*>)?(?:\(.*\))?", "…", title)
    return re.sub(r"\d+", "#", title)


@dataclass
class Record:
    """What became of the offers of one server."""

    server: str
    offered: int = 0
    staged: int = 0
    without_effect: int = 0
    left_out: int = 0
    not_listed: Counter[str] = field(default_factory=Counter)
    templates: set[str] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    refused_templates: dict[str, set[str]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    known_defects: Counter[str] = field(default_factory=Counter)
    no_longer_compiles: Counter[str] = field(default_factory=Counter)

    @property
    def summary(self) -> str:
        """One line of figures."""
        return (
            f"{self.server}: {self.offered} offered, {self.staged} staged, {self.without_effect} without effect, "
            f"{sum(self.refused.values())} refused, {len(self.broken)} broken; {len(self.templates)} distinct titles"
        )

    def lines(self) -> Iterator[str]:
        """The record for people."""
        yield self.summary
        yield f"  left out of the lists as not usable: {self.left_out}"
        for code, count in sorted(self.not_listed.items()):
            yield f"  places that were not listed for, {code}: {count}"
        for code, count in sorted(self.refused.items()):
            yield f"  refused {code}: {count} ({'; '.join(sorted(self.refused_templates[code]))})"
        for template, count in sorted(self.known_defects.items()):
            yield f"  known defect of the server: {count} x {template}"
        for template, count in sorted(self.no_longer_compiles.items()):
            yield f"  compiles no longer: {count} x {template}"
        for line in self.broken:
            yield f"  BROKEN {line}"


class Answers:
    """The server's resolved edits as they came over the wire."""

    def __init__(self, connection: Connection) -> None:
        self.last: Json | None = None
        request = connection.request

        async def watched(method: str, params: object = msgspec.UNSET, *, timeout: float) -> msgspec.Raw:
            raw = await request(method, params, timeout=timeout)
            if method == "codeAction/resolve":
                self.last = cast("Json | None", msgspec.json.decode(raw))
            return raw

        connection.request = watched  # type: ignore[method-assign]  # listens only, in tests only


class Catalogue:
    """One open workspace whose offers are tried."""

    def __init__(self, workbench: Workbench, workspace: Workspace, answers: Answers, record: Record) -> None:
        self.record = record
        self._tools = Tools(workbench)
        self._workspace = workspace
        self._answers = answers
        self._snapshot: Json = {}

    async def call(self, tool: str, **arguments: object) -> Json:
        """The envelope of one call."""
        answer = await self._tools.call(tool, arguments, CallContext())
        self._snapshot = cast("Json", answer.envelope.get("snapshot") or self._snapshot)
        return answer.envelope

    async def _data(self, tool: str, **arguments: object) -> Json:
        envelope = await self.call(tool, **arguments)
        assert envelope["ok"], (tool, envelope)
        return cast("Json", envelope["data"])

    def documents_at(self, path: Path) -> Sequence[Document]:
        """The documents that a file is, one for each project that compiles it."""
        return self._workspace.structure.documents_at(path)

    async def offers(self, document: Document, places: Iterable[tuple[int, int]]) -> list[Offer]:
        """What is listed at some places of a file; once for each title of the file."""
        found: dict[tuple[str, ...], Offer] = {}
        await self._data("workspace-status")
        for start, length in places:
            envelope = await self._listing(document.id, start, length)
            if not envelope["ok"]:
                self.record.not_listed[str(cast("Json", envelope["error"])["code"])] += 1
                continue
            data = cast("Json", envelope["data"])
            self.record.left_out += cast("int", data.get("leftOut") or 0)
            for item in cast("list[Json]", cast("Json", data["actions"])["items"]):
                titles = tuple(cast("list[str]", item["titlePath"]))
                offer = Offer(
                    document_id=document.id,
                    path=self._workspace.relative(document.path),
                    start=start,
                    length=length,
                    title_path=titles,
                )
                found.setdefault(titles, offer)
        return list(found.values())

    async def _listing(self, document_id: str, start: int, length: int) -> Json:
        return await self.call(
            "list-code-actions",
            document={"documentId": document_id},
            range={"start": start, "length": length},
            expectedSnapshot=self._snapshot,
            kinds="All",
            limit=MOST_LISTED,
        )

    async def attempt(self, offer: Offer) -> None:
        """Stage one offer on a fresh transaction, judge it, and roll it back."""
        self.record.offered += 1
        self.record.templates.add(offer.template)
        await self._data("transaction-start")
        try:
            action_id = await self._again(offer)
            if action_id is None:
                self._break(offer, "is not offered a second time")
                return
            self._answers.last = None
            envelope = await self.call(
                "stage-code-action", actionId=action_id, expectedSnapshot=self._snapshot
            )
            await self._judge(offer, envelope)
        finally:
            await self._data("transaction-rollback")

    async def _again(self, offer: Offer) -> str | None:
        envelope = await self._listing(offer.document_id, offer.start, offer.length)
        assert envelope["ok"], envelope
        data = cast("Json", envelope["data"])
        for item in cast("list[Json]", cast("Json", data["actions"])["items"]):
            if tuple(cast("list[str]", item["titlePath"])) == offer.title_path:
                return str(item["actionId"])
        return None

    async def _judge(self, offer: Offer, envelope: Json) -> None:
        transaction = self._workspace.require_transaction()
        if not envelope["ok"]:
            code = str(cast("Json", envelope["error"])["code"])
            self.record.refused[code] += 1
            self.record.refused_templates.setdefault(code, set()).add(offer.template)
            if transaction.changes():
                self._break(offer, f"was refused ({code}) and left something staged")
            return
        for complaint in wrong_texts(self._workspace, self._answers.last):
            self._break(offer, complaint)
        if not cast("Json", envelope["data"])["staged"]:
            self.record.without_effect += 1
            return
        self.record.staged += 1
        await self._judge_errors(offer)

    async def _judge_errors(self, offer: Offer) -> None:
        preview = await self._data("transaction-preview")
        change = cast("Json | None", preview.get("diagnosticsChange"))
        if change is None:
            return
        new = cast("list[Json]", cast("Json", change["newErrors"])["items"])
        syntax = {str(error["id"]) for error in new} & SYNTAX_ERRORS
        if syntax and syntax <= KNOWN_DEFECTS.get((self.record.server, offer.template), frozenset()):
            self.record.known_defects[offer.template] += 1
        elif syntax:
            self._break(offer, f"gives syntax errors: {', '.join(sorted(syntax))}")
        elif new and change.get("unreliable") is None:
            self.record.no_longer_compiles[offer.template] += 1

    def _break(self, offer: Offer, complaint: str) -> None:
        self.record.broken.append(
            f"{' > '.join(offer.title_path)} at {offer.path}:{offer.start}+{offer.length}: {complaint}"
        )


# --- a second reading of the server's answer ------------------------------------------------------------------


def wrong_texts(workspace: Workspace, answer: Json | None) -> Iterator[str]:
    """Where what is staged differs from a simple reading of the server's answer."""
    edit = cast("Json | None", (answer or {}).get("edit"))
    if edit is None:
        yield "was staged without an edit"
        return
    wanted = simple_reading(edit)
    staged = {change.path: change.after for change in workspace.require_transaction().changes()}
    changed = {path for path, text in wanted.items() if text != _on_disk(path)}
    for path in sorted(staged.keys() - changed):
        yield f"changes {path.name}, which the server did not"
    for path in sorted(changed - staged.keys()):
        yield f"does not change {path.name}, which the server did"
    for path in sorted(changed & staged.keys()):
        after = staged[path]
        if (None if after is None else after.text) != wanted[path]:
            yield f"gives {path.name} another text than the server"
        elif after is not None and path.exists() and not _keeps_form(path, after):
            yield f"changes the encoding of {path.name}"


def _on_disk(path: Path) -> str | None:
    return SourceText.decode(path.read_bytes()).text if path.exists() else None


def _keeps_form(path: Path, after: SourceText) -> bool:
    data = path.read_bytes()
    encoding = SourceText.decode(data).encoding
    return after.encode() == SourceText(after.text, encoding).encode()


def simple_reading(edit: Mapping[str, object]) -> dict[Path, str | None]:
    """The texts after an edit, by path; ``None`` for a file that is no longer there."""
    texts: dict[Path, str | None] = {}
    changes = cast("list[Json] | None", edit.get("documentChanges"))
    if changes is None:
        by_uri = cast("dict[str, list[Json]]", edit.get("changes") or {})
        changes = [{"textDocument": {"uri": uri}, "edits": edits} for uri, edits in by_uri.items()]
    seen: dict[Path, list[Json]] = {}
    for change in changes:
        kind = change.get("kind")
        if kind is None:
            path = _path(cast("Json", change["textDocument"])["uri"])
            seen.setdefault(path, []).append(change)
            continue
        _apply_all(texts, seen)
        if kind == "create":
            texts[_path(change["uri"])] = ""
        elif kind == "delete":
            texts[_path(change["uri"])] = None
        else:
            old, new = _path(change["oldUri"]), _path(change["newUri"])
            texts[new] = _current(texts, old)
            texts[old] = None
    _apply_all(texts, seen)
    return texts


def _apply_all(texts: dict[Path, str | None], seen: dict[Path, list[Json]]) -> None:
    """Edits of several entries for one document share a base; equal entries are one (a file of several projects)."""
    for path, entries in seen.items():
        distinct: list[list[Json]] = []
        for entry in entries:
            edits = cast("list[Json]", entry["edits"])
            if edits not in distinct:
                distinct.append(edits)
        together = [edit for edits in distinct for edit in edits]
        texts[path] = _applied(_current(texts, path) or "", together)
    seen.clear()


def _applied(text: str, edits: Sequence[Json]) -> str:
    placed = []
    for number, edit in enumerate(edits):
        place = cast("dict[str, dict[str, int]]", edit["range"])
        placed.append(
            (_index(text, place["start"]), number, _index(text, place["end"]), str(edit["newText"]))
        )
    result, behind = [], 0
    for start, _number, end, new in sorted(placed):
        result += [text[behind:start], new]
        behind = end
    return "".join((*result, text[behind:]))


def _index(text: str, position: Mapping[str, int]) -> int:
    """The code point index of a place that LSP counts in lines and UTF-16 units."""
    index = 0
    for _ in range(position["line"]):
        match = re.compile(r"\r\n|\r|\n").search(text, index)
        if match is None:
            return len(text)
        index = match.end()
    units = position["character"]
    while units > 0 and index < len(text):
        units -= 2 if ord(text[index]) > 0xFFFF else 1
        index += 1
    return index


def _current(texts: Mapping[Path, str | None], path: Path) -> str | None:
    return texts[path] if path in texts else _on_disk(path)


def _path(uri: object) -> Path:
    return Path(unquote(urlsplit(str(uri)).path)).resolve()


# --- places ----------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[A-Za-z_]\w*|[=?{(\[\"]")


def places_of(text: str, random: Random | None = None, most: int | None = None) -> list[tuple[int, int]]:
    """Places worth asking at, in UTF-16 units: carets at words and signs, whole lines, the whole document.

    With ``random`` a sample of ``most`` of them, else all.
    """
    carets = [(_units(text[: match.start()]), 0) for match in _WORD.finditer(text)]
    lines = []
    start = 0
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if stripped and stripped not in {"{", "}"}:
            indent = len(line) - len(line.lstrip())
            lines.append((_units(text[: start + indent]), _units(stripped)))
        start += len(line)
    places = [(0, _units(text)), *carets, *lines]
    if random is None or most is None or len(places) <= most:
        return places
    return sorted(random.sample(places, most))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


# --- a whole run ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def catalogue_of(
    options: Options, solution: Path, record: Record | None = None
) -> AsyncIterator[Catalogue]:
    """A solution opened for a run, which goes on with ``record`` if there is one.

    ``options`` must keep the server's line ends, or texts differ by them.
    """
    assert options.line_endings == "keep"
    async with open_workbench(options) as workbench:
        opened = await Tools(workbench).call("workspace-open", {"path": str(solution)}, CallContext())
        assert not opened.is_error, opened.text
        (workspace,) = workbench.workspaces
        answers = Answers((await workspace.supervisor.session()).connection)
        record = record or Record(workspace.request.launch.dialect.name)
        yield Catalogue(workbench, workspace, answers, record)


async def try_files(
    catalogue: Catalogue,
    files: Sequence[Path],
    *,
    random: Random,
    most_places: int | None = None,
    most_offers: int | None = None,
    tell: Callable[[str], object] = lambda _line: None,
) -> None:
    """Stage what is listed for each file, or a sample of it; a file that is no document of the solution is passed by."""
    for path in files:
        text = SourceText.decode(path.read_bytes()).text
        documents = catalogue.documents_at(path)
        if not documents:
            tell(f"{path.name}: no document of the solution")
        for document in documents:
            offers = await catalogue.offers(document, places_of(text, random, most_places))
            if most_offers is not None and len(offers) > most_offers:
                offers = random.sample(offers, most_offers)
            for offer in offers:
                await catalogue.attempt(offer)
            tell(f"{path.name}: {len(offers)} offers; so far {catalogue.record.summary}")
