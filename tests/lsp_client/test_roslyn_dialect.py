"""Roslyn's lists become leaves that lose nothing, and its log becomes a report that tells no lies."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from lsp_client.dialects import EMBEDDED, ROSLYN
from lsp_client.dialects.base import ActionListing, DocumentView, LoadMessage, LoadTarget
from lsp_client.dialects.common import nearest_project, touching
from lsp_client.dialects.roslyn_listing import read_listing
from lsp_client.loading import LoadWatch
from lsp_client.messages import Diagnostic, Position, Range, decode
from tests.lsp_client.transcripts import exchanges, said

PLACE = Range(Position(3, 4), Position(3, 9))
TARGET = LoadTarget(Path("/w/Two.slnx"), Path("/w"), (Path("/w/Lib/Lib.csproj"), Path("/w/App/App.csproj")))
UNUSED = Diagnostic(PLACE, "The variable 'x' is never used", 2, "CS0168")
STATIC = Diagnostic(PLACE, "Make it static", 3, "CA1822")

GROUP = "roslyn.client.nestedCodeAction"
FIX_ALL = "roslyn.client.fixAllCodeAction"


def item(
    *path: str,
    kind: str | None = "quickfix",
    command: str | None = None,
    nested: Sequence[Mapping[str, object]] | None = None,
    flavors: list[str] | None = None,
    **members: object,
) -> dict[str, object]:
    """One action as the server lists it."""
    data: dict[str, object] = {"UniqueIdentifier": path[-1], "CodeActionPath": list(path), "CustomTags": []}
    if nested is not None:
        data["NestedCodeActions"] = nested
    if flavors is not None:
        data["FixAllFlavors"] = flavors
    action: dict[str, object] = {"title": path[-1], "data": data, **members}
    if kind is not None:
        action["kind"] = kind
    if command is not None:
        action["command"] = {"title": path[-1], "command": command, "arguments": [data]}
    return action


def twin(*path: str, flavors: list[str]) -> dict[str, object]:
    """The "Fix All" entry beside an action."""
    action = item(*path, command=FIX_ALL, flavors=flavors)
    return {**action, "title": f"Fix All: {path[-1]}"}


def listing(
    *items: Mapping[str, object], context: tuple[Diagnostic, ...] | None = (UNUSED, STATIC)
) -> ActionListing:
    return read_listing(msgspec.Raw(json.dumps(items).encode()), PLACE, context)


# --- lists --------------------------------------------------------------------------------------------------


def test_a_plain_action_is_a_leaf_that_goes_back_as_it_came() -> None:
    raw = item("Remove unused variable", isPreferred=True, extra={"kept": [1, 2]})
    (action,) = listing(raw).actions
    assert (action.title, action.title_path) == ("Remove unused variable", ("Remove unused variable",))
    assert (action.kind, action.kind_inferred, action.is_preferred) == ("CodeFix", False, True)
    assert json.loads(bytes(action.payload)) == raw
    assert action.range == PLACE


@pytest.mark.parametrize(
    ("kind", "expected", "inferred"),
    [
        ("quickfix", "CodeFix", False),
        ("quickfix.fancy", "CodeFix", False),
        ("refactor", "Refactoring", False),
        ("refactor.extract", "Refactoring", False),
        ("refactor.inline", "Refactoring", False),
        ("source.organizeImports", "Refactoring", False),
        (None, "Refactoring", True),
        ("somethingNew", "Refactoring", True),
    ],
)
def test_the_kind_is_the_servers_word(kind: str | None, expected: str, inferred: bool) -> None:
    found = listing(item("X", kind=kind))
    assert [(a.kind, a.kind_inferred) for a in found.actions] == [(expected, inferred)]
    assert found.kinds_decided is not inferred


def test_groups_are_unfolded_to_their_leaves_with_all_titles() -> None:
    leaves = [item("Menu", "for 'x'", kind="refactor"), item("Menu", "for all", kind="refactor")]
    found = listing(
        item("Menu", kind="refactor", command=GROUP, nested=leaves), item("Other", kind="refactor")
    )
    assert [a.title_path for a in found.actions] == [("Menu", "for 'x'"), ("Menu", "for all"), ("Other",)]
    assert [json.loads(bytes(a.payload)) for a in found.actions[:2]] == leaves


def test_a_group_in_a_group_is_unfolded_too() -> None:
    inner = item("A", "B", command=GROUP, nested=[item("A", "B", "C")])
    found = listing(item("A", command=GROUP, nested=[inner]))
    assert [a.title_path for a in found.actions] == [("A", "B", "C")]


def test_a_leaf_without_a_kind_has_the_kind_of_its_group() -> None:
    leaf = item("Menu", "leaf", kind=None)
    (action,) = listing(item("Menu", kind="quickfix", command=GROUP, nested=[leaf])).actions
    assert (action.kind, action.kind_inferred) == ("CodeFix", False)


def test_an_empty_group_has_no_leaf() -> None:
    assert listing(item("Menu", command=GROUP, nested=[])).actions == ()


def test_a_fix_all_entry_becomes_the_scopes_of_its_plain_action() -> None:
    flavors = ["Document", "Project", "Solution", "ContainingMember", "ContainingType"]
    both_entries = (item("Make static"), twin("Make static", flavors=flavors))
    (action,) = listing(*both_entries).actions
    assert action.fix_all_scopes == ("Document", "Project", "Solution")
    assert action.fix_all_payload is not None
    assert json.loads(bytes(action.fix_all_payload)) == both_entries[1]


def test_a_fix_all_entry_is_matched_when_its_own_path_has_the_prefix() -> None:
    entry = twin("Make static", flavors=["Project"])
    data = entry["data"]
    assert isinstance(data, dict)
    data["CodeActionPath"] = ["Fix All: Make static"]
    (action,) = listing(item("Make static"), entry).actions
    assert action.fix_all_scopes == ("Project",)


def test_fix_all_entries_inside_a_group_are_folded_too() -> None:
    leaves = [
        item("Generate", "In a new file"),
        twin("Generate", "In a new file", flavors=["Document"]),
        item("Generate", "Nested"),
    ]
    found = listing(item("Generate", command=GROUP, nested=leaves))
    assert [a.fix_all_scopes for a in found.actions] == [("Document",), ()]


def test_what_silences_a_diagnostic_or_sets_its_severity_has_no_fix_all_whatever_the_server_says() -> None:
    paths = [
        ("Suppress or configure issues", "Suppress CA1822", "in Source"),
        ("Suppress CS0168", "in Source"),
        ("Configure IDE0008 code style", "true"),
        ("Configure severity for all analyzers", "None"),
        ("Configure the client",),
    ]
    leaves = [leaf for path in paths for leaf in (item(*path), twin(*path, flavors=["Solution"]))]
    found = listing(item("Menu", command=GROUP, nested=leaves))
    assert [a.fix_all_scopes for a in found.actions] == [(), (), (), (), ("Solution",)]
    assert [a.fix_all_payload is None for a in found.actions] == [True, True, True, True, False]


def test_a_fix_names_the_diagnostics_that_came_back_on_it() -> None:
    back = [
        {
            "range": {"start": {"line": 3, "character": 4}, "end": {"line": 3, "character": 9}},
            "message": "m",
            "code": "CS0168",
        }
    ]
    found = listing(item("Remove", diagnostics=back))
    assert found.actions[0].diagnostics == (("CS0168", "m"),)
    assert found.diagnostics_known


def test_a_fix_of_something_that_was_not_pulled_has_unknown_diagnostics() -> None:
    found = listing(item("Use explicit type", diagnostics=[]))
    assert found.actions[0].diagnostics is None
    assert not found.diagnostics_known


def test_the_place_of_a_fix_is_that_of_its_first_diagnostic_and_a_refactoring_has_none() -> None:
    told = {
        "range": {"start": {"line": 8, "character": 1}, "end": {"line": 8, "character": 5}},
        "message": "Unused",
    }
    leaf = item("Suppress", "Suppress CS0168")
    found = listing(
        item("Remove", diagnostics=[told]), item("Extract", kind="refactor", diagnostics=[told]), leaf
    )
    places = [action.place for action in found.actions]
    assert places == [Range(Position(8, 1), Position(8, 5)), None, UNUSED.range]
    assert all(action.range == PLACE for action in found.actions)


def test_without_pulled_diagnostics_none_are_known() -> None:
    assert listing(item("Remove"), context=None).actions[0].diagnostics is None


def test_a_refactoring_has_no_diagnostics_and_that_is_known() -> None:
    found = listing(item("Extract method", kind="refactor.extract"))
    assert (found.actions[0].diagnostics, found.diagnostics_known) == ((), True)


@pytest.mark.parametrize(
    ("menu", "expected"),
    [
        ("Suppress CA1822", (("CA1822", "Make it static"),)),
        ("Configure CA1822 severity", (("CA1822", "Make it static"),)),
        ("Configure IDE0008 code style", None),  # not among the pulled ones
        ("Configure severity for all 'Style' analyzers", None),
    ],
)
def test_a_suppression_names_the_diagnostic_of_its_menu(menu: str, expected: object) -> None:
    leaf = item("Suppress or configure issues", menu, "None")
    (action,) = listing(item("Suppress or configure issues", command=GROUP, nested=[leaf])).actions
    assert action.diagnostics == expected


def test_of_two_actions_with_one_path_the_first_is_listed_as_ambiguous() -> None:
    found = listing(item("Implement interface"), item("Implement interface"), item("Other"))
    assert [(a.title, a.ambiguous) for a in found.actions] == [
        ("Implement interface", True),
        ("Other", False),
    ]
    assert (found.left_out, found.omitted[0].title) == (1, "Implement interface")


def test_actions_that_cannot_be_used_are_left_out_with_the_reason() -> None:
    bare = {"title": "Run it", "command": "some.command", "arguments": []}
    disabled = item("Extract", kind="refactor", disabled={"reason": "select an expression"})
    found = listing(item("Open", command="other.command"), bare, disabled)
    assert found.actions == ()
    assert [a.needs for a in found.omitted] == ["command", "command", "select an expression"]


@pytest.mark.parametrize("raw", [b"null", b"[]"])
def test_no_list_is_an_empty_list(raw: bytes) -> None:
    assert read_listing(msgspec.Raw(raw), PLACE, ()) == ActionListing(())


def test_each_recorded_list_is_read_without_a_loss() -> None:
    for exchange in exchanges("roslyn-dialect-two-projects.jsonl", "textDocument/codeAction"):
        items = json.loads(bytes(exchange.result))
        found = read_listing(exchange.result, PLACE, ())
        expected = [path for path, command in _walk(items) if command != FIX_ALL]
        assert [list(a.title_path) for a in (*found.actions, *found.omitted)] == expected
        assert not any(a.title.startswith("Fix All: ") for a in found.actions)
        twins = {tuple(path) for path, command in _walk(items) if command == FIX_ALL}
        twins = {path for path in twins if path[0] != "Suppress or configure issues"}
        assert twins == {a.title_path for a in found.actions if a.fix_all_scopes}
        assert found.left_out == 0
        assert found.kinds_decided


def _walk(items: list[dict[str, object]]) -> list[tuple[list[str], str | None]]:
    """The path and command of each recorded entry that is no group."""
    found: list[tuple[list[str], str | None]] = []
    for entry in items:
        data, command = entry["data"], entry.get("command")
        assert isinstance(data, dict)
        nested = data.get("NestedCodeActions")
        if nested:
            found += _walk(nested)
        else:
            found.append((data["CodeActionPath"], command["command"] if isinstance(command, dict) else None))
    return found


# --- what it says about loads -------------------------------------------------------------------------------


def hear(watch: LoadWatch, method: str, params: object) -> None:
    watch.take(ROSLYN.hear(method, msgspec.Raw(json.dumps(params).encode()), TARGET))


def log(watch: LoadWatch, text: str, kind: int = 3) -> None:
    hear(watch, "window/logMessage", {"type": kind, "message": text})


def test_the_recorded_load_is_understood() -> None:
    watch = LoadWatch()
    for method, params in said("roslyn-dialect-two-projects.jsonl"):
        watch.take(ROSLYN.hear(method, params, TARGET))
    assert (watch.ended, watch.reloads, watch.failure) == (1, 3, None)
    assert [m.severity for m in watch.messages] == ["info", "info"]
    assert {m.project.name for m in watch.messages if m.project} == {"Lib.csproj", "App.csproj"}
    assert watch.version == "1.0.0.0 (roslyn-dialect stand-in on Roslyn 5.12.0)"


@pytest.mark.parametrize("success_first", [True, False])
def test_an_error_line_wins_whatever_the_order(success_first: bool) -> None:
    watch = LoadWatch()
    lines = [
        ("[LanguageServerProjectLoader] Successfully completed load of /w/Lib/Lib.csproj", 3),
        ("[LanguageServerProjectLoader] Error while loading /w/Lib/Lib.csproj: broken", 1),
    ]
    for text, kind in lines if success_first else reversed(lines):
        log(watch, text, kind)
    hear(watch, "workspace/projectInitializationComplete", None)
    assert watch.messages == (LoadMessage("error", "broken", Path("/w/Lib/Lib.csproj")),)


def test_a_reload_replaces_what_was_said_about_its_projects() -> None:
    watch = LoadWatch()
    log(watch, "[LanguageServerProjectLoader] Error while loading /w/Lib/Lib.csproj: broken", 1)
    log(watch, "[LanguageServerProjectLoader] Error while loading /w/App/App.csproj: broken too", 1)
    hear(watch, "workspace/projectInitializationComplete", [])
    log(watch, "[LanguageServerProjectLoader] Successfully completed load of /w/Lib/Lib.csproj")
    log(watch, "[LanguageServerProjectLoader] Completed (re)load of 1 project(s) in 00:00:01")
    assert [(m.severity, m.project and m.project.name) for m in watch.messages] == [
        ("error", "App.csproj"),
        ("info", "Lib.csproj"),
    ]


def test_an_error_of_a_restore_is_no_failure_of_the_load() -> None:
    watch = LoadWatch()
    log(watch, "[Restore] /w/Two.slnx: error NU1101: no such package", 1)
    assert watch.failure is None
    assert [m.severity for m in watch.messages] == ["error"]


def test_an_error_about_opening_the_solution_is_the_failure() -> None:
    watch = LoadWatch()
    log(watch, "[Server] [solution/open] System.IO.IOException: gone\n   at Some.Place()\n", 1)
    assert watch.failure == "System.IO.IOException: gone"


@pytest.mark.parametrize("params", [None, [], {}, "text", {"message": 5}, {"type": "x"}])
def test_odd_notifications_mean_nothing(params: object) -> None:
    watch = LoadWatch()
    for method in (
        "window/logMessage",
        "window/_roslyn_showToast",
        "$/progress",
        "window/showMessage",
        "any/thing",
    ):
        hear(watch, method, params)
    assert (watch.ended, watch.failure) == (0, None)


def test_endless_complaints_are_cut() -> None:
    watch = LoadWatch()
    for number in range(3000):
        log(watch, f"[LanguageServerProjectLoader] Warning while loading /w/{number}.csproj: x", 2)
    assert len(watch.messages) == 1000


# --- what is told to it -------------------------------------------------------------------------------------


def test_the_command_line_is_the_documented_one() -> None:
    line = ROSLYN.command_line(
        ("dotnet", "/s/x.dll"), TARGET, log_directory=Path("/log"), client_process_id=7
    )
    assert line == (
        "dotnet", "/s/x.dll", "--stdio", "--logLevel", "Information", "--extensionLogDirectory", "/log",
        "--telemetryLevel", "off", "--clientProcessId", "7",
    )  # fmt: skip


def test_configuration_is_null_for_what_is_unknown_and_never_an_object() -> None:
    sections = [
        "csharp|code_lens.dotnet_enable_references_code_lens",
        "razor.format.attribute_indent_style",
        "",
    ]
    assert [ROSLYN.configuration(section, TARGET) for section in sections] == ["false", None, None]


@pytest.mark.parametrize(("allowed", "answer"), [(True, "true"), (False, "false")])
def test_the_server_restores_only_when_it_may(allowed: bool, answer: str) -> None:
    target = LoadTarget(TARGET.path, TARGET.root, automatic_restore=allowed)
    assert ROSLYN.configuration("projects.dotnet_enable_automatic_restore", target) == answer


def test_compiler_diagnostics_cover_the_whole_solution() -> None:
    section = "csharp|background_analysis.dotnet_compiler_diagnostics_scope"
    assert ROSLYN.configuration(section, TARGET) == "fullSolution"


def test_the_capabilities_hold_what_the_server_decides_by() -> None:
    capabilities = decode(msgspec.json.encode(ROSLYN.capabilities()), dict[str, dict[str, object]])
    assert capabilities["general"] == {"positionEncodings": ["utf-16"]}
    edit = capabilities["workspace"]["workspaceEdit"]
    assert isinstance(edit, dict)
    assert edit["resourceOperations"] == ["create", "rename", "delete"]
    action = capabilities["textDocument"]["codeAction"]
    assert isinstance(action, dict)
    assert (action["dataSupport"], action["resolveSupport"]) == (True, {"properties": ["edit"]})
    assert "_vs_supportsVisualStudioExtensions" not in capabilities


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("a.sln", True),
        ("a.slnx", True),
        ("a.SLNF", True),
        ("a.csproj", True),
        ("a.vbproj", False),
        ("a.cs", False),
    ],
)
def test_it_opens_solutions_filters_and_projects(name: str, accepted: bool) -> None:
    assert ROSLYN.accepts(Path(name)) is accepted


def test_the_embedded_server_claims_no_meaning() -> None:
    assert (EMBEDDED.syntax_only, EMBEDDED.has_diagnostics, EMBEDDED.limits) == (
        True,
        False,
        ("syntax only",),
    )
    assert EMBEDDED.command_line(("py",), TARGET, log_directory=Path("/l"), client_process_id=3) == (
        "py", "--stdio", "--clientProcessId", "3",
    )  # fmt: skip


# --- small rules --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "touches"),
    [
        ((3, 0), (3, 4), True),
        ((3, 9), (4, 0), True),
        ((3, 0), (3, 3), False),
        ((3, 10), (3, 12), False),
        ((0, 0), (9, 0), True),
    ],
)
def test_a_diagnostic_touches_a_place_when_they_share_a_boundary(
    start: tuple[int, int], end: tuple[int, int], touches: bool
) -> None:
    diagnostic = Diagnostic(Range(Position(*start), Position(*end)))
    assert bool(touching(PLACE, [diagnostic])) is touches


@pytest.mark.parametrize(
    ("path", "project"),
    [
        ("/w/Lib/A/B.cs", "/w/Lib/Lib.csproj"),
        ("/w/App/P.cs", "/w/App/App.csproj"),
        ("/w/Loose.cs", None),
        ("/x/Y.cs", None),
    ],
)
def test_a_file_belongs_to_the_project_of_the_nearest_directory(path: str, project: str | None) -> None:
    assert nearest_project(Path(path), TARGET) == (None if project is None else Path(project))


def test_an_empty_view_is_no_difference() -> None:
    assert DocumentView() == DocumentView({}, frozenset(), frozenset())
