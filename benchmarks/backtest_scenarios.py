"""Scenario files of the nine backtests, from public traces that are read by path and never kept."""

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.errors import BadInputError

Floats = NDArray[np.float64]

QUEUES = 32
CAPACITY = 100.0
CONSUMERS_AT_P99 = 20
DAY_S = 86_400


@dataclass(frozen=True)
class Recipe:
    """How a trace becomes a scenario: interval, known and played seconds, and how keys are laid on queues."""

    name: str
    file: str
    interval_s: int
    history_s: int
    played_s: int
    lay: Callable[[Floats], list[Floats]]


def evenly(keys: Floats) -> list[Floats]:
    """Return one topic whose queues all get the same."""
    return [np.repeat(keys.sum(axis=1, keepdims=True) / QUEUES, QUEUES, axis=1)]


def skewed(keys: Floats) -> list[Floats]:
    """Return one topic whose busiest queue gets three times what the quietest gets."""
    weights = np.random.default_rng(7).permutation(np.linspace(0.5, 1.5, QUEUES)) / QUEUES
    return [keys.sum(axis=1, keepdims=True) * weights]


def by_topic(keys: Floats) -> list[Floats]:
    """Return one topic a key."""
    return [np.repeat(keys[:, [key]] / QUEUES, QUEUES, axis=1) for key in range(keys.shape[1])]


def by_key(keys: Floats) -> list[Floats]:
    """Return one topic: keys in pieces of at most half a queue's mean load, each on the queue with the least so far."""
    shares = keys.sum(axis=0) / keys.sum()
    pieces = {key: max(1, int(np.ceil(share * 2 * QUEUES))) for key, share in enumerate(shares)}
    ordered = sorted(((shares[key] / count, key) for key, count in pieces.items() for _ in range(count)), reverse=True)
    columns, filled = np.zeros((len(keys), QUEUES)), np.zeros(QUEUES)
    for share, key in ordered:
        queue = int(filled.argmin())
        columns[:, queue] += keys[:, key] / pieces[key]
        filled[queue] += share
    return [columns]


RECIPES = (
    Recipe("ingress, 4 topics", "ms_ingress_4streams_1min.csv", 60, 4 * DAY_S, 7 * DAY_S, by_topic),
    Recipe("ingress, 1 topic", "ms_ingress_4streams_1min.csv", 60, 4 * DAY_S, 7 * DAY_S, by_key),
    Recipe("machine, even", "ms_mongodb_machine_1min.csv", 60, 7 * DAY_S, 7 * DAY_S, evenly),
    Recipe("machine, skewed", "ms_mongodb_machine_1min.csv", 60, 7 * DAY_S, 7 * DAY_S, skewed),
    Recipe("NASA", "nasa_http_10s.csv", 10, 2 * DAY_S, 5 * DAY_S, evenly),
    Recipe("World Cup", "worldcup98_group_stage_1min.csv", 60, 7 * DAY_S, 7 * DAY_S, evenly),
    Recipe("tweets", "nab_tweets_10keys_5min.csv", 300, 7 * DAY_S, 7 * DAY_S, by_key),
    Recipe("Azure triggers", "azure_queue_triggers_1min.csv", 60, 7200, 6 * 3600, by_key),
    Recipe("servegen", "servegen_mlarge_20clients_10min.csv", 600, 7 * DAY_S, 7 * DAY_S, by_key),
)


def recipes_of(folder: Path, only: str) -> list[Recipe]:
    """Return the recipes whose names hold ``only``.

    Raises ``BadInputError`` naming the first of their traces that is not in the folder, or where no name holds it.
    """
    chosen = [recipe for recipe in RECIPES if only.casefold() in recipe.name.casefold()]
    if not chosen:
        names = "; ".join(recipe.name for recipe in RECIPES)
        raise BadInputError(f"--only {only}: no scenario has that in its name, expected a part of one of {names}")
    for recipe in chosen:
        if not (folder / recipe.file).is_file():
            raise BadInputError(
                f"TRACES={folder}: {recipe.file} is not there, expected the folder with the nine public traces: "
                "set TRACES=FOLDER"
            )
    return chosen


@dataclass(frozen=True)
class Cut:
    """The days of the played part that are played: so many are left out before them, and so many played, if given."""

    skip_days: float = 0.0
    days: float | None = None

    def of(self, recipe: Recipe) -> Recipe:
        """Return the recipe with what is left out known beforehand; a trace that is shorter is played as it is."""
        skipped_s = round(self.skip_days * DAY_S) if self.skip_days * DAY_S < recipe.played_s else 0
        played_s = recipe.played_s - skipped_s
        if self.days is not None:
            played_s = min(played_s, round(self.days * DAY_S))
        return replace(recipe, history_s=recipe.history_s + skipped_s, played_s=played_s)


WHOLE = Cut()


def write_scenario(recipe: Recipe, traces: Path, folder: Path, cut: Cut = WHOLE, **fields: object) -> Path:
    """Write arrivals and scenario of one recipe and return the scenario's path; ``fields`` override its own.

    A cut is scaled, and its keys are laid on queues, like the whole.
    """
    laid = recipe.lay(_scaled(_read(traces / recipe.file), recipe))
    recipe = cut.of(recipe)
    topics = [messages[: (recipe.history_s + recipe.played_s) // recipe.interval_s] for messages in laid]
    name = recipe.name.replace(", ", "-").replace(" ", "-").lower()
    (folder / f"{name}.csv").write_text("second,topic,queue,messages\n" + "".join(_lines(topics, recipe.interval_s)))
    scenario = {
        "arrivals": f"{name}.csv", "interval_s": recipe.interval_s, "history_s": recipe.history_s,
        "system": "rocketmq", "strategy": "AVG", "capacity": CAPACITY, "pod_start_s": 30, "min": 1, "max": QUEUES,
        "start": 8, "late_after_s": 60, "prices": {"rebalance_h": 0.25, "late_minute_h": 1.0}, "every_s": 60, "seed": 1,
        "policies": ["planner", "keda", "flink", "optimum"], **fields,
    }  # fmt: skip
    path = folder / f"{name}.json"
    path.write_text(json.dumps(scenario, indent=1))
    return path


def _lines(topics: Sequence[Floats], interval_s: int) -> Iterator[str]:
    for row in range(len(topics[0])):
        for number, messages in enumerate(topics):
            for queue, value in enumerate(messages[row].tolist()):
                yield f"{row * interval_s},topic-{number},{queue},{value:.3f}\n"


def _read(path: Path) -> Floats:
    """Return the trace's values, keys as columns; rows as they stand in the file."""
    columns: dict[str, list[float]] = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            columns[row["key"]].append(float(row["value"]))
    return np.array([columns[key] for key in sorted(columns)]).T


def _scaled(values: Floats, recipe: Recipe) -> Floats:
    """Return messages an interval of the part that is used, scaled so that 1 % of it needs more than 20 consumers."""
    values = values[: (recipe.history_s + recipe.played_s) // recipe.interval_s]
    per_second = np.quantile(values.sum(axis=1), 0.99)
    return np.asarray(values / per_second * CONSUMERS_AT_P99 * CAPACITY * recipe.interval_s)
