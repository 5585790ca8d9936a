"""The consumer protocol (KIP-848, 3.4): a target on the broker, to which each member comes by its own heartbeats.

Whoever comes or goes makes the coordinator compute a new target. A member hears at its next heartbeat what to give up,
does so in its next poll and says so at once; only then may the next owner hear of it, at a heartbeat of its own.

A classic group becomes one of this protocol with the first member that comes by it (``convertToConsumerGroup``). Its
classic members go on as such (``hosted``). It is a classic one again when the last member of this protocol has left.
"""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.request_fields import Version
from planner.forecast.kafka.handover.assignments import first_side
from planner.forecast.kafka.handover.classic_members import find_rejoins, hears
from planner.forecast.kafka.handover.classic_protocol import Interrupted, play_rounds_since, play_rounds_until
from planner.forecast.kafka.handover.rebalance_context import Scene
from planner.forecast.kafka.handover.tenures import Course, HoldBook
from planner.forecast.kafka.membership.process_times import NEVER, LifeTimes
from planner.forecast.kafka.membership.scenario import AFTER, NOBODY, Booleans, Floats, Indexes, World

BATCHED_SINCE = Version(4, 3)
"""``group.consumer.assignment.interval.ms``: targets are computed at most so often."""

_MOST_BEATS = 300


