"""What ``planner advise --html`` and the page of a hold say beside the decision: the terminal's own words."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from planner.advice.answer import Advice, price_of
from planner.advice.near_misses import near_misses
from planner.advice.next_command import AddressCommands, command_after_decision
from planner.cli.advise_view import print_advice
from planner.diagnosis.finding import Finding, Severity
from planner.documents.plan import DECISION, document_name
from planner.documents.policy import parse_policy
from planner.report.advice import render_advices
from planner.report.write import render
from tests.builders import OBJECTIVE, World
from tests.report import worlds
from tests.report.test_page import Reader
from tests.sample_builders import POLICY
from tests.unit.cli.test_cli import planner

FINDING = Finding(
    code="hot-queue",
    group="billing",
    severity=Severity.WARNING,
    title="Queue 2 of <orders> gets most of the load",
    evidence=("it gets 52 of 100 messages/s",),
    consequence="its consumer is behind whatever the count",
    advice="spread the keys, or give the topic more queues",
)


def advised(world: World) -> Advice:
    decision = world.record.decision
    own = [outcome for outcome in world.outcomes if outcome.strategy == decision.strategy]
    commands = AddressCommands("billing", "-n 10.0.0.5:9876", highest=12)
    return Advice(
        system=world.snapshot.system,
        cluster=world.snapshot.cluster,
        group=world.snapshot.group,
        deployment=None,
        decision=decision,
        price=price_of(world.plan, len(world.snapshot.data_queues)),
        watched_s=95.0,
        arrival_rate=160.5,
        consumption_rate=None,
        lag=9000,
        is_clear=False,
        missing=("the load swings by 30%",),
        near_misses=near_misses(own, decision.target, OBJECTIVE) or ("5 consumers would nearly do: by 3%",),
        findings=(FINDING,),
        next=command_after_decision(decision, commands),
    )


def text_of(html: str) -> str:
    return " ".join("".join(Reader(html).text).split())


@pytest.mark.parametrize("make", [worlds.growing, worlds.holding])
def test_the_page_says_what_the_terminal_says_beside_the_decision(make: Callable[[], World]) -> None:
    """Red when the page leaves out a near miss, a finding, the certainty or the next command."""
    world = make()
    advice = advised(world)
    lines = printed(advice)
    one = text_of(render(replace(worlds.case(world), advice=advice)))
    several = text_of(render_advices([advice], ()))
    labels = ("load ", "price ", "nearly ", "doctor ", "sure ")
    beside = [line.partition(" ")[2] for line in lines if line.startswith(labels)]
    assert len(beside) >= 4
    assert any("an unknown number are consumed" in line for line in beside)
    for line in (*beside, f"Do: {FINDING.advice}", lines[-1]):
        assert line in one
        assert line in several
    assert "planner approve" not in one, "an address has no plan file yet"


def printed(advice: Advice) -> list[str]:
    """Return the lines of the terminal, each whole."""
    console = Console(width=4000, file=io.StringIO(), force_terminal=True, record=True)
    print_advice(console, advice, parse_policy(POLICY, "it"))
    return [" ".join(line.split()) for line in console.export_text().splitlines() if line.strip()]


def test_the_next_command_of_a_hold_is_that_of_explain(tmp_path: Path) -> None:
    """Red when the page ends a hold with another command, or with none."""
    world = worlds.outdated()
    path = tmp_path / "hold.yaml"
    path.write_text(DECISION.text(DECISION.document(world.record, document_name(world.record))))
    last = planner("explain", path).stdout.splitlines()[-1]
    assert last.startswith("Next: planner snapshot")
    assert " ".join(last.split()) in text_of(render(worlds.case(world)))
