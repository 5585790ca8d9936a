"""RocketMQ, case by case: what members tell, what they hide, and where two strategies meet."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from planner.inference import Inference, Observation, Search, contradiction, infer, settled_observations
from planner.model.membership import Subscription
from planner.model.queues import MessageQueue
from planner.model.routes import BrokerQueues, RouteTable, TopicRoute
from planner.model.samples import GroupSample
from tests.unit.inference.worlds import BROKER_ROOMS, CLASSES, found, member, observe, owned_under, tuning

QUEUES = tuple(MessageQueue("T", "b", number) for number in range(8))
CLIENTS = ("10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@c")
HASHING = ("CONSISTENT_HASH", {"virtual_nodes": 160})


def seen_with(*strategies: tuple[str, str | None], queues: tuple[MessageQueue, ...] = QUEUES) -> Observation:
    """Return a group whose members each run the strategy named, and tell the class named beside it."""
    clients = CLIENTS[: len(strategies)]
    members = [
        member(client, sorted(owned_under(name, {}, queues, clients)[client]), told)
        for client, (name, told) in zip(clients, strategies, strict=True)
    ]
    return Observation(queues, tuple(members))


def test_the_class_that_members_tell_is_the_only_one_tried() -> None:
    inferred = infer([observe("AVG", {}, QUEUES, CLIENTS, told=True)])
    assert (inferred.strategy, inferred.is_determined) == ("AVG", True)
    assert inferred.sentence == "AVG explains the owners of all 8 queues seen in 1 snapshot"


def test_one_more_membership_change_narrows() -> None:
    """With as many clients as queues AVG and AVG_BY_CIRCLE give the same; with one fewer they do not."""
    four = QUEUES[:4]
    even = observe("AVG", {}, four, (*CLIENTS, "10.0.0.4@d"))
    assert infer([even]).strategy is None
    assert {"AVG", "AVG_BY_CIRCLE"} <= {one.strategy for one in infer([even]).explanations}
    later = observe("AVG", {}, four, CLIENTS)
    both = infer([later, even])
    assert (both.strategy, both.evidence.snapshots, both.evidence.queues_observed) == ("AVG", 2, 8)
    reason = next(one.reason for one in both.refuted if one.strategy == "AVG_BY_CIRCLE")
    assert reason == "AVG_BY_CIRCLE would give T/b/1 to 10.0.0.2@b, but 10.0.0.1@a has it"


def test_virtual_nodes_narrow_with_every_snapshot() -> None:
    first = observe(*HASHING, QUEUES, CLIENTS, told=True)
    second = observe(*HASHING, QUEUES, ("10.0.1.1@d", "10.0.1.2@e", "10.0.1.3@f"), told=True)
    wide, narrow = infer([first]), infer([second, first])
    assert (160 in numbers(wide), 160 in numbers(narrow)) == (True, True)
    assert numbers(narrow) < numbers(wide)
    assert narrow.strategy == "CONSISTENT_HASH"
    assert "virtual nodes explains the owners of all 16 queues seen in 2 snapshots" in narrow.sentence


def numbers(inferred: Inference) -> set[int]:
    return {one["virtual_nodes"] for one in inferred.explanations[0].parameters}


def test_the_default_number_of_virtual_nodes_comes_first() -> None:
    inferred = infer([observe("CONSISTENT_HASH", {}, QUEUES, CLIENTS)])
    assert inferred.options == {"virtual_nodes": 10}
    assert inferred.strategy == "CONSISTENT_HASH"


def test_two_classes_are_a_split_brain_held_against_each_members_list() -> None:
    """8 queues, two members: 1 and 3 are held twice, 4 and 6 by nobody (rocketmq.md 3.13)."""
    inferred = infer([seen_with(("AVG", CLASSES["AVG"]), ("AVG_BY_CIRCLE", CLASSES["AVG_BY_CIRCLE"]))])
    assert inferred.is_mixed
    assert inferred.strategy is None
    assert {one.client: one.strategy for one in inferred.members} == {CLIENTS[0]: "AVG", CLIENTS[1]: "AVG_BY_CIRCLE"}
    assert inferred.sentence == (
        "members run different strategies (10.0.0.1@a runs AVG; 10.0.0.2@b runs AVG_BY_CIRCLE): a split brain"
    )


def test_a_split_brain_of_silent_classes_is_told_by_the_lists() -> None:
    inferred = infer([seen_with(("AVG", None), ("AVG_BY_CIRCLE", None), ("AVG", None))])
    assert inferred.is_mixed
    assert [one.strategy for one in inferred.members] == ["AVG", "AVG_BY_CIRCLE", "AVG"]
    assert "a split brain, unless all run CONFIG, which would explain it too" in inferred.sentence


def test_one_member_that_tells_and_one_that_runs_something_else() -> None:
    inferred = infer([seen_with(("AVG", CLASSES["AVG"]), ("AVG_BY_CIRCLE", None))])
    assert inferred.is_mixed
    assert [(one.named, one.strategy) for one in inferred.members] == [("AVG", "AVG"), (None, "AVG_BY_CIRCLE")]


def test_two_rings_in_one_group_are_a_split_brain() -> None:
    owned = [owned_under("CONSISTENT_HASH", {"virtual_nodes": n}, QUEUES, CLIENTS) for n in (10, 160, 160)]
    members = [member(c, sorted(held[c]), CLASSES["CONSISTENT_HASH"]) for c, held in zip(CLIENTS, owned, strict=True)]
    inferred = infer([Observation(QUEUES, tuple(members))])
    assert inferred.explanations == ()
    assert "no number of virtual nodes up to 1024 fits" in inferred.sentence


def test_a_users_own_class_that_behaves_like_a_known_one() -> None:
    seen = observe("AVG", {}, QUEUES, CLIENTS)
    custom = replace(seen, members=tuple(replace(one, tuning=tuning("com.shop.Mine")) for one in seen.members))
    inferred = infer([custom])
    assert (inferred.custom, inferred.named, inferred.strategy) == (("com.shop.Mine",), (), "AVG")
    assert inferred.sentence.startswith("the members run com.shop.Mine, which is not known here; AVG explains")


def test_a_users_own_class_that_behaves_like_nothing_is_unknown() -> None:
    odd = Observation(
        QUEUES, (member(CLIENTS[0], QUEUES, "com.shop.Mine"), member(CLIENTS[1], QUEUES[:1], "com.shop.Mine"))
    )
    later = Observation(QUEUES, (member(CLIENTS[0], QUEUES[1:], "com.shop.Mine"), member(CLIENTS[1], QUEUES[:2], None)))
    inferred = infer([later, odd])
    assert (inferred.explanations, inferred.strategy) == ((), None)
    assert (
        inferred.sentence == "the members run com.shop.Mine, which is not known here and behaves like nothing that is"
    )


def test_nobody_tells_what_it_owns() -> None:
    inferred = infer([Observation(QUEUES, tuple(member(client, None) for client in CLIENTS))])
    assert (inferred.explanations, inferred.sentence) == ((), "nothing is known of who owns what")
    assert infer([]).explanations == ()
    assert infer([Observation(QUEUES, ())]).explanations == ()


def test_a_silent_member_is_unknown_and_not_idle() -> None:
    seen = observe("AVG", {}, QUEUES, CLIENTS, silent=CLIENTS[1:2])
    inferred = infer([seen])
    assert inferred.strategy == "AVG"
    assert inferred.evidence.queues_observed == 5


def test_a_member_that_does_not_subscribe_counts_in_the_order_and_takes_nothing() -> None:
    """Two of three subscribe; the third's share has no owner (rocketmq.md 4.4)."""
    owned = owned_under("AVG", {}, QUEUES, CLIENTS)
    members = [replace(member(c, sorted(owned[c])), subscriptions=(Subscription("T", "*"),)) for c in CLIENTS[:2]]
    elsewhere = replace(member(CLIENTS[2], ()), subscriptions=(Subscription("U", "*"),))
    assert infer([Observation(QUEUES, (*members, elsewhere))]).strategy == "AVG"
    assert infer([Observation(QUEUES, (*members, member(CLIENTS[2], ())))]).strategy != "AVG"


