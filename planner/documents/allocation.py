"""Requests of ``planner allocate``, read into what strategies and assignors are asked: design.md section 4."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetPydanticSchema
from pydantic_core import CoreSchema, core_schema

from planner.allocation import answers, fields
from planner.allocation.answers import Document
from planner.allocation.kafka.names import NO_GENERATION, Member
from planner.allocation.kafka.request import MOST_MEMBERS, MOST_PARTITIONS, Request
from planner.allocation.registry import find_strategy
from planner.allocation.request import MOST_CLIENTS, MOST_QUEUES, AllocationRequest
from planner.documents.requests import RequestModel, at_most, validated
from planner.errors import PlannerError
from planner.model.queues import MessageQueue

LARGEST_GENERATION = 2**31 - 1

Text = Annotated[str, Field(strict=True, min_length=1, description="a text that is not empty")]
AnyText = Annotated[str, Field(strict=True, description="a text")]
ClientId = Annotated[str, Field(strict=True, min_length=1, description="a client id that is not empty")]
TopicName = Annotated[str, Field(strict=True, min_length=1, description="topic names that are not empty")]
Rack = Annotated[Annotated[str, Field(strict=True)] | None, Field(description="null or the name of a rack")]
InstanceId = Annotated[
    Annotated[str, Field(strict=True, min_length=1)] | None, Field(description="null or a text that is not empty")
]
QueueId = Annotated[
    int,
    Field(
        strict=True,
        ge=0,
        le=fields.LARGEST_QUEUE_ID,
        description=f"a whole number from 0 to {fields.LARGEST_QUEUE_ID}",
    ),
]
PartitionCount = Annotated[
    int, Field(strict=True, ge=0, le=MOST_PARTITIONS, description=f"a whole number from 0 to {MOST_PARTITIONS}")
]
Generation = Annotated[
    Annotated[int, Field(strict=True, ge=NO_GENERATION, le=LARGEST_GENERATION)] | None,
    Field(description=f"a whole number from {NO_GENERATION} to {LARGEST_GENERATION}"),
]
Claim = Annotated[
    tuple[Annotated[str, Field(strict=True)], Annotated[int, Field(strict=True, ge=0)]],
    Field(description='a topic and a partition number such as ["t0", 0]'),
]
ReplicaRacks = Annotated[list[Rack], Field(description="a list of rack names")]


def _queue_schema(_: object, handler: GetCoreSchemaHandler) -> CoreSchema:
    """Let pydantic make the core's queues themselves: a million of them take a second; other names are left aside."""
    kinds: Mapping[str, Any] = {"topic": Text, "broker": Text, "queue_id": QueueId}
    arguments = [core_schema.dataclass_field(name, handler.generate_schema(kind)) for name, kind in kinds.items()]
    return core_schema.dataclass_schema(
        MessageQueue,
        core_schema.dataclass_args_schema("MessageQueue", arguments),
        list(kinds),
        slots=True,
        config=core_schema.CoreConfig(extra_fields_behavior="ignore"),
    )


RequestQueue = Annotated[
    MessageQueue,
    GetPydanticSchema(_queue_schema),
    Field(description='an object such as {"topic": "T", "broker": "broker-a", "queue_id": 0}'),
]


class RocketMQDocument(RequestModel):
    """The request of a RocketMQ strategy."""

    system: Annotated[Literal["rocketmq"], Field(description="rocketmq")] = "rocketmq"
    strategy: Annotated[str, Field(strict=True, min_length=1, description="a strategy's name")]
    group: AnyText = ""
    queues: Annotated[list[RequestQueue], Field(description="a list of queues", fail_fast=True), at_most(MOST_QUEUES)]
    clients: Annotated[list[ClientId], Field(description="a list of client ids", fail_fast=True), at_most(MOST_CLIENTS)]
    options: Annotated[dict[str, Any] | None, Field(description="an object")] = None


