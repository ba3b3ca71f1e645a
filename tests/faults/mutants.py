"""Puts a defect into our own code for a while, by changing a few words of its source.

A changed module is compiled beside the real one, and the code of each function is put into the real function of that
name. So everybody who holds the function gets the defect, and nothing else changes.
"""

import inspect
import types
from collections.abc import Iterator
from contextlib import contextmanager


class OutOfDate(Exception):
    """The words to change are not in the source any more; the defect must be written anew."""


@contextmanager
def changed(module: types.ModuleType, old: str, new: str) -> Iterator[None]:
    """The functions of `module` behave as if `old` were `new` in its source. Raises OutOfDate."""
    source = inspect.getsource(module)
    if source.count(old) != 1:
        raise OutOfDate(f"{old!r} stands {source.count(old)} times in {module.__name__}")
    copy = types.ModuleType(module.__name__)
    copy.__file__ = module.__file__
    # Dataclasses look their module up while they are made; they find the real one, which serves.
    exec(compile(source.replace(old, new), str(module.__file__), "exec"), copy.__dict__)
    real = dict(_functions(module))
    before = {name: function.__code__ for name, function in real.items()}
    try:
        for name, function in _functions(copy):
            if name in real and len(real[name].__code__.co_freevars) == len(function.__code__.co_freevars):
                real[name].__code__ = function.__code__
        yield
    finally:
        for name, code in before.items():
            real[name].__code__ = code


def _functions(module: types.ModuleType) -> Iterator[tuple[str, types.FunctionType]]:
    for name, value in vars(module).items():
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            yield from _unwrapped(name, value)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for attribute, member in vars(value).items():
                function = getattr(member, "__func__", member)
                if isinstance(function, types.FunctionType):
                    yield from _unwrapped(f"{name}.{attribute}", function)


def _unwrapped(name: str, function: types.FunctionType) -> Iterator[tuple[str, types.FunctionType]]:
    """A function, and the one inside when a context manager was made of it."""
    yield name, function
    inner = getattr(function, "__wrapped__", None)
    if isinstance(inner, types.FunctionType):
        yield f"{name} (inside)", inner
