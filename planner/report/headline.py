"""The first half minute: what was decided, why, and four figures."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.decision.decision import Decision, HoldCause
from planner.model.deployments import DEPLOYMENT
from planner.report import words
from planner.report.case import Case
from planner.report.consumers import Mark
from planner.simulation.outcome import CandidateOutcome

MOST_CHIPS = 24
"""Consumers shown one by one; more are shown as a number."""

LONGEST_HEAD = 60


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from ``low`` to ``high`` with an optional mark, all as shares of the track (0 to 1)."""

    name: str
    low: float
    high: float
    mark: float | None = None
    is_forecast: bool = False


@dataclass(frozen=True, slots=True)
class Chip:
    """One consumer among the present and coming ones; ``change`` is ``stays``, ``starts`` or ``stops``."""

    mark: Mark
    change: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure of the decision: now and, where it changes, then."""

    name: str
    now: str
    then: str | None
    note: str
    unit: str = ""
    bars: tuple[Bar, ...] = ()
    chips: tuple[Chip, ...] = ()


@dataclass(frozen=True, slots=True)
class Headline:
    """The one sentence, split for the eye: ``head`` big, ``rest`` below it."""

    head: str
    rest: str
    answer: str
    facts: tuple[Fact, ...]
    caution: str = ""


CAUTION = "The figures below rest on data that the decision did not accept."

DOUBTED = (HoldCause.OLD_DATA, HoldCause.INCOMPLETE_DATA, HoldCause.UNSETTLED)
"""Causes after which the figures are shown, but with that word of caution."""


def headline(case: Case) -> Headline:
    """Return the sentence of the decision and its figures."""
    decision = case.record.decision
    head, rest = split_sentence(decision.reason)
    facts = (_consumers(case), _busiest(case), _moves(case), _backlog(case))
    caution = CAUTION if decision.hold_cause in DOUBTED else ""
    return Headline(head, rest, "hold" if decision.is_hold else "scale", facts, caution)


def split_sentence(sentence: str) -> tuple[str, str]:
    """Return the text before the first colon and the rest, when the first is short enough to stand alone."""
    head, colon, rest = sentence.partition(": ")
    if not colon or len(head) > LONGEST_HEAD:
        return sentence, ""
    return head, rest[:1].upper() + rest[1:]


def _consumers(case: Case) -> Fact:
    decision = case.record.decision
    then = None if decision.is_hold else str(decision.target)
    return Fact(
        name="Consumers" if decision.members_per_pod == 1 else "Pods",
        now=str(decision.current),
        then=then,
        note=f"{_target(case)}{', unchanged' if decision.is_hold else ''}{_each(decision)}.",
        chips=tuple(chips(case)),
    )


def _target(case: Case) -> str:
    if case.plan is not None:
        return case.plan.target
    deployment = case.snapshot.deployment
    return f"{DEPLOYMENT if deployment is None else deployment.kind} {case.record.deployment}"


def _each(decision: Decision) -> str:
    return "" if decision.members_per_pod == 1 else f"; each runs {words.consumers(decision.members_per_pod)}"


def chips(case: Case) -> Iterator[Chip]:
    """Yield who stays, starts and stops; nothing when there are too many to show."""
    running = case.snapshot.clients
    after = running if case.is_hold or case.chosen is None else [load.client for load in case.chosen.loads]
    everybody = list(dict.fromkeys([*running, *after]))
    if len(everybody) > MOST_CHIPS:
        return
    for client in everybody:
        change = "stays" if client in running and client in after else "starts" if client in after else "stops"
        yield Chip(case.marks[client], change)


def _busiest(case: Case) -> Fact:
    now, then = _utilisation(case.staying), _utilisation(case.chosen)
    changes = not case.is_hold
    full = max(1.0, now or 0.0, (then or 0.0) if changes else 0.0)
    bound = None if case.max_utilisation is None else case.max_utilisation / full
    shown = [("now", now, False)] + ([("then", then, True)] if changes else [])
    return Fact(
        name="Busiest consumer",
        now=words.percent(now),
        then=words.percent(then) if changes else None,
        note=_bound_note(case),
        bars=tuple(Bar(name, 0.0, share / full, bound, coming) for name, share, coming in shown if share is not None),
    )


def _bound_note(case: Case) -> str:
    note = "Of what it can do, at the recent upper rate"
    bound = "." if case.max_utilisation is None else f"; the bound is {words.percent(case.max_utilisation)}."
    return note + bound


def _utilisation(outcome: CandidateOutcome | None) -> float | None:
    return None if outcome is None else outcome.utilisation


def _moves(case: Case) -> Fact:
    total, nouns = len(case.snapshot.data_queues), words.queue_nouns(case.snapshot.system)
    name, of_all = f"{nouns.capitalize()} that move", f"of {total}"
    if case.is_hold:
        return Fact(name, "0", None, "Nothing changes.", unit=of_all)
    fewest = case.chosen.moved_fewest if case.chosen else None
    most = case.chosen.moved_most if case.chosen else None
    is_known = bool(total) and fewest is not None and most is not None
    bars = (Bar(f"of all {nouns}", (fewest or 0) / total, (most or 0) / total),) if is_known and most else ()
    why = "Known exactly." if fewest == most else "Which of these depends on what is not known yet."
    return Fact(name, words.span(fewest, most), None, why, of_all, bars)


def _backlog(case: Case) -> Fact:
    known = [state.lag for state in case.snapshot.data_queues if state.lag is not None]
    if len(known) < len(case.snapshot.data_queues):
        unknown = words.queues(len(case.snapshot.data_queues) - len(known), case.snapshot.system)
        return Fact("Backlog", f"at least {words.number(sum(known))}", None, f"Unknown for {unknown}.", "messages")
    lag = sum(known)
    decision = case.record.decision
    notes = [f"{end_of_backlog(case.chosen, lag)}." if lag else "nothing waits."]
    if lag and not case.is_hold:
        staying = words.pods(decision.current, decision.current * decision.members_per_pod)
        notes.append(f"Staying at {staying}: {end_of_backlog(case.staying, lag)}.")
    note = " ".join(f"{each_note[:1].upper()}{each_note[1:]}" for each_note in notes)
    return Fact("Backlog", words.number(lag), None, note, "message" if lag == 1 else "messages")


def end_of_backlog(outcome: CandidateOutcome | None, lag: int | None) -> str:
    """Return when the backlog is gone under the outcome, in words."""
    if lag == 0:
        return "none"
    if outcome is None or outcome.keeps_up is None or lag is None:
        return "end unknown"
    return words.gone(outcome.drain_s, lag)
