"""Every kind of step, and who does it."""

from collections.abc import Callable

from tests.conformance.rocketmq import absences, changes, successions
from tests.conformance.rocketmq.cells import Step
from tests.conformance.rocketmq.changes import Calm, Change
from tests.conformance.rocketmq.group import LiveGroup

LASTING = ("freeze", "partition")
"""Steps that take as long as the member is away; whoever waits for the machine does not wait for them."""
KINDS: dict[str, Callable[[LiveGroup, Step, Calm], Change]] = {
    "join": changes.join,
    "leave": changes.leave,
    "restart": changes.restart,
    "strategy": changes.switch,
    "broker_down": changes.broker_down,
    "broker_up": changes.broker_up,
    "upgrade": successions.upgrade,
    "blue_green": successions.blue_green,
    "freeze": absences.freeze,
    "partition": absences.cut_off,
}


def perform(group: LiveGroup, step: Step, calm: Calm) -> Change:
    """Do one step; return when all of its commands are given."""
    return KINDS[step["kind"]](group, step, calm)
