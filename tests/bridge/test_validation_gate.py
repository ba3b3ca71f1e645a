"""``--commit-validation no-new-compiler-errors``: what a commit may not bring, and what cannot be told."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from bridge.projects import Document, Project, Structure
from bridge.tools.call import CallContext
from bridge.validation_gate import projects_concerned
from schemas.envelope import Failure
from schemas.locations import DocumentError
from tests.bridge.agent import Refusal, Scene, opened
from tests.bridge.played_compiler import PlayedCompiler, compiled
from tests.bridge.promises import keeps
from tests.bridge.staged_texts import stage_texts

APPLE, PEAR, PROGRAM = "Core/Apple.cs", "Core/Pear.cs", "App/Program.cs"
BROKEN = "class Apple { object a = new Nut(); }\n"


@asynccontextmanager
async def gated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[Scene, PlayedCompiler]]:
    """A transaction behind the gate, on a disk with these texts."""
    async with compiled(tmp_path, monkeypatch, files=files, commit_validation="no-new-compiler-errors") as (
        made,
        compiler,
    ):
        await made.agent.start()
        yield made, compiler


async def refused_commit(made: Scene) -> Refusal:
    """A refused commit: nothing is written, and everything is still staged."""
    before = {path: path.read_bytes() for path in made.root.rglob("*.cs")}
    refusal = await made.agent.refused("transaction-commit")
    assert {path: path.read_bytes() for path in made.root.rglob("*.cs")} == before
    assert (await made.agent.preview()).documents
    return refusal


async def shown_diagnostics(made: Scene) -> tuple[DocumentError, ...]:
    answer = await made.agent.call("transaction-commit")
    return Failure.model_validate(answer.envelope).error.diagnostics or ()


@keeps("commit.validation")
@pytest.mark.anyio
async def test_a_commit_that_brings_an_error_is_refused_with_it_and_can_be_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gated(tmp_path, monkeypatch) as (made, _):
        await stage_texts(made, {APPLE: BROKEN})
        refusal = await refused_commit(made)
        assert (refusal.code, refusal.kind) == ("NewCompilerErrors", None)
        assert f"{APPLE}:1" in refusal.message
        (error,) = await shown_diagnostics(made)
        assert (error.id, error.path, error.line, error.column) == ("CS0246", APPLE, 1, 26)
        await stage_texts(made, {APPLE: "class Apple { } // whole\n"})
        assert (await made.agent.commit()).committed
        assert made.file(APPLE).read_text(encoding="utf-8") == "class Apple { } // whole\n"


@keeps("commit.validation")
@pytest.mark.anyio
async def test_an_error_in_a_document_of_a_dependant_that_nobody_touched_is_new_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {PROGRAM: "class Program { object a = new Pear(); }\n"}
    async with gated(tmp_path, monkeypatch, files) as (made, _):
        await stage_texts(made, {PEAR: "class Quince { }\n"})
        assert (await refused_commit(made)).code == "NewCompilerErrors"
        (error,) = await shown_diagnostics(made)
        assert error.path == PROGRAM


@keeps("commit.validation")
@pytest.mark.anyio
async def test_errors_that_were_there_are_allowed_also_when_they_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {APPLE: BROKEN, PROGRAM: "class Program { object a = new Nut(); }\n"}
    async with gated(tmp_path, monkeypatch, files) as (made, _):
        await stage_texts(made, {APPLE: "\n\n" + BROKEN})
        assert (await made.agent.commit()).committed


@keeps("commit.validation")
@pytest.mark.anyio
async def test_one_more_occurrence_of_an_old_error_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gated(tmp_path, monkeypatch, {APPLE: BROKEN}) as (made, _):
        await stage_texts(made, {APPLE: BROKEN + "// new Nut()\n"})
        assert (await refused_commit(made)).code == "NewCompilerErrors"
        assert len(await shown_diagnostics(made)) == 1


@pytest.mark.anyio
async def test_projects_that_do_not_depend_on_the_change_are_not_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gated(tmp_path, monkeypatch) as (made, compiler):
        await stage_texts(made, {PROGRAM: "class Program { }\n"}, place=PROGRAM)
        compiler.pulled.clear()
        await made.agent.commit()
        assert compiler.pulled_names == ["Program.cs"], "App alone, and without an error only once"


@pytest.mark.anyio
async def test_what_analyzers_find_is_no_error_of_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gated(tmp_path, monkeypatch) as (made, compiler):
        compiler.error_id = "CA1822"
        await stage_texts(made, {APPLE: BROKEN})
        change = (await made.agent.preview()).diagnostics_change
        assert change is not None
        assert change.new_errors.total_count == 0
        assert (await made.agent.commit()).committed


@keeps("commit.validation-incomplete")
@pytest.mark.anyio
async def test_a_new_file_that_is_no_member_yet_leaves_the_question_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gated(tmp_path, monkeypatch) as (made, compiler):
        await stage_texts(made, {"Core/Nut.cs": "class Nut { }\n"})
        compiler.pulled.clear()
        refusal = await refused_commit(made)
        assert refusal.code == "CompilerValidationIncomplete"
        assert refusal.tools == ("transaction-rollback",)
        assert "Core/Nut.cs" in refusal.message
        assert compiler.pulled == []


@pytest.mark.anyio
async def test_a_file_of_no_loaded_project_leaves_the_question_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gated(tmp_path, monkeypatch) as (made, _):
        await stage_texts(made, {"Elsewhere/Nut.cs": "class Nut { }\n"})
        refusal = await refused_commit(made)
        assert refusal.code == "CompilerValidationIncomplete"
        assert "Elsewhere/Nut.cs" in refusal.message


@keeps("commit.validation-incomplete")
@pytest.mark.anyio
async def test_a_document_that_the_server_does_not_know_leaves_the_question_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gated(tmp_path, monkeypatch) as (made, compiler):
        compiler.strangers.add("Pear.cs")
        await stage_texts(made, {APPLE: "class Apple { } //\n"})
        refusal = await refused_commit(made)
        assert refusal.code == "CompilerValidationIncomplete"
        assert PEAR in refusal.message


@keeps("commit.validation-incomplete")
@pytest.mark.anyio
async def test_a_server_without_diagnostics_cannot_validate(tmp_path: Path) -> None:
    async with opened(tmp_path, commit_validation="no-new-compiler-errors") as made:
        await made.agent.start()
        await made.agent.stage_first(APPLE)
        refusal = await refused_commit(made)
        assert (refusal.code, refusal.kind) == ("CompilerValidationUnavailable", None)


@pytest.mark.anyio
async def test_a_change_on_disk_is_a_conflict_before_anything_is_validated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gated(tmp_path, monkeypatch) as (made, compiler):
        await stage_texts(made, {APPLE: BROKEN})
        made.file(PEAR).write_text("class Other { }\n", encoding="utf-8")
        compiler.pulled.clear()
        assert (await made.agent.refused("transaction-commit")).code == "TransactionConflicted"
        assert compiler.pulled == []


@pytest.mark.anyio
async def test_a_server_that_fails_is_no_verdict_and_the_commit_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gated(tmp_path, monkeypatch) as (made, _):
        await stage_texts(made, {APPLE: "class Apple { } //\n"})
        usual = made.server.answers["textDocument/diagnostic"]

        async def die(params: msgspec.Raw) -> object:
            made.server.kill()
            return await usual(params)

        made.server.answers["textDocument/diagnostic"] = die
        refusal = await refused_commit(made)
        assert (refusal.code, refusal.kind) == ("LanguageServerFailed", "RetryRequest")
        made.server.answers["textDocument/diagnostic"] = usual
        assert (await made.agent.commit()).committed


@pytest.mark.anyio
async def test_a_validation_tells_its_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[float, str]] = []

    async def report(progress: float, _total: float | None, message: str) -> None:
        told.append((progress, message))

    async with gated(tmp_path, monkeypatch) as (made, _):
        await stage_texts(made, {APPLE: "class Apple { } //\n"})
        made.agent.context = CallContext(report)
        await made.agent.commit()
        assert told
        assert told == sorted(told)
        assert told[-1][1].startswith("Validating ")


@pytest.mark.anyio
async def test_a_commit_of_nothing_needs_no_validation(tmp_path: Path) -> None:
    async with opened(tmp_path, commit_validation="no-new-compiler-errors") as made:
        await made.agent.start()
        assert not (await made.agent.commit()).committed


@pytest.mark.anyio
async def test_after_a_refusal_the_server_sees_the_staged_texts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gated(tmp_path, monkeypatch) as (made, _):
        await stage_texts(made, {APPLE: BROKEN})
        await refused_commit(made)
        await made.agent.actions(PEAR)
        assert made.server.open[made.file(APPLE)] == BROKEN


def project(
    name: str, *references: str, files: tuple[str, ...] = (), framework: str | None = None
) -> Project:
    path = Path(f"/s/{name}/{name}.csproj")
    key = f"{name} {framework}"
    return Project(
        id=key,
        name=name,
        path=path,
        target_framework=framework,
        documents=tuple(
            Document(file, Path("/s") / file, key, is_linked=False, is_generated=False) for file in files
        ),
        inputs=(),
        directories=(),
        references=tuple(Path(f"/s/{other}/{other}.csproj") for other in references),
    )


def test_the_projects_concerned_are_the_owners_in_every_framework_and_all_that_build_on_them() -> None:
    structure = Structure(
        path=Path("/s/S.slnx"),
        projects=(
            project("Core", files=("Core/A.cs", "shared/B.cs"), framework="net8.0"),
            project("Core", files=("Core/A.cs",), framework="net10.0"),
            project("Middle", "Core"),
            project("Top", "Middle"),
            project("Other", files=("Other/C.cs", "shared/B.cs")),
        ),
        skipped=(),
        failed=(),
        source="msbuild",
        solution_files=(),
    )

    def names(*paths: str) -> list[str]:
        return [p.name for p in projects_concerned(structure, [Path("/s") / path for path in paths])]

    assert names("Core/A.cs") == ["Core", "Core", "Middle", "Top"]
    assert names("Core/New.cs") == ["Core", "Core", "Middle", "Top"]
    assert names("Other/C.cs") == ["Other"]
    assert names("shared/B.cs") == ["Core", "Core", "Middle", "Top", "Other"]
    assert names("elsewhere/D.cs") == []


@pytest.mark.anyio
async def test_a_document_behind_a_link_is_looked_at_under_the_name_its_project_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"Core/Plum.cs": "class Plum { }\n"}
    async with compiled(
        tmp_path,
        monkeypatch,
        files=files,
        links={"App/Plum.cs": "Core/Plum.cs"},
        commit_validation="no-new-compiler-errors",
    ) as (made, compiler):
        await made.agent.start()
        await stage_texts(made, {"Core/Plum.cs": "class Plum { object a = new Nut(); }\n"})
        change = (await made.agent.preview()).diagnostics_change
        assert change is not None
        assert (change.document_count, change.unreliable) == (2, None)
        assert {error.path for error in await shown_diagnostics(made)} == {"Core/Plum.cs", "App/Plum.cs"}
        assert compiler.pulled_names.count("Plum.cs") >= 4


@pytest.mark.anyio
async def test_a_file_of_two_projects_is_asked_about_in_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gated(tmp_path, monkeypatch, {"Core/Shared.cs": "class Shared { }\n"}) as (made, compiler):
        compiler.hidden["App"] = "Pear"
        await stage_texts(made, {"Core/Shared.cs": "class Shared { object a = new Pear(); }\n"})
        (error,) = await shown_diagnostics(made)
        assert error.path == "Core/Shared.cs"
        compiler.hidden.clear()
        assert (await made.agent.commit()).committed
