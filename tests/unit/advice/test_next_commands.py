"""Every hold's next command works as pasted: our own parser takes it, and it names no file that the reader lacks."""

import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from planner.advice.counting import MOST_MEMBERS
from planner.advice.next_command import AddressCommands, NextCommand, PolicyCommands, next_command
from planner.cli.main import app
from planner.decision.decision import HoldCause
from planner.documents.policy_spec import MOST_MEMBERS_PER_POD

FILES = PolicyCommands("shop.yaml", "snap.json", "plan.yaml")
KAFKA = AddressCommands("shop", "--kafka 10.0.0.5:9092 --credentials client.properties")
ROCKETMQ = AddressCommands("%RETRY% of $HOME", "-n '10.0.0.5:9876;10.0.0.6:9876' --tls", highest=10_000)
DEPLOYED = AddressCommands(
    "shop", "-n 10.0.0.5:9876", deployment="shop/orders", highest=12, kubeconfig="kube", members_per_pod=4
)
STATED = replace(DEPLOYED, options=" --members-per-pod 2", members_per_pod=None, larger_bound=24)
READ = ("shop.yaml", "snap.json", "kube", "client.properties")
"""The files that a reader of these has."""

REASONS = {
    HoldCause.UNSUPPORTED_STRATEGY: "no room for m-1: state its room in spec.strategyOptions, or spec.newPods.room",
}


def parse(command: str) -> None:
    """Have our own parser read a command line without running it; raises what a shell's user would see."""
    program, name, *arguments = shlex.split(command)
    assert program == "planner"
    group = get_command(app)
    with typer.Context(group) as context:
        found = group.get_command(context, name)  # type: ignore[attr-defined]
        assert found is not None, f"there is no planner {name}"
        found.make_context(name, arguments, parent=context)


def files(words: Iterable[str]) -> set[str]:
    return {word.strip(",;:") for word in words if word.strip(",;:").endswith((".yaml", ".json"))}


@pytest.mark.parametrize("commands", [FILES, KAFKA, ROCKETMQ, DEPLOYED, STATED])
@pytest.mark.parametrize("cause", [*HoldCause, None])
def test_the_next_command_is_one_and_all_that_it_names_is_there(
    cause: HoldCause | None,
    commands: PolicyCommands | AddressCommands,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has = READ[:2] if isinstance(commands, PolicyCommands) else READ[2:]
    for name in has:
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    reason = REASONS.get(cause, "") if cause is not None else ""
    step = next_command(cause, commands, reason)
    parse(step.command)
    words = shlex.split(step.command)
    written = {words[index + 1] for index, word in enumerate(words) if word == "-o"}
    assert files(words) <= {*has, *written}, step
    assert files(step.note.split()) <= set(has), f"what the command writes does not state anything before: {step}"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("planner advise --kafka h:1 --group g --max 20000", "less than or equal to 10000"),
        ("planner advise --kafka h:1 --group g --members-per-pod N", "unable to parse"),
        ("planner init --nme h", "--nme"),
    ],
)
def test_the_parser_refuses_what_a_shell_would(command: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        parse(command)


def test_unknown_pods_are_ended_by_the_number_that_pods_and_members_suggest() -> None:
    watch = "planner advise -n 10.0.0.5:9876 --group shop --deployment shop/orders --kubeconfig kube"
    assert next_command(HoldCause.UNKNOWN_PODS, DEPLOYED) == NextCommand(
        f"{watch} --members-per-pod 4", "if each pod runs so many"
    )
    unknown = next_command(HoldCause.UNKNOWN_PODS, replace(DEPLOYED, members_per_pod=None))
    assert unknown.command.startswith("planner doctor "), "no number is made up"


def test_an_autoscaler_takes_a_policy_that_is_written_first() -> None:
    step = next_command(HoldCause.OTHER_SCALER, DEPLOYED)
    assert step.command.endswith("--max 12 -o shop.yaml")
    assert step.note == "then state spec.autoscaler.mode there as setBounds or pause, and plan by it"


def test_a_larger_bound_is_named_only_where_it_allows_more() -> None:
    assert next_command(HoldCause.NO_COUNT_MEETS, STATED).command.endswith("--members-per-pod 2 --max 24")
    assert next_command(HoldCause.NO_COUNT_MEETS, DEPLOYED).command.startswith("planner doctor ")


def test_no_number_of_members_is_named_that_a_policy_refuses() -> None:
    assert MOST_MEMBERS == MOST_MEMBERS_PER_POD
