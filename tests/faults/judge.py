"""What must hold, whatever went wrong: old or new, never too few, nothing twice, nothing left behind."""

from dataclasses import dataclass

from tests.clusters.kubernetes.rest import Json
from tests.faults.kinds import Kind
from tests.faults.observer import Record
from tests.faults.place import APP, CLAIM, DELETION_COST, GREEN, Kept, Place

LIMITS_BEFORE, BEHAVIOR_BEFORE = "consumerplanner.dev/strategy-before", "consumerplanner.dev/behavior-before"
_ENDS = {"Succeeded": "new", "RolledBack": "old", "Refused": "nothing", "Expired": "nothing"}


@dataclass(frozen=True)
class Verdict:
    """``state`` is ``old`` or ``new``, or what it is else; ``faults`` are sentences on what must not be."""

    state: str
    faults: tuple[str, ...]


def judge(place: Place, kind: Kind, name: str, record: Record, kept: Kept) -> Verdict:
    """Return the state that a plan at its end has left, and all that is wrong with it.

    ``kept`` is what there was before and must be again.
    """
    found = {one: made for one in (APP, GREEN) if (made := place.deployment(one)) is not None}
    counts = {one: _count(made) for one, made in found.items()}
    state = {str(kind.before): "old", str(kind.after): "new"}.get(str(counts), str(counts))
    faults = [
        *([f"the end is neither old nor new: {counts}"] if state not in ("old", "new") else []),
        *_few(kind, record),
        *(f"done twice: {what}" for what in record.twice),
        *(f"done without a claim: {what}" for what in record.unclaimed),
        *_left_behind(place, found, kept),
        *_told(place.plan(name), state),
    ]
    return Verdict(state, tuple(faults))


def _count(deployment: Json) -> tuple[int, str]:
    spec = deployment["spec"]
    return spec["replicas"], spec["template"]["spec"]["containers"][0]["image"]


def _few(kind: Kind, record: Record) -> list[str]:
    fewest = kind.fewest
    return [f"only {record.lowest} consumers were ready, {fewest} must"] if record.lowest < fewest else []


def _left_behind(place: Place, found: dict[str, Json], kept: Kept) -> list[str]:
    faults = _scalers(place, kept)
    for name, one in found.items():
        notes = one["metadata"].get("annotations") or {}
        faults += [f"{name} still has {key}={notes[key]}" for key in (CLAIM, LIMITS_BEFORE) if key in notes]
        if one["spec"]["strategy"] != kept.strategy:
            faults.append(f"{name} has another update strategy than before: {one['spec']['strategy']}")
    for pod in place.pods():
        if "deletionTimestamp" not in pod["metadata"] and DELETION_COST in (pod["metadata"].get("annotations") or {}):
            faults.append(f"pod {pod['metadata']['name']} still has a deletion cost")
    return faults


def _scalers(place: Place, kept: Kept) -> list[str]:
    found = {one["metadata"]["name"]: one for one in place.cluster.rest.get(place.scalers)["items"]}
    now = {name: one["spec"] for name, one in found.items()}
    faults = [] if now == kept.scalers else [f"the autoscalers are {now}, and were {kept.scalers}"]
    notes = {name: one["metadata"].get("annotations") or {} for name, one in found.items()}
    return faults + [f"{name} still has {BEHAVIOR_BEFORE}" for name, note in notes.items() if BEHAVIOR_BEFORE in note]


def _told(plan: Json | None, state: str) -> list[str]:
    """What the plan says of itself must be so; one that was deleted says nothing."""
    if plan is None:
        return []
    status = plan.get("status") or {}
    ended, expected = status.get("ended"), _ENDS.get(str(status.get("phase")))
    faults = []
    if ended != expected or (state == "new") != (ended == "new"):
        faults.append(f"the plan says {status.get('phase')}, {ended}, and it is {state}: {status.get('message')}")
    if plan["metadata"].get("finalizers"):
        faults.append("the plan's finalizer was not taken away")
    return faults
