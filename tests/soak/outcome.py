"""What a soak comes to: counts of runs, plans and verdicts, and every end that was wrong, by name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.documents.approve import APPROVED_BY_ANNOTATION
from tests.clusters.kubernetes.rest import Json
from tests.soak.day import HOURS, Served
from tests.soak.town import FEWEST

Runs = Mapping[str, Mapping[str, str]]
"""DAG -> run -> how it ended."""


@dataclass(frozen=True)
class GroupOutcome:
    """One group's day: its plans and what it was given."""

    name: str
    plans: Sequence[Json]
    looks: Sequence[tuple[float, int, int]]
    served: Served

    @property
    def applied(self) -> list[Json]:
        """The plans that were carried out."""
        return [plan for plan in self.plans if phase(plan) == "Succeeded"]

    @property
    def pod_hours(self) -> float:
        """Hours of ready pods, in the day's own hours."""
        if len(self.looks) < 2:
            return 0.0
        spent = sum((later[0] - sooner[0]) * sooner[2] for sooner, later in pairwise(self.looks))
        return spent * HOURS / (self.looks[-1][0] - self.looks[0][0])

    @property
    def inside(self) -> tuple[int, int]:
        """How many figures of all verdicts lay in their forecast, and how many were observed at all."""
        fits = [fit for plan in self.applied for fit in judged(plan)]
        return fits.count("inside"), len(fits)

    def wrong_ends(self) -> Iterator[str]:
        """Yield each end that nobody wants, in one sentence."""
        for plan in self.plans:
            name, found = plan["metadata"]["name"], phase(plan)
            if found not in ("Succeeded", "Pending", "Expired"):
                yield f"{name} is {found}: {plan['status'].get('message', '')}"
            elif found == "Succeeded" and APPROVED_BY_ANNOTATION not in plan["metadata"]["annotations"]:
                yield f"{name} was carried out, and nobody is named as its approver"
            elif found == "Succeeded" and not plan["status"].get("verdict", {}).get("figures"):
                yield f"{name} was carried out, and its forecast was not judged"
        fewest = min((ready for _, _, ready in self.looks), default=0)
        if fewest < FEWEST:
            yield f"{self.name} had {fewest} ready pods once, fewer than its policy's {FEWEST}"
        if self.served.missing:
            yield f"{self.name} lost {self.served.missing} messages"
        if self.applied and (wanted := self.looks[-1][1]) != (last := last_count(self.applied[-1])):
            yield f"{self.name} stands at {wanted} pods, where its last plan ended with {last}"


def phase(plan: Json) -> str:
    """Return how far a plan came."""
    return str(plan.get("status", {}).get("phase", "Pending"))


def judged(plan: Json) -> list[str]:
    """Return how each figure that was observed did against its forecast, ``inside`` or ``outside``."""
    figures = plan["status"].get("verdict", {}).get("figures", [])
    return [figure["fit"] for figure in figures if figure["fit"] in ("inside", "outside")]


def last_count(plan: Json) -> int:
    """Return how many pods a plan ends with."""
    return int(plan["spec"]["targetReplicas"])


def failed(runs: Runs) -> list[str]:
    """Return the runs that failed."""
    return [f"{dag} {run}" for dag, states in runs.items() for run, state in states.items() if state == "failed"]


def table(runs: Runs, groups: Sequence[GroupOutcome]) -> list[str]:
    """Return the figures as a Markdown table, one column a group."""
    rows = {
        "messages sent and given to somebody": [f"{one.served.messages:,}".replace(",", " ") for one in groups],
        "messages lost": [str(one.served.missing) for one in groups],
        "messages that came twice": [str(one.served.twice) for one in groups],
        "messages that waited over 60 s": [str(one.served.late) for one in groups],
        "longest wait": [f"{one.served.worst_wait_s:.0f} s" for one in groups],
        "plans made, carried out": [f"{len(one.plans)}, {len(one.applied)}" for one in groups],
        "counts": [" → ".join(map(str, counts(one))) for one in groups],
        "consumer-hours of 24 h": [f"{one.pod_hours:.0f}" for one in groups],
        "figures of verdicts inside their forecast": ["{} of {}".format(*one.inside) for one in groups],
    }
    head = ["| | " + " | ".join(one.name for one in groups) + " |", "|---|" + "---|" * len(groups)]
    body = [f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items()]
    wrong = [sentence for one in groups for sentence in one.wrong_ends()]
    wrong += [f"{run} failed" for run in failed(runs)]
    ran = ", ".join(f"{len(states)} of `{dag}`" for dag, states in runs.items())
    return [*head, *body, "", f"Runs: {ran}. Wrong ends: {len(wrong)}.", *(f"- {sentence}" for sentence in wrong)]


def counts(group: GroupOutcome) -> list[int]:
    """Return the counts of pods that were wanted one after the other."""
    wanted = [wanted for _, wanted, _ in group.looks]
    return [count for at, count in enumerate(wanted) if at == 0 or wanted[at - 1] != count]
