"""``spec.events`` of a policy: known times with another load."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr, model_validator

from planner.demand.events import LARGEST_FACTOR, LEAST_FACTOR, MINUTES_A_DAY, DateSpan, Event, WeeklySpan
from planner.documents.approval import Day, check_quoted, check_zone
from planner.documents.source import SpecModel
from planner.rollout.windows import DAYS

MOST_EVENTS = 50
LONGEST_EVENT = timedelta(days=7)
CLOCK_LENGTH = len("18:00")
MOST_MESSAGES = 1e9
"""A floor in messages per second; no group of either system comes near it."""

EventTime = Annotated[
    StrictStr,
    Field(pattern=r"^([0-9]{4}-[0-9]{2}-[0-9]{2}T)?(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"),
    BeforeValidator(check_quoted),
]


class EventSpec(SpecModel):
    """One event, by dates (``2026-11-27T18:00``) or on some days of each week (``18:00``), with its load.

    The load is ``factor`` times the usual one, or ``floor`` messages per second at least. A weekly event is one of all
    days when none are named; one that closes before it opens goes on into the next day.
    """

    name: Annotated[StrictStr, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
    days: Annotated[tuple[Day, ...], Field(min_length=1)] | None = None
    begins: EventTime = Field(alias="from")
    ends: EventTime = Field(alias="to")
    time_zone: Annotated[StrictStr, AfterValidator(check_zone)] = "UTC"
    factor: Annotated[float, Field(ge=LEAST_FACTOR, le=LARGEST_FACTOR, allow_inf_nan=False)] | None = None
    floor: Annotated[float, Field(gt=0, le=MOST_MESSAGES, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _states_its_load(self) -> Self:
        if (self.factor is None) == (self.floor is None):
            raise ValueError("either factor or floor")
        return self

    @model_validator(mode="after")
    def _states_its_times(self) -> Self:
        if len(self.begins) != len(self.ends):
            raise ValueError("from and to to be both times of the day, or both dates with a time")
        if len(self.begins) > CLOCK_LENGTH:
            self._check_dates()
        elif self.begins in (self.ends, "24:00") or self.ends == "00:00":
            raise ValueError('from and to to differ, a day to begin at "00:00" and to end at "24:00"')
        return self

    def _check_dates(self) -> None:
        if self.days is not None:
            raise ValueError("days beside times of the day only, not beside dates")
        length = self._date(self.ends) - self._date(self.begins)
        if not timedelta(0) < length <= LONGEST_EVENT:
            raise ValueError(f"to to lie after from, by {LONGEST_EVENT.days} days at most")

    def _date(self, text: str) -> datetime:
        day, _, clock = text.partition("T")
        try:
            midnight = datetime.fromisoformat(day)
            return (
                (midnight + timedelta(minutes=_minute(clock))).replace(tzinfo=ZoneInfo(self.time_zone)).astimezone(UTC)
            )
        except (ValueError, OverflowError):
            raise ValueError(f"from and to to be dates of the calendar, not {text}") from None

    @property
    def event(self) -> Event:
        """The event in the demand's words."""
        return Event(self.name, self._times, self.factor or 1.0, self.floor or 0.0)

    @property
    def _times(self) -> DateSpan | WeeklySpan:
        if len(self.begins) > CLOCK_LENGTH:
            return DateSpan(self._date(self.begins), self._date(self.ends))
        days = frozenset(map(DAYS.index, self.days or DAYS))
        return WeeklySpan(days, _minute(self.begins), _minute(self.ends), ZoneInfo(self.time_zone))


def _minute(clock: str) -> int:
    hours, _, minutes = clock.partition(":")
    return min(int(hours) * 60 + int(minutes), MINUTES_A_DAY)
