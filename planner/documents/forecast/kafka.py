"""A Kafka request of ``planner forecast``, read and checked: members, partitions, settings, and what changes."""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.allocation import fields
from planner.allocation.kafka.assignment import ASSIGNORS
from planner.allocation.kafka.names import NO_GENERATION
from planner.allocation.ordering import java_sorted
from planner.documents.allocation import AssignorOptions
from planner.documents.forecast.common import require_fields, trials_and_seed
from planner.documents.forecast.kafka_changes import Surroundings, read_change
from planner.documents.requests import validated
from planner.errors import BadInputError
from planner.forecast.common.request_fields import MOST_RATE, MOST_SECONDS, Version, number, version
from planner.forecast.kafka.request.changes import BlueGreen, Change, Member, Upgrade
from planner.forecast.kafka.request.completion import assignor_of, completed, release_of, settings_for
from planner.forecast.kafka.request.refusals import (
    MOST_LAG,
    MOST_MEMBERS,
    MOST_PARTITIONS,
    check_knows_consumer,
    check_size,
)
from planner.forecast.kafka.request.request import ForecastRequest, Partition
from planner.forecast.kafka.request.settings import CLASSIC, CONSUMER, PROTOCOLS, read_settings

_MEMBER = '{"id": "c0", "topics": ["t0"]}'
_REQUIRED = {
    "versions": 'an object such as {"client": "4.4.0", "broker": "4.3.1"}; the client may be "librdkafka 2.16.1"',
    "strategy": "an assignor's name",
    "partitions": 'an object such as {"t0": [{"rate": 25.0, "lag": 0}]}',
    "members": f"a list of members such as {_MEMBER}",
    "service_time_s": "seconds that one record takes in the poll loop",
    "change": 'an object such as {"kind": "join", "clients": [{"id": null}]}',
}
_KNOWN = ("system", "group", "protocol", "options", "settings", "since_rebalance_s", "trials", "seed", *_REQUIRED)
_OPTIONS = ("partition_racks", "commit_on_revoke")
_MEMBER_FIELDS = ("id", "instance_id", "rack", "topics", "owned", "generation")


def read_request(document: Mapping[str, Any]) -> ForecastRequest:
    """Return the request, checked; raise ``BadInputError`` naming field, found and expected."""
    fields.only_known(document, _KNOWN, "request")
    require_fields(document, "", _REQUIRED)
    client, is_java, broker = _versions(document["versions"])
    protocol = _protocol(document.get("protocol", CLASSIC), client, broker, is_java=is_java)
    partitions, unknown_lags = _partitions(document["partitions"])
    members = _members(document["members"], "members", partitions, ())
    options = fields.mapping(document.get("options") or {}, "options")
    strategy, own_options = _assignor(document["strategy"], options, protocol, is_java=is_java)
    change = _change(document, members, partitions)
    given = fields.mapping(document.get("settings") or {}, "settings")
    settings = settings_for(change, given, protocol, client, broker, is_java=is_java)
    _check_upgrade(change, given, protocol, broker, is_java=is_java)
    _check_target_group(change, document.get("group"))
    trials, seed = trials_and_seed(document)
    since = document.get("since_rebalance_s")
    if not own_options:
        fields.only_known(options, _OPTIONS, "options")
    if not isinstance(document.get("group", ""), str):
        raise fields.refusal("group", document["group"], "a text")
    request = ForecastRequest(
        client,
        is_java,
        broker,
        protocol,
        strategy,
        partitions,
        validated(AssignorOptions, options, "options").racks(),
        members,
        number(document["service_time_s"], "service_time_s", 0, MOST_SECONDS),
        settings,
        _commits_on_revoke(options),
        None if since is None else number(since, "since_rebalance_s", 0, 1e9),
        change,
        trials,
        seed,
        assignor_options=own_options,
    )
    complete = completed(request, unknown_lags)
    check_size(complete)
    return complete


