"""The consumer protocol (KIP-848, 3.4): a target on the broker, to which each member comes by its own heartbeats.

A member that comes or goes makes the coordinator compute a new target. A member hears at its next heartbeat what to
give up, does so in its next poll and reports it at once; only then may the next owner hear of it, at a heartbeat of its
own.

A classic group becomes one of this protocol with the first member that comes by it (``convertToConsumerGroup``). Its
classic members go on as such (``classic_members.py``). It is a classic one again when the last member of this protocol
has left.
"""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.request_fields import Version
from planner.forecast.kafka.handover.assignments import first_side
from planner.forecast.kafka.handover.classic_members import find_rejoins, rejoin_notices
from planner.forecast.kafka.handover.classic_protocol import Interrupted, play_rounds_since, play_rounds_until
from planner.forecast.kafka.handover.rebalance_context import RebalanceContext
from planner.forecast.kafka.handover.tenures import MembershipTimeline, TenureLog
from planner.forecast.kafka.membership.process_times import NEVER, ProcessTimes
from planner.forecast.kafka.membership.scenario import AFTER, NOBODY, Booleans, Floats, Indexes, Scenario
from planner.forecast.kafka.request.changes import TopicCreated

BATCHED_SINCE = Version(4, 3)
"""``group.consumer.assignment.interval.ms``: targets are computed at most so often."""

_MOST_BEATS = 300
RESOLVED_S = 0.1
"""How long a broker takes, at most, to resolve a pattern."""


@dataclass(slots=True)
class _Group:
    """The coordinator's view, by trial (and process, or partition). ``free_at``: since when nobody holds a partition.

    Of classic members: ``rejoins``, the last time one heard that it has to rejoin, and ``waiting``, when it did so in a
    round that the conversion has broken off (NEVER for others).

    ``returns``: when a static member comes again in the place of its former process, NEVER for a member that comes
    otherwise.
    """

    inside: Booleans
    arrives: Floats
    returns: Floats
    leaves: Floats
    grows: Floats
    beat: Floats
    free_at: Floats
    computed: Floats
    state: Indexes
    side: Indexes
    rejoins: Floats
    waiting: Floats


def play_targets(context: RebalanceContext) -> MembershipTimeline:
    """Return the membership over time of a group of the consumer protocol."""
    group, log = _begin(context)
    return _play(context, group, log)


def play_conversion(context: RebalanceContext) -> MembershipTimeline:
    """Return the membership over time of a classic group that the first member of the consumer protocol converts."""
    registers = _registers(context)
    before = play_rounds_until(context, registers.min(axis=1))
    group, _ = _begin(context)
    group.inside, group.beat, group.state = before.inside, before.beat, before.state
    group.arrives, group.returns = _apart(context.scenario, registers)
    group.leaves = np.where(before.gone, NEVER, context.times.leaves)
    group.waiting = before.rejoins
    return _play(context, group, before.log)


def play_reversion(context: RebalanceContext) -> MembershipTimeline:
    """Return the membership over time of a group of the consumer protocol whose members come again by the classic one.

    It is a classic group, whose members all have to rejoin, as soon as the last one of the consumer protocol has left
    (``validateOnlineDowngradeWithFencedMembers``). A static one does not leave: where it is the last one, it makes a
    classic group of it by coming again, and nobody has to rejoin (``validateOnlineDowngradeWithReplacedMember``).
    """
    scenario, times = context.scenario, context.times
    leaves = times.leaves[:, scenario.by_server]
    last = np.flatnonzero(scenario.by_server)[leaves.argmax(axis=1)]
    reverts = np.where(scenario.has_static_successor[last], NEVER, leaves.max(axis=1))
    group, log = _begin(context)
    _play(context, group, log, reverts)
    since = reverts[:, None]
    # What a target has promised is not kept, and who has joined since then is in the group as well.
    log.forget(log.assigned_at > since)
    comes = ~scenario.by_server & np.isfinite(group.arrives) & (group.arrives <= since)
    inside, gone = group.inside | comes, scenario.by_server & ~group.inside
    beat = np.where(comes, times.arrives, group.beat)
    waits, behind = np.full(group.rejoins.shape, NEVER), _behind(scenario, group, since)
    return play_rounds_since(context, Interrupted(log, inside, gone, beat, group.state, waits, behind), reverts)


def _behind(scenario: Scenario, group: _Group, since: Floats) -> Booleans:
    """Return which classic members have not come to the group's last epoch by a moment.

    It is the generation of the classic group (``ClassicGroup#fromConsumerGroup``, 4.3), and their own is refused
    (ILLEGAL_GENERATION). A member that goes raises it at once, though a target may be computed only later.
    """
    goes = group.inside & ~scenario.has_static_successor & (group.leaves < since)
    raised = (goes | (group.arrives < since)).any(axis=1, keepdims=True)
    return ~scenario.by_server & (raised | (group.rejoins > since))


