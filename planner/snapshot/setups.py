"""How each RocketMQ client of a group runs, by its own word: version, threads, time of a call, settings."""

from collections.abc import Sequence

from planner.model.brokers import BrokerState, release
from planner.model.membership import ClientTuning, GroupMember, Member, rocketmq_members
from planner.model.snapshot import ClientSetup

DECIMALS = 6


def client_setups(members: Sequence[GroupMember]) -> tuple[ClientSetup, ...]:
    """Return one setup for each RocketMQ member, by client id; none for a Kafka group."""
    setups = map(_setup, rocketmq_members(members))
    return tuple(sorted(setups, key=lambda setup: setup.client))


def _setup(member: Member) -> ClientSetup:
    tuning = member.tuning
    return ClientSetup(
        client=member.client_id,
        language=member.language,
        version=release(member.version),
        orderly=tuning.orderly if tuning else None,
        threads=tuning.threads if tuning else None,
        call_s=_call_s(tuning) if tuning else None,
        settings=_settings(tuning) if tuning else (),
        handled_per_s=_handled_per_s(tuning) if tuning else None,
        cached_messages=tuning.cached_messages if tuning else None,
    )


def _call_s(tuning: ClientTuning) -> float | None:
    """Return the mean seconds of one listener call; ``consumeRT`` is a mean over the calls of the last minute."""
    busy = [figure for figure in tuning.figures if figure.consume_rt_ms > 0 and figure.ok_per_s > 0]
    handled = sum(figure.ok_per_s for figure in busy)
    if not busy:
        return None
    return round(sum(figure.consume_rt_ms * figure.ok_per_s for figure in busy) / handled / 1000.0, DECIMALS)


def _handled_per_s(tuning: ClientTuning) -> float | None:
    """Return the messages per second of the last minute, consumed or failed, of the topics whose calls took time."""
    busy = [figure for figure in tuning.figures if figure.consume_rt_ms > 0 and figure.ok_per_s > 0]
    return round(sum(figure.ok_per_s + figure.failed_per_s for figure in busy), DECIMALS) if busy else None


def _settings(tuning: ClientTuning) -> tuple[tuple[str, str], ...]:
    counted = (("consumeMessageBatchMaxSize", tuning.batch_size), ("pullThresholdForQueue", tuning.pull_threshold))
    return (*((name, str(value)) for name, value in counted if value is not None), *tuning.properties)


def notifies_changes(brokers: Sequence[BrokerState]) -> bool | None:
    """Return whether all brokers notify members of others that come and go; ``None`` where one did not report it."""
    flags = [state.settings.notifies_changes if state.settings else None for state in brokers]
    if False in flags:
        return False
    return True if flags and None not in flags else None
