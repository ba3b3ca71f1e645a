"""A server with a view of its own: what is staged is there for it alone, and all of it goes with the server."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from lsp_client import staged_tree
from lsp_client.scratch import sweep
from lsp_client.staged_tree import TreeLost
from tests.lsp_client.inside import BOUND, inside, views
from tests.lsp_client.test_process import Watched

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces and overlays are Linux'"),
]

__all__ = ["views"]  # a fixture, used by its name

FILES = {"App.csproj": "<Project/>", "A.cs": "class A;", "Deep/B.cs": "class B;", "obj/real.json": "{}"}


@pytest.fixture
def root(tmp_path: Path, views: None) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "Läden: a,b" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "Läden: a,b"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def on_disk(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in root.rglob("*")
        if path.is_file()
    }


# --- what is seen -----------------------------------------------------------------------------------------


async def test_created_and_deleted_files_are_seen_inside_and_the_disk_stays_as_it_was(
    root: Path, state: Path
) -> None:
    async with inside(root, state) as made:
        assert made.refused is None
        assert await made.files() == FILES
        events = await made.show({"New.cs": "class N;", "Far/Away/M.cs": "class M;"}, gone=("A.cs",))
        assert [(event.path.name, event.kind) for event in events] == [
            ("A.cs", "deleted"),
            ("M.cs", "created"),
            ("New.cs", "created"),
        ]
        seen = await made.files()
        assert seen == {k: v for k, v in FILES.items() if k != "A.cs"} | {
            "New.cs": "class N;",
            "Far/Away/M.cs": "class M;",
        }
        assert on_disk(root) == FILES
        assert sorted(path.name for path in root.iterdir()) == ["A.cs", "App.csproj", "Deep", "obj"]


async def test_any_walk_over_stages_ends_in_the_tree_that_was_asked_for_last(root: Path, state: Path) -> None:
    rng = random.Random(7)
    names = ["New.cs", "Deep/C.cs", "Deep/Deeper/D.cs", "Other/E.cs", "Other/More/F.cs"]
    async with inside(root, state) as made:
        for step in range(60):
            created = {name: f"{name} {step % 3}" for name in names if rng.random() < 0.4}
            gone = tuple(name for name in ("A.cs", "Deep/B.cs") if rng.random() < 0.4)
            await made.show(created, gone)
            assert made.tree.refused == {}
            expected = {name: text for name, text in FILES.items() if name not in gone}
            assert set(await made.files()) == expected.keys() | created.keys()
        await made.show()
        assert await made.files() == FILES
        assert await made.ask("sorted(os.listdir('.'))") == sorted(path.name for path in root.iterdir())
    assert on_disk(root) == FILES


async def test_what_the_server_writes_or_deletes_itself_stays_in_its_view(root: Path, state: Path) -> None:
    async with inside(root, state) as made:
        await made.ask("write('obj/made.json', '1'), write('A.cs', 'changed'), os.unlink('Deep/B.cs')")
        assert (await made.files())["A.cs"] == "changed"
        assert on_disk(root) == FILES


async def test_a_fresh_view_shows_the_disk_as_it_is_and_keeps_what_only_the_server_has_made(
    root: Path, state: Path
) -> None:
    async with inside(root, state) as made:
        await made.show({}, gone=("Deep/B.cs",))
        await made.show({"New.cs": "staged", "Dropped.cs": "staged"})
        for name, text in {
            "obj/Debug/made.cs": "made",
            "obj/real.json": "copy",
            "App.csproj": "copy",
        }.items():
            await made.ask(f"write({name!r}, {text!r})")
        # As a commit does it, and a checkout: files are replaced, not written.
        for name, text in {"A.cs": "committed", "New.cs": "staged", "obj/real.json": "{1}"}.items():
            (root / "incoming").write_text(text, encoding="utf-8")
            (root / "incoming").replace(root / name)
        (root / "Deep/B.cs").unlink()
        (root / "App.csproj").unlink()
        await made.tree.renew()
        assert await made.files() == {
            "A.cs": "committed",
            "New.cs": "staged",
            "obj/real.json": "{1}",
            "obj/Debug/made.cs": "made",
        }
        assert made.tree.created == made.tree.gone == frozenset()
        await made.ask("write('obj/Debug/made.cs', 'made again')")
        await made.tree.renew()
        assert (await made.files())["obj/Debug/made.cs"] == "made again"
        await made.ask("os.unlink('obj/Debug/made.cs')")
        await made.tree.renew()
        assert "obj/Debug/made.cs" not in await made.files()
        await made.show({"Again.cs": ""})
        assert "Again.cs" in await made.files()
        assert "Again.cs" not in on_disk(root)


async def test_after_many_changes_of_the_disk_the_newest_view_is_the_one_that_is_seen(
    root: Path, state: Path
) -> None:
    async with inside(root, state) as made:
        for number in range(50):
            (root / "A.cs").write_text(str(number), encoding="utf-8")
            await made.tree.renew()
        assert (await made.files())["A.cs"] == "49"


NAMES = [
    "a b",
    "Läden",
    "x,y=z",
    "a:b",
    "back\\slash",
    "quo'te\"",
    "lowerdir=,upperdir=",
    "\\040",
    "new\nline",
    "-o",
    "%s #",
]


async def test_no_character_in_a_path_means_anything_to_the_mount(tmp_path: Path, views: None) -> None:
    parts = Path(*NAMES)
    root = tmp_path / "roots" / parts
    root.mkdir(parents=True)
    (root / "A.cs").write_text("class A;", encoding="utf-8")
    async with inside(root, tmp_path / "states" / parts) as made:
        assert made.refused is None
        await made.show({"N,e:w\\ ü.cs": "n"}, gone=("A.cs",))
        await made.tree.renew()
        await made.show({"N,e:w\\ ü.cs": "n"})
        assert await made.files() == {"A.cs": "class A;", "N,e:w\\ ü.cs": "n"}
    assert [path.name for path in root.iterdir()] == ["A.cs"]


@pytest.mark.parametrize("how", ["moved away", "removed"])
async def test_a_folder_that_was_replaced_is_noticed_and_nothing_is_written_in_its_successor(
    root: Path, state: Path, how: str
) -> None:
    async with inside(root, state) as made:
        await made.show({"New.cs": "x"})
        if how == "removed":
            shutil.rmtree(root)
        else:
            root.rename(root.with_name("elsewhere"))
        with pytest.raises(TreeLost, match="the workspace's folder"):
            await made.tree.renew()
        root.mkdir()
        (root / "A.cs").write_text("another", encoding="utf-8")
        with pytest.raises(TreeLost, match="replaced by another one"):
            await made.tree.renew()
        with pytest.raises(TreeLost, match="replaced by another one"):
            await made.show({"New.cs": "x", "Newer.cs": "y"})
    assert on_disk(root) == {"A.cs": "another"}


async def test_what_does_not_fit_is_refused_and_no_half_of_it_is_left(root: Path, state: Path) -> None:
    async with inside(root, state) as made:
        await made.show({"Grows.cs": "small"}, gone=("A.cs",))
        (root / "A.cs").write_text("as large as it is " * 10_000, encoding="utf-8")
        large = "x" * 5000
        limit = (len(large) // 2, resource.RLIM_INFINITY)
        resource.prlimit(made.writer.pid, resource.RLIMIT_FSIZE, limit)
        events = await made.show({"Large.cs": large, "Grows.cs": large, "New.cs": "z"})
        assert [(event.path.name, event.kind) for event in events] == [
            ("Grows.cs", "deleted"),
            ("New.cs", "created"),
        ]
        assert {path.name for path in made.tree.refused} == {"Large.cs", "Grows.cs", "A.cs"}
        assert made.tree.gone == {root / "A.cs"}
        assert set(await made.files()) == (FILES.keys() - {"A.cs"}) | {"New.cs"}
        resource.prlimit(made.writer.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        await made.show({"Large.cs": large, "Grows.cs": large, "New.cs": "z"})
        assert made.tree.refused == {}
        assert set(await made.files()) == FILES.keys() | {"Large.cs", "Grows.cs", "New.cs"}


async def test_a_link_that_leads_out_of_the_folder_is_not_written_through(root: Path, state: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "Kept.cs").write_text("kept", encoding="utf-8")
    (root / "Out").symlink_to(outside)
    async with inside(root, state) as made:
        await made.show({"Out/New.cs": "x", "Out/In/New.cs": "x", "New.cs": "y"}, gone=("Out/Kept.cs",))
        assert {path.name for path in made.tree.refused} == {"New.cs", "Kept.cs"}
        assert all("leads out" in reason for reason in made.tree.refused.values())
        assert made.tree.created == {root / "New.cs"}
    assert [path.name for path in outside.iterdir()] == ["Kept.cs"]


async def test_a_folder_with_two_names_shows_a_new_file_under_both(root: Path, state: Path) -> None:
    (root / "Alias").symlink_to(root / "Deep")
    async with inside(root, state) as made:
        await made.show({"Deep/N.cs": "n", "Alias/N.cs": "n"}, gone=("Deep/B.cs", "Alias/B.cs"))
        assert made.tree.refused == {}
        assert await made.ask("sorted(os.listdir('Alias'))") == ["N.cs"]
        await made.show()
        assert await made.ask("sorted(os.listdir('Alias'))") == ["B.cs"]


async def test_a_folder_of_another_group_is_refused_for_its_files_alone(root: Path, state: Path) -> None:
    others = [group for group in (*os.getgroups(), 54321) if group != os.getegid()]
    try:
        os.chown(root / "Deep", -1, others[0])
    except PermissionError:
        pytest.skip("no second group that a folder could belong to")
    async with inside(root, state) as made:
        events = await made.show({"Deep/N.cs": "n", "N.cs": "n"}, gone=("Deep/B.cs",))
        assert [event.path.name for event in events] == ["N.cs"]
        assert made.tree.refused == {
            root / "Deep/N.cs": "it belongs to another user or group",
            root / "Deep/B.cs": "it belongs to another user or group",
        }


async def test_build_output_of_another_group_is_refused_before_the_server_fails_at_it(
    root: Path, state: Path
) -> None:
    others = [group for group in (*os.getgroups(), 54321) if group != os.getegid()]
    try:
        os.chown(root / "obj/real.json", -1, others[0])
    except PermissionError:
        pytest.skip("no second group that a file could belong to")
    async with inside(root, state) as made:
        assert made.refused == f"{root / 'obj/real.json'} belongs to another user or group"


async def test_the_server_has_no_rights_over_its_view_and_a_private_temporary_directory(
    root: Path, state: Path
) -> None:
    async with inside(root, state) as made:
        status = await made.ask(
            "[line.split()[1] for line in open('/proc/self/status') if line.startswith('Cap')]"
        )
        assert status == ["0" * 16] * 5
        assert await made.ask("ctypes.CDLL(None).umount2(os.getcwd().encode(), 2)") == -1
        assert await made.ask("os.path.ismount(os.getcwd())") is True
        name = f"from-{os.getpid()}"
        await made.ask(f"write(os.environ['TMPDIR'] + '/{name}', '')")
        assert not (Path("/var/tmp") / name).exists()
        assert (made.scratch / "temporary" / name).exists()
        reuse = await made.ask("[os.environ[n] for n in ('MSBUILDDISABLENODEREUSE', 'UseSharedCompilation')]")
        assert reuse == ["1", "false"]


# --- refusals ---------------------------------------------------------------------------------------------


async def test_a_state_directory_inside_the_root_gives_the_server_the_plain_disk(root: Path) -> None:
    async with inside(root, root / ".state") as made:
        assert made.refused == "the state directory lies inside the workspace"
        assert await made.ask("os.path.ismount(os.getcwd())") is False
        assert await made.ask("text('A.cs')") == "class A;"


REFUSALS = {
    "nested mount": ('mount -t tmpfs none "$1/Deep"', "other file systems are mounted inside the workspace"),
    "no namespaces": ("echo 0 > /proc/sys/user/max_user_namespaces", "the system grants no private mounts"),
    "state on an overlay": (
        'mkdir "$2/u" "$2/w" "$2/s"; mount -t overlay o -o "lowerdir=$2/s,upperdir=$2/u,workdir=$2/w,userxattr" "$2/s"; '
        'mkdir "$2/s/in"; set -- "$1" "$2/s/in" "$3" "$4" "$5" "$6"',
        "no overlay can be mounted there",
    ),
    "state without attributes": (
        'mount -t ramfs none "$2"',
        "the state directory is on ramfs, which keeps no extended attributes",
    ),
    "root in /var/tmp": (
        'mkdir -p /var/tmp; mount --bind "$1" /var/tmp; set -- /var/tmp "$2" "$3" "$4" "$5" "$6"',
        "is private inside",
    ),
}


@pytest.mark.parametrize("kind", REFUSALS)
async def test_where_a_step_is_refused_the_server_is_started_without_a_view_and_the_reason_is_said(
    root: Path, state: Path, kind: str
) -> None:
    """The surroundings are made in a namespace of the test's own, so that they are there on any machine."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare command to make the surroundings with")
    setup, reason = REFUSALS[kind]
    state.mkdir()
    source = f'{setup}\ncd "$1"; exec "$3" -I -S "$4" 3 "$1" "$2" 0 "$5" -c "$6" 3<&0 0</dev/null'
    helper = Path(__file__).parents[2] / "lsp_client/namespace.py"
    show = "import os; print(os.path.ismount(os.getcwd()), open('A.cs').read())"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = subprocess.run(
            [
                unshare,
                "-Urm",
                "sh",
                "-ec",
                source,
                "sh",
                str(root),
                str(state),
                sys.executable,
                str(helper),
                sys.executable,
                show,
            ],
            stdin=theirs.fileno(),
            capture_output=True,
            timeout=BOUND,
            check=False,
            encoding="utf-8",
        )
        theirs.close()
        said = ours.recv(10_000).decode()
    assert done.stdout == "False class A;\n", done.stderr
    assert '"refused"' in said
    assert reason in said


