"""How each kind of change is made."""

import time
from collections.abc import Callable, Mapping

from tests.conformance.kafka.cells import CONSUMER_PROTOCOL
from tests.conformance.kafka.coordinator import committed, grow_topic
from tests.conformance.kafka.group import Group, now_ms
from tests.conformance.kafka.stage import await_true

PATIENCE_S = 60.0


def make(group: Group, blow_ms: int | None) -> int:
    """Make the change, or what follows the blow of ``blow_ms``; return from when on the group may come to rest.

    Sets ``moment_ms`` of the group: the signal, the command, or the first poll of the first newcomer.
    """
    group.moment_ms = blow_ms or now_ms()
    if blow_ms and group.cell.blow[0] == "kill":
        group.gone_ms.update(dict.fromkeys(group.victims, blow_ms))
    _MAKERS[group.cell.kind](group)
    return now_ms()


def _join(group: Group) -> None:
    stagger_s = float(group.cell.change.get("stagger_s", 0))
    for index, member in enumerate(group.newcomers):
        time.sleep(stagger_s if index else 0)
        group.start_member(member)
    first = group.newcomers[0]
    group.moment_ms = _await_event(group, first, "started", group.moment_ms)


def _leave(group: Group) -> None:
    if group.cell.change["how"] == "graceful":
        for member in group.victims:
            group.stage.ask_to_stop(member)


def _restart(group: Group) -> None:
    change = group.cell.change
    for member in group.victims:
        signal_ms = group.moment_ms if change["how"] == "crash" else _close(group, member)
        time.sleep(max(0.0, change["interval_s"] - (now_ms() - signal_ms) / 1000))
        group.start_member(member)
        _await_event(group, member, "started", signal_ms)


def _strategy(group: Group) -> None:
    """Roll twice where members that share no assignor cannot be in one group: first to both, then to the new one.

    Members of the two protocols can be in one group: a roll from one to the other is one, whichever it is.
    """
    to, interval_s = group.cell.change["to"], group.cell.change["interval_s"]
    is_one_roll = group.cell.is_server_side or to in CONSUMER_PROTOCOL
    for assignors in ((to,),) if is_one_roll else ((group.cell.assignor, to), (to,)):
        for member in group.victims:
            signal_ms = _close(group, member)
            group.start_member(member, assignors=assignors)
            time.sleep(max(0.0, interval_s - (now_ms() - signal_ms) / 1000))


def _rolling_update(group: Group) -> None:
    """Start a new member; ``ready_s`` later close an old one and start the next, and so on: a surge of one pod."""
    change = group.cell.change
    assignors = (change.get("to", group.cell.assignor),)
    for turn, member in enumerate(group.newcomers):
        if turn:
            group.stage.ask_to_stop(group.victims[turn - 1])
        group.start_member(member, assignors=assignors)
        started_ms = _await_event(group, member, "started", group.moment_ms)
        if not turn:
            group.moment_ms = started_ms
        time.sleep(max(0.0, change["ready_s"] - (now_ms() - started_ms) / 1000))
    group.stage.ask_to_stop(group.victims[-1])


def _upgrade(group: Group) -> None:
    """Close each member in turn and start it by the process of the other release."""
    for member in group.victims:
        signal_ms = _close(group, member)
        group.start_member(member, is_renewed=True)
        time.sleep(max(0.0, group.cell.change["interval_s"] - (now_ms() - signal_ms) / 1000))


def _blue_green(group: Group) -> None:
    """Close all members, copy what they have committed, and start as many of the other group, each at its second."""
    change = group.cell.change
    stop_s = change.get("stop_s", 0.0)
    deeds = {"clone_s": _copy, "stop_s": _stop, "start_s": _start}
    due = {"clone_s": change["clone_s"], "stop_s": stop_s, "start_s": max(change["clone_s"], stop_s)}
    for name in sorted(due, key=lambda name: (due[name], ("stop_s", "clone_s", "start_s").index(name))):
        time.sleep(max(0.0, due[name] - (now_ms() - group.moment_ms) / 1000))
        group.done_s[name] = (deeds[name](group) - group.moment_ms) / 1000


def _stop(group: Group) -> int:
    at_ms = now_ms()
    for member in group.victims:
        group.stage.ask_to_stop(member)
    return at_ms


def _copy(group: Group) -> int:
    """Return when the offsets had been read; what is committed later is not among them."""
    found, at_ms = committed(group.stage.cluster, group.name), now_ms()
    group.stage.cluster.commit(group.heir, found)
    return at_ms


def _start(group: Group) -> int:
    at_ms, group.current = now_ms(), group.heir
    for member in group.newcomers:
        group.start_member(member)
    return at_ms


def _close(group: Group, member: str) -> int:
    """Close a member, return once it is closed, and tell when it was asked to."""
    signal_ms = now_ms()
    group.stage.ask_to_stop(member)
    _await_event(group, member, "stopped", signal_ms)
    return signal_ms


def _away(group: Group) -> None:
    group.stage.await_awake()


def _queues(group: Group) -> None:
    before, after = group.partitions, group.cell.change["to"]
    grow_topic(group.stage.cluster, group.topic, after)
    # The same records, spread over more partitions, as keys would have it.
    group.end_producers()
    group.partitions = after
    group.produce(range(after), group.cell.rate * before / after)


_MAKERS: Mapping[str, Callable[[Group], None]] = {
    "join": _join,
    "leave": _leave,
    "restart": _restart,
    "freeze": _away,
    "partition": _away,
    "queues": _queues,
    "strategy": _strategy,
    "rolling_update": _rolling_update,
    "upgrade": _upgrade,
    "blue_green": _blue_green,
}


def _await_event(group: Group, member: str, kind: str, since_ms: int) -> int:
    """Return when the event came; only the first since ``since_ms`` counts."""

    def found() -> int | None:
        return next(
            (
                one.epoch_ms
                for one in group.stage.events(group.name)
                if (one.client, one.kind) == (member, kind) and one.epoch_ms >= since_ms
            ),
            None,
        )

    return int(await_true(f"{member} {kind}", found, PATIENCE_S, every_s=0.02))
