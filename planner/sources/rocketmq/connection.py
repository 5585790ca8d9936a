"""One TCP connection to one address: requests go out as they come, answers are matched by ``opaque``.

Many threads may ask at once. A reader thread hands each answer to the thread that asked, in whatever order they come;
answers that no thread waits for any more and requests that the server pushes are dropped. The first impossible byte
closes the connection, since nothing after it can be trusted.
"""

import itertools
import logging
import ssl
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, Self

from planner.errors import OutOfReachError
from planner.sources.rocketmq import codec
from planner.sources.rocketmq.credentials import Credentials
from planner.sources.rocketmq.errors import ConnectionEndedError, NoAnswerError, ProtocolError
from planner.sources.rocketmq.requests import Request
from planner.sources.rocketmq.transport import Address, Tls, connect

log = logging.getLogger(__name__)

_RECEIVE: Final = 64 * 1024


class Connection:
    """An open connection; a context manager. After ``is_open`` turned False, open a new one."""

    def __init__(
        self,
        address: Address,
        *,
        connect_s: float = 3.0,
        max_frame: int = codec.MAX_FRAME,
        tls: Tls | None = None,
        server_name: str | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """Connect to ``address`` within ``connect_s`` seconds, or raise ``OutOfReachError``.

        With ``tls`` the server has to prove that it is ``server_name``, by default the address's host. With
        ``credentials`` every request is signed.
        """
        self.address = address
        self._credentials = credentials
        self._max_frame = max_frame
        self._opaque = itertools.count(1)
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._waiting: dict[int, Future[codec.Command]] = {}
        self._closed: Exception | None = None
        self._stream = connect(address, connect_s=connect_s, tls=tls, server_name=server_name)
        self._reader = threading.Thread(target=self._read_all, name=f"rocketmq {address}", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """True until either side closed the connection or something impossible was read."""
        return self._closed is None

    def ask(self, request: Request, *, within_s: float) -> codec.Command:
        """Return the answer to ``request``, whatever its code.

        Raises ``NoAnswerError`` when none comes within ``within_s`` seconds, ``ConnectionEndedError`` when the
        connection ends before, ``ProtocolError`` when what comes is not the protocol.
        """
        opaque = next(self._opaque)
        answer: Future[codec.Command] = Future()
        with self._lock:
            if self._closed is not None:
                raise self._failure(request, self._closed) from self._closed
            self._waiting[opaque] = answer
        try:
            self._send(codec.encode_request(request, opaque, credentials=self._credentials))
            with suppress(TimeoutError):  # reported below, by what is there then
                answer.exception(within_s)
        finally:
            with self._lock:
                self._waiting.pop(opaque, None)
        if not answer.done():
            raise NoAnswerError(
                f"{self.address} did not answer {request} within {within_s:g} s: "
                f"see whether it is overloaded or stopped, then try again"
            )
        cause = answer.exception()
        if isinstance(cause, Exception):
            raise self._failure(request, cause) from cause
        return answer.result()

    def close(self) -> None:
        """Close the connection; requests that still wait fail. Closing twice does nothing."""
        self._end(ConnectionAbortedError("the connection was closed on our side"))
        if threading.current_thread() is not self._reader:
            self._reader.join(timeout=5)

    def _failure(self, request: Request, cause: Exception) -> OutOfReachError:
        if isinstance(cause, ProtocolError):
            return ProtocolError(
                f"{self.address} answered {request} with something else than RocketMQ's remoting protocol "
                f"({cause}): check that the address is a name server's or a broker's own port"
            )
        if isinstance(cause, ssl.SSLError):
            return ConnectionEndedError(
                f"{self.address} ended TLS while {request} waited ({cause}): "
                f"check whether it wants a certificate of ours and trusts the one that it gets"
            )
        return ConnectionEndedError(
            f"the connection to {self.address} ended while {request} waited ({cause}): "
            f"see whether the server is up, then try again"
        )

    def _send(self, frame: bytes) -> None:
        """Send ``frame`` whole; a failure ends the connection, by which all that wait learn of it."""
        with self._sending:
            try:
                self._stream.sendall(frame)
            except OSError as error:
                self._end(error)

    def _read_all(self) -> None:
        try:
            while True:
                length = codec.frame_length(self._exactly(4), self._max_frame)
                self._hand_over(codec.decode(self._exactly(length)))
        except Exception as error:
            # Whatever it was: no other thread reads, so the waiting ones have to learn of it here.
            self._end(error)

    def _exactly(self, size: int) -> bytes:
        """Return the next ``size`` bytes; memory grows with what arrives, not with what a length field claims."""
        data = bytearray()
        while len(data) < size:
            chunk = self._stream.recv(min(size - len(data), _RECEIVE))
            if not chunk:
                raise ConnectionResetError(f"the server closed it, {len(data)} of {size} bytes into a read")
            data += chunk
        return bytes(data)

    def _hand_over(self, command: codec.Command) -> None:
        with self._lock:
            waiting = self._waiting.pop(command.opaque, None) if command.is_answer else None
        if waiting is None:
            log.debug("frame dropped", extra={"address": str(self.address), "code": command.code})
        else:
            waiting.set_result(command)

    def _end(self, cause: Exception) -> None:
        with self._lock:
            if self._closed is not None:
                return
            self._closed = cause
            waiting, self._waiting = list(self._waiting.values()), {}
        self._stream.end()
        for answer in waiting:
            answer.set_exception(cause)
        log.debug("connection ended", extra={"address": str(self.address), "cause": str(cause)})
