"""csharp-ls marks nothing; what is concluded about its actions is checked against recorded and known lists."""

import json
from pathlib import Path

import msgspec
import pytest

from lsp_client.dialects import CSHARP_LS
from lsp_client.dialects.base import ActionListing, LoadTarget
from lsp_client.dialects.csharp_ls_listing import Offer, classify
from lsp_client.loading import LoadWatch
from lsp_client.messages import CodeAction, Diagnostic, DiagnosticReport, Position, Range, decode
from tests.lsp_client.transcripts import exchanges, said, sent

TARGET = LoadTarget(Path("/w/X.slnx"), Path("/w"), (Path("/w/A/A.csproj"),))
PLACE = Range(Position(2, 4), Position(2, 4))
AT = Range(Position(2, 0), Position(2, 8))
CS0219 = Diagnostic(AT, "never used", 2, "CS0219")
CS0246 = Diagnostic(AT, "not found", 1, "CS0246")
CS8019 = Diagnostic(AT, "Unnecessary using directive.", 4, "CS8019")


def offers(*titles: str, kind: str | None = None) -> list[Offer]:
    raws = [
        msgspec.json.encode({"title": t, **({"kind": kind} if kind else {}), "data": {"n": i}})
        for i, t in enumerate(titles)
    ]
    return [Offer(msgspec.Raw(raw), decode(raw, CodeAction)) for raw in raws]


def kinds(listing: ActionListing) -> str:
    """One letter an action: F for fixes, R for refactorings."""
    return "".join("F" if action.kind == "CodeFix" else "R" for action in listing.actions)


# --- kinds --------------------------------------------------------------------------------------------------


def test_without_a_diagnostic_there_is_no_fix() -> None:
    listing = classify(offers("Extract method", "Invert if"), PLACE, (), frozenset())
    assert kinds(listing) == "RR"
    assert all(action.kind_inferred and action.diagnostics == () for action in listing.actions)
    assert listing.kinds_decided


def test_the_fixes_are_the_tail_that_the_second_list_has_too() -> None:
    listed = offers("Use implicit type", "Convert number - Convert to hex", "Remove unused variable")
    listing = classify(listed, PLACE, (CS0219,), frozenset({"Remove unused variable", "Implement interface"}))
    assert kinds(listing) == "RRF"
    assert listing.actions[2].diagnostics == (("CS0219", "never used"),)


def test_a_refactoring_that_fits_a_whole_document_is_not_taken_for_a_fix() -> None:
    wide = "Encapsulate field: 'x' (and use property)"
    listing = classify(
        offers(wide, "Extract base class...", "Generate class"),
        PLACE,
        (CS0246,),
        frozenset({wide, "Generate class"}),
    )
    assert kinds(listing) == "RRF"
    assert kinds(classify(offers("Extract base class...", wide), PLACE, (CS0246,), frozenset({wide}))) == "RR"


def test_a_gap_in_the_tail_ends_it() -> None:
    """Fixes stand together at the end, so something in the middle is no fix whatever the second list says."""
    listing = classify(offers("A", "B", "C"), PLACE, (CS0246,), frozenset({"A", "C"}))
    assert kinds(listing) == "RRF"


def test_what_the_server_marks_is_a_fix_and_not_inferred() -> None:
    listed = [*offers("Introduce local for 'x'", "System.Console"), *offers("using System;", kind="quickfix")]
    listing = classify(listed, PLACE, (CS0246,), frozenset({"System.Console", "using System;"}))
    assert [(a.kind, a.kind_inferred) for a in listing.actions] == [
        ("Refactoring", True),
        ("CodeFix", True),
        ("CodeFix", False),
    ]


def test_when_the_second_question_failed_it_is_said_that_kinds_are_undecided() -> None:
    listing = classify(offers("A", "B"), PLACE, (CS0246,), None)
    assert (kinds(listing), listing.kinds_decided) == ("RR", False)
    marked = [*offers("A"), *offers("using System;", kind="quickfix")]
    assert kinds(classify(marked, PLACE, (CS0246,), None)) == "RF"


def test_removing_usings_is_a_fix_even_when_its_hidden_diagnostic_was_not_pulled() -> None:
    listing = classify(offers("Sort Usings", "Remove unnecessary usings"), PLACE, (), frozenset())
    assert kinds(listing) == "RF"
    assert listing.actions[1].diagnostics == (("CS8019", ""),)


