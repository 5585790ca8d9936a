"""Consumers that no broker lists: unknown where anything shows or allows them, never none."""

from dataclasses import replace
from datetime import timedelta

import pytest

from planner.decision.decision import HoldCause
from planner.decision.hold_reasons import first_reason_to_hold
from planner.decision.objective import Objective
from planner.execution.group_observation import observe_group
from planner.history.intervals import queue_intervals
from planner.model.brokers import BrokerState, GroupSettings
from planner.model.membership import BrokerMembers, Member, UnlistedActivity
from planner.model.samples import GroupSample, RocketMQGroup
from planner.model.snapshot import POP, GroupSnapshot
from planner.simulation.candidates import shares_messages, simulate_candidate
from planner.simulation.outcome import NO_TRANSITION
from planner.simulation.transition import with_transition
from planner.snapshot.build import build_snapshot
from planner.snapshot.capacity import shared_capacity
from planner.snapshot.settings import SnapshotSettings
from planner.snapshot.today import under_policy
from planner.snapshot.unlisted import may_have_unlisted_consumers, unlisted_consumers, unlisted_consumption
from tests.unit.diagnosis.patients import GroupEvidence, codes, each, finding, healthy

NO_PROXY = UnlistedActivity(proxies=())
IDLE_PROXY = UnlistedActivity(proxies=("10.0.0.9",))
POPPING = UnlistedActivity(proxies=("10.0.0.9",), last_pop_s=14.0)
ACKNOWLEDGING = UnlistedActivity(proxies=("10.0.0.9",), last_pop_s=0.0, acknowledged_per_s=30.0)
STOPPED = UnlistedActivity(proxies=("10.0.0.9",), last_pop_s=240.0, acknowledged_per_s=0.0)
REFUSED = UnlistedActivity(proxies=None, is_complete=False)

STILL = healthy().samples[0].offsets


def offline(activity: UnlistedActivity | None, *, consumes: bool = False) -> GroupEvidence:
    """Return a group without members, of which brokers know this much."""

    def change(sample: GroupSample) -> GroupSample:
        known = RocketMQGroup(unlisted=activity) if activity else None
        still = sample.offsets if consumes else STILL
        return replace(sample, members=(), listed=(), rocketmq=known, offsets=still)

    return each(healthy(), change)


@pytest.mark.parametrize(("activity", "sign"), [(POPPING, "last pop 14 s ago"), (ACKNOWLEDGING, "30.0 messages/s")])
def test_a_group_that_pops_or_acknowledges_is_alive(activity: UnlistedActivity, sign: str) -> None:
    reason = unlisted_consumers(offline(activity).newest, ())
    assert reason is not None
    assert reason.startswith("consumed through a proxy: ")
    assert sign in reason


def test_offsets_that_advance_without_a_member_show_consumers() -> None:
    picture = offline(NO_PROXY, consumes=True)
    signs = unlisted_consumption(picture.newest, queue_intervals(picture.samples, 5.0))
    assert signs == ("offsets of 8 queues advance",)
    still = offline(NO_PROXY)
    assert unlisted_consumption(still.newest, queue_intervals(still.samples, 5.0)) == ()


def test_members_that_have_just_left_do_not_look_like_a_proxy() -> None:
    picture = healthy()
    last = replace(picture.newest, members=(), rocketmq=RocketMQGroup(unlisted=NO_PROXY))
    samples = (*picture.samples[:-1], last)
    assert unlisted_consumption(last, queue_intervals(samples, 5.0)) == ()


@pytest.mark.parametrize("activity", [IDLE_PROXY, STOPPED, REFUSED, None])
def test_nothing_is_to_be_deleted_where_clients_may_be_behind_a_proxy(activity: UnlistedActivity | None) -> None:
    assert may_have_unlisted_consumers(offline(activity).newest)
    no_members = finding(offline(activity), "no-members")
    assert no_members.title == "No consumption shows, and no broker lists a member"
    assert "delete" not in no_members.advice
    assert "mqadmin consumerConnection" in no_members.advice


