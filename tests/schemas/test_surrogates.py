"""Half characters are mended, and nothing else is touched."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.surrogates import is_well_formed, scrubbed, scrubbed_text

any_text = st.text(st.characters(codec=None))
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
any_json = st.recursive(
    plain | any_text, lambda inner: st.lists(inner) | st.dictionaries(any_text, inner), max_leaves=12
)
steady = settings(derandomize=True, database=None, deadline=None)


@given(any_text)
@steady
def test_mended_text_can_be_written_and_keeps_its_characters(text: str) -> None:
    mended = scrubbed_text(text)
    mended.encode()
    if is_well_formed(text):
        assert mended is text
    else:
        assert "\ufffd" in mended or len(mended) < len(text)


def test_each_half_becomes_one_replacement_character() -> None:
    assert scrubbed_text("a\ud800b\udc00c") == "a\ufffdb\ufffdc"


def test_two_halves_in_order_become_the_character_they_are() -> None:
    assert scrubbed_text("\ud83d\ude00") == "\U0001f600"


@given(any_json)
@steady
def test_a_mended_value_can_be_sent(value: object) -> None:
    json.dumps(scrubbed(value), ensure_ascii=False).encode()


def test_a_clean_value_comes_back_itself() -> None:
    value = {"a": ["ü", 1, None, {"b": True}]}
    assert scrubbed(value) is value


def test_names_are_mended_as_well_and_the_original_stays() -> None:
    value = {"\ud800": ["\udc00"]}
    assert scrubbed(value) == {"\ufffd": ["\ufffd"]}
    assert value == {"\ud800": ["\udc00"]}
