"""Every worked row about Kafka assignment of the reference (kafka.md 1 and 2), as requests and expected owners.

Partitions are written ``t1-0``. A row whose outcome Java's hash-map order decides says so; its expectation is what the
class answers for these ids. Where the class differs from the reference, the class is right; ``note`` says in what.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A request, what every member owns, and whether that is determined."""

    request: Document
    expected: dict[str, str]
    is_determined: bool = True
    note: str = ""

    @property
    def assignments(self) -> dict[str, list[tuple[str, int]]]:
        """The expected answer in the contract's form."""
        return {member: sorted(parts(text)) for member, text in sorted(self.expected.items())}


def parts(text: str) -> list[tuple[str, int]]:
    """Return ``t1-0 t2-1`` as pairs."""
    return [(topic, int(number)) for topic, number in (one.rsplit("-", 1) for one in text.split())]


def member(
    member_id: str, topics: str, owned: str = "", generation: int | None = None, instance: str | None = None
) -> Document:
    """Return a member document; ``topics`` are separated by blanks."""
    return {
        "id": member_id,
        "instance_id": instance,
        "rack": None,
        "topics": topics.split(),
        "owned": [list(one) for one in parts(owned)],
        "generation": generation,
    }


def request(strategy: str, partitions: Mapping[str, int], *members: Document, **options: object) -> Document:
    """Return a request document."""
    return {
        "system": "kafka",
        "strategy": strategy,
        "partitions": dict(partitions),
        "members": list(members),
        "options": options,
    }


ABC = {"A": 3, "B": 3, "C": 3}
T0_TO_T3 = dict.fromkeys(("T0", "T1", "T2", "T3"), 2)
T0_T1_T2 = {"T0": 1, "T1": 2, "T2": 3}
T1_T2 = {"t1": 3, "t2": 2}
THREE_THREE = {"t1": 3, "t2": 3}
POOR = {"topic1": 2, "topic2": 1, "topic3": 2, "topic4": 1, "topic5": 2}
ALL_T = "T0 T1 T2 T3"
ALL_POOR = "topic1 topic2 topic3 topic4 topic5"
ODD_POOR = "topic1 topic3 topic5"
TWELVE = {"t": 12}

S4_OWNED = {"C0": "T0-0 T1-1 T3-0", "C1": "T0-1 T2-0 T3-1", "C2": "T1-0 T2-1"}
S6_MEMBERS = (member("C0", "T0"), member("C1", "T0 T1"), member("C2", "T0 T1 T2"))
S8_MEMBERS = (
    member("consumer1", "T0", "T0-0 T0-2", 1),
    member("consumer2", "T0", "T0-1", 1),
    member("consumer3", "T0"),
)
MIXED = (member("c1", "t1"), member("c2", "t1 t2"), member("c3", "t1"))
POOR_MEMBERS = (
    member("c1", ALL_POOR),
    member("c2", ODD_POOR),
    member("c3", ODD_POOR),
    member("c4", ALL_POOR),
)
TWELVE_OWNED = {"C0": "t-0 t-3 t-6 t-9", "C1": "t-1 t-4 t-7 t-10", "C2": "t-2 t-5 t-8 t-11"}
TWELVE_MEMBERS = (*(member(name, "t", owned, 1) for name, owned in TWELVE_OWNED.items()), member("C3", "t"))

