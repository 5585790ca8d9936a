"""Names, labels and selectors."""

import pytest

from planner.errors import BadInputError, UnknownNameError
from planner.sources.prometheus.families import FAMILIES, KAFKA_EXPORTER, families_of, selector


def test_the_best_family_of_each_system_comes_first() -> None:
    assert [one.name for one in families_of("rocketmq", {})] == ["rocketmq-broker", "rocketmq-exporter"]
    assert [one.name for one in families_of("kafka", {})] == ["kafka-exporter", "kafka-lag-exporter"]


def test_an_unknown_system_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="rocketmq, kafka"):
        families_of("pulsar", {})


def test_labels_are_renamed_by_role() -> None:
    renamed = KAFKA_EXPORTER.with_labels({"group": "exported_consumergroup", "cluster": "env"})
    assert [renamed.label(one) for one in ("group", "cluster", "topic")] == ["exported_consumergroup", "env", "topic"]
    assert KAFKA_EXPORTER.label("group") == "consumergroup"


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"'consumer'.*cluster, group, topic, partition, broker"):
        families_of("kafka", {"consumer": "x"})


@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.name)
def test_every_dimension_of_a_queue_family_has_a_label(family: object) -> None:
    for metric in (family.arrived, *family.group_metrics):
        for role in {"group", "topic", "partition"} & set(metric.dimensions):
            assert role in family.roles


@pytest.mark.parametrize(
    ("names", "equal", "one_of", "text"),
    [
        (("lag",), {"group": "shop"}, {}, 'lag{group="shop"}'),
        (("lag", "lag_ms"), {}, {}, '{__name__=~"lag|lag_ms"}'),
        (("lag",), {"group": 'a"b\\c\n'}, {}, 'lag{group="a\\"b\\\\c\\n"}'),
        (("in",), {}, {"topic": ["b.c", "a|b"]}, 'in{topic=~"a\\\\|b|b\\\\.c"}'),
        (("in",), {"x": "ü"}, {"topic": ["%RETRY%a-b"]}, 'in{x="ü",topic=~"%RETRY%a-b"}'),
    ],
)
def test_selectors_quote_what_names_may_hold(
    names: tuple[str, ...], equal: dict[str, str], one_of: dict[str, list[str]], text: str
) -> None:
    assert selector(names, equal, one_of) == text
