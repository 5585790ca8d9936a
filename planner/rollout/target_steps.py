"""The steps of a plan whose pods several Deployments run: each scales, marks or awaits the share of one of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.rollout.steps import AwaitReady, MarkVictims, MovedQueues, StartConsumers, Step, StopConsumers
from planner.rollout.targets import Share, Target
from planner.text.words import and_list


def steps_of_targets(
    steps: Sequence[Step], shares: Sequence[Share], deployment_of: Mapping[str, str], pod_of: Mapping[str, str]
) -> tuple[Step, ...]:
    """Return the steps of one change with each that is about all pods split over the Deployments of ``shares``.

    Deployments that keep their count are awaited first: a change must not begin while one of them is not at rest. All
    others are scaled right after one another, so that the group rebalances for all of them at once. ``deployment_of``
    is pod -> Deployment, ``pod_of`` member -> pod.
    """
    limit_s = next(step.time_limit_seconds for step in steps if isinstance(step, StartConsumers | StopConsumers))
    keep = (AwaitReady(share.after, limit_s, deployment=share.name) for share in shares if share.after == share.before)
    change = [share for share in shares if share.after != share.before]
    return (*keep, *(each for step in steps for each in _split(step, change, deployment_of, pod_of)))


def _split(
    step: Step, shares: Sequence[Share], deployment_of: Mapping[str, str], pod_of: Mapping[str, str]
) -> Iterator[Step]:
    match step:
        case MarkVictims():
            for share in shares:
                victims = tuple(victim for victim in step.victims if deployment_of.get(victim.pod) == share.name)
                yield replace(step, victims=victims, deployment=share.name)
        case AwaitReady():
            yield from (replace(step, replicas=share.after, deployment=share.name) for share in shares)
        case StartConsumers():
            for share, moved in _with_moves(step.forecast, shares):
                yield replace(step, **_counts(share), forecast=moved)
        case StopConsumers():
            for share, moved in _with_moves(step.forecast, shares):
                own = [member for member in step.preferred_victims if _runs_in(member, share, deployment_of, pod_of)]
                yield replace(step, **_counts(share), preferred_victims=tuple(own), forecast=moved)
        case _:
            yield step


def _runs_in(member: str, share: Share, deployment_of: Mapping[str, str], pod_of: Mapping[str, str]) -> bool:
    return deployment_of.get(pod_of.get(member, "")) == share.name


def _counts(share: Share) -> dict[str, Any]:
    return {
        "from_replicas": share.before,
        "to_replicas": share.after,
        "deployment": share.name,
        "undo": f"set the replicas of {share.name} back to {share.before}",
    }


def _with_moves(moved: MovedQueues, shares: Sequence[Share]) -> Iterator[tuple[Share, MovedQueues]]:
    """Yield each share with what moves: all with the last one, as the group rebalances for all of them at once."""
    for share in shares:
        yield share, moved if share is shares[-1] else MovedQueues()


def explain_split(shares: Sequence[Share], targets: Sequence[Target]) -> Iterator[str]:
    """Yield in a sentence how many pods each Deployment has then, and by which weights; nothing for one alone."""
    if not shares:
        return
    counts = and_list([_describe(share) for share in shares])
    weights = " : ".join(str(target.weight) for target in targets)
    yield f"Split by the weights {weights}: {counts}."
    if sum(share.after != share.before for share in shares) > 1:
        yield "They are scaled seconds apart, one right after another, which the forecast takes for one change."


def _describe(share: Share) -> str:
    is_kept = share.after == share.before
    return f"{share.name} keeps {share.after}" if is_kept else f"{share.name} goes from {share.before} to {share.after}"
