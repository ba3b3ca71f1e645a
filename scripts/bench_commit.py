"""What safety costs: a commit and a large staging, each beside the least that the work itself takes.

    python scripts/bench_commit.py [--runs N] [--directory DIR]

- *commit*: 300 changed files, with lock, crash journal, verification and tidying up, against a loop that opens, writes,
  syncs and closes fresh files of the same bytes, with one sync of each directory at the end, on the same device;
- *staging*: a rename with 20,000 edits in 2,000 files, from the server's answer to a staged revision, against decoding the
  answer, reading and hashing the files and slicing the strings;
- *memory*: the growth of a fresh process by that staging, against the texts it touches.

Figure and floor take turns, so that a busy moment of the machine hits both; medians are compared. The directory should lie
on a real disk: where a sync costs nothing, as in memory, the first floor means nothing. Exit code 1 when over a limit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

COMMIT_FILES = 300
COMMIT_LIMIT = 1.5
STAGED_FILES = 2_000
EDITS_EACH = 10
STAGING_LIMIT = 3.0
MEMORY_LIMIT = 4.0

NAME, NEW_NAME = "OldName", "BetterName"
LINE = f"        {NAME}.Call(argument, another);  // what a line of code is like\n"
FILLER = '        var value = Compute(left, right, "some text");  // another line\n'
COLUMN = LINE.index(NAME)

Files = Mapping[str, bytes]


def tree(root: Path, count: int) -> Files:
    """A tree of C# files with ten places to rename in each; made and on the disk."""
    text = "".join((LINE + FILLER * 7) for _ in range(EDITS_EACH)).encode()
    files = {
        f"Project{number % 10}/Folder{number % 30}/File{number}.cs": f"class C{number}\n".encode() + text
        for number in range(count)
    }
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    os.sync()
    return files


# -- commit -----------------------------------------------------------------------------------------------------------------


