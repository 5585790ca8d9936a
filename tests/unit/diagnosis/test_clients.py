"""How clients and brokers are set up, and what the Deployment adds."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from planner.diagnosis.finding import Severity
from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.autoscalers import Autoscaler, FieldManager
from planner.model.brokers import BrokerDisk
from planner.model.deployments import Deployment, UpdateStrategy
from planner.model.membership import TopicFigures
from planner.model.pods import Container, Pod, PreStop
from planner.model.samples import RocketMQGroup
from tests.sample_builders import START
from tests.unit.diagnosis.patients import broker, codes, each, finding, gaps, healthy, member, tuned


def hasty(call_ms: float, per_s: float, wait: str = "0") -> GroupEvidence:
    picture = healthy()
    for client in ("c1", "c2"):
        picture = each(
            picture,
            tuned(
                client,
                properties=(("awaitTerminationMillisWhenShutdown", wait),),
                figures=(TopicFigures("orders", call_ms, per_s, 0.0),),
            ),
        )
    return picture


def test_a_stop_that_does_not_wait_costs_the_calls_that_run() -> None:
    """Little's law: 10 messages/s of 300 ms each are 3 calls at a time."""
    assert codes(hasty(300, 10)) == {"no-shutdown-wait": Severity.NOTICE}
    found = finding(hasty(300, 10), "no-shutdown-wait")
    assert found.consequence.startswith("each stop interrupts about 3.0 calls")
    assert "about 6 in a rolling restart" in found.consequence


@pytest.mark.parametrize(("call_ms", "per_s", "wait"), [(300, 10, "5000"), (5, 20, "0"), (300, 0, "0")])
def test_a_stop_that_waits_or_interrupts_nothing_is_fine(call_ms: float, per_s: float, wait: str) -> None:
    assert codes(hasty(call_ms, per_s, wait)) == {}


def test_no_more_calls_run_than_there_are_threads() -> None:
    assert "about 20.0 calls" in finding(hasty(5_000, 50), "no-shutdown-wait").consequence


@pytest.mark.parametrize(
    ("version", "orderly", "severity"),
    [
        (392, False, Severity.WARNING),  # 4.8: ids of containers
        (393, False, None),
        (402, True, Severity.WARNING),  # 4.9.4: fresh locks
        (403, True, Severity.NOTICE),  # 4.9.5: hand-over at ticks
        (412, True, Severity.NOTICE),
        (413, True, None),  # 5.0
    ],
)
def test_versions_with_known_faults(version: int, orderly: bool, severity: Severity | None) -> None:
    picture = healthy(orderly=orderly)
    for client in ("c1", "c2"):
        picture = each(picture, member(client, version=version))
    assert codes(picture) == ({} if severity is None else {"old-client": severity})


def test_generations_that_rebalance_at_different_speeds() -> None:
    assert codes(each(healthy(), member("c1", version=452))) == {"mixed-versions": Severity.NOTICE}
    assert codes(each(healthy(), member("c1", version=453))) == {}


def test_order_in_half_of_the_group() -> None:
    assert codes(each(healthy(), tuned("c1", orderly=True))) == {"mixed-order": Severity.ERROR}


def with_broker(**fields: Any) -> GroupEvidence:
    return each(
        healthy(),
        lambda s: replace(s, rocketmq=RocketMQGroup(brokers=(broker("broker-a", **fields), broker("broker-b")))),
    )


def test_settings_that_stop_a_group_or_slow_it() -> None:
    settings = broker("x").settings
    assert settings is not None
    shut = with_broker(settings=replace(settings, can_consume=False))
    assert codes(shut) == {"group-settings": Severity.ERROR}
    assert finding(shut, "group-settings").consequence.startswith("4 queues cannot be consumed")
    assert codes(with_broker(settings=replace(settings, notifies_changes=False))) == {
        "group-settings": Severity.WARNING
    }


@pytest.mark.parametrize(
    ("ahead", "is_off"),
    [((4.9, 6.1), False), ((5.0, 6.2), True), ((-6.2, -5.0), True), ((-6.0, -4.9), False), (None, False)],
)
def test_clocks_that_surely_differ(ahead: tuple[float, float] | None, is_off: bool) -> None:
    assert ("clock-skew" in codes(with_broker(clock_ahead_s=ahead))) == is_off


@pytest.mark.parametrize(
    ("used", "removes_from", "severity", "consequence"),
    [
        (0.85, 0.85, None, ""),
        (0.86, 0.85, Severity.WARNING, "it removes its oldest messages"),
        (0.90, 0.85, Severity.WARNING, "it removes its oldest messages"),
        (0.91, 0.85, Severity.ERROR, "it refuses new messages"),
        (0.90, None, None, ""),
        (0.91, None, Severity.ERROR, "it refuses new messages"),
    ],
)
def test_disks_that_are_nearly_full(
    used: float, removes_from: float | None, severity: Severity | None, consequence: str
) -> None:
    picture = with_broker(disk=BrokerDisk(used, removes_from, 0.90))
    assert codes(picture) == ({} if severity is None else {"broker-disk": severity})
    if severity is not None:
        told = finding(picture, "broker-disk")
        assert told.title == f"The disk of broker-a is {used:.0%} full"
        assert told.consequence.startswith(consequence)
        assert ("removes its oldest messages" in told.consequence) == (removes_from is not None)


