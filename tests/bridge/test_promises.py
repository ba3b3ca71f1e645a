"""Every promise has a test, and every test that claims a promise names a real one."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.bridge.promises import PROMISES

TESTS = Path(__file__).parents[1]


def claims() -> Iterator[str]:
    """The promises that test functions claim to keep, read from their decorators."""
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for decorator in node.decorator_list:
                    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "keeps":
                        yield from (str(ast.literal_eval(argument)) for argument in decorator.args)


def test_every_promise_has_a_test() -> None:
    assert sorted(PROMISES.keys() - set(claims())) == []


def test_no_test_claims_a_promise_that_was_never_made() -> None:
    assert sorted(Counter(claims()).keys() - PROMISES.keys()) == []


def test_every_promise_says_where_it_comes_from() -> None:
    assert [
        name for name, (source, sentence) in PROMISES.items() if not source or not sentence.endswith(".")
    ] == []
