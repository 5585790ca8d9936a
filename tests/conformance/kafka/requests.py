"""The forecast request that describes a group and its change."""

from confluent_kafka import libversion

from tests.clusters.kafka_load import LIBRDKAFKA
from tests.conformance.kafka.cells import SYNC, Cell, Document
from tests.conformance.kafka.group import COMING, Before, Group

# A group's own setting overrides the broker's of this name.
_OF_GROUP = "group."


def request(group: Group, before: Before, broker_version: str) -> Document:
    """Return the whole document, with members and lags as they were just before the change."""
    cell = group.cell
    return {
        "system": "kafka",
        "versions": {"client": _client(cell), "broker": broker_version},
        "group": group.name,
        "protocol": "consumer" if cell.is_server_side else "classic",
        "strategy": cell.assignor,
        "partitions": {group.topic: [{"rate": cell.rate, "lag": lag} for lag in before.lags]},
        "members": [_member(group, name, before) for name in group.members],
        "service_time_s": cell.service_ms / 1000,
        "settings": settings(cell),
        "since_rebalance_s": (group.moment_ms - before.last_event_ms) / 1000,
        "change": _change(group, before),
        "trials": 200,
        "seed": 1,
    }


def settings(cell: Cell) -> Document:
    """Return the settings that decide, as numbers and truths."""
    commits = {"enable.auto.commit": False} if cell.commit == SYNC else {"auto.commit.interval.ms": 1000}
    own = {name: int(value) for name, value in cell.settings.items()}
    return {
        "auto.offset.reset": "earliest",
        **commits,
        **own,
        **{f"{_OF_GROUP}{name}": int(value) for name, value in cell.group.items()},
    }


def _client(cell: Cell) -> str:
    return f"{LIBRDKAFKA} {libversion()[0]}" if cell.client == LIBRDKAFKA else cell.client


def _member(group: Group, name: str, before: Before) -> Document:
    owned = sorted(before.picture.owned[name])
    return {
        "id": before.picture.ids[name],
        **_instance(group, name),
        "topics": [group.topic],
        "owned": [list(one) for one in owned],
    }


def _change(group: Group, before: Before) -> Document:
    cell = group.cell
    figures = {name: value for name, value in cell.change.items() if name != "count"}
    if cell.kind == "queues":
        return {"kind": cell.kind, "topic": group.topic, "partitions": cell.change["to"]}
    if cell.kind == "blue_green":
        clients = [_newcomer(group, name) for name in group.newcomers]
        return {"kind": cell.kind, "to_group": group.heir, **group.done_s, "clients": clients}
    if cell.kind in COMING:
        shape = {"max_surge": 1, "max_unavailable": 0} if cell.kind == "rolling_update" else {}
        return {**figures, **shape, "clients": [_newcomer(group, name) for name in group.newcomers]}
    return {**figures, "clients": [before.picture.ids[name] for name in group.victims]}


def _newcomer(group: Group, name: str) -> Document:
    """A member of KIP-848 makes up its id by chance, so nobody can know it before; a classic id begins with ours."""
    return {"id": None if group.cell.brings_server_side else name, **_instance(group, name)}


def _instance(group: Group, name: str) -> Document:
    instance_id = group.instance_id(name)
    return {"instance_id": instance_id} if instance_id else {}
