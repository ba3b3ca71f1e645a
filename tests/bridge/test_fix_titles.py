"""Titles mean one fix when they are equal or fit one form of the list, and never because they look alike."""

import pytest

from bridge.fix_titles import FORMS, same_fix

SAME = [
    ("Remove unused variable", "Remove unused variable"),
    ("Make 'Total' static", "Make 'Order.Count(int)' static"),
    ("Unseal class 'Base'", "Unseal class 'Other'"),
    ("Make Load return Task instead of void.", "Make SaveAsync return Task instead of void."),
]
OTHERS = [
    ("using System.IO;", "using System.Text;"),
    ("Change 'Lenght' to 'Length'.", "Change 'Widht' to 'Width'."),
    ("Remove unused variable", "Remove unused variables"),
    ("Remove unused variable", "remove unused variable"),
    ("Make 'Total' static", "Make 'Total' readonly"),
    ("Make 'Total' static", "Make '' static"),
    ("Make 'Total' static", "Make 'Total' static and more"),
    ("Make 'Total' static", "Make 'a\nb' static"),
    ("Make static", "Make 'Total' static"),
    ("Unseal class 'Base'", "Make 'Base' static"),
    ("Generate method 'A'", "Generate method 'B'"),
    ("Make 'a.b' static.*", "Make 'axb' static.*"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_these_are_the_same_fix(one: str, other: str) -> None:
    assert same_fix(one)(other)
    assert same_fix(other)(one)


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_these_are_two_fixes(one: str, other: str) -> None:
    assert not same_fix(one)(other)
    assert not same_fix(other)(one)


def test_no_title_fits_two_forms() -> None:
    for one, _ in SAME:
        assert sum(form.fullmatch(one) is not None for form in FORMS) <= 1