def _check_upgrade(change: Change, given: Mapping[str, Any], protocol: str, broker: Version, *, is_java: bool) -> None:
    """Refuse an upgrade to a client that does not know the settings or the protocol."""
    if not isinstance(change, Upgrade):
        return
    read_settings(given, protocol, change.to, broker, is_java=is_java)
    if protocol == CONSUMER:
        check_knows_consumer("change.to", protocol, change.to, broker, is_java=is_java)


def _check_target_group(change: Change, group: object) -> None:
    if isinstance(change, BlueGreen) and change.to_group == group:
        raise BadInputError(f"change.to_group: found {change.to_group}, the group itself, expected another group")


def _assignor(
    value: object, options: Mapping[str, Any], protocol: str, *, is_java: bool
) -> tuple[str, Mapping[str, Any]]:
    """Return the assignor's name, and the options that are its own where it is a user's."""
    name = fields.text(value, "strategy", "an assignor's name")
    own_options = {key: given for key, given in options.items() if key not in _OPTIONS}
    strategy = assignor_of(name, protocol, is_java=is_java, options=own_options)
    return strategy, own_options if name not in ASSIGNORS else {}


def check_clients(versions: object, settings: Mapping[str, Any]) -> None:
    """Raise ``BadInputError`` for versions and settings that no group could have, whatever its protocol."""
    client, is_java, broker = _versions(versions)
    refused = []
    for protocol in PROTOCOLS:
        try:
            read_settings(settings, protocol, client, broker, is_java=is_java)
        except BadInputError as error:
            refused.append(error)
    if len(refused) == len(PROTOCOLS):
        raise refused[0]


def _versions(value: object) -> tuple[Version, bool, Version]:
    document = fields.mapping(value, "versions", _REQUIRED["versions"])
    fields.only_known(document, ("client", "broker"), "versions")
    require_fields(document, "versions", {"client": "a version such as 4.4.0", "broker": "a version such as 4.3.1"})
    broker = version(document["broker"], "versions.broker")
    return *release_of(document["client"]), broker


def _protocol(value: object, client: Version, broker: Version, *, is_java: bool) -> str:
    if not isinstance(value, str) or value not in PROTOCOLS:
        raise fields.refusal("protocol", value, f"one of {', '.join(PROTOCOLS)}")
    if value == CONSUMER:
        check_knows_consumer("protocol", value, client, broker, is_java=is_java)
    return value


def _change(
    document: Mapping[str, Any],
    members: tuple[Member, ...],
    partitions: Mapping[str, tuple[Partition, ...]],
) -> Change:
    leaders = {partition.leader for of_topic in partitions.values() for partition in of_topic if partition.leader}
    around = Surroundings(
        members,
        {topic: len(of_topic) for topic, of_topic in partitions.items()},
        java_sorted(leaders),
        lambda value, field: _members(value, field, partitions, members),
    )
    return read_change(document["change"], around)


def _partitions(value: object) -> tuple[dict[str, tuple[Partition, ...]], list[str]]:
    partitions: dict[str, tuple[Partition, ...]] = {}
    unknown = count = 0
    for topic, items in fields.mapping(value, "partitions", _REQUIRED["partitions"]).items():
        fields.text(topic, "partitions", "topic names that are not empty")
        field_name = f"partitions[{topic!r}]"
        read = [
            _partition(item, f"{field_name}[{index}]") for index, item in enumerate(fields.sequence(items, field_name))
        ]
        count += len(read)
        if count > MOST_PARTITIONS:
            raise BadInputError(f"partitions: found more than {MOST_PARTITIONS}, the most in one request")
        unknown += sum(not is_known for _, is_known in read)
        partitions[topic] = tuple(partition for partition, _ in read)
    if not count:
        raise BadInputError("partitions: found none, expected at least one partition of a topic")
    warning = f"the lag of {unknown} of {count} partitions is not known: forecast as if nothing waited there"
    return partitions, [warning] if unknown else []


