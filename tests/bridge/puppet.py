"""A process without a will of its own: every byte on its pipes goes to and comes from a socket.

    python puppet.py SOCKET [whatever a dialect appends]

Started by the bridge as its language server, while the words are the test's (``played_server.py``).  So the pipes, the
process and its death are real, and the test still decides what is said and when.
"""

import os
import socket
import sys
import threading

_CHUNK_BYTES = 65536


def forward_input(channel: socket.socket) -> None:
    """From stdin to the socket, and the end of it as well."""
    while data := os.read(0, _CHUNK_BYTES):
        channel.sendall(data)
    channel.shutdown(socket.SHUT_WR)


def main() -> None:
    """Carry bytes until the socket is closed."""
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(sys.argv[1])
    threading.Thread(target=forward_input, args=(channel,), daemon=True).start()
    try:
        while data := channel.recv(_CHUNK_BYTES):
            os.write(1, data)
    except OSError:  # the bridge has closed the pipe, or the test the socket
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