def test_two_processes_with_one_id_leave_the_second_share_to_nobody() -> None:
    """Clients [a, a, b] and 6 queues under AVG: a owns 0 1, b owns 4 5, nobody 2 3 (rocketmq.md 2.2)."""
    six = QUEUES[:6]
    twice = [member(CLIENTS[0], six[:2]), member(CLIENTS[0], six[:2]), member(CLIENTS[1], six[4:])]
    inferred = infer([Observation(six, tuple(twice))])
    assert inferred.strategy == "AVG"


def test_pop_mode_shares_whole_brokers() -> None:
    """Everybody takes everything: the broker answers with queue id -1 (``QueryAssignmentProcessor#allocate4Pop``)."""
    whole = (MessageQueue("T", "b", -1),)
    inferred = infer([Observation(QUEUES, tuple(member(c, whole, CLASSES["AVG"]) for c in CLIENTS))])
    assert (inferred.strategy, inferred.options) == ("AVG", {"pop_share_queues": 0})
    assert "in POP mode with popShareQueueNum 0" in inferred.sentence


def test_a_lists_change_refutes_config() -> None:
    first = observe("AVG", {}, QUEUES, CLIENTS)
    second = observe("AVG", {}, QUEUES, CLIENTS[:2])
    refuted = {one.strategy: one.reason for one in infer([second, first]).refuted}
    assert refuted["CONFIG"] == "10.0.0.1@a holds T/b/3 at one time and not at another"


