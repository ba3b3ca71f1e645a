"""A peer that follows a script: run as a child process, it says any bytes at any point of a conversation.

    python scripted_peer.py SCRIPT.json

The script is a list of steps, ``{"do": NAME, ...}``; ``scripts.py`` has a builder for each.  It is bare,
blocking Python on purpose: a server library would refuse to say most of what has to be said here.
After the last step the peer behaves well (``serve``): it answers ``shutdown`` with null, everything else it is
asked with -32601, and leaves at ``exit`` or at the end of its input.

A step that cannot be done (the input ended before the expected message came) ends the peer with exit code 70
and a sentence on stderr.
"""

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

SCRIPT_FAILED = 70
METHOD_NOT_FOUND = -32601

Json = dict[str, object]
Test = Callable[[Json], bool]


class ScriptFailedError(Exception):
    """A step could not be done."""


class Peer:
    """The conversation: what came in, what was asked last, and how the steps act on it."""

    def __init__(self) -> None:
        self._input = sys.stdin.buffer
        self._output = sys.stdout.buffer
        self._byte_by_byte = False
        self.received: list[Json] = []  # everything, for ``report``
        self._waiting: list[Json] = []  # read, but not yet asked for by a step
        self._found: Json = {}  # what ``expect`` found last
        self._found_by_method: dict[str, Json] = {}

    # --- the wire ---------------------------------------------------------------------------------------

    def read(self) -> Json | None:
        """The next message, or None at the end of the input."""
        length = None
        while (line := self._input.readline()).strip():
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        if length is None:
            return None
        message: Json = json.loads(self._input.read(length))
        self.received.append(message)
        return message

    def write(self, data: bytes) -> None:
        """Bytes to stdout as they are."""
        pieces = (data[i : i + 1] for i in range(len(data))) if self._byte_by_byte else (data,)
        for piece in pieces:
            self._output.write(piece)
            self._output.flush()

    def write_body(self, body: bytes) -> None:
        """One frame."""
        self.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def write_message(self, message: Json) -> None:
        """One message, lone surrogates and all."""
        self.write_body(json.dumps({"jsonrpc": "2.0", **message}).encode("ascii"))

    def next_matching(self, matches: Test, refuses: Test = lambda _message: False) -> Json:
        """The first message, waiting or yet to come, that matches; the others stay waiting.

        A request that ``refuses`` is answered -32601 instead.
        """
        for index, message in enumerate(self._waiting):
            if matches(message):
                return self._waiting.pop(index)
        while (found := self.read()) is not None:
            if matches(found):
                return found
            if refuses(found):
                self.refuse(found)
            else:
                self._waiting.append(found)
        raise ScriptFailedError("the input ended before the expected message came")

    def refuse(self, message: Json) -> None:
        """Answer that there is no such method."""
        error = {"code": METHOD_NOT_FOUND, "message": "not in the script"}
        self.write_message({"id": message["id"], "error": error})

    # --- steps ------------------------------------------------------------------------------------------

    def expect(self, step: Json) -> None:
        """Wait for a message with a method; with ``answer`` for an answer to a request of this peer."""
        if "answer" in step:
            self._found = self.next_matching(lambda m: "method" not in m and m.get("id") == step["answer"])
        else:
            self._found = self.next_matching(lambda m: m.get("method") == step["method"])
            self._found_by_method[str(step["method"])] = self._found

    def addressed(self, step: Json) -> Json:
        """The message a reply is for: the one found last, or found last of the method ``to``."""
        return self._found_by_method[str(step["to"])] if step.get("to") else self._found

    def reply(self, step: Json) -> None:
        """Answer with the given members (``result``, ``error``, anything)."""
        members = step["members"]
        assert isinstance(members, dict)
        self.write_message({"id": self.addressed(step).get("id"), **members})

    def reply_text(self, step: Json) -> None:
        """Answer with a body given as text, in which ``$ID`` stands for the id."""
        self.write_body(str(step["body"]).replace("$ID", json.dumps(self.addressed(step).get("id"))).encode())

    def echo(self, step: Json) -> None:
        """Answer with the params of the request."""
        asked = self.addressed(step)
        self.write_message({"id": asked.get("id"), "result": asked.get("params")})

    def send(self, step: Json) -> None:
        """A message of this peer's own."""
        message = step["message"]
        assert isinstance(message, dict)
        self.write_message(message)

    def raw(self, step: Json) -> None:
        """Any bytes."""
        self.write(base64.b64decode(str(step["base64"])))

    def report(self, step: Json) -> None:
        """Tell what came in so far: a notification ``test/received``."""
        self.write_message({"method": "test/received", "params": {"messages": self.received}})

    def byte_by_byte(self, step: Json) -> None:
        """From now on each byte is written by itself."""
        self._byte_by_byte = True

    def flood_stdout(self, step: Json) -> None:
        """Text that is no message."""
        self.write(b"x" * number(step, "bytes") + b"\n")

    def flood_stderr(self, step: Json) -> None:
        """Much text on stderr; blocks if nobody reads it."""
        sys.stderr.write("noise on stderr, one line of it\n" * (number(step, "bytes") // 32))
        sys.stderr.flush()

    def stderr(self, step: Json) -> None:
        """Some text on stderr."""
        sys.stderr.write(str(step["text"]))
        sys.stderr.flush()

    def close(self, step: Json) -> None:
        """Close stdin or stdout and live on."""
        os.close({"stdin": 0, "stdout": 1}[str(step["stream"])])

    def exit(self, step: Json) -> None:
        """Leave at once."""
        os._exit(number(step, "code"))

    def kill_self(self, step: Json) -> None:
        """Die by a signal."""
        os.kill(os.getpid(), number(step, "signal"))

    def wedge(self, step: Json) -> None:
        """Never react to anything again: no reading, no end at the end of input, no end at polite signals."""
        for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        while True:
            signal.pause()

    def spawn_child(self, step: Json) -> None:
        """Start a child that never ends by itself and tell its pid: ``test/child``.

        With ``detached`` the child is in a session of its own and an orphan, as a daemon is.
        """
        command = [sys.executable, "-I", "-S", "-c", "import signal\nwhile True: signal.pause()"]
        if step.get("detached"):
            starter = (
                "import subprocess\n"
                f"child = subprocess.Popen({command!r}, start_new_session=True, stdout=subprocess.DEVNULL)\n"
                "print(child.pid)"
            )
            pid = int(
                subprocess.check_output([sys.executable, "-I", "-c", starter], stdin=subprocess.DEVNULL)
            )
        else:
            pid = subprocess.Popen(command).pid
        self.write_message({"method": "test/child", "params": {"pid": pid}})

    def play(self, step: Json) -> None:
        """Play the server's part of a recorded conversation."""
        Recording(Path(str(step["path"])), dict(string_pairs(step.get("substitutions")))).play(self)

    def serve(self, step: Json) -> None:
        """Behave well until the end."""
        while (message := self._waiting.pop(0) if self._waiting else self.read()) is not None:
            method = message.get("method")
            if method == "exit":
                os._exit(0)
            if "id" not in message or method is None:
                continue
            if method == "shutdown":
                self.write_message({"id": message["id"], "result": None})
            else:
                self.refuse(message)


STEPS: dict[str, Callable[[Peer, Json], None]] = {
    "expect": Peer.expect,
    "reply": Peer.reply,
    "reply-text": Peer.reply_text,
    "echo": Peer.echo,
    "send": Peer.send,
    "raw": Peer.raw,
    "report": Peer.report,
    "byte-by-byte": Peer.byte_by_byte,
    "flood-stdout": Peer.flood_stdout,
    "flood-stderr": Peer.flood_stderr,
    "stderr": Peer.stderr,
    "close": Peer.close,
    "exit": Peer.exit,
    "kill-self": Peer.kill_self,
    "wedge": Peer.wedge,
    "spawn-child": Peer.spawn_child,
    "play": Peer.play,
    "serve": Peer.serve,
}


class Recording:
    """A recorded conversation (``t``, ``dir``, ``msg`` a line), from which the lines ``<-`` are said.

    The lines ``->`` tell which method each answer belongs to; an answer waits until the client has asked with
    that method (the first open one, in the order of the recording), and carries the id the client used.  What
    the server said by itself is said in its place, after the notifications in ``GATES`` have come.  Requests
    with a method that has no answer left are answered -32601 while waiting, so that nobody hangs.
    """

    GATES = frozenset({"initialized", "solution/open"})

    def __init__(self, path: Path, substitutions: dict[str, str]) -> None:
        text = path.read_text(encoding="utf-8")
        for name, value in substitutions.items():
            text = text.replace(name, value)
        self._lines: list[Json] = [json.loads(line) for line in text.splitlines() if line.strip()]

    def play(self, peer: Peer) -> None:
        """Say it all."""
        messages = list(self._messages())
        method_of: dict[object, str] = {
            m["id"]: str(m["method"]) for to, m in messages if to == "->" and "method" in m and "id" in m
        }
        answered = Counter(method_of[m["id"]] for to, m in messages if to == "<-" and "method" not in m)
        for to, message in messages:
            method = message.get("method")
            if to == "->" and method in self.GATES:
                peer.next_matching(self._test(str(method)))
            elif to == "<-" and method is None:
                asked_for = method_of[message["id"]]
                answered.subtract([asked_for])
                asked = peer.next_matching(self._test(asked_for), self._refusal(answered))
                peer.write_message({**message, "id": asked["id"]})
            elif to == "<-":
                peer.write_message(message)

    def _messages(self) -> Iterator[tuple[str, Json]]:
        for line in self._lines:
            if isinstance(message := line.get("msg"), dict):
                yield str(line["dir"]), message

    @staticmethod
    def _test(method: str) -> Test:
        return lambda message: message.get("method") == method

    @staticmethod
    def _refusal(answered: Counter[str]) -> Test:
        """Requests that the rest of the recording has no answer for."""
        return lambda message: (
            "id" in message and "method" in message and answered[str(message["method"])] <= 0
        )


def number(step: Json, name: str) -> int:
    """An integer member of a step."""
    value = step[name]
    assert isinstance(value, int)
    return value


def string_pairs(value: object) -> Iterator[tuple[str, str]]:
    """The members of an optional object of strings."""
    if isinstance(value, dict):
        for name, text in value.items():
            yield str(name), str(text)


def main() -> None:
    """Follow the script, then behave well."""
    peer = Peer()
    steps: list[Json] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    steps.append({"do": "serve"})
    try:
        for step in steps:
            STEPS[str(step["do"])](peer, step)
    except ScriptFailedError as error:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{error}\n")
            sys.stderr.flush()
        os._exit(SCRIPT_FAILED)
    except OSError:  # the bridge closed the pipes: the test is over
        os._exit(0)
    os._exit(0)


if __name__ == "__main__":
    main()
