"""Members of a consumer group: who they are, how they are tuned, what they own."""

from dataclasses import dataclass

from planner.model.queues import MessageQueue


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """What one member says of one topic over its last minute (``ConsumeStatus``).

    ``consume_rt_ms`` is the mean time of one listener call in milliseconds, ``ok_per_s`` and ``failed_per_s``
    are messages per second.
    """

    topic: str
    consume_rt_ms: float
    ok_per_s: float
    failed_per_s: float


@dataclass(frozen=True, slots=True)
class ClientTuning:
    """How one member is set up, from its running info (request 307).

    ``strategy_class`` is the Java class name of its allocation strategy, ``None`` when the client does not
    tell. ``threads`` is its consume pool, ``batch_size`` the most messages of one listener call,
    ``pull_threshold`` the messages it caches per queue. ``properties`` holds the other properties that the
    forecasts use, by the client's own names.
    """

    strategy_class: str | None
    orderly: bool
    threads: int | None
    batch_size: int | None
    pull_threshold: int | None
    started_at_ms: int | None
    figures: tuple[TopicFigures, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """One running client of the group.

    ``version`` is the ordinal of ``MQVersion.Version`` (513 is V5_5_0). ``tuning`` and ``owned`` are ``None``
    when the client did not answer: unknown, which is not the same as owning nothing.
    """

    client_id: str
    address: str
    language: str
    version: int
    tuning: ClientTuning | None = None
    owned: tuple[MessageQueue, ...] | None = None