def _registers(context: RebalanceContext) -> Floats:
    """Return when the coordinator lists each newcomer: before the heartbeat with which that one takes what is free."""
    times, shape = context.times, context.times.arrives.shape
    share, registered = context.draw(context.calibration.registers, shape), np.full(shape, NEVER)
    for index, process in enumerate(context.scenario.processes):
        if process.is_server_side and process.starts_s is not None:
            ready = np.full(len(registered), process.starts_s)
            gone = times.stops if index in context.scenario.static_successors else times.leaves
            ready = ready if process.follows is None else np.maximum(ready, gone[:, process.follows])
            registered[:, index] = ready + share[:, index] * np.maximum(times.arrives[:, index] - ready, 0.0)
    return registered


def _begin(context: RebalanceContext) -> tuple[_Group, TenureLog]:
    """Return a group at rest and its open tenures."""
    scenario, times, trials = context.scenario, context.times, context.scenario.request.trials
    group = _Group(
        np.isneginf(times.arrives),
        *_apart(scenario, np.where(np.isneginf(times.arrives), NEVER, times.arrives)),
        times.leaves.copy(),
        _growth(scenario, times, trials),
        times.beat.copy(),
        np.full((trials, len(scenario.partitions)), -np.inf),
        np.full(trials, -np.inf),
        np.zeros(trials, dtype=np.intp),
        np.full(trials, first_side(scenario), dtype=np.intp),
        np.full(times.arrives.shape, -np.inf),
        np.full(times.arrives.shape, NEVER),
    )
    return group, TenureLog(context.holders(), trials)


def _play(
    context: RebalanceContext, group: _Group, log: TenureLog, until: Floats | float = NEVER
) -> MembershipTimeline:
    """Compute targets, and let members come to them, until nothing changes any more, or until a moment."""
    times = context.times
    for _ in range(2 * len(context.scenario.processes) + 1):
        due, back = _next_target_at(context.scenario, group, times), group.returns.min(axis=1, initial=NEVER)
        due, back = (np.where(at < until, at, NEVER) for at in (due, back))
        if not np.isfinite(np.minimum(due, back)).any():
            break
        _fill_slots(context, group, log, np.where(back <= due, back, NEVER))
        at = np.where(back < due, NEVER, due)
        played = np.isfinite(at)
        _register(context.scenario, group, times, at)
        after, _ = context.assignments.play(group.state, group.inside, context.names.of_trial, group.side)
        group.state = np.where(played, after, group.state)
        _converge(context, group, at, log, played)
    return MembershipTimeline(log.close(times.stops, times.unsaved_s), group.state)


def _apart(scenario: Scenario, arrives: Floats) -> tuple[Floats, Floats]:
    """Return when processes join, and when those do that come in the place of a former process."""
    in_order = np.isin(np.arange(arrives.shape[1]), list(scenario.static_successors))
    return np.where(in_order, NEVER, arrives), np.where(in_order, arrives, NEVER)


def _fill_slots(context: RebalanceContext, group: _Group, log: TenureLog, at: Floats) -> None:
    """Let the static member that comes again at a moment (NEVER where none does) take its former process's place.

    It has that one's part of the target at once, and no other one is computed for it
    (``getOrMaybeSubscribeStaticConsumerGroupMember``, 4.3).
    """
    for new, old in context.scenario.static_successors.items():
        mine = np.isfinite(at) & (group.returns[:, new] == at)
        if not mine.any():
            continue
        group.state = np.where(mine, context.assignments.succeeded(group.state, old, new), group.state)
        group.inside[:, old] &= ~mine
        group.inside[:, new] |= mine
        group.beat[:, new] = np.where(mine, context.times.arrives[:, new], group.beat[:, new])
        group.returns[:, new] = np.where(mine, NEVER, group.returns[:, new])
        _converge(context, group, np.where(mine, at, NEVER), log, np.zeros_like(mine))


def _growth(scenario: Scenario, times: ProcessTimes, trials: int) -> Floats:
    """Return when the coordinator sees new partitions: at the next heartbeat of any member (3.4 step 6).

    It evaluates patterns beside its event loop (``GroupMetadataManager#maybeUpdateRegularExpressions``, 4.3), so that
    the heartbeat that asks for it is answered before.
    """
    initial = list(scenario.initial)
    if not scenario.expands or not initial:
        return np.full(trials, NEVER)
    noticed_at: Floats = (times.beat + times.interval)[:, initial].min(axis=1)
    return noticed_at + RESOLVED_S if isinstance(scenario.request.change, TopicCreated) else noticed_at


