"""Sentences about a forecast: what is odd about the change, and what the forecast does not know."""

from collections.abc import Iterator, Sequence

import numpy as np

from planner.forecast.common.readings import ADDED, FILTERED, REMOVED, about_steps
from planner.forecast.rocketmq.answers.subscription import ALL_TAGS, mixed_s, tags_at_risk, topic_kinds
from planner.forecast.rocketmq.handover.tenures import NOBODY
from planner.forecast.rocketmq.membership.consume_rates import most_pulled
from planner.forecast.rocketmq.membership.ownership import state_matrix
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.scenario import Floats, Scenario
from planner.forecast.rocketmq.request.changes import (
    BlueGreen,
    BrokerDown,
    BrokerUp,
    Freeze,
    Partition,
    QueueCount,
    RollingUpdate,
    StrategyChange,
    SubscriptionChange,
)
from planner.forecast.rocketmq.request.producers import ProducerKind
from planner.forecast.rocketmq.request.settings import Consumer, Settings
from planner.forecast.rocketmq.simulate import Simulation
from planner.forecast.rocketmq.timing import LONG_POLL_S, OFFSETS_FLUSHED_S
from planner.forecast.trials import LEVELS
from planner.forecast.words import exact_seconds_between

_NAMED = 3


def warnings(scenario: Scenario, simulation: Simulation) -> tuple[str, ...]:
    """Return every sentence, the request's own first."""
    return (
        *scenario.request.warnings,
        *_about_names(scenario, simulation),
        *_about_members(scenario, simulation),
        *_about_queues(scenario, simulation),
        *_about_strategies(scenario, simulation),
        *_about_subscriptions(scenario, simulation),
        *_about_standstills(scenario, simulation),
        *_about_rolling(scenario, simulation),
        *_about_groups(scenario),
        *_about_shares(scenario, simulation),
        *_about_popping(scenario, simulation),
        *_about_polling(scenario, simulation),
        *_about_producers(scenario),
        *_about_load(scenario, simulation),
    )