def test_with_several_diagnostics_it_is_unknown_which_one_a_fix_is_for() -> None:
    listing = classify(offers("Fix"), PLACE, (CS0219, CS0246), frozenset({"Fix"}))
    assert listing.actions[0].diagnostics is None
    assert not listing.diagnostics_known


def test_the_place_of_a_fix_is_known_where_there_is_only_one_diagnostic_it_can_be_of() -> None:
    (one,) = classify(offers("Fix"), PLACE, (CS0246,), frozenset({"Fix"})).actions
    (many,) = classify(offers("Fix"), PLACE, (CS0219, CS0246), frozenset({"Fix"})).actions
    change, usings = classify(
        offers("Sort Usings", "Remove unnecessary usings"), PLACE, (CS8019, CS0246), frozenset()
    ).actions
    assert [a.place for a in (one, many, change, usings)] == [AT, None, None, AT]


def test_of_equal_titles_the_first_is_listed_as_ambiguous_and_the_rest_left_out() -> None:
    listed = offers("Sort Usings", *["Remove unused variable"] * 3)
    listing = classify(listed, PLACE, (CS0219,), frozenset({"Remove unused variable"}))
    assert [(a.title, a.ambiguous) for a in listing.actions] == [
        ("Sort Usings", False),
        ("Remove unused variable", True),
    ]
    assert listing.left_out == 2
    assert json.loads(bytes(listing.actions[1].payload))["data"] == {"n": 1}


def test_removing_usings_is_one_action_however_many_usings_offer_it() -> None:
    listed = offers("Sort Usings", *["Remove unnecessary usings"] * 3)
    listing = classify(listed, PLACE, (CS8019,), frozenset({"Remove unnecessary usings"}))
    assert [(a.title, a.ambiguous) for a in listing.actions] == [
        ("Sort Usings", False),
        ("Remove unnecessary usings", False),
    ]
    assert listing.left_out == 0


def test_titles_are_not_split_because_a_dash_may_be_part_of_one() -> None:
    (action,) = classify(offers("Introduce constant for '\"a - b\"'"), PLACE, (), frozenset()).actions
    assert action.title_path == (action.title,)


EXPECTED_RECORDED = {
    ("Order.cs", 30): "RRRRRRRRRR",
    ("OrderService.cs", 8): "RRRRRRRR",
    ("OrderService.cs", 2): "F",
    ("OrderService.cs", 22): "RRR",
    ("OrderService.cs", 54): "R",
    ("CrlfNotes.cs", 13): "RRRRRRRRRR",
    ("Ugly.cs", 5): "RRFFFFFFFFFFF",
    ("OrderService.cs", 46): "F",
}
"""What the recorded lists hold, by what their titles say: F for the fixes of CS0103, CS1061 and CS8019."""


def test_the_rule_is_right_for_each_recorded_list() -> None:
    """The second list was not recorded; it holds the fixes of the document, which are known here."""
    for exchange in exchanges("03-code-actions.jsonl", "textDocument/codeAction"):
        document, place = exchange.params["textDocument"], exchange.params["range"]
        assert isinstance(document, dict)
        assert isinstance(place, dict)
        key = (document["uri"].rsplit("/", 1)[-1], place["start"]["line"])
        items = decode(exchange.result, list[msgspec.Raw])
        if not items:
            continue
        listed = [Offer(item, decode(item, CodeAction)) for item in items]
        expected = EXPECTED_RECORDED[key]
        fixes = frozenset(o.action.title for o, kind in zip(listed, expected, strict=True) if kind == "F")
        near = (CS0246,) if fixes else ()
        assert kinds(classify(listed, PLACE, near, fixes | {"Sort Usings"})) == expected


# --- what it says -------------------------------------------------------------------------------------------


def hear(watch: LoadWatch, method: str, params: object) -> None:
    watch.take(CSHARP_LS.hear(method, msgspec.Raw(json.dumps(params).encode()), TARGET))


def test_the_recorded_load_is_understood() -> None:
    watch = LoadWatch()
    for method, params in said("01-initialize-load.jsonl"):
        watch.take(CSHARP_LS.hear(method, params, TARGET))
    assert (watch.begun, watch.ended, watch.failure) == (1, 1, None)
    assert [m.text for m in watch.messages] == ['Finished loading solution "/work space/Bakery.sln"']


def test_the_recorded_reload_is_a_second_load() -> None:
    watch = LoadWatch()
    for method, params in said("10-reload.jsonl"):
        watch.take(CSHARP_LS.hear(method, params, TARGET))
    assert (watch.begun, watch.ended) == (2, 2)


