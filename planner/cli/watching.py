"""The watch of ``planner advise``: each sample is evaluated, and the watch ends when all answers are clear."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.advice.counting import count_members
from planner.advice.evaluation import Evaluation, evaluate
from planner.advice.sequential import Clarity, clarity
from planner.cli.default_policy import with_capacity, with_window
from planner.diagnosis.group_evidence import GroupEvidence
from planner.errors import BadInputError, OutOfReachError, PlannerError
from planner.history.work import members_between_commits
from planner.sources.live import Installation, Pace, installations, watch_installation

if TYPE_CHECKING:
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.samples import GroupSample
    from planner.model.snapshot import GroupSnapshot

EVERY_S = 15.0
"""With many groups each is evaluated so often; a group alone at every sample."""


@dataclass
class GroupWatch:
    """One group's watch: its samples and evaluations, oldest first, and what its newest reading failed with.

    ``assumed_capacity``: what one consumer can do in messages per second, where the group does not show it.
    """

    policy: "ConsumerScalingPolicy"
    samples: "list[GroupSample]" = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    snapshot: "GroupSnapshot | None" = None
    failure: PlannerError | None = None
    assumed_capacity: float | None = None

    @property
    def group(self) -> str:
        """The group's name."""
        return self.policy.spec.source.group

    @property
    def watched_s(self) -> float:
        """Seconds from the first sample to the last."""
        return (self.samples[-1].at - self.samples[0].at).total_seconds() if self.samples else 0.0

    @property
    def clarity(self) -> Clarity | None:
        """How clear the answer is, ``None`` before the first evaluation."""
        return clarity(self.evaluations) if self.evaluations else None

    @property
    def is_clear(self) -> bool:
        """True when more watching adds nothing."""
        now = self.clarity
        return now is not None and now.is_clear

    def evaluate(self, sample_every_s: float) -> None:
        """Evaluate what was watched so far, on the window that was watched."""
        policy = self.policy_now(sample_every_s)
        self.snapshot = self.take_snapshot(policy, sample_every_s)
        evaluation = evaluate(self.snapshot, policy.objective, self.watched_s)
        works = GroupEvidence(tuple(self.samples), sample_every_s).work
        self.evaluations.append(replace(evaluation, between_commits=members_between_commits(works)))

    def policy_now(self, sample_every_s: float) -> "ConsumerScalingPolicy":
        """Return the policy of what was watched: its window, and the assumed capacity where none shows.

        An assumed capacity that a consumer was seen to exceed is none.
        """
        policy = with_window(self.policy, self.watched_s)
        if self.assumed_capacity is None or policy.spec.capacity is not None:
            return policy
        shown = self.take_snapshot(policy, sample_every_s).capacity
        is_shown = shown is not None and (not shown.is_lower_bound or shown.messages_per_s > self.assumed_capacity)
        return policy if is_shown else with_capacity(policy, self.assumed_capacity)

    def take_snapshot(self, policy: "ConsumerScalingPolicy", sample_every_s: float) -> "GroupSnapshot":
        """Return the snapshot of all samples under ``policy``; without a Deployment it counts members where it must."""
        from planner import pipeline

        snapshot = pipeline.take_snapshot(self.samples, sample_every_s, policy, self.samples[-1].at)
        return count_members(snapshot) if policy.spec.kubernetes is None else snapshot

    def is_due(self, every_s: float) -> bool:
        """Return whether the newest sample is as far as ``every_s`` seconds from the last evaluation."""
        last = self.evaluations[-1].watched_s if self.evaluations else -every_s
        return self.watched_s - last >= every_s


@dataclass
class Watch:
    """All groups of one watch; ``is_interrupted`` by a person who wants the answer now."""

    groups: dict[str, GroupWatch]
    pace: Pace = field(default_factory=Pace)
    is_interrupted: bool = False

    @property
    def watched_s(self) -> float:
        """The longest watch of a group, in seconds."""
        return max((group.watched_s for group in self.groups.values()), default=0.0)

    @property
    def is_clear(self) -> bool:
        """True when every group that can be read is clear, and there is one."""
        readable = [group for group in self.groups.values() if group.failure is None]
        return bool(readable) and all(group.is_clear for group in readable)

    def evaluate_all(self) -> None:
        """Evaluate each group that has samples which its last evaluation did not know."""
        for group in self.groups.values():
            if group.samples and group.is_due(1e-3):
                group.evaluate(self.pace.sample_every_s)


def single_installation(policies: "Sequence[ConsumerScalingPolicy]") -> Installation:
    """Return the installation of all policies. Raises ``BadInputError`` where they live in several clusters."""
    apart = installations(policies)
    if len(apart) > 1:
        names = ", ".join(sorted({policy.spec.source.cluster for policy in policies}))
        raise BadInputError(f"these servers know several clusters ({names}): name one with --cluster")
    return apart[0]


def watch_until_clear(
    installation: Installation,
    longest_s: float,
    show: Callable[[Watch], None],
    assumed_capacity: float | None = None,
) -> Watch:
    """Return the watch once every group's answer is clear at one time, after ``longest_s`` seconds at the latest.

    ``show`` is called after each sample; ``assumed_capacity`` (messages per second) is that of groups which show none.
    A person who interrupts gets the answer on what was watched so far. Raises what keeps every group from being read.
    """
    groups = (GroupWatch(policy, assumed_capacity=assumed_capacity) for policy in installation.policies)
    watch = Watch({group.group: group for group in groups})
    every_s = 0.0 if len(watch.groups) == 1 else EVERY_S
    try:
        for policy, response in watch_installation(installation, longest_s, watch.pace):
            _note(watch, watch.groups[policy.spec.source.group], response, every_s)
            if watch.is_clear:
                # Groups that were clear before the last one was are not evaluated meanwhile, and may have changed.
                watch.evaluate_all()
            show(watch)
            if watch.is_clear:
                break
    except KeyboardInterrupt:
        if not any(len(group.samples) > 1 for group in watch.groups.values()):
            raise
        watch.is_interrupted = True
    watch.evaluate_all()
    return watch


def _note(watch: Watch, group: GroupWatch, response: "GroupSample | PlannerError", every_s: float) -> None:
    if isinstance(response, PlannerError):
        group.failure = response
        is_alone = len(watch.groups) == 1
        if is_alone and (not group.samples or not isinstance(response, OutOfReachError)):
            raise response
        return
    group.failure = None
    group.samples.append(response)
    if not group.is_clear and group.is_due(every_s):
        group.evaluate(watch.pace.sample_every_s)
