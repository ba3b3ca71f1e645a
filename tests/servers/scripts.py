"""Scripts for ``scripted_peer.py``: a builder for each step, and the command line that plays them.

command = peer_command(tmp_path, expect("initialize"), reply({"capabilities": {}}), exit_with(3))
"""

import base64
import json
import sys
import tempfile
from pathlib import Path

Step = dict[str, object]

PEER = Path(__file__).with_name("scripted_peer.py")


def peer_command(folder: Path, *steps: Step) -> list[str]:
    """Write the script into ``folder`` and return the command that starts a peer following it."""
    with tempfile.NamedTemporaryFile(
        "w", dir=folder, suffix=".json", delete=False, encoding="ascii"
    ) as script:
        json.dump(steps, script)
    return [sys.executable, "-I", "-S", str(PEER), script.name]


def expect(method: str) -> Step:
    """Wait for a request or notification of this method; it becomes the one that is replied to."""
    return {"do": "expect", "method": method}


def expect_answer(request_id: int | str) -> Step:
    """Wait for the answer to a request that the peer sent."""
    return {"do": "expect", "answer": request_id}


def reply(result: object = None, *, to: str | None = None, **members: object) -> Step:
    """Answer with a result, and further members of the envelope; ``to`` is the method, if not the last found."""
    return {"do": "reply", "to": to, "members": {"result": result, **members}}


def reply_members(**members: object) -> Step:
    """Answer with exactly these members beside the id."""
    return {"do": "reply", "members": members}


def reply_error(code: int, message: str, data: object = None) -> Step:
    """Answer with an error."""
    return {"do": "reply", "members": {"error": {"code": code, "message": message, "data": data}}}


def reply_text(body: str) -> Step:
    """Answer with a body as it stands; ``$ID`` is the id."""
    return {"do": "reply-text", "body": body}


def echo() -> Step:
    """Answer with the params of the request."""
    return {"do": "echo"}


def notify(method: str, **members: object) -> Step:
    """A notification of the peer; ``params`` only if given."""
    return {"do": "send", "message": {"method": method, **members}}


def ask(request_id: int | str, method: str, **members: object) -> Step:
    """A request of the peer."""
    return {"do": "send", "message": {"id": request_id, "method": method, **members}}


def raw(data: bytes) -> Step:
    """Any bytes on stdout."""
    return {"do": "raw", "base64": base64.b64encode(data).decode("ascii")}


def framed(body: bytes) -> Step:
    """A frame with this body, whatever it is."""
    return raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def report() -> Step:
    """Tell what came in so far, in a notification ``test/received``."""
    return {"do": "report"}


def byte_by_byte() -> Step:
    """Write each byte by itself from now on."""
    return {"do": "byte-by-byte"}


def flood_stdout(count: int) -> Step:
    """A line of ``count`` bytes that is no message."""
    return {"do": "flood-stdout", "bytes": count}


def flood_stderr(count: int) -> Step:
    """About ``count`` bytes on stderr, in lines."""
    return {"do": "flood-stderr", "bytes": count}


def stderr(text: str) -> Step:
    """This text on stderr."""
    return {"do": "stderr", "text": text}


def close(stream: str) -> Step:
    """Close ``stdin`` or ``stdout`` and live on."""
    return {"do": "close", "stream": stream}


def exit_with(code: int) -> Step:
    """Leave at once."""
    return {"do": "exit", "code": code}


def die_by(signal_number: int) -> Step:
    """Die by a signal."""
    return {"do": "kill-self", "signal": signal_number}


def wedge() -> Step:
    """Never react again, not even to the end of stdin."""
    return {"do": "wedge"}


def spawn_child(*, detached: bool = False) -> Step:
    """Start a grandchild that never ends by itself; its pid comes as ``test/child``."""
    return {"do": "spawn-child", "detached": detached}


def play(transcript: Path, **substitutions: str) -> Step:
    """Play the server's lines of a recorded conversation; ``ROOT="/x"`` replaces ``$ROOT``."""
    replaced = {f"${name}": value for name, value in substitutions.items()}
    return {"do": "play", "path": str(transcript), "substitutions": replaced}
