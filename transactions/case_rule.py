"""Which directories tell names apart only by more than letter case.

The rule is a property of each directory (Linux has case-folding directories, and volumes of other systems can be
mounted anywhere), so it is found out for each one, by looking only: an entry that also answers to its name in swapped
case, as the same file, without being listed that way. An empty directory is taken to follow its parent.
"""

import os
from pathlib import Path


class CaseRule:
    """Answers for directories as they are when first asked about; tests give a subclass that claims another rule."""

    def __init__(self) -> None:
        self._blind: dict[Path, bool] = {}
        self._blind_for: dict[str, bool] = {}

    def is_blind(self, directory: Path) -> bool:
        """Whether names in `directory` that differ only by case are one name."""
        blind = self._blind.get(directory)
        if blind is None:
            blind = self._blind[directory] = self._probe(directory)
        return blind

    def is_blind_for(self, path: Path) -> bool:
        """Whether another case of the last component of `path` would name the same entry."""
        directory = os.path.dirname(path)  # noqa: PTH120  # asked for every file of an edit
        blind = self._blind_for.get(directory)
        if blind is None:
            blind = self._blind_for[directory] = self.is_blind(Path(directory))
        return blind

    def spelling(self, path: Path) -> str | None:
        """How the entry that `path` names in a case-blind directory is really spelled; None when there is no entry."""
        folded = path.name.casefold()
        try:
            names = os.listdir(path.parent)  # noqa: PTH208  # names are what we want, not paths
        except OSError:
            return None
        return (
            path.name
            if path.name in names
            else next((name for name in names if name.casefold() == folded), None)
        )

    def _probe(self, directory: Path) -> bool:
        try:
            with os.scandir(directory) as entries:
                entry = next((found for found in entries if found.name.swapcase() != found.name), None)
                if entry is None:
                    return directory != directory.parent and self.is_blind(directory.parent)
                swapped = os.lstat(directory / entry.name.swapcase())
                return swapped.st_ino == entry.inode() and not self._is_listed(
                    directory, entry.name.swapcase()
                )
        except FileNotFoundError:
            return (
                not directory.exists() and directory != directory.parent and self.is_blind(directory.parent)
            )
        except OSError:
            return False  # what cannot be looked at is refused elsewhere, with its reason

    @staticmethod
    def _is_listed(directory: Path, name: str) -> bool:
        return name in os.listdir(directory)  # noqa: PTH208  # names are what we want, not paths
