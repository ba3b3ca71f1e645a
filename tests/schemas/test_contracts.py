"""Our models against the contracts, both ways, and against what we publish of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.catalog import CATALOG
from schemas.envelope import Failure, failure, success
from schemas.publication import input_schema, output_schema
from schemas.snapshots import Snapshot
from schemas.validation import InvalidArguments, validate
from schemas.wire import Data
from tests.schemas.contracts import (
    TOOLS,
    answer_contract,
    contract,
    data_contract,
    input_contract,
    judge,
    needs_contracts,
)
from tests.schemas.documents import documents, near_misses
from tests.schemas.shapes import differences, shape
from tests.shared import CONTRACTS

steady = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
"""The same documents in every run: a red test stays red until it is mended."""

judge_input_contract = cache(lambda tool: judge(input_contract(tool)))
judge_data_contract = cache(lambda tool: judge(data_contract(tool)))
judge_answer_contract = cache(lambda tool: judge(answer_contract(tool)))
judge_input = cache(lambda tool: judge(input_schema(CATALOG[tool])))
judge_answer = cache(lambda tool: judge(output_schema(CATALOG[tool])))

contract_inputs = cache(lambda tool: documents(input_contract(tool)))
contract_answers = cache(lambda tool: documents(answer_contract(tool)))
published_inputs = cache(lambda tool: documents(input_schema(CATALOG[tool])))

EXTRAS = {
    "workspace-open": [".server"],
    "workspace-status": [".server"],
    "server-status": [".languageServers", ".notes", ".recovery[].code"],
    "transaction-commit": [".notes"],
    "transaction-preview": [
        ".documents[].movedFrom",
        ".documents[].movedTo",
        ".diff.hunks[].originalLacksFinalNewline",
        ".diff.hunks[].updatedLacksFinalNewline",
        ".diagnosticsChange",
        ".diagnosticsUnavailable",
        ".patch",
    ],
    "prepare-fix-all": [".remainingDiagnosticCount", ".countsUnavailable", ".emulated"],
    "list-code-actions": [
        ".actions.items[].titlePath",
        ".actions.items[].kindInferred",
        ".leftOut",
        ".undecided",
        ".notes",
    ],
    "rename-symbol": [".notRenamed", ".droppedEdits", ".conflicts", ".notes"],
}
"""The members of answers that no contract has."""

ERROR_EXTRA = "+<1>.error.diagnostics"
"""The one of failures: the errors that a commit would bring."""

REQUEST_EXTRAS = {"rename-symbol": ["allowConflicts"], "transaction-preview": ["includePatch"]}
"""The members of requests that no contract has; all may be left out."""

every_tool = pytest.mark.parametrize("tool", TOOLS)
every_tool_and_extra = pytest.mark.parametrize("tool", CATALOG)
drawn = given(data=st.data())


def has_contract(tool: str) -> bool:
    """Whether a tool's contract is there to be asked."""
    return tool in TOOLS and CONTRACTS.is_dir()


def we_accept(tool: str, document: object) -> bool:
    """Our verdict on a request."""
    try:
        validate(CATALOG[tool], cast("Mapping[str, object]", document))
    except InvalidArguments:
        return False
    return True


@needs_contracts
@every_tool
def test_every_example_of_the_contract_is_accepted(tool: str) -> None:
    for example in cast("list[Mapping[str, object]]", contract(tool)["examples"]):
        assert we_accept(tool, example["request"])


@needs_contracts
@every_tool
def test_every_member_of_a_request_is_published_as_the_contract_has_it(tool: str) -> None:
    ours = shape(input_schema(CATALOG[tool]))
    found = list(differences(shape(input_contract(tool)), ours))
    assert found == [f"+.{extra}" for extra in REQUEST_EXTRAS.get(tool, ())]


@needs_contracts
@every_tool
def test_every_member_of_an_answer_is_published_as_the_contract_has_it(tool: str) -> None:
    ours = shape(output_schema(CATALOG[tool]))
    found = set(differences(shape(answer_contract(tool)), ours))
    assert found == {f"+<0>.data{extra}" for extra in EXTRAS.get(tool, ())} | {ERROR_EXTRA}


@needs_contracts
@every_tool
@drawn
@steady
def test_every_request_the_contract_allows_is_accepted(tool: str, data: st.DataObject) -> None:
    document = data.draw(contract_inputs(tool))
    assert we_accept(tool, document)
    assert judge_input(tool).is_valid(document)


