"""The report about a whole solution: by document, in order, each diagnostic once, and never "none" for no report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from lsp_client.dialects.base import LoadTarget, Watch
from lsp_client.errors import ProtocolViolation
from lsp_client.workspace_report import workspace_report

pytestmark = pytest.mark.anyio

Json = Mapping[str, object]


@dataclass
class Answering:
    """A port that gives one answer to everything."""

    answer: object
    asked: list[tuple[str, object, float | None]] = field(default_factory=list)

    async def ask(self, method: str, params: object, *, timeout: float | None = None) -> msgspec.Raw:
        self.asked.append((method, params, timeout))
        return msgspec.Raw(msgspec.json.encode(self.answer))

    async def tell(self, method: str, params: object) -> None:
        raise AssertionError(f"a report tells nothing: {method} {params}")

    def probe_file(self) -> Path | None:
        return None

    def text_seen(self, path: Path) -> str | None:
        raise AssertionError(f"a report needs no text: {path}")

    @property
    def load_timeout(self) -> float:
        return 1.0

    @property
    def target(self) -> LoadTarget:
        raise AssertionError("a report needs no target")

    @property
    def watch(self) -> Watch:
        raise AssertionError("a report needs no story of loads")


def found(line: int, code: str = "CS8019") -> Json:
    place = {"line": line, "character": 0}
    return {"range": {"start": place, "end": place}, "code": code, "message": "Unnecessary.", "severity": 4}


async def test_documents_and_places_are_in_order_and_what_two_projects_say_alike_counts_once() -> None:
    port = Answering(
        {
            "items": [
                {"kind": "full", "uri": "file:///w/B%20C.cs", "items": [found(3), found(1)]},
                {"kind": "full", "uri": "file:///w/A.cs", "items": [found(7)]},
                {"kind": "full", "uri": "file:///w/B C.cs", "items": [found(1), found(1, "CS0168")]},
                {"kind": "full", "uri": "file:///w/Clean.cs", "items": []},
                {"kind": "full", "uri": "csharp:/decompiled/X.cs", "items": [found(1)]},
            ]
        }
    )
    report = await workspace_report(port, timeout=5.0)
    assert {path.name: [(d.range.start.line, d.id) for d in items] for path, items in report.items()} == {
        "A.cs": [(7, "CS8019")],
        "B C.cs": [(1, "CS0168"), (1, "CS8019"), (3, "CS8019")],
    }
    assert list(report) == [Path("/w/A.cs"), Path("/w/B C.cs")]
    assert port.asked == [("workspace/diagnostic", {"previousResultIds": []}, 5.0)]


async def test_no_report_is_not_an_empty_one() -> None:
    assert await workspace_report(Answering({"items": []}), timeout=5.0) == {}
    no_reports: tuple[object, ...] = (None, {}, [])
    for nothing in no_reports:
        with pytest.raises(ProtocolViolation):
            await workspace_report(Answering(nothing), timeout=5.0)
