"""What follows from the rest of a request: the share of a group that pops, what nobody forecasts, and warnings."""

from collections.abc import Sequence
from dataclasses import replace

from planner.allocation.rocketmq import PopSharing
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.forecast.common.request_fields import Version
from planner.forecast.rocketmq import timing
from planner.forecast.rocketmq.request.changes import Change, StrategyChange, Upgrade
from planner.forecast.rocketmq.request.refusals import check_change, check_figures, refuse_what_has_no_model
from planner.forecast.rocketmq.request.request import ForecastRequest
from planner.forecast.rocketmq.request.settings import REASONS, WITHOUT_INFLUENCE, Settings


def checked(request: ForecastRequest) -> ForecastRequest:
    """Return the request that a program makes, completed; a document's is checked field by field where it is read.

    Raises ``BadInputError`` for figures that no group has, for a change that is none, and as ``completed`` does.
    """
    check_figures(request)
    check_change(request)
    return completed(request)


def completed(request: ForecastRequest, unknown: Sequence[str] = ()) -> ForecastRequest:
    """Return the request with its warnings, among them ``unknown``, what whoever asks says is not known.

    Raises ``BadInputError`` for what the simulation does not cover.
    """
    versions = (("client", request.client), ("broker", request.broker))
    about = [line for side, version in versions for line in _about_version(side, version)]
    warnings = (*about, *_about_target(request.change), *unknown, *_about_settings(request.settings))
    complete = replace(request, change=_shared_alike(request.change, request.strategy), warnings=warnings)
    refuse_what_has_no_model(complete)
    return complete


def _shared_alike(change: Change, strategy: Strategy) -> Change:
    """Return the change of a group that pops with the share that it has: that is a setting of its brokers."""
    if not (isinstance(change, StrategyChange) and isinstance(strategy, PopSharing)):
        return change
    if isinstance(change.to, PopSharing):
        if change.to.share_queues != strategy.share_queues:
            raise BadInputError(
                f"change.options.pop_share_queues: found {change.to.share_queues}, expected {strategy.share_queues} as "
                "it is: a command to the brokers changes it, not a restart of the clients"
            )
        return change
    return replace(change, to=PopSharing(change.to, strategy.share_queues))


def _about_target(change: Change) -> list[str]:
    return _about_version("client", change.to) if isinstance(change, Upgrade) else []


def _about_version(side: str, version: Version) -> list[str]:
    if timing.has_model(version):
        return []
    return [f"{side} {version} has no model of its own; {_nearest(version)} is used instead"]


def _nearest(version: Version) -> str:
    if version < timing.OLDEST_MODELLED:
        return "the oldest one, of 4.9,"
    return "the nearest older one, of 5.5,"


def _about_settings(settings: Settings) -> list[str]:
    idle = [name for name in settings.given if name in WITHOUT_INFLUENCE]
    named = [f"{name} ({REASONS[name]})" if name in REASONS else name for name in idle]
    return [f"settings without influence on a forecast: {', '.join(named)}"] if idle else []
