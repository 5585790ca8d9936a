"""A user's own strategy: the example is the manual, and whatever it does wrong is said and stops nothing else."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from planner.allocation.custom import CheckedStrategy
from planner.allocation.group import GroupAllocation, allocate_group
from planner.allocation.plugins import ENTRY_POINTS, FILES_VARIABLE, allow
from planner.allocation.registry import find_strategy, known_names
from planner.documents.allocation import answer_all
from planner.documents.policy import parse_policy
from planner.errors import BadInputError, UnknownNameError
from planner.model.queues import MessageQueue
from planner.simulation.candidates import simulate_candidate
from tests.builders import snapshot

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "custom_strategy.py"
QUEUES = [MessageQueue("T", "b", number) for number in range(4)]
CLIENTS = ["c0", "c1"]
Queues = Sequence[MessageQueue]


@pytest.fixture(autouse=True)
def _allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The administrator has listed the example and this test's folder."""
    monkeypatch.setenv(FILES_VARIABLE, os.pathsep.join((str(EXAMPLE), str(tmp_path))))


class Own:
    """A strategy made of a function, for what can go wrong."""

    name = "OWN"

    def __init__(self, rule: Callable[[str, Queues, Sequence[str]], Any]) -> None:
        self.rule = rule

    def allocate(self, client: str, queues: Queues, clients: Sequence[str]) -> Any:
        return self.rule(client, queues, clients)


def run(rule: Callable[[str, Queues, Sequence[str]], Any], clients: Sequence[str] = CLIENTS) -> GroupAllocation:
    return allocate_group(CheckedStrategy(Own(rule)), QUEUES, clients, "orders-group")


def halves(client: str, queues: Queues, clients: Sequence[str]) -> Queues:
    return [queue for place, queue in enumerate(queues) if clients[place % len(clients)] == client]


def test_the_example_runs_as_it_says() -> None:
    run = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True, cwd=ROOT)
    own, avg = run.stdout.splitlines()
    assert own.startswith("BY_CAPACITY: ")
    assert avg.startswith("AVG: ")
    moved, moved_by_avg = int(own.split()[1]), int(avg.split()[1])
    assert 0 < moved < moved_by_avg


def test_the_example_answers_requests_by_its_path() -> None:
    request = {
        "system": "rocketmq",
        "strategy": str(EXAMPLE),
        "group": "g",
        "queues": [{"topic": "T", "broker": "b", "queue_id": number} for number in range(64)],
        "clients": ["h1@a", "h2@a"],
        "options": {"weights": {"h2": 3}},
    }
    [found] = answer_all([request]).documents
    sizes = {client: len(queues) for client, queues in found["assignments"].items()}
    assert sum(sizes.values()) == 64
    assert sizes["h2@a"] > 2 * sizes["h1@a"]
    assert "problems" not in found


def test_the_example_moves_nothing_between_those_who_stay() -> None:
    strategy = find_strategy(f"{EXAMPLE}:ByCapacity")
    old = allocate_group(strategy, QUEUES, CLIENTS).answer()
    new = allocate_group(strategy, QUEUES, [*CLIENTS, "c2"]).answer()
    for client in CLIENTS:
        assert set(new[client]) <= set(old[client])


def test_a_good_one_has_no_problems() -> None:
    found = run(halves)
    assert found.problems == ()
    assert found.owners.tolist() == [0, 1, 0, 1]


def test_one_that_raises_is_reported_with_group_and_client_and_the_other_is_answered() -> None:
    def rule(client: str, queues: Queues, clients: Sequence[str]) -> Queues:
        if client == "c1":
            raise KeyError("no room")
        return halves(client, queues, clients)

    found = run(rule)
    assert found.answer() == {"c0": [QUEUES[0], QUEUES[2]], "c1": []}
    assert found.problems[0] == "group orders-group, topic T: client c1: strategy OWN raised KeyError: 'no room'"
    assert "forgot 2 queues, first T/b/1" in found.problems[1]


def test_foreign_queues_are_reported_and_left_out() -> None:
    foreign = MessageQueue("U", "b", 9)
    found = run(lambda client, queues, clients: [*halves(client, queues, clients), foreign])
    assert found.answer() == {"c0": [QUEUES[0], QUEUES[2]], "c1": [QUEUES[1], QUEUES[3]]}
    assert found.problems[0].endswith("client c0: strategy OWN returned 1 foreign queues, first U/b/9")


def test_forgotten_queues_are_reported() -> None:
    found = run(lambda client, queues, clients: halves(client, queues, clients)[:1])
    assert found.unowned == QUEUES[2:]
    assert found.problems == (
        "group orders-group, topic T: strategy OWN forgot 2 queues, first T/b/2: no client takes it",
    )


def test_shared_queues_are_reported() -> None:
    found = run(lambda _client, queues, _clients: queues)
    assert found.owner_counts.tolist() == [2, 2, 2, 2]
    assert "gave 4 queues to several clients, first T/b/0 to c0 and c1" in found.problems[0]


@pytest.mark.parametrize("answer", [None, 7, [1, 2], ["T"], [[]]], ids=repr)
def test_nonsense_is_reported(answer: object) -> None:
    found = run(lambda *_: answer)
    assert found.unowned == QUEUES
    assert "client c0" in found.problems[0]


def test_a_queue_returned_twice_counts_once() -> None:
    found = run(lambda client, queues, clients: 2 * list(halves(client, queues, clients)))
    assert found.owner_counts.tolist() == [1, 1, 1, 1]
    assert "returned 2 queues twice" in found.problems[0]