def test_a_leftover_may_be_deleted_where_every_broker_rules_consumers_out() -> None:
    assert not may_have_unlisted_consumers(offline(NO_PROXY).newest)
    no_members = finding(offline(NO_PROXY), "no-members")
    assert no_members.title.startswith("Nobody consumes")
    assert "delete" in no_members.advice


def test_a_group_behind_a_proxy_is_a_notice_and_no_error() -> None:
    assert codes(offline(ACKNOWLEDGING)) == {"members-unknown": "notice"}
    assert "-b 10.0.0.9:8080" in finding(offline(ACKNOWLEDGING), "members-unknown").advice


@pytest.mark.parametrize(
    ("activity", "cause"),
    [
        (ACKNOWLEDGING, HoldCause.MEMBERS_UNKNOWN),
        (IDLE_PROXY, HoldCause.MEMBERS_UNKNOWN),
        (NO_PROXY, HoldCause.NO_CONSUMERS),
    ],
)
def test_the_decision_holds_and_says_what_is_unknown(activity: UnlistedActivity, cause: HoldCause) -> None:
    newest = offline(activity).newest
    snapshot = build_snapshot(newest, (), newest.at, SnapshotSettings())
    reason = first_reason_to_hold(snapshot, Objective(1, 8, 0.8, None, None, 60.0, 0.9), newest.at)
    assert reason is not None
    assert reason[0] is cause


def of_grpc_clients(count: int = 2, in_order: bool | None = False, others: int = 0) -> GroupEvidence:
    """Return a watch of a group of gRPC clients, whose brokers say this of its order."""
    members = tuple(
        Member(f"host@{pid}@0@rb0bdf00", f"10.0.0.{pid}:1", "JAVA", 0, owned=(), protocol="grpc")
        for pid in range(1, count + 1)
    )
    settings = GroupSettings(True, True, True, 1, 16, in_order)
    known = RocketMQGroup(brokers=(BrokerState("broker-a", settings=settings),))
    return each(healthy(), lambda sample: replace(sample, members=(*members, *sample.members[:others]), rocketmq=known))


def taken(evidence: GroupEvidence, **settings: object) -> GroupSnapshot:
    intervals = queue_intervals(evidence.samples, 5.0)
    made = SnapshotSettings(members_per_pod=1, window_s=20.0, **settings)  # type: ignore[arg-type]
    return build_snapshot(evidence.newest, intervals, evidence.newest.at, made)


def reason_of(snapshot: GroupSnapshot) -> tuple[HoldCause, str] | None:
    return first_reason_to_hold(snapshot, Objective(1, 8, 0.8, None, None, 60.0, 0.9), snapshot.at)


def test_grpc_members_share_messages_and_are_decided_by_capacity() -> None:
    evidence = of_grpc_clients()
    snapshot = taken(evidence)
    assert (snapshot.strategy, snapshot.orderly, shares_messages(snapshot)) == (POP, False, True)
    assert [part.completeness for part in snapshot.parts if part.name == "ownership"] == [1.0]
    assert reason_of(taken(evidence, capacity_messages_per_s=50.0)) is None
    outcome = simulate_candidate(snapshot, 3, POP)
    assert (outcome.moved_most, len(outcome.loads)) == (0, 3)
    assert any("0 to 2,112" in unknown for unknown in outcome.unknowns), "what both members may hold"
    assert with_transition(outcome, snapshot, "sha256:0").transition == NO_TRANSITION
    stop = with_transition(simulate_candidate(snapshot, 1, POP), snapshot, "sha256:0")
    assert stop.transition is None, "what the stopped member holds is unknown, so that no duplicates are made up"
    assert any("125 to 135 s later" in unknown for unknown in stop.unknowns)
    observed = observe_group(evidence.newest, snapshot)
    assert (observed.members, observed.misplaced, observed.shares_messages) == (snapshot.clients, 0, True)
    assert codes(evidence).keys() & {"silent-member", "no-owner", "idle-members", "other-view"} == set()


