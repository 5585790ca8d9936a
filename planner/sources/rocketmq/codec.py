"""Frames of RocketMQ's remoting protocol, both header encodings.

A frame is: length of all that follows (4 bytes, big endian), header encoding (1 byte: 0 JSON, 1 RocketMQ's binary
one) with the header's length (3 bytes), header, body. Source: ``RemotingCommand``, ``RocketMQSerializable``.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from planner.sources.rocketmq import fastjson
from planner.sources.rocketmq.credentials import Credentials
from planner.sources.rocketmq.errors import FrameError, JsonError
from planner.sources.rocketmq.requests import Request, RequestCode
from planner.text.bounded import MOST_BYTES

HEADER_JSON: Final = 0
HEADER_BINARY: Final = 1
VERSION: Final = 513
"""``MQVersion.Version`` V5_5_0: from 401 on, routes come with quoted keys."""
MAX_FRAME: Final = MOST_BYTES
"""Longest frame we read, in bytes: four times what servers accept themselves."""

_LENGTH: Final = struct.Struct(">i")
_PREFIX: Final = struct.Struct(">iI")
_BINARY: Final = struct.Struct(">hBhii")
_KEY_LENGTH: Final = struct.Struct(">h")
_LANGUAGES: Final = (
    *("JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS"),
    *("RUST", "NODE_JS"),
)
_ANSWER: Final = 1
_MAX_HEADER: Final = 0xFFFFFF
_MOST_HEADER: Final = 1_048_576
"""Bytes of an answer's header that are read; it holds a few fields and a sentence, the body what was asked for."""


@dataclass(frozen=True, slots=True)
class Command:
    """One frame's content: a request or an answer; ``opaque`` ties an answer to its request."""

    code: int
    opaque: int
    flag: int = 0
    language: str = "PYTHON"
    version: int = VERSION
    remark: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def is_answer(self) -> bool:
        """True for an answer; False for a request, which servers push to registered clients only."""
        return bool(self.flag & _ANSWER)


def encode_request(
    request: Request, opaque: int, *, version: int = VERSION, credentials: Credentials | None = None
) -> bytes:
    """Return the frame of ``request``: JSON header, no body, signed when there are ``credentials``.

    Checks the code once more, so that not even a forged ``Request`` leaves with another one.
    """
    code: object = request.code
    if not isinstance(code, RequestCode):
        raise TypeError(f"only a Request from the allow-list can be sent, not {request!r}")
    fields = request.fields if credentials is None else credentials.signed(request.fields)
    return encode(Command(int(request.code), opaque, version=version, fields=fields))


def encode(command: Command, encoding: int = HEADER_JSON) -> bytes:
    """Return the whole frame of ``command``, length included."""
    header = _json_header(command) if encoding == HEADER_JSON else _binary_header(command)
    if len(header) > _MAX_HEADER:
        raise FrameError(f"header of {len(header)} bytes, expected at most {_MAX_HEADER}")
    return _PREFIX.pack(4 + len(header) + len(command.body), encoding << 24 | len(header)) + header + command.body


def frame_length(prefix: bytes, limit: int = MAX_FRAME) -> int:
    """Return how many bytes follow the 4 bytes of ``prefix``; ``FrameError`` unless 4 to ``limit``."""
    length = int(_LENGTH.unpack(prefix)[0])
    if not 4 <= length <= limit:
        raise FrameError(f"frame length {length} (bytes {prefix.hex(' ')}), expected 4 to {limit}")
    return length


