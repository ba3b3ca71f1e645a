"""The ledger of open documents: exact, and without a word to the server when we are wrong."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_client.documents import DocumentLedger, Notification
from lsp_client.errors import LedgerError
from lsp_client.texts import LineRule

URI = "file:///a/B.cs"


def part(value: object, *path: str | int) -> object:
    """A member deep in plain JSON."""
    for step in path:
        if isinstance(step, int):
            assert isinstance(value, list)
            value = value[step]
        else:
            assert isinstance(value, Mapping)
            value = value[step]
    return value


def opened(text: str = "old", rule: LineRule = LineRule.LSP) -> DocumentLedger:
    ledger = DocumentLedger(rule)
    ledger.open(URI, "csharp", text)
    return ledger


def test_open_sends_the_whole_text() -> None:
    sent = DocumentLedger().open(URI, "csharp", "text")
    document = {"uri": URI, "languageId": "csharp", "version": 1, "text": "text"}
    assert sent == Notification("textDocument/didOpen", {"textDocument": document})


def test_a_change_replaces_exactly_the_old_text_by_range() -> None:
    (sent,) = opened("one\r\ntwo 𝄞").change(URI, "new")
    assert sent.method == "textDocument/didChange"
    assert part(sent.params, "contentChanges") == [
        {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 6}}, "text": "new"}
    ]


def test_the_range_of_each_change_is_made_for_the_text_before_it() -> None:
    ledger = opened("a\nb")
    ledger.change(URI, "a\nb\nccc")
    (sent,) = ledger.change(URI, "x")
    assert part(sent.params, "contentChanges", 0, "range", "end") == {"line": 2, "character": 3}


def test_the_end_of_the_old_text_follows_the_line_rule_of_the_server() -> None:
    text = "a\u2028bc"
    (lsp,) = opened(text).change(URI, "x")
    (roslyn,) = opened(text, LineRule.ROSLYN).change(URI, "x")
    assert part(lsp.params, "contentChanges", 0, "range", "end") == {"line": 0, "character": 4}
    assert part(roslyn.params, "contentChanges", 0, "range", "end") == {"line": 1, "character": 2}


def test_a_change_to_the_same_text_sends_nothing_and_keeps_the_version() -> None:
    ledger = opened("same")
    assert ledger.change(URI, "same") == ()
    (sent,) = ledger.change(URI, "other")
    assert part(sent.params, "textDocument", "version") == 2


def test_versions_rise_by_one_and_never_go_back_over_a_close() -> None:
    ledger = opened("1")
    ledger.change(URI, "2")
    ledger.close(URI)
    sent = ledger.open(URI, "csharp", "3")
    assert part(sent.params, "textDocument", "version") == 3


def test_close_names_the_document() -> None:
    ledger = opened()
    assert ledger.close(URI) == Notification("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert ledger.open_uris == frozenset()


def test_opening_twice_is_our_mistake_and_changes_nothing() -> None:
    ledger = opened("old")
    with pytest.raises(LedgerError, match="opened twice"):
        ledger.open(URI, "csharp", "other")
    document = ledger.get(URI)
    assert document is not None
    assert (document.text, document.version) == ("old", 1)


@pytest.mark.parametrize("uri", [URI, "file:///a/b.cs"])
def test_changing_or_closing_what_is_not_open_is_our_mistake(uri: str) -> None:
    ledger = DocumentLedger()
    with pytest.raises(LedgerError, match="changed that is not open"):
        ledger.change(uri, "x")
    with pytest.raises(LedgerError, match="closed that is not open"):
        ledger.close(uri)


def test_uris_are_compared_as_spelled() -> None:
    ledger = opened()
    ledger.open("file:///a/%42.cs", "csharp", "another spelling is another document")
    assert len(ledger) == 2


def test_after_a_loss_everything_is_opened_again_in_full_without_a_close() -> None:
    ledger = opened("first")
    ledger.change(URI, "staged")
    (lost,) = ledger.forget_all()
    assert (lost.uri, lost.language_id, lost.text) == (URI, "csharp", "staged")
    assert ledger.open_uris == frozenset()
    with pytest.raises(LedgerError):
        ledger.change(URI, "ranges would be wrong now")
    sent = ledger.open(lost.uri, lost.language_id, lost.text)
    assert part(sent.params, "textDocument", "text") == "staged"
    assert part(sent.params, "textDocument", "version") == 3


class ServerModel:
    """What a strict server makes of the notifications: it refuses what would end Roslyn."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}

    def take(self, sent: Notification) -> None:
        uri = str(part(sent.params, "textDocument", "uri"))
        if sent.method == "textDocument/didOpen":
            assert uri not in self.texts
            self.texts[uri] = str(part(sent.params, "textDocument", "text"))
        elif sent.method == "textDocument/didChange":
            end = part(sent.params, "contentChanges", 0, "range", "end")
            lines = self.texts[uri].replace("\r\n", "\n").replace("\r", "\n").split("\n")
            assert end == {"line": len(lines) - 1, "character": len(lines[-1].encode("utf-16-le")) // 2}
            self.texts[uri] = str(part(sent.params, "contentChanges", 0, "text"))
        else:
            del self.texts[uri]
            return
        version = part(sent.params, "textDocument", "version")
        assert isinstance(version, int)
        assert version > self.versions.get(uri, 0)
        self.versions[uri] = version


ACTIONS = st.tuples(
    st.sampled_from(["open", "change", "close", "lose"]),
    st.sampled_from(["file:///a", "file:///b"]),
    st.text(alphabet="a𝄞\r\n", max_size=6),
)


@given(st.lists(ACTIONS))
def test_whatever_is_called_a_strict_server_always_agrees_with_the_ledger(
    actions: list[tuple[str, str, str]],
) -> None:
    ledger, server = DocumentLedger(), ServerModel()
    for action, uri, text in actions:
        try:
            if action == "open":
                server.take(ledger.open(uri, "csharp", text))
            elif action == "change":
                for sent in ledger.change(uri, text):
                    server.take(sent)
            elif action == "close":
                server.take(ledger.close(uri))
            else:
                ledger.forget_all()
                server.texts.clear()
        except LedgerError:
            pass
        assert ledger.open_uris == frozenset(server.texts)
        for open_uri in ledger.open_uris:
            document = ledger.get(open_uri)
            assert document is not None
            assert document.text == server.texts[open_uri]