def _next_target_at(scenario: Scenario, group: _Group, times: ProcessTimes) -> Floats:
    """Return when the next target is computed, NEVER where nothing changes any more."""
    comes: Floats = group.arrives.min(axis=1, initial=NEVER)
    goes = np.where(group.inside & ~scenario.has_static_successor, group.leaves, NEVER).min(axis=1, initial=NEVER)
    event: Floats = np.minimum(np.minimum(comes, goes), group.grows)
    at: Floats = event
    if scenario.request.broker >= BATCHED_SINCE:
        interval = scenario.request.settings.seconds("group.consumer.assignment.interval.ms")
        at = np.maximum(event, group.computed + interval)
    if scenario.by_server.all() and not scenario.static_successors:
        return at
    return _asked_at(scenario, group, times, at)


def _asked_at(scenario: Scenario, group: _Group, times: ProcessTimes, since: Floats) -> Floats:
    """Return when a member of the consumer protocol next has the coordinator compute a target (4.3).

    Its heartbeats do (``consumerGroupHeartbeat``), those of classic members do not: they hear of targets only. But who
    joins by the classic protocol does so once (``classicGroupJoinToConsumerGroup``). Without classic or static members
    it is taken to make no difference who does, as nobody hears of a target before a heartbeat of its own.
    """
    due = np.where(np.isfinite(since), since, 0.0)[:, None]
    first = np.where(group.inside, group.beat, group.arrives)
    known = np.isfinite(first) & scenario.by_server
    first = np.where(known, first, 0.0)
    beats = np.maximum(np.ceil((due - first) / times.interval), 0.0)
    asks = np.where(known, first + beats * times.interval, NEVER)
    asks = np.where(asks < times.stops, asks, NEVER)
    comes = np.minimum(group.arrives, group.returns)
    joins = np.where(~scenario.by_server & (comes >= due), comes, NEVER)
    asks = np.minimum(asks, joins)
    return np.where(np.isfinite(since), np.maximum(asks.min(axis=1), since), NEVER)


def _register(scenario: Scenario, group: _Group, times: ProcessTimes, at: Floats) -> None:
    """Let everybody in or out whose word has come by the time of the target."""
    played, until = np.isfinite(at), at[:, None]
    comes = played[:, None] & (group.arrives <= until)
    goes = played[:, None] & group.inside & ~scenario.has_static_successor & (group.leaves <= until)
    group.beat = np.where(comes, times.arrives, group.beat)
    group.arrives = np.where(comes, NEVER, group.arrives)
    group.leaves = np.where(goes, NEVER, group.leaves)
    group.inside = (group.inside | comes) & ~goes
    grown = played & (group.grows <= at)
    group.side = np.where(grown, AFTER, group.side)
    group.grows = np.where(grown, NEVER, group.grows)
    group.computed = np.where(played, at, group.computed)


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """By trial and process: it hears of a target (``notified_at``) and has committed, stops what it gives up
    (``revoked_at``), and the coordinator knows that (``freed``). ``asks``: the first time it may be given something,
    ``asks_next``: the next one, which is the first for a member that gives something up.
    """

    notified_at: Floats
    revoked_at: Floats
    saved: Floats
    freed: Floats
    asks: Floats
    asks_next: Floats


def _converge(context: RebalanceContext, group: _Group, at: Floats, log: TenureLog, is_new: Booleans) -> None:
    """Let every member give up and take what its part of the target says; ``is_new``: where all have to hear of it."""
    scenario, times = context.scenario, context.times
    played = np.isfinite(at)[:, None]
    since = np.where(np.isfinite(at), at, 0.0)[:, None]
    target = np.where(played, context.assignments.owners_in(group.state), log.process)
    holder = np.maximum(log.process, 0)
    # Tenures that another target promised and that have not begun: nobody has to give them up.
    promised = (log.process != NOBODY) & (log.assigned_at > since)
    changes = played & (log.process != target)
    answers = _answers(context, group, since)
    alive = np.take_along_axis(group.inside & (answers.notified_at < times.stops), holder, axis=1)
    pauses = is_new[:, None] & alive & ~promised & ~changes & _eager(scenario)[holder] & (log.process != NOBODY)
    gives = changes & ~promised & (log.process != NOBODY)
    stops = np.take_along_axis(times.stops, holder, axis=1)
    revoked_at = np.where(alive, np.take_along_axis(answers.revoked_at, holder, axis=1), stops)
    unsaved = np.take_along_axis(times.unsaved_s, holder, axis=1)
    saved = np.where(alive, np.take_along_axis(answers.saved, holder, axis=1), revoked_at - unsaved)
    free_at = np.where(
        alive, np.take_along_axis(answers.freed, holder, axis=1), np.maximum(since, _freed(group, holder))
    )
    group.free_at = np.where(gives | pauses, free_at, group.free_at)
    log.forget(changes & promised)
    log.end(gives | pauses, revoked_at, saved)
    takes = (changes | pauses) & (target != NOBODY)
    revokes = np.zeros(group.inside.shape, dtype=bool)
    trial, column = np.nonzero(gives & alive & ~_eager(scenario)[holder])
    revokes[trial, holder[trial, column]] = True
    second = np.where(revokes, answers.asks_next, answers.asks + times.interval)
    ready = np.maximum(group.free_at, since)
    assigned_at = _taken(context, group, target, takes, ready, (answers.asks, second, revokes))
    log.begin(takes, target, assigned_at)
    if not scenario.by_server.all():
        rejoined = is_new[:, None] & group.inside & ~scenario.by_server
        group.beat = np.where(rejoined, np.where(revokes, answers.asks_next, answers.asks), group.beat)
        group.rejoins = np.where(rejoined, answers.notified_at, group.rejoins)
        group.waiting = np.where(is_new[:, None], NEVER, group.waiting)


