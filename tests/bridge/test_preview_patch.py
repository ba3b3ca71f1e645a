"""The patch of a preview, and what its diff says of last lines without an end."""

import base64
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from anyio import from_thread

from tests.bridge.agent import APPLE as APPLE_TEXT
from tests.bridge.agent import Scene, opened
from tests.bridge.promises import keeps
from tests.bridge.staged_texts import stage_texts
from transactions import diff

pytestmark = pytest.mark.anyio

APPLE, PEAR, PROGRAM = "Core/Apple.cs", "Core/Pear.cs", "App/Program.cs"
TOOL_WAIT = 60.0


def sources(root: Path) -> dict[str, bytes]:
    return {os.fspath(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*.cs"))}


async def applied_and_committed(made: Scene, patch: bytes) -> None:
    """``git apply`` on a copy of the tree makes what the commit makes."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    copy = made.root.parent / "copy"
    shutil.copytree(made.root, copy)
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=copy,
        input=patch,
        timeout=TOOL_WAIT,
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    await made.agent.commit()
    assert sources(copy) == sources(made.root)


@keeps("preview.diff")
async def test_differences_are_made_in_a_worker_thread_so_that_large_ones_stop_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop takes a call from the middle of both, which it could not if they ran in it."""
    met: list[str] = []

    def met_by_the_loop(name: str) -> None:
        usual = getattr(diff, name)

        def differ(*arguments: object) -> object:
            from_thread.run_sync(met.append, name)
            return usual(*arguments)

        monkeypatch.setattr(diff, name, differ)

    async with opened(tmp_path) as made:
        await made.agent.start()
        before = "".join(f"// {number}\n" for number in range(100_000))
        await stage_texts(made, {APPLE: before})
        for name in ("summary", "hunks"):
            met_by_the_loop(name)
        preview = await made.agent.preview(document={"path": APPLE}, includeDiff=True)
        assert sorted(met) == ["hunks", "summary"]
        assert preview.diff is not None
        assert sum(hunk.updated_line_count for hunk in preview.diff.hunks) == 100_000


@keeps("preview.patch")
async def test_a_patch_is_given_on_demand_and_makes_what_the_commit_makes(tmp_path: Path) -> None:
    async with opened(tmp_path, line_endings="keep") as made:
        await made.agent.start()
        await stage_texts(
            made, {APPLE: "// ü\r\n" + APPLE_TEXT, "Core/Fig.cs": "class Fig { }", PROGRAM: None}
        )
        assert (await made.agent.preview()).patch is None
        patch = (await made.agent.preview(includePatch=True)).patch
        assert patch is not None
        assert patch.encoding == "utf-8"
        assert patch.content is not None
        assert "+// ü\r\n" in patch.content
        data = patch.content.encode()
        assert len(data) == patch.byte_count
        await applied_and_committed(made, data)


@keeps("preview.patch")
async def test_a_patch_that_is_no_utf_8_comes_in_base64(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.file(PEAR).write_bytes(b"\xff\xfe" + "class Pear { }\r\n".encode("utf-16-le"))
        await made.agent.status()
        await made.agent.start()
        made.server.seen = lambda path: "class Pear { }\r\n" if path.name == "Pear.cs" else APPLE_TEXT  # type: ignore[method-assign]  # it reads UTF-8 only
        await stage_texts(made, {PEAR: "class Quince { }\r\n"})
        patch = (await made.agent.preview(includePatch=True)).patch
        assert patch is not None
        assert patch.encoding == "base64"
        await applied_and_committed(made, base64.b64decode(patch.content or ""))


async def test_a_patch_that_is_too_large_is_told_by_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.tools.transactions.LARGEST_PATCH", 10)
    async with opened(tmp_path) as made:
        await made.agent.start()
        await made.agent.stage_first(APPLE)
        patch = (await made.agent.preview(includePatch=True)).patch
        assert patch is not None
        assert patch.content is None
        assert patch.byte_count > 10


async def test_a_hunk_says_when_a_last_line_has_no_end(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        await stage_texts(made, {APPLE: "one line", PEAR: "one\n"})
        for name, lacks in ((APPLE, True), (PEAR, None)):
            diff = (await made.agent.preview(document={"path": name}, includeDiff=True)).diff
            assert diff is not None
            (hunk,) = diff.hunks
            assert (hunk.original_lacks_final_newline, hunk.updated_lacks_final_newline) == (None, lacks)
