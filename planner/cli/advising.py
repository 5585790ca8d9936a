"""``planner advise`` between its options and its answer: watch groups until the answer is clear, and conclude."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.address import Address, Discovery, discover
from planner.cli.console import errors
from planner.errors import BadInputError
from planner.text.words import some

if TYPE_CHECKING:
    from planner.cli.concluding import Conclusion
    from planner.cli.target import Target
    from planner.documents.policy import ConsumerScalingPolicy


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for; ``group`` ``None`` is every group, ``deployment`` is namespace and name.

    ``capacities`` are in messages per second of one consumer, by group; that of ``None`` is of all that show none.
    """

    address: Address
    group: str | None
    deployment: tuple[str, str] | None
    kubeconfig: Path | None
    highest: int | None
    longest_s: float
    members_per_pod: int | None = None
    capacities: Mapping[str | None, float] = field(default_factory=dict)

    def capacity(self, group: str) -> float | None:
        """Return what is stated of a group: where it alone is asked about, a figure alone is its own."""
        return self.capacities.get(group, self.capacities.get(None) if self.group else None)


def answers(request: Request) -> "tuple[list[Conclusion], list[tuple[str, str]]]":
    """Return the answers, largest gain first, and the groups that could not be read, each with the reason."""
    from planner.advice.answer import by_gain
    from planner.cli.advise_view import WatchView
    from planner.cli.concluding import conclude
    from planner.cli.watching import single_installation, watch_until_clear

    names = (request.group,) if request.group else ()
    with errors.status("reading the group" if names else "asking which groups there are"):
        discovery = discover(request.address, names)
        _check_capacities(request.capacities, discovery)
        target = _target(request, discovery)
        policies = _policies(request, discovery, target)
    with WatchView(errors, request.longest_s) as view:
        watch = watch_until_clear(
            single_installation(policies), request.longest_s, view.show, request.capacities.get(None)
        )
    with errors.status("working out what the change costs"):
        conclusions = [
            conclude(group, watch.pace.sample_every_s, request.address, target)
            for group in watch.groups.values()
            if group.samples
        ]
    failures = discovery.failures | {
        name: group.failure for name, group in watch.groups.items() if group.failure is not None and not group.samples
    }
    unread = [(name, str(failure)) for name, failure in sorted(failures.items())]
    return sorted(conclusions, key=lambda conclusion: by_gain(conclusion.advice)), unread


def _target(request: Request, discovery: Discovery) -> "Target | None":
    """Return the Deployment that is named, read before anybody waits, and print what does not fit."""
    if request.deployment is None or request.group is None:
        return None
    from planner.cli.target import doubts, read_target

    sample = discovery.samples[request.group]
    target = read_target(*request.deployment, request.kubeconfig, sample)
    for doubt in doubts(target, sample):
        errors.print(f"planner: {doubt}")
    return target


def _policies(request: Request, discovery: Discovery, target: "Target | None") -> "list[ConsumerScalingPolicy]":
    from planner.cli.default_policy import default_policy

    return [
        default_policy(
            request.address, sample, target, request.highest, request.members_per_pod, request.capacity(name)
        )
        for name, sample in sorted(discovery.samples.items())
    ]


def _check_capacities(capacities: Mapping[str | None, float], discovery: Discovery) -> None:
    """Raise ``BadInputError`` where a capacity is stated of a group that is not there."""
    strangers = sorted(name for name in capacities if name is not None and name not in discovery.samples)
    if strangers:
        raise BadInputError(
            f"option --capacity: no group {strangers[0]} is read here: expected {some(sorted(discovery.samples))}"
        )
