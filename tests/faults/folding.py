"""A model of a case-folding file system on one that is not: names are looked up without their case."""

import errno
import os
from pathlib import Path

from transactions.case_rule import CaseRule
from transactions.system import System


class BlindEverywhere(CaseRule):
    """Claims that no directory tells letter cases apart."""

    def is_blind(self, directory: Path) -> bool:
        return True


class Folding(System):
    """The real system, except that a name finds the entry that it equals but for case."""

    def _real(self, name: str, directory: int | None) -> str:
        if directory is None:
            return name
        folded = name.casefold()
        return next((entry for entry in os.listdir(directory) if entry.casefold() == folded), name)

    def _require_free(self, name: str, directory: int) -> None:
        if self._real(name, directory) != name:
            raise FileExistsError(errno.EEXIST, "another case of the name is taken")

    def open_directory(self, name: str, directory: int | None = None) -> int:
        return super().open_directory(self._real(name, directory), directory)

    def open_file(self, name: str, directory: int) -> int:
        return super().open_file(self._real(name, directory), directory)

    def lstat(self, name: str, directory: int) -> os.stat_result:
        return super().lstat(self._real(name, directory), directory)

    def open_new(self, name: str, directory: int, mode: int) -> int:
        self._require_free(name, directory)
        return super().open_new(name, directory, mode)

    def touch(self, name: str, directory: int) -> None:
        super().touch(self._real(name, directory), directory)

    def make_directory(self, name: str, directory: int, mode: int = 0o777) -> None:
        self._require_free(name, directory)
        super().make_directory(name, directory, mode)

    def remove_directory(self, name: str, directory: int) -> None:
        super().remove_directory(self._real(name, directory), directory)

    def remove(self, name: str, directory: int) -> None:
        super().remove(self._real(name, directory), directory)

    def move(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        self._require_free(new, new_directory)
        super().move(self._real(old, old_directory), old_directory, new, new_directory)

    def exchange(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        one, other = self._real(old, old_directory), self._real(new, new_directory)
        super().exchange(one, old_directory, other, new_directory)

    def link(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        self._require_free(new, new_directory)
        super().link(self._real(old, old_directory), old_directory, new, new_directory)

    def rename(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        self._require_free(new, new_directory)
        super().rename(self._real(old, old_directory), old_directory, new, new_directory)