def _eager(scenario: Scenario) -> Booleans:
    """Return which processes stop all they have in every rebalance: classic ones, unless they cooperate."""
    return np.array(
        [not (process.is_server_side or process.is_cooperative) for process in scenario.processes], dtype=bool
    )


def _answers(context: RebalanceContext, group: _Group, since: Floats) -> _Answers:
    """Return when each member does what about a target of ``since``."""
    shape, by_server = group.inside.shape, context.scenario.by_server
    beat = _next_beat(group, context.times, since)
    notified_at = beat + context.trips(shape) + context.until_poll(beat)
    freed = notified_at + context.draw(context.calibration.acknowledge_s, shape)
    if by_server.all():
        return _Answers(notified_at, notified_at, notified_at, freed, beat, freed)
    classic_members = find_rejoins(context, rejoin_notices(context, group.rejoins, group.waiting, beat, since), since)
    return _Answers(
        np.where(by_server, notified_at, classic_members.rejoin_notified_at),
        np.where(by_server, notified_at, classic_members.revoked_at),
        np.where(by_server, notified_at, classic_members.saved),
        np.where(by_server, freed, classic_members.freed),
        np.where(by_server, beat, classic_members.synced),
        np.where(by_server, freed, classic_members.served),
    )


def _freed(group: _Group, holder: Indexes) -> Floats:
    """Return when a silent holder's session ends; -inf for one that is out already."""
    ends = np.where(group.inside, group.leaves, -np.inf)
    return np.take_along_axis(ends, holder, axis=1)


def _next_beat(group: _Group, times: ProcessTimes, since: Floats) -> Floats:
    beats = np.maximum(np.ceil((since - group.beat) / times.interval), 0.0)
    beat: Floats = group.beat + beats * times.interval
    return _is_running(times, beat)


def _is_running(times: ProcessTimes, at: Floats) -> Floats:
    """Return the times, put off until their member resumes where it is suspended."""
    return np.where((times.suspended_at <= at) & (at < times.resumed_at), times.resumed_at, at)


def _taken(
    context: RebalanceContext,
    group: _Group,
    target: Indexes,
    takes: Booleans,
    ready: Floats,
    beats: tuple[Floats, Floats, Booleans],
) -> Floats:
    """Return when the new owner of each partition hears that it may have it; NEVER for who does not live to hear it.

    A member that has been given something reports it at once, and may be given more with the answer; a classic one asks
    again at its next heartbeat.
    """
    scenario, times = context.scenario, context.times
    beat, following, revokes = beats
    owner = np.maximum(target, 0)
    assigned_at = np.full(takes.shape, NEVER)
    open_ = takes & np.isfinite(ready)
    listens = ~revokes
    for _ in range(_MOST_BEATS):
        rejoin_notified_at = np.take_along_axis(np.where(listens & (beat < times.stops), beat, NEVER), owner, axis=1)
        given = open_ & (ready <= rejoin_notified_at) & np.isfinite(rejoin_notified_at)
        assigned_at = np.where(given, rejoin_notified_at, assigned_at)
        open_ &= ~given
        got = np.zeros(beat.shape, dtype=bool)
        trial, column = np.nonzero(given)
        got[trial, owner[trial, column]] = True
        group.beat = np.where(got | ~listens, np.where(got, beat, following), group.beat)
        if not (open_ & np.take_along_axis(beat < times.stops, owner, axis=1)).any():
            break
        quick = beat + context.draw(context.calibration.acknowledge_s, beat.shape)
        quick = np.where(scenario.by_server, quick, beat + times.interval)
        beat = _is_running(times, np.where(got, quick, np.where(listens, beat + times.interval, following)))
        listens = np.ones_like(revokes)
    return assigned_at
