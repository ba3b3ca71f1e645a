"""Shapes of commits: a tree, and what is to become of it.

A shape says with its own bytes what the tree must be before and after, so the judge needs nothing of the code under
test to know what is right. Small on purpose: every call of every shape is made to fail in every way.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.images import OLD_NS, Entry, Image, image_of
from transactions.baseline import Baseline
from transactions.case_rule import CaseRule
from transactions.overlay import Overlay, Staged
from transactions.text import SourceText

USUAL_MODE = 0o644
STRANGE_OWNER = 1234


@dataclass(frozen=True, slots=True)
class File:
    """A file of the tree before."""

    content: bytes
    mode: int = USUAL_MODE
    extended: tuple[tuple[str, bytes], ...] = ()
    foreign: bool = False  # belongs to another user, where we may give files away


@dataclass(frozen=True, slots=True)
class Put:
    """`content` shall stand at a name; `origin` is the name of the file that is moved there, if any."""

    content: bytes
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape. Names are relative to the root, with surrogate escapes where they are not UTF-8; None is a deletion.

    `links` are symbolic links (name to target) that stand by and must stay. `small` shapes get every fault there is,
    the others a part of them.
    """

    name: str
    files: Mapping[str, File]
    steps: Mapping[str, Put | None]
    links: Mapping[str, str] = field(default_factory=dict)
    small: bool = True
    group_directory: str | None = None  # a directory that gives its group to what is made in it

    @property
    def targets(self) -> tuple[str, ...]:
        """The names that are changed, created or deleted."""
        return tuple(self.steps)

    def build(self, root: Path) -> None:
        """Makes the tree before, with old modification times."""
        for name, file in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            try:
                os.write(descriptor, file.content)
                if file.foreign:
                    with suppress(OSError):  # only some may give files away
                        os.fchown(descriptor, STRANGE_OWNER, STRANGE_OWNER)
                os.fchmod(descriptor, file.mode)
                for attribute, value in file.extended:
                    _put_attribute(descriptor, attribute, value)
                os.utime(descriptor, ns=(OLD_NS, OLD_NS))
            finally:
                os.close(descriptor)
        for name, target in self.links.items():
            (root / name).symlink_to(target)
        if self.group_directory is not None:
            with suppress(OSError):
                os.chown(root / self.group_directory, -1, STRANGE_OWNER)
                (root / self.group_directory).chmod(0o2775)

    def stage(self, root: Path, case_rule: CaseRule | None = None) -> Overlay:
        """The transaction over a tree that was built."""
        draft = Overlay(Baseline(root, case_rule)).draft()
        for name, step in self.steps.items():
            if step is None:
                draft.delete(root / name)
                continue
            draft.baseline.read(root / name)
            origin = name if step.origin is None else step.origin
            known = root / origin if origin in self.files else None
            draft.put(root / name, Staged(SourceText.decode(step.content), known))
        return draft.freeze()

    def after(self, root: Path) -> dict[bytes, Entry]:
        """The image that a commit must leave, worked out from the tree as it is before."""
        before = image_of(os.fsencode(root))
        return _applied(self, before, os.lstat(root).st_gid)


def _put_attribute(descriptor: int, name: str, value: bytes) -> None:
    try:
        os.setxattr(descriptor, name, value)
    except OSError:
        return  # a file system without extended attributes; then the plan is one without


def _applied(shape: Shape, before: Image, usual_group: int) -> dict[bytes, Entry]:
    after = {
        name: entry
        for name, entry in before.items()
        if name not in {os.fsencode(target) for target in shape.targets}
    }
    for name, step in shape.steps.items():
        if step is None:
            continue
        raw = os.fsencode(name)
        _add_parents(after, raw, usual_group)
        like = before.get(os.fsencode(step.origin or name))
        if like is None:
            inherited = before.get(os.path.dirname(raw))
            group = inherited.group if inherited is not None and inherited.mode & 0o2000 else usual_group
            like = Entry("file", b"", USUAL_MODE, os.geteuid(), group)
        after[raw] = Entry("file", step.content, like.mode, like.owner, like.group, like.extended)
    return after


def _add_parents(after: dict[bytes, Entry], name: bytes, usual_group: int) -> None:
    parent = os.path.dirname(name)
    while parent and parent not in after:
        after[parent] = Entry("directory", b"", 0o755, os.geteuid(), usual_group)
        parent = os.path.dirname(parent)


_A, _B, _C = (
    File(b"class A { }\r\n"),
    File(b"\xef\xbb\xbfclass B { }\n", 0o640),
    File(b"class C { }\n", 0o755),
)
_BESIDE = {"App/Beside.cs": File(b"\xff\xfeu\x00\n\x00", 0o600)}
_MANY = 24

