"""Sentences about a forecast: what is odd about the change, and what the forecast does not know."""

from collections.abc import Iterator, Sequence

import numpy as np

from planner.forecast.rocketmq.handover.tenures import NOBODY
from planner.forecast.rocketmq.membership.ownership import state_matrix
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.scenario import World
from planner.forecast.rocketmq.request.changes import (
    BlueGreen,
    BrokerDown,
    BrokerUp,
    Freeze,
    Partition,
    QueueCount,
    RollingUpdate,
    StrategyChange,
)
from planner.forecast.rocketmq.request.settings import Consumer, Settings
from planner.forecast.rocketmq.simulate import Simulation
from planner.forecast.rocketmq.timing import LONG_POLL_S, OFFSETS_FLUSHED_S
from planner.forecast.trials import LEVELS
from planner.forecast.words import exact_seconds_between

_NAMED = 3


def warnings(world: World, found: Simulation) -> tuple[str, ...]:
    """Return every sentence, the request's own first."""
    return (
        *world.request.warnings,
        *_about_names(world, found),
        *_about_members(world, found),
        *_about_queues(world, found),
        *_about_strategies(world, found),
        *_about_standstills(world, found),
        *_about_rolling(world, found),
        *_about_groups(world),
        *_about_shares(world, found),
        *_about_popping(world, found),
        *_about_polling(world, found),
        *_about_load(world, found),
    )


def _about_names(world: World, found: Simulation) -> Iterator[str]:
    if not found.names.are_known:
        unknown = sum(client.id is None for client in world.clients)
        ids = "1 id is" if unknown == 1 else f"{unknown} ids are"
        yield (
            f"{ids} not known yet: totals and queues are sampled over the places that new ids may sort into; after and "
            f"moved show the case in which they sort last"
        )


def _about_members(world: World, found: Simulation) -> Iterator[str]:
    if not world.final:
        yield "the change leaves nobody: no queue is consumed afterwards"
        return
    if not world.initial:
        yield "nobody consumes before the change: there is no pause to measure"
    owned = state_matrix(world, found.names, AFTER, world.final)
    idle = [found.names.labels[world.lives[life].client] for life in world.final if not owned[life].any()]
    if idle:
        yield f"{_named(idle)} will be idle: {len(world.final)} clients, {len(world.queues)} queues"


def _about_queues(world: World, found: Simulation) -> Iterator[str]:
    after = found.owners.shown
    lost = [str(world.queues[pick]) for pick in np.flatnonzero((after == NOBODY) & (found.owners.before != NOBODY))]
    if lost and world.final:
        why = "while the broker is down" if world.down is not None else "afterwards"
        yield f"nobody consumes {_named(lost)} {why}: no pause can be told"
    stranded = int(world.lags[(after == NOBODY)].sum())
    if lost and stranded:
        yield f"{stranded} messages wait in queues that nobody consumes{'' if world.down is None else ' for now'}"
    change = world.request.change
    if isinstance(change, QueueCount) and change.write_queues > change.read_queues:
        unread = change.write_queues - change.read_queues
        yield f"{change.topic} on {change.broker} takes messages in {unread} queues that no consumer reads"
    if world.goes_back_and_forth and len(world.brokers) > 1:
        every_s = world.request.settings.seconds("loadBalancePollNameServerInterval")
        yield (
            f"each broker renews its route every {every_s:g} s since its own start, and until all have done so queues "
            "may go back and forth: the forecast takes it that brokers started at different times; of those that "
            "started in the same second less comes twice"
        )


def _about_strategies(world: World, found: Simulation) -> Iterator[str]:
    if not isinstance(world.request.change, StrategyChange) or not world.final:
        return
    counts = state_matrix(world, found.names, AFTER, world.final).sum(axis=0)
    doubled, orphans = int((counts > 1).sum()) * (not world.request.pops), int((counts == 0).sum())
    if doubled or orphans:
        yield (
            f"two strategies stay side by side: {doubled} queues have two owners for good and every message of theirs "
            f"comes twice, {orphans} have none; let all clients switch"
        )


