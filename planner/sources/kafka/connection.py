"""One connection to one broker: TLS and account first, then one request after the other, each by a deadline."""

import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, TypeVar

from planner.errors import BadInputError, OutOfReachError
from planner.sources.kafka import requests, sasl, wire
from planner.sources.kafka.errors import ConnectionEndedError, ProtocolError, answer_error
from planner.sources.kafka.requests import Api
from planner.sources.kafka.settings import KafkaSettings
from planner.sources.kafka.wire import Reader
from planner.text.bounded import MOST_BYTES

_T = TypeVar("_T")
_CLIENT_ID: Final = "consumer-planner"
_MAX_ANSWER: Final = MOST_BYTES
_CHUNK: Final = 64 * 1024
_TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")
_ILLEGAL_SASL_STATE: Final = 34
_PROTOCOL_HINT: Final = "check that security.protocol is the listener's"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address in ``host:port`` or ``[IPv6]:port``; raise ``BadInputError`` for anything else."""
        if "@" in text:
            raise BadInputError(
                "a Kafka address has an @: write host:port alone, and the account into a file of client properties"
            )
        host, colon, port = text.strip().rpartition(":")
        if not colon and text.strip():
            raise BadInputError(
                f"{text!r} is no Kafka address: it has no port; brokers mostly listen on 9092 ({text.strip()}:9092)"
            )
        if not host or not port.isdecimal() or not 0 < int(port) < 65536 or (":" in host) != host.startswith("["):
            raise BadInputError(f"{text!r} is no Kafka address: write host:port, or [address]:port for IPv6")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


class Connection:
    """A connection that is ready for requests; a context manager.

    Raises ``OutOfReachError`` where no server listens or answers in time, ``RefusedError`` for an account that the
    broker does not let in, ``ProtocolError`` for what is not Kafka or speaks another security protocol.
    """

    def __init__(self, address: Address, settings: KafkaSettings, timeout_s: float) -> None:
        self.address = address
        self._settings = settings
        self._timeout_s = timeout_s
        self._correlation = 0
        self._deadline = time.monotonic() + timeout_s
        self._socket = self._connect()
        try:
            self._versions = self._read_versions()
            if settings.uses_sasl:
                self._authenticate()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; closing twice does nothing."""
        self._socket.close()

    def version(self, api: Api[_T]) -> int | None:
        """Return the newest version of a request that both sides know, ``None`` for none."""
        lowest, highest = self._versions.get(api.key, (0, -1))
        version = min(highest, api.versions[1])
        return version if version >= max(lowest, api.versions[0]) else None

    def ask(self, api: Api[_T], body: bytes | Callable[[int], bytes]) -> _T:
        """Return the answer to one request, whose body may depend on the version."""
        self._deadline = time.monotonic() + self._timeout_s
        return self._ask(api, body)

    def _ask(self, api: Api[_T], body: bytes | Callable[[int], bytes]) -> _T:
        version = self.version(api)
        if version is None:
            raise ProtocolError(f"broker {self.address} is too old for {api.name} {api.versions[0]}: 3.0 is needed")
        return self._exchange(api, version, body if isinstance(body, bytes) else body(version))

    def _exchange(self, api: Api[_T], version: int, body: bytes) -> _T:
        self._correlation += 1
        is_flexible = api.is_flexible(version)
        header = wire.int16(api.key) + wire.int16(version) + wire.int32(self._correlation) + wire.text(_CLIENT_ID)
        frame = header + (wire.NO_TAGS if is_flexible else b"") + body
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(wire.data(frame))
            reader = Reader(self._frame(api.name))
        except OSError as error:
            raise self._broken(api.name, error) from error
        if (correlation := reader.int32()) != self._correlation:
            raise ProtocolError(f"broker {self.address} answers request {correlation}, asked was {self._correlation}")
        if is_flexible:
            reader.skip_tags()
        try:
            return api.read(reader, version)
        except ProtocolError as error:
            raise ProtocolError(f"broker {self.address}, answer to {api.name} {version}: {error}") from error

    def _frame(self, name: str) -> bytes:
        start = self._receive(4, name)
        if start[:2] in _TLS_RECORDS:
            raise ProtocolError(f"broker {self.address} speaks TLS, security.protocol is {self._protocol}: correct it")
        length = int.from_bytes(start, signed=True)
        if not 4 <= length <= _MAX_ANSWER:
            raise ProtocolError(f"{self.address} announces an answer of {length} bytes: it is not a Kafka broker")
        return self._receive(length, name)

    def _receive(self, count: int, name: str) -> bytes:
        content = bytearray()
        while len(content) < count:
            self._socket.settimeout(self._left())
            chunk = self._socket.recv(min(_CHUNK, count - len(content)))
            if not chunk:
                raise ConnectionEndedError(
                    f"broker {self.address} ended the connection instead of answering {name} "
                    f"(security.protocol {self._protocol}): {_PROTOCOL_HINT}"
                )
            content += chunk
        return bytes(content)

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _connect(self) -> socket.socket:
        context = _tls_context(self._settings) if self._settings.uses_tls else None
        try:
            plain = socket.create_connection((self.address.host, self.address.port), self._timeout_s)
        except OSError as error:
            raise OutOfReachError(f"nobody answers at {self.address}: {_reason(error)}") from error
        if context is None:
            return plain
        try:
            plain.settimeout(self._left())
            return context.wrap_socket(plain, server_hostname=self.address.host)
        except OSError as error:
            plain.close()
            raise self._no_tls(error) from error

    def _no_tls(self, error: OSError) -> OutOfReachError:
        if isinstance(error, ssl.SSLCertVerificationError):
            return ProtocolError(
                f"the certificate of {self.address} cannot be trusted ({error.verify_message}): "
                f"set ssl.ca.location to the authority that signed it"
            )
        return OutOfReachError(
            f"no TLS connection to {self.address} ({_reason(error)}), security.protocol is {self._protocol}: "
            f"{_PROTOCOL_HINT}"
        )

    def _broken(self, name: str, error: OSError) -> OutOfReachError:
        if isinstance(error, TimeoutError):
            return OutOfReachError(f"broker {self.address} did not answer {name} within {self._timeout_s:g} s")
        return ConnectionEndedError(
            f"the connection to broker {self.address} broke at {name} ({_reason(error)}), security.protocol is "
            f"{self._protocol}: {_PROTOCOL_HINT}"
        )

    def _read_versions(self) -> dict[int, tuple[int, int]]:
        code, versions = self._exchange(requests.API_VERSIONS, 0, b"")
        if code:
            raise answer_error(f"broker {self.address}, ApiVersions", code)
        return versions

    def _authenticate(self) -> None:
        """As KIP-43 and KIP-152: name the mechanism, then carry its messages inside requests."""
        what, mechanism = f"broker {self.address}, {self._settings.mechanism}", self._settings.mechanism
        code, known = self._ask(requests.SASL_HANDSHAKE, requests.mechanism_request(mechanism))
        if code == _ILLEGAL_SASL_STATE:
            raise ProtocolError(f"broker {self.address} asks for no account, security.protocol is {self._protocol}")
        if code:
            raise answer_error(what, code, f"it knows {', '.join(known)}" if known else "")
        talk = sasl.exchange(mechanism, self._settings.get("sasl.username"), self._settings.get("sasl.password"))
        token = next(talk)
        while True:
            code, remark, answer = self._ask(requests.SASL_AUTHENTICATE, requests.token_request(token))
            if code:
                raise answer_error(what, code, self._settings.redacted(remark))
            try:
                token = talk.send(answer)
            except StopIteration:
                return

    @property
    def _protocol(self) -> str:
        return self._settings.protocol


