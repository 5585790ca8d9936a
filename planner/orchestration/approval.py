"""The question whether a plan is to be carried out: it asks for the phrases of exactly that plan."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict

from planner.orchestration.run_notes import leave_note

CONFIRM: Final = "confirm"
"""The field of the phrases; there is none where no step asks for one."""

RULE: Final = "A wrong phrase is refused, and the question is asked again: nothing is lost."


class AskApproval(ApprovalOperator):
    """Waits for *Approve* or *Reject* of the plan that task ``planned`` has returned as a ``PlanMessage``.

    The person types the phrases of steps that set offsets. After an approval with a missing or a wrong phrase the task
    says so in its log and waits for another answer; a rejection needs no phrase.
    """

    def __init__(self, *, planned: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.planned = planned

    def execute(self, context: Any) -> Any:
        """Ask."""
        self.params = ParamsDict(_fields(self._phrases(context)))
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Return the answer, as ``ApprovalOperator`` does, or ask again."""
        phrases = self._phrases(context)
        if event.get("chosen_options") == [self.APPROVE] and (problem := wrong_phrase(event, phrases)):
            self.log.warning("%s The question is asked again.", problem)
            return self.execute(context)
        if "error" not in event:
            # Before: a rejection skips the tasks that follow by an exception.
            leave_note(context["ti"], answer_note(context["ti"].xcom_pull(task_ids=self.planned)["name"], event))
        return super().execute_complete(context, event)

    def _phrases(self, context: Any) -> Sequence[str]:
        return tuple(context["ti"].xcom_pull(task_ids=self.planned)["phrases"])


def answer_note(plan: str, answer: Mapping[str, Any]) -> str:
    """Return the run's note once a person has answered, like ``plan shop-update: Approve by admin``."""
    person = (answer.get("responded_by_user") or {}).get("name")
    return f"plan {plan}: {', '.join(answer.get('chosen_options') or ())}{f' by {person}' if person else ''}"


def _fields(phrases: Sequence[str]) -> dict[str, Param]:
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