SEED_ROWS: dict[str, Row] = {
    "S1 range": Row(
        request("range", {"t1": 4}, *(member(f"c{n}", "t1") for n in range(3))),
        {"c0": "t1-0 t1-1", "c1": "t1-2", "c2": "t1-3"},
    ),
    "S2 roundrobin, equal": Row(
        request("roundrobin", ABC, *(member(f"consumer-{n}", "A B C") for n in range(3))),
        {"consumer-0": "A-0 B-0 C-0", "consumer-1": "A-1 B-1 C-1", "consumer-2": "A-2 B-2 C-2"},
    ),
    "S3 roundrobin, unequal": Row(
        request("roundrobin", ABC, member("Consumer-0", "A B"), member("Consumer-1", "B C")),
        {"Consumer-0": "A-0 A-1 A-2 B-1", "Consumer-1": "B-0 B-2 C-0 C-1 C-2"},
    ),
    "S3b the same, sticky": Row(
        request("sticky", ABC, member("Consumer-0", "A B"), member("Consumer-1", "B C")),
        {"Consumer-0": "A-0 A-1 A-2 B-0 B-2", "Consumer-1": "C-0 C-1 C-2 B-1"},
    ),
    **{
        f"S4 fresh {strategy}": Row(request(strategy, T0_TO_T3, *(member(f"C{n}", ALL_T) for n in range(3))), S4_OWNED)
        for strategy in ("sticky", "cooperative-sticky", "roundrobin")
    },
    "S4 range": Row(
        request("range", T0_TO_T3, *(member(f"C{n}", ALL_T) for n in range(3))),
        {"C0": "T0-0 T1-0 T2-0 T3-0", "C1": "T0-1 T1-1 T2-1 T3-1", "C2": ""},
    ),
    "S5a C1 leaves, roundrobin": Row(
        request("roundrobin", T0_TO_T3, member("C0", ALL_T), member("C2", ALL_T)),
        {"C0": "T0-0 T1-0 T2-0 T3-0", "C2": "T0-1 T1-1 T2-1 T3-1"},
    ),
    "S5b C1 leaves, sticky": Row(
        request("sticky", T0_TO_T3, *(member(name, ALL_T, S4_OWNED[name], 1) for name in ("C0", "C2"))),
        {"C0": "T0-0 T1-1 T3-0 T0-1", "C2": "T1-0 T2-1 T2-0 T3-1"},
    ),
    **{
        f"S6 {strategy}": Row(
            request(strategy, T0_T1_T2, *S6_MEMBERS), {"C0": "T0-0", "C1": "T1-0", "C2": "T1-1 T2-0 T2-1 T2-2"}
        )
        for strategy in ("roundrobin", "range")
    },
    "S6 sticky": Row(
        request("sticky", T0_T1_T2, *S6_MEMBERS), {"C0": "T0-0", "C1": "T1-0 T1-1", "C2": "T2-0 T2-1 T2-2"}
    ),
    "S7 C0 leaves, roundrobin": Row(
        request("roundrobin", T0_T1_T2, *S6_MEMBERS[1:]), {"C1": "T0-0 T1-1", "C2": "T1-0 T2-0 T2-1 T2-2"}
    ),
    **{
        f"S7 C0 leaves, {strategy}, {chosen}": Row(
            request(
                strategy,
                T0_T1_T2,
                member("C1", "T0 T1", "T1-0 T1-1", 1),
                member("C2", "T0 T1 T2", "T2-0 T2-1 T2-2", 1),
                **({} if strategy == "sticky" else {"cooperative_round": chosen}),
            ),
            {"C1": "T1-0 T1-1 T0-0", "C2": "T2-0 T2-1 T2-2"},
        )
        for strategy, chosen in (("sticky", "one round"), ("cooperative-sticky", "first"))
    },
    "S8 cooperative round 1": Row(
        request("cooperative-sticky", {"T0": 3}, *S8_MEMBERS, cooperative_round="first"),
        {"consumer1": "T0-0", "consumer2": "T0-1", "consumer3": ""},
    ),
    "S8 cooperative round 2": Row(
        request("cooperative-sticky", {"T0": 3}, *S8_MEMBERS, cooperative_round="final"),
        {"consumer1": "T0-0", "consumer2": "T0-1", "consumer3": "T0-2"},
    ),
    "S8 eager sticky": Row(
        request("sticky", {"T0": 3}, *S8_MEMBERS), {"consumer1": "T0-0", "consumer2": "T0-1", "consumer3": "T0-2"}
    ),
}
"""2.1, the seed article recomputed. S9 (random) has distributions only: see ``test_random``."""