def can_connect(settings: KafkaSettings) -> str:
    """Return why a connection of ours cannot be made with these settings, "" when it can."""
    if settings.uses_sasl and settings.mechanism not in sasl.MECHANISMS:
        return f"sasl.mechanism {settings.mechanism} is left to librdkafka"
    if settings.uses_tls:
        beyond = [
            name for name in ("ssl.keystore.location", "ssl.certificate.pem", "ssl.key.pem") if settings.get(name)
        ]
        if beyond:
            return f"{beyond[0]} is left to librdkafka"
    return ""


def _tls_context(settings: KafkaSettings) -> ssl.SSLContext:
    """Return what librdkafka would make of the same properties: verified by default, name included."""
    try:
        authorities = settings.get("ssl.ca.location")
        own = None if authorities in {"", "probe"} else authorities
        is_folder = own is not None and Path(own).is_dir()
        context = ssl.create_default_context(
            cafile=None if is_folder else own,
            capath=own if is_folder else None,
            cadata=settings.get("ssl.ca.pem") or None,
        )
        if certificate := settings.get("ssl.certificate.location"):
            key = settings.get("ssl.key.location") or None
            context.load_cert_chain(certificate, key, settings.get("ssl.key.password"))
    except (OSError, ValueError) as error:
        raise BadInputError(f"the TLS properties name a file that cannot be used: {_reason(error)}") from error
    if settings.get("ssl.endpoint.identification.algorithm").lower() == "none":
        context.check_hostname = False
    if not settings.verifies_certificates:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
