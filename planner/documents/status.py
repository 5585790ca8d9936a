"""``status`` of a ``ConsumerRolloutPlan``: how far it has come, as the executor left it."""

from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from planner.documents.format import canonical, document_error
from planner.documents.spelling import spell_in_camel_case
from planner.execution import progress as progress_types
from planner.execution.progress import RolloutStatus
from planner.verification import verdict as verdict_types

spell_in_camel_case([*vars(progress_types).values(), *vars(verdict_types).values()])

STATUS: TypeAdapter[RolloutStatus] = TypeAdapter(RolloutStatus)


def dump_status(status: RolloutStatus) -> dict[str, Any]:
    """Return the status as plain types, spelled in camelCase.

    To be written whole (PUT): a merge patch takes null for "remove", and the server then misses what may be null.
    """
    return cast("dict[str, Any]", STATUS.dump_python(status, mode="json", by_alias=True))


def parse_status(status: object, where: str) -> RolloutStatus:
    """Return the status of a plan object; one without is new. Raises ``DocumentError`` for a broken one."""
    if not status:
        return RolloutStatus()
    try:
        return STATUS.validate_json(canonical(status), strict=True, extra="forbid")
    except ValidationError as error:
        raise document_error(error, where, ("status",)) from error
