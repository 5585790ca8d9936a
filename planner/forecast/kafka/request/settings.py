"""Settings of clients and brokers by their own property names: known ones, their defaults, what a client refuses.

Defaults and bounds as ``ConsumerConfig`` and ``GroupCoordinatorConfig`` have them (4.x). A name that ends in ``.ms`` is
in milliseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.allocation import fields
from planner.errors import BadInputError
from planner.forecast.common.request_fields import Version

CLASSIC, CONSUMER = "classic", "consumer"
PROTOCOLS = (CLASSIC, CONSUMER)

_DAY_MS = 86_400_000
_INT = 2**31 - 1
RESET, RESETS = "auto.offset.reset", ("latest", "earliest", "none")
MIGRATION_POLICY = "group.consumer.migration.policy"
POLICIES = BIDIRECTIONAL, UPGRADE, DOWNGRADE, DISABLED = ("bidirectional", "upgrade", "downgrade", "disabled")
_SESSION, _BEAT = "session.timeout.ms", "heartbeat.interval.ms"
_FIRST = Version(0, 0)
_CONSUMER_BROKER = Version(4, 0)


@dataclass(frozen=True, slots=True)
class Known:
    """One setting: its default, its bounds, the first release that has it, and the protocol that alone reads it."""

    default: int | bool | str
    least: int = 0
    most: int = _INT
    since: Version = _FIRST
    protocol: str | None = None


OF_CLIENTS: dict[str, Known] = {
    _SESSION: Known(45_000, 1, protocol=CLASSIC),
    _BEAT: Known(3_000, 1, protocol=CLASSIC),
    "max.poll.interval.ms": Known(300_000, 1),
    "max.poll.records": Known(500, 1),
    "enable.auto.commit": Known(True),
    "auto.commit.interval.ms": Known(5_000),
    "metadata.max.age.ms": Known(300_000),
    "topic.metadata.refresh.interval.ms": Known(300_000),
    "request.timeout.ms": Known(30_000, 1),
    "socket.timeout.ms": Known(60_000, 10),
    RESET: Known("latest"),
}
OF_BROKERS: dict[str, Known] = {
    "group.initial.rebalance.delay.ms": Known(3_000),
    "group.min.session.timeout.ms": Known(6_000, 1),
    "group.max.session.timeout.ms": Known(1_800_000, 1),
    "group.consumer.session.timeout.ms": Known(45_000, 1, since=_CONSUMER_BROKER, protocol=CONSUMER),
    "group.consumer.heartbeat.interval.ms": Known(5_000, 1, since=_CONSUMER_BROKER, protocol=CONSUMER),
    "group.consumer.assignment.interval.ms": Known(1_000, since=Version(4, 3), protocol=CONSUMER),
    MIGRATION_POLICY: Known(BIDIRECTIONAL, since=_CONSUMER_BROKER),
    "broker.session.timeout.ms": Known(9_000, 1),
    "broker.heartbeat.interval.ms": Known(2_000, 1),
}
KNOWN = {**OF_CLIENTS, **OF_BROKERS}

WITHOUT_INFLUENCE: dict[str, Known] = {
    "client.rack": Known(""),
    "default.api.timeout.ms": Known(60_000),
    "fetch.max.bytes": Known(52_428_800),
    "fetch.max.wait.ms": Known(500),
    "fetch.min.bytes": Known(1),
    "isolation.level": Known("read_uncommitted"),
    "max.partition.fetch.bytes": Known(1_048_576),
    "reconnect.backoff.ms": Known(50),
    "retry.backoff.ms": Known(100),
    "offsets.retention.minutes": Known(10_080, 1),
}
"""Settings that people have in their files and that change next to nothing here: accepted, with a warning."""

LONGER_SESSION_SINCE = Version(3, 0)
"""KIP-735: 45 s; 10 s before."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The checked settings of one group; what is not given has the default of the client and broker."""

    given: Mapping[str, int | bool | str]
    defaults: Mapping[str, int | bool | str]

    def value(self, name: str) -> int:
        """Return a number as it is written."""
        return int(self.given.get(name, self.defaults[name]))

    def seconds(self, name: str) -> float:
        """Return a setting that is written in milliseconds as seconds."""
        return self.value(name) / 1000

    def text(self, name: str) -> str:
        """Return a name."""
        return str(self.given.get(name, self.defaults[name]))

    def is_on(self, name: str) -> bool:
        """Return a switch."""
        return bool(self.given.get(name, self.defaults[name]))