@every_tool_and_extra
@drawn
@steady
def test_every_request_we_publish_is_accepted_by_us_and_by_the_contract(
    tool: str, data: st.DataObject
) -> None:
    document = data.draw(published_inputs(tool))
    assert we_accept(tool, document)
    if has_contract(tool):
        members = cast("Mapping[str, object]", document).items()
        known = {name: value for name, value in members if name not in REQUEST_EXTRAS.get(tool, ())}
        assert judge_input_contract(tool).is_valid(known)


@every_tool_and_extra
@drawn
@steady
def test_a_request_that_nearly_fits_gets_the_same_verdict_from_the_contract_our_schema_and_our_model(
    tool: str, data: st.DataObject
) -> None:
    source = contract_inputs(tool) if has_contract(tool) else published_inputs(tool)
    document = data.draw(near_misses(source).filter(lambda value: isinstance(value, dict)))
    verdict = we_accept(tool, document)
    assert judge_input(tool).is_valid(document) is verdict
    if has_contract(tool):
        assert judge_input_contract(tool).is_valid(document) is verdict


@needs_contracts
@every_tool
@drawn
@steady
def test_every_answer_the_contract_allows_is_allowed_by_what_we_publish(
    tool: str, data: st.DataObject
) -> None:
    document = data.draw(contract_answers(tool))
    assert judge_answer(tool).is_valid(document)


@needs_contracts
@every_tool
@drawn
@steady
def test_an_answer_that_nearly_fits_gets_the_same_verdict_from_the_contract_and_what_we_publish(
    tool: str, data: st.DataObject
) -> None:
    document = data.draw(near_misses(contract_answers(tool)))
    expected = judge_answer_contract(tool).is_valid(document)
    assert judge_answer(tool).is_valid(document) is expected


@needs_contracts
@drawn
@settings(steady, max_examples=250)
def test_a_failure_that_nearly_fits_gets_the_same_verdict_from_the_contract_and_what_we_publish(
    data: st.DataObject,
) -> None:
    contracts = cast("list[Mapping[str, object]]", answer_contract("workspace-list")["oneOf"])
    branch = {**contracts[1], "$defs": answer_contract("workspace-list")["$defs"]}
    document = data.draw(near_misses(documents(branch)))
    expected = judge_answer_contract("workspace-list").is_valid(document)
    assert judge_answer("workspace-list").is_valid(document) is expected


anything_in_a_string = st.text(st.characters(codec=None), max_size=6)


@cache
def values(model: type[Data]) -> st.SearchStrategy[Data]:
    """Values of an answer's model, with lone surrogates in their texts."""
    return documents(model.model_json_schema(), text=anything_in_a_string).map(model.model_validate)


@cache
def failures() -> st.SearchStrategy[Failure]:
    """Values of the failure's model, with lone surrogates in their texts."""
    branches = cast("list[Mapping[str, object]]", output_schema(CATALOG["workspace-list"])["oneOf"])
    return documents(branches[1], text=anything_in_a_string).map(Failure.model_validate)


@every_tool_and_extra
@drawn
@steady
def test_every_answer_we_can_build_is_valid_as_published_and_under_the_contract(
    tool: str, data: st.DataObject
) -> None:
    entry = CATALOG[tool]
    answer = data.draw(values(entry.data_model))
    snapshot = data.draw(st.none() | values(Snapshot))
    envelope = success(answer, cast("Snapshot | None", snapshot))
    assert envelope["data"] == answer.wire()
    judge_answer(tool).validate(envelope)
    if has_contract(tool):
        judge_data_contract(tool).validate(envelope["data"])
        judge_answer_contract(tool).validate(envelope)


@drawn
@steady
def test_every_failure_we_can_build_is_valid_as_published_and_under_the_contract(data: st.DataObject) -> None:
    built = data.draw(failures())
    error = built.error
    envelope = failure(error.code, error.message, built.continuation, error.correlation_id, error.diagnostics)
    assert envelope == built.wire()
    judge_answer("workspace-list").validate(envelope)
    if CONTRACTS.is_dir():
        judge_answer_contract("workspace-list").validate(envelope)


@needs_contracts
@every_tool
def test_names_titles_annotations_and_snapshot_use_are_the_contracts(tool: str) -> None:
    entry = CATALOG[tool]
    expected = contract(tool)
    assert entry.title == expected["title"]
    assert entry.annotations == expected["annotations"]
    assert entry.snapshot == expected["snapshot"]
