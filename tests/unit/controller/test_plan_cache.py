"""What is heard of plans: who needs a turn is woken, what has changed is told once, in whatever order it comes."""

from dataclasses import replace
from typing import Any

from planner.controller.agenda import Agenda, Key
from planner.controller.plan_cache import UNREADABLE, PlanCache
from planner.deployments.plans import FINALIZER
from planner.documents.plan import PLAN
from planner.documents.status import dump_status
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.execution.progress import RolloutStatus
from tests.pod_groups import plan_for
from tests.step_builders import STEPS

KEY: Key = ("shop", "one")
NEW = RolloutStatus()
RUNS, DONE = replace(NEW, phase=Phase.RUNNING), replace(NEW, phase=Phase.SUCCEEDED, ended="new")


def found(version: int, status: RolloutStatus | None = NEW, uid: str = "u", name: str = "one") -> dict[str, Any]:
    document = PLAN.document(plan_for("app", ["a"], STEPS[:1]), name, "shop")
    document["metadata"] |= {"uid": uid, "resourceVersion": str(version)}
    return {**document, "status": dump_status(status) if status else {"phase": "Dreaming"}}


class Heard:
    """A cache, with what it has told."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.told: list[tuple[Phase, Phase]] = []
        self.cache = PlanCache(self.agenda, self._changed)

    def _changed(self, stored: StoredPlan, before: RolloutStatus) -> None:
        self.told.append((before.phase, stored.status.phase))

    def woken(self) -> bool:
        key = self.agenda.take(0.0)
        if key is not None:
            self.agenda.put_back(key, None)
        return key is not None


def test_a_change_is_told_once_and_wakes_the_plan() -> None:
    heard = Heard()
    heard.cache.note(found(1))
    assert (heard.woken(), heard.told) == (True, []), "what was there before is no change"
    heard.cache.note(found(2, RUNS))
    heard.cache.note(found(2, RUNS))
    assert (heard.woken(), heard.told) == (True, [(Phase.PENDING, Phase.RUNNING)])
    assert heard.cache.counts() == {("shop", "Running"): 1}


def test_what_is_older_than_what_was_heard_is_left_out() -> None:
    heard = Heard()
    heard.cache.note(found(9, RUNS))
    assert heard.woken()
    heard.cache.note(found(8))
    assert (heard.woken(), heard.told) == (False, [])
    assert heard.cache.counts() == {("shop", "Running"): 1}


def test_another_plan_of_the_same_name_is_new() -> None:
    heard = Heard()
    heard.cache.note(found(9, DONE))
    heard.cache.note(found(10, NEW, uid="other"))
    assert (heard.woken(), heard.told) == (True, [])


def test_a_plan_at_its_end_needs_no_turn_unless_we_still_hold_it() -> None:
    heard = Heard()
    heard.cache.note(found(1, DONE))
    assert not heard.woken()
    held = found(2, DONE)
    held["metadata"]["finalizers"] = [FINALIZER]
    heard.cache.note(held)
    assert heard.woken()


def test_a_plan_that_nobody_can_read_is_counted_as_such_and_looked_at() -> None:
    heard = Heard()
    heard.cache.note(found(1, None))
    assert heard.cache.counts() == {("shop", UNREADABLE): 1}
    assert heard.woken()
    heard.cache.note(found(2))
    assert heard.told == []


def test_a_list_of_all_says_who_is_gone() -> None:
    heard = Heard()
    for name in ("one", "two"):
        heard.cache.note(found(1, DONE, name=name))
    heard.cache.note_all([found(1, DONE, name="two")])
    assert heard.cache.counts() == {("shop", "Succeeded"): 1}
    assert heard.agenda.take(0.0) == KEY, "its turn finds out that it is gone"
