"""Identifiers that are the same in every process and after every load, without a table to keep."""

from __future__ import annotations

from hashlib import sha256


def stable_guid(*parts: str) -> str:
    """An identifier in the shape of a GUID, the same for the same parts in every process."""
    digest = sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))
