"""``planner migrate``: plan a change that a person asks for. One sub-command a migration."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.console import (
    Answer,
    FormatOption,
    PolicyFile,
    parse_time,
    print_explanation,
    print_help_alone,
    print_next,
    text_console,
)
from planner.cli.examples import epilog
from planner.cli.making import (
    At,
    Destination,
    PlanOutput,
    SnapshotFile,
    destination_of,
    made_at,
    read_pair,
    write_document,
)
from planner.cli.template import ChangeFile, ContainerName, Environment, Image, NodeLabels, change_of, needed
from planner.cli.template import the_container as only_container
from planner.errors import BadInputError

if TYPE_CHECKING:
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.snapshot import GroupSnapshot
    from planner.rollout.plan import RolloutPlan

app = typer.Typer(
    name="migrate",
    help="Plan a migration: a change of a group that a person asks for. Nothing is changed yet. What would do harm is "
    "refused by name, with exit code 1.",
    invoke_without_command=True,
)
Room = Annotated[
    str | None,
    typer.Option(help="MACHINE_ROOM_NEARBY: the machine room that all new consumers are in.", show_default=False),
]
Green = Annotated[str, typer.Option(help="Name of the new Deployment, which takes over.", show_default=False)]


@app.callback()
def _options(context: typer.Context) -> None:
    print_help_alone(context)


@app.command("update", epilog=epilog("migrate update"))
def update(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    container: ContainerName = None,
    image: Image = None,
    env: Environment = None,
    node_label: NodeLabels = None,
    change: ChangeFile = None,
    surge: Annotated[
        int | None, typer.Option(help="Pods started at once above the count; default: as many as cost least.")
    ] = None,
    output: PlanOutput = None,
    form: FormatOption = None,
    at: At = "now",
) -> None:
    """A new image or configuration: all pods are replaced, new before old."""
    pair = read_pair(snapshot, policy)
    changed = needed(change_of(pair[0], container, image, env, node_label, change))
    _make(pair, {"kind": "update", "change": changed, "surge": surge}, destination_of(output, form), at)


@app.command("strategy", epilog=epilog("migrate strategy"))
def strategy(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    to: Annotated[str, typer.Option(help="The new RocketMQ allocation strategy.", show_default=False)],
    green: Green,
    options: Annotated[str, typer.Option(help="Its parameters as JSON, as planner allocate takes them.")] = "{}",
    new_group: Annotated[
        str | None, typer.Option(help="Name of a second group, so that side by side is weighed, too.")
    ] = None,
    room: Room = None,
    container: ContainerName = None,
    image: Image = None,
    env: Environment = None,
    node_label: NodeLabels = None,
    change: ChangeFile = None,
    output: PlanOutput = None,
    form: FormatOption = None,
    at: At = "now",
) -> None:
    """Another RocketMQ allocation strategy, which the changed template brings. Members never mix two."""
    pair = read_pair(snapshot, policy)
    changed = needed(change_of(pair[0], container, image, env, node_label, change))
    asked = {"to": to, "options": _json("--options", options), "change": changed, "green": green}
    _make(pair, {"kind": "strategy", **asked, "newGroup": new_group, "room": room}, destination_of(output, form), at)


@app.command("subscription", epilog=epilog("migrate subscription"))
def subscription(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    to: Annotated[
        list[str],
        typer.Option(help="A topic of the new subscription, RocketMQ: TOPIC=TAGS; once for each.", show_default=False),
    ],
    green: Annotated[
        str | None, typer.Option(help="Stop all, start all (RocketMQ): name of the new Deployment.")
    ] = None,
    new_group: Annotated[
        str | None, typer.Option(help="Name of a second group, so that side by side is weighed, too.")
    ] = None,
    container: ContainerName = None,
    image: Image = None,
    env: Environment = None,
    node_label: NodeLabels = None,
    change: ChangeFile = None,
    output: PlanOutput = None,
    form: FormatOption = None,
    at: At = "now",
) -> None:
    """Other topics or tags, which the changed template brings. RocketMQ's consumers never mix two."""
    pair = read_pair(snapshot, policy)
    changed = needed(change_of(pair[0], container, image, env, node_label, change))
    asked = {"to": _topics(to), "change": changed, "green": green, "newGroup": new_group}
    _make(pair, {"kind": "subscription", **asked}, destination_of(output, form), at)


def _topics(given: list[str]) -> dict[str, str]:
    """Return the tags of each topic: ``orders=paid || sent``, and all messages where none stand there."""
    topics: dict[str, str] = {}
    for text in given:
        topic, _, tags = text.partition("=")
        if topic in topics:
            raise BadInputError(f"option --to: found topic {topic} twice, expected each once")
        topics[topic] = tags or "*"
    return topics


