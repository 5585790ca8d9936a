"""Targets of other kinds as a server sends them: what is known of an Argo Rollout, a CloneSet, and any other kind."""

from datetime import UTC, datetime
from typing import Any

import pytest

from planner.documents.data import SNAPSHOT
from planner.model.deployments import Deployment
from planner.sources.kubernetes import AnswerError
from planner.sources.kubernetes.objects import Json, hpas_of, pod_of
from planner.sources.kubernetes.scale_targets import scale_target_of, selector_of_scale
from tests.unit.rollout.test_stateful import stateful

AT = datetime(2026, 11, 26, 10, 0, tzinfo=UTC)
TEMPLATE: Json = {"spec": {"containers": [{"name": "main", "readinessProbe": {"exec": {"command": ["true"]}}}]}}
AT_REST = {"stableRS": "aa", "currentPodHash": "aa", "observedGeneration": "3"}
ROLLOUT, CLONE_SET, FLEET = (
    ("argoproj.io/v1alpha1", "Rollout"),
    ("apps.kruise.io/v1alpha1", "CloneSet"),
    ("example.com/v1", "Fleet"),
)
CANARY = {"strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}]}}}


def target(kind: tuple[str, str], status: Json | None = None, meta: Json | None = None, **spec: Any) -> Json:
    named = {"namespace": "shop", "name": "app", "uid": "t1", "resourceVersion": "7", "generation": 3}
    return {
        "apiVersion": kind[0],
        "kind": kind[1],
        "metadata": {**named, **(meta or {})},
        "spec": {"replicas": 2, "template": TEMPLATE, **spec},
        "status": status or {},
    }


def scale(replicas: int = 2) -> Json:
    return {"spec": {"replicas": replicas}, "status": {"replicas": replicas, "selector": "app=app"}}


def pods(owner: str, *uids: str) -> list[Json]:
    """Return ready pods, each with a controller of this kind and uid."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-26T09:00:00Z"}
    return [
        {
            "metadata": {
                "namespace": "shop",
                "name": f"app-{index}",
                "uid": f"p{index}",
                "ownerReferences": [{"kind": owner, "name": uid, "uid": uid, "controller": True}],
            },
            "spec": {"containers": [{"name": "main"}], "terminationGracePeriodSeconds": 45},
            "status": {"phase": "Running", "conditions": [ready]},
        }
        for index, uid in enumerate(uids)
    ]


def read(found: Json, own: list[Json] | None = None, counted: Json | None = None) -> Deployment:
    return scale_target_of(
        found,
        counted or scale(),
        at=AT,
        pods=own,
        read_pods=None if own is None else tuple(pod_of(pod, {}) for pod in own),
        autoscalers=(),
        problems=(),
    )


def test_counts_come_from_scale_and_pods_and_probes_have_the_servers_defaults() -> None:
    """No kind's own status is needed; one that says which generation it saw is believed, as text or number."""
    found = read(target(FLEET), pods("Fleet", "t1", "t1"))
    assert (found.kind, found.title, found.replicas, found.current, found.ready) == ("Fleet", "Fleet app", 2, 2, 2)
    assert (found.updated, found.is_observed, found.grace_s) == (2, True, 30)
    (container,) = found.containers
    assert container.readiness is not None
    assert (container.readiness.period_s, container.readiness.failure_threshold) == (10, 3)
    assert read(target(ROLLOUT, {"observedGeneration": "2"})).is_observed is False
    assert read(target(CLONE_SET, {"observedGeneration": 3})).is_observed is True
    assert read(target(FLEET, template=None), pods("Fleet", "t1")).grace_s == 45, "of a pod, where there is no template"


@pytest.mark.parametrize(
    ("kind", "owners", "takes_cost"),
    [
        (ROLLOUT, ("ReplicaSet", "r1", "r1"), True),
        (CLONE_SET, ("CloneSet", "t1", "t1"), True),
        (FLEET, ("Fleet", "t1", "t1"), False),
        (FLEET, ("ReplicaSet", "r1", "r1"), True),
        (FLEET, ("ReplicaSet", "r1", "r2"), False),
        (FLEET, ("Fleet",), False),
    ],
)
def test_who_stops_is_known_of_two_kinds_and_of_pods_of_one_replica_set(
    kind: tuple[str, str], owners: tuple[str, ...], takes_cost: bool
) -> None:
    found = read(target(kind, AT_REST), pods(*owners))
    assert found.scale is not None
    assert (found.has_known_victims, found.scale.busy) == (takes_cost, None)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (target(ROLLOUT, AT_REST, paused=True), "Rollout shop/app is paused"),
        (target(ROLLOUT), "has not finished its first rollout"),
        (
            target(ROLLOUT, {**AT_REST, "currentPodHash": "bb", "currentStepIndex": 1}, **CANARY),
            "is in the middle of a rollout, at step 1 of 2, with pods of two templates: promote or abort it",
        ),
        (target(ROLLOUT, {**AT_REST, "abort": True}), "was aborted"),
        (target(ROLLOUT, {**AT_REST, "pauseConditions": [{"reason": "BlueGreenPause"}]}), "waits for somebody"),
        (
            target(ROLLOUT, {**AT_REST, "canary": {"currentBackgroundAnalysisRunStatus": {"status": "Running"}}}),
            "has a running analysis",
        ),
        (target(CLONE_SET, scaleStrategy={"podsToDelete": ["app-x"]}), "is asked to delete app-x"),
        (target(CLONE_SET, {"replicas": 2, "updatedReplicas": 1}), "has 1 of 2 pods of its newest template"),
        (
            target(
                ("apps/v1", "ReplicaSet"),
                meta={"ownerReferences": [{"kind": "Deployment", "name": "d", "uid": "d", "controller": True}]},
            ),
            "is controlled by Deployment d, which sets its count",
        ),
    ],
)
def test_what_keeps_the_count_from_being_changed_is_one_sentence(found: Json, sentence: str) -> None:
    made = read(found)
    assert made.scale is not None
    assert made.scale.busy is not None
    assert sentence in made.scale.busy


def test_a_count_that_is_kept_elsewhere_or_a_selector_that_is_missing_is_an_error() -> None:
    with pytest.raises(AnswerError, match=r"2 in spec.replicas and 5 in its sub-resource scale"):
        read(target(FLEET), counted=scale(5))
    with pytest.raises(AnswerError, match=r"states no spec.replicas"):
        read(target(FLEET, replicas=None))
    with pytest.raises(AnswerError, match=r"nobody knows what it runs"):
        read(target(FLEET, template=None), [])
    with pytest.raises(AnswerError, match=r"shows no selector"):
        selector_of_scale(target(FLEET), {"status": {}})


def test_an_hpa_counts_by_group_and_kind() -> None:
    """A ``Deployment`` of the same name is another target."""
    rollout = target(ROLLOUT, AT_REST)
    named = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "app"}
    made = [
        {"metadata": {"name": "own"}, "spec": {"scaleTargetRef": named, "maxReplicas": 5}},
        {
            "metadata": {"name": "other"},
            "spec": {"scaleTargetRef": {**named, "apiVersion": "apps/v1"}, "maxReplicas": 5},
        },
    ]
    assert [each.name for each in hpas_of(rollout, made)] == ["own"]


def test_a_snapshot_keeps_what_is_known_of_the_kind() -> None:
    taken = stateful(2, ordinals=None, scale=read(target(ROLLOUT, AT_REST), pods("ReplicaSet", "r1", "r1")).scale)
    assert SNAPSHOT.parse(SNAPSHOT.dump(taken), "x") == taken
    assert "scale" not in SNAPSHOT.body(stateful(2))["deployment"]
