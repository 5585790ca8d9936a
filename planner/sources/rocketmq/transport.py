"""The byte streams below a connection: plain TCP, or TLS over it.

Addresses are ``host:port``; IPv6 literals come in brackets or not. TLS verifies the server unless switched off.
"""

import functools
import logging
import select
import socket
import ssl
import struct
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from planner.errors import BadInputError, OutOfReachError

log = logging.getLogger(__name__)

_POLL_MS: Final = 1000


class UnverifiedTlsWarning(UserWarning):
    """TLS is used without verification: a party in between can read and answer in the server's place."""


class Address(NamedTuple):
    """Host (name, IPv4 or IPv6 address) and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Return the address in ``text``: ``host:port``, an IPv6 host in brackets or not. Raises ``BadInputError``."""
    if "@" in text:
        raise BadInputError("an address has an @: write host:port alone, and the account into a file of credentials")
    host, colon, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = colon and port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536
    if not colon and text.strip():
        raise BadInputError(f"address {text!r} is not host:port: name servers listen on 9876 ({text.strip()}:9876)")
    if not host or not is_port:
        raise BadInputError(f"address {text!r} is not host:port with a port from 1 to 65535: correct it")
    return Address(host, int(port))


def resolve(address: Address) -> tuple[Address, ...]:
    """Return the addresses behind a name, in the resolver's order; the address itself where there is none."""
    try:
        entries = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        log.info("name not resolved", extra={"address": str(address), "cause": str(error)})
        return (address,)
    return tuple(dict.fromkeys(Address(str(entry[4][0]), address.port) for entry in entries)) or (address,)


@dataclass(frozen=True, slots=True)
class Tls:
    """How servers are verified, and our own certificate.

    ``ca_file`` holds the authorities that we trust (PEM), the system's when ``None``. ``verify_names`` also wants the
    address in the certificate; RocketMQ's own clients do not, so many certificates lack it. ``verify=False`` takes
    any certificate, and warns. ``certificate_file`` and ``key_file`` (PEM) are ours, for servers that want one.
    """

    ca_file: Path | None = None
    verify: bool = True
    verify_names: bool = True
    certificate_file: Path | None = None
    key_file: Path | None = None

    def __post_init__(self) -> None:
        if not self.verify and self.ca_file is not None:
            raise BadInputError(f"TLS is not to verify, yet {self.ca_file} is to be trusted: choose one of them")
        if self.key_file is not None and self.certificate_file is None:
            raise BadInputError(f"the TLS key {self.key_file} lacks its certificate: give both")


class Stream(Protocol):
    """What a connection needs: one thread receives, others send whole frames one after the other."""

    def recv(self, size: int, /) -> bytes:
        """Return at least one byte and at most ``size``; none at the end. Waits without limit."""

    def sendall(self, data: bytes, /) -> None:
        """Send ``data`` whole, or raise ``OSError``."""

    def end(self) -> None:
        """Wake the receiving thread, and close."""


def connect(address: Address, *, connect_s: float, tls: Tls | None = None, server_name: str | None = None) -> Stream:
    """Return a stream to ``address`` within ``connect_s`` seconds, the TLS handshake included.

    ``server_name`` is what the certificate must name, the address's host by default. Raises ``OutOfReachError``.
    """
    context = None if tls is None else context_of(tls)
    start = time.monotonic()
    try:
        connected = socket.create_connection(address, timeout=connect_s)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if context is None:
            return _Plain(connected, connect_s)
        return _Encrypted(connected, context, server_name or address.host, connect_s)
    except ssl.SSLError as error:
        raise OutOfReachError(
            f"no TLS connection to {address} ({_reason(error)}): check that the server speaks TLS, "
            f"and that its certificate names {server_name or address.host} and comes from an authority that is trusted"
        ) from error
    except (OSError, UnicodeError) as error:
        raise OutOfReachError(
            f"no connection to {address} after {time.monotonic() - start:.1f} s of at most {connect_s:g} s "
            f"({getattr(error, 'strerror', None) or error}): check the address and that the server listens there"
        ) from error


def _reason(error: ssl.SSLError) -> str:
    return getattr(error, "verify_message", "") or str(error)


@functools.lru_cache(maxsize=16)
def context_of(tls: Tls) -> ssl.SSLContext:
    """Return OpenSSL's settings for ``tls``, made once; warns where nothing is verified. Raises ``BadInputError``."""
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.certificate_file is not None:
            # Without a password callback OpenSSL would ask on the terminal.
            context.load_cert_chain(tls.certificate_file, tls.key_file, password=lambda: "")
    except (OSError, ValueError) as error:
        files = ", ".join(str(file) for file in (tls.ca_file, tls.certificate_file, tls.key_file) if file is not None)
        raise BadInputError(
            f"TLS files {files} cannot be used ({error}): give PEM files, a key without password"
        ) from error
    if not tls.verify:
        warnings.warn("TLS to RocketMQ is not verified", UnverifiedTlsWarning, stacklevel=2)
        log.warning("TLS to RocketMQ is not verified")
    context.check_hostname = tls.verify and tls.verify_names
    context.verify_mode = ssl.CERT_REQUIRED if tls.verify else ssl.CERT_NONE
    return context


class _Plain:
    """A TCP connection."""

    def __init__(self, connected: socket.socket, send_s: float) -> None:
        self._socket = connected
        self.recv = connected.recv
        self.sendall = connected.sendall
        connected.settimeout(None)
        # Receiving waits without limit, so a limit on sending has to be set below Python's own time-outs.
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", max(1, int(send_s)), 0))

    def end(self) -> None:
        _shut(self._socket)


class _Encrypted:
    """TLS over a TCP connection; OpenSSL's state is touched by one thread at a time, waiting happens outside."""

    def __init__(self, connected: socket.socket, context: ssl.SSLContext, server_name: str, send_s: float) -> None:
        self._send_s = max(1.0, send_s)
        self._lock = threading.Lock()
        try:
            self._socket = context.wrap_socket(connected, server_hostname=server_name)
        except BaseException:
            connected.close()
            raise
        self._socket.setblocking(False)

    def recv(self, size: int, /) -> bytes:
        while True:
            events = select.POLLIN
            try:
                with self._lock:
                    return self._socket.recv(size)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLWantWriteError:
                events = select.POLLOUT
            self._wait(events)

    def sendall(self, data: bytes, /) -> None:
        left = memoryview(data)
        deadline = time.monotonic() + self._send_s
        while left:
            events = 0
            try:
                with self._lock:
                    left = left[self._socket.send(left) :]
            except ssl.SSLWantReadError:
                events = select.POLLIN
            except ssl.SSLWantWriteError:
                events = select.POLLOUT
            if events:
                self._wait(events)
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{len(left)} of {len(data)} bytes not sent in {self._send_s:g} s")

    def _wait(self, events: int) -> None:
        number = self._socket.fileno()
        if number < 0:
            raise ConnectionAbortedError("the connection was closed on our side")
        poll = select.poll()
        poll.register(number, events)
        poll.poll(_POLL_MS)

    def end(self) -> None:
        # A reader between its check of the file descriptor and its wait gets no signal, but that wait is short.
        with self._lock:
            _shut(self._socket)


def _shut(connected: socket.socket) -> None:
    """Wake the reader and close; closing alone leaves a blocked ``recv`` waiting."""
    try:
        connected.shutdown(socket.SHUT_RDWR)
    except OSError:
        log.debug("peer was gone before the connection was closed")
    connected.close()