RANGE_ROWS: dict[str, Row] = {
    "range testMultipleConsumersMixedTopics": Row(
        request("range", T1_T2, *MIXED), {"c1": "t1-0", "c2": "t1-1 t2-0 t2-1", "c3": "t1-2"}
    ),
    "range testTwoConsumersTwoTopicsSixPartitions": Row(
        request("range", THREE_THREE, member("c1", "t1 t2"), member("c2", "t1 t2")),
        {"c1": "t1-0 t1-1 t2-0 t2-1", "c2": "t1-2 t2-2"},
    ),
    "range testTwoStaticConsumersTwoTopicsSixPartitions": Row(
        request(
            "range",
            THREE_THREE,
            member("consumer-b", "t1 t2", instance="instance1"),
            member("consumer-a", "t1 t2", instance="instance2"),
        ),
        {"consumer-b": "t1-0 t1-1 t2-0 t2-1", "consumer-a": "t1-2 t2-2"},
    ),
    "range testOneStaticConsumerAndOneDynamicConsumer": Row(
        request(
            "range",
            THREE_THREE,
            member("consumer-b", "t1 t2", instance="instance1"),
            member("consumer-a", "t1 t2"),
        ),
        {"consumer-b": "t1-0 t1-1 t2-0 t2-1", "consumer-a": "t1-2 t2-2"},
    ),
    **{
        f"range testStaticMemberRangeAssignmentPersistent, {dynamic}": Row(
            request(
                "range",
                {"t1": 5, "t2": 4},
                *(member(f"c{n}", "t1 t2", instance=f"instance{n}") for n in (1, 2, 3)),
                member(dynamic, "t1 t2"),
            ),
            {"c1": "t1-0 t1-1 t2-0", "c2": "t1-2 t2-1", "c3": "t1-3 t2-2", dynamic: "t1-4 t2-3"},
        )
        for dynamic in ("consumer4", "consumer5")
    },
}

ROUNDROBIN_ROWS: dict[str, Row] = {
    "roundrobin testMultipleConsumersMixedTopics": Row(
        request("roundrobin", T1_T2, *MIXED), {"c1": "t1-0", "c2": "t1-1 t2-0 t2-1", "c3": "t1-2"}
    ),
    "roundrobin testTwoDynamicConsumersTwoTopicsSixPartitions": Row(
        request("roundrobin", THREE_THREE, member("c1", "t1 t2"), member("c2", "t1 t2")),
        {"c1": "t1-0 t1-2 t2-1", "c2": "t1-1 t2-0 t2-2"},
    ),
    "roundrobin testOneStaticConsumerAndOneDynamicConsumer": Row(
        request(
            "roundrobin",
            THREE_THREE,
            member("consumer-b", "t1 t2", instance="instance1"),
            member("consumer-a", "t1 t2"),
        ),
        {"consumer-b": "t1-0 t1-2 t2-1", "consumer-a": "t1-1 t2-0 t2-2"},
    ),
    "roundrobin scenario of testPoorRoundRobinAssignmentScenario": Row(
        request("roundrobin", POOR, *POOR_MEMBERS),
        {
            "c1": "topic1-0 topic3-0 topic5-0",
            "c2": "topic1-1 topic3-1 topic5-1",
            "c3": "",
            "c4": "topic2-0 topic4-0",
        },
    ),
}

_STALE = {"t": 3, "t2": 3}
_THREE_TOPICS = {"t": 3, "t2": 3, "t3": 3}
_SEVEN = {"t1": 3, "t2": 4}
_HIGHEST = (
    member("c1", "t t2 t3", "t-0 t2-0 t3-0", 10),
    member("c2", "t t2 t3", "t-1 t2-1 t3-1", 9),
    member("c3", "t t2 t3", "t2-1 t3-0 t3-2", 8),
)


def _both(
    name: str,
    expected: dict[str, str],
    withheld: str,
    partitions: Mapping[str, int],
    *members: Document,
    is_determined: bool = True,
) -> dict[str, Row]:
    """Return a row for sticky, and one for the cooperative leader's first answer, which withholds some."""
    held = set(parts(withheld))
    first = {
        member_id: " ".join(f"{topic}-{number}" for topic, number in parts(text) if (topic, number) not in held)
        for member_id, text in expected.items()
    }
    return {
        f"sticky {name}": Row(request("sticky", partitions, *members), expected, is_determined),
        f"cooperative {name}": Row(
            request("cooperative-sticky", partitions, *members, cooperative_round="first"), first, is_determined
        ),
    }


