"""What brokers are set to, and how their clocks differ from ours: read at most once a minute by one client."""

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from planner.errors import PlannerError
from planner.model.brokers import BrokerState, GroupSettings
from planner.model.routes import BrokerAddress
from planner.sources.rocketmq.broker_answers import BrokerRuntime
from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.query_session import QuerySession, failure_of

_RUNTIME: Final = re.compile(r"(\d+) days?, (\d+) hours?, (\d+) minutes?, (\d+) seconds?")
now_s = time.time
"""Our own clock, in epoch seconds."""
Settings = Mapping[str, GroupSettings]
"""Group -> its settings on one broker."""
_TOLERATED_S: Final = 2.0
"""Clocks within this time of each other are the same for us: samples are seconds apart."""


def broker_states(session: QuerySession, group: str) -> tuple[tuple[BrokerState, ...], tuple[str, ...]]:
    """Return what is known of each broker of the session, in its order, and problems."""
    known = [session.once.get(("state", broker.broker), partial(_state, session, broker)) for broker in session.brokers]
    states = tuple(replace(state, settings=settings.get(group)) for state, settings, _ in known)
    return states, tuple(problem for _, _, problems in known for problem in problems)


def _state(session: QuerySession, broker: BrokerAddress) -> tuple[BrokerState, Settings, tuple[str, ...]]:
    clock = session.ask(broker, _clock_ahead, session.admin)
    config = session.ask(broker, _config, session.admin)
    settings = session.ask(broker, _settings, session.admin)
    errors = {
        "clock": failure_of(clock),
        "settings": failure_of(config),
        "groups' settings": failure_of(settings),
    }
    values = {} if errors["settings"] else config.result()
    state = BrokerState(
        broker=broker.broker,
        version=session.admin.version_of(broker.address),
        role=values.get("brokerRole"),
        permission=_integer(values.get("brokerPermission")),
        clock_ahead_s=None if errors["clock"] else clock.result(),
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


def _clock_ahead(address: str, admin: RocketMQAdmin) -> tuple[float, float] | None:
    def ask() -> tuple[float, float] | None:
        asked_at = now_s()
        runtime = admin.broker_runtime(address)
        return clock_ahead_s(runtime, asked_at, now_s())

    return admin.standing.get(("clock", address), ask)


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
