"""The question whether a plan is to be carried out: it asks for the phrases of exactly that plan."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from planner.orchestration.run_notes import leave_note

if TYPE_CHECKING:
    from planner.approval.offers import Question

CONFIRM, REASON = "confirm", "reason"
"""The fields of the phrases, where a step asks for one, and of why the person answers so."""

RULE: Final = "A wrong phrase is refused, the log says which, and the question is asked again: nothing is lost."


class AskApproval(ApprovalOperator):
    """Waits for an answer to the ``Question`` that task ``planned`` has returned, by the policy's approvers.

    The person types the phrases that the plan asks for. After an approval with a missing or a wrong phrase the task
    says so in its log and waits for another answer; a rejection needs no phrase. It waits for as long as the plan
    holds, ``response_timeout`` at most; the answer is kept beside a plan that a run or a migration has written.
    """

    def __init__(self, *, planned: str = "", **kwargs: Any) -> None:
        # A question must not be lost to Airflow's own database or network, nor to who answers before the scheduler has
        # noted that the task waits (apache/airflow#71580 fails it): then it is asked again.
        super().__init__(subject="", retries=2, retry_delay=timedelta(seconds=20), **kwargs)
        self.planned = planned

    def asked(self, context: Any) -> "Question":
        """Return the question."""
        question: Question = context["ti"].xcom_pull(task_ids=self.planned)
        return question

    def execute(self, context: Any) -> Any:
        """Ask, unless the plan is over."""
        question = self.asked(context)
        self.params = ParamsDict({**phrase_fields(question["phrases"]), REASON: reason_field()})
        self.subject, self.body = question["subject"], question["body"]
        self.assigned_users = [{"id": name, "name": name} for name in question["approvers"]]
        left = datetime.fromisoformat(question["until"]) - datetime.now(UTC)
        if left <= timedelta():
            raise self.over(context)
        self.response_timeout = min(left, self.response_timeout or left)
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Return the answer, as ``ApprovalOperator`` does, or ask again."""
        if event.get("error_type") == "timeout":
            raise self.over(context)
        phrases = self.asked(context)["phrases"]
        if event.get("chosen_options") == [self.APPROVE] and (problem := wrong_phrase(event, phrases)):
            self.log.warning("%s The question is asked again.", problem)
            return self.execute(context)
        if "error" not in event:
            # Before: a rejection skips the tasks that follow by an exception.
            person = (event.get("responded_by_user") or {}).get("name")
            reason = (event.get("params_input") or {}).get(REASON)
            self.keep(context, ", ".join(event["chosen_options"]), person, reason)
            self.note(context, event)
        return super().execute_complete(context, event)

    def over(self, context: Any) -> AirflowException:
        """Return the error that ends a question which nobody has answered in time, kept as such."""
        question = self.asked(context)
        self.keep_nobody(context)
        # Failed, not skipped: what follows by another way than this answer must not begin.
        return AirflowFailException(
            f"plan {question['name']} held until {question['until']}, and nobody had answered: make another one"
        )

    def keep_nobody(self, context: Any) -> None:
        """Keep that nobody has answered."""
        from planner.approval.offers import NOBODY  # noqa: PLC0415  DAG files that import us stay quick

        self.keep(context, NOBODY, None, None)

    def keep(self, context: Any, answer: str, person: str | None, reason: str | None) -> None:
        """Keep what was answered beside the plan."""
        from planner.approval.offers import Answer, keep_answer  # noqa: PLC0415

        question, now = self.asked(context), datetime.now(UTC).isoformat(timespec="seconds")
        kept = Answer(
            plan=question["name"], digest=question["digest"], answer=answer, by=person, at=now, reason=reason or None
        )
        if question["is_of_run"]:
            keep_answer(Path(question["file"]), kept)

    def note(self, context: Any, event: Mapping[str, Any]) -> None:
        """Let the answer be the run's note."""
        leave_note(context["ti"], answer_note(self.asked(context)["name"], event))


class AskForOffer(AskApproval):
    """Waits for an answer to one ``Question`` of several.

    A plan that is over before anybody answers is skipped: the next run makes one on fresh data. ``all_asked`` is the
    task that has returned all questions, for the run's note.
    """

    template_fields = (*ApprovalOperator.template_fields, "question")

    def __init__(self, *, question: "Question", all_asked: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.question, self.all_asked = question, all_asked

    def asked(self, context: Any) -> "Question":  # noqa: ARG002
        """Return the question."""
        return self.question

    def over(self, context: Any) -> AirflowException:
        """Return what skips the tasks that follow."""
        self.keep_nobody(context)
        self.note(context, {})
        return AirflowSkipException(
            f"plan {self.question['name']} held until {self.question['until']}, and nobody had answered: the next run "
            "makes one on fresh data"
        )

    def note(self, context: Any, event: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Let all answers until now be the run's note."""
        from planner.approval.offers import describe_answer, read_answer  # noqa: PLC0415

        questions = context["ti"].xcom_pull(task_ids=self.all_asked, map_indexes=-1)
        answers = [read_answer(Path(each["file"])) for each in questions]
        leave_note(context["ti"], "; ".join(describe_answer(each) for each in answers if each is not None))


def reason_field() -> Param:
    """Return the form's field for why a person answers so."""
    return Param(
        None,
        type=["null", "string"],
        title="Reason",
        description="Why, for the next who is asked for this change. May stay empty.",
        source="task",
    )


def answer_note(plan: str, answer: Mapping[str, Any]) -> str:
    """Return the run's note once a person has answered, like ``plan shop-update: Approve by admin``."""
    person = (answer.get("responded_by_user") or {}).get("name")
    return f"plan {plan}: {', '.join(answer.get('chosen_options') or ())}{f' by {person}' if person else ''}"


def phrase_fields(phrases: Sequence[str]) -> dict[str, Param]:
    """Return the form's field for the phrases that are to be typed; none where no step asks for one."""
    if not phrases:
        return {}
    field = Param(
        None,
        type=["null", "string"],
        format="multiline",
        title="Phrase" if len(phrases) == 1 else "Phrases, one a line",
        description=f"To approve, type word by word: {'; '.join(phrases)}. {RULE}",
        source="task",
    )
    return {CONFIRM: field}


def typed_phrases(answer: Mapping[str, Any]) -> Sequence[str]:
    """Return the phrases that the person typed, without blanks around them."""
    text = (answer.get("params_input") or {}).get(CONFIRM) or ""
    return tuple(line.strip() for line in str(text).splitlines() if line.strip())


def wrong_phrase(answer: Mapping[str, Any], phrases: Sequence[str]) -> str | None:
    """Return why the answer does not approve a plan that asks for these phrases, ``None`` where it does."""
    typed = typed_phrases(answer)
    missing = [phrase for phrase in phrases if phrase not in typed]
    unknown = [phrase for phrase in typed if phrase not in phrases]
    if missing:
        return f"The phrase {missing[0]!r} was not typed" + (f", but {unknown[0]!r}." if unknown else ".")
    return f"No step asks for the phrase {unknown[0]!r}." if unknown and phrases else None