CONSTRAINED_ROWS: dict[str, Row] = {
    **_both(
        "testConsumerOwningMinQuotaExpectedMaxQuota",
        {"c1": "t1-0 t2-1 t2-0", "c2": "t1-1 t2-2"},
        "",
        {"t1": 2, "t2": 3},
        member("c1", "t1 t2", "t1-0 t2-1", 1),
        member("c2", "t1 t2", "t1-1 t2-2", 1),
    ),
    **_both(
        "testAllConsumersAreUnderMinQuota",
        {"c1": "t1-0 t2-1", "c2": "t1-1 t2-2", "c3": "t2-0"},
        "",
        {"t1": 2, "t2": 3},
        member("c1", "t1 t2", "t1-0", 1),
        member("c2", "t1 t2", "t1-1", 1),
        member("c3", "t1 t2", "", 1),
    ),
    **_both(
        "testMaxQuotaConsumerMoreThanNumExpectedMaxCapacityMembers",
        {"consumer1": "t1-0", "consumer2": "t1-1 t2-1", "consumer3": "t2-0"},
        "t2-0",
        {"t1": 2, "t2": 2},
        member("consumer1", "t1 t2", "t1-0 t2-0", 1),
        member("consumer2", "t1 t2", "t1-1 t2-1", 1),
        member("consumer3", "t1 t2", "", 1),
        is_determined=False,
    ),
    **_both(
        "testAddRemoveConsumerOneTopic, c2 joins",
        {"c1": "t-0 t-1", "c2": "t-2"},
        "t-2",
        {"t": 3},
        member("c1", "t", "t-0 t-1 t-2", 1),
        member("c2", "t"),
    ),
    **_both(
        "testAddRemoveConsumerOneTopic, c1 leaves",
        {"c2": "t-0 t-1 t-2"},
        "",
        {"t": 3},
        member("c2", "t", "t-2", 1),
    ),
    **_both(
        "testAddRemoveTwoConsumersTwoTopics, start",
        {"consumer1": "t1-0 t1-2 t2-1 t2-3", "consumer2": "t1-1 t2-0 t2-2"},
        "",
        _SEVEN,
        member("consumer1", "t1 t2"),
        member("consumer2", "t1 t2"),
    ),
    **_both(
        "testAddRemoveTwoConsumersTwoTopics, two join",
        {"consumer1": "t1-0 t2-1", "consumer2": "t2-0 t1-1", "consumer3": "t1-2 t2-3", "consumer4": "t2-2"},
        "t1-2 t2-3 t2-2",
        _SEVEN,
        member("consumer1", "t1 t2", "t1-0 t1-2 t2-1 t2-3", 1),
        member("consumer2", "t1 t2", "t1-1 t2-0 t2-2", 1),
        member("consumer3", "t1 t2"),
        member("consumer4", "t1 t2"),
    ),
    **_both(
        "testAddRemoveTwoConsumersTwoTopics, two leave",
        {"consumer3": "t1-2 t2-3 t1-0 t2-1", "consumer4": "t2-2 t1-1 t2-0"},
        "",
        _SEVEN,
        member("consumer3", "t1 t2", "t1-2 t2-3", 2),
        member("consumer4", "t1 t2", "t2-2", 2),
    ),
    **_both(
        "testPartitionsTransferringOwnership…SameGeneration",
        {"c1": "t-1", "c2": "t-2", "c3": "t-0"},
        "t-0",
        {"t": 3},
        member("c1", "t", "t-0 t-1", 1),
        member("c2", "t", "t-0 t-2", 1),
        member("c3", "t", "", 1),
    ),
    "CooperativeSticky…UnequalPartitionsPerConsumer": Row(
        request(
            "cooperative-sticky",
            {"t": 4},
            member("c1", "t", "t-0 t-1", 1),
            member("c2", "t", "t-0 t-2", 1),
            member("c3", "t", "", 1),
            cooperative_round="first",
        ),
        {"c1": "t-1 t-3", "c2": "t-2", "c3": ""},
    ),
    **_both(
        "testOwnedPartitionsAreInvalidatedForConsumerWithStaleGeneration",
        {"c1": "t-0 t-2 t2-1", "c2": "t-1 t2-0 t2-2"},
        "",
        _STALE,
        member("c1", "t t2", "t-0 t-2 t2-1", 10),
        member("c2", "t t2", "t-0 t-2 t2-1", 9),
    ),
    **_both(
        "testEnsurePartitionsAssignedToHighestGeneration",
        {"c1": "t-0 t2-0 t3-0", "c2": "t-1 t2-1 t3-1", "c3": "t-2 t2-2 t3-2"},
        "",
        _THREE_TOPICS,
        *_HIGHEST,
    ),
    **_both(
        "testNoReassignmentOnCurrentMembers",
        {"c1": "t1-2 t2-1 t3-0", "c2": "t-0 t1-0 t2-0", "c3": "t-1 t1-1 t3-1", "c4": "t-2 t2-2 t3-2"},
        "",
        {"t": 3, "t1": 3, "t2": 3, "t3": 3},
        member("c1", "t t1 t2 t3"),
        member("c2", "t t1 t2 t3", "t-0 t1-0 t2-0", 9),
        member("c3", "t t1 t2 t3", "t-1 t1-1 t3-1", 8),
        member("c4", "t t1 t2 t3", "t-2 t2-2 t3-2", 7),
    ),
    **_both(
        "testStickiness, fresh",
        {"c1": "topic1-0", "c2": "topic1-1", "c3": "topic1-2", "c4": ""},
        "",
        {"topic1": 3},
        *(member(f"c{n}", "topic1") for n in (1, 2, 3, 4)),
    ),
    **_both(
        "testStickiness, c1 leaves",
        {"c2": "topic1-1", "c3": "topic1-2", "c4": "topic1-0"},
        "",
        {"topic1": 3},
        member("c2", "topic1", "topic1-1", 1),
        member("c3", "topic1", "topic1-2", 1),
        member("c4", "topic1", "", 1),
    ),
}

