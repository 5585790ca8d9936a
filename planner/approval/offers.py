"""Plans on their way to people: which plans of a run are offered for an approval, what is asked, what was answered.

A schedule makes the same plan anew at every run. So a change of a policy is offered once while its plan holds, whatever
is answered, unless the offer never came to a question; another change of the same policy is offered at once.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, TypedDict, cast

from pydantic import TypeAdapter

from planner.approval.handover import PlanMessage, read_plan
from planner.documents.data import DataKind
from planner.documents.plan import PLAN, read_document
from planner.documents.policy import ConsumerScalingPolicy, read_policy
from planner.errors import BadInputError, PlannerError
from planner.isolation import attempt
from planner.policies.cluster_reports import ClusterReport
from planner.policies.fleet import read_origin
from planner.rollout.explain import final_steps, key_figures
from planner.rollout.plan import RolloutPlan
from planner.storage.files import write_atomically
from planner.storage.layout import PolicyFiles, RunFolder, asked_plan, is_time_name
from planner.storage.run import Decided, RunFiles
from planner.text.printable import one_line

log = logging.getLogger(__name__)

FILE: Final = "offered-plans.json"
LONGEST_REASON: Final = 500
"""Characters of a person's reason that are kept."""
NOBODY: Final = "Nobody"
"""The answer where a plan was over before anybody had answered."""

Offer = TypedDict(
    "Offer", {"policy": str, "group": str, "from": int, "to": int, "reason": str, "digest": str, "plan": str}
)
"""One plan as its asset event names it: the change in counts of pods, one sentence, the plan's digest and file."""


class Question(PlanMessage):
    """What a person is asked: ``subject`` and ``body`` in Markdown; ``approvers`` alone may answer, everybody if none.

    ``until`` is when the plan is over, as text. ``is_of_run`` tells whether the plan lies where a run or a migration
    wrote it, with its policy: only there the approvers are known, and only there the answer is kept.
    """

    policy: str
    until: str
    subject: str
    body: str
    approvers: list[str]
    is_of_run: bool


class Answer(TypedDict):
    """What was answered: ``Approve``, ``Reject`` or ``Nobody``; who said so, when, and why, as far as that is known."""

    plan: str
    digest: str
    answer: str
    by: str | None
    at: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class OfferedPlan:
    """The plan of a policy that was offered last: its change in counts, and until when it holds."""

    before: int
    after: int
    digest: str
    until: datetime

    def covers(self, plan: "OfferedPlan", at: datetime) -> bool:
        """Tell whether people have been asked for this change already, by another plan that still holds at ``at``.

        The same plan again is a task that is tried again: the event of the first try may never have been.
        """
        is_same_change = (self.before, self.after) == (plan.before, plan.after)
        return is_same_change and self.digest != plan.digest and at < self.until


@dataclass(frozen=True, slots=True)
class OfferedPlans:
    """The plan of each policy, by its name, that was offered last."""

    policies: dict[str, OfferedPlan] = field(default_factory=dict)


OFFERED_PLANS: DataKind[OfferedPlans] = DataKind("OfferedPlans", TypeAdapter(OfferedPlans))


@dataclass(frozen=True, slots=True)
class Offers:
    """The plans to offer, and why others cannot be offered, by policy."""

    plans: Sequence[Offer] = ()
    failures: Mapping[str, str] = field(default_factory=dict)


def offer_plans(run: RunFiles, decided: Sequence[Decided], report: ClusterReport, at: datetime) -> Offers:
    """Return which plans of a run to offer at time ``at``, and keep them as offered.

    Where policies are objects, a plan is offered only if ``report`` has it as the policy's open plan: people are asked
    for one that the cluster has. A plan that is over is not offered.
    """
    path = run.data / FILE
    known, is_cluster = _read_offered(path), read_origin(run.folder) is not None
    offers, failures = list[Offer](), dict[str, str]()
    for line in decided:
        if line["plan"] is None:
            continue
        result = attempt(line["policy"], "offer", _read_offer_of, line)
        if isinstance(result, PlannerError):
            failures[line["policy"]] = f"its plan was not offered: {result}"
            continue
        name, offered, offer = result
        before = known.get(line["policy"])
        is_open = not is_cluster or report.plans.get(line["policy"]) == name
        is_known = (
            before is not None and before.covers(offered, at) and not _was_missed(run.data, line["policy"], before)
        )
        if not is_open or at >= offered.until or is_known:
            continue
        known[line["policy"]] = offered
        offers.append(offer)
    write_atomically(path, OFFERED_PLANS.dump(OfferedPlans(known)))
    return Offers(offers, failures)


