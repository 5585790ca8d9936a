"""Readers of what an API server gives back: objects of Kubernetes and of ours, and what watches report of them."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any, Final, cast

from planner.controller.agenda import Agenda
from planner.controller.plan_cache import PlanCache
from planner.controller.records import Records
from planner.controller.retention import finished_plan
from planner.deployments.bodies import CLAIM, LIMITS_BEFORE, claim_of, kept_before, unclaim_patch
from planner.deployments.scalers import BEHAVIOR_BEFORE
from planner.documents.plan import PLAN
from planner.documents.status import dump_status
from planner.errors import PlannerError
from planner.execution.phases import Phase
from planner.execution.ports import ImpossibleError
from planner.execution.progress import RolloutStatus, StepProgress
from planner.sources.kubernetes import KubernetesApi
from planner.sources.kubernetes.objects import revision_of
from planner.sources.kubernetes.workload import complete_workload, read_pods
from planner.verification.judge import judge
from planner.verification.observed_change import ObservedChange
from tests.fuzz.damage import changed_json
from tests.fuzz.documents import folder, load_json
from tests.fuzz.engine import Reader
from tests.pod_groups import plan_for
from tests.step_builders import STEPS
from tests.unit.sources.kubernetes.test_kubernetes_objects import FOUND

_AT: Final = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def read_event(data: bytes) -> object:
    """Hear of a plan object as the controller's watch does: its cache, its records, what may be removed."""
    found = load_json(data)
    cache = PlanCache(Agenda(), lambda *_: None)
    with _silence():
        for version in ("1", "2"):
            found["metadata"]["resourceVersion"] = version
            cache.note(found)
        Records(folder(), lambda _: None).note(found)
        finished_plan(found)
    return cache.counts()


@contextmanager
def _silence() -> Iterator[None]:
    """Keep a line for each plan that cannot be read out of the log, and leave logging as it was to others."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


def event_seeds() -> list[bytes]:
    """Return plan objects: new, approved and on their way, at their end."""
    plan = plan_for("app", ["a", "b"], STEPS)
    document = PLAN.document(plan, "one", "shop")
    document["metadata"] |= {
        "uid": "u",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "2026-11-21T10:00:00Z",
    }
    approve = "consumerplanner.dev/approve"
    asked = {
        approve: "sha256:x",
        "consumerplanner.dev/approved-by": "admin",
        "consumerplanner.dev/answer": "3,5",
        "consumerplanner.dev/pause": "true",
        "consumerplanner.dev/confirm": "a\nb",
    }
    meta = document["metadata"]
    fields = {"f:metadata": {"f:annotations": {f"f:{approve}": {}}}}
    approved = {
        **document,
        "metadata": {
            **meta,
            "annotations": {**meta["annotations"], **asked},
            "finalizers": ["consumerplanner.dev/rollout"],
            "managedFields": [{"manager": "kubectl", "time": "2026-11-21T10:01:00Z", "fieldsV1": fields}],
        },
        "status": dump_status(RolloutStatus(phase=Phase.RUNNING, steps=(StepProgress(0, "awaitReady", _AT),))),
    }
    verdict = judge(plan.forecast, ObservedChange(), _AT)
    done = RolloutStatus(phase=Phase.SUCCEEDED, ended="new", phase_since=_AT, verdict=verdict)
    return [json.dumps(one).encode() for one in (document, approved, {**approved, "status": dump_status(done)})]


def damage_event(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Damage what an author or whoever may write the object chooses; the rest of the metadata is the server's own."""
    document = json.loads(data)
    part = chance.choice(("spec", "spec", "status", "status", "annotations"))
    if part in ("spec", "status"):
        changed = _changed(chance, document.get(part, {}), others)
        if isinstance(changed, dict):  # the definition asks for an object
            document[part] = changed
    else:  # texts by name, says the server, and nothing else
        notes = document["metadata"]["annotations"]
        notes[chance.choice([*notes, "consumerplanner.dev/abort"])] = _text(chance)
    return _dumped(document, data)


def _text(chance: Random) -> str:
    values = (
        "",
        "9" * 5000,
        "[" * 5000,
        '{"a":' * 3000,
        "null",
        "[]",
        "{}",
        "3",
        "x=1",
        "\u202e",
        "-1",
        "1e999",
        "NaN",
    )
    return chance.choice((*values, '{"spec":[]}', '{"spec":{}}', "a b c d", "uid=1 step=9", '"x"'))


def _changed(chance: Random, part: Any, others: Sequence[bytes]) -> Any:
    text = changed_json(chance, json.dumps(part).encode(), others)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return part


def _dumped(document: Any, data: bytes) -> bytes:
    try:
        return json.dumps(document).encode()
    except (ValueError, RecursionError):
        return data


