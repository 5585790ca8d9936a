"""``ClusterPlans``: plans and their status as ``ConsumerRolloutPlan`` objects of one namespace."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from planner.deployments.api import RolloutApi
from planner.deployments.bodies import Json, annotations_of
from planner.documents.approve import APPROVE_ANNOTATION, APPROVED_BY_ANNOTATION, AUTHOR_ANNOTATION, CONFIRM_ANNOTATION
from planner.documents.format import API_VERSION, digest_of
from planner.documents.plan import DIGEST_ANNOTATION, PLAN
from planner.documents.status import dump_status, parse_status
from planner.errors import BadInputError, DocumentError
from planner.execution.conditions import with_conditions
from planner.execution.phases import Phase
from planner.execution.ports import ConflictError, Requests, StoredPlan
from planner.execution.progress import Approval, RolloutStatus

PAUSE_ANNOTATION: Final = "consumerplanner.dev/pause"
ABORT_ANNOTATION: Final = "consumerplanner.dev/abort"
ANSWER_ANNOTATION: Final = "consumerplanner.dev/answer"
"""The numbers of the steps, from 1 as people are shown them, that a person let go on: ``3`` or ``3,5``."""
FINALIZER: Final = "consumerplanner.dev/rollout"
_DIGITS: Final = 6
_SHOWN: Final = 40
_TRIES: Final = 5
"""How often a finalizer is set while others write the same plan."""

FinalizerChange = Callable[[Mapping[str, Any]], list[str]]
"""The finalizers that a plan object is to have."""


class ClusterPlans:
    """The plans of one namespace, and their status."""

    def __init__(self, api: RolloutApi, namespace: str) -> None:
        self._api = api
        self.namespace = namespace

    def read(self, name: str) -> StoredPlan | None:
        """Return the plan, ``None`` when there is none. Raises ``DocumentError`` for one that we cannot read."""
        manifest = self._api.plan(self.namespace, name)
        return None if manifest is None else stored_plan(manifest)

    def write_status(self, stored: StoredPlan, status: RolloutStatus) -> None:
        """Write the status with its conditions, unless the plan has changed since: then ``ConflictError``."""
        meta = {
            "name": stored.name,
            "namespace": self.namespace,
            "uid": stored.uid,
            "resourceVersion": stored.resource_version,
        }
        full_status = with_conditions(stored, status, status.last_look_at or datetime.now(UTC))
        body = {"apiVersion": API_VERSION, "kind": PLAN.kind, "metadata": meta, "status": dump_status(full_status)}
        if self._api.replace_plan_status(self.namespace, stored.name, body) is None:
            raise ConflictError(f"plan {stored.name} is gone")

    def add_finalizer(self, name: str) -> None:
        """Put the finalizer in, so that a deletion waits until the plan is at an end; one that is over gets none."""

        def with_ours(manifest: Mapping[str, Any]) -> list[str]:
            # The caller may have stood still since it read the plan, and others may have ended it meanwhile.
            if self._phase(name, manifest).is_final:
                return _finalizers(manifest)
            return [*(finalizer for finalizer in _finalizers(manifest) if finalizer != FINALIZER), FINALIZER]

        self._set_finalizers(name, with_ours)

    def remove_finalizer(self, stored: StoredPlan) -> None:
        """Take the finalizer away, so that a deleted plan really goes; nothing to do where there is none.

        A plan that is in progress by then keeps it: there is something to undo.
        """

        def without(manifest: Mapping[str, Any]) -> list[str]:
            phase = self._phase(stored.name, manifest)
            kept = _finalizers(manifest)
            return (
                kept
                if phase.is_in_progress and not phase.is_final
                else [finalizer for finalizer in kept if finalizer != FINALIZER]
            )

        self._set_finalizers(stored.name, without, stored.uid)

    def create(self, document: Mapping[str, Any], *, is_dry: bool = False) -> StoredPlan:
        """Create the object of a plan document and return it; ``is_dry`` has the server check it, and keeps nothing.

        Its author is our own account, and of an approval that stands in it the approver is, too: a file cannot show
        who wrote into it.
        """
        annotations = {**(document["metadata"].get("annotations") or {}), AUTHOR_ANNOTATION: self._api.own_name()}
        annotations.pop(APPROVED_BY_ANNOTATION, None)
        if APPROVE_ANNOTATION in annotations:
            annotations[APPROVED_BY_ANNOTATION] = self._api.own_name()
        meta = {**document["metadata"], "namespace": self.namespace, "annotations": annotations}
        return stored_plan(self._api.create_plan(self.namespace, {**document, "metadata": meta}, is_dry=is_dry))

    def approve(self, name: str, digest: str, phrases: Sequence[str] = ()) -> None:
        """Approve a plan with this digest in our own name. Raises ``BadInputError`` when there is no such plan.

        The name is the one by which the API server knows us, and the admission policy takes no other.
        """
        confirmed = {CONFIRM_ANNOTATION: "\n".join(phrases)} if phrases else {}
        self.annotate(name, {APPROVE_ANNOTATION: digest, APPROVED_BY_ANNOTATION: self._api.own_name(), **confirmed})

    def annotate(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of a plan, or take them away. Raises ``BadInputError`` when there is no such plan."""
        if self._api.patch_plan(self.namespace, name, {"metadata": {"annotations": dict(annotations)}}) is None:
            raise no_plan(self.namespace, name)

    def _phase(self, name: str, manifest: Mapping[str, Any]) -> Phase:
        return parse_status(manifest.get("status"), f"plan {self.namespace}/{name}").phase

    def _set_finalizers(self, name: str, change: FinalizerChange, uid: str | None = None) -> None:
        for left in reversed(range(_TRIES)):
            try:
                self._change_finalizers(name, change, uid)
                return
            except ConflictError:  # two executors bring a plan to its end, and both let it go
                if not left:
                    raise

    def _change_finalizers(self, name: str, change: FinalizerChange, uid: str | None) -> None:
        manifest = self._api.plan(self.namespace, name)
        if manifest is None or uid not in (None, manifest["metadata"]["uid"]):
            return
        after = change(manifest)
        if set(after) != set(_finalizers(manifest)):
            body = {"metadata": {"resourceVersion": manifest["metadata"]["resourceVersion"], "finalizers": after}}
            self._api.patch_plan(self.namespace, name, body)