async def test_a_system_that_kills_the_attempt_is_a_refusal_too(root: Path, state: Path) -> None:
    """As a filter of system calls may do it: the first fork, which is the trial, does not come back."""
    state.mkdir()
    helper = Path(__file__).parents[2] / "lsp_client/namespace.py"
    killed = (
        "import os, runpy, signal, sys; fork = os.fork\n"
        "os.fork = lambda: fork() or os.kill(os.getpid(), signal.SIGKILL)\n"
        f"sys.argv[0] = {str(helper)!r}; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = [sys.executable, "-c", "print('started')"]
        done = subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                killed,
                str(theirs.fileno()),
                str(root),
                str(state),
                "0",
                *server,
            ],
            pass_fds=[theirs.fileno()],
            capture_output=True,
            timeout=BOUND,
            check=False,
        )
        theirs.close()
        assert done.stdout == b"started\n"
        assert b"the system ended the process that tried" in ours.recv(10_000)


@pytest.mark.parametrize(
    ("name", "error"), [("no-such-server", FileNotFoundError), ("App.csproj", PermissionError)]
)
async def test_a_command_that_cannot_be_run_is_told_apart_as_without_a_view(
    root: Path, state: Path, name: str, error: type[OSError]
) -> None:
    with pytest.raises(error):
        async with inside(root, state, (str(root / name),)):
            pytest.fail("started")


