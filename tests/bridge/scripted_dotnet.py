"""A ``dotnet`` that is a script: it answers what a test has written for it, and keeps a record of its calls.

It lies in a folder of its own, since what lies beside a real ``dotnet`` is taken for the SDK.
"""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_LAUNCHER = """#!/bin/sh
exec {python} -IS {program} "$@"
"""
"""A shell finds the interpreter, because a first line of a script cannot name a path with a space in it."""

_PROGRAM = """
import json, os, sys, pathlib
home = pathlib.Path(__file__).resolve().parent
arguments = sys.argv[1:]
with open(home / "calls", "a") as record:
    record.write(json.dumps([arguments, os.getcwd(), dict(os.environ)]) + "\\n")
for needle, answer in json.loads((home / "answers").read_text()):
    if any(argument.endswith(needle) for argument in arguments):
        if answer["shell"]:
            os.execv("/bin/sh", ["sh", "-c", answer["shell"], "sh", *arguments])
        sys.stdout.write(answer["stdout"])
        sys.exit(answer["code"])
sys.exit("no answer for " + " ".join(arguments))
"""


class ScriptedDotnet:
    """``path`` is the program; ``answer`` adds what it says to calls with an argument that ends in ``needle``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.path = folder / "dotnet"
        program = folder / "answering.py"
        program.write_text(_PROGRAM, encoding="utf-8")
        words = {"python": shlex.quote(sys.executable), "program": shlex.quote(str(program))}
        self.path.write_text(_LAUNCHER.format(**words), encoding="utf-8")
        self.path.chmod(0o755)
        self._answers: list[tuple[str, Mapping[str, object]]] = []
        self._write()

    def answer(self, needle: str, stdout: str = "", *, code: int = 0, shell: str = "") -> None:
        """Of the answers whose needle fits, the newest is given."""
        self._answers.insert(0, (needle, {"stdout": stdout, "code": code, "shell": shell}))
        self._write()

    def _write(self) -> None:
        (self.path.parent / "answers").write_text(json.dumps(self._answers))

    @property
    def calls(self) -> list[tuple[list[str], str, dict[str, str]]]:
        """Arguments, working directory and environment of each call."""
        record = self.path.parent / "calls"
        lines = record.read_text().splitlines() if record.exists() else []
        return [(arguments, cwd, environment) for arguments, cwd, environment in map(json.loads, lines)]


def evaluation(files: Sequence[Path] = (), references: Sequence[Path] = (), **properties: str) -> str:
    """MSBuild's JSON for an SDK-style project."""
    items = {
        "Compile": [{"Identity": path.name, "FullPath": str(path)} for path in files],
        "ProjectReference": [{"FullPath": str(path)} for path in references],
        "AdditionalFiles": [],
        "EditorConfigFiles": [],
    }
    known = {"UsingMicrosoftNETSdk": "true", "TargetFramework": "net10.0", **properties}
    return json.dumps({"Properties": known, "Items": items})