def commit_seconds(above: Path, state: Path) -> tuple[float, float]:
    """One commit of 300 changed files, from taking the lock to giving it up; and the window in it.

    The window is the time from the first exchange of a file to the last: whoever reads several files in it can see some
    old and some new.
    """
    from transactions.baseline import Baseline
    from transactions.commit import commit
    from transactions.edits import DocumentEdit, EditPolicy, WorkspaceEdit, plan
    from transactions.file_journal import FileJournal
    from transactions.lock import commit_lock
    from transactions.overlay import Overlay
    from transactions.system import System
    from transactions.text import Position, Range, TextEdit

    class Watched(System):
        def __init__(self) -> None:
            self.exchanges: list[float] = []

        def exchange(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
            self.exchanges.append(time.perf_counter())
            super().exchange(old, old_directory, new, new_directory)
            self.exchanges.append(time.perf_counter())

    system = Watched()
    root = Path(tempfile.mkdtemp(dir=above))
    files = tree(root, COMMIT_FILES)
    baseline = Baseline(root)
    edit = TextEdit(Range(Position(0, 0), Position(0, 0)), "// edited\n")
    operations = tuple(DocumentEdit(root / name, None, (edit,)) for name in files)
    changes = plan(WorkspaceEdit(operations), Overlay(baseline), baseline, EditPolicy(root)).changes()
    start = time.perf_counter()
    with commit_lock(root) as lock:
        commit(root, changes, baseline, journal=FileJournal(state, lock), system=system)
    seconds = time.perf_counter() - start
    return seconds, system.exchanges[-1] - system.exchanges[0]


def commit_floor_seconds(above: Path) -> float:
    """Fresh files of the same bytes, each synced, and each directory once."""
    files = tree(Path(tempfile.mkdtemp(dir=above)), COMMIT_FILES)
    root = Path(tempfile.mkdtemp(dir=above))
    directories = {(root / name).parent for name in files}
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
    os.sync()
    start = time.perf_counter()
    for name, data in files.items():
        descriptor = os.open(root / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(descriptor, b"// edited\n" + data)
        os.fsync(descriptor)
        os.close(descriptor)
    for directory in directories:
        descriptor = os.open(directory, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    return time.perf_counter() - start


# -- staging ----------------------------------------------------------------------------------------------------------------


def answer(root: Path, files: Files) -> bytes:
    """The server's answer to the rename."""
    places = [1 + number * 8 for number in range(EDITS_EACH)]
    edits = [
        {
            "range": {
                "start": {"line": line, "character": COLUMN},
                "end": {"line": line, "character": COLUMN + len(NAME)},
            },
            "newText": NEW_NAME,
        }
        for line in places
    ]
    return json.dumps(
        {
            "documentChanges": [
                {"textDocument": {"uri": (root / name).as_uri(), "version": None}, "edits": edits}
                for name in files
            ]
        }
    ).encode()


def stage(root: Path, raw: bytes) -> int:
    """From the answer to a staged revision; how many files it changes."""
    from bridge.server_edits import workspace_edit_from_server
    from lsp_client import messages
    from transactions.baseline import Baseline
    from transactions.edits import EditPolicy, plan
    from transactions.overlay import Overlay
    from transactions.transaction import Transaction

    baseline = Baseline(root)
    transaction = Transaction(baseline, "snapshot", 10)
    edit = workspace_edit_from_server(messages.decode(raw, messages.WorkspaceEdit))
    transaction.stage(plan(edit, Overlay(baseline), baseline, EditPolicy(root)), "Rename", "rename")
    return len(transaction.changes())


def stage_floor(raw: bytes) -> int:
    """The same texts without asking anything: decode, read, hash, slice."""
    from lsp_client import messages, uris

    results = []
    for change in messages.decode(raw, messages.WorkspaceEdit).operations():
        if not isinstance(change, messages.TextDocumentEdit):
            continue
        data = uris.uri_to_path(change.text_document.uri).read_bytes()
        digest = hashlib.sha256(data).digest()
        text = data.decode()
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        pieces, done = [], 0
        for edit in change.edits:
            if not isinstance(edit.new_text, str):
                continue
            begin = starts[edit.range.start.line] + edit.range.start.character
            pieces += [text[done:begin], edit.new_text]
            done = starts[edit.range.end.line] + edit.range.end.character
        results.append((digest, "".join([*pieces, text[done:]])))
    return len(results)


def staging_seconds(root: Path, raw: bytes, *, floor: bool) -> float:
    start = time.perf_counter()
    count = stage_floor(raw) if floor else stage(root, raw)
    seconds = time.perf_counter() - start
    if count != STAGED_FILES:
        raise SystemExit(f"{count} files were changed, not {STAGED_FILES}")
    return seconds


def staging_growth_bytes(root: Path, raw_file: Path) -> int:
    """The growth of a fresh process; called in one."""
    raw = raw_file.read_bytes()
    with tempfile.TemporaryDirectory() as small:  # so that imports and first uses are not counted
        few = tree(Path(small), 2)
        stage(Path(small), answer(Path(small), few))
    before = peak_bytes()
    stage(root, raw)
    return peak_bytes() - before


def peak_bytes() -> int:
    """The most memory that this program has had. (`getrusage` also counts what its parent had when it was started.)"""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024


# -- telling ----------------------------------------------------------------------------------------------------------------


def compared(what: str, figures: list[float], floors: list[float], limit: float) -> bool:
    """Prints a figure beside its floor; whether it is within the limit."""
    figure, floor = statistics.median(figures), statistics.median(floors)
    ratio = figure / floor
    print(
        f"{what:<42} {figure * 1000:8.0f} ms   floor {floor * 1000:8.0f} ms   {ratio:5.2f} x  (at most {limit})"
    )
    return ratio <= limit


def main() -> int:
    parser = argparse.ArgumentParser(description="What safety costs, beside what the work itself takes.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--directory", type=Path, help="where the trees are made (default: the temporary directory)"
    )
    parser.add_argument("--growth", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.growth:
        print(staging_growth_bytes(*options.growth))
        return 0
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        return (
            0 if all([commits(Path(directory), options.runs), stagings(Path(directory), options.runs)]) else 1
        )


def commits(above: Path, runs: int) -> bool:
    figures, floors, windows = [], [], []
    for _ in range(runs):
        floors.append(commit_floor_seconds(above))
        seconds, window = commit_seconds(above, above / "state")
        figures.append(seconds)
        windows.append(window)
    in_time = compared(f"commit of {COMMIT_FILES} changed files", figures, floors, COMMIT_LIMIT)
    print(f"{'  of it, files half old and half new':<42} {statistics.median(windows) * 1000:8.0f} ms")
    return in_time


def stagings(above: Path, runs: int) -> bool:
    root = Path(tempfile.mkdtemp(dir=above))
    files = tree(root, STAGED_FILES)
    raw = answer(root, files)
    figures, floors = [], []
    for _ in range(runs):
        floors.append(staging_seconds(root, raw, floor=True))
        figures.append(staging_seconds(root, raw, floor=False))
    what = f"staging {STAGED_FILES * EDITS_EACH:,} edits in {STAGED_FILES:,} files"
    in_time = compared(what, figures, floors, STAGING_LIMIT)
    (above / "answer").write_bytes(raw)
    told = subprocess.run(
        [sys.executable, __file__, "--growth", root, above / "answer"], check=True, capture_output=True
    )
    texts = sum(map(len, files.values()))
    ratio = int(told.stdout) / texts
    print(
        f"{'memory of that, in a fresh process':<42} {int(told.stdout) / 1e6:8.1f} MB   texts {texts / 1e6:8.1f} MB   "
        f"{ratio:5.2f} x  (at most {MEMORY_LIMIT})"
    )
    return in_time and ratio <= MEMORY_LIMIT


if __name__ == "__main__":
    sys.exit(main())