# --- the end ----------------------------------------------------------------------------------------------


async def test_nothing_is_left_when_the_server_has_ended(root: Path, state: Path) -> None:
    async with inside(root, state) as made:
        await made.show({"New.cs": "x"})
        await made.ask("write('obj/x', ''), write(os.environ['TMPDIR'] + '/y', '')")
        watched = [Watched(made.writer.pid), Watched(made.server.pid)]
        assert [path.name for path in state.iterdir()] == [made.scratch.name]
    for process in watched:
        await process.gone()
    assert list(state.iterdir()) == []
    assert on_disk(root) == FILES


async def test_a_writer_that_is_killed_is_noticed_by_the_next_order(root: Path, state: Path) -> None:
    async with inside(root, state) as made:
        writer = Watched(made.writer.pid)
        os.kill(writer.pid, signal.SIGKILL)
        await writer.gone()
        with pytest.raises(TreeLost):
            await made.show({"New.cs": "x"})


async def test_a_writer_that_does_not_answer_is_given_up_and_goes_with_the_server(
    root: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with inside(root, state) as made:
        writer = Watched(made.writer.pid)
        os.kill(writer.pid, signal.SIGSTOP)
        monkeypatch.setattr(staged_tree, "ORDER_TIMEOUT", 0.2)
        with pytest.raises(TreeLost, match="takes no order"):
            await made.show({"New.cs": "x"})
    await writer.gone()
    assert list(state.iterdir()) == []


BRIDGE = """
import os, sys, anyio
from pathlib import Path
from tests.lsp_client.inside import inside

async def main():
    async with inside(Path(sys.argv[1]), Path(sys.argv[2])) as made:
        await made.show({"New.cs": "x"}, gone=("A.cs",))
        await made.ask("write('obj/x', '')")
        assert "New.cs" in await made.files()
        print(made.server.pid, made.writer.pid, made.server.guard_pid, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.parametrize("guard_too", [False, True], ids=["bridge", "bridge and guard"])
async def test_a_bridge_killed_with_kill_9_leaves_no_process_no_mount_and_no_file(
    root: Path, state: Path, *, guard_too: bool
) -> None:
    command = [sys.executable, "-c", BRIDGE, str(root), str(state)]
    async with await anyio.open_process(command, start_new_session=True, stderr=None) as bridge:
        assert bridge.stdout is not None
        said = b""
        with anyio.fail_after(BOUND):
            while b"\n" not in said:
                said += await bridge.stdout.receive()
        *others, guard = [Watched(int(word)) for word in said.split()]
        if guard_too:
            os.kill(guard.pid, signal.SIGKILL)
        bridge.send_signal(signal.SIGKILL)
        for process in (*others, guard):
            await process.gone()
        await bridge.wait()
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8")
    assert str(state) not in mounts
    assert on_disk(root) == FILES
    assert len(list(state.iterdir())) == int(guard_too), (
        "the guard tidies up, and without it the next bridge does"
    )
    assert sweep(state) == int(guard_too)
    assert list(state.iterdir()) == []


async def test_a_sweep_leaves_what_is_in_use(root: Path, state: Path) -> None:
    async with inside(root, state) as made:
        assert sweep(state) == 0
        assert await made.files() == FILES
