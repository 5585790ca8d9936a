"""Where ``planner backtest`` has its load from: a scenario file, a metrics server, or the samples of earlier runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.console import errors, parse_time
from planner.errors import BadInputError, OutOfReachError
from planner.text.words import rate

if TYPE_CHECKING:
    from planner.backtest.recorded import NotPlayable, RecordedGroup
    from planner.backtest.scenario import Scenario
    from planner.cli.past_advice import PastRequest

DEFAULT_NAMES = ("planner", "keda", "flink", "optimum")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is played under which policies; ``recorded`` is the real group behind it, ``None`` for a scenario file."""

    scenario: "Scenario"
    names: Sequence[str] = DEFAULT_NAMES
    recorded: "RecordedGroup | None" = None


def of_metrics(request: "PastRequest") -> Loaded:
    """Return what a metrics server has of one group.

    Raises ``OutOfReachError`` where it cannot be played, ``BadInputError`` where several have its name, and what keeps
    the server from being read.
    """
    from planner.cli.past_advice import recorded_groups

    recorded, *others = recorded_groups(request)
    if others:
        raise BadInputError(
            f"{len(others) + 1} groups are called {recorded.group}: name one with --system, or --match label=value"
        )
    return _playable(recorded, "option --capacity N")


def of_samples(data: Path, policy_file: Path, days: float, until: str | None, capacity: float | None) -> Loaded:
    """Return what the samples below ``data`` have of the policy's group, up to ``until`` or the newest of them."""
    from planner.documents.policy import read_policy
    from planner.runs.landed import newest_sample
    from planner.runs.recorded_past import past_of_samples, play_settings

    policy = read_policy(policy_file)
    source = policy.spec.source
    key = (source.system, source.cluster, source.group)
    end = parse_time(until, "--until") if until else datetime.now(UTC)
    newest = newest_sample(data, key, end)
    if newest is None:
        raise OutOfReachError(
            f"{data} has no sample of group {source.group} up to {end.isoformat()}: name the data folder of planner "
            "sample or planner run; what Spark has packed into the lag history, spark_apps/backtest plays"
        )
    last = min(end, newest.at)
    settings = play_settings(policy)
    stated = settings if capacity is None else replace(settings, capacity=capacity)
    recorded = past_of_samples(data, key, last - timedelta(days=days), last, stated)
    return _playable(recorded, "spec.capacity.messagesPerSecond, or option --capacity N")


def _playable(recorded: "RecordedGroup | NotPlayable", remedy: str) -> Loaded:
    from planner.backtest.recorded import NotPlayable

    if isinstance(recorded, NotPlayable):
        reason = recorded.reason.replace("--capacity GROUP=MESSAGES_PER_SECOND", remedy)
        raise OutOfReachError(f"group {recorded.group} cannot be played: {reason}")
    return Loaded(recorded.scenario, recorded=recorded)


def checked_names(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the policies to play, each once. Raises ``BadInputError`` for one that nobody knows."""
    from planner.backtest.compare import find_policies

    return find_policies(names or ())


def keep_scenario(folder: Path, scenario: "Scenario", names: Sequence[str]) -> None:
    """Write what is played, so that it can be changed and played again."""
    from planner.documents.backtest import ARRIVALS, scenario_texts
    from planner.storage.files import write_atomically

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"--keep {folder} cannot be made ({error.strerror}): name another folder") from error
    document, arrivals = scenario_texts(scenario, names)
    write_atomically(folder / ARRIVALS, arrivals)
    errors.print(f"planner: scenario written to {write_atomically(folder / 'scenario.json', document)}")


def basis_of(recorded: "RecordedGroup") -> str:
    """Return in one sentence what the answer rests on: the capacity and where it comes from, and the strategy."""
    scenario = recorded.scenario
    return (
        f"Played with {rate(scenario.capacity)} a consumer ({recorded.capacity_source}) under {scenario.strategy}; "
        f"what arrives is known for {recorded.known:.0%} of the time. What the group itself cost is counted from its "
        "readings: changes back and forth between two of them are not seen."
    )


def past_document(loaded: Loaded) -> dict[str, Any]:
    """Return what the answer has of the real group, nothing for a scenario file; hours are consumer-hours."""
    recorded = loaded.recorded
    if recorded is None:
        return {}
    past = recorded.past
    return {
        "group": recorded.group,
        "capacity": round(recorded.scenario.capacity, 4),
        "capacity_source": recorded.capacity_source,
        "known": round(recorded.known, 4),
        "as_it_was": {
            "hours": round(past.hours, 4),
            "rebalances": past.rebalances,
            "late_minutes": past.late_minutes,
            "fewest": past.fewest,
            "most": past.most,
            "cost_h": round(past.cost_h(recorded.scenario.prices), 4),
        },
    }
