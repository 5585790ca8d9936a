"""Our assignors against Kafka's own classes: clients of the 3.9 line and the newest, and the newest server."""

import json
from collections.abc import Iterator

import pytest

from tests.allocations import assign
from tests.oracles.kafka.compare import Document, as_pairs, disagreement, explain, first_disagreement, properties_differ
from tests.oracles.kafka.oracle import NEWEST, OLD_CLIENT, KafkaOracle
from tests.oracles.kafka.requests import CLIENT_STRATEGIES, STRATEGIES, large_request, random_request
from tests.unit.allocation.kafka.worked import WORKED

pytestmark = pytest.mark.cluster

NEWEST_REQUESTS, OLD_REQUESTS, WITH_RANDOM_TOPIC_IDS = 7_000, 3_000, 800
LARGE_REQUESTS = tuple(number for number in range(24) if number not in (3, 21))  # these take Java 13 and 28 s
WALK_EVERY = 5
_STEP = 1_000


@pytest.fixture(scope="module")
def newest() -> Iterator[KafkaOracle]:
    """The newest classes of client and server, in one JVM."""
    with KafkaOracle(NEWEST, with_server=True) as found:
        yield found


@pytest.fixture(scope="module")
def old() -> Iterator[KafkaOracle]:
    """The client classes of the last line before 4.0."""
    with KafkaOracle(OLD_CLIENT) as found:
        yield found


def _agree(oracle: KafkaOracle, numbers: range, strategies: tuple[str, ...]) -> None:
    """Fail with the first request that is answered otherwise, made small."""
    for start in range(0, len(numbers), _STEP):
        requests = [random_request(number, strategies) for number in numbers[start : start + _STEP]]
        different = first_disagreement(oracle, requests, WALK_EVERY)
        assert different is None, explain(different, oracle)


def test_random_groups_newest(newest: KafkaOracle) -> None:
    _agree(newest, range(NEWEST_REQUESTS), STRATEGIES)


def test_random_groups_of_the_old_client(old: KafkaOracle) -> None:
    _agree(old, range(NEWEST_REQUESTS, NEWEST_REQUESTS + OLD_REQUESTS), CLIENT_STRATEGIES)


def test_large_groups(newest: KafkaOracle) -> None:
    """Hundreds of partitions a topic, where the search for the next move works in steps."""
    requests = [large_request(number) for number in LARGE_REQUESTS]
    for request, answer in zip(requests, newest.answers(requests), strict=True):
        assert disagreement(request, answer) is None, request["strategy"]


def test_uniform_with_topic_ids_as_random_as_a_brokers(newest: KafkaOracle) -> None:
    """What we call determined is the same; of the rest loads and what is kept are ours, except in mixed groups."""
    documents = [random_request(number, ("uniform",)) for number in range(WITH_RANDOM_TOPIC_IDS)]
    requests = [{**document, "topic_id_seed": number} for number, document in enumerate(documents)]
    for document, answer in zip(documents, newest.answers(requests), strict=True):
        ours = assign(document)
        if ours["deterministic"]:
            complaint = None if ours["assignments"] == as_pairs(answer) else "the owners differ"
        else:
            is_mixed = len({frozenset(member["topics"]) for member in document["members"]}) > 1
            complaint = None if is_mixed else properties_differ(document, ours, answer)
        assert complaint is None, f"{complaint}\n{json.dumps(document)}"


@pytest.mark.parametrize("name", WORKED)
def test_the_class_agrees_with_the_worked_row(name: str, newest: KafkaOracle) -> None:
    assert as_pairs(newest.answer(WORKED[name].request)) == WORKED[name].assignments


def test_the_comparison_can_fail_and_shrinks(newest: KafkaOracle) -> None:
    """A class that is asked for another strategy than we are is found out, on a request of a few members."""

    class Confused:
        version = "confused"

        @staticmethod
        def answer(request: Document) -> Document:
            return newest.answer({**request, "strategy": "roundrobin"})

        @classmethod
        def answers(cls, requests: list[Document]) -> list[Document]:
            return [cls.answer(request) for request in requests]

    confused = Confused()
    found = first_disagreement(confused, [random_request(number, ("range",)) for number in range(60)])  # type: ignore[arg-type]
    assert found is not None
    text = explain(found, confused)  # type: ignore[arg-type]
    assert "the owners differ" in text
    small = json.loads(text.splitlines()[1])
    assert len(small["members"]) <= 2
    assert sum(small["partitions"].values()) <= 4
    assert disagreement(small, newest.answer(small)) is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_claims_of_topics_that_are_gone_change_nothing(newest: KafkaOracle, strategy: str) -> None:
    """The real classes leave them aside; of a number beyond an existing topic our warning says more."""
    for owned in ([["t", 1], ["t", 0]], []):
        members = [
            {"id": "a", "topics": ["t"], "owned": [*owned, ["gone", 3]], "generation": 1},
            {"id": "b", "topics": ["t"], "owned": [["t", 2]], "generation": 1},
        ]
        request: Document = {"system": "kafka", "strategy": strategy, "partitions": {"t": 4}, "members": members}
        seen = newest.answer({**request, "group": "g", "options": {}})
        found = {name: sorted(map(tuple, partitions)) for name, partitions in seen.items()}
        assert found == assign(request)["assignments"]