@app.command("rename", epilog=epilog("migrate rename"))
def rename(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    to: Annotated[str, typer.Option(help="The new name of the consumer group.", show_default=False)],
    green: Green,
    container: ContainerName = None,
    image: Image = None,
    env: Environment = None,
    node_label: NodeLabels = None,
    change: ChangeFile = None,
    output: PlanOutput = None,
    form: FormatOption = None,
    at: At = "now",
) -> None:
    """Another name for the consumer group, which the changed template brings. Its offsets are cloned."""
    pair = read_pair(snapshot, policy)
    changed = needed(change_of(pair[0], container, image, env, node_label, change))
    _make(pair, {"kind": "rename", "to": to, "change": changed, "green": green}, destination_of(output, form), at)


@app.command("relocate", epilog=epilog("migrate relocate"))
def relocate(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    green: Green,
    room: Room = None,
    container: ContainerName = None,
    image: Image = None,
    env: Environment = None,
    node_label: NodeLabels = None,
    change: ChangeFile = None,
    output: PlanOutput = None,
    form: FormatOption = None,
    at: At = "now",
) -> None:
    """All consumers to another Deployment, on other nodes or with another template (blue-green)."""
    pair = read_pair(snapshot, policy)
    changed = needed(change_of(pair[0], container, image, env, node_label, change))
    _make(pair, {"kind": "relocate", "change": changed, "green": green, "room": room}, destination_of(output, form), at)


@app.command("cluster", epilog=epilog("migrate cluster"))
def cluster(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    to: Annotated[str, typer.Option(help="The other cluster's name.", show_default=False)],
    green: Green,
    container: ContainerName = None,
    image: Image = None,
    env: Environment = None,
    node_label: NodeLabels = None,
    change: ChangeFile = None,
    output: PlanOutput = None,
    form: FormatOption = None,
    at: At = "now",
) -> None:
    """The group to another cluster, whose address the changed template brings. The old cluster is drained."""
    pair = read_pair(snapshot, policy)
    changed = needed(change_of(pair[0], container, image, env, node_label, change))
    _make(pair, {"kind": "cluster", "to": to, "change": changed, "green": green}, destination_of(output, form), at)


@app.command("reset", epilog=epilog("migrate reset"))
def reset(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    to: Annotated[
        str,
        typer.Option(
            help="Time of the first message to consume (ISO 8601), earliest, latest, or with --queue an offset.",
            show_default=False,
        ),
    ],
    topic: Annotated[str | None, typer.Option(help="Only this topic's queues; default: all queues.")] = None,
    queue: Annotated[
        str | None, typer.Option(help="Only this queue: TOPIC/BROKER/NUMBER, Kafka TOPIC/NUMBER.", show_default=False)
    ] = None,
    ask_brokers: Annotated[
        bool,
        typer.Option("--ask-brokers", help="Ask the brokers how many messages that means, and how old. Only reads."),
    ] = False,
    output: PlanOutput = None,
    form: FormatOption = None,
    at: At = "now",
) -> None:
    """The group back, or ahead, to one point. All its consumers stop, its offsets are set, as many start again."""
    asked: dict[str, Any] = {"kind": "reset", "to": _point(to), "topic": topic, "queue": queue}
    pair = read_pair(snapshot, policy)
    if ask_brokers:
        asked["brokers"] = _ask(pair, asked)
    _make(pair, asked, destination_of(output, form), at)


def _ask(pair: "tuple[GroupSnapshot, ConsumerScalingPolicy]", asked: dict[str, Any]) -> dict[str, Any]:
    """Return what the policy's brokers say of the reset, now."""
    from datetime import UTC, datetime

    from planner.deployments.offsets.ages import ask_brokers
    from planner.deployments.offsets.installations import installation
    from planner.documents.migration import parse_request, reset_messages_document
    from planner.rollout.migrations.requests import ResetRequest
    from planner.rollout.migrations.reset import reset_step

    taken, policy = pair
    given = {name: value for name, value in asked.items() if value is not None}
    request = parse_request(given, "planner migrate reset")
    assert isinstance(request, ResetRequest)
    with installation(policy) as offsets:
        messages = ask_brokers(offsets, reset_step(taken.group, request), datetime.now(UTC))
    return reset_messages_document(messages)


def _point(to: str) -> str | int:
    """Return what ``--to`` means, as a request spells it: an offset is digits alone, anything else names a time."""
    if to in ("earliest", "latest"):
        return to
    return int(to) if to.isdecimal() and to.isascii() else parse_time(to, "--to").isoformat()


@app.command("expand", epilog=epilog("migrate expand"))
def expand(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    topic: Annotated[str, typer.Option(help="The topic that gets more queues.", show_default=False)],
    queues: Annotated[int, typer.Option(help="Its queues on each broker then; Kafka: partitions.", show_default=False)],
    consumers: Annotated[int | None, typer.Option(help="Consumers then; default: as many as now.")] = None,
    output: PlanOutput = None,
    form: FormatOption = None,
    at: At = "now",
) -> None:
    """More queues for a topic, and more consumers for them. A person raises the queues on the way."""
    pair = read_pair(snapshot, policy)
    _make(
        pair,
        {"kind": "expand", "topic": topic, "queues": queues, "consumers": consumers},
        destination_of(output, form),
        at,
    )