def deployment(**fields: Any) -> Deployment:
    pods = tuple(
        Pod("default", f"shop-{n}", f"u{n}", "Running", started_at=START - timedelta(days=1)) for n in range(2)
    )
    made = Deployment(
        namespace="default",
        name="shop",
        uid="u",
        resource_version="1",
        at=START,
        replicas=2,
        current=2,
        updated=2,
        ready=2,
        available=2,
        is_observed=True,
        is_paused=False,
        strategy=UpdateStrategy("RollingUpdate", "25%", "25%"),
        containers=(Container("app", "shop:1"),),
        grace_s=30,
        min_ready_s=0,
        progress_deadline_s=600,
        uses_host_network=False,
        pods=pods,
        autoscalers=(),
        replicas_set_by=(FieldManager("kubectl", "Update", "scale"),),
    )
    return replace(made, **fields)


def deployed(picture: GroupEvidence | None = None, **fields: Any) -> GroupEvidence:
    return each(picture or healthy(), lambda s: replace(s, deployment=deployment(**fields)))


HPA = Autoscaler("HorizontalPodAutoscaler", "shop", 1, 8, desired=4)
KEDA = Autoscaler("ScaledObject", "shop-lag", 1, 8)


def test_a_deployment_in_good_order_adds_no_finding_and_closes_the_gaps() -> None:
    assert codes(deployed()) == {}
    assert not {"other-scaler", "crash-prone"} & set(gaps(deployed()))
    assert "--deployment" in gaps(healthy())["other-scaler"]


def test_two_autoscalers_fight() -> None:
    found = finding(deployed(autoscalers=(HPA, KEDA)), "other-scaler")
    assert "HorizontalPodAutoscaler shop wants 4" in found.evidence


def test_a_manifest_that_sets_replicas_fights_an_autoscaler() -> None:
    by_helm = (FieldManager("helm", "Apply"),)
    assert codes(deployed(autoscalers=(HPA,), replicas_set_by=by_helm)) == {"other-scaler": Severity.WARNING}
    assert codes(deployed(replicas_set_by=by_helm)) == {}


def test_keda_and_the_autoscaler_that_it_made_are_one() -> None:
    made = replace(HPA, name="keda-hpa-shop-lag", made_by="ScaledObject shop-lag")
    assert codes(deployed(autoscalers=(made, KEDA))) == {}


def test_a_paused_autoscaler_fights_nobody() -> None:
    assert codes(deployed(autoscalers=(HPA, replace(KEDA, is_paused=True)))) == {}


def test_an_autoscaler_that_may_go_beyond_the_queues() -> None:
    found = finding(deployed(autoscalers=(replace(HPA, maximum=20),)), "other-scaler")
    assert found.consequence.startswith("12 of them would own nothing")
    assert found.advice == "set its maximum to 8 at most"


def crashing(restarts: int, days: float = 1.0) -> tuple[Pod, ...]:
    started = START + timedelta(seconds=30) - timedelta(days=days)
    return (Pod("default", "shop-0", "u0", "Running", started_at=started, restarts=restarts),)


def test_pods_that_crash_cost_an_orderly_group_40_to_61_s_each_time() -> None:
    concurrent = deployed(pods=crashing(3))
    assert codes(concurrent) == {"crash-prone": Severity.WARNING}
    ordered = deployed(healthy(orderly=True), pods=crashing(3))
    assert codes(ordered) == {"crash-prone": Severity.ERROR}
    assert "4 queues for 40 to 61 s" in finding(ordered, "crash-prone").consequence


@pytest.mark.parametrize("pods", [crashing(1), crashing(5, days=10.0), ()])
def test_few_restarts_over_a_long_time_are_accidents(pods: tuple[Pod, ...]) -> None:
    assert codes(deployed(pods=pods)) == {}


@pytest.mark.parametrize(("grace_s", "is_short"), [(15, True), (16, False)])
def test_time_to_stop_is_twice_the_wait_and_3_s_for_each_broker(grace_s: int, is_short: bool) -> None:
    assert ("short-grace" in codes(deployed(grace_s=grace_s))) == is_short


def test_a_pre_stop_sleep_takes_its_part_of_the_grace() -> None:
    sleeping = (Container("app", "shop:1", pre_stop=PreStop("sleep", 20)),)
    assert "short-grace" in codes(deployed(containers=sleeping))


def test_pods_that_are_ready_and_no_members() -> None:
    assert codes(deployed(ready=3)) == {"pods-without-member": Severity.WARNING}
    assert codes(deployed(ready=3, is_observed=False)) == {}