GENERAL_ROWS: dict[str, Row] = {
    "sticky testPoorRoundRobinAssignmentScenario": Row(
        request("sticky", POOR, *POOR_MEMBERS),
        {
            "c1": "topic2-0 topic3-0",
            "c2": "topic1-0 topic3-1",
            "c3": "topic1-1 topic5-0",
            "c4": "topic4-0 topic5-1",
        },
    ),
    "sticky testMoveExistingAssignments": Row(
        request(
            "sticky",
            {f"topic{n}": 1 for n in range(1, 7)},
            member("c1", "topic1 topic2", "topic1-0", 1),
            member("c2", "topic1 topic2 topic3 topic4", "topic2-0 topic3-0", 1),
            member("c3", "topic2 topic3 topic4 topic5 topic6", "topic4-0 topic5-0 topic6-0", 1),
        ),
        {"c1": "topic1-0", "c2": "topic2-0 topic3-0", "c3": "topic4-0 topic5-0 topic6-0"},
    ),
    "sticky mixed topics": Row(request("sticky", T1_T2, *MIXED), {"c1": "t1-0 t1-2", "c2": "t2-0 t2-1", "c3": "t1-1"}),
}

SCALING_ROWS: dict[str, Row] = {
    "12 partitions from 3 to 4, range": Row(
        request("range", TWELVE, *TWELVE_MEMBERS),
        {"C0": "t-0 t-1 t-2", "C1": "t-3 t-4 t-5", "C2": "t-6 t-7 t-8", "C3": "t-9 t-10 t-11"},
    ),
    "12 partitions from 3 to 4, roundrobin": Row(
        request("roundrobin", TWELVE, *TWELVE_MEMBERS),
        {"C0": "t-0 t-4 t-8", "C1": "t-1 t-5 t-9", "C2": "t-2 t-6 t-10", "C3": "t-3 t-7 t-11"},
    ),
    "12 partitions from 3 to 4, sticky": Row(
        request("sticky", TWELVE, *TWELVE_MEMBERS),
        {"C0": "t-0 t-3 t-6", "C1": "t-1 t-4 t-7", "C2": "t-2 t-5 t-8", "C3": "t-9 t-10 t-11"},
    ),
    "12 partitions from 3 to 4, cooperative round 1": Row(
        request("cooperative-sticky", TWELVE, *TWELVE_MEMBERS, cooperative_round="first"),
        {"C0": "t-0 t-3 t-6", "C1": "t-1 t-4 t-7", "C2": "t-2 t-5 t-8", "C3": ""},
    ),
    "12 partitions from 3 to 4, cooperative round 2": Row(
        request("cooperative-sticky", TWELVE, *TWELVE_MEMBERS),
        {"C0": "t-0 t-3 t-6", "C1": "t-1 t-4 t-7", "C2": "t-2 t-5 t-8", "C3": "t-9 t-10 t-11"},
    ),
    "1.13: T0 and T1, a third joins, Java keeps low numbers": Row(
        request(
            "sticky",
            {"T0": 4, "T1": 4},
            member("m1", "T0 T1", "T0-0 T0-2 T1-0 T1-2", 1),
            member("m2", "T0 T1", "T0-1 T0-3 T1-1 T1-3", 1),
            member("m3", "T0 T1"),
        ),
        {"m1": "T0-0 T1-0 T0-2", "m2": "T0-1 T1-1 T0-3", "m3": "T1-2 T1-3"},
    ),
}