def _finalizers(manifest: Mapping[str, Any]) -> list[str]:
    return list(manifest["metadata"].get("finalizers") or [])


def no_plan(namespace: str, name: str) -> BadInputError:
    """Return the error for a plan that is not there."""
    return BadInputError(f"there is no plan {name} in namespace {namespace}: kubectl get crp -n {namespace} lists them")


def stored_plan(manifest: Mapping[str, Any]) -> StoredPlan:
    """Return a plan object as the engine knows it; its digest is that of the spec as it stands."""
    meta = manifest["metadata"]
    where = f"plan {meta.get('namespace')}/{meta['name']}"
    digest = digest_of(manifest["spec"])
    # Whether the spec is the approved one is the engine's question, so here it only has to be a plan.
    plan = PLAN.parse({**manifest, "metadata": {"annotations": {DIGEST_ANNOTATION: digest}}}, where)
    return StoredPlan(
        name=meta["name"],
        uid=meta["uid"],
        plan=plan,
        digest=digest,
        resource_version=meta.get("resourceVersion", ""),  # a dry run gives none
        status=parse_status(manifest.get("status"), where),
        requests=requests_of(manifest),
        generation=meta.get("generation"),
        policy_digest=plan.policy_digest,
        has_finalizer=FINALIZER in _finalizers(manifest),
        author=annotations_of(manifest).get(AUTHOR_ANNOTATION),
    )


def requests_of(manifest: Mapping[str, Any]) -> Requests:
    """Return what people ask of a plan by its annotations, and by its deletion. Raises ``DocumentError``.

    The server notes when an annotation was set last, and by which program, not by whom. The approver is in the
    annotation that k8s/admission/approval.yaml lets nobody set but in his own name; without that policy it is anybody's
    word.
    """
    notes, meta = annotations_of(manifest), manifest["metadata"]
    digest = notes.get(APPROVE_ANNOTATION)
    return Requests(
        approval=None if digest is None else _approval(digest, notes, meta),
        pause=_is_on(notes.get(PAUSE_ANNOTATION)),
        abort=_is_on(notes.get(ABORT_ANNOTATION)),
        is_deleted="deletionTimestamp" in meta,
        answered=_parse_answered(notes.get(ANSWER_ANNOTATION, "")),
        confirmed=tuple(line for line in notes.get(CONFIRM_ANNOTATION, "").splitlines() if line),
    )


def _approval(digest: str, notes: Mapping[str, str], meta: Json) -> Approval:
    where = f"plan {meta.get('namespace')}/{meta.get('name')}"
    return Approval(digest, notes.get(APPROVED_BY_ANNOTATION), _set_at(meta, APPROVE_ANNOTATION, where))


def _parse_answered(text: str) -> tuple[int, ...]:
    """Return the indexes of the steps whose numbers the text names."""
    return tuple(int(number) - 1 for number in text.split(",") if _is_number(number.strip()))


def _is_number(text: str) -> bool:
    """True for digits that can number a step: an annotation may hold thousands of them."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _is_on(value: str | None) -> bool:
    return value is not None and value.strip().lower() != "false"


def _set_at(meta: Json, annotation: str, where: str) -> datetime:
    times = [
        _time(manager["time"], where)
        for manager in meta.get("managedFields") or []
        if "time" in manager and f"f:{annotation}" in _fields(manager, "f:metadata", "f:annotations")
    ]
    return max(times) if times else _time(meta["creationTimestamp"], where)


def _time(text: object, where: str) -> datetime:
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        shown = str(text)[:_SHOWN]
        raise DocumentError(
            f"{where}: found {shown!r} as the time when a field was set, expected one like 2026-11-21T10:15:00Z: "
            "delete the plan and make it anew"
        ) from error


def _fields(manager: Json, *path: str) -> Json:
    fields = manager.get("fieldsV1")
    for key in path:
        fields = fields.get(key) if isinstance(fields, dict) else None
    return dict(fields) if isinstance(fields, dict) else {}
