"""Actions in Roslyn's shape."""

from pathlib import Path

from bridge.embedded_server import wire
from bridge.embedded_server.actions.base import NewFile, Outcome
from bridge.embedded_server.edits import Edit
from bridge.embedded_server.syntax import Source
from tests.bridge.embedded_server.checks import place

URI = "file:///nowhere/File.cs"
RANGE: wire.Json = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
UNSORTED = "using B;<|>\nusing A;\n"
BARE = "class C\n{\n    void M()\n    {\n        if (a)<|> b();\n        if (c) d();\n    }\n}\n"


def data(title: str, tag: str, path: list[str], **more: object) -> wire.Json:
    return {
        "UniqueIdentifier": title,
        "CustomTags": [tag],
        "Range": RANGE,
        "TextDocument": {"uri": URI},
        "CodeActionPath": path,
        **more,
    }


def test_a_plain_action_and_its_fix_all_are_two_items_with_one_path() -> None:
    flavors = ["Document", "Project", "Solution"]
    twin = data("Fix All: Sort usings", "SortUsings", ["Sort usings"], FixAllFlavors=flavors)
    assert wire.listing(wire.actions_at(place(UNSORTED)), URI, RANGE) == [
        {
            "title": "Sort usings",
            "kind": "refactor",
            "data": data("Sort usings", "SortUsings", ["Sort usings"]),
        },
        {
            "title": "Fix All: Sort usings",
            "kind": "refactor",
            "data": twin,
            "command": {
                "title": "Fix All: Sort usings",
                "command": "roslyn.client.fixAllCodeAction",
                "arguments": [twin],
            },
        },
    ]


def test_a_group_carries_its_leaves_flat_and_has_a_command() -> None:
    (group,) = wire.listing(wire.actions_at(place(BARE)), URI, RANGE)
    leaf = "To this 'if' statement"
    twin = data(
        f"Fix All: {leaf}",
        "AddBraces",
        ["Add braces", leaf],
        FixAllFlavors=["Document", "Project", "Solution"],
    )
    everywhere = "To every statement in the document"
    nested = [
        {"title": leaf, "kind": "refactor", "data": data(leaf, "AddBraces", ["Add braces", leaf])},
        {
            "title": f"Fix All: {leaf}",
            "kind": "refactor",
            "data": twin,
            "command": {
                "title": f"Fix All: {leaf}",
                "command": "roslyn.client.fixAllCodeAction",
                "arguments": [twin],
            },
        },
        {
            "title": everywhere,
            "kind": "refactor",
            "data": data(everywhere, "AddBraces", ["Add braces", everywhere]),
        },
    ]
    whole = data("Add braces", "AddBraces", ["Add braces"], NestedCodeActions=nested)
    assert group == {
        "title": "Add braces",
        "kind": "refactor",
        "data": whole,
        "command": {"title": "Add braces", "command": "roslyn.client.nestedCodeAction", "arguments": [whole]},
    }


def test_titles_lead_to_the_action_or_nowhere() -> None:
    actions = wire.actions_at(place(BARE))
    found = wire.find(actions, ["Add braces", "To this 'if' statement"])
    assert found is not None
    assert found.run is not None
    assert wire.find(actions, ["Add braces", "Nothing"]) is None
    assert wire.find(actions, ["Sort usings"]) is None
    assert wire.find(actions, []) is None


def test_a_new_file_is_created_then_filled_before_the_old_one_changes() -> None:
    path, source = Path("/nowhere/Ä b.cs"), Source("😀 class A { }")
    outcome = Outcome((Edit(2, 7, "struct"),), (NewFile(Path("/nowhere/New.cs"), "class N { }"),))
    assert wire.workspace_edit(path, source, outcome, ["create"]) == {
        "documentChanges": [
            {"kind": "create", "uri": "file:///nowhere/New.cs"},
            {
                "textDocument": {"uri": "file:///nowhere/New.cs", "version": None},
                "edits": [{"range": RANGE, "newText": "class N { }"}],
            },
            {
                "textDocument": {"uri": "file:///nowhere/%C3%84%20b.cs", "version": None},
                "edits": [
                    {
                        "range": {"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 8}},
                        "newText": "struct",
                    }
                ],
            },
        ]
    }


def test_without_leave_to_create_files_the_edit_is_empty() -> None:
    outcome = Outcome((Edit(0, 1, "x"),), (NewFile(Path("/nowhere/New.cs"), ""),))
    assert wire.workspace_edit(Path("/nowhere/A.cs"), Source("a"), outcome, ["rename"]) == {
        "documentChanges": []
    }


def test_a_change_that_breaks_the_syntax_is_noticed() -> None:
    source = Source("class A { }")
    assert wire.is_intact(source, Outcome(()), "class B { }")
    assert not wire.is_intact(source, Outcome(()), "class B { ")
    assert not wire.is_intact(source, Outcome((), (NewFile(Path("/nowhere/N.cs"), "class {"),)), source.text)