_ODD = {
    "App/Sixteen.cs": File(b"\xff\xfea\x00\r\x00\n\x00"),
    "App/Marked.cs": File(b"\xef\xbb\xbfclass M { }\r\n", 0o755),
    "App/Latin \xe9%20.cs": File(
        b"// caf\xe9\r\n", 0o664, (("user.note", b"mine"), ("user.other", b"\x00\xff"))
    ),
    "App/nfd e\u0301.cs": File(b"no final newline", 0o640),
    "App/nfc \xe9.cs": File(b"", 0o644),
    "App/new\nline.cs": File(b"mixed\r\nline\nends\r", foreign=True),
    os.fsdecode(b"App/\xff\xfe.cs"): File(b"named in no known charset\n"),
    "App/dot..cs": File(b"// \xf0\x9f\x98\x80\n"),
}

SHAPES: tuple[Shape, ...] = (
    Shape("replace", {"App/A.cs": _A, **_BESIDE}, {"App/A.cs": Put(b"class A2 { }\r\n")}),
    Shape("create", {"App/A.cs": _A}, {"App/New.cs": Put(b"new\n")}),
    Shape("delete", {"App/A.cs": _A, "App/C.cs": _C}, {"App/C.cs": None}),
    Shape(
        "move",
        {"App/C.cs": _C, "Lib/A.cs": _A},
        {"App/C.cs": None, "Lib/C2.cs": Put(_C.content, "App/C.cs")},
    ),
    Shape(
        "move and edit",
        {"App/B.cs": _B, **_BESIDE},
        {"App/B.cs": None, "App/B2.cs": Put(b"\xef\xbb\xbfclass B2 { }\n", "App/B.cs")},
    ),
    Shape(
        "move over",
        {"App/A.cs": _A, "App/C.cs": _C},
        {"App/C.cs": None, "App/A.cs": Put(b"class A { /* was C */ }\n", "App/C.cs")},
    ),
    Shape(
        "swap",
        {"App/A.cs": _A, "Lib/C.cs": _C},
        {"App/A.cs": Put(_C.content, "Lib/C.cs"), "Lib/C.cs": Put(b"class A { } // edited\r\n", "App/A.cs")},
    ),
    Shape(
        "chain",
        {"App/A.cs": _A, "App/B.cs": _B, "App/C.cs": _C},
        {
            "App/A.cs": None,
            "App/B.cs": Put(_A.content, "App/A.cs"),
            "App/C.cs": Put(_B.content, "App/B.cs"),
            "App/D.cs": Put(_C.content, "App/C.cs"),
        },
    ),
    Shape(
        "case only",
        {"App/A.cs": _A, **_BESIDE},
        {"App/A.cs": None, "App/a.cs": Put(_A.content, "App/A.cs")},
    ),
    Shape(
        "new directories",
        {"App/A.cs": _A},
        {"New/Deep/X.cs": Put(b"x\n"), "New/Y.cs": Put(b"y\n"), "App/Sub/Z.cs": Put(b"z\n")},
    ),
    Shape(
        "file becomes directory",
        {"App/A.cs": _A, "App/C.cs": _C},
        {"App/A.cs": None, "App/A.cs/Inner.cs": Put(b"inner\n")},
    ),
    Shape(
        "mixed",
        {"App/A.cs": _A, "App/B.cs": _B, "Lib/C.cs": _C, "Lib/Gone.cs": File(b"gone\n"), **_BESIDE},
        {
            "App/A.cs": Put(b"class A2 { }\r\n"),
            "App/B.cs": None,
            "New/B.cs": Put(_B.content, "App/B.cs"),
            "Lib/Gone.cs": None,
            "Lib/Fresh.cs": Put(b"fresh\n"),
        },
        links={"Lib/Link.cs": "../App/A.cs", "App/ToLib": "../Lib"},
    ),
    Shape(
        "odd",
        _ODD,
        {
            "App/Sixteen.cs": Put(b"\xff\xfeb\x00\r\x00\n\x00"),
            "App/Latin \xe9%20.cs": Put(b"// th\xe9\r\n"),
            "App/nfd e\u0301.cs": Put(b"no final newline, still"),
            "App/nfc \xe9.cs": Put(b"no longer empty\n"),
            "App/new\nline.cs": None,
            "App/moved\nline.cs": Put(b"mixed\r\nline\nends\r", "App/new\nline.cs"),
            os.fsdecode(b"App/\xff\xfe.cs"): Put(b"named in no charset\n"),
            os.fsdecode(b"App/\xfe.cs"): Put(b"new\n"),
            "App/dot..cs": Put(b""),
        },
        small=False,
    ),
    Shape(
        "group directory",
        {"App/A.cs": _A},
        {"App/New.cs": Put(b"new\n")},
        group_directory="App",
    ),
    Shape(
        "many",
        {f"Dir{number % 10}/F{number}.cs": File(b"before %d\n" % number) for number in range(_MANY)},
        {
            **{f"Dir{number % 10}/F{number}.cs": Put(b"after %d\n" % number) for number in range(_MANY - 4)},
            **{f"Dir{number % 10}/F{number}.cs": None for number in range(_MANY - 4, _MANY)},
            **{f"New{number}/N.cs": Put(b"new\n") for number in range(3)},
        },
        small=False,
    ),
)

BY_NAME = {shape.name: shape for shape in SHAPES}
SMALL = tuple(shape for shape in SHAPES if shape.small)