def _partition(value: object, field: str) -> tuple[Partition, bool]:
    document = fields.mapping(value, field, 'an object such as {"rate": 25.0, "lag": 0}')
    fields.only_known(document, ("rate", "lag", "leader"), field)
    require_fields(document, field, {"rate": f"records per second from 0 to {MOST_RATE:g}"})
    lag, leader = document.get("lag"), document.get("leader")
    if leader is not None:
        fields.text(leader, f"{field}.leader", "null or a broker's name")
    rate = number(document["rate"], f"{field}.rate", 0, MOST_RATE)
    waiting = 0.0 if lag is None else number(lag, f"{field}.lag", 0, MOST_LAG)
    return Partition(rate, waiting, leader), lag is not None


def _members(
    value: object, field: str, partitions: Mapping[str, Sequence[object]], usual: Sequence[Member]
) -> tuple[Member, ...]:
    """Return members; those that join may have no id yet, and subscribe to what the others do by default."""
    items = fields.sequence(value, field, _REQUIRED["members"])
    if len(items) > MOST_MEMBERS:
        raise BadInputError(f"{field}: found {len(items)}, expected at most {MOST_MEMBERS} in one request")
    joins = field != "members"
    members = [_member(item, f"{field}[{index}]", partitions, usual, joins) for index, item in enumerate(items)]
    for name in ("id", "instance_id"):
        names = [getattr(member, name) for member in members if getattr(member, name) is not None]
        for index, entry in enumerate(names):
            if entry in names[:index]:
                raise BadInputError(f"{field}: found {name} {fields.shown(entry)} twice, expected each once")
    return tuple(members)


def _member(
    value: object, field: str, partitions: Mapping[str, Sequence[object]], usual: Sequence[Member], joins: bool
) -> Member:
    document = fields.mapping(value, field, f"an object such as {_MEMBER}")
    fields.only_known(document, _MEMBER_FIELDS, field)
    name, rack, instance = document.get("id"), document.get("rack"), document.get("instance_id")
    if name is not None or not joins:
        fields.text(name, f"{field}.id", "a member id that is not empty")
    for key, text in (("rack", rack), ("instance_id", instance)):
        if text is not None:
            fields.text(text, f"{field}.{key}", "null or a text that is not empty")
    topics = document.get("topics")
    if topics is None:
        default = usual[0].topics if usual else frozenset(partitions)
        if not joins:
            raise fields.missing(f"{field}.topics", "a list of topic names")
        return Member(name, instance, rack or "", default)
    read = fields.texts(topics, f"{field}.topics", "a list of topic names")
    if "" in read:
        raise fields.refusal(f"{field}.topics[{read.index('')}]", "", "a text that is not empty")
    if not joins and document.get("generation") is not None:
        fields.whole_number(document["generation"], f"{field}.generation", NO_GENERATION, fields.LARGEST_QUEUE_ID)
    owned = document.get("owned")
    claims = (
        None if owned is None or joins else tuple((claim[0], claim[1]) for claim in _claims(owned, f"{field}.owned"))
    )
    return Member(name, instance, rack or "", frozenset(read), claims)


def _claims(value: object, field: str) -> Sequence[Any]:
    items = fields.sequence(value, field, 'a list of partitions such as [["t0", 0]]')
    for index, item in enumerate(items):
        if not isinstance(item, list | tuple) or len(item) != 2 or not isinstance(item[0], str):
            raise fields.refusal(f"{field}[{index}]", item, 'a topic and a partition number such as ["t0", 0]')
        fields.whole_number(item[1], f"{field}[{index}]", 0, fields.LARGEST_QUEUE_ID)
    return items


def _commits_on_revoke(options: Mapping[str, Any]) -> bool:
    commits = options.get("commit_on_revoke", False)
    if not isinstance(commits, bool):
        raise fields.refusal("options.commit_on_revoke", commits, "true or false")
    return commits