def _about_standstills(world: World, found: Simulation) -> Iterator[str]:
    if world.severed_s and not world.shares_whole_brokers(len(world.initial)):
        yield (
            "brokers list different members while the cut lasts: who asks which is drawn at each look, and queues "
            "change hands each time"
        )
        yield from _about_late_news(world, found)
    woken = world.resumed >= 0
    if world.request.pops or not found.course.tables.tells_entering[:, woken].any():
        return
    if world.request.consumer == Consumer.PULL:
        yield (
            "who comes back after brokers have given it up owns what it owned until it looks anew, as others do then: "
            "what of it comes twice its application decides"
        )
        return
    if isinstance(world.request.change, Partition):
        yield (
            "who comes back after brokers have given it up goes on with what it owned until it looks anew, and "
            "delivers again what others delivered meanwhile"
        )
    if isinstance(world.request.change, Freeze):
        yield (
            "who wakes after brokers have given it up looks anew before or after it has registered again, which is not "
            "known: either it gives up its queues first, or it delivers again all that others delivered meanwhile"
        )


def _about_late_news(world: World, found: Simulation) -> Iterator[str]:
    left = found.course.tables.left
    is_late = (np.isfinite(left) & (left > world.severed_s)).any(axis=(1, 2))
    if is_late.any():
        yield (
            f"in {is_late.mean():.0%} of the trials a broker hears only after the cut that the client has closed its "
            "connection, and drops it though it is back: others may take its queues until its next heartbeat"
        )


def _about_rolling(world: World, found: Simulation) -> Iterator[str]:
    if not isinstance(world.request.change, RollingUpdate):
        return
    yield (
        "which old pod stops when is the cluster's choice and drawn evenly; pauses run from the first owner to the "
        "last one, between whom others consume: unread_s is the longest time in which nobody does"
    )
    killed = (np.isfinite(found.course.times.ended) & ~found.course.times.graceful).any(axis=1).mean()
    if killed:
        yield f"in {killed:.0%} of the trials a client is killed as it takes longer than grace_s to end"


def _about_groups(world: World) -> Iterator[str]:
    change = world.request.change
    if not isinstance(change, BlueGreen):
        return
    yield (
        f"the group {change.to_group} starts from offsets copied after {change.clone_s:g} s; what waits in the retry "
        f"topic of {world.request.group or 'the old group'} is not copied and stays unread"
    )
    if change.stop_s > change.start_s:
        yield f"both groups consume everything for {change.stop_s - change.start_s:g} s"


def _about_shares(world: World, found: Simulation) -> Iterator[str]:
    """Yield what the figures rest on where members have other shares at first, or why there are none."""
    if found.again is None or not world.request.shares_anew:
        return
    if isinstance(world.request.change, BrokerUp):
        yield (
            "a broker that starts lists few members at first and gives them other shares: how much comes twice or "
            "late, and when, is not known (of fourteen watched groups, three or four members, 0 to 43 messages came "
            "twice and 1 to 94 late)"
        )
        return
    if not found.again.is_known:
        yield (
            "a member pops more than its threads begin within popInvisibleTime, and is given it again: how much comes "
            "twice or late, and when, is not known"
        )
        return
    yield (
        "the first members of the new group pop what has waited, and drop it if they are given other shares: whether "
        "that happens is a matter of tenths of a second, so that little comes twice and late, or much; on a busy "
        "machine, where they start slowly, more waits"
    )


