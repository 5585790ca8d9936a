"""Consumers that no broker lists: unknown where anything shows or allows them, never none."""

from dataclasses import replace

import pytest

from planner.decision.decision import HoldCause
from planner.decision.hold_reasons import first_reason_to_hold
from planner.decision.objective import Objective
from planner.history.intervals import queue_intervals
from planner.model.membership import Member, UnlistedActivity
from planner.model.samples import GroupSample, RocketMQGroup
from planner.snapshot.build import SnapshotSettings, build_snapshot
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


def test_grpc_members_own_no_queue_and_no_strategy_is_made_up() -> None:
    members = tuple(
        Member(f"host@{pid}@0@rb0bdf00", "10.0.0.1:1", "JAVA", 0, owned=(), protocol="grpc") for pid in (7, 8)
    )
    picture = each(healthy(), lambda sample: replace(sample, members=members))
    snapshot = build_snapshot(picture.newest, (), picture.newest.at, SnapshotSettings(strategy="AVG"))
    assert snapshot.strategy is None
    assert "2 of 2 members are gRPC clients of a proxy" in snapshot.strategy_source
    assert under_policy(snapshot, SnapshotSettings(strategy="AVG")).strategy is None
    reason = first_reason_to_hold(snapshot, Objective(1, 8, 0.8, None, None, 60.0, 0.9), snapshot.at)
    assert reason is not None
    assert reason[0] is HoldCause.UNKNOWN_STRATEGY, "not the short watch, of which nothing else would come"
    assert [part.completeness for part in snapshot.parts if part.name == "ownership"] == [1.0]
    assert codes(picture).keys() & {"silent-member", "no-owner", "idle-members", "other-view"} == set()
