"""What a run on policies of a cluster leaves there: plan objects, and the status of each policy.

Decisions are never lost by it: they lie in the run's folder before anything is sent, and what cannot be sent is one
sentence.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.documents.approve import unapproved
from planner.documents.data import SNAPSHOT
from planner.documents.plan import read_document
from planner.documents.policy_status import DecisionNews, LearnedCapacity, News, NoDecisionNews
from planner.errors import BadInputError, PlannerError
from planner.execution.phases import Phase
from planner.isolation import attempt
from planner.policies.fleet import Fleet, PolicyOrigin, read_origin
from planner.text.printable import one_line

if TYPE_CHECKING:
    from planner.deployments.api import RolloutApi
    from planner.storage.layout import RunFolder
    from planner.storage.run import Decided, Run

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What a run left in the cluster: each policy's open plan by name, and a sentence for what could not be left.

    ``failures`` go by the policy's name, or by ``k8s://NAMESPACE`` where all of it is out of reach.
    """

    plans: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


def report_refused(fleet: Fleet) -> Mapping[str, str]:
    """Write why policies cannot be served into their status; return the sentences for what could not be written."""
    if fleet.origin is None or not fleet.refused:
        return {}
    news: dict[str, News] = {name: NoDecisionNews(why, is_stalled=True) for name, why in fleet.refused.items()}
    result = attempt(str(fleet.origin.namespace), "report", _report, fleet.origin, news, datetime.now(UTC), None)
    return {str(fleet.origin.namespace): str(result)} if isinstance(result, PlannerError) else result


def report_run(
    run: "Run",
    decided: "Sequence[Decided]",
    next_look_at: datetime | None = None,
    made_in: "Mapping[str, RunFolder] | None" = None,
) -> ClusterReport:
    """Create the plan objects of a run's decisions and write each policy's status, where its policies are objects.

    A policy whose open plan is in the namespace gets no other. No approval is sent: the controller approves by a
    policy's criteria, people by ``planner approve``. ``next_look_at`` is when the next run is due, where that is known.
    ``made_in`` are the former runs that made the decisions which stand, by policy. A run on files leaves nothing.
    """
    origin = read_origin(run.folder)
    if origin is None:
        return ClusterReport()
    report = attempt(str(origin.namespace), "report", _report_run, run, decided, origin, next_look_at, made_in or {})
    if isinstance(report, PlannerError):
        return ClusterReport(failures={str(origin.namespace): str(report)})
    return report


def _report_run(
    run: "Run",
    decided: "Sequence[Decided]",
    origin: PolicyOrigin,
    next_look_at: datetime | None,
    made_in: "Mapping[str, RunFolder]",
) -> ClusterReport:
    plans, failures = _plans(decided, origin, run.until)
    news = {
        line["policy"]: _news(made_in.get(line["policy"], run.folder), line, plans.get(line["policy"]))
        for line in decided
    }
    unwritten = _report(origin, news, run.until, next_look_at)
    return ClusterReport(plans, {**unwritten, **failures})


def _plans(
    decided: "Sequence[Decided]", origin: PolicyOrigin, at: datetime
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return each policy's open plan in the namespace, made where there was none, and why plans could not be made."""
    from planner.deployments.api import RolloutApi  # noqa: PLC0415  needs the kubernetes extra

    namespace, failures = origin.namespace, dict[str, str]()
    with RolloutApi.connect(namespace.kubeconfig) as api:
        try:
            plans = dict(open_plans(api.plans(namespace.name), at))
        except PlannerError as error:
            return {}, {str(namespace): f"no plan was created: {error}"}
        for line in decided:
            name, file = line["policy"], line["plan"]
            if file is None or name in plans:
                continue
            made = attempt(name, "create", _create, api, namespace.name, Path(file))
            if isinstance(made, PlannerError):
                failures[name] = f"its plan {file} was not created in namespace {namespace.name}: {made}"
            else:
                plans[name] = made
    return plans, failures


def open_plans(manifests: Sequence[Mapping[str, Any]], at: datetime) -> Iterator[tuple[str, str]]:
    """Yield policy and name of each plan object that may still be approved at ``at``, or is being carried out.

    The newest of a policy comes last.
    """
    for plan in sorted(manifests, key=lambda plan: str(plan["metadata"].get("creationTimestamp", ""))):
        if _is_open(plan, at):
            yield plan["spec"]["policy"], plan["metadata"]["name"]


def _is_open(plan: Mapping[str, Any], at: datetime) -> bool:
    phase = Phase((plan.get("status") or {}).get("phase", Phase.PENDING))
    try:
        valid_until = datetime.fromisoformat(plan["spec"]["validUntil"]).astimezone(UTC)
    except (ValueError, OverflowError):
        return phase.is_in_progress  # such a time no executor can read either
    return phase.is_in_progress or (not phase.is_final and at < valid_until)


def _create(api: "RolloutApi", namespace: str, file: Path) -> str:
    from planner.deployments.plans import ClusterPlans  # noqa: PLC0415  needs the kubernetes extra

    return ClusterPlans(api, namespace).create(unapproved(read_document(file))).name


def _news(folder: "RunFolder", line: "Decided", plan: str | None) -> News:
    current, target = line["from"], line["to"]
    if current is None or target is None:
        return NoDecisionNews(line["reason"], is_stalled=False)
    capacity = attempt(line["policy"], "report", _learned_capacity, folder, line["policy"])
    learned = None if isinstance(capacity, PlannerError) else capacity
    return DecisionNews(current, target, line["hold"], line["reason"], plan, learned)


def _learned_capacity(folder: "RunFolder", policy: str) -> LearnedCapacity | None:
    """Return what the policy's snapshot learned of one consumer's capacity; ``None`` where it is stated or unknown."""
    capacity = SNAPSHOT.read(folder.snapshot(policy)).capacity
    if capacity is None or not (capacity.observations or capacity.is_lower_bound):
        return None
    return LearnedCapacity(
        messages_per_second=capacity.messages_per_s,
        low=capacity.low,
        high=capacity.high,
        observations=capacity.observations,
        is_lower_bound=capacity.is_lower_bound,
        source=capacity.source,
    )


def _report(
    origin: PolicyOrigin, news: Mapping[str, News], at: datetime, next_look_at: datetime | None
) -> Mapping[str, str]:
    """Write the status of these policies; return the sentence for those of which none could be written, if any."""
    from planner.deployments.api import RolloutApi  # noqa: PLC0415  needs the kubernetes extra
    from planner.deployments.policies import write_policy_status  # noqa: PLC0415

    failures: dict[str, str] = {}
    with RolloutApi.connect(origin.namespace.kubeconfig) as api:
        for name, policy_news in news.items():
            read = origin.objects.get(name)
            if read is None:
                raise BadInputError(f"policy {name} was not read from {origin.namespace}: run it again")
            where = (api, origin.namespace.name, name, read)
            result = attempt(name, "report", write_policy_status, *where, policy_news, at, next_look_at)
            if isinstance(result, PlannerError):
                failures[name] = str(result)
                log.warning("status of policy %s was not written: %s", one_line(name), one_line(str(result)))
    if not failures:
        return {}
    first = next(iter(failures.values()))
    more = f"the status of {len(failures)} of {len(news)} policies was not written: {first}"
    return {str(origin.namespace): more}
