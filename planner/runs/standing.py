"""What the runs of one process remember of each other: decisions to stay, which the next run finds to stand or not."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from planner.documents.policy import ConsumerScalingPolicy
from planner.isolation import attempt
from planner.model.samples import GroupSample
from planner.policies.fleet import read_problems
from planner.runs.landed import newest_of_groups
from planner.runs.local_run import Served
from planner.storage.files import write_atomically
from planner.storage.landing import GroupKey
from planner.storage.run import Run


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a run decided for a policy of this text, at its time."""

    text: bytes
    served: Served
    decided_at: datetime


class StandingDecisions:
    """The decisions to stay of the last runs, by policy; those of policies that are gone go with the next run."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def check(self, run: Run, policies: Sequence[ConsumerScalingPolicy]) -> list[Served]:
        """Return the decisions that stand by what the run has read; all others are forgotten, and due anew."""
        kept, self._kept = self._kept, {}
        known = [policy for policy in policies if policy.metadata.name in kept]
        problems = read_problems(run.folder)
        samples = newest_of_groups(run.data, {_key(policy) for policy in known}, run.since, run.until)
        confirmed = []
        for policy in known:
            name, sample = policy.metadata.name, samples.get(_key(policy))
            if name in problems or sample is None or kept[name].text != _text(run, name):
                continue
            served = attempt(name, "check", _confirm, kept[name], sample)
            if isinstance(served, Served):
                self._kept[name] = kept[name]
                confirmed.append(served)
        if confirmed:
            made_in = {each.decided["policy"]: each.made_in.path.name for each in confirmed if each.made_in}
            write_atomically(run.folder.stands, json.dumps(made_in, indent=2, sort_keys=True) + "\n")
        return confirmed

    def remember(self, run: Run, served: Sequence[Served]) -> None:
        """Keep what the run has decided, as far as it may stand."""
        for each in served:
            if each.standing is not None:
                name = each.decided["policy"]
                decided = replace(each, made_in=run.folder)
                self._kept[name] = _Kept(_text(run, name), decided, run.until)


def _confirm(kept: _Kept, sample: GroupSample) -> Served | None:
    standing, decided = kept.served.standing, kept.served.decided
    if standing is None or not standing.stands(sample):
        return None
    at = f"{kept.decided_at.astimezone(UTC):%H:%M:%S} UTC"
    reason = f"{decided['reason'].rstrip('.')}. So decided at {at}, and it stands."
    age_s = (datetime.now(UTC) - sample.at).total_seconds()
    return replace(kept.served, decided={**decided, "reason": reason}, data_age_s=age_s)


def _key(policy: ConsumerScalingPolicy) -> GroupKey:
    source = policy.spec.source
    return source.system, source.cluster, source.group


def _text(run: Run, policy: str) -> bytes:
    return (run.policies / f"{policy}.yaml").read_bytes()