def read_settings(
    document: Mapping[str, Any], protocol: str, client: Version, broker: Version, *, is_java: bool
) -> Settings:
    """Return the settings, checked; refuse unknown ones, wrong values, and what client or protocol would refuse."""
    fields.only_known(document, (*KNOWN, *WITHOUT_INFLUENCE), "settings")
    given = {name: _checked(name, value) for name, value in document.items()}
    for name in given:
        _refuse_misplaced(name, protocol, broker, is_java=is_java)
    defaults = {name: known.default for name, known in KNOWN.items()}
    if is_java and client < LONGER_SESSION_SINCE:
        defaults[_SESSION] = 10_000
    settings = Settings(given, defaults)
    if protocol == CLASSIC:
        _check_session(settings, is_java=is_java)
    return settings


def _refuse_misplaced(name: str, protocol: str, broker: Version, *, is_java: bool) -> None:
    known = KNOWN.get(name)
    if known is None:
        return
    if known.protocol == CLASSIC and protocol == CONSUMER:
        raise BadInputError(
            f"settings.{name}: found with protocol consumer, whose clients refuse it; expected "
            f"group.consumer.{name} of the broker"
        )
    if broker < known.since:
        raise BadInputError(
            f"settings.{name}: found with broker {broker}, which does not have it; it is there since {known.since}"
        )
    foreign = "topic.metadata.refresh.interval.ms" if is_java else "max.poll.records"
    if name == foreign:
        owner = "librdkafka" if is_java else "the Java client"
        raise BadInputError(f"settings.{name}: found with another client, expected with {owner} only")


def _check_session(settings: Settings, *, is_java: bool) -> None:
    """Refuse what the client (``Heartbeat``) or the coordinator (INVALID_SESSION_TIMEOUT) refuses."""
    session, beat = settings.value(_SESSION), settings.value(_BEAT)
    if beat >= session:
        raise BadInputError(
            f"settings.{_BEAT}: found {beat}, expected less than {_SESSION} ({session}): the client refuses to start"
        )
    least, most = settings.value("group.min.session.timeout.ms"), settings.value("group.max.session.timeout.ms")
    if not least <= session <= most:
        raise BadInputError(
            f"settings.{_SESSION}: found {session}, expected from {least} to {most} as the broker's "
            f"group.min.session.timeout.ms and group.max.session.timeout.ms have it: it refuses others"
        )
    if not is_java and settings.value("max.poll.interval.ms") < session:
        raise BadInputError(
            f"settings.max.poll.interval.ms: found {settings.value('max.poll.interval.ms')}, expected at least "
            f"{_SESSION} ({session}): librdkafka refuses to start"
        )


def _checked(name: str, value: object) -> int | bool | str:
    known = KNOWN[name] if name in KNOWN else WITHOUT_INFLUENCE[name]
    field = f"settings.{name}"
    if isinstance(known.default, bool):
        if not isinstance(value, bool):
            raise fields.refusal(field, value, "true or false")
        return value
    if isinstance(known.default, str):
        choices = {RESET: RESETS, MIGRATION_POLICY: POLICIES}.get(name)
        if not isinstance(value, str) or (choices and value not in choices):
            raise fields.refusal(field, value, f"one of {', '.join(choices)}" if choices else "a text")
        return value
    return fields.whole_number(value, field, known.least, min(known.most, _DAY_MS if name.endswith(".ms") else _INT))
