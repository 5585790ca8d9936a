"""Client ids that are members of several groups: named of RocketMQ, whose client serves them all, and of no other."""

from dataclasses import replace

from planner.diagnosis.diagnose import examine
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.shared_clients import with_shared_clients
from planner.model.membership import OtherGroup
from planner.model.samples import RocketMQGroup
from tests.unit.diagnosis.patients import healthy, kafka


def named(evidence: GroupEvidence, group: str, cluster: str | None = None) -> GroupEvidence:
    """Return the same of another group, or of another cluster."""
    changes = {"group": group, **({"cluster": cluster} if cluster else {})}
    return replace(evidence, samples=tuple(replace(sample, **changes) for sample in evidence.samples))


def codes_of(evidences: list[GroupEvidence]) -> dict[str, list[str]]:
    return {each.group: [found.code for found in examine(each).findings] for each in with_shared_clients(evidences)}


def test_both_groups_name_the_client_ids_that_they_share_and_a_third_group_none() -> None:
    first = named(healthy(clients=("c1", "c2")), "orders")
    second, third = named(healthy(clients=("c2", "c3")), "mails"), named(healthy(clients=("c4",)), "bills")
    (finding,) = examine(with_shared_clients([first, second, third])[0]).findings
    assert (finding.code, finding.about) == ("shared-client", ("c2",))
    assert finding.title == "1 of 2 members also runs other groups: mails"
    assert "1 id in group mails" in finding.evidence
    assert "a notification of one group has the others rebalance, too" in finding.consequence
    expected = {"orders": ["shared-client"], "mails": ["shared-client"], "bills": []}
    assert codes_of([first, second, third]) == expected


def test_other_groups_that_brokers_listed_beside_the_only_one_that_was_read_are_named() -> None:
    orders = healthy(clients=("c1", "c2"))
    known = RocketMQGroup(other_groups=(OtherGroup("mails", ("c2",)),))
    alone = replace(orders, samples=tuple(replace(sample, rocketmq=known) for sample in orders.samples))
    (finding,) = [one for one in examine(with_shared_clients([alone])[0]).findings if one.code == "shared-client"]
    assert (finding.about, finding.title) == (("c2",), "1 of 2 members also runs other groups: mails")


def test_equal_ids_of_another_cluster_or_of_kafka_say_nothing() -> None:
    orders = healthy(clients=("c1", "c2"))
    assert codes_of([named(orders, "orders"), named(orders, "mails", "other")]) == {"orders": [], "mails": []}
    consumers = kafka()
    before = codes_of([named(consumers, "orders")])["orders"]
    assert codes_of([named(consumers, "orders"), named(consumers, "mails")]) == {"orders": before, "mails": before}
