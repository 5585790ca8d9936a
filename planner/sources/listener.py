"""Which system listens at an address: its answer shows it, so that a mixed-up address is named as what it is.

Both probes are read-only: Kafka's ApiVersions request, and RocketMQ's request for the broker list, which a name server
answers and a broker refuses in the same protocol. Servers that want TLS answer neither and stay unknown.
"""

import json
import socket
import struct
from typing import Final

from planner.errors import BadInputError

PROBE_S: Final = 2.0
"""How long one probe may take, connecting included."""

_MOST_BYTES: Final = 1 << 16
_CORRELATION: Final = 7_777
_METADATA: Final = 3
_CLUSTER_INFO: Final = 106

KAFKA: Final = "a Kafka broker: name it with --kafka, or as bootstrapServers of a source with system: kafka"
CONTROLLER: Final = "the controller port of a Kafka server: name a broker's own port, 9092 by default"
ROCKETMQ: Final = "a RocketMQ server: name it with -n, or as nameServers of a source with system: rocketmq"


def check_system(expected: str, host: str, port: int, error: Exception) -> None:
    """Raise ``BadInputError`` where the address is not of the ``expected`` system, ``rocketmq`` or ``kafka``.

    ``error`` is why it could not be used. Where no server listens nothing is asked.
    """
    if isinstance(error.__cause__, ConnectionRefusedError | socket.gaierror):
        return
    listener = kafka_listener(host, port)
    if listener is None and expected == "kafka":
        listener = rocketmq_listener(host, port)
    if listener is not None and (expected, listener) != ("kafka", KAFKA):
        raise BadInputError(f"{host}:{port} is {listener}") from error


def kafka_listener(host: str, port: int) -> str | None:
    """Return what kind of Kafka listener answers there, ``None`` for none: a controller knows no Metadata request."""
    client = b"consumer-planner"
    request = struct.pack(">hhih", 18, 0, _CORRELATION, len(client)) + client
    answer = _exchange(host, port, struct.pack(">i", len(request)) + request)
    if len(answer) < 10 or struct.unpack_from(">i", answer)[0] != _CORRELATION:
        return None
    count = struct.unpack_from(">i", answer, 6)[0]
    keys = {
        struct.unpack_from(">h", answer, 10 + 6 * number)[0] for number in range(min(count, (len(answer) - 10) // 6))
    }
    return KAFKA if _METADATA in keys else CONTROLLER


def rocketmq_listener(host: str, port: int) -> str | None:
    """Return that a RocketMQ server answers there, ``None`` for none."""
    header = json.dumps(
        {"code": _CLUSTER_INFO, "language": "JAVA", "version": 0, "opaque": _CORRELATION, "flag": 0}
    ).encode()
    answer = _exchange(host, port, struct.pack(">ii", 4 + len(header), len(header)) + header)
    if len(answer) < 4:
        return None
    length = struct.unpack_from(">i", answer)[0] & 0xFFFFFF
    try:
        head = json.loads(answer[4 : 4 + length])
    except (ValueError, RecursionError):
        return None
    return ROCKETMQ if isinstance(head, dict) and head.get("opaque") == _CORRELATION else None


def _exchange(host: str, port: int, frame: bytes) -> bytes:
    """Return the answer to one frame without its length, as much as is needed; nothing where none comes."""
    try:
        with socket.create_connection((host, port), PROBE_S) as connected:
            connected.settimeout(PROBE_S)
            connected.sendall(frame)
            length = struct.unpack(">i", _read(connected, 4))[0]
            return _read(connected, min(length, _MOST_BYTES)) if length > 0 else b""
    except (OSError, struct.error):
        return b""


def _read(connected: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (chunk := connected.recv(size - len(data))):
        data += chunk
    return data