@pytest.mark.parametrize(
    ("in_order", "cause", "words"),
    [
        (True, HoldCause.OTHER_LEVER, "at most 8 queues are worked on at once"),
        (None, HoldCause.UNSUPPORTED_STRATEGY, "is unknown, as no broker"),
    ],
)
def test_a_group_in_order_behind_a_proxy_is_not_decided_by_capacity(
    in_order: bool | None, cause: HoldCause, words: str
) -> None:
    evidence = of_grpc_clients(in_order=in_order)
    reason = reason_of(taken(evidence, capacity_messages_per_s=50.0))
    assert reason is not None
    assert reason[0] is cause
    assert words in reason[1]
    assert ("other-lever" in codes(evidence)) is bool(in_order)


def test_no_statement_gives_grpc_clients_a_strategy() -> None:
    stated = taken(of_grpc_clients(), strategy="AVG")
    assert stated.strategy is None
    assert "leave spec.strategy out" in stated.strategy_source
    assert under_policy(stated, SnapshotSettings(strategy="AVG")).strategy is None
    mixed = taken(of_grpc_clients(others=1))
    assert mixed.strategy is None
    reason = reason_of(mixed)
    assert reason is not None
    assert reason[0] is HoldCause.UNKNOWN_STRATEGY
    assert "2 of 3 members are gRPC clients of a proxy" in reason[1]


def test_what_a_grpc_client_can_do_is_the_groups_share_while_messages_wait() -> None:
    """Red where the first seconds count, in which the caches fill: 1 000 messages more."""
    samples = of_grpc_clients(2).samples
    watched = tuple(
        replace(
            samples[0],
            at=samples[0].at + timedelta(seconds=5 * number),
            offsets=tuple(
                replace(entry, broker_offset=10_000 + 50 * number, consumer_offset=125 * (number > 1) + 25 * number)
                for entry in samples[0].offsets
            ),
        )
        for number in range(20)
    )
    capacity = shared_capacity(queue_intervals(watched, 5.0))
    assert capacity is not None
    assert not capacity.is_lower_bound
    assert capacity.messages_per_s == pytest.approx(8 * 25 / 5 / 2)


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (None, "did not list the group's members: see whether it runs"),
        ((), "list no member of it: add one that its clients are connected to"),
    ],
)
def test_a_proxy_that_lists_nothing_of_a_group_that_consumes_leaves_its_members_unknown(
    listed: tuple[str, ...] | None, words: str
) -> None:
    known = RocketMQGroup(unlisted=ACKNOWLEDGING, proxies=(BrokerMembers("10.0.0.9:8080", listed),))
    evidence = each(offline(ACKNOWLEDGING), lambda sample: replace(sample, rocketmq=known))
    reason = reason_of(taken(evidence))
    assert reason is not None
    assert reason[0] is HoldCause.MEMBERS_UNKNOWN
    assert words in reason[1]
    assert observe_group(evidence.newest, taken(evidence)).members is None


def test_members_that_all_proxies_list_explain_what_is_consumed_and_one_silent_proxy_does_not() -> None:
    whole, silent = BrokerMembers("10.0.0.9:8080", ("a",)), BrokerMembers("10.0.0.8:8080", None)
    for proxies, is_known in (((whole,), True), ((whole, silent), False)):
        known = RocketMQGroup(unlisted=ACKNOWLEDGING, proxies=proxies)
        evidence = each(of_grpc_clients(), lambda sample, known=known: replace(sample, rocketmq=known))  # type: ignore[misc]
        assert (unlisted_consumers(evidence.newest, ()) is None) is is_known
        assert ("members-unknown" in codes(evidence)) is not is_known
