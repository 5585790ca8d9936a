"""The edges of the RocketMQ forecast: retry topics, routes that members learn one by one, refused consumers."""

from planner.documents.allocation import answer
from planner.documents.forecast import forecast
from tests.unit.dynamics.small_groups import JOIN, client_id, leave, rocketmq_request

RETRY = [
    {"topic": "%RETRY%g", "broker": broker, "queue_id": 0, "rate": 0.5, "lag": 0} for broker in ("broker-a", "broker-b")
]


def test_queues_of_a_retry_topic_change_nothing_of_the_others() -> None:
    request = rocketmq_request(leave("graceful", 2), clients=3)
    with_retry = {**request, "queues": [*RETRY, *request["queues"]]}
    assert forecast(with_retry) == forecast(request)


def test_queues_of_a_retry_topic_are_shared_out_by_themselves() -> None:
    """Two brokers, two retry queues: the first two clients get one each, whatever they own of the data topic."""
    request = rocketmq_request(JOIN, clients=3)
    queues = [{name: queue[name] for name in ("topic", "broker", "queue_id")} for queue in [*RETRY, *request["queues"]]]
    asked = {"system": "rocketmq", "strategy": "AVG", "group": "g", "queues": queues}
    owned = answer({**asked, "clients": [client["id"] for client in request["clients"]]})["assignments"]
    retry = {client: [queue for queue in queues if queue[0] == "%RETRY%g"] for client, queues in owned.items()}
    assert {client: len(queues) for client, queues in retry.items()} == {
        client_id(1): 1,
        client_id(2): 1,
        client_id(3): 0,
    }


def test_members_learn_a_new_route_one_by_one() -> None:
    """Until all have it, queues have two owners or none (section 3.13: one member with the new view)."""
    change = {"kind": "queues", "topic": "T", "broker": "broker-b", "read_queues": 12, "write_queues": 12}
    found = forecast(rocketmq_request(change))["split_brain"]
    assert found["doubled_queue_s"]["p95"] > 1
    aligned = {"pollNameServerInterval": 10, "rocketmq.client.rebalance.waitInterval": 10}
    same = forecast(rocketmq_request(change, settings=aligned))["split_brain"]
    assert same["doubled_queue_s"]["p95"] < 0.2 * found["doubled_queue_s"]["p95"]


def test_orderly_and_broadcasting_clients_allocate_for_themselves_whatever_the_setting() -> None:
    setting = {"clientRebalance": False}
    assert forecast(rocketmq_request(JOIN, settings=setting)) != forecast(rocketmq_request(JOIN))
    orderly = rocketmq_request(JOIN, orderly=True)
    assert forecast({**orderly, "settings": setting}) == forecast(orderly)
    assert forecast(rocketmq_request(JOIN, settings={**setting, "messageModel": "BROADCASTING"}))["moved"] == []