def _about_names(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    if not simulation.names.are_known:
        unknown = sum(client.id is None for client in scenario.clients)
        ids = "1 id is" if unknown == 1 else f"{unknown} ids are"
        yield (
            f"{ids} not known yet: totals and queues are sampled over the places that new ids may sort into; after and "
            f"moved show the case in which they sort last"
        )


def _about_members(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    if not scenario.final:
        yield "the change leaves nobody: no queue is consumed afterwards"
        return
    if not scenario.initial:
        yield "nobody consumes before the change: there is no pause to measure"
    owned = state_matrix(scenario, simulation.names, AFTER, scenario.final)
    idle = [
        simulation.names.labels[scenario.processes[process].client]
        for process in scenario.final
        if not owned[process].any()
    ]
    if idle:
        yield f"{_named(idle)} will be idle: {len(scenario.final)} clients, {len(scenario.queues)} queues"


def _about_queues(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    after = simulation.owners.shown
    lost = [
        str(scenario.queues[pick]) for pick in np.flatnonzero((after == NOBODY) & (simulation.owners.before != NOBODY))
    ]
    if lost and scenario.final:
        why = "while the broker is down" if scenario.down is not None else "afterwards"
        yield f"nobody consumes {_named(lost)} {why}: no pause can be given"
    stranded = int(scenario.lags[(after == NOBODY)].sum())
    if lost and stranded:
        yield f"{stranded} messages wait in queues that nobody consumes{'' if scenario.down is None else ' for now'}"
    change = scenario.request.change
    if isinstance(change, QueueCount) and change.write_queues > change.read_queues:
        unread = change.write_queues - change.read_queues
        yield f"{change.topic} on {change.broker} takes messages in {unread} queues that no consumer reads"
    if scenario.goes_back_and_forth and len(scenario.brokers) > 1:
        every_s = scenario.request.settings.seconds("loadBalancePollNameServerInterval")
        yield (
            f"each broker renews its route every {every_s:g} s since its own start, and until all have done so queues "
            "may go back and forth: the forecast takes it that brokers started at different times; of those that "
            "started in the same second less comes twice"
        )


def _about_strategies(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    if not isinstance(scenario.request.change, StrategyChange) or not scenario.final:
        return
    counts = state_matrix(scenario, simulation.names, AFTER, scenario.final).sum(axis=0)
    doubled, orphans = int((counts > 1).sum()) * (not scenario.request.pops), int((counts == 0).sum())
    if doubled or orphans:
        yield (
            f"two strategies stay side by side: {doubled} queues have two owners for good and every message of theirs "
            f"comes twice, {orphans} have none; let all clients switch"
        )


def _about_subscriptions(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    change = scenario.request.change
    if not isinstance(change, SubscriptionChange):
        return
    yield from about_steps(len(change.clients), len(scenario.queues))
    kinds = topic_kinds(change)
    apart = [topic for topic, kind in kinds.items() if kind in (ADDED, REMOVED)]
    if apart and len(scenario.request.clients) > 1:
        yield (
            f"only some clients subscribe to {_named(apart)} for a while: queues that a rebalance gives to the others "
            "are unread, and each heartbeat of a client without it makes brokers refuse all pulls of it until a client "
            "with it sends one (subscription.missing), which pauses and settling leave out"
        )
    for topic in (topic for topic in apart if kinds[topic] == ADDED):
        yield (
            f"whether clients begin {topic} with its first message or with its newest one depends on the offsets that "
            "the group has there, its age and consumeFromWhere: what lies there is forecast to be read"
        )
    for topic in (topic for topic, kind in kinds.items() if kind == FILTERED):
        yield _about_filter(topic, change, *mixed_s(scenario, simulation))


def _about_filter(topic: str, change: SubscriptionChange, begins: Floats, ends: Floats) -> str:
    risk = tags_at_risk(change.before[topic], change.to[topic])
    both = sorted(change.before[topic] | change.to[topic])
    tags = f"any tag but {_named(both)}" if risk == (ALL_TAGS,) else f"tag {_named(risk)}"
    until = "for good, as some clients keep the old tags"
    if np.isfinite(ends).all():
        low, high = (float(np.quantile(ends - begins, LEVELS[level])) for level in ("p05", "p95"))
        until = f"for {exact_seconds_between(low, high)}"
    return (
        f"old and new clients of {topic} are mixed {until}, brokers filter for all of them by the tags of the one "
        f"whose queues changed last, and which one that is nobody knows: messages with {tags} may be passed over then, "
        "and nobody reads them later"
    )


def _about_standstills(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    if scenario.partitioned_s and not scenario.shares_whole_brokers(len(scenario.initial)):
        yield (
            "brokers list different members while the cut lasts: which one a member asks is drawn at each rebalance, "
            "and queues change owners each time"
        )
        yield from _about_late_news(scenario, simulation)
    resumed = scenario.resumed >= 0
    if scenario.request.pops or not simulation.membership.registrations.notifies_entering[:, resumed].any():
        return
    if scenario.request.consumer == Consumer.PULL:
        yield (
            "a client that comes back after brokers dropped it keeps its queues until it rebalances, beside their "
            "new owners: what of it comes twice its application decides"
        )
        return
    if isinstance(scenario.request.change, Partition):
        yield (
            "a client that comes back after brokers dropped it goes on with its queues until it rebalances, and "
            "delivers again what others delivered meanwhile"
        )
    if isinstance(scenario.request.change, Freeze):
        yield (
            "a client that wakes after brokers dropped it rebalances before or after it has registered again, which "
            "is not known: either it gives up its queues first, or it delivers again all that others delivered "
            "meanwhile"
        )


def _about_late_news(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    left = simulation.membership.registrations.left
    is_late = (np.isfinite(left) & (left > scenario.partitioned_s)).any(axis=(1, 2))
    if is_late.any():
        yield (
            f"in {is_late.mean():.0%} of the trials a broker hears only after the cut that the client has closed its "
            "connection, and drops it though it is back: others may take its queues until its next heartbeat"
        )


def _about_rolling(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    if not isinstance(scenario.request.change, RollingUpdate):
        return
    yield (
        "which old pod stops when is the cluster's choice and drawn evenly; pauses run from the first owner to the "
        "last one, between whom others consume: unread_s is the longest time in which nobody does"
    )
    killed = (np.isfinite(simulation.membership.times.ended) & ~simulation.membership.times.graceful).any(axis=1).mean()
    if killed:
        yield f"in {killed:.0%} of the trials a client is killed as it takes longer than grace_s to end"


def _about_groups(scenario: Scenario) -> Iterator[str]:
    change = scenario.request.change
    if not isinstance(change, BlueGreen):
        return
    yield (
        f"the group {change.to_group} starts from offsets copied after {change.clone_s:g} s; what waits in the retry "
        f"topic of {scenario.request.group or 'the old group'} is not copied and stays unread"
    )
    if change.stop_s > change.start_s:
        yield f"both groups consume everything for {change.stop_s - change.start_s:g} s"


def _about_shares(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    """Yield what the figures rest on where members have other shares at first, or why there are none."""
    if simulation.redelivery is None or not scenario.request.shares_anew:
        return
    if isinstance(scenario.request.change, BrokerUp):
        yield (
            "a broker that starts lists few members at first and gives them other shares: how much comes twice or "
            "late, and when, is not known (of fourteen watched groups, three or four members, 0 to 43 messages came "
            "twice and 1 to 94 late)"
        )
        return
    if not simulation.redelivery.is_known:
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


def _about_popping(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    change, redelivery = scenario.request.change, simulation.redelivery
    if redelivery is None:
        return
    if isinstance(change, BlueGreen):
        low, high = np.quantile(redelivery.lost, [LEVELS["p05"], LEVELS["p95"]])
        group = scenario.request.group or "the old group"
        yield (
            f"{low:.0f}–{high:.0f} messages that {group} has popped and not acknowledged as it stops never come to "
            f"{change.to_group}, whether their calls end well or not: {group} alone is given them again, "
            "popInvisibleTime later; let one of its clients run on until then"
        )
        yield f"{change.to_group} pulls unless its POP mode is set at the brokers before it starts"
    if isinstance(change, BrokerDown):
        of_broker = np.array([queue.broker == change.broker for queue in scenario.queues])
        most = scenario.rates[of_broker].sum() * (OFFSETS_FLUSHED_S + scenario.request.service_time_s)
        yield (
            f"when {change.broker} is back it gives up to {most:.0f} messages again: what nobody had acknowledged, and "
            f"what was popped in the {OFFSETS_FLUSHED_S:g} s since it had stored offsets"
        )
    if isinstance(change, BrokerUp):
        yield f"{change.broker} makes members pull unless the group's POP mode is set there, too"


def _about_polling(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    request = scenario.request
    if request.consumer == Consumer.PULL:
        least = _longest_pauses(simulation)
        yield (
            "when and how much it pulls, and which offsets it stores, the application of a pull consumer decides: "
            "pause, duplicates, burst and settling are not known"
            + ("" if least is None else f"; the longest pause is at least {exact_seconds_between(*least)}")
        )
    if request.consumer != Consumer.LITE_PULL:
        return
    if not request.reports_commits:
        yield (
            "autoCommit is off and the request does not say when the application commits: what comes twice is not "
            "known; options.commit_after_poll says that it commits before it polls again"
        )
    elif request.settings.is_on("autoCommit") and any(client.threads > 1 for client in scenario.clients):
        yield (
            "several threads poll one consumer, and each poll may commit what another thread still works on: of a "
            "process that dies so much is lost, which is no part of this forecast"
        )
    if isinstance(request.change, BrokerUp) and request.reports_commits:
        yield (
            f"{request.change.broker} gives its queues out from what it has on its disk: if it died and has "
            f"come back, up to {_unstored_s(request.settings):g} s of what was delivered before, and what it had not "
            "flushed (flushConsumerOffsetInterval), come twice; that is not in this forecast"
        )
    threads = request.settings.value("pullThreadNums")
    most = max((int((simulation.owners.shown == client).sum()) for client in range(len(scenario.clients))), default=0)
    if most > threads:
        yield (
            f"one client pulls {most} queues by {threads} threads (pullThreadNums), and each queue to which nothing "
            f"comes keeps one of them for {LONG_POLL_S:g} s or more: what others wait for that is not in this forecast"
        )


def _unstored_s(settings: Settings) -> float:
    """Return how old a stored offset of an application that polls may be: as old as its commit and as it is stored."""
    commits = settings.seconds("autoCommitIntervalMillis") if settings.is_on("autoCommit") else 0.0
    return commits + settings.seconds("persistConsumerOffsetInterval")


def _longest_pauses(simulation: Simulation) -> tuple[float, float] | None:
    """Return the ends of the middle 90 % of the longest times from dropping a queue to gaining it."""
    pauses = np.where(simulation.owners.moves, np.nan_to_num(simulation.observed.pause_s), 0.0).max(axis=1, initial=0.0)
    if not simulation.owners.moves.any():
        return None
    low, high = np.quantile(pauses, [LEVELS["p05"], LEVELS["p95"]])
    return float(low), float(high)


def _about_producers(scenario: Scenario) -> Iterator[str]:
    """Yield what becomes of the lost broker's messages, and what that rests on."""
    if scenario.down is None or scenario.request.pops:
        return
    producers, broker = scenario.request.producers, scenario.brokers[scenario.down]
    lost = {
        topic.name: float(sum(scenario.rates[queue] for queue in topic.queues[0] if _is_of(scenario, queue, broker)))
        for topic in scenario.topics
    }
    kinds = {topic: producers.of(topic) for topic, rate in lost.items() if rate > 0}
    unknown = [topic for topic, kind in kinds.items() if kind is None]
    if unknown:
        yield (
            f"how the producers of {_named(unknown)} choose a queue is not stated (producers): in one half of the "
            "trials they go round the queues that are left at once, in the other one keys choose, and move as routes "
            "are renewed"
        )
    keyed = sum(lost[topic] for topic, kind in kinds.items() if kind is ProducerKind.KEYED)
    if any(kind is ProducerKind.KEYED for kind in kinds.values()):
        poll_s = scenario.request.settings.seconds("pollNameServerInterval")
        yield (
            f"keyed sends to {broker} fail until their process renews its route, for up to {poll_s:g} s (up to "
            f"{keyed * poll_s:.0f} messages); then keys move to other queues, so that the order by key breaks, and "
            "once more when the broker is back"
        )
    if any(kind is ProducerKind.FIXED for kind in kinds.values()):
        yield f"messages that are meant for the queues of {broker} alone are not sent while it is down"


def _is_of(scenario: Scenario, queue: int, broker: str) -> bool:
    return scenario.queues[queue].broker == broker


def _about_load(scenario: Scenario, simulation: Simulation) -> Iterator[str]:
    after, inflow = simulation.owners.shown, simulation.inflow
    comes = scenario.rates if inflow is None else inflow.after.mean(axis=0)
    batch = scenario.request.settings.value("consumeMessageBatchMaxSize")
    service_s = scenario.request.service_time_s
    if scenario.request.pops:
        threads = sum(scenario.processes[process].threads for process in scenario.final)
        if scenario.final and scenario.rates.sum() * service_s > threads * batch:
            yield (
                f"the members together cannot keep up: {scenario.rates.sum():g} messages a second come, "
                f"{threads * batch / service_s:g} are what their threads can do"
            )
        return
    slow = np.flatnonzero((comes > most_pulled(scenario)) & (after != NOBODY))
    if len(slow):
        yield (
            f"{_named([str(scenario.queues[queue]) for queue in slow])}: more comes in than is pulled; pullInterval "
            f"and pullBatchSize let a client pull {most_pulled(scenario):g} messages a second of one queue"
        )
    for process in scenario.final:
        client = scenario.processes[process].client
        arriving = float(comes[after == client].sum())
        if arriving * service_s > scenario.processes[process].threads * batch:
            yield (
                f"{simulation.names.labels[client]} cannot keep up: {arriving:g} messages a second come, "
                f"{scenario.processes[process].threads * batch / service_s:g} are what its threads can do"
            )


def _named(names: Sequence[str]) -> str:
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
