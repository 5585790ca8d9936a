"""The policies folder, read as the task *observe* reads it."""

from collections.abc import Iterator

from planner.orchestration.checks.result import CheckSettings
from planner.policies.fleet import policy_location, read_fleet
from planner.text.words import and_list


def check_policies(settings: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Say of each policy which group it is for, and of each wrong file what is wrong.

    Raises ``BadInputError`` where no policy can be served.
    """
    folder = policy_location(settings.policies)
    fleet = read_fleet(folder)
    for policy in fleet.policies:
        source, spec = policy.spec.source, policy.spec
        yield (
            True,
            (
                f"policy {policy.metadata.name} is read: {source.system} group {source.group}, {spec.target_kind} "
                f"{policy.metadata.namespace}/{and_list(spec.target_names)}, {spec.min_replicas} to {spec.max_replicas}"
            ),
        )
    for sentence in fleet.refused.values():
        yield False, sentence
