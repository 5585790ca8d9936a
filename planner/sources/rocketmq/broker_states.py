"""What brokers are set to, and how their clocks differ from ours: read at most once a minute by one client."""

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from planner.errors import PlannerError
from planner.model.brokers import BrokerDisk, BrokerState, GroupSettings
from planner.model.routes import BrokerAddress
from planner.sources.rocketmq.broker_answers import BrokerRuntime
from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.query_session import QuerySession, failure_of

_RUNTIME: Final = re.compile(r"(\d+) days?, (\d+) hours?, (\d+) minutes?, (\d+) seconds?")
now_s = time.time
"""Our own clock, in epoch seconds."""
Settings = Mapping[str, GroupSettings]
"""Group -> its settings on one broker."""
_REMOVES_FROM: Final = (0.30, 0.85)
_REFUSES_FROM: Final = (0.35, 0.90)
"""Least and most share of the disk from which brokers remove messages before their time, and refuse new ones."""

_TOLERATED_S: Final = 2.0
"""Clocks within this time of each other are the same for us: samples are seconds apart."""


def broker_states(session: QuerySession, group: str) -> tuple[tuple[BrokerState, ...], tuple[str, ...]]:
    """Return what is known of each broker of the session, in its order, and problems."""
    known = [session.once.get(("state", broker.broker), partial(_state, session, broker)) for broker in session.brokers]
    states = tuple(replace(state, settings=settings.get(group)) for state, settings, _ in known)
    return states, tuple(problem for _, _, problems in known for problem in problems)


def _state(session: QuerySession, broker: BrokerAddress) -> tuple[BrokerState, Settings, tuple[str, ...]]:
    figures = session.ask(broker, _figures, session.admin)
    config = session.ask(broker, _config, session.admin)
    settings = session.ask(broker, _settings, session.admin)
    errors = {
        "clock": failure_of(figures),
        "settings": failure_of(config),
        "groups' settings": failure_of(settings),
    }
    values = {} if errors["settings"] else config.result()
    clock, runtime = (None, None) if errors["clock"] else figures.result()
    state = BrokerState(
        broker=broker.broker,
        version=session.admin.version_of(broker.address),
        role=values.get("brokerRole"),
        permission=_integer(values.get("brokerPermission")),
        clock_ahead_s=clock,
        disk=None if runtime is None else disk_of(runtime, values),
    )
    unknown = (f"broker {broker.broker} does not report its {what}: {error}" for what, error in errors.items() if error)
    return state, {} if errors["groups' settings"] else settings.result(), (*unknown, *_clock_problems(state))


def _clock_problems(state: BrokerState) -> tuple[str, ...]:
    if state.clock_ahead_s is None:
        return ()
    low, high = state.clock_ahead_s
    if low <= _TOLERATED_S and high >= -_TOLERATED_S:
        return ()
    least, most, side = (low, high, "ahead of") if low > 0 else (-high, -low, "behind")
    return (
        f"the clock of broker {state.broker} is {least:.1f} to {most:.1f} s {side} ours: the times that it reports are "
        f"off by as much, set one of the clocks right",
    )


def clock_ahead_s(runtime: BrokerRuntime, asked_at: float, answered_at: float) -> tuple[float, float] | None:
    """Return by how many seconds a broker's clock is ahead of ours, from (at least) to (at most); ``None``: unknown.

    A broker reports when it started and for how many whole seconds it has been up (``StoreStatsService``); both by its
    own clock. ``asked_at`` and ``answered_at`` are by ours, in epoch seconds.
    """
    uptime = _RUNTIME.search(runtime.figures.get("runtime", ""))
    if uptime is None or runtime.started_at_ms is None:
        return None
    days, hours, minutes, seconds = map(int, uptime.groups())
    now = runtime.started_at_ms / 1000 + ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return now - answered_at, now + 1 - asked_at


def disk_of(runtime: BrokerRuntime, settings: Mapping[str, str]) -> BrokerDisk | None:
    """Return how full the fuller disk of a broker's store is; ``None`` where it tells no share of 1.

    ``settings`` are the broker's. Brokers before 5 have the defaults of both bounds, or system properties that nobody
    sees; later ones keep what they are set to within bounds (``getDiskSpaceWarningLevelRatio``,
    ``getDiskSpaceCleanForciblyRatio``, 5.1.4 and 5.5.0).
    """
    shares = [_share(runtime.figures.get(name)) for name in ("commitLogDiskRatio", "consumeQueueDiskRatio")]
    used = [share for share in shares if share is not None]
    if not used:
        return None
    removes = _bound(settings.get("diskSpaceCleanForciblyRatio"), _REMOVES_FROM)
    return BrokerDisk(
        used=max(used),
        removes_from=None if settings.get("cleanFileForciblyEnable") == "false" else removes,
        refuses_from=_bound(settings.get("diskSpaceWarningLevelRatio"), _REFUSES_FROM),
    )


def _bound(text: str | None, bounds: tuple[float, float]) -> float:
    """Return the share that a broker goes by: the percentage it is set to, within ``bounds``; the upper one without."""
    percent, (least, most) = _integer(text), bounds
    return most if percent is None else min(max(percent / 100, least), most)


def _share(text: str | None) -> float | None:
    try:
        share = float(text or "")
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


def _figures(address: str, admin: RocketMQAdmin) -> tuple[tuple[float, float] | None, BrokerRuntime]:
    """Return by how much a broker's clock is ahead, and its figures of that moment."""

    def ask() -> tuple[tuple[float, float] | None, BrokerRuntime]:
        asked_at = now_s()
        runtime = admin.broker_runtime(address)
        return clock_ahead_s(runtime, asked_at, now_s()), runtime

    return admin.standing.get(("runtime", address), ask)


def _config(address: str, admin: RocketMQAdmin) -> Mapping[str, str]:
    return admin.standing.get(("config", address), lambda: admin.broker_config(address))


def _settings(address: str, admin: RocketMQAdmin) -> Settings:
    def ask() -> Settings:
        return {
            config.group: GroupSettings(
                can_consume=config.can_consume,
                can_broadcast=config.can_broadcast,
                notifies_changes=config.notifies_changes,
                retry_queues=config.retry_queues,
                retry_max_times=config.retry_max_times,
                in_order=config.in_order,
            )
            for config in admin.group_configs(address)
        }

    return admin.standing.get(("groups", address), ask)


def settings_of(session: QuerySession, broker: BrokerAddress) -> Settings | PlannerError:
    """Return group -> its settings at a broker, or why they are not known."""
    asked = session.ask(broker, _settings, session.admin)
    return failure_of(asked) or asked.result()


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