@app.command("shrink", epilog=epilog("migrate shrink"))
def shrink(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    topic: Annotated[str, typer.Option(help="The topic that gets fewer queues.", show_default=False)],
    queues: Annotated[int, typer.Option(help="Its queues on each broker then.", show_default=False)],
    output: PlanOutput = None,
    form: FormatOption = None,
    at: At = "now",
) -> None:
    """Fewer queues for a RocketMQ topic. Producers leave them, they are worked off, then nobody reads them."""
    pair = read_pair(snapshot, policy)
    _make(pair, {"kind": "shrink", "topic": topic, "queues": queues}, destination_of(output, form), at)


@app.command("assignor", epilog=epilog("migrate assignor"))
def assignor(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    to: Annotated[str, typer.Option(help="The new assignor: range, roundrobin, sticky, cooperative-sticky.")],
    variable: Annotated[
        str | None,
        typer.Option(help="In rolls: the variable that Java consumers take partition.assignment.strategy from."),
    ] = None,
    green: Annotated[
        str | None, typer.Option(help="Stop all, start all (librdkafka): name of the new Deployment.")
    ] = None,
    container: ContainerName = None,
    image: Image = None,
    env: Environment = None,
    node_label: NodeLabels = None,
    change: ChangeFile = None,
    output: PlanOutput = None,
    form: FormatOption = None,
    at: At = "now",
) -> None:
    """Another assignor of a classic Kafka group: in rolls by --variable, or all at once by --green and a change."""
    pair = read_pair(snapshot, policy)
    asked: dict[str, Any] = {"kind": "assignor", "to": to, "green": green}
    if variable is not None:
        asked["variable"] = {"container": container or only_container(pair[0]), "name": variable}
    asked["change"] = change_of(pair[0], container, image, env, node_label, change)
    _make(pair, asked, destination_of(output, form), at)


@app.command("consumer-protocol", epilog=epilog("migrate consumer-protocol"))
def consumer_protocol(
    snapshot: SnapshotFile,
    policy: PolicyFile,
    to: Annotated[str, typer.Option(help="The server's assignor: uniform or range-server.")] = "uniform",
    container: ContainerName = None,
    image: Image = None,
    env: Environment = None,
    node_label: NodeLabels = None,
    change: ChangeFile = None,
    output: PlanOutput = None,
    form: FormatOption = None,
    at: At = "now",
) -> None:
    """Kafka's consumer protocol (KIP-848) for a classic group, which the changed template brings."""
    pair = read_pair(snapshot, policy)
    changed = needed(change_of(pair[0], container, image, env, node_label, change))
    _make(pair, {"kind": "consumerProtocol", "to": to, "change": changed}, destination_of(output, form), at)


def _json(option: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInputError(f"option {option}: found {text!r}, expected a JSON object: {error}") from None
    if not isinstance(value, dict):
        raise BadInputError(f"option {option}: found {text!r}, expected a JSON object")
    return value


def _make(pair: "tuple[GroupSnapshot, ConsumerScalingPolicy]", asked: dict[str, Any], to: Destination, at: str) -> None:
    """Write the plan for the request, and show its cost and why it was chosen."""
    from planner import pipeline
    from planner.documents.migration import parse_request
    from planner.documents.plan import PLAN

    taken, policy = pair
    given = {name: value for name, value in asked.items() if value is not None}
    made = pipeline.migrate(
        taken, parse_request(given, f"planner migrate {asked['kind']}"), policy, made_at(at, taken.at)
    )
    document = pipeline.migration_document(made, policy, given)
    write_document(document, PLAN.text(document), to)
    if to.answer is not None:
        _print(made, len(taken.data_queues), to, to.answer)


def _print(made: "RolloutPlan", queues: int, to: Destination, answer: Answer) -> None:
    """Print the plan in short: for people as planner explain does, for machines as the short form."""
    from planner.advice.answer import price_of, short_migration
    from planner.rollout.explain import explain_plan
    from planner.rollout.next_command import approve_command

    step = "the same command with -o plan.yaml" if to.file is None else approve_command(made, str(to.file))
    if not answer.is_text:
        short = short_migration(made, price_of(made, queues), step)
        answer.write("MigrationSummary", {**short, "file": None if to.file is None else str(to.file)})
        return
    print_explanation(explain_plan(made, is_short=True))
    if to.file is not None:
        text_console().print(f"Plan written to {to.file}. A person approves it.", soft_wrap=True)
    print_next(step)
