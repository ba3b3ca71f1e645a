"""``python -m bridge.embedded_server --stdio``: started with the command line of the server it stands in for."""

import argparse
import contextlib
import logging
import os
import sys
import threading
from pathlib import Path

from bridge.embedded_server.engine import Engine
from bridge.embedded_server.server import Server

_LEVELS = {
    "Trace": logging.DEBUG,
    "Debug": logging.DEBUG,
    "Information": logging.INFO,
    "Warning": logging.WARNING,
    "Error": logging.ERROR,
    "Critical": logging.CRITICAL,
    "None": logging.CRITICAL + 1,
}

_CLIENT_GONE = 1  # the exit code of a server whose client has died


def main(arguments: list[str] | None = None) -> int:
    """Serve on standard input and output until the client says exit or goes away; returns the exit code."""
    options = _options().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=_LEVELS[options.logLevel])
    if options.logLevel not in {"Trace", "Debug"}:
        # pygls reports every error answer with a traceback; ours are answers, not accidents.
        logging.getLogger("pygls").setLevel(logging.CRITICAL)
    if options.extensionLogDirectory is not None:
        options.extensionLogDirectory.mkdir(parents=True, exist_ok=True)
    if options.clientProcessId is not None:
        threading.Thread(target=_end_with, args=(options.clientProcessId,), daemon=True).start()
    engine = Engine()
    server = Server(engine)
    engine.start_io()
    return server.exit_code


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bridge.embedded_server", allow_abbrev=False)
    parser.add_argument(
        "--stdio", action="store_true", required=True, help="speak on standard input and output"
    )
    parser.add_argument(
        "--logLevel", choices=_LEVELS, default="Warning", help="what is written to standard error"
    )
    parser.add_argument(
        "--extensionLogDirectory", type=Path, help="created if missing; nothing is written there"
    )
    parser.add_argument(
        "--telemetryLevel", choices=["off", "all", "error", "crash"], default="off", help="ignored"
    )
    parser.add_argument("--clientProcessId", type=int, help="end when this process ends")
    return parser


def _end_with(process_id: int) -> None:
    import psutil  # noqa: PLC0415 - not needed to answer the first request

    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(process_id).wait()
    os._exit(_CLIENT_GONE)  # standard input may never end: nothing else gets the main thread out of its read


if __name__ == "__main__":
    sys.exit(main())
