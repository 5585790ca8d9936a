"""A server on loopback that behaves as a test tells it, also in ways that no real broker can be made to."""

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from planner.sources.rocketmq import codec
from planner.sources.rocketmq.codec import Command
from planner.sources.rocketmq.errors import FrameError


def answer_to(request: Command, code: int = 0, body: bytes = b"", remark: str = "") -> Command:
    """Return the answer to ``request`` as a Java broker of version 5.5.0 would head it."""
    return Command(code, request.opaque, flag=1, language="JAVA", version=513, remark=remark, body=body)


class Wire:
    """The server's end of one connection; what a test's script may do on it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self.version = 513
        """Heads all answers: the ordinal of V5_5_0."""

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def answer(self, request: Command, code: int = 0, body: bytes = b"", remark: str = "", **changes: object) -> None:
        """Send an answer to ``request``; ``changes`` overwrite fields of its header."""
        headed = {"version": self.version, **changes}
        self.send(codec.encode(replace(answer_to(request, code, body, remark), **headed)))  # type: ignore[arg-type]

    def close(self) -> None:
        """End the connection from the server's side."""
        self._socket.shutdown(socket.SHUT_RDWR)


Script = Callable[[Command, Wire], None]


class FakeServer:
    """Listens on loopback and hands each request to ``script``, one thread per connection."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Command] = []
        self.connections = 0
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the listener and all connections, and wait for the threads."""
        with self._lock:
            ends, self._ends = self._ends, []
        for end in (self._listener, *ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(timeout=60)
            assert not thread.is_alive()

    def close_connections(self) -> None:
        """End all connections, as a server does after 120 s without requests, and go on listening."""
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._ends.append(connected)
                self.connections += 1
            self._start(self._serve, connected)

    def _serve(self, connected: socket.socket) -> None:
        wire = Wire(connected)
        try:
            while (prefix := _exactly(connected, 4)) and (frame := _exactly(connected, int.from_bytes(prefix, "big"))):
                request = codec.decode(frame)
                with self._lock:
                    self.requests.append(request)
                self.script(request, wire)
        except (OSError, FrameError):
            return  # the other end is gone, or asks in Kafka's protocol which system this is


def _exactly(connected: socket.socket, size: int) -> bytes:
    """Return ``size`` bytes, or none when the connection ends before."""
    data = b""
    while len(data) < size:
        part = connected.recv(size - len(data))
        if not part:
            return b""
        data += part
    return data
