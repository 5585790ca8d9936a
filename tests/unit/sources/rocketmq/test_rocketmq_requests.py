"""The allow-list: what can be sent, and that nothing else can."""

from typing import cast

import pytest

from planner.model.queues import MessageQueue
from planner.sources.rocketmq import codec, requests
from planner.sources.rocketmq.requests import Request, RequestCode

READS = {
    *(14, 21, 26, 28, 29, 30, 31, 38, 43, 105, 106, 201, 202, 203, 206, 208, 223, 224, 300, 307, 315, 317, 343, 345),
}
WRITES = [
    *(10, 11, 15, 17, 18, 25, 34, 35, 36, 41, 42, 200, 205, 207, 211, 212, 213, 215, 216, 217, 220, 222, 225, 306),
    *(309, 310, 314, 316, 318, 327, 329, 353, 401, 513, 1001, 3001),
]


def test_the_allow_list_is_exactly_these_reads() -> None:
    assert {int(code) for code in RequestCode} == READS


@pytest.mark.parametrize("code", WRITES)
def test_a_code_that_writes_has_no_member(code: int) -> None:
    with pytest.raises(ValueError, match=str(code)):
        RequestCode(code)


@pytest.mark.parametrize("code", [34, 222, 38, True, "38", None])
def test_a_request_without_a_member_of_the_list_does_not_come_into_being(code: object) -> None:
    with pytest.raises(TypeError, match="allow-list"):
        Request(cast("RequestCode", code))


def test_a_forged_request_is_not_encoded() -> None:
    forged = requests.member_ids("g")
    object.__setattr__(forged, "code", 34)
    with pytest.raises(TypeError, match="allow-list"):
        codec.encode_request(forged, 1)


def test_fields_are_those_that_rocketmq_knows() -> None:
    assert requests.cluster_info().fields == {}
    assert requests.topic_route("T").fields == {"topic": "T"}
    assert requests.member_ids("g").fields == {"consumerGroup": "g"}
    assert requests.connections("g").fields == {"consumerGroup": "g"}
    assert requests.consume_stats("g").fields == {"consumerGroup": "g"}
    assert requests.consume_stats("g", "T").fields == {"consumerGroup": "g", "topic": "T"}


Q = MessageQueue("T", "b", 3)


@pytest.mark.parametrize(
    ("request_", "code", "fields"),
    [
        (requests.topic_names(), 206, {}),
        (requests.topics_of_cluster("C"), 224, {"cluster": "C"}),
        (requests.topic_stats("T"), 202, {"topic": "T"}),
        (requests.groups_of_topic("T"), 300, {"topic": "T"}),
        (requests.topics_of_group("g"), 343, {"group": "g"}),
        (requests.subscription("g", "T"), 345, {"group": "g", "topic": "T"}),
        (requests.group_configs(), 201, {}),
        (requests.topic_configs(), 21, {}),
        (requests.member_offsets("g", "T"), 223, {"group": "g", "topic": "T", "clientAddr": ""}),
        (requests.member_offsets("g", "T", "c"), 223, {"group": "g", "topic": "T", "clientAddr": "c"}),
        (requests.all_offsets(), 43, {}),
        (requests.broker_consume_stats(is_orderly=True), 317, {"isOrder": "true"}),
        (requests.broker_consume_stats(is_orderly=False), 317, {"isOrder": "false"}),
        (
            requests.committed_offset("g", Q),
            14,
            {"consumerGroup": "g", "topic": "T", "queueId": "3", "setZeroIfNotFound": "false"},
        ),
        (requests.max_offset(Q), 30, {"topic": "T", "queueId": "3"}),
        (requests.min_offset(Q), 31, {"topic": "T", "queueId": "3"}),
        (requests.offset_at(Q, 17), 29, {"topic": "T", "queueId": "3", "timestamp": "17"}),
        (requests.counter("N", "k"), 315, {"statsName": "N", "statsKey": "k"}),
        (requests.broker_runtime(), 28, {}),
        (requests.broker_config(), 26, {}),
    ],
)
def test_code_and_fields_of_the_other_reads(request_: Request, code: int, fields: dict[str, str]) -> None:
    assert (int(request_.code), request_.fields) == (code, fields)


def test_running_info_never_asks_for_stack_traces() -> None:
    asked = requests.running_info("g", "c1").fields
    assert asked == {"consumerGroup": "g", "clientId": "c1", "jstackEnable": "false"}


def test_a_request_is_named_by_its_name_code_and_target() -> None:
    assert str(requests.cluster_info()) == "GET_BROKER_CLUSTER_INFO (106)"
    assert str(requests.running_info("g", "c1")) == ("GET_CONSUMER_RUNNING_INFO (307) for consumerGroup g, clientId c1")