class MemberDocument(RequestModel):
    """One member of a Kafka group."""

    id: Text
    instance_id: InstanceId = None
    rack: Rack = None
    topics: Annotated[list[Text], Field(description="a list of topic names", fail_fast=True)]
    owned: Annotated[
        Annotated[list[Claim], Field(fail_fast=True)] | None,
        Field(description='a list of partitions such as [["t0", 0]]'),
    ] = None
    generation: Generation = None

    def member(self) -> Member:
        """Return it as assignors know it."""
        generation = NO_GENERATION if self.generation is None else self.generation
        return Member(
            self.id, frozenset(self.topics), self.instance_id, self.rack or "", tuple(self.owned or ()), generation
        )


class AssignorOptions(RequestModel):
    """Where replicas lie, and what the assignor itself takes: that checks it."""

    model_config = ConfigDict(extra="allow")

    partition_racks: Annotated[
        dict[str, Annotated[list[ReplicaRacks], Field(description="one list of racks for each partition")]] | None,
        Field(description="an object from topic to one list of racks for each partition"),
    ] = None

    def racks(self) -> dict[str, tuple[frozenset[str], ...]]:
        """Return the racks of each partition's replicas by topic; a rack without a name is none."""
        named = self.partition_racks or {}
        return {
            topic: tuple(frozenset(rack for rack in racks if rack) for racks in lists) for topic, lists in named.items()
        }


class KafkaDocument(RequestModel):
    """The request of a Kafka assignor."""

    system: Annotated[Literal["kafka"], Field(description="kafka")] = "kafka"
    strategy: Annotated[str, Field(strict=True, min_length=1, description="the name of an assignor")]
    group: AnyText = ""
    partitions: Annotated[
        dict[TopicName, PartitionCount], Field(description="an object from topic to its count of partitions")
    ]
    members: Annotated[
        list[Annotated[MemberDocument, Field(description='an object such as {"id": "c0", "topics": ["t0"]}')]],
        Field(description="a list of members", fail_fast=True),
        at_most(MOST_MEMBERS),
    ]
    options: Annotated[AssignorOptions | None, Field(description="an object")] = None


def read_rocketmq(document: object) -> AllocationRequest:
    """Return the request of a RocketMQ strategy; raise ``BadInputError`` naming field, found and expected."""
    read = validated(RocketMQDocument, document)
    strategy = find_strategy(read.strategy, read.options or {})
    return AllocationRequest(strategy, read.group, read.queues, read.clients)


def read_kafka(document: object) -> Request:
    """Return the request of a Kafka assignor; raise ``BadInputError`` naming field, found and expected."""
    read = validated(KafkaDocument, document)
    options = read.options or AssignorOptions()
    members = tuple(member.member() for member in read.members)
    return Request(read.strategy, read.partitions, members, options.racks(), options.model_extra or {})


READERS: Final[Mapping[str, Callable[[object], AllocationRequest | Request]]] = {
    "rocketmq": read_rocketmq,
    "kafka": read_kafka,
}
"""What reads a request, by its system."""


@dataclass(frozen=True, slots=True)
class Answers:
    """One answer a request, in order; a request that is wrong has ``{"error": …}`` in its place."""

    documents: Sequence[Document]

    @property
    def refused(self) -> list[tuple[int, str]]:
        """Return index and error of every request that was not answered."""
        return [(index, document["error"]) for index, document in enumerate(self.documents) if "error" in document]


def answer(request: object) -> Document:
    """Return the answer to one request; raise ``BadInputError`` naming field, value and expectation."""
    document = fields.mapping(request, "request", "an object with system, strategy and what it allocates")
    if "system" not in document:
        raise fields.missing("system", f"one of {', '.join(READERS)}")
    system = document["system"]
    if not isinstance(system, str) or system not in READERS:
        raise fields.refusal("system", system, f"one of {', '.join(READERS)}")
    return answers.answer(READERS[system](document))


def answer_all(requests: Sequence[object]) -> Answers:
    """Return one answer a request; one that is wrong keeps no other from its answer."""
    return Answers([_answer_or_error(index, request) for index, request in enumerate(requests)])


def _answer_or_error(index: int, request: object) -> Document:
    try:
        return answer(request)
    except PlannerError as error:
        return {"error": f"request {index}: {error}"}
