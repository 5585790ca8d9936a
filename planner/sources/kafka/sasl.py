"""Proving who we are: PLAIN (RFC 4616) and SCRAM (RFC 5802), as the messages that go to and fro."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Generator
from typing import Final

from planner.sources.kafka.errors import ProtocolError

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_MOST_BYTES: Final = 4_096
"""Of a message of SCRAM: a nonce, a salt, a number, a signature."""
"""What we can do by ourselves; librdkafka can do more."""
_MIN_ITERATIONS: Final = 4_096  # RFC 7677; Kafka stores no fewer. With less a listener could try passwords offline
_MAX_DIGITS: Final = 7
_MAX_ITERATIONS: Final = 1_000_000  # a broker that asks for more wants our processor, not our proof
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

Exchange = Generator[bytes, bytes, None]
"""Yields what to send and is sent what came back; ends when both sides are content."""


def exchange(mechanism: str, username: str, password: str) -> Exchange:
    """Return the exchange of one of ``MECHANISMS``; it raises ``ProtocolError`` when the broker cannot prove itself."""
    if mechanism == "PLAIN":
        return _plain(username, password)
    return _scram(_HASHES[mechanism], username, password)


def _plain(username: str, password: str) -> Exchange:
    yield b"\0".join([b"", username.encode(), password.encode()])


def _scram(hash_name: str, username: str, password: str) -> Exchange:
    nonce = secrets.token_urlsafe(24)
    escaped = username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={escaped},r={nonce}"
    server_first = yield f"n,,{first}".encode()
    fields = _fields(server_first, "rsi")
    iterations = int(fields["i"]) if fields["i"].isdecimal() and len(fields["i"]) <= _MAX_DIGITS else 0
    if not fields["r"].startswith(nonce) or not _MIN_ITERATIONS <= iterations <= _MAX_ITERATIONS:
        raise ProtocolError("SCRAM: the broker answers with a nonce or a number of rounds that cannot be")
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), _decode(fields["s"]), iterations)
    without_proof = f"c=biws,r={fields['r']}"
    spoken = f"{first},{server_first.decode()},{without_proof}".encode()
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    signature = hmac.digest(hashlib.new(hash_name, client_key).digest(), spoken, hash_name)
    proof = bytes(mine ^ theirs for mine, theirs in zip(client_key, signature, strict=True))
    server_final = yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", hash_name), spoken, hash_name)
    if not hmac.compare_digest(_decode(_fields(server_final, "v")["v"]), expected):
        raise ProtocolError("SCRAM: the broker does not know the password either: it is not who it says it is")


def _fields(message: bytes, required: str) -> dict[str, str]:
    if len(message) > _MOST_BYTES:
        raise ProtocolError(f"SCRAM: the broker's message has {len(message)} bytes, expected {_MOST_BYTES} at most")
    try:
        fields = dict(pair.split("=", 1) for pair in message.decode().split(","))
    except ValueError as error:  # also what is not UTF-8
        raise ProtocolError("SCRAM: the broker's message cannot be read") from error
    if absent := [name for name in required if name not in fields]:
        raise ProtocolError(f"SCRAM: the broker's message lacks {', '.join(absent)}")
    return fields


def _decode(content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except ValueError as error:
        raise ProtocolError("SCRAM: the broker's message is not base64 where it must be") from error
