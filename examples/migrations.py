"""Plan a migration of a group: a snapshot and a policy in, the plan in words out. Nothing is changed.

    python examples/migrations.py snapshot.json policy.yaml update --image shop:2 --revision 3
    python examples/migrations.py snapshot.json policy.yaml strategy --to AVG_BY_CIRCLE --green shop-green
    python examples/migrations.py snapshot.json policy.yaml rename --to shop-2 --green shop-green
    python examples/migrations.py snapshot.json policy.yaml relocate --node-label zone=b --green shop-green
    python examples/migrations.py snapshot.json policy.yaml expand --topic orders --each 12 --consumers 6
    python examples/migrations.py snapshot.json policy.yaml assignor --to cooperative-sticky --revision 3
    python examples/migrations.py snapshot.json policy.yaml protocol --revision 3

The snapshot is of ``planner snapshot``, with a policy whose ``spec.kubernetes`` lets it read the Deployment. How your
consumers take their strategy, group or assignor is yours to say: here they read environment variables.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import typer

from planner.documents.data import SNAPSHOT
from planner.documents.policy import read_policy
from planner.errors import PlannerError
from planner.rollout.explain import explain_plan
from planner.rollout.migrations.expand import expand
from planner.rollout.migrations.kafka import Variable, assignor, consumer_protocol
from planner.rollout.migrations.migration import Ground, Migration, ground, plan_of
from planner.rollout.migrations.relocate import relocate
from planner.rollout.migrations.rename import rename
from planner.rollout.migrations.strategy import strategy
from planner.rollout.migrations.update import update
from planner.rollout.template import ContainerChange, Setting, TemplateChange

Arguments = argparse.Namespace


def variable(container: str, name: str, value: str) -> TemplateChange:
    """Return the change that sets one environment variable."""
    return TemplateChange((ContainerChange(container, env=(Setting(name, value),)),))


def image(given: Arguments) -> TemplateChange:
    """Return the change to another image."""
    return TemplateChange((ContainerChange(given.container, image=given.image),))


def nodes(given: Arguments) -> TemplateChange:
    """Return the change that makes pods want nodes with a label."""
    name, _, value = given.node_label.partition("=")
    return TemplateChange(node_labels=(Setting(name, value),))


KINDS: dict[str, Callable[[Ground, Arguments], Migration]] = {
    "update": lambda found, given: update(found, image(given), given.revision),
    "strategy": lambda found, given: strategy(
        found, given.to, {}, variable(given.container, "ALLOCATION_STRATEGY", given.to), given.green
    ),
    "rename": lambda found, given: rename(
        found, given.to, variable(given.container, "CONSUMER_GROUP", given.to), given.green
    ),
    "relocate": lambda found, given: relocate(found, nodes(given), given.green),
    "expand": lambda found, given: expand(found, given.topic, given.each, given.consumers),
    "assignor": lambda found, given: assignor(
        found, given.to, Variable(given.container, "PARTITION_ASSIGNMENT_STRATEGY"), given.revision
    ),
    "protocol": lambda found, given: consumer_protocol(
        found, variable(given.container, "GROUP_PROTOCOL", "consumer"), given.revision
    ),
}


def main(words: Sequence[str]) -> int:
    """Print the plan and return 0; for what is refused, print one sentence and return the error's exit code."""
    given = _arguments().parse_args(words)
    try:
        snapshot, policy = SNAPSHOT.read(given.snapshot), read_policy(given.policy)
        found = ground(snapshot, SNAPSHOT.digest(snapshot), policy.rollout_settings)
        plan = plan_of(KINDS[given.kind](found, given), found, datetime.now(UTC))
    except PlannerError as error:
        typer.echo(error, err=True)
        return error.exit_code
    typer.echo("\n".join(explain_plan(plan)))
    return 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Plan a migration of a consumer group; nothing is changed.")
    parser.add_argument("snapshot", type=Path)
    parser.add_argument("policy", type=Path)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--container", default="app", help="the container of the consumer")
    parser.add_argument("--revision", type=int, default=1, help="the Deployment's revision now")
    parser.add_argument("--green", default="green", help="the Deployment that takes over")
    parser.add_argument("--to", default="", help="the new strategy, group name or assignor")
    parser.add_argument("--image", default=None)
    parser.add_argument("--node-label", default="", help="name=value")
    parser.add_argument("--topic", default="")
    parser.add_argument("--each", type=int, default=0, help="queues on each broker, or partitions")
    parser.add_argument("--consumers", type=int, default=None)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