@dataclass(slots=True)
class _Group:
    """The coordinator's view, by trial (and life, or partition). ``free_at``: since when nobody holds a partition.

    Of classic members: ``rejoins``, the last time one heard that it has to rejoin, and ``waiting``, when it did so in a
    round that the conversion has broken off (NEVER for others).

    ``returns``: when a static member comes again in the place of its former process, NEVER for who comes otherwise.
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


def play_targets(scene: Scene) -> Course:
    """Return the course of a group of the consumer protocol."""
    group, book = _begin(scene)
    return _play(scene, group, book)


def play_conversion(scene: Scene) -> Course:
    """Return the course of a classic group that the first member of the consumer protocol converts."""
    registers = _registers(scene)
    before = play_rounds_until(scene, registers.min(axis=1))
    group, _ = _begin(scene)
    group.inside, group.beat, group.state = before.inside, before.beat, before.state
    group.arrives, group.returns = _apart(scene.world, registers)
    group.leaves = np.where(before.gone, NEVER, scene.times.leaves)
    group.waiting = before.rejoins
    return _play(scene, group, before.book)


def play_reversion(scene: Scene) -> Course:
    """Return the course of a group of the consumer protocol whose members come again by the classic one.

    It is a classic group, whose members all have to rejoin, as soon as the last one of the consumer protocol has left
    (``validateOnlineDowngradeWithFencedMembers``). A static one does not leave: where it is the last one, it makes a
    classic group of it by coming again, and nobody has to rejoin (``validateOnlineDowngradeWithReplacedMember``).
    """
    world, times = scene.world, scene.times
    leaves = times.leaves[:, world.by_server]
    last = np.flatnonzero(world.by_server)[leaves.argmax(axis=1)]
    reverts = np.where(world.has_heir[last], NEVER, leaves.max(axis=1))
    group, book = _begin(scene)
    _play(scene, group, book, reverts)
    since = reverts[:, None]
    # What a target has promised is not kept, and who has joined since then is in the group as well.
    book.forget(book.gained > since)
    comes = ~world.by_server & np.isfinite(group.arrives) & (group.arrives <= since)
    inside, gone = group.inside | comes, world.by_server & ~group.inside
    beat = np.where(comes, times.arrives, group.beat)
    waits, behind = np.full(group.rejoins.shape, NEVER), _behind(world, group, since)
    return play_rounds_since(scene, Interrupted(book, inside, gone, beat, group.state, waits, behind), reverts)


def _behind(world: World, group: _Group, since: Floats) -> Booleans:
    """Return which classic members have not come to the group's last epoch by a moment.

    It is the generation of the classic group (``ClassicGroup#fromConsumerGroup``, 4.3), and their own is refused
    (ILLEGAL_GENERATION). Whoever goes raises it at once, though a target may be computed only later.
    """
    goes = group.inside & ~world.has_heir & (group.leaves < since)
    raised = (goes | (group.arrives < since)).any(axis=1, keepdims=True)
    return ~world.by_server & (raised | (group.rejoins > since))


def _registers(scene: Scene) -> Floats:
    """Return when the coordinator lists each newcomer: before the heartbeat with which that one takes what is free."""
    times, shape = scene.times, scene.times.arrives.shape
    part, found = scene.draw(scene.calibration.registers, shape), np.full(shape, NEVER)
    for index, life in enumerate(scene.world.lives):
        if life.is_server_side and life.starts_s is not None:
            ready = np.full(len(found), life.starts_s)
            gone = times.stops if index in scene.world.heirs else times.leaves
            ready = ready if life.follows is None else np.maximum(ready, gone[:, life.follows])
            found[:, index] = ready + part[:, index] * np.maximum(times.arrives[:, index] - ready, 0.0)
    return found


def _begin(scene: Scene) -> tuple[_Group, HoldBook]:
    """Return a group at rest and its open holds."""
    world, times, trials = scene.world, scene.times, scene.world.request.trials
    group = _Group(
        np.isneginf(times.arrives),
        *_apart(world, np.where(np.isneginf(times.arrives), NEVER, times.arrives)),
        times.leaves.copy(),
        _growth(world, times, trials),
        times.beat.copy(),
        np.full((trials, len(world.partitions)), -np.inf),
        np.full(trials, -np.inf),
        np.zeros(trials, dtype=np.intp),
        np.full(trials, first_side(world), dtype=np.intp),
        np.full(times.arrives.shape, -np.inf),
        np.full(times.arrives.shape, NEVER),
    )
    return group, HoldBook(scene.holders(), trials)


def _play(scene: Scene, group: _Group, book: HoldBook, until: Floats | float = NEVER) -> Course:
    """Compute targets, and let members come to them, until nothing changes any more, or until a moment."""
    times = scene.times
    for _ in range(2 * len(scene.world.lives) + 1):
        due, back = _next_target_at(scene.world, group, times), group.returns.min(axis=1, initial=NEVER)
        due, back = (np.where(at < until, at, NEVER) for at in (due, back))
        if not np.isfinite(np.minimum(due, back)).any():
            break
        _take_places(scene, group, book, np.where(back <= due, back, NEVER))
        at = np.where(back < due, NEVER, due)
        played = np.isfinite(at)
        _register(scene.world, group, times, at)
        after, _ = scene.assignments.play(group.state, group.inside, scene.names.of_trial, group.side)
        group.state = np.where(played, after, group.state)
        _converge(scene, group, at, book, played)
    return Course(book.close(times.stops, times.unsaved_s), group.state)


def _apart(world: World, arrives: Floats) -> tuple[Floats, Floats]:
    """Return when lives join, and when those do that come in the place of a former process."""
    in_place = np.isin(np.arange(arrives.shape[1]), list(world.heirs))
    return np.where(in_place, NEVER, arrives), np.where(in_place, arrives, NEVER)


def _take_places(scene: Scene, group: _Group, book: HoldBook, at: Floats) -> None:
    """Let the static member that comes again at a moment (NEVER where none does) take its former process's place.

    It has that one's part of the target at once, and no other one is computed for it
    (``getOrMaybeSubscribeStaticConsumerGroupMember``, 4.3).
    """
    for new, old in scene.world.heirs.items():
        mine = np.isfinite(at) & (group.returns[:, new] == at)
        if not mine.any():
            continue
        group.state = np.where(mine, scene.assignments.succeeded(group.state, old, new), group.state)
        group.inside[:, old] &= ~mine
        group.inside[:, new] |= mine
        group.beat[:, new] = np.where(mine, scene.times.arrives[:, new], group.beat[:, new])
        group.returns[:, new] = np.where(mine, NEVER, group.returns[:, new])
        _converge(scene, group, np.where(mine, at, NEVER), book, np.zeros_like(mine))


def _growth(world: World, times: LifeTimes, trials: int) -> Floats:
    """Return when the coordinator sees new partitions: at the next heartbeat of any member (3.4 step 6)."""
    initial = list(world.initial)
    if not world.expands or not initial:
        return np.full(trials, NEVER)
    found: Floats = (times.beat + times.interval)[:, initial].min(axis=1)
    return found


def _next_target_at(world: World, group: _Group, times: LifeTimes) -> Floats:
    """Return when the next target is computed, NEVER where nothing changes any more."""
    comes: Floats = group.arrives.min(axis=1, initial=NEVER)
    goes = np.where(group.inside & ~world.has_heir, group.leaves, NEVER).min(axis=1, initial=NEVER)
    event: Floats = np.minimum(np.minimum(comes, goes), group.grows)
    found: Floats = event
    if world.request.broker >= BATCHED_SINCE:
        interval = world.request.settings.seconds("group.consumer.assignment.interval.ms")
        found = np.maximum(event, group.computed + interval)
    if world.by_server.all() and not world.heirs:
        return found
    return _asked_at(world, group, times, found)


def _asked_at(world: World, group: _Group, times: LifeTimes, since: Floats) -> Floats:
    """Return when a member of the consumer protocol next has the coordinator compute a target (4.3).

    Its heartbeats do (``consumerGroupHeartbeat``), those of classic members do not: they hear of targets only. But who
    joins by the classic protocol does so once (``classicGroupJoinToConsumerGroup``). Without classic or static members
    it is taken to make no difference who does, as nobody hears of a target before a heartbeat of its own.
    """
    due = np.where(np.isfinite(since), since, 0.0)[:, None]
    first = np.where(group.inside, group.beat, group.arrives)
    known = np.isfinite(first) & world.by_server
    first = np.where(known, first, 0.0)
    beats = np.maximum(np.ceil((due - first) / times.interval), 0.0)
    asks = np.where(known, first + beats * times.interval, NEVER)
    asks = np.where(asks < times.stops, asks, NEVER)
    comes = np.minimum(group.arrives, group.returns)
    joins = np.where(~world.by_server & (comes >= due), comes, NEVER)
    asks = np.minimum(asks, joins)
    return np.where(np.isfinite(since), np.maximum(asks.min(axis=1), since), NEVER)


def _register(world: World, group: _Group, times: LifeTimes, at: Floats) -> None:
    """Let everybody in or out whose word has come by the time of the target."""
    played, until = np.isfinite(at), at[:, None]
    comes = played[:, None] & (group.arrives <= until)
    goes = played[:, None] & group.inside & ~world.has_heir & (group.leaves <= until)
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
    """By trial and life: it hears of a target (``told``) and has committed, stops what it gives up (``dropped``), and
    the coordinator knows that (``freed``). ``asks``: the first time it may be given something, ``asks_again``: the
    next one, which is the first for who gives something up.
    """

    told: Floats
    dropped: Floats
    saved: Floats
    freed: Floats
    asks: Floats
    asks_again: Floats


def _converge(scene: Scene, group: _Group, at: Floats, book: HoldBook, is_new: Booleans) -> None:
    """Let every member give up and take what its part of the target says; ``is_new``: where all have to hear of it."""
    world, times = scene.world, scene.times
    played = np.isfinite(at)[:, None]
    since = np.where(np.isfinite(at), at, 0.0)[:, None]
    target = np.where(played, scene.assignments.owners_in(group.state), book.life)
    held = np.maximum(book.life, 0)
    # Holds that another target promised and that have not begun: nobody has to give them up.
    promised = (book.life != NOBODY) & (book.gained > since)
    changes = played & (book.life != target)
    found = _answers(scene, group, since)
    alive = np.take_along_axis(group.inside & (found.told < times.stops), held, axis=1)
    pauses = is_new[:, None] & alive & ~promised & ~changes & _eager(world)[held] & (book.life != NOBODY)
    gives = changes & ~promised & (book.life != NOBODY)
    stops = np.take_along_axis(times.stops, held, axis=1)
    dropped = np.where(alive, np.take_along_axis(found.dropped, held, axis=1), stops)
    unsaved = np.take_along_axis(times.unsaved_s, held, axis=1)
    saved = np.where(alive, np.take_along_axis(found.saved, held, axis=1), dropped - unsaved)
    free_at = np.where(alive, np.take_along_axis(found.freed, held, axis=1), np.maximum(since, _freed(group, held)))
    group.free_at = np.where(gives | pauses, free_at, group.free_at)
    book.forget(changes & promised)
    book.end(gives | pauses, dropped, saved)
    takes = (changes | pauses) & (target != NOBODY)
    revokes = np.zeros(group.inside.shape, dtype=bool)
    trial, column = np.nonzero(gives & alive & ~_eager(world)[held])
    revokes[trial, held[trial, column]] = True
    second = np.where(revokes, found.asks_again, found.asks + times.interval)
    ready = np.maximum(group.free_at, since)
    gained = _taken(scene, group, target, takes, ready, (found.asks, second, revokes))
    book.begin(takes, target, gained)
    if not world.by_server.all():
        rejoined = is_new[:, None] & group.inside & ~world.by_server
        group.beat = np.where(rejoined, np.where(revokes, found.asks_again, found.asks), group.beat)
        group.rejoins = np.where(rejoined, found.told, group.rejoins)
        group.waiting = np.where(is_new[:, None], NEVER, group.waiting)


def _eager(world: World) -> Booleans:
    """Return which lives stop all they have in every rebalance: classic ones, unless they cooperate."""
    return np.array([not (life.is_server_side or life.is_cooperative) for life in world.lives], dtype=bool)


def _answers(scene: Scene, group: _Group, since: Floats) -> _Answers:
    """Return when each member does what about a target of ``since``."""
    shape, by_server = group.inside.shape, scene.world.by_server
    beat = _next_beat(group, scene.times, since)
    told = beat + scene.trips(shape) + scene.until_poll(beat)
    freed = told + scene.draw(scene.calibration.acknowledge_s, shape)
    if by_server.all():
        return _Answers(told, told, told, freed, beat, freed)
    hosted = find_rejoins(scene, hears(scene, group.rejoins, group.waiting, beat, since), since)
    return _Answers(
        np.where(by_server, told, hosted.heard),
        np.where(by_server, told, hosted.dropped),
        np.where(by_server, told, hosted.saved),
        np.where(by_server, freed, hosted.freed),
        np.where(by_server, beat, hosted.synced),
        np.where(by_server, freed, hosted.served),
    )


def _freed(group: _Group, held: Indexes) -> Floats:
    """Return when a silent holder's session ends; -inf for one that is out already."""
    ends = np.where(group.inside, group.leaves, -np.inf)
    return np.take_along_axis(ends, held, axis=1)


def _next_beat(group: _Group, times: LifeTimes, since: Floats) -> Floats:
    beats = np.maximum(np.ceil((since - group.beat) / times.interval), 0.0)
    beat: Floats = group.beat + beats * times.interval
    return _awake(times, beat)


def _awake(times: LifeTimes, at: Floats) -> Floats:
    """Return the times, put off until their member wakes where it sleeps."""
    return np.where((times.sleeps <= at) & (at < times.wakes), times.wakes, at)


def _taken(
    scene: Scene,
    group: _Group,
    target: Indexes,
    takes: Booleans,
    ready: Floats,
    beats: tuple[Floats, Floats, Booleans],
) -> Floats:
    """Return when the new owner of each partition hears that it may have it; NEVER for who does not live to hear it.

    A member that has been given something says so at once, and may be given more with the answer; a classic one asks
    again at its next heartbeat.
    """
    world, times = scene.world, scene.times
    beat, following, revokes = beats
    owner = np.maximum(target, 0)
    gained = np.full(takes.shape, NEVER)
    open_ = takes & np.isfinite(ready)
    listens = ~revokes
    for _ in range(_MOST_BEATS):
        heard = np.take_along_axis(np.where(listens & (beat < times.stops), beat, NEVER), owner, axis=1)
        given = open_ & (ready <= heard) & np.isfinite(heard)
        gained = np.where(given, heard, gained)
        open_ &= ~given
        got = np.zeros(beat.shape, dtype=bool)
        trial, column = np.nonzero(given)
        got[trial, owner[trial, column]] = True
        group.beat = np.where(got | ~listens, np.where(got, beat, following), group.beat)
        if not (open_ & np.take_along_axis(beat < times.stops, owner, axis=1)).any():
            break
        quick = beat + scene.draw(scene.calibration.acknowledge_s, beat.shape)
        quick = np.where(world.by_server, quick, beat + times.interval)
        beat = _awake(times, np.where(got, quick, np.where(listens, beat + times.interval, following)))
        listens = np.ones_like(revokes)
    return gained
