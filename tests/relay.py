"""``Relay``: a way to a server that can be cut and mended. It passes bytes on, whatever they are."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

_CHUNK: Final = 65_536


class Relay:
    """Listens on loopback and passes connections on. A context manager; ``server`` is the address to use instead."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self._target = (str(parts.hostname), int(parts.port or 443))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.server = f"{parts.scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._is_cut = False
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def cut(self) -> None:
        """Break all connections, and let no new one through."""
        with self._lock:
            self._is_cut = True
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Let new connections through again."""
        with self._lock:
            self._is_cut = False

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            with self._lock:
                if self._is_cut:
                    return
            with socket.create_connection(self._target) as server:
                with self._lock:
                    self._open |= {client, server}
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join()
                with self._lock:
                    self._open -= {client, server}


def _copy(origin: socket.socket, target: socket.socket) -> None:
    """Pass bytes on until one side ends; the other then hears of it."""
    with contextlib.suppress(OSError):
        while chunk := origin.recv(_CHUNK):
            target.sendall(chunk)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
