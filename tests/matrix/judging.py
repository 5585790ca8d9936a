"""What the planner answers about a recorded cell as its watch goes on, compared with the truth."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from planner import pipeline
from planner.advice.answer import TOO_FEW, TOO_MANY
from planner.cli.concluding import Conclusion
from planner.decision.decision import Decision, HoldCause
from planner.diagnosis.diagnose import examine
from planner.diagnosis.finding import Severity
from planner.diagnosis.group_evidence import GroupEvidence
from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.model.samples import GroupSample
from planner.model.snapshot import Capacity
from planner.sources.capture import open_capture
from tests.advice_replay import replay
from tests.matrix.cells import BLOCKED_QUEUE, SLOW_MEMBER, Cell
from tests.matrix.recording import TRUTH_FILE, judged_s
from tests.matrix.truth import WITHIN, Truth, targets_in_time, truth

EVERY_S = 30
"""An answer is asked for so often, and the first time after so long."""

SHORTEST_WINDOW_S = 60

RIGHT, HONEST, WRONG, OPEN = "right", "honest", "wrong", "open"
"""``honest``: it holds and says that it does not know, where nothing that can be read tells it.

``open``: not judged."""

UNKNOWN = (HoldCause.UNKNOWN_CAPACITY, HoldCause.RIGHT_ALREADY)

OF_CAUSE = {SLOW_MEMBER: HoldCause.SLOW_MEMBERS, BLOCKED_QUEUE: HoldCause.BLOCKED_QUEUES}
"""What a group with this cause is held for."""

CLAIMS = (
    HoldCause.RIGHT_ALREADY,
    HoldCause.NO_COUNT_MEETS,
    HoldCause.GROWTH_DID_NOT_HELP,
    HoldCause.COMMITS_WENT_BACK,
    *OF_CAUSE.values(),
)
"""Causes that say how a group is; the others say what is not known of it."""


@dataclass(frozen=True)
class Answer:
    """What ``planner snapshot``, ``plan`` and ``doctor`` say after ``seconds`` of watching.

    ``capacity`` in messages per second, with its bounds. ``findings`` are codes by severity.
    """

    seconds: int
    capacity: float | None
    is_lower_bound: bool
    low: float | None
    high: float | None
    target: int
    hold_cause: str | None
    reason: str
    findings: dict[str, list[str]]


@dataclass(frozen=True)
class Advised:
    """What ``planner advise`` concludes without an option, after ``seconds``; ``highest`` is its own default bound."""

    seconds: int
    target: int
    cause: str
    highest: int
    lag: int | None
    is_lower_bound: bool
    reason: str


@dataclass(frozen=True)
class Verdict:
    """How the answers about one cell compare with the truth; seconds are those of the watch until right for good.

    ``default_window`` is of the plan with the policy's own window, open where the watch was shorter than that.
    """

    cell: str
    true_capacity: float
    right_targets: list[int] | None
    true_causes: list[str]
    capacity: str
    decision: str
    diagnosis: str
    capacity_after_s: int | None
    decision_after_s: int | None
    diagnosis_after_s: int | None
    last: Answer
    by_default_window: Answer
    default_window: str
    advised: Advised
    advice: str

    @property
    def is_green(self) -> bool:
        """True where nothing was wrong at the end of the watch."""
        return WRONG not in (self.capacity, self.decision, self.diagnosis, self.default_window, self.advice)


def judge_folder(folder: Path) -> Verdict:
    """Return the verdict on the recorded cell in ``folder``."""
    kept = json.loads((folder / TRUTH_FILE).read_text())
    cell = Cell(**kept["cell"])
    capture = open_capture(folder)
    return judge(
        cell, tuple(capture.samples()), capture.header.sample_every_s, kept["policy"], kept["consumed_by_client"]
    )


def judge(
    cell: Cell,
    samples: Sequence[GroupSample],
    sample_every_s: float,
    policy_text: str,
    rates: dict[str, float],
    every_s: int = EVERY_S,
) -> Verdict:
    """Return the verdict on a cell whose group gave these samples, asked every ``every_s`` of the watch."""
    known = truth(cell, rates)
    policy = _one_a_pod(parse_policy(policy_text, f"policy of {cell.name}"))
    answers = list(_answers(cell, samples, sample_every_s, policy, every_s))
    last = answers[-1]
    judged = [(_capacity(a, known, cell), _decision(a, known, cell), _diagnosis(a, known)) for a in answers]
    after = [_after(answers, [of_answer[part] for of_answer in judged]) for part in range(3)]
    whole = _answer(samples, sample_every_s, policy, last.seconds)
    advised = advised_by(replay(samples, sample_every_s, judged_s(cell, _watched_s(samples))))
    return Verdict(
        cell.name,
        round(known.capacity, 2),
        sorted(known.targets) if known.targets is not None else None,
        sorted(known.causes),
        *judged[-1],
        *after,
        last,
        whole,
        _decision(whole, known, cell) if last.seconds >= policy.spec.window.seconds else OPEN,
        advised,
        judge_advice(advised, known, cell),
    )


def _one_a_pod(policy: ConsumerScalingPolicy) -> ConsumerScalingPolicy:
    """Return the policy as cells are recorded now: recordings of before state no ``membersPerPod``, which is 1."""
    return policy.model_copy(update={"spec": policy.spec.model_copy(update={"members_per_pod": 1})})


def _answers(
    cell: Cell, samples: Sequence[GroupSample], sample_every_s: float, policy: ConsumerScalingPolicy, every_s: int
) -> Iterator[Answer]:
    """Yield the answers as the watch goes on, with the window that was watched so far."""
    watched_s = judged_s(cell, _watched_s(samples))
    for seconds in range(every_s, max(int(watched_s + sample_every_s / 2), every_s) + 1, every_s):
        window_s = min(max(SHORTEST_WINDOW_S, seconds), policy.spec.window.seconds)
        window = policy.spec.window.model_copy(update={"seconds": window_s})
        spec = policy.spec.model_copy(update={"window": window})
        yield _answer(samples, sample_every_s, policy.model_copy(update={"spec": spec}), seconds)


def _watched_s(samples: Sequence[GroupSample]) -> float:
    return (samples[-1].at - samples[0].at).total_seconds()


def _answer(
    samples: Sequence[GroupSample], sample_every_s: float, policy: ConsumerScalingPolicy, seconds: int
) -> Answer:
    until = samples[0].at + timedelta(seconds=seconds + sample_every_s / 2)
    part = tuple(sample for sample in samples if sample.at <= until)
    snapshot = pipeline.take_snapshot(part, sample_every_s, policy, part[-1].at)
    decision = pipeline.decide(snapshot, pipeline.simulate(snapshot, policy), policy).decision
    diagnosis = examine(GroupEvidence(part, sample_every_s, policy.spec.strategy, policy.objective.oldest_message_s))
    findings = {
        severity.value: [one.code for one in diagnosis.findings if one.severity is severity] for severity in Severity
    }
    return _as_answer(seconds, snapshot.capacity, decision, findings)


def advised_by(conclusion: Conclusion) -> Advised:
    """Return what is judged of an advice."""
    advice, capacity = conclusion.advice, conclusion.snapshot.capacity
    return Advised(
        int(advice.watched_s),
        advice.decision.target,
        advice.cause,
        conclusion.policy.spec.max_replicas,
        advice.lag,
        bool(capacity and capacity.is_lower_bound),
        advice.decision.reason,
    )


def _as_answer(seconds: int, capacity: Capacity | None, decision: Decision, findings: dict[str, list[str]]) -> Answer:
    return Answer(
        seconds,
        capacity.messages_per_s if capacity else None,
        bool(capacity and capacity.is_lower_bound),
        capacity.low if capacity else None,
        capacity.high if capacity else None,
        decision.target,
        decision.hold_cause.value if decision.hold_cause else None,
        decision.reason,
        findings,
    )


def _capacity(answer: Answer, known: Truth, cell: Cell) -> str:
    if cell.cause:
        return OPEN
    if answer.capacity is None:
        return HONEST
    if answer.is_lower_bound:
        return HONEST if answer.capacity <= known.capacity * (1 + WITHIN) else WRONG
    is_close = abs(answer.capacity - known.capacity) <= WITHIN * known.capacity
    return RIGHT if is_close else WRONG


def _decision(answer: Answer, known: Truth, cell: Cell) -> str:
    """A group that drowns is never left alone; one that keeps up may be, where its capacity is not known."""
    if known.targets is None:
        return OPEN
    if answer.target in known.targets:
        if answer.hold_cause is None or answer.hold_cause in _true_claims(answer, known, cell):
            return RIGHT
        return WRONG if answer.hold_cause in CLAIMS else HONEST
    is_left_alone = answer.target == cell.members and answer.hold_cause in UNKNOWN
    keeps_up = known.keeps_up and (answer.is_lower_bound or answer.capacity is None)
    return HONEST if is_left_alone and keeps_up else WRONG


def judge_advice(advised: Advised, known: Truth, cell: Cell) -> str:
    """Judge it as any decision, by its own bound, and by its objective: a backlog is to be gone in ten minutes."""
    if known.targets is None:
        return OPEN
    if advised.cause in (TOO_FEW, TOO_MANY):
        fits = targets_in_time(cell, known, advised.highest, advised.lag)
        return RIGHT if cell.cause not in OF_CAUSE and advised.target in fits else WRONG
    cause = HoldCause(advised.cause)
    if cause in _true_claims(advised, known, cell):
        return RIGHT
    return HONEST if cause not in CLAIMS and known.keeps_up else WRONG


def _true_claims(answer: Answer | Advised, known: Truth, cell: Cell) -> tuple[HoldCause, ...]:
    """Return what may be said of a group that is left as it is: it is right, held by its cause, or beyond any count.

    A group that keeps up is right as it is, unless its capacity is known and even the best count is above the bound.
    """
    if cell.cause in OF_CAUSE:
        return (OF_CAUSE[cell.cause],)
    if not known.keeps_up:
        return (HoldCause.NO_COUNT_MEETS,)
    is_above = not answer.is_lower_bound and known.is_beyond_any_count
    return (HoldCause.RIGHT_ALREADY, *([HoldCause.NO_COUNT_MEETS] if is_above else []))


def _diagnosis(answer: Answer, known: Truth) -> str:
    errors = set(answer.findings[Severity.ERROR])
    codes = {code for of_severity in answer.findings.values() for code in of_severity}
    is_named = not known.causes or bool(codes & known.causes)
    is_misled = bool(errors - known.causes) or (not known.causes and "too-few-consumers" in codes)
    return RIGHT if is_named and not is_misled else WRONG


def _after(answers: Sequence[Answer], verdicts: Sequence[str]) -> int | None:
    """Return from which second on no verdict is wrong any more, ``None`` where the last one is."""
    since = None
    for answer, verdict in zip(answers, verdicts, strict=True):
        since = None if verdict == WRONG else since if since is not None else answer.seconds
    return since


def document(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict as JSON takes it."""
    return {**asdict(verdict), "is_green": verdict.is_green}
