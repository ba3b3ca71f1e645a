"""Formatting a document, a part of it, and a whole project, on a played server in Roslyn's dialect."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import msgspec
import pytest

from lsp_client.errors import ResponseError
from lsp_client.uris import uri_to_path
from schemas.formatting import FormatDocumentData, FormatProjectData
from tests.bridge import played_csharp_ls
from tests.bridge.agent import APPLE, Agent, Scene, opened
from tests.bridge.played_compiler import compiled
from tests.bridge.played_server import Json
from tests.bridge.promises import keeps
from tests.bridge.staged_texts import replaced, stage_texts

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"
UGLY = "class A{}\n"
TIDY = "class A{ }\n"


class _Question(msgspec.Struct, rename="camel"):
    text_document: dict[str, object]
    options: dict[str, object]
    range: dict[str, object] | None = None


class Formatter:
    """Puts blanks into empty bodies, and remembers what it was asked."""

    def __init__(self, made: Scene) -> None:
        self._server = made.server
        self.unknown = "none"
        """How the names of files begin that it has no document for."""
        self.asked: list[_Question] = []
        made.server.answers["textDocument/formatting"] = self.answer
        made.server.answers["textDocument/rangeFormatting"] = self.answer

    async def answer(self, params: msgspec.Raw) -> object:
        question = msgspec.json.decode(params, type=_Question)
        self.asked.append(question)
        path = uri_to_path(str(question.text_document["uri"]))
        if path.name.startswith(self.unknown):
            return None
        text = self._server.seen(path)
        if (at := text.find("{}")) < 0:
            return []
        line = text.count("\n", 0, at)
        column = at + 1 - (text.rfind("\n", 0, at) + 1)
        place = {"line": line, "character": column}
        return [{"range": {"start": place, "end": place}, "newText": " "}]

    @property
    def files(self) -> list[str]:
        return [uri_to_path(str(question.text_document["uri"])).name for question in self.asked]


async def format_document(agent: Agent, path: str = FILE, **more: object) -> FormatDocumentData:
    arguments = {"document": {"path": path}, **more}
    return await agent.ask(FormatDocumentData, "format-document", **arguments)


async def format_project(agent: Agent, name: str = "Core", **more: object) -> FormatProjectData:
    return await agent.ask(FormatProjectData, "format-project", project={"name": name}, **more)


@keeps("format.document")
async def test_a_document_is_formatted_as_one_revision_and_once_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, {FILE: UGLY}) as (made, _):
        Formatter(made)
        await made.agent.start()
        done = await format_document(made.agent)
        assert (done.staged, done.summary) == (True, "Format Core/Apple.cs: 1 changed")
        assert done.transaction is not None
        assert done.transaction.revision == 1
        again = await format_document(made.agent)
        assert not again.staged
        assert again.transaction is not None
        assert again.transaction.revision == 1
        assert made.file(FILE).read_text(encoding="utf-8") == UGLY
        await made.agent.commit()
        assert made.file(FILE).read_text(encoding="utf-8") == TIDY


@keeps("format.document")
async def test_a_range_is_asked_for_as_a_range_of_the_staged_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, {FILE: "// 🍎\nclass A{}\n"}) as (made, _):
        formatter = Formatter(made)
        await made.agent.start()
        await stage_texts(made, {FILE: "// 🍏🍏\nclass A{}\n"})
        done = await format_document(made.agent, range={"start": 3, "length": 12})
        assert done.summary == "Format Core/Apple.cs, lines 1 to 2: 1 changed"
        (question,) = formatter.asked
        assert question.range == {
            "start": {"line": 0, "character": 3},
            "end": {"line": 1, "character": 7},
        }
        outside = await made.agent.refused("format-document", document={"path": FILE}, range={"start": 99})
        inside = await made.agent.refused("format-document", document={"path": FILE}, range={"start": 4})
        assert (outside.code, inside.code) == ("InvalidRange", "InvalidRange")


@keeps("format.options")
async def test_the_options_are_those_of_editorconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wishes = "root = true\n[Pear.cs]\nindent_style = tab\ntab_width = 3\nindent_size = 3\n"
    more = "insert_final_newline = true\ntrim_trailing_whitespace = false\n"
    async with compiled(tmp_path, monkeypatch, {"Core/.editorconfig": wishes + more}) as (made, _):
        formatter = Formatter(made)
        await made.agent.start()
        await format_project(made.agent)
        assert [question.options for question in formatter.asked] == [
            {"tabSize": 4, "insertSpaces": True},
            {
                "tabSize": 3,
                "insertSpaces": False,
                "insertFinalNewline": True,
                "trimTrailingWhitespace": False,
            },
        ]


@keeps("format.project")
async def test_a_project_is_formatted_in_one_revision_without_generated_and_deleted_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {FILE: UGLY, "Core/obj.Gen.cs": UGLY}
    async with compiled(tmp_path, monkeypatch, files) as (made, _):
        formatter = Formatter(made)
        await made.agent.start()
        await stage_texts(made, {"Core/New.cs": UGLY, "Core/Pear.cs": None})
        done = await format_project(made.agent)
        assert sorted(formatter.files) == ["Apple.cs", "New.cs", "obj.Gen.cs"]
        assert (done.staged, done.document_count) == (True, 3)
        assert done.summary is not None
        assert done.summary.startswith("Format Core: 3 changed")
        assert done.not_formatted.total_count == 0
        assert done.transaction is not None
        assert done.transaction.revision == 2
        assert not (await format_project(made.agent)).staged
        await made.agent.commit()
        assert made.file("Core/New.cs").read_text(encoding="utf-8") == TIDY
        assert made.file(FILE).read_text(encoding="utf-8") == TIDY


@keeps("format.project")
async def test_generated_code_is_left_out_of_a_project_named_and_still_formatted_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [
        "A.g.cs",
        "A.g.i.cs",
        "A.Designer.cs",
        "A.generated.cs",
        "TemporaryGeneratedFile_A.cs",
        "Told.cs",
    ]
    generated = {f"Core/{name}": UGLY for name in names} | {"Core/Marked.cs": f"// <auto-generated/>\n{UGLY}"}
    config = "root = true\n[{Told,B.g}.cs]\ngenerated_code = true\n[B.g.cs]\ngenerated_code = false\n"
    files = {FILE: UGLY, "Core/B.g.cs": UGLY, "Core/.editorconfig": config, **generated}
    async with compiled(tmp_path, monkeypatch, files) as (made, _):
        formatter = Formatter(made)
        await made.agent.start()
        done = await format_project(made.agent, maxDocuments=3)
        assert sorted(formatter.files) == ["Apple.cs", "B.g.cs", "Pear.cs"]
        left = {entry.path: entry.reason for entry in done.not_formatted.items or ()}
        assert sorted(left) == sorted(generated)
        assert all("generated code" in reason for reason in left.values())
        last = await format_project(made.agent, maxDocuments=0)
        assert [entry.path for entry in last.not_formatted.items or ()][:3] == [
            FILE,
            "Core/B.g.cs",
            "Core/Pear.cs",
        ]
        assert (done.document_count, done.not_formatted.total_count) == (10, 7)
        assert (await format_document(made.agent, "Core/A.Designer.cs")).staged


@keeps("format.project")
async def test_documents_that_were_not_looked_at_are_never_said_to_be_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, {FILE: TIDY}) as (made, _):
        formatter = Formatter(made)
        await made.agent.start()
        none = await format_project(made.agent, maxDocuments=0)
        assert (none.staged, none.not_formatted.total_count, formatter.asked) == (False, 2, [])
        assert none.summary is not None
        assert "none of its 2 documents was looked at" in none.summary
        one = await format_project(made.agent, maxDocuments=1)
        assert one.summary == (
            "Format Core: nothing to change in 1 of its 2 documents; the others were left as they are."
        )
        both = await format_project(made.agent)
        assert both.summary == "Format Core: the text is already as it would leave it."


@keeps("format.project")
async def test_what_could_not_be_formatted_is_named_with_the_reason_and_the_rest_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {FILE: UGLY, "Core/Bitter.cs": UGLY, "Core/Lime.cs": UGLY, "Core/Mango.cs": UGLY}
    async with compiled(tmp_path, monkeypatch, files) as (made, _):
        formatter = Formatter(made)
        made.file("Core/Lime.cs").chmod(0o444)

        async def fails_at_bitter(params: msgspec.Raw) -> object:
            if b"Bitter" in bytes(params):
                raise ResponseError("textDocument/formatting", -32603, "too bitter")
            return await formatter.answer(params)

        made.server.answers["textDocument/formatting"] = fails_at_bitter
        await made.agent.start()
        done = await format_project(made.agent, maxDocuments=4)
        assert done.summary == "Format Core: 2 changed"
        left = {entry.path: entry.reason for entry in done.not_formatted.items or ()}
        assert sorted(left) == ["Core/Bitter.cs", "Core/Lime.cs", "Core/Pear.cs"]
        assert "too bitter" in left["Core/Bitter.cs"]
        assert "read-only" in left["Core/Lime.cs"]
        assert left["Core/Pear.cs"] == "only 4 documents were asked for"
        assert (done.document_count, done.not_formatted.total_count) == (5, 3)


@keeps("format.refused")
async def test_documents_that_no_edit_may_touch_are_refused_although_nothing_is_wrong_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        formatter = Formatter(made)
        made.file("Core/Pear.cs").write_bytes(b"\0\xff")
        made.file(FILE).chmod(0o444)
        await made.agent.status()
        await made.agent.start()
        for path in (FILE, "Core/Pear.cs"):
            for more in ({}, {"range": {"start": 0, "length": 1}}):
                refusal = await made.agent.refused("format-document", document={"path": path}, **more)
                assert (refusal.code, refusal.kind) == ("UnsupportedChange", None)
                assert Path(path).name in refusal.message
        assert formatter.asked == []


@keeps("format.refused")
async def test_projects_and_documents_that_are_not_there_or_not_one_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, {"Core/Shared.cs": UGLY}) as (made, _):
        formatter = Formatter(made)
        await made.agent.start()
        for document, code in (
            ({"path": "Core/Gone.cs"}, "DocumentNotFound"),
            ({"path": "Core/Shared.cs"}, "DocumentAmbiguous"),
        ):
            assert (await made.agent.refused("format-document", document=document)).code == code
        for project, code in (
            ({"name": "Nowhere"}, "ProjectNotFound"),
            ({}, "ProjectSelectorInvalid"),
        ):
            assert (await made.agent.refused("format-project", project=project)).code == code
        assert formatter.asked == []
        both = {"path": "Core/Shared.cs", "project": {"name": "App"}}
        assert (await format_document(made.agent, document=both)).staged
        assert formatter.asked[0].text_document["_vs_projectContext"] == {
            "_vs_label": "App",
            "_vs_is_miscellaneous": False,
        }


@keeps("format.refused")
async def test_a_server_that_cannot_format_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        for tool, target in (
            ("format-document", {"document": {"path": FILE}}),
            ("format-project", {"project": {"name": "Core"}}),
        ):
            refusal = await made.agent.refused(tool, **target)
            assert (refusal.code, refusal.kind) == ("NotSupported", None)
            assert "formatting" in refusal.message
        two = await made.agent.refused("format-project", project={"targetFramework": "net8.0"})
        assert (two.code, two.kind) == ("ProjectAmbiguous", "ReviseRequest")
        assert "App/App.csproj, Core/Core.csproj" in two.message
        assert (await made.agent.preview()).documents == ()


@keeps("transaction.needed", "transaction.capacity")
async def test_formatting_needs_a_transaction_with_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, {FILE: UGLY}, max_transaction_revisions=1) as (made, _):
        formatter = Formatter(made)
        targets: list[tuple[str, Json]] = [
            ("format-document", {"document": {"path": FILE}}),
            ("format-project", {"project": {"name": "Core"}}),
        ]
        for tool, target in targets:
            assert (await made.agent.refused(tool, **target)).code == "NoActiveTransaction"
        await made.agent.start()
        await stage_texts(made, {FILE: "class B{}\n"})
        for tool, target in targets:
            assert (await made.agent.refused(tool, **target)).code == "RevisionCapacityReached"
        assert formatter.asked == []


@keeps("several-projects.said")
async def test_csharp_ls_formats_and_says_in_several_projects_where_it_has_no_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {FILE: UGLY, "Core/Shared.cs": UGLY}
    async with played_csharp_ls.opened(tmp_path, monkeypatch, files) as made:
        Formatter(made).unknown = "Shared"
        await made.agent.start()
        done = await format_project(made.agent)
        assert done.summary == "Format Core: 1 changed"
        (left,) = done.not_formatted.items or ()
        assert left.path == "Core/Shared.cs"
        assert "is in several projects (App (net10.0), Core (net10.0))" in left.reason
        linked = {"path": "Core/Shared.cs", "project": {"name": "Core"}}
        refusal = await made.agent.refused("format-document", document=linked)
        assert (refusal.code, refusal.kind) == ("DocumentInSeveralProjects", None)


Answer = Callable[[msgspec.Raw], Awaitable[object]]


async def _overlapping(_params: msgspec.Raw) -> object:
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 4}}
    return [{"range": place, "newText": "x"}, {"range": place, "newText": "x"}]


async def _outside(_params: msgspec.Raw) -> object:
    place = {"start": {"line": 99, "character": 0}, "end": {"line": 99, "character": 0}}
    return [{"range": place, "newText": "x"}]


async def _null(_params: msgspec.Raw) -> object:
    return None


@keeps("format.refused")
@pytest.mark.parametrize(
    ("answer", "code"), [(_overlapping, "UnsupportedChange"), (_outside, "UnsupportedChange")]
)
async def test_edits_that_cannot_be_applied_are_refused_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer, code: str
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        made.server.answers["textDocument/formatting"] = answer
        await made.agent.start()
        assert (await made.agent.refused("format-document", document={"path": FILE})).code == code
        done = await format_project(made.agent)
        assert (done.staged, done.not_formatted.total_count) == (False, 2)
        assert (await made.agent.preview()).documents == ()


@keeps("format.document")
async def test_no_answer_about_a_known_document_is_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        made.server.answers["textDocument/formatting"] = _null
        await made.agent.start()
        assert not (await format_document(made.agent)).staged
        assert made.file(FILE).read_text(encoding="utf-8") == APPLE


@keeps("format.document")
async def test_a_file_of_crlf_stays_one_whatever_the_server_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):

        async def lf(params: msgspec.Raw) -> object:
            question = msgspec.json.decode(params, type=_Question)
            path = uri_to_path(str(question.text_document["uri"]))
            return replaced(path, made.server.seen(path), "class A\n{\n}\n")["edits"]

        made.file(FILE).write_bytes(b"class A\r\n{}\r\n")
        await made.agent.status()
        made.server.answers["textDocument/formatting"] = lf
        await made.agent.start()
        await format_document(made.agent)
        await made.agent.commit()
        assert made.file(FILE).read_bytes() == b"class A\r\n{\r\n}\r\n"


# --- bounds, cancellation, death ----------------------------------------------------------------------------


@keeps("format.project")
async def test_what_the_time_did_not_suffice_for_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.formatting.LONGEST_PROJECT", 0.0)
    async with compiled(tmp_path, monkeypatch, {FILE: UGLY}) as (made, _):
        Formatter(made)
        await made.agent.start()
        async with made.server.held("textDocument/formatting"):
            done = await format_project(made.agent)
        assert not done.staged
        left = {entry.path: entry.reason for entry in done.not_formatted.items or ()}
        assert sorted(left) == [FILE, "Core/Pear.cs"]
        assert "the time for one project (0 s) was over" in left[FILE]
        await made.server.until(lambda: not made.server.open)


@keeps("format.project")
async def test_documents_are_opened_some_at_a_time_and_none_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.formatting.OPEN_AT_ONCE", 2)
    names = [f"Core/Tree{number}.cs" for number in range(5)]
    async with compiled(tmp_path, monkeypatch, dict.fromkeys(names, UGLY)) as (made, _):
        formatter = Formatter(made)
        most_open = 0

        async def count(params: msgspec.Raw) -> object:
            nonlocal most_open
            most_open = max(most_open, len(made.server.open))
            return await formatter.answer(params)

        made.server.answers["textDocument/formatting"] = count
        await made.agent.start()
        assert (await format_project(made.agent)).summary == "Format Core: 5 changed"
        assert most_open == 2
        await made.agent.roll_back()
        await made.agent.actions(FILE)
        await made.server.until(lambda: not made.server.open)


@keeps("call.cancelled")
@pytest.mark.parametrize("tool", ["format-document", "format-project"])
async def test_a_cancelled_formatting_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    target: Json = (
        {"document": {"path": FILE}} if tool == "format-document" else {"project": {"name": "Core"}}
    )
    async with compiled(tmp_path, monkeypatch, {FILE: UGLY}) as (made, _):
        Formatter(made)
        await made.agent.start()
        before = made.agent.identity

        async def call() -> None:
            await made.agent.call(tool, **target)

        async with made.server.held("textDocument/formatting") as held, anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await held.reached.wait()
            tasks.cancel_scope.cancel()
        await made.agent.status()
        assert made.agent.identity == before
        await made.server.until(lambda: not made.server.open)
        assert (await format_document(made.agent)).staged


@keeps("death.restart")
async def test_a_server_that_dies_while_it_formats_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, {FILE: UGLY}) as (made, _):
        formatter = Formatter(made)
        deaths = 0

        async def dies_once(params: msgspec.Raw) -> object:
            nonlocal deaths
            if deaths == 0:
                deaths += 1
                made.server.kill()
                await anyio.sleep_forever()
            return await formatter.answer(params)

        made.server.answers["textDocument/formatting"] = dies_once
        await made.agent.start()
        assert (await format_project(made.agent)).summary == "Format Core: 1 changed"
        assert deaths == 1
        assert len(made.server.processes) == 2
