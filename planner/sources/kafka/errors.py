"""What can go wrong between us and a Kafka broker, below ``planner.errors.OutOfReachError`` (exit code 3).

::

    OutOfReachError            no server listens, or no answer in time
    ├── ConnectionEndedError   the connection ended before the answer came
    ├── AnswerError            the broker answered with an error code of its own
    │   └── RefusedError       it does not let this account do that: grant the right, or correct the account
    └── ProtocolError          what came is not what a Kafka broker sends, or its version lacks the request

A missing group or topic is ``planner.errors.UnknownNameError``, a wrong property ``BadInputError``.
"""

from typing import Final

from planner.errors import OutOfReachError

REFUSALS: Final = {
    29: "TOPIC_AUTHORIZATION_FAILED",
    30: "GROUP_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    33: "UNSUPPORTED_SASL_MECHANISM",
    58: "SASL_AUTHENTICATION_FAILED",
}
NAMES: Final = {
    **REFUSALS,
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    7: "REQUEST_TIMED_OUT",
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    24: "INVALID_GROUP_ID",
    35: "UNSUPPORTED_VERSION",
    42: "INVALID_REQUEST",
    69: "GROUP_ID_NOT_FOUND",
}
"""Names of the codes that our requests are answered with (``org.apache.kafka.common.protocol.Errors``)."""


class ConnectionEndedError(OutOfReachError):
    """The connection ended before the answer came; on a new one the request may well be answered."""


class AnswerError(OutOfReachError):
    """The broker answered with another code than 0; ``code`` is its own."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


class RefusedError(AnswerError):
    """The account may not do that, or is not known; a retry helps only after that has been changed."""

    can_retry = False


class ProtocolError(OutOfReachError):
    """Bytes that no Kafka broker sends, or a broker without the request; a retry cannot help."""

    can_retry = False


def error_name(code: int) -> str:
    """Return the name of an error code, ``error 97`` for one without a name here."""
    return NAMES.get(code, f"error {code}")


def answer_error(what: str, code: int, remark: str = "") -> AnswerError:
    """Return the error for an answer to ``what`` that carries ``code``, and the broker's own words on it."""
    shown = f" ({remark})" if remark else ""
    if code in REFUSALS:
        return RefusedError(
            f"{what}: the broker refuses with {error_name(code)}{shown}: "
            f"check the account and grant it the rights of docs/connect-kafka.md",
            code=code,
        )
    return AnswerError(f"{what}: the broker answers {error_name(code)}{shown}: try again, then see its log", code=code)
