"""A patch of bytes gives, in the hands of `git apply` and of `patch`, the tree that the commit gives."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.transactions.test_walks import Step, Walk
from tests.transactions.worlds import picture, staged, write
from transactions.baseline import Baseline
from transactions.commit import commit
from transactions.overlay import Overlay
from transactions.patch import git_patch

TOOL_WAIT = 60.0
"""Seconds for one run of a tool that takes milliseconds."""

TOOLS: Mapping[str, tuple[str, ...]] = {
    "git": ("git", "apply", "-p1", "--whitespace=nowarn", "-"),
    "patch": ("patch", "-p1", "--binary", "--force", "--silent", "--no-backup-if-mismatch"),
}
QUIET = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "LC_ALL": "C",
    "GIT_CEILING_DIRECTORIES": "/",
}

Tree = Mapping[str, tuple[bool, bytes]]
"""What git knows of a tree: whether a file may be run, and its bytes."""


def tree_of(root: Path) -> Tree:
    found = {}
    for name, (mode, content) in picture(root).items():
        if isinstance(content, bytes) and (root / name).is_file():
            found[name] = bool(mode & stat.S_IXUSR), content
    return found


def applied(tool: str, before: Path, patch: bytes) -> Tree:
    """The tree after a tool has taken the patch."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    tree = before.with_name(f"{before.name}-{tool}")
    shutil.copytree(before, tree, symlinks=True)
    if patch:
        done = subprocess.run(
            TOOLS[tool],
            cwd=tree,
            input=patch,
            env={**os.environ, **QUIET},
            capture_output=True,
            timeout=TOOL_WAIT,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace") + patch.decode(
            "latin-1"
        )
    return tree_of(tree)


def check(
    root: Path, overlay: Overlay, baseline: Baseline, tools: tuple[str, ...] = ("git", "patch")
) -> bytes:
    """Both tools make what the commit makes; the patch."""
    changes = overlay.changes()
    patch = git_patch(changes, baseline)
    before = root.with_name(f"{root.name}-before")
    shutil.copytree(root, before, symlinks=True)
    commit(root, changes, baseline)
    expected = tree_of(root)
    for tool in tools:
        assert applied(tool, before, patch) == expected, (tool, patch)
    return patch


def patched(
    root: Path, files: Mapping[str, bytes], steps: Mapping[str, str | tuple[str, str] | None]
) -> bytes:
    """The patch of steps as ``worlds.staged`` takes them, after both tools have proved it."""
    write(root, files)
    baseline = Baseline(root)
    return check(root, staged(baseline, steps), baseline)


@pytest.fixture
def root(new_root: Callable[[], Path]) -> Path:
    return new_root()


def test_nothing_staged_is_an_empty_patch(root: Path) -> None:
    assert patched(root, {"A.cs": b"a\n"}, {}) == b""


def test_an_edit_is_a_hunk_with_context(root: Path) -> None:
    before = "".join(f"{number}\n" for number in range(1, 21))
    patch = patched(
        root, {"A.cs": before.encode()}, {"A.cs": before.replace("10\n", "ten\n").replace("2\n", "two\n", 1)}
    )

    lines = patch.decode().splitlines()
    assert lines[0] == "diff --git a/A.cs b/A.cs"
    assert lines[2:4] == ["--- a/A.cs", "+++ b/A.cs"]
    assert [line for line in lines if line.startswith("@@")] == [
        "@@ -1,5 +1,5 @@",
        "@@ -7,7 +7,7 @@",
        "@@ -9,10 +9,10 @@",
    ][:2]
    assert "-10" in lines
    assert "+ten" in lines


def test_the_hunk_of_a_missing_last_line_end_says_so_on_each_side(root: Path) -> None:
    patch = patched(
        root,
        {"A.cs": b"a\nb", "B.cs": b"a\nb\n", "C.cs": b"a\nb"},
        {"A.cs": "a\nb\n", "B.cs": "a\nb", "C.cs": "x\nb"},
    )

    assert patch.count(b"\\ No newline at end of file\n") == 3


def test_line_ends_and_wide_encodings_are_bytes_like_others(root: Path) -> None:
    wide = b"\xff\xfe" + "ein\r\nzwei \u0a0a\r\ndrei\n".encode("utf-16-le")
    patch = patched(
        root,
        {"Wide.cs": wide, "Mixed.cs": b"a\r\nb\rc\n\x85d\n", "Legacy.cs": b"legacy \xe4\n"},
        {
            "Wide.cs": "ein\r\nzwo \u0a0a\r\ndrei\n",
            "Mixed.cs": "a\r\nB\rc\n\u2026d\n",
            "Legacy.cs": "légacy ä\n",
        },
    )

    assert b"+l\xe9gacy \xe4\n" in patch
    assert b"-a\r\n" not in patch


def test_a_move_says_where_from_and_an_edit_with_it_has_its_hunk(root: Path) -> None:
    patch = patched(
        root,
        {"A.cs": b"one\ntwo\n", "B.cs": b"same\n"},
        {"A.cs": None, "Sub/A2.cs": ("A.cs", "one\n2\n"), "B.cs": None, "Sub/B.cs": ("B.cs", "same\n")},
    )

    assert b"rename from A.cs\nrename to Sub/A2.cs\n" in patch
    assert b"similarity index 100%\nrename from B.cs\nrename to Sub/B.cs\n" in patch
    assert patch.count(b"@@ ") == 1


