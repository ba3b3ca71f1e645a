"""The table of requests that wait for an answer.  Pure: it knows no process, no loop and no clock.

A request is in the table from ``register`` until exactly one of ``complete``, ``fail``, ``cancel`` or
``fail_all`` takes it out; its outcome is delivered at most once, and never after a cancel.  Answers for ids
that are not in the table (late ones, invented ones) change nothing.  Once ``fail_all`` has named the end of
the channel, nothing can be registered any more: a request that nobody will answer cannot be made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from lsp_client.errors import LanguageServerError, ServerGone

Outcome: TypeAlias = msgspec.Raw | LanguageServerError
"""The raw JSON of a result, or what went wrong."""


@dataclass(frozen=True, slots=True)
class _Waiter:
    method: str
    deliver: Callable[[Outcome], None]


class PendingRequests:
    """Requests by id, each with the callback that takes its outcome."""

    def __init__(self) -> None:
        self._waiters: dict[int, _Waiter] = {}
        self._next_id = 1
        self._end: ServerGone | None = None

    def __len__(self) -> int:
        return len(self._waiters)

    def register(self, method: str, deliver: Callable[[Outcome], None]) -> int:
        """Enter a request and return its new id.  Raises ServerGone once the channel has ended."""
        if self._end is not None:
            raise self._end.fresh()
        request_id = self._next_id
        self._next_id += 1
        self._waiters[request_id] = _Waiter(method, deliver)
        return request_id

    def method_of(self, request_id: int) -> str | None:
        """The method of an open request, None for an id that is not open."""
        waiter = self._waiters.get(request_id)
        return None if waiter is None else waiter.method

    def complete(self, request_id: int, result: msgspec.Raw) -> bool:
        """Deliver a result.  False: no such request is open, nothing happened."""
        return self._settle(request_id, result)

    def fail(self, request_id: int, error: LanguageServerError) -> bool:
        """Deliver an error.  False: no such request is open, nothing happened."""
        return self._settle(request_id, error)

    def cancel(self, request_id: int) -> bool:
        """Take a request out without an outcome.  True: it was open, so the peer should be told."""
        return self._waiters.pop(request_id, None) is not None

    def fail_all(self, end: ServerGone) -> int:
        """The channel ended: every open request fails with (a copy of) ``end``.  Returns how many did."""
        if self._end is None:
            self._end = end
        waiters = list(self._waiters.values())
        self._waiters.clear()
        for waiter in waiters:
            waiter.deliver(self._end.fresh())
        return len(waiters)

    def _settle(self, request_id: int, outcome: Outcome) -> bool:
        waiter = self._waiters.pop(request_id, None)
        if waiter is None:
            return False
        waiter.deliver(outcome)
        return True