def _was_missed(data: Path, policy: str, offered: OfferedPlan) -> bool:
    """Return whether people were not asked for the plan of a policy that was offered last.

    An event that meets an earlier one which Airflow has not taken yet starts no run (``OFFERED`` of
    ``planner.orchestration.assets``). Where nobody was ever asked for any plan, nothing keeps it, and the answer is no.
    """
    file = asked_plan(data, policy)
    if not file.parent.is_dir():
        return False
    return not file.exists() or file.read_text(encoding="utf-8").strip() != offered.digest


def keep_asked(questions: Sequence[Question]) -> None:
    """Write for each question's policy that people are asked for this plan, so that it is not offered once more."""
    for question in questions:
        data = Path(question["file"]).parents[3]  # <data>/runs/<run>/<policy>/plan.yaml
        write_atomically(asked_plan(data, question["policy"]), question["digest"] + "\n")


def _read_offer_of(line: Decided) -> tuple[str, OfferedPlan, Offer]:
    """Return the plan's name, what is kept of it, and its event."""
    file = Path(str(line["plan"]))
    message, plan = read_plan(file), _read_plan(file)
    before, after = plan.preconditions.replicas, plan.target_replicas
    if after is None:
        raise BadInputError(f"{file} is a migration: those are asked for by their own DAG")
    offer: Offer = {
        "policy": line["policy"],
        "group": plan.group.group,
        "from": before,
        "to": after,
        "reason": plan.reason,
        "digest": message["digest"],
        "plan": str(file),
    }
    return message["name"], OfferedPlan(before, after, message["digest"], plan.valid_until), offer


def _read_plan(file: Path) -> RolloutPlan:
    return PLAN.parse(read_document(file), str(file))


def _read_offered(path: Path) -> dict[str, OfferedPlan]:
    """Return what earlier runs offered. A file that cannot be read is set aside: people are asked once more."""
    if not path.exists():
        return {}
    try:
        return dict(OFFERED_PLANS.read(path).policies)
    except BadInputError as error:
        aside = path.with_name(f"{path.name}.unreadable")
        path.replace(aside)
        log.warning("%s: plans are offered once more, and the file is kept as %s", error, aside.name)
        return {}


def read_offer(extra: object) -> Offer:
    """Return the offer that an asset event carries. Raises ``BadInputError`` for anything else."""
    content = extra if isinstance(extra, Mapping) else {}
    for name, kind in Offer.__annotations__.items():
        if type(content.get(name)) is not kind:
            raise BadInputError(
                f"an asset event is no plan of the planner: its extra has no {name}, expected one of type "
                f"{kind.__name__}: only the task offer of consumer_planner makes such events"
            )
    return cast("Offer", {name: content[name] for name in Offer.__annotations__})


def ask(offer: Offer, link: str | None = None) -> Question:
    """Return the question for an offered plan; ``link`` is where its page is.

    Raises ``BadInputError`` where its files are gone or are not those that were offered.
    """
    file = Path(offer["plan"])
    message = read_plan(file)
    if message["digest"] != offer["digest"]:
        raise BadInputError(f"{file} has digest {message['digest']}, not {offer['digest']}: it was changed meanwhile")
    return question_on(message, link)


