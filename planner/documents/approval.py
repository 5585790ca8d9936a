"""``spec.approval`` and ``spec.changeWindows`` of a policy: which plans need no person, and when."""

from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt, StrictStr, model_validator

from planner.documents.source import SpecModel
from planner.rollout.approval import ApprovalRule
from planner.rollout.windows import DAYS, MINUTES_A_DAY, ChangeWindow

Day = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
AtMost = Annotated[StrictInt, Field(ge=0)]
MOST_APPROVERS = 50
Approver = Annotated[StrictStr, Field(min_length=1, max_length=253, pattern=r"^\S+$")]


def check_quoted(clock: object) -> object:
    """Refuse what YAML 1.1 makes of an unquoted 22:00: a number to the base of 60."""
    if isinstance(clock, int):
        raise ValueError('a time in quotes, like "22:00"')
    return clock


def check_zone(name: str) -> str:
    """Return the name of a known time zone. Raises ``ValueError`` for any other."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError("a time zone by its name, like Europe/Berlin") from None
    return name


Clock = Annotated[StrictStr, Field(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"), BeforeValidator(check_quoted)]


class ChangeWindowSpec(SpecModel):
    """One window on some days, all when none are named; one that closes before it opens goes on into the next day."""

    days: Annotated[tuple[Day, ...], Field(min_length=1)] | None = None
    opens: Clock = Field("00:00", alias="from")
    closes: Clock = Field("24:00", alias="to")
    time_zone: Annotated[StrictStr, AfterValidator(check_zone)] = "UTC"

    @model_validator(mode="after")
    def _is_a_window(self) -> Self:
        if self.opens == "24:00" or self.closes == "00:00":
            raise ValueError('a day to begin at "00:00" and to end at "24:00"')
        if self.opens == self.closes:
            raise ValueError(f"from and to to differ, both are {self.opens}")
        return self

    @property
    def window(self) -> ChangeWindow:
        """The window as the rule goes by it."""
        days = frozenset(map(DAYS.index, self.days or DAYS))
        return ChangeWindow(days, _minute(self.opens), _minute(self.closes), ZoneInfo(self.time_zone))


def _minute(clock: str) -> int:
    hours, _, minutes = clock.partition(":")
    return min(int(hours) * 60 + int(minutes), MINUTES_A_DAY)


class CriteriaSpec(SpecModel):
    """What a plan may cost at most, by the upper ends of its forecast, so that no person need look at it."""

    most_moved_queues: AtMost | None = None
    most_duplicates: AtMost | None = None
    longest_pause_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    only_in_change_windows: StrictBool = False


class ApprovalSpec(SpecModel):
    """Who approves a plan: ``Manual`` is a person, ``Auto`` the criteria where they hold and else a person.

    ``approvers`` are the persons whom Airflow asks, by their ids there; with none it asks all who may answer.
    """

    mode: Literal["Manual", "Auto"] = "Manual"
    criteria: CriteriaSpec | None = None
    approvers: Annotated[tuple[Approver, ...], Field(max_length=MOST_APPROVERS)] = ()

    @model_validator(mode="after")
    def _criteria_go_with_auto(self) -> Self:
        if (self.mode == "Auto") != (self.criteria is not None):
            raise ValueError("criteria with mode Auto, and with no other")
        if self.criteria and not self.criteria.model_fields_set - {"only_in_change_windows"}:
            raise ValueError("criteria to name mostMovedQueues, mostDuplicates or longestPauseSeconds")
        return self

    def rule(self, windows: tuple[ChangeWindow, ...], *, may_repeat: bool = True) -> ApprovalRule | None:
        """Return the rule that approves without a person, ``None`` where every plan is for a person.

        Without ``may_repeat`` it approves no plan after which messages may come twice.
        """
        if self.criteria is None:
            return None
        return ApprovalRule(
            most_moved_queues=self.criteria.most_moved_queues,
            most_duplicates=self.criteria.most_duplicates,
            longest_pause_s=self.criteria.longest_pause_seconds,
            windows=windows if self.criteria.only_in_change_windows else (),
            may_repeat=may_repeat,
        )
