"""Strategies that contradict each other: among the members, or with the policy.

Every RocketMQ client allocates alone, from its own strategy, route and member list (rocketmq.md 3.13).
"""

from collections.abc import Iterator, Mapping, Sequence

from planner.allocation.registry import runnable_strategy
from planner.allocation.strategy import Strategy
from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import some
from planner.diagnosis.split_ownership import SplitOwnership, split_by_reports, split_ownership
from planner.inference import Inference, contradiction
from planner.model.membership import GroupMember
from planner.model.queues import message_queues
from planner.simulation.rocketmq.ownership import MemberView, ownership
from planner.snapshot.strategy import strategy_name
from planner.text.words import counted


def mixed_strategies(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members that run different allocation strategies: a permanent split brain."""
    if not evidence.has_owners:
        return
    by_class: dict[str, list[str]] = {}
    for member in evidence.rocketmq_members:
        if member.tuning and member.tuning.strategy_class:
            by_class.setdefault(member.tuning.strategy_class, []).append(member.client_id)
    unreported = [member.client_id for member in evidence.rocketmq_members if not _reports_strategy(member)]
    if unreported and len(by_class) < 2:
        yield Gap(f"{counted(len(unreported), 'member')} did not report the allocation strategy: {some(unreported)}")
    if len(by_class) < 2:
        return
    split = split_by_reports(evidence) or _split_by(evidence, by_class)
    yield Symptom(
        severity=Severity.ERROR,
        title=f"Split brain: members run {len(by_class)} different allocation strategies",
        evidence=(
            *(f"{_short(name)}: {some(clients)}" for name, clients in sorted(by_class.items())),
            *split.evidence,
        ),
        consequence=split.consequence,
        advice="give all members the same strategy; a rollout that changes it tears the group until its end",
        about=(*split.about, *evidence.clients),
    )


def _reports_strategy(member: GroupMember) -> bool:
    return bool(member.tuning and member.tuning.strategy_class)


def _short(strategy_class: str) -> str:
    return strategy_name(strategy_class) or strategy_class


def _split_by(evidence: GroupEvidence, by_class: Mapping[str, Sequence[str]]) -> SplitOwnership:
    """Return the split ownership that these strategies compute; nothing when one of them cannot be computed."""
    strategies: dict[str, Strategy] = {}
    for name, clients in by_class.items():
        strategy = runnable_strategy(strategy_name(name))
        if strategy is None:
            return split_ownership(evidence, {}, ())
        strategies |= dict.fromkeys(clients, strategy)
    queues = message_queues(evidence.queues)
    allocated = ownership(
        MemberView(client, strategies[client], queues, evidence.clients) for client in sorted(strategies)
    )
    return split_ownership(evidence, {queue: allocated.owners[queue] for queue in allocated.doubled}, allocated.orphans)


def against_policy(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """A policy that states another strategy than the members run: it would plan for a group that does not exist."""
    if evidence.stated_strategy is None or evidence.inference is None:
        return
    against = contradiction(evidence.stated_strategy, evidence.inference)
    if against is not None and (
        evidence.has_settled or _members_name_another(evidence.inference, evidence.stated_strategy)
    ):
        yield Symptom(
            severity=Severity.ERROR,
            title=f"The policy states {evidence.stated_strategy}, and the group runs another strategy",
            evidence=(against,),
            consequence="every forecast that rests on the policy's word predicts the wrong owners",
            advice="correct spec.strategy in the policy, or leave it out: members report RocketMQ's own classes",
        )


def _members_name_another(inference: Inference, stated: str) -> bool:
    """Return whether the members' own reports are enough, whatever they own at the moment."""
    return bool(inference.named) and all(name.partition("-")[0] != stated.partition("-")[0] for name in inference.named)
