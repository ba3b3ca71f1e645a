"""Staging whole new texts through a played server, for tests that care about texts and not about actions."""

from collections.abc import Mapping
from pathlib import Path

from tests.bridge.agent import Scene
from tests.bridge.played_server import Json, Offer, create, delete, document_edit


def replaced(path: Path, text: str, new: str) -> Json:
    """The edit that gives a document of this text a new one."""
    end = {"line": text.count("\n"), "character": len(text) - (text.rfind("\n") + 1)}
    everything = {"start": {"line": 0, "character": 0}, "end": end}
    return document_edit(path, [{"range": everything, "newText": new}])


async def stage_texts(made: Scene, texts: Mapping[str, str | None], *, place: str = "Core/Apple.cs") -> None:
    """Stage new texts of files, all in one revision; ``None`` deletes.  ``place`` is where the action is offered."""

    def edit(_path: Path, _text: str) -> list[Json]:
        operations: list[Json] = []
        for name, new in texts.items():
            file = made.file(name)
            if new is None:
                operations.append(delete(file))
            elif file in made.server.open or file.exists():
                operations.append(replaced(file, made.server.seen(file), new))
            else:
                operations += create(file, new)
        return operations

    made.server.offers = [Offer("Rewrite", edit)]
    assert (await made.agent.stage_first(place)).staged
