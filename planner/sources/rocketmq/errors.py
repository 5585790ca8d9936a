"""What can go wrong between us and a RocketMQ server, below ``planner.errors.OutOfReachError`` (exit code 3).

::

    OutOfReachError             no server listens
    ├── NoAnswerError           no answer in time
    ├── ConnectionEndedError    the connection ended before the answer came
    ├── AnswerError             the server answered with an error code of its own
    └── ProtocolError           what came is not what RocketMQ sends; the peer is another service or a newer version
        ├── FrameError          lengths or header of a frame are impossible
        ├── JsonError           text is not the JSON of fastjson; carries the position
        └── BodyError           JSON of another shape than the request's answer has

A missing group, topic or cluster is ``planner.errors.UnknownNameError``, a bad address ``BadInputError``.
"""

from planner.errors import OutOfReachError


class NoAnswerError(OutOfReachError):
    """The server took the request and did not answer in time."""


class ConnectionEndedError(OutOfReachError):
    """The connection ended before the answer came; on a new one the request may well be answered."""


class AnswerError(OutOfReachError):
    """The server answered with another code than 0; ``code`` and ``remark`` are its own words."""

    def __init__(self, message: str, *, code: int, remark: str) -> None:
        super().__init__(message)
        self.code = code
        self.remark = remark


class ProtocolError(OutOfReachError):
    """Bytes that no RocketMQ server sends; a retry helps only when the address is corrected."""

    can_retry = False


class FrameError(ProtocolError):
    """A frame with impossible lengths, an unknown header encoding or a header that lacks what it must have."""


class JsonError(ProtocolError):
    """Text that is not JSON as fastjson writes it; ``position`` is the character where reading stopped."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(f"{problem} at character {position}")
        self.problem = problem
        self.position = position


class BodyError(ProtocolError):
    """A body that is JSON, but not of the shape that its request is answered with."""