def _about_popping(world: World, found: Simulation) -> Iterator[str]:
    change, again = world.request.change, found.again
    if again is None:
        return
    if isinstance(change, BlueGreen):
        low, high = np.quantile(again.lost, [LEVELS["p05"], LEVELS["p95"]])
        group = world.request.group or "the old group"
        yield (
            f"{low:.0f}–{high:.0f} messages that {group} has popped and not acknowledged as it stops never come to "
            f"{change.to_group}, whether their calls end well or not: {group} alone is given them again, "
            "popInvisibleTime later; let one of its clients run on until then"
        )
        yield f"unless brokers are told before it starts that {change.to_group} is to pop, it pulls"
    if isinstance(change, BrokerDown):
        of_broker = np.array([queue.broker == change.broker for queue in world.queues])
        most = world.rates[of_broker].sum() * (OFFSETS_FLUSHED_S + world.request.service_time_s)
        yield (
            f"when {change.broker} is back it gives up to {most:.0f} messages again: what nobody had acknowledged, and "
            f"what was popped in the {OFFSETS_FLUSHED_S:g} s since it had stored offsets"
        )
    if isinstance(change, BrokerUp):
        yield f"who asks {change.broker} for its queues is told to pull unless that broker, too, was told to let it pop"


def _about_polling(world: World, found: Simulation) -> Iterator[str]:
    request = world.request
    if request.consumer == Consumer.PULL:
        least = _longest_pauses(found)
        yield (
            "when and how much it pulls, and which offsets it stores, the application of a pull consumer decides: "
            "pause, duplicates, burst and settling are not known"
            + ("" if least is None else f"; the longest pause is at least {exact_seconds_between(*least)}")
        )
    if request.consumer != Consumer.LITE_PULL:
        return
    if not request.tells_commits:
        yield (
            "autoCommit is off and the request does not say when the application commits: what comes twice is not "
            "known; options.commit_after_poll says that it commits before it polls again"
        )
    elif request.settings.is_on("autoCommit") and any(client.threads > 1 for client in world.clients):
        yield (
            "several threads poll one consumer, and each poll may commit what another thread still works on: of a "
            "process that dies so much is lost, which is no part of this forecast"
        )
    if isinstance(request.change, BrokerUp) and request.tells_commits:
        yield (
            f"{request.change.broker} gives its queues out from what it has on its disk: if it died and has "
            f"come back, up to {_unstored_s(request.settings):g} s of what was delivered before, and what it had not "
            "flushed (flushConsumerOffsetInterval), come twice; that is not in this forecast"
        )
    threads = request.settings.value("pullThreadNums")
    most = max((int((found.owners.shown == client).sum()) for client in range(len(world.clients))), default=0)
    if most > threads:
        yield (
            f"one client pulls {most} queues by {threads} threads (pullThreadNums), and each queue to which nothing "
            f"comes keeps one of them for {LONG_POLL_S:g} s or more: what others wait for that is not in this forecast"
        )


def _unstored_s(settings: Settings) -> float:
    """Return how old a stored offset of an application that polls may be: as old as its commit and as it is stored."""
    commits = settings.seconds("autoCommitIntervalMillis") if settings.is_on("autoCommit") else 0.0
    return commits + settings.seconds("persistConsumerOffsetInterval")


def _longest_pauses(found: Simulation) -> tuple[float, float] | None:
    """Return the ends of the middle 90 % of the longest times from dropping a queue to gaining it."""
    pauses = np.where(found.owners.moves, np.nan_to_num(found.observed.pause_s), 0.0).max(axis=1, initial=0.0)
    if not found.owners.moves.any():
        return None
    low, high = np.quantile(pauses, [LEVELS["p05"], LEVELS["p95"]])
    return float(low), float(high)


def _about_load(world: World, found: Simulation) -> Iterator[str]:
    after = found.owners.shown
    batch = world.request.settings.value("consumeMessageBatchMaxSize")
    service_s = world.request.service_time_s
    if world.request.pops:
        threads = sum(world.lives[life].threads for life in world.final)
        if world.final and world.rates.sum() * service_s > threads * batch:
            yield (
                f"the members together cannot keep up: {world.rates.sum():g} messages a second come, "
                f"{threads * batch / service_s:g} are what their threads can do"
            )
        return
    for life in world.final:
        client = world.lives[life].client
        arriving = float(world.rates[after == client].sum())
        if arriving * service_s > world.lives[life].threads * batch:
            yield (
                f"{found.names.labels[client]} cannot keep up: {arriving:g} messages a second come, "
                f"{world.lives[life].threads * batch / service_s:g} are what its threads can do"
            )


def _named(names: Sequence[str]) -> str:
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
