"""Documents and places on one state of a workspace; the tools' view of it is in ``test_selectors``."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BridgeError
from bridge.resolution import (
    MOST_CANDIDATES,
    document_standing_for,
    documents_at,
    matching_projects,
    resolve_document,
    resolve_range,
)
from schemas.selectors import DocumentSelector, ProjectSelector
from schemas.selectors import Range as RangeSelector
from tests.bridge.agent import opened
from tests.bridge.played_server import Offer, create, delete
from transactions.text import SourceText


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def slice_units(text: str, start: int, length: int) -> bytes:
    return text.encode("utf-16-le")[2 * start : 2 * (start + length)]


TEXTS = st.text(st.sampled_from("ab \n\r\t🍎é\u2028\u0085"), max_size=20)


@given(text=TEXTS, start=st.integers(0, 30), length=st.integers(0, 30))
def test_a_range_is_found_exactly_when_it_lies_between_characters(text: str, start: int, length: int) -> None:
    source = SourceText(text)
    edges = {0}
    for character in text:
        edges.add(max(edges) + units(character))
    selector = RangeSelector(start=start, length=length)
    if start in edges and start + length in edges:
        place = resolve_range(source, selector)
        begin, end = source.offset_at(place.start), source.offset_at(place.end)
        assert (begin, end) == (start, start + length)
        assert source.slice(begin, end - begin).encode("utf-16-le") == slice_units(text, start, length)
    else:
        with pytest.raises(BridgeError) as refused:
            resolve_range(source, selector)
        assert refused.value.code == "InvalidRange"


@given(text=TEXTS)
def test_without_a_range_the_whole_document_is_meant(text: str) -> None:
    source = SourceText(text)
    place = resolve_range(source, None)
    assert (source.offset_at(place.start), source.offset_at(place.end)) == (0, units(text))


@pytest.mark.anyio
async def test_staged_and_deleted_files_are_documents_of_their_revision_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        workspace = made.workspace
        apple, new = made.file("Core/Apple.cs"), made.file("App/Deep/New.cs")
        made.server.offers = [
            Offer("Both", lambda path, _text: [*create(new, "class New { }\n"), delete(path)])
        ]
        (known,) = documents_at(workspace, apple)
        assert documents_at(workspace, new) == []
        await made.agent.start()
        await made.agent.stage_first("Core/Apple.cs")
        assert documents_at(workspace, apple) == []
        (created,) = documents_at(workspace, new)
        assert workspace.structure.project(created.project_id) in workspace.structure.projects
        assert resolve_document(workspace, DocumentSelector(path="App/Deep/New.cs")) == created
        assert resolve_document(workspace, DocumentSelector(document_id=created.id)) == created
        assert document_standing_for(workspace, apple) == known
        with pytest.raises(BridgeError):
            resolve_document(workspace, DocumentSelector(document_id=known.id))
        await made.agent.undo()
        assert documents_at(workspace, apple) == [known]
        assert documents_at(workspace, new) == []


@pytest.mark.anyio
async def test_a_file_in_no_project_is_no_document_and_still_has_a_name_in_a_preview(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        stray = made.file("Stray.cs")
        made.server.offers = [Offer("Stray", lambda _path, _text: create(stray, "class Stray { }\n"))]
        await made.agent.start()
        await made.agent.stage_first("Core/Apple.cs")
        assert documents_at(made.workspace, stray) == []
        (added,) = (await made.agent.preview()).documents
        assert added.document is not None
        assert (added.document.path, added.document.project_id) == ("Stray.cs", "")


@pytest.mark.anyio
async def test_all_members_of_a_project_selector_must_hold(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        (core,) = matching_projects(made.workspace, ProjectSelector(name="Core", path="Core/Core.csproj"))
        assert core.name == "Core"
        both = matching_projects(made.workspace, ProjectSelector(target_framework="net8.0"))
        assert len(both) == 2
        with pytest.raises(BridgeError) as refused:
            matching_projects(made.workspace, ProjectSelector(name="Core", path="App/App.csproj"))
        assert refused.value.code == "ProjectNotFound"
        assert "App, Core" in refused.value.message


@pytest.mark.anyio
async def test_a_refusal_names_only_so_many_candidates(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        for number in range(MOST_CANDIDATES + 5):
            folder = made.file(f"Core/F{number:02}")
            folder.mkdir()
            (folder / "Same.cs").write_text("class Same { }\n", encoding="utf-8")
        await made.agent.actions_after_change("Core/Apple.cs")
        refusal = await made.agent.refused("list-code-actions", document={"path": "Same.cs"}, kinds="All")
        assert refusal.message.count("Same.cs") == MOST_CANDIDATES + 1