class _Answers:
    """An API server whose lists stand in one document."""

    server = "https://server"

    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found

    def pods(self, *_: object) -> Any:
        return self._found["pods"]

    def replica_sets(self, *_: object) -> Any:
        return self._found["replicaSets"]

    def scaled_objects(self, *_: object) -> Any:
        return self._found["scaledObjects"]

    def horizontal_pod_autoscalers(self, *_: object) -> Any:
        return self._found["hpas"]


def read_objects(data: bytes) -> object:
    """Read a Deployment with its pods and autoscalers, its claim, and its limits from before a plan."""
    found = load_json(data)
    api = cast("KubernetesApi", _Answers(found))
    problems = []
    for read in (lambda: read_pods(api, "shop"), lambda: complete_workload(api, "shop/app", found["deployment"], _AT)):
        try:
            read()
        except PlannerError as error:
            problems.append(error)
    annotations = {"metadata": {"annotations": found["annotations"]}}
    claim_of(annotations)
    revision_of(annotations)
    kept_before(found["annotations"].get(BEHAVIOR_BEFORE, "null"), BEHAVIOR_BEFORE)
    return unclaim_patch(annotations, "1"), problems


def object_seeds() -> list[bytes]:
    """Return a Deployment with all that is read around it."""
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"spec":{}}'}
    manager = {
        "manager": "kubectl-client-side-apply",
        "operation": "Update",
        "time": "2026-11-21T10:00:00Z",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }
    template = {
        "terminationGracePeriodSeconds": 30,
        "containers": [
            {
                "name": "main",
                "image": "shop:1",
                "readinessProbe": {
                    "exec": {},
                    "periodSeconds": 1,
                    "timeoutSeconds": 1,
                    "successThreshold": 1,
                    "failureThreshold": 3,
                },
                "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
            }
        ],
    }
    deployment = {
        "metadata": {**FOUND["metadata"], "annotations": applied, "managedFields": [manager]},
        "spec": {**FOUND["spec"], "template": {"spec": template}},
        "status": {"replicas": 3, "readyReplicas": 3, "observedGeneration": 2},
    }
    owner = {"ownerReferences": [{"kind": "Deployment", "name": "app", "uid": "d1", "controller": True}]}
    by_set = {"ownerReferences": [{"kind": "ReplicaSet", "name": "rs", "uid": "r1", "controller": True}]}
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T10:00:00Z"}]
    pod = {
        "metadata": {
            "namespace": "shop",
            "name": "p",
            "uid": "p1",
            "labels": {"app": "app"},
            "creationTimestamp": "2026-11-21T10:00:00Z",
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"},
            **by_set,
        },
        "spec": {"nodeName": "n"},
        "status": {
            "phase": "Running",
            "podIPs": [{"ip": "1.2.3.4"}],
            "startTime": "2026-11-21T10:00:00Z",
            "conditions": conditions,
            "containerStatuses": [{"restartCount": 1}],
        },
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}
    hpa = {
        "metadata": {"name": "h", "resourceVersion": "1"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5, "behavior": {"scaleUp": {"selectPolicy": "Disabled"}}},
        "status": {"desiredReplicas": 3},
    }
    scaled = {
        "metadata": {"name": "s", "annotations": {"autoscaling.keda.sh/paused-replicas": "3"}},
        "spec": {"scaleTargetRef": {"name": "app"}, "idleReplicaCount": 1},
    }
    notes = {
        CLAIM: "shop/plan/3",
        LIMITS_BEFORE: '{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}',
        BEHAVIOR_BEFORE: '{"scaleUp":{}}',
        "deployment.kubernetes.io/revision": "4",
    }
    replica_set = {"metadata": {"namespace": "shop", "name": "rs", "uid": "r1", **owner}}
    whole = {
        "deployment": deployment,
        "pods": [pod],
        "replicaSets": [replica_set],
        "hpas": [hpa],
        "scaledObjects": [scaled],
        "annotations": notes,
    }
    return [json.dumps(whole).encode()]


def damage_objects(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Damage one object or one annotation."""
    document = json.loads(data)
    if chance.random() < 0.3:
        notes = chance.choice((document["annotations"], document["deployment"]["metadata"]["annotations"]))
        if notes:
            notes[chance.choice(list(notes))] = _text(chance)
    else:
        part = chance.choice(("deployment", "pods", "replicaSets", "hpas", "scaledObjects"))
        document[part] = _changed(chance, document[part], others)
    return _dumped(document, data)


READERS: Final = (
    Reader(
        "watch event",
        read_event,
        event_seeds,
        ("planner.controller", "planner.deployments", "planner.documents"),
        damage_event,
    ),
    Reader(
        "kubernetes objects",
        read_objects,
        object_seeds,
        ("planner.sources.kubernetes", "planner.deployments"),
        damage_objects,
        (PlannerError, ImpossibleError),
    ),
)
