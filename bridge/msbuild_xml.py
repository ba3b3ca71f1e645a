"""Reading the XML of project and solution files, which come from strangers.

A document type declaration is refused: no project file needs one, and entities are how a small file becomes a large
one.  Size is bounded for the same reason.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

SIZE_LIMIT = 32 * 1024 * 1024
"""Bytes of a project or solution file; the largest ones known have a few megabytes."""

_DOCTYPE = re.compile(r"<!DOCTYPE", re.IGNORECASE)


class MalformedXml(Exception):
    """The file cannot be read as the XML of a project.  ``reason`` is half a sentence, without the path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read_xml(path: Path) -> Element:
    """The root element of ``path``; raises ``MalformedXml`` (unreadable, too large, not well-formed, DOCTYPE)."""
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise MalformedXml(f"it is larger than {SIZE_LIMIT} bytes")
        return parse_xml(path.read_bytes())
    except OSError as error:
        raise MalformedXml(f"it could not be read: {error.strerror or error}") from error


def parse_xml(data: bytes) -> Element:
    """The root element of ``data``; raises ``MalformedXml``."""
    from xml.etree import ElementTree  # noqa: PLC0415  # a slow import that most processes never need

    class WithoutDoctype(ElementTree.TreeBuilder):
        def doctype(self, name: str, pubid: str | None, system: str | None) -> None:  # noqa: ARG002  # its fixed signature
            raise MalformedXml("it holds a DOCTYPE, which is refused")

    # Twice: before parsing for the common encodings, then as the parser meets it, whatever the encoding.
    if _DOCTYPE.search(_ascii_view(data)):
        raise MalformedXml("it holds a DOCTYPE, which is refused")
    try:
        parser = ElementTree.XMLParser(target=WithoutDoctype())  # noqa: S314  # no DOCTYPE, no entities
        root: Element = ElementTree.fromstring(data, parser)  # noqa: S314  # as above
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise MalformedXml(f"it is not well-formed XML ({error})") from error
    return root


def _ascii_view(data: bytes) -> str:
    """The text with all bytes of value zero dropped: shows ASCII words of UTF-8, UTF-16 and UTF-32 alike."""
    return data.replace(b"\0", b"").decode("latin-1")


def local_name(element: Element) -> str:
    """The element's name without its namespace; old project files have one, new ones do not."""
    return element.tag.rpartition("}")[2]
