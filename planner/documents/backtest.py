"""Scenario files of ``planner backtest``, and the arrivals that they name."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from planner.backtest.compare import POLICY_NAMES
from planner.backtest.owners import strategy_names
from planner.backtest.scenario import STEP_S, Prices, Scenario
from planner.documents.arrivals import COLUMNS, MOST_PLAYED_S, Recorded, read_arrivals
from planner.documents.events import MOST_EVENTS, EventSpec
from planner.documents.format import document_error
from planner.documents.source import check_path
from planner.errors import BadInputError, DocumentError
from planner.text.bounded import bounded_json
from planner.text.words import did_you_mean

ARRIVALS = "arrivals.csv"
MOST_SCENARIO_BYTES = 1_000_000

Seconds = Annotated[float, Field(ge=0, le=MOST_PLAYED_S, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1000)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PricesDocument(_Model):
    """Flat prices in consumer-hours."""

    rebalance_h: Price
    late_minute_h: Price


class ScenarioDocument(_Model):
    """The request of ``planner backtest``: field names and units are fixed.

    ``events`` are spelt as in a policy; ``begins_at`` is then the time of the arrivals' second 0, with its zone.
    """

    arrivals: Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(check_path)]
    interval_s: Annotated[int, Field(ge=1, le=86_400)]
    history_s: Annotated[int, Field(ge=0)]
    system: Literal["rocketmq", "kafka"]
    strategy: str
    capacity: Positive
    pod_start_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)]
    lowest: Annotated[Count, Field(alias="min")]
    highest: Annotated[Count, Field(alias="max")]
    start: Count
    late_after_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
    prices: PricesDocument
    every_s: Annotated[float, Field(ge=STEP_S, le=86_400, multiple_of=STEP_S, allow_inf_nan=False)]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    policies: Annotated[list[str], Field(min_length=1)] = ["planner", "keda", "flink", "optimum"]
    begins_at: Annotated[str, Field(max_length=40)] | None = None
    events: Annotated[list[EventSpec], Field(max_length=MOST_EVENTS)] = []

    @model_validator(mode="after")
    def _times(self) -> Self:
        if (self.begins_at is None) != (not self.events):
            raise ValueError("begins_at, the time of second 0, and events: both or none")
        if self.begins_at is not None:
            _zoned_time(self.begins_at)
        if len({event.name for event in self.events}) < len(self.events):
            raise ValueError("each event with a name of its own")
        return self

    @property
    def played_from(self) -> datetime | None:
        """When the play begins, ``None`` where the scenario does not say."""
        return None if self.begins_at is None else _zoned_time(self.begins_at) + timedelta(seconds=self.history_s)

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.lowest > self.highest:
            raise ValueError(f"min to be at most max, found {self.lowest} and {self.highest}")
        if not self.lowest <= self.start <= self.highest:
            raise ValueError(f"start from min to max, found {self.start}, not from {self.lowest} to {self.highest}")
        if self.history_s % self.interval_s:
            raise ValueError(f"history_s to be whole intervals of {self.interval_s} s, found {self.history_s}")
        return self

    @model_validator(mode="after")
    def _names(self) -> Self:
        known = strategy_names(self.system)
        if self.strategy not in known:
            close = did_you_mean(self.strategy, known)
            raise ValueError(f"strategy to be one of {', '.join(known)}, found {self.strategy!r}{close}")
        for name in self.policies:
            if name not in POLICY_NAMES:
                close = did_you_mean(name, POLICY_NAMES)
                raise ValueError(f"policies to be among {', '.join(POLICY_NAMES)}, found {name!r}{close}")
        if len(set(self.policies)) < len(self.policies):
            raise ValueError("each of the policies once")
        return self


def _zoned_time(text: str) -> datetime:
    """Return the time in UTC. Raises ``ValueError`` for what is no time, has no zone, or lies beyond the calendar."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None and 1970 <= time.year < 9000:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"begins_at to be a time with its zone such as 2026-11-20T00:00:00Z, found {text!r}")