def test_it_cannot_change_what_others_see() -> None:
    def rule(client: str, queues: Queues, clients: Sequence[str]) -> Queues:
        mine = halves(client, queues, clients)
        queues.clear()  # type: ignore[attr-defined]
        return mine

    assert "AttributeError" in run(rule).problems[0]


def test_a_failing_strategy_stops_no_other_request(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("class Broken:\n    name = 'B'\n    def allocate(self, client, queues, clients):\n        1 / 0\n")
    request = {
        "system": "rocketmq",
        "group": "g",
        "queues": [{"topic": "T", "broker": "b", "queue_id": 0}],
        "clients": ["c0"],
    }
    found = answer_all([{**request, "strategy": str(file)}, {**request, "strategy": "AVG"}])
    assert found.refused == []
    assert found.documents[0]["problems"][0].startswith(
        "group g, topic T: client c0: strategy B raised ZeroDivisionError"
    )
    assert found.documents[1] == {"assignments": {"c0": [["T", "b", 0]]}}


BAD_FILES = {
    "syntax": ("class X(:\n", "cannot be loaded: SyntaxError"),
    "raises": ("1 / 0\n", "cannot be loaded: ZeroDivisionError"),
    "empty": ("", "found none with a method allocate"),
    "two": (
        "class A:\n    def allocate(self): ...\nclass B:\n    def allocate(self): ...\n",
        "found A, B with a method allocate",
    ),
    "nameless": ("class A:\n    def allocate(self): ...\n", "class A needs a name"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_holds_no_strategy_says_why(case: str, tmp_path: Path) -> None:
    content, expected = BAD_FILES[case]
    file = tmp_path / f"{case}.py"
    file.write_text(content)
    with pytest.raises(BadInputError, match=expected):
        find_strategy(str(file))


def test_a_missing_file_class_or_option_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="cannot be read"):
        find_strategy(str(tmp_path / "nowhere.py"))
    with pytest.raises(BadInputError, match="no class Nothing"):
        find_strategy(f"{EXAMPLE}:Nothing")
    with pytest.raises(BadInputError, match="does not take"):
        find_strategy(str(EXAMPLE), {"nodes": 3})


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "strategy.py"
    for name in ("ONE", "TWO"):
        file.write_text(f"class A:\n    name = {name!r}\n    def allocate(self, *_): ...\n")
        assert find_strategy(str(file)).name == name


def test_an_installed_package_brings_a_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "house_rules.py").write_text(EXAMPLE.read_text())
    information = tmp_path / "house_rules-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: house-rules\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nHOUSE_RULES = house_rules:ByCapacity\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "HOUSE_RULES" in known_names()
    assert find_strategy("HOUSE_RULES", {"weights": {"h": 2}}).name == "BY_CAPACITY"
    with pytest.raises(UnknownNameError, match="HOUSE_RULES"):
        find_strategy("HOUSE_RULEZ")


def test_candidates_are_simulated_under_it() -> None:
    taken = snapshot()
    found = simulate_candidate(taken, len(taken.clients), str(EXAMPLE))
    assert found.strategy == str(EXAMPLE)
    assert sum(load.queues for load in found.loads) == len(taken.queues)
    assert found.moved_most is not None
    assert found.moved_most > 0


def test_its_faults_are_told_with_the_candidate_and_stop_no_other(tmp_path: Path) -> None:
    file = tmp_path / "lazy.py"
    file.write_text(
        "class Lazy:\n    name = 'LAZY'\n    def allocate(self, client, queues, clients):\n        return []\n"
    )
    taken = snapshot()
    lazy, avg = (simulate_candidate(taken, len(taken.clients), name) for name in (str(file), "AVG"))
    assert any("group billing, topic orders: strategy LAZY forgot 16 queues" in known for known in lazy.unknowns)
    assert avg.unknowns == ()


MARK = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n" + (
    "class Own:\n    name = 'OWN'\n    def allocate(self, client, queues, clients): return []\n"
)


def policy_with(strategy: str) -> dict[str, Any]:
    source = {"system": "rocketmq", "nameServers": ["127.0.0.1:1"], "cluster": "c", "group": "g"}
    spec = {"source": source, "scaleTargetRef": {"name": "app"}, "maxReplicas": 8}
    document = {
        "apiVersion": "consumerplanner.dev/v1alpha1",
        "kind": "ConsumerScalingPolicy",
        "metadata": {"name": "p"},
    }
    return {**document, "spec": {**spec, "strategy": strategy, "strategyOptions": {"a": 1}}}


def test_a_document_runs_no_file_that_nobody_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy's strategy was run while the policy was parsed: whoever wrote one ran code as the planner."""
    monkeypatch.setenv(FILES_VARIABLE, str(EXAMPLE))
    file = tmp_path / "mine.py"
    file.write_text(MARK, encoding="utf-8")
    aside = tmp_path / "custom_strategy.py"
    aside.symlink_to(file)
    for name in (str(file), f"{file}:Own", str(aside), f"{EXAMPLE.parent}/../{file.relative_to('/')}"):
        with pytest.raises(BadInputError, match=FILES_VARIABLE):
            find_strategy(name)
        with pytest.raises(BadInputError, match="is not to decide what runs here"):
            parse_policy(json.dumps(policy_with(name)), "policy")
        asked = [{"system": "rocketmq", "strategy": name, "group": "g", "queues": [], "clients": []}]
        assert "is not to decide" in str(answer_all(asked))
    assert not file.with_suffix(".ran").exists()
    allow(str(file))  # a person's own option
    assert find_strategy(str(file)).name == "OWN"
    assert file.with_suffix(".ran").exists()