def decode(frame: bytes) -> Command:
    """Return the command in ``frame``, which starts after the length field. Raises ``FrameError``."""
    if len(frame) < 4:
        raise FrameError(f"frame of {len(frame)} bytes, expected at least 4")
    mark = int.from_bytes(frame[:4], "big")
    encoding, length = mark >> 24, mark & _MAX_HEADER
    if length > len(frame) - 4:
        raise FrameError(f"header length {length} in a frame of {len(frame)} bytes")
    if length > _MOST_HEADER:
        raise FrameError(f"header of {length} bytes, expected at most {_MOST_HEADER}")
    header, body = frame[4 : 4 + length], frame[4 + length :]
    if encoding == HEADER_JSON:
        return _from_json(header, body)
    if encoding == HEADER_BINARY:
        return _from_binary(header, body)
    raise FrameError(f"header encoding {encoding}, expected {HEADER_JSON} (JSON) or {HEADER_BINARY} (binary)")


def _json_header(command: Command) -> bytes:
    header: dict[str, object] = {
        "code": command.code,
        "flag": command.flag,
        "language": command.language,
        "opaque": command.opaque,
        "version": command.version,
    }
    if command.fields:
        header["extFields"] = dict(command.fields)
    if command.remark:
        header["remark"] = command.remark
    return json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _from_json(header: bytes, body: bytes) -> Command:
    try:
        values = fastjson.parse(header)
    except JsonError as error:
        raise FrameError(f"header is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise FrameError(f"header is {type(values).__name__}, expected an object")
    fields = values.get("extFields") or {}
    if not isinstance(fields, dict):
        raise FrameError(f"extFields of the header is {type(fields).__name__}, expected an object")
    return Command(
        code=_whole(values, "code"),
        opaque=_whole(values, "opaque"),
        flag=_whole(values, "flag"),
        language=str(values.get("language") or ""),
        version=_whole(values, "version", 0),
        remark=str(values.get("remark") or ""),
        fields={str(name): str(value) for name, value in fields.items() if isinstance(value, str | int | float)},
        body=body,
    )


def _whole(values: "dict[fastjson.Key, fastjson.Json]", name: str, default: int | None = None) -> int:
    value = values.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise FrameError(f"{name} of the header is {value!r:.40}, expected an integer")
    return value


def _binary_header(command: Command) -> bytes:
    language = _LANGUAGES.index(command.language) if command.language in _LANGUAGES else _LANGUAGES.index("OTHER")
    fields = b"".join(
        _KEY_LENGTH.pack(len(name)) + name + _LENGTH.pack(len(value)) + value
        for name, value in ((name.encode(), value.encode()) for name, value in command.fields.items())
    )
    remark = command.remark.encode()
    start = _BINARY.pack(command.code, language, command.version, command.opaque, command.flag)
    return start + _LENGTH.pack(len(remark)) + remark + _LENGTH.pack(len(fields)) + fields


def _from_binary(header: bytes, body: bytes) -> Command:
    cursor = _Cursor(header)
    code, language, version, opaque, flag = _BINARY.unpack(cursor.take(_BINARY.size))
    remark = cursor.text(_LENGTH)
    end = cursor.length(_LENGTH)
    fields: dict[str, str] = {}
    if end != cursor.left:
        raise FrameError(f"extFields of {end} bytes in a header with {cursor.left} bytes left")
    while cursor.left:
        name = cursor.text(_KEY_LENGTH)
        fields[name] = cursor.text(_LENGTH)
    known = _LANGUAGES[language] if language < len(_LANGUAGES) else "OTHER"
    return Command(code, opaque, flag, known, version, remark, fields, body)


class _Cursor:
    """Walks over a binary header and never past its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise FrameError(f"binary header ends after {len(self._data)} bytes, {size - self.left} too early")
        self._at += size
        return self._data[self._at - size : self._at]

    def length(self, kind: struct.Struct) -> int:
        value = int(kind.unpack(self.take(kind.size))[0])
        if value < 0:
            raise FrameError(f"length {value} in a binary header, expected 0 or more")
        return value

    def text(self, kind: struct.Struct) -> str:
        try:
            return self.take(self.length(kind)).decode()
        except UnicodeDecodeError:
            raise FrameError(f"text in a binary header is not UTF-8, near byte {self._at}") from None