_FIRST_EXTRA = "the reference gives the extra partition to the first member met (4.0.0); since 4.0.1 the last takes it"

SERVER_ROWS: dict[str, Row] = {
    "uniform testFirstAssignmentTwoMembersTwoTopicsNoMemberRacks": Row(
        request("uniform", {"1-t3": 2, "2-t1": 3}, member("A", "1-t3 2-t1"), member("B", "1-t3 2-t1")),
        {"A": "1-t3-0 1-t3-1", "B": "2-t1-0 2-t1-1 2-t1-2"},
        is_determined=False,
        note=_FIRST_EXTRA,
    ),
    "uniform testReassignmentWhenOneMemberAdded": Row(
        request(
            "uniform",
            {"t1": 3, "t2": 3},
            member("A", "t1 t2", "t1-0 t1-2 t2-0"),
            member("B", "t1 t2", "t1-1 t2-1 t2-2"),
            member("C", "t1 t2"),
        ),
        {"A": "t1-0 t1-2", "B": "t1-1 t2-1", "C": "t2-0 t2-2"},
        is_determined=False,
    ),
    "uniform GivenUnbalancedPrevAssignment": Row(
        request(
            "uniform",
            {"t1": 3, "t2": 3},
            member("A", "t1 t2", "t1-0 t1-1 t2-0 t2-1"),
            member("B", "t1 t2", "t1-2 t2-2"),
        ),
        {"A": "t1-0 t1-1 t2-0", "B": "t1-2 t2-1 t2-2"},
        is_determined=False,
    ),
    "heterogeneous testFirstAssignmentTwoMembersTwoTopics": Row(
        request("uniform", {"t1": 3, "t3": 6}, member("A", "t1 t3"), member("B", "t3")),
        {"A": "t1-0 t1-1 t1-2 t3-4", "B": "t3-0 t3-1 t3-2 t3-3 t3-5"},
        is_determined=False,
    ),
    "heterogeneous ThreeTopicsGivenUnbalancedPrevAssignment": Row(
        request(
            "uniform",
            {"t1": 6, "t2": 4, "t3": 4},
            member("A", "t1", "t1-0 t1-1 t1-2"),
            member("B", "t1 t2", "t1-3 t2-0"),
            member("C", "t1 t2 t3", "t1-4 t1-5 t2-1 t2-2 t2-3 t3-0 t3-1 t3-2 t3-3"),
        ),
        {"A": "t1-0 t1-1 t1-2 t1-5", "B": "t1-3 t2-0 t2-1 t2-2 t2-3", "C": "t1-4 t3-0 t3-1 t3-2 t3-3"},
        is_determined=False,
    ),
    "range-server testFirstAssignmentThreeMembersThreeTopicsDifferentSubscriptions": Row(
        request(
            "range-server",
            {"t1": 3, "t2": 3, "t3": 2},
            member("A", "t1 t2"),
            member("B", "t3"),
            member("C", "t2 t3"),
        ),
        {"A": "t1-0 t1-1 t1-2 t2-0 t2-1", "B": "t3-0", "C": "t2-2 t3-1"},
    ),
    "uniform leaves a balanced target alone (KAFKA-18688)": Row(
        request("uniform", {"t": 5}, member("A", "t", "t-0 t-1"), member("B", "t", "t-2 t-3 t-4")),
        {"A": "t-0 t-1", "B": "t-2 t-3 t-4"},
    ),
}

WORKED: dict[str, Row] = {
    **SEED_ROWS,
    **RANGE_ROWS,
    **ROUNDROBIN_ROWS,
    **CONSTRAINED_ROWS,
    **GENERAL_ROWS,
    **SCALING_ROWS,
    **SERVER_ROWS,
}