def question_on(message: PlanMessage, link: str | None = None) -> Question:
    """Return the question whether a plan is to be carried out: the same whoever has had the plan made.

    ``link`` is where its page is. The policy is the one that the run or the migration has kept beside the plan. Raises
    ``BadInputError`` where the plan's files are gone or broken.
    """
    file = Path(message["file"])
    plan, policy = _read_plan(file), _policy_beside(file)
    approvers = None if policy is None else list(policy.spec.approval.approvers)
    last = None if policy is None else last_answer(file)
    details = message["explanation"]
    return Question(
        **message,
        policy=plan.policy,
        until=plan.valid_until.isoformat(),
        subject=_subject(plan, message["name"]),
        body="\n".join((*_facts(plan, message["digest"], link, last, approvers), "\n**In words**\n", details)),
        approvers=approvers or [],
        is_of_run=policy is not None,
    )


def _policy_beside(plan: Path) -> ConsumerScalingPolicy | None:
    """Return the policy that was kept with a plan, ``None`` where the plan's file lies elsewhere."""
    kept = (plan.with_name("policy.yaml"), RunFolder(plan.parent.parent).policies / f"{plan.parent.name}.yaml")
    is_landed = is_time_name(plan.parent.parent.name)
    return next((read_policy(path) for path in kept if is_landed and path.exists()), None)


def _subject(plan: RolloutPlan, name: str) -> str:
    if plan.target_replicas is None:
        return f"Carry out migration {name}?"
    return f"{plan.policy}: {plan.preconditions.replicas} to {plan.target_replicas}?"


def _facts(
    plan: RolloutPlan, digest: str, link: str | None, last: Answer | None, approvers: Sequence[str] | None
) -> Iterator[str]:
    yield f"**{one_line(plan.reason)}**\n"
    yield from (f"- {name}: {figure}" for name, figure in key_figures(plan))
    steps = ", ".join(map(str, final_steps(plan)))
    yield f"- Steps without a way back: {steps or 'none'}"
    yield f"- Group {one_line(plan.group.group)}, {one_line(plan.target)}"
    yield f"- It may begin until {plan.valid_until:%Y-%m-%d %H:%M:%S %Z}"
    yield f"- Digest `{digest}`"
    if link is not None:
        yield f"- [The page of the plan]({link})"
    if approvers is None:
        yield "- Approvers: unknown, as no policy lies with this plan: whoever may answer tasks may answer"
    elif approvers:
        yield f"- Approvers: {', '.join(map(one_line, approvers))}"
    if last is not None:
        yield f"- Last time: {describe_answer(last)}"


def keep_answer(plan: Path, answer: Answer) -> None:
    """Write what was answered beside the plan; a person's later answer to the same plan replaces it.

    A question that is cleared and then over says that nobody has answered: what somebody had said before stays.
    """
    earlier = read_answer(plan)
    if answer["answer"] == NOBODY and earlier is not None and earlier["digest"] == answer["digest"]:
        return
    text = {name: value if value is None else one_line(str(value))[:LONGEST_REASON] for name, value in answer.items()}
    write_atomically(PolicyFiles(plan.parent).answer, json.dumps(text, indent=2) + "\n")


def read_answer(plan: Path) -> Answer | None:
    """Return what was answered to a plan, ``None`` where nothing was yet or the file cannot be read."""
    try:
        content = json.loads(PolicyFiles(plan.parent).answer.read_text(encoding="utf-8"))
        return cast("Answer", {name: content[name] for name in Answer.__annotations__})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def last_answer(plan: Path) -> Answer | None:
    """Return the newest answer to an earlier plan of the same policy."""
    run, policy = plan.parent.parent, plan.parent.name
    earlier = (folder for folder in run.parent.iterdir() if is_time_name(folder.name) and folder.name < run.name)
    for folder in sorted(earlier, reverse=True):
        answer = read_answer(folder / policy / plan.name)
        if answer is not None:
            return answer
    return None


def describe_answer(answer: Answer) -> str:
    """Return an answer in words, like ``Reject of shop-20261125-100000 by ana, 2026-11-25 10:04: too many at once``."""
    if answer["answer"] == NOBODY:
        return f"nobody answered for {answer['plan']} while it held"
    person, reason = answer["by"], answer["reason"]
    words = f"{answer['answer']} of {answer['plan']}{f' by {person}' if person else ''}, {answer['at'][:16]}"
    return f"{words}: {reason}" if reason else words