def test_a_failed_solution_is_a_failure_although_its_message_is_only_information() -> None:
    watch = LoadWatch()
    text = 'csharp-ls: Solution "/w/X.slnx" could not be loaded: System.IO.FileNotFoundException: no\n   at X'
    hear(watch, "window/showMessage", {"type": 3, "message": text})
    assert watch.failure == 'Solution "/w/X.slnx" could not be loaded: System.IO.FileNotFoundException: no'


def test_a_project_that_could_not_be_loaded_does_not_fail_the_solution() -> None:
    watch = LoadWatch()
    text = (
        "csharp-ls: msbuildWorkspace.Diagnostics: [Failure] Msbuild failed when processing the file '/w/X/X.csproj' "
        "with message: The project file could not be loaded. Name cannot begin with the '<' character."
    )
    hear(watch, "window/logMessage", {"type": 3, "message": text})
    assert watch.failure is None
    assert [(m.severity, m.project) for m in watch.messages] == [("error", Path("/w/X/X.csproj"))]


@pytest.mark.parametrize(("kind", "severity"), [("Failure", "error"), ("Warning", "warning")])
def test_the_trouble_of_a_project_is_told_with_its_path(kind: str, severity: str) -> None:
    watch = LoadWatch()
    text = f"csharp-ls: msbuildWorkspace.Diagnostics: [{kind}] Msbuild failed when processing the file '/w/A b/A.csproj' with message: x"
    hear(watch, "window/logMessage", {"type": 3, "message": text})
    (message,) = watch.messages
    assert (message.severity, message.project) == (severity, Path("/w/A b/A.csproj"))


@pytest.mark.parametrize("params", [None, [], {}, {"message": 5}, {"token": "t", "value": None}])
def test_odd_notifications_mean_nothing(params: object) -> None:
    watch = LoadWatch()
    for method in ("window/logMessage", "$/progress", "window/showMessage", "$/logTrace"):
        hear(watch, method, params)
    assert (watch.ended, watch.failure) == (0, None)


def test_the_framework_it_chose_is_read_from_its_log() -> None:
    said_before = "Will use MSBuild props: map [(TargetFramework, net8.0)]\nWill use MSBuild props: map [(TargetFramework, net10.0)]"
    assert CSHARP_LS.used_target_framework(said_before) == "net10.0"
    assert CSHARP_LS.used_target_framework("Will use MSBuild props: map []") is None


# --- what is told to it -------------------------------------------------------------------------------------


def test_the_list_of_notifications_holds_nothing_that_stopped_it() -> None:
    stopped = {
        "$/madeUp",
        "textDocument/madeUpToo",
        "window/workDoneProgress/cancel",
        "workspace/didRenameFiles",
    }
    assert not CSHARP_LS.notifications & stopped
    assert not CSHARP_LS.notifications & {"solution/open", "project/open"}


def test_it_survived_each_notification_on_the_list_in_some_recorded_session() -> None:
    recorded = {
        method
        for name in (
            "03-code-actions.jsonl",
            "07-cancel.jsonl",
            "09-new-file.jsonl",
            "10-reload.jsonl",
            "13-watched-files.jsonl",
        )
        for method in sent(name)
    }
    assert CSHARP_LS.notifications <= recorded


def test_the_command_line_names_the_solution() -> None:
    line = CSHARP_LS.command_line(("csharp-ls",), TARGET, log_directory=Path("/log"), client_process_id=7)
    assert line == ("csharp-ls", "--solution", "/w/X.slnx")


def test_its_titles_are_kept_english_because_actions_are_found_by_them() -> None:
    assert CSHARP_LS.environment()["DOTNET_CLI_UI_LANGUAGE"] == "en-US"


@pytest.mark.parametrize(
    ("name", "accepted"), [("a.sln", True), ("a.slnx", True), ("a.slnf", True), ("a.csproj", False)]
)
def test_it_opens_solutions_and_filters_but_no_project(name: str, accepted: bool) -> None:
    assert CSHARP_LS.accepts(Path(name)) is accepted


def test_a_report_with_a_code_that_is_a_number_is_read() -> None:
    body = {
        "kind": "full",
        "items": [
            {
                "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
                "message": "m",
                "code": 219,
            }
        ],
    }
    items = decode(msgspec.json.encode(body), DiagnosticReport).items
    assert items is not None
    assert items[0].id == "219"