def test_known_rooms_are_taken_as_they_are() -> None:
    queues = tuple(MessageQueue("T", broker, number) for broker in ("b1", "b2") for number in range(4))
    brokers, homes = {"b1": "east", "b2": "west"}, {CLIENTS[0]: "east", CLIENTS[1]: "west", CLIENTS[2]: "west"}
    seen = observe(
        "MACHINE_ROOM_NEARBY-AVG", {"machine_rooms": {"brokers": brokers, "clients": homes}}, queues, CLIENTS
    )
    told = replace(seen, members=tuple(replace(m, tuning=tuning(CLASSES["MACHINE_ROOM_NEARBY"])) for m in seen.members))
    inferred = infer([told], Search(broker_rooms=(brokers,), client_rooms=homes))
    assert inferred.options == {"machine_rooms": {"brokers": brokers, "clients": homes}}
    assert inferred.strategy == "MACHINE_ROOM_NEARBY-AVG"
    wrong = infer([told], Search(broker_rooms=(brokers,), client_rooms={**homes, CLIENTS[0]: "west"}))
    assert wrong.explanations == ()
    assert "no rooms of brokers and clients fit" in wrong.sentence


def test_rooms_are_read_from_the_brokers_names() -> None:
    queues = tuple(MessageQueue("T", broker, number) for broker in BROKER_ROOMS for number in range(4))
    homes = dict(zip(CLIENTS, ("r1", "r2", "r2"), strict=True))
    rooms = {"machine_rooms": {"brokers": BROKER_ROOMS, "clients": homes}}
    inferred = infer([observe("MACHINE_ROOM_NEARBY-AVG", rooms, queues, CLIENTS, told=True)])
    assert rooms in [dict(options) for options in inferred.explanations[0].parameters]
    assert "MACHINE_ROOM" not in {one.strategy for one in inferred.explanations}


def test_more_parameters_than_can_be_tried_are_said_and_not_ruled_out() -> None:
    many = tuple(MessageQueue("T", "b", number) for number in range(20))
    inferred = infer([observe("STATIC", {"reserved": {}}, many, CLIENTS, told=True)])
    assert inferred.unsearched == ("STATIC",)
    assert not inferred.is_determined


@pytest.mark.parametrize(
    ("stated", "sentence"),
    [
        ("AVG", None),
        ("AVG_BY_CIRCLE", "the policy states AVG_BY_CIRCLE, but the members run AVG"),
        ("MACHINE_ROOM_NEARBY", "the policy states MACHINE_ROOM_NEARBY, but the members run AVG"),
    ],
)
def test_a_policy_that_says_something_else_is_contradicted(stated: str, sentence: str | None) -> None:
    assert contradiction(stated, infer([observe("AVG", {}, QUEUES, CLIENTS, told=True)])) == sentence


def test_a_contradiction_names_the_queue_where_nobody_tells_a_class() -> None:
    inferred = infer([observe("AVG", {}, QUEUES, CLIENTS)])
    assert contradiction("AVG_BY_CIRCLE", inferred) == (
        "the policy states AVG_BY_CIRCLE, but AVG_BY_CIRCLE would give T/b/1 to 10.0.0.2@b, but 10.0.0.1@a has it"
    )
    assert contradiction("MACHINE_ROOM_NEARBY", inferred) is None
    assert contradiction("AVG", infer([])) is None


def test_a_split_brain_contradicts_every_statement() -> None:
    mixed = infer([seen_with(("AVG", CLASSES["AVG"]), ("AVG_BY_CIRCLE", CLASSES["AVG_BY_CIRCLE"]))])
    assert (contradiction("AVG", mixed) or "").startswith("the policy states AVG, but members run different strategies")


AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
ROUTES = RouteTable((TopicRoute("T", (BrokerQueues("b", 8, 8, 6),)),))


def sample(second: float, clients: tuple[str, ...], strategy: str = "AVG") -> GroupSample:
    members = observe(strategy, {}, QUEUES, clients).members
    return GroupSample("rocketmq", "c", "g", AT + timedelta(seconds=second), 0.1, ROUTES, members, ())


def test_only_what_stays_is_settled() -> None:
    """Three clients for a while, one look in the middle of a rebalance, then two."""
    samples = [sample(second, CLIENTS) for second in range(0, 40, 10)]
    samples += [sample(40, CLIENTS[:2], "AVG_BY_CIRCLE")]
    samples += [sample(second, CLIENTS[:2]) for second in range(50, 90, 10)]
    settled = settled_observations(samples, most=8)
    assert [len(one.members) for one in settled] == [2, 3]
    assert infer(settled).strategy == "AVG"
    assert len(settled_observations(samples, most=1)) == 1
    assert settled_observations(samples[-2:], most=8) == ()


def test_the_answers_of_one_snapshot_all_explain_it() -> None:
    seen = observe("AVG", {}, QUEUES, CLIENTS)
    assert ("AVG", "[]") in found(infer([seen]), [seen])