def test_empty_files_come_and_go_and_become_empty(root: Path) -> None:
    patch = patched(
        root,
        {"Gone.cs": b"", "Emptied.cs": b"text\n", "Filled.cs": b"", "Moved.cs": b""},
        {
            "Gone.cs": None,
            "New.cs": "",
            "Emptied.cs": "",
            "Filled.cs": "text\n",
            "Moved.cs": None,
            "To.cs": ("Moved.cs", ""),
        },
    )

    assert b"new file mode 100644\n" in patch
    assert b"deleted file mode 100644\n" in patch


def test_names_that_change_hands_are_patched_each_for_itself_with_their_modes(root: Path) -> None:
    write(root, {"A.cs": b"class A { }\n", "B.cs": b"class B { }\n", "C.cs": b"c\n"})
    (root / "A.cs").chmod(0o755)
    baseline = Baseline(root)
    steps: Mapping[str, str | tuple[str, str] | None] = {
        "A.cs": ("B.cs", "class B { }\n"),
        "B.cs": ("A.cs", "class A { }\n"),
        "C.cs": None,
        "D.cs": ("C.cs", "c\n"),
    }
    patch = check(root, staged(baseline, steps), baseline)

    assert patch.count(b"rename from") == 1
    assert b"old mode 100755\nnew mode 100644\n" in patch
    assert b"old mode 100644\nnew mode 100755\n" in patch


def test_a_chain_moves_each_file_one_name_on(root: Path) -> None:
    patched(
        root,
        {"A.cs": b"a\n", "B.cs": b"b\n"},
        {"A.cs": None, "B.cs": ("A.cs", "a\n"), "C.cs": ("B.cs", "b\n")},
    )


def test_a_case_only_move_comes_out_right(root: Path) -> None:
    patched(root, {"name.cs": b"a\n"}, {"name.cs": None, "Name.cs": ("name.cs", "a\n")})


def test_a_directory_in_place_of_a_file_is_for_git_alone(root: Path) -> None:
    write(root, {"X.cs": b"x\n"})
    baseline = Baseline(root)
    patch = check(root, staged(baseline, {"X.cs": None, "X.cs/Y.cs": "y\n"}), baseline, ("git",))
    assert patch.index(b"deleted file") < patch.index(b"new file")


ODD_NAMES = (
    "with space.cs",
    'quote".cs',
    "back\\slash.cs",
    "tab\t.cs",
    "%20.cs",
    "dot..cs",
    "Ü.cs",
    "U\u0308.cs",
    "\udcff\udcfe.cs",
    "-dash.cs",
    "a b/c d.cs",
    " lead.cs",
)


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_odd_names_are_edited_made_removed_and_moved(root: Path, name: str) -> None:
    patched(
        root,
        {name: b"one\n", "old/" + name: b"two\n", "mv/" + name: b"three\n"},
        {
            name: "1\n",
            "new/" + name: "4\n",
            "old/" + name: None,
            "mv/" + name: None,
            "to/" + name: ("mv/" + name, "three\n"),
        },
    )


def test_a_line_end_in_a_name_is_for_git_alone(root: Path) -> None:
    name = "two\nlines.cs"
    write(root, {name: b"one\n", "mv" + name: b"two\n"})
    baseline = Baseline(root)
    steps: Mapping[str, str | tuple[str, str] | None] = {
        name: "1\n",
        "mv" + name: None,
        "to" + name: ("mv" + name, "two\n"),
    }
    assert b'"a/two\\nlines.cs"' in check(root, staged(baseline, steps), baseline, ("git",))


NAMES = ("A.cs", "a b.cs", "Sub/C.cs", "Sub/Ü.cs", 'q"\t.cs')
LINES = st.lists(st.sampled_from(["one", "two", "", "ä", "{", "}", "\u0a0a"]), max_size=12)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])
MARKS = {
    "utf-8": b"",
    "utf-8-sig": b"",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
    "utf-32-le": b"\xff\xfe\0\0",
}


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """A file in some encoding, with line ends of its own choice and maybe none at its end."""
    text = "".join(line + draw(ENDS) for line in draw(LINES)) + draw(st.sampled_from(["", "end"]))
    encoding = draw(st.sampled_from(sorted(MARKS)))
    return MARKS[encoding] + text.encode(encoding)


STEPS = st.builds(
    Step,
    st.sampled_from(["edit", "edit", "edit", "insert", "create", "rename", "rename", "delete"]),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.integers(0, 60),
    st.integers(0, 12),
    st.sampled_from(["", "x", "\n", "y\r\nz", "é", "\U0001f642", "one\ntwo\n"]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(NAMES), contents(), max_size=4),
    st.sets(st.sampled_from(NAMES)),
    st.lists(STEPS, max_size=8),
)
def test_whatever_is_staged_both_tools_make_what_the_commit_makes(
    new_root: Callable[[], Path], disk: dict[str, bytes], programs: set[str], steps: list[Step]
) -> None:
    root = new_root() / "tree"
    root.mkdir()
    walk = Walk(root, disk)
    for name in programs & disk.keys():
        (root / name).chmod(0o755)
    walk.begin()
    for step in steps:
        walk.stage(step)
    check(root, walk.transaction.current, walk.baseline)
