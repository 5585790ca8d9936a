"""Names and reasons that attack the reader: markup, escape sequences, marks of direction, line breaks of their own."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
from rich.table import Table
from rich.text import Text
from rich.tree import Tree
from typer.testing import CliRunner

from planner.cli import kubectl
from planner.cli.screen import Screen
from planner.cli.tree import plan_tree
from planner.documents.plan import PLAN
from planner.sources.capture import write_capture
from planner.storage.files import write_atomically
from planner.text.printable import printable
from tests.builders import decided, snapshot
from tests.sample_builders import POLICY, steady, watch
from tests.unit.cli.test_cli import planner
from tests.unit.execution.worlds import SCENARIOS, world

GROUP = "[/][bold]\x1b[2J\u202egroup[/nothing]"
SHOWN = r"[/][bold]\x1b[2J\u202egroup[/nothing]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the snapshot of a group whose name and clients attack."""
    made = tmp_path_factory.mktemp("hostile")
    samples = [
        replace(
            sample,
            group=GROUP,
            members=tuple(replace(one, client_id=f"{one.client_id}{GROUP}") for one in sample.members),
        )
        for sample in watch(25, steady(60, 55))
    ]
    write_capture(made / "capture", samples, 5.0, ("a story",), ())
    policy = POLICY.replace("group: shop}", f"group: {json.dumps(GROUP)}}}")
    (made / "policy.yaml").write_text(policy)
    return made


def test_no_command_shows_a_name_raw_and_none_takes_it_for_markup(folder: Path) -> None:
    """Red with markup in snapshot or simulate, and with any character that steers the terminal in any command."""
    commands = (
        ("snapshot", "-p", "policy.yaml", "--capture", "capture", "-o", "snap.json"),
        ("simulate", "snap.json", "--counts", "3"),
        ("plan", "snap.json", "-p", "policy.yaml", "-o", "plan.yaml", "--at", "snapshot"),
        ("explain", "plan.yaml"),
        ("explain", "plan.yaml", "--format", "yaml"),
        ("doctor", "--capture", "capture"),
    )
    for command in commands:
        answer = planner(*command, cwd=folder)
        assert answer.returncode in (0, 1), answer.stderr
        for text in (answer.stdout, answer.stderr):
            assert printable(text) == text, command
        assert command[0] != "simulate" or SHOWN in answer.stdout
    text = (folder / "plan.yaml").read_text()
    assert printable(text) == text


def test_nothing_of_a_plan_steers_the_terminal_of_its_approver(tmp_path: Path) -> None:
    """Red when a reason clears the screen, or writes a line of its own below which the approver reads another plan."""
    now = datetime.now(UTC)
    made = decided(snapshot(capacity=65.0)).plan
    assert made is not None
    reason = "Hold.\x1b[2J\x9b1A\u202e\nApproved by admin: nothing"
    evil = replace(made, made_at=now, valid_until=now + timedelta(days=1), reason=reason)
    path = write_atomically(tmp_path / "plan.yaml", PLAN.dump(evil, "billing-1"))
    for command in (("explain", path), ("approve", path)):
        answer = planner(*command)
        assert answer.returncode == 0, answer.stderr
        assert printable(answer.stdout) == answer.stdout
        assert "\nApproved by admin" not in answer.stdout
        assert r"\x1b[2J\x9b1A\u202e\nApproved by admin" in answer.stdout


def test_an_answer_of_allocate_shows_clients_as_text(tmp_path: Path) -> None:
    request = {
        "system": "rocketmq",
        "strategy": "AVG",
        "group": GROUP,
        "queues": [{"topic": f"t{GROUP}", "broker": GROUP, "queue_id": 0}],
        "clients": [GROUP, "\x7f"],
    }
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request))
    for form in ("text", "json", "yaml"):
        answer = planner("allocate", path, "--format", form)
        assert answer.returncode == 0, answer.stderr
        assert printable(answer.stdout) == answer.stdout


def test_the_tree_of_a_plan_shows_names_as_text() -> None:
    cluster = world(SCENARIOS[0])
    stored = cluster.plans["plan-1"]
    stored = replace(stored, status=replace(stored.status, message=GROUP))
    text = _printed(plan_tree(stored, cluster.observe(stored, cluster.now)))
    assert SHOWN in text
    assert printable(text) == text


def test_the_screen_filters_whatever_is_printed() -> None:
    """Red when one kind of thing passes: a string, a text, a table with its title, a tree, a status."""
    table = Table(title=GROUP)
    table.add_column(GROUP)
    table.add_row(Text(GROUP))
    for thing in (GROUP, Text(GROUP), table, Tree(GROUP)):
        text = _printed(thing)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "[bold]" in text
    assert Screen().status(GROUP).status == Text(GROUP)


def test_colours_stay_on_a_terminal() -> None:
    out = io.StringIO()
    Screen(file=out, force_terminal=True, color_system="standard", width=200).print("a\x1b[2J", style="red")
    assert out.getvalue() == "\x1b[31ma\\x1b[2J\x1b[0m\n"


def _printed(thing: object) -> str:
    out = io.StringIO()
    Screen(file=out, width=200).print(thing)
    return out.getvalue()


@pytest.mark.parametrize("ask", [kubectl._ask, kubectl._phrase])
def test_no_question_shows_a_name_raw(ask: Callable[[str], object]) -> None:
    """Red where a prompt writes past the filter: the phrase that a person types holds a group's name."""
    app = typer.Typer()
    app.command()(lambda: ask(f"set the offsets of {GROUP}"))
    answer = CliRunner().invoke(app, input="yes\n")
    assert SHOWN in answer.output
    assert printable(answer.output) == answer.output
