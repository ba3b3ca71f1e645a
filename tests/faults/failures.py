"""The disks that a power failure may leave; `disk` tells what is lost and what is not."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tests.faults.disk import Bytes, Entries, Event, Slot, Snapshot, Synced, Written

IMAGES_MAX = 12
"""So many subsets of unsynced calls are all built; beyond it they are sampled."""

DATA_VARIANTS = ("whole", "old", "zeros", "half")


@dataclass(frozen=True, slots=True)
class Loss:
    """One way to lose what was not synced: the numbers of the lost calls, and what became of the files' bytes."""

    lost: tuple[int, ...]
    data: tuple[tuple[int, str], ...]
    snapshot: Snapshot

    @property
    def name(self) -> str:
        """Says what was lost, without inodes."""
        counts: dict[str, int] = {}
        for _, variant in self.data:
            counts[variant] = counts.get(variant, 0) + 1
        data = ", ".join(f"{count} {variant}" for variant, count in sorted(counts.items()))
        return f"lost {list(self.lost)}; files {data or 'whole'}".replace("/", " ")


class Failure:
    """The disks that a power failure after the first `moment` events may leave."""

    def __init__(
        self, start: Snapshot, events: Sequence[Event], moment: int, top_of: Mapping[int, int]
    ) -> None:
        self._start = start
        self._events = events[:moment]
        self.top_of = top_of
        self._changes = [
            (number, event) for number, event in enumerate(self._events) if isinstance(event, Entries)
        ]
        self._needs = self._needed()
        self._kept = self._synced_changes()
        self._versions = self._file_versions()

    def _needed(self) -> dict[int, set[int]]:
        """For each change the earlier ones of the same entries, which it cannot be without."""
        last: dict[Slot, int] = {}
        needs: dict[int, set[int]] = {}
        for number, event in self._changes:
            own: set[int] = set()
            for slot, _ in event.slots:
                if slot in last:
                    own.add(last[slot])
                    own |= needs[last[slot]]
                last[slot] = number
            needs[number] = own
        return needs

    def _synced_changes(self) -> set[int]:
        kept: set[int] = set()
        for moment, event in enumerate(self._events):
            if not isinstance(event, Synced):
                continue
            for number, change in self._changes:
                if number < moment and any(self._covers(event, slot[0]) for slot, _ in change.slots):
                    kept |= {number} | self._needs[number]
        return kept

    def _covers(self, sync: Synced, directory: int) -> bool:
        return self.top_of[directory] == sync.top if sync.top is not None else directory == sync.inode

    def _file_versions(self) -> dict[int, tuple[Bytes, ...]]:
        """For each file written to: what it held at its last sync, and each state since."""
        versions: dict[int, list[Bytes]] = {}
        for event in self._events:
            if isinstance(event, Written):
                before = self._start.contents.get(event.inode)
                nothing = Bytes(b"", event.now.mode, event.now.owner, event.now.group, ())
                versions.setdefault(event.inode, [before or nothing]).append(event.now)
            elif isinstance(event, Synced):
                for inode, known in versions.items():
                    if inode == event.inode or (event.top is not None and self.top_of[inode] == event.top):
                        del known[:-1]
        return {inode: tuple(known) for inode, known in versions.items()}

    def losses(self, choice: random.Random, limit: int = IMAGES_MAX) -> Iterator[Loss]:
        """Every distinct disk when there are few, else those with the simplest losses and a sample of the others."""
        seen: set[object] = set()
        for lost in self._subsets(choice, limit):
            entries = self._entries_without(lost)
            for data in self._data_choices(entries, choice):
                snapshot = self._snapshot(entries, data)
                identity = snapshot.identity()
                if identity not in seen:
                    seen.add(identity)
                    yield Loss(tuple(sorted(lost)), tuple(sorted(data.items())), snapshot)

    def _subsets(self, choice: random.Random, limit: int) -> Iterator[frozenset[int]]:
        open_ = [number for number, _ in self._changes if number not in self._kept]
        if len(open_) <= 12:
            every = list(self._all_subsets(open_))
            if len(every) <= limit:
                yield from every
                return
        seen: set[frozenset[int]] = set()
        simple = [frozenset[int](), frozenset(open_)]
        simple += [self._closed({number}, open_) for number in open_]
        simple += [frozenset(set(open_) - {number} - self._needs[number]) for number in open_]
        for lost in simple:
            if lost not in seen:
                seen.add(lost)
                yield lost
        for _ in range(limit):
            chance = choice.random()
            lost = self._closed({number for number in open_ if choice.random() < chance}, open_)
            if lost not in seen:
                seen.add(lost)
                yield lost

    def _closed(self, lost: set[int], open_: Sequence[int]) -> frozenset[int]:
        """With every later change that cannot be without a lost one."""
        return frozenset(number for number in open_ if number in lost or self._needs[number] & lost)

    def _all_subsets(self, open_: Sequence[int]) -> Iterator[frozenset[int]]:
        for bits in product((False, True), repeat=len(open_)):
            lost = {number for number, bit in zip(open_, bits, strict=True) if bit}
            if self._closed(lost, open_) == lost:
                yield frozenset(lost)

    def _entries_without(self, lost: frozenset[int]) -> dict[Slot, int]:
        entries = dict(self._start.entries)
        for number, event in self._changes:
            if number in lost:
                continue
            for slot, inode in event.slots:
                if inode is None:
                    entries.pop(slot, None)
                else:
                    entries[slot] = inode
        return entries

    def _data_choices(self, entries: Mapping[Slot, int], choice: random.Random) -> Iterator[dict[int, str]]:
        standing = set(entries.values())
        open_ = [inode for inode, known in self._versions.items() if len(known) > 1 and inode in standing]
        yield {}
        if not open_:
            return
        yield dict.fromkeys(open_, choice.choice(DATA_VARIANTS[1:]))
        if len(open_) > 1:
            yield {choice.choice(open_): "old"}
            yield {inode: choice.choice(DATA_VARIANTS) for inode in open_}

    def _snapshot(self, entries: Mapping[Slot, int], data: Mapping[int, str]) -> Snapshot:
        contents = dict(self._start.contents)
        for inode, known in self._versions.items():
            contents[inode] = _variant(known, data.get(inode, "whole"))
        made = {
            inode
            for _, event in self._changes
            if event.call == "make_directory"
            for _, inode in event.slots
            if inode is not None
        }
        return Snapshot(self._start.tops, entries, contents, self._start.directories | made)


def _variant(known: tuple[Bytes, ...], variant: str) -> Bytes:
    old, new = known[0], known[-1]
    if len(known) == 1 or variant == "whole":
        return new
    if variant == "old":
        return old
    length = len(new.content)
    content = bytes(length) if variant == "zeros" else new.content[: length // 2]
    return Bytes(content, old.mode, old.owner, old.group, old.extended)
