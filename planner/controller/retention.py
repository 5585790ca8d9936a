"""``Retention``: plans at their end are removed once their time is over, or where a policy has too many of them."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from planner.deployments.api import RolloutApi
from planner.deployments.plans import stored_plan
from planner.errors import BadInputError, OutOfReachError
from planner.execution.phases import Phase
from planner.execution.ports import ConflictError, StoredPlan
from planner.sources.kubernetes import ForbiddenError

log = logging.getLogger(__name__)

ROLE: Final = "k8s/rbac/executor-retention.yaml"


@dataclass(frozen=True, slots=True)
class Finished:
    """A plan at its end, where it is and since when."""

    namespace: str
    stored: StoredPlan
    ended_at: datetime


class Retention:
    """Removes plans that have ended. A plan that is stuck stays: a person has to inspect it, whatever its age.

    At most ``most`` of each policy stay, the newest; ``None`` sets no limit. ``is_kept`` returns whether all that is to
    outlive a plan was written elsewhere.
    """

    def __init__(
        self, api: RolloutApi, most: int | None, clock: Callable[[], datetime], is_kept: Callable[[StoredPlan], bool]
    ) -> None:
        self._api, self._most, self._clock, self._is_kept = api, most, clock, is_kept

    def tidy(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Remove those of all plan objects whose time is over. Raises ``OutOfReachError`` when nothing answers."""
        finished = [plan for manifest in manifests if (plan := finished_plan(manifest)) is not None]
        over = list(expired_plans(finished, self._clock()))
        for plan in over + list(surplus([plan for plan in finished if plan not in over], self._most)):
            if self._is_kept(plan.stored):
                self._remove(plan)

    def _remove(self, plan: Finished) -> None:
        stored = plan.stored
        about = {"namespace": plan.namespace, "plan": stored.name}
        try:
            self._api.delete_plan(plan.namespace, stored.name, stored.uid, stored.resource_version)
        except ForbiddenError as error:
            log.warning("plan not removed", extra={**about, "error": str(error), "next": f"apply {ROLE}"})
        except ConflictError as error:  # it has changed since it was listed: the next list shows how
            log.info("plan not removed", extra={**about, "error": str(error)})
        except OutOfReachError as error:
            log.warning("plan not removed", extra={**about, "error": str(error)})
        else:
            log.info("plan removed", extra={**about, "phase": stored.status.phase, "ended": plan.ended_at.isoformat()})


def finished_plan(manifest: Mapping[str, Any]) -> Finished | None:
    """Return a plan object that may go, ``None`` for one that has not ended, is stuck, goes already or is not ours."""
    try:
        stored = stored_plan(manifest)
    except BadInputError:
        return None  # the cache reports it
    status = stored.status
    if not status.phase.is_final or status.phase is Phase.STUCK or status.phase_since is None:
        return None
    return (
        None if stored.requests.is_deleted else Finished(manifest["metadata"]["namespace"], stored, status.phase_since)
    )


def expired_plans(finished: Iterable[Finished], now: datetime) -> Iterator[Finished]:
    """Yield the plans whose ``ttlSecondsAfterFinished`` is over."""
    for plan in finished:
        ttl_s = plan.stored.plan.ttl_seconds_after_finished
        if ttl_s is not None and now >= plan.ended_at + timedelta(seconds=ttl_s):
            yield plan


def surplus(finished: Iterable[Finished], most: int | None) -> Iterator[Finished]:
    """Yield the oldest plans of each policy and namespace beyond the newest ``most``; none for ``None``."""
    if most is None:
        return
    of_policies: dict[tuple[str, str], list[Finished]] = defaultdict(list)
    for plan in finished:
        of_policies[plan.namespace, plan.stored.plan.policy].append(plan)
    for plans in of_policies.values():
        yield from sorted(plans, key=lambda plan: plan.ended_at, reverse=True)[most:]
