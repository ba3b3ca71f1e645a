"""What a caller is told about a request that does not fit, and what a request that fits becomes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from schemas.catalog import CATALOG
from schemas.code_actions import ListCodeActionsRequest, StageCodeActionRequest
from schemas.server import ServerStatusRequest
from schemas.snapshots import Snapshot
from schemas.transactions import TransactionPreviewRequest
from schemas.validation import LONGEST_EXCERPT, InvalidArguments, Problem, validate

SNAPSHOT = {
    "workspaceId": "11111111-1111-1111-1111-111111111111",
    "workspaceEpoch": 1,
    "snapshotId": "22222222-2222-2222-2222-222222222222",
    "transactionRevision": 0,
}
LISTING = {"document": {"path": "src/Sample.cs"}, "expectedSnapshot": SNAPSHOT, "kinds": "All"}


def listing(**members: object) -> ListCodeActionsRequest:
    request = validate(CATALOG["list-code-actions"], {**LISTING, **members})
    assert isinstance(request, ListCodeActionsRequest)
    return request


def refusal(tool: str, arguments: Mapping[str, object] | None) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        validate(CATALOG[tool], arguments)
    return caught.value


def listing_refusal(**members: object) -> str:
    return refusal("list-code-actions", {**LISTING, **members}).message


def test_no_arguments_at_all_are_a_request_without_members() -> None:
    assert validate(CATALOG["server-status"], None) == ServerStatusRequest()


def test_absent_members_have_their_defaults() -> None:
    request = listing()
    assert request.limit == 50
    assert request.range is None
    preview = validate(CATALOG["transaction-preview"], {})
    assert preview == TransactionPreviewRequest(include_diff=False, context_lines=3)


def test_null_means_absent_where_it_may_stand() -> None:
    assert listing(limit=None, range=None, diagnosticIds=None, workspace=None) == listing()


def test_a_range_without_members_is_a_caret_at_the_start() -> None:
    found = listing(range={}).range
    assert found is not None
    assert (found.start, found.length) == (0, 0)


def test_a_whole_number_may_be_written_with_a_fraction_of_zero() -> None:
    found = listing(limit=20.0).limit
    assert found == 20
    assert type(found) is int


def test_ids_are_equal_whatever_the_case_of_their_letters() -> None:
    arguments = {"actionId": "ABCDEF01-0000-0000-0000-00000000000A", "expectedSnapshot": SNAPSHOT}
    request = validate(CATALOG["stage-code-action"], arguments)
    assert isinstance(request, StageCodeActionRequest)
    assert request.action_id == "abcdef01-0000-0000-0000-00000000000a"


def test_an_echoed_snapshot_names_the_snapshot_it_came_from_and_no_other() -> None:
    snapshot = Snapshot(
        workspace_id="11111111-1111-1111-1111-111111111111",
        workspace_epoch=1,
        snapshot_id="22222222-2222-2222-2222-222222222222",
        transaction_revision=0,
    )
    assert listing().expected_snapshot.names(snapshot)
    outside = snapshot.model_copy(update={"transaction_revision": None})
    assert not listing().expected_snapshot.names(outside)
    assert not listing().expected_snapshot.names(snapshot.model_copy(update={"workspace_epoch": 2}))


def test_an_unknown_field_is_refused_with_the_nearest_and_all_known_names() -> None:
    error = refusal("workspace-open", {"path": "/a.sln", "workspace_root": "/"})
    assert error.message == (
        "Unknown field 'workspace_root'. Did you mean 'workspaceRoot'? "
        "Known here: alias, path, msBuildProperties, workspaceRoot."
    )
    assert error.problems == (Problem("workspace_root", error.message, "workspaceRoot"),)


def test_an_unknown_field_that_resembles_nothing_gets_no_suggestion() -> None:
    assert refusal("workspace-close", {"zzz": 1}).message == "Unknown field 'zzz'. Known here: workspace."


def test_a_tool_without_fields_says_so() -> None:
    assert (
        refusal("workspace-list", {"detail": "Full"}).message == "Unknown field 'detail'. Known here: none."
    )


def test_an_unknown_field_deep_inside_is_named_by_its_path() -> None:
    message = refusal(
        "workspace-open", {"path": "/a.sln", "msBuildProperties": {"configuraton": "x"}}
    ).message
    assert "Unknown field 'msBuildProperties.configuraton'. Did you mean 'configuration'?" in message


def test_known_names_of_one_place_are_told_once() -> None:
    message = refusal("workspace-open", {"path": "/a.sln", "one": 1, "two": 2}).message
    assert message.count("Known here") == 1


def test_a_misspelt_required_field_is_named_before_the_missing_one() -> None:
    message = refusal("workspace-open", {"Path": "/a.sln"}).message
    assert message.startswith("Unknown field 'Path'. Did you mean 'path'?")
    assert message.endswith("'path' is missing.")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"limit": True}, "'limit' must be an integer, not true."),
        ({"limit": "5"}, "'limit' must be an integer, not the string \"5\"."),
        ({"limit": 1.5}, "'limit' must be an integer, not 1.5."),
        ({"limit": -1}, "'limit' must be at least 0, not -1."),
        ({"limit": 2**31}, "'limit' must be at most 2147483647, not 2147483648."),
        ({"limit": 10**5000}, "'limit' must be at most 2147483647, not so large a number."),
        ({"document": None}, "'document' must be an object, not null."),
        ({"document": []}, "'document' must be an object, not an array."),
        ({"document": {"path": {}}}, "'document.path' must be a string, not an object."),
        ({"document": {"path": None}}, "'document.path' must be a string, not null."),
        ({"range": {"start": None}}, "'range.start' must be an integer, not null."),
        ({"diagnosticIds": "CS0246"}, "'diagnosticIds' must be an array, not the string \"CS0246\"."),
        ({"diagnosticIds": ["CS1", 2]}, "'diagnosticIds[1]' must be a string, not 2."),
        (
            {"kinds": "codefix"},
            "'kinds' must be one of CodeFixes, Refactorings, All, not the string \"codefix\". "
            "Did you mean 'CodeFixes'?",
        ),
        ({"kinds": 3}, "'kinds' must be one of CodeFixes, Refactorings, All, not 3."),
        (
            {"expectedSnapshot": {**SNAPSHOT, "snapshotId": "x"}},
            "'expectedSnapshot.snapshotId' must be a UUID such as 01234567-89ab-cdef-0123-456789abcdef, "
            'not the string "x".',
        ),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_what_was_expected(
    members: dict[str, object], message: str
) -> None:
    assert listing_refusal(**members) == message


def test_include_diff_is_no_number() -> None:
    assert refusal("transaction-preview", {"includeDiff": 1}).message == (
        "'includeDiff' must be true or false, not 1."
    )


def test_a_snapshot_without_its_revision_is_refused_although_the_revision_may_be_null() -> None:
    without = {name: value for name, value in SNAPSHOT.items() if name != "transactionRevision"}
    assert listing_refusal(expectedSnapshot=without) == "'expectedSnapshot.transactionRevision' is missing."
    outside = listing(expectedSnapshot={**without, "transactionRevision": None})
    assert outside.expected_snapshot.transaction_revision is None


def test_many_problems_are_counted_not_listed() -> None:
    error = refusal("workspace-open", {f"name{index}": 1 for index in range(20)})
    assert len(error.problems) == 4
    assert error.message.endswith("(17 more)")


def test_a_huge_text_is_shown_in_part() -> None:
    message = listing_refusal(limit="x" * 10_000_000)
    assert f'the string "{"x" * LONGEST_EXCERPT}…"' in message
    assert len(message) < 200


def test_a_huge_name_is_shown_in_part() -> None:
    assert len(refusal("workspace-close", {"x" * 1_000_000: 1}).message) < 200


@pytest.mark.parametrize("holder", ["top", "inside"])
def test_an_object_with_masses_of_members_is_refused_unread(holder: str) -> None:
    masses: dict[str, object] = {f"name{index}": [] for index in range(300_000)}
    arguments = masses if holder == "top" else {"path": "/a.sln", "msBuildProperties": masses}
    error = refusal("workspace-open", arguments)
    assert "(299996 more)" in error.message
    assert len(error.message) < 400


def test_a_long_list_of_wrong_entries_is_refused_at_the_first() -> None:
    assert listing_refusal(diagnosticIds=[1] * 300_000) == "'diagnosticIds[0]' must be a string, not 1."


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"document": {"path": "a\ud800.cs"}}, "document.path"),
        ({"diagnosticIds": ["CS1", "\udc00"]}, "diagnosticIds[1]"),
        ({"kinds": "\udfff"}, "kinds"),
        ({"\ud800": 1}, "\ufffd"),
        ({"document": {"p\ud800": 1}}, "document.p\ufffd"),
    ],
)
def test_a_lone_surrogate_is_refused_wherever_it_stands(members: dict[str, object], field: str) -> None:
    error = refusal("list-code-actions", {**LISTING, **members})
    assert error.problems[0].field == field
    assert "lone surrogate" in error.message
    assert error.message.encode()


def test_a_lone_surrogate_in_an_unknown_field_leaves_a_message_that_can_be_sent() -> None:
    assert refusal("workspace-close", {"zzz": "\ud800"}).message.encode()


def test_deep_nesting_where_nothing_belongs_is_refused_and_not_followed() -> None:
    deep: object = "\ud800"
    for _ in range(100_000):
        deep = [deep]
    assert listing_refusal(kinds=deep) == "'kinds' must be one of CodeFixes, Refactorings, All, not an array."
