"""Changes of the group that only its brokers can tell: the stand-in tells them."""

from planner.execution.codes import Code
from planner.model.queues import MessageQueue
from tests.faults.drift_case import Case, Expected
from tests.faults.group import owners_of
from tests.pod_groups import QUEUES


def victim_moved(case: Case) -> Expected:
    """A member that is to stop runs in another pod."""
    member = sorted(case.pods)[case.chance.randrange(2)]
    pods = tuple((one, "elsewhere" if one == member else one) for one in case.pods)
    case.group.changes["pods"] = pods
    return Expected(Code.VICTIM_MOVED, f"member {member} runs in pod elsewhere")


def other_pods(case: Case) -> Expected:
    """The group runs in other pods than the Deployment's."""
    case.group.changes["pods"] = tuple((member, f"other-{number}") for number, member in enumerate(case.pods))
    return Expected(Code.SERVES_OTHER_GROUP, "other-0")


def queue_gone(case: Case) -> Expected:
    """A queue is gone."""
    gone = case.chance.choice(QUEUES)
    case.group.changes["queues"] = tuple(queue for queue in QUEUES if queue != gone)
    return Expected(Code.QUEUES_CHANGED, f"{gone} gone")


def queue_added(case: Case) -> Expected:
    """A queue is new."""
    new = MessageQueue("orders", f"broker-{case.chance.choice('bcd')}", case.chance.randrange(16))
    case.group.changes["queues"] = (*QUEUES, new)
    return Expected(Code.QUEUES_CHANGED, f"{new} new")


def owner_changed(case: Case) -> Expected:
    """A queue has another owner, two, or none."""
    owners = list(owners_of(case.pods))
    at = case.chance.randrange(len(owners))
    queue, (old,) = owners[at]
    other = case.chance.choice([pod for pod in case.pods if pod != old])
    now = case.chance.choice([(other,), tuple(sorted((old, other))), ()])
    owners[at] = queue, now
    case.group.changes["owners"] = tuple(owners)
    return Expected(Code.OWNERS_CHANGED, f"{queue} from {old} to {' and '.join(now) or 'nobody'}")


def strategy_changed(case: Case) -> Expected:
    """The group allocates by another strategy."""
    now = case.chance.choice(["AVG_BY_CIRCLE", "CONSISTENT_HASH", "CONFIG"])
    case.group.changes["strategy"] = now
    return Expected(Code.STRATEGY_CHANGED, f"allocates by {now}")


def rebalancing(case: Case) -> Expected:
    """The group is not settled."""
    wrong = case.chance.randint(1, 8)
    if case.chance.random() < 0.5:
        case.group.changes["is_rebalancing"] = True
        return Expected(Code.NOT_SETTLED, "is rebalancing")
    case.group.changes["misplaced"] = wrong
    return Expected(Code.NOT_SETTLED, f"{wrong} queue{'s' * (wrong > 1)} of group")


def unreadable(case: Case) -> Expected:
    """A part of the group cannot be read."""
    part, says = case.chance.choice(
        [
            ("members", "the members of group billing could not be read"),
            ("queues", "the routes of group billing could not be read"),
            ("owners", "whether group billing is settled could not be read"),
            ("strategy", "the strategy of group billing is unknown"),
        ]
    )
    case.group.changes[part] = None
    return Expected(None, says)