def read_scenario(path: Path) -> tuple[Scenario, tuple[str, ...]]:
    """Return the scenario of a file, and the names of the policies to play.

    Arrivals are read from the path that the file gives, relative to its folder. Raises ``BadInputError`` with one
    sentence for a file that is missing, too large or wrong.
    """
    document = _parse(_read_bytes(path), str(path))
    recorded = Recorded(document.interval_s, document.history_s, document.system)
    queues, messages = read_arrivals(path.parent / document.arrivals, recorded)
    scenario = Scenario(
        queues=queues,
        messages=messages,
        interval_s=document.interval_s,
        history_s=document.history_s,
        system=document.system,
        strategy=document.strategy,
        capacity=document.capacity,
        pod_start_s=document.pod_start_s,
        lowest=document.lowest,
        highest=document.highest,
        start=document.start,
        late_after_s=document.late_after_s,
        prices=Prices(document.prices.rebalance_h, document.prices.late_minute_h),
        every_s=document.every_s,
        seed=document.seed,
        events=tuple(event.event for event in document.events),
        begins_at=document.played_from,
    )
    return scenario, tuple(document.policies)


def scenario_texts(scenario: Scenario, names: Sequence[str]) -> tuple[str, str]:
    """Return the scenario file of what is played, and its arrivals, which it expects beside it as ``ARRIVALS``.

    Queues of a topic are numbered in their order over all brokers, as the file knows none.
    """
    document = {
        "arrivals": ARRIVALS,
        "interval_s": round(scenario.interval_s),
        "history_s": round(scenario.history_s),
        "system": scenario.system,
        "strategy": scenario.strategy,
        "capacity": scenario.capacity,
        "pod_start_s": scenario.pod_start_s,
        "min": scenario.lowest,
        "max": scenario.highest,
        "start": scenario.start,
        "late_after_s": scenario.late_after_s,
        "prices": {"rebalance_h": scenario.prices.rebalance_h, "late_minute_h": scenario.prices.late_minute_h},
        "every_s": scenario.every_s,
        "seed": scenario.seed,
        "policies": list(names),
    }
    numbers = [number for size in scenario.topic_sizes for number in range(size)]
    topics = [queue.topic for queue in scenario.queues]
    rows = io.StringIO(newline="")
    writer = csv.writer(rows)
    writer.writerow(COLUMNS)
    for interval, row in enumerate(scenario.messages):
        second = round(interval * scenario.interval_s)
        for topic, number, messages in zip(topics, numbers, row.tolist(), strict=True):
            writer.writerow((second, topic, number, f"{messages:.12g}"))
    return json.dumps(document, indent=1) + "\n", rows.getvalue()


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_SCENARIO_BYTES + 1)
    except FileNotFoundError:
        raise BadInputError(f"scenario file {path} does not exist: check the path") from None
    except IsADirectoryError:
        raise BadInputError(f"{path} is a folder, expected a scenario file: name the JSON file in it") from None
    except OSError as error:
        raise BadInputError(f"scenario file {path} cannot be read ({error.strerror}): check its permissions") from error
    if len(content) > MOST_SCENARIO_BYTES:
        raise BadInputError(
            f"{path}: more than {MOST_SCENARIO_BYTES} bytes, expected a scenario: name the JSON file, not the arrivals"
        )
    return content


@cache
def _schema() -> dict[str, Any]:
    return ScenarioDocument.model_json_schema()


def _parse(content: bytes, where: str) -> ScenarioDocument:
    try:
        document = bounded_json(content)
    except ValueError as error:
        raise DocumentError(f"{where}: not valid JSON ({error}), expected a scenario: correct it") from error
    if not isinstance(document, dict):
        raise DocumentError(f"{where}: found a {type(document).__name__}, expected an object with a scenario's fields")
    try:
        return ScenarioDocument.model_validate(document)
    except ValidationError as error:
        refusal = document_error(error, where, schema=_schema())
        # What several fields together do wrong has no field of its own.
        raise DocumentError(str(refusal).replace("field : ", "")) from error
