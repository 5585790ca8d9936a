"""Which policies share connections, and what a failing look does to a watch."""

import pytest

from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.errors import OutOfReachError
from planner.sources import live
from planner.sources.live import Installation, installations, watch, watch_installation
from tests.sample_builders import POLICY, kafka_policy
from tests.sample_builders import watch as samples


def policy(group: str, *changes: tuple[str, str]) -> ConsumerScalingPolicy:
    text = POLICY.replace("shop", group)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_policy(text, "p.yaml")


def test_policies_of_the_same_servers_and_account_share_an_installation() -> None:
    account = ("cluster: DefaultCluster", "cluster: DefaultCluster, credentialsFile: /etc/account")
    found = installations(
        [
            policy("one"),
            policy("two", ("group: two", "group: two, topics: [orders]")),
            policy("three", account),
            policy("four", ("127.0.0.1:9876", "127.0.0.1:9877")),
            parse_policy(kafka_policy("127.0.0.1:9092", "five"), "p.yaml"),
        ]
    )
    names = sorted([one.metadata.name for one in place.policies] for place in found)
    assert names == [["five"], ["four"], ["one", "two"], ["three"]]


class Script:
    """Stands for an installation whose groups answer as told, look by look."""

    def __init__(self, *looks: dict[str, object]) -> None:
        self.looks = list(looks)

    def __call__(self, *_: object) -> object:
        said = self.looks.pop(0)
        if "everybody" in said:
            raise OutOfReachError(str(said["everybody"]))
        return said.items()


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> object:
    def script(*looks: dict[str, object]) -> None:
        answers = Script(*looks)

        class Opened:
            def __enter__(self) -> object:
                return answers

            def __exit__(self, *_: object) -> None: ...

        monkeypatch.setattr(live, "_open", lambda _: Opened())
        monkeypatch.setattr(live, "_ticks", lambda _: iter(range(len(looks))))

    return script


GONE = OutOfReachError("gone")
(SAMPLE,) = samples(1)


def test_a_later_failure_is_left_out_and_the_watch_goes_on(scripted: object) -> None:
    scripted({"shop": SAMPLE}, {"shop": GONE}, {"everybody": "away"}, {"shop": SAMPLE})  # type: ignore[operator]
    assert list(watch(policy("shop"), 0)) == [SAMPLE, SAMPLE]


def test_a_first_failure_is_raised(scripted: object) -> None:
    scripted({"shop": GONE}, {"shop": SAMPLE})  # type: ignore[operator]
    with pytest.raises(OutOfReachError, match="gone"):
        list(watch(policy("shop"), 0))


def test_one_groups_failure_is_not_the_others(scripted: object) -> None:
    scripted({"one": SAMPLE, "two": GONE}, {"everybody": "away"})  # type: ignore[operator]
    place = Installation((policy("one"), policy("two")))
    said = [(one.metadata.name, type(answer).__name__) for one, answer in watch_installation(place, 0)]
    failed = "OutOfReachError"
    assert said == [("one", "GroupSample"), ("two", failed), ("one", failed), ("two", failed)]
