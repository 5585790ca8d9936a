"""``planner advise`` and ``planner init`` without a broker: what watches come to, options, documents, files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from planner.advice.answer import fewer_note
from planner.advice.next_command import AddressCommands
from planner.advice.sentences import price_sentence
from planner.cli.address import Address
from planner.cli.advice_output import document
from planner.cli.advise_view import headline, row
from planner.cli.concluding import Conclusion, conclude
from planner.cli.default_policy import default_highest, default_policy, policy_name, with_window, without_bounds
from planner.cli.policy_text import policy_text
from planner.cli.target import SHOWN, Target, doubts
from planner.cli.watching import GroupWatch
from planner.documents.policy import parse_policy
from planner.model.autoscalers import Autoscaler
from planner.model.samples import GroupSample
from planner.model.snapshot import KafkaTiming
from planner.report.advice import render_advices
from tests.sample_builders import POLICY, deployment, routes, steady, tuning, watch
from tests.unit.cli.test_cli import planner, refused

ADDRESS = Address(name_server="127.0.0.1:9876")
KAFKA = Address(kafka="127.0.0.1:9092,127.0.0.2:9092", credentials=Path("client.properties"))
IDLE = tuning(rt_ms=0.0)


def advised(samples: tuple[GroupSample, ...], assumed_capacity: float | None = None) -> tuple[GroupWatch, Conclusion]:
    """Return the watch that ended by its own rule, or with the last sample, and the answer."""
    group = GroupWatch(default_policy(ADDRESS, samples[0]), assumed_capacity=assumed_capacity)
    for sample in samples:
        group.samples.append(sample)
        group.evaluate(5.0)
        if group.is_clear:
            break
    return group, conclude(group, 5.0, ADDRESS, None)


@pytest.fixture(scope="module")
def drowning() -> tuple[GroupWatch, Conclusion]:
    """Three consumers that can do 100 messages/s each get 22 queues of 18 messages/s: 396 messages/s."""
    samples = watch(121, lambda _, n: (50_000 + 90 * n, 1_000 + 68 * n), client_tuning=tuning(rt_ms=20.0, threads=2))
    return advised(samples)


def test_a_drowning_group_is_clear_within_minutes_and_scales(drowning: tuple[GroupWatch, Conclusion]) -> None:
    group, conclusion = drowning
    advice = conclusion.advice
    assert 60.0 <= group.watched_s <= 240.0
    assert advice.is_clear
    assert advice.cause == "TooFewConsumers"
    assert advice.decision.target > 3
    assert headline(advice) == f"SCALE UP group shop from 3 to {advice.decision.target} consumers"
    assert "of 22 queues change owner" in price_sentence(advice)
    assert advice.next.command.startswith("planner init -n 127.0.0.1:9876 --group shop")


def test_the_document_is_the_fixed_short_form(drowning: tuple[GroupWatch, Conclusion]) -> None:
    made = document(drowning[1].advice)
    assert list(made) == [
        *("apiVersion", "kind", "decision", "from", "to", "cause", "reason", "cost", "next"),
    ]
    assert (made["apiVersion"], made["kind"]) == ("consumerplanner.dev/v1alpha1", "Advice")
    assert made["from"] == 3
    assert yaml.safe_load(yaml.safe_dump(made)) == json.loads(json.dumps(made)) == made


def test_a_short_watch_is_decided_on_the_window_that_was_watched(drowning: tuple[GroupWatch, Conclusion]) -> None:
    group, conclusion = drowning
    assert conclusion.snapshot.window_s == int(group.watched_s)
    rates = next(part for part in conclusion.snapshot.parts if part.name == "rates")
    assert rates.completeness == 1.0


def test_a_group_that_keeps_up_holds_and_says_so() -> None:
    group, conclusion = advised(watch(121, steady(10, 10), client_tuning=IDLE))
    assert conclusion.advice.is_clear
    assert conclusion.advice.decision.is_hold
    assert document(conclusion.advice)["to"] == document(conclusion.advice)["from"] == 3
    assert group.watched_s <= 300.0


def test_where_no_consumer_was_busy_fewer_may_do_and_a_stated_capacity_says_how_many() -> None:
    """22 queues of 2 messages/s: the busiest of three consumers has 16, and no client says what it could do."""
    samples = watch(121, steady(10, 10), client_tuning=IDLE)
    _, unknown = advised(samples)
    advice = unknown.advice
    assert (advice.cause, advice.may_be_fewer) == ("RightAlready", True)
    assert row(advice)[2] == "RightAlready, perhaps fewer"
    note = fewer_note([advice, advice])
    assert note.startswith("Of 2 groups it is not known whether fewer would do")
    assert note in render_advices([advice, advice], ())

    _, assumed = advised(samples, assumed_capacity=400.0)
    assert (assumed.advice.cause, assumed.advice.decision.target) == ("TooManyConsumers", 1)
    assert assumed.advice.next.command.endswith("--capacity 400 -o shop.yaml")
    assert fewer_note([assumed.advice]) == ""

    for exceeded in (1.0, 13.0):
        _, same = advised(samples, assumed_capacity=exceeded)
        assert (same.advice.decision, same.advice.may_be_fewer) == (advice.decision, True)

    _, right = advised(samples, assumed_capacity=21.0)
    assert (right.advice.cause, right.advice.may_be_fewer) == ("RightAlready", False)


def test_a_group_that_shows_its_capacity_is_not_judged_by_an_assumed_one(
    drowning: tuple[GroupWatch, Conclusion],
) -> None:
    _, conclusion = advised(tuple(drowning[0].samples), assumed_capacity=1_000.0)
    assert conclusion.advice.decision == drowning[1].advice.decision


@pytest.mark.parametrize(
    ("capacity", "sentence"),
    [
        ("x", "option --capacity: found 'x', expected GROUP=MESSAGES_PER_SECOND, or MESSAGES_PER_SECOND for all"),
        ("shop=-1", "option --capacity: found 'shop=-1'"),
    ],
)
def test_a_capacity_that_is_none_is_refused_before_anybody_is_asked(capacity: str, sentence: str) -> None:
    refused(planner("advise", "-n", "127.0.0.1:1", "--all", "--capacity", capacity), 2, sentence)


def test_a_stated_capacity_goes_into_the_policy() -> None:
    sample = watch(1)[0]
    policy = without_bounds(default_policy(ADDRESS, sample, capacity=12.5))
    assert parse_policy(policy_text(policy, sample, None), "p.yaml") == policy
    assert policy.spec.capacity is not None
    assert policy.spec.capacity.messages_per_second == 12.5
    none = planner("init", "-n", "127.0.0.1:1", "--group", "shop", "--capacity", "0")
    refused(none, 2, "option --capacity: found 0, expected messages per second above 0")


def test_a_watch_of_two_samples_is_not_clear() -> None:
    _, conclusion = advised(watch(2))
    assert not conclusion.advice.is_clear
    assert conclusion.advice.missing


def test_the_default_bound_is_one_a_queue_and_no_jump_into_the_hundreds() -> None:
    assert default_highest(watch(1)[0]) == 22
    assert default_highest(watch(1, topics={"orders": 3})[0]) == 6
    assert default_highest(watch(1, topics={"orders": 300})[0]) == 30
    assert len(routes({"orders": 300}).read_queues) == 600


def test_names_of_groups_become_names_of_kubernetes() -> None:
    assert policy_name("Shop_Orders%Ü") == "shop-orders"
    assert policy_name("___") == "group"


def test_a_watch_longer_than_the_window_goes_by_the_window() -> None:
    policy = default_policy(ADDRESS, watch(1)[0])
    assert [with_window(policy, seconds).spec.window.seconds for seconds in (5.0, 95.9, 3000.0)] == [60, 95, 600]


HPA = Autoscaler("HorizontalPodAutoscaler", "orders", 2, 6)
READ = Target("shop", "orders", None, deployment(("10.0.0.1", "10.0.0.2"), (HPA,)), "client")


@pytest.mark.parametrize("target", [None, Target("shop", "orders", Path("kube.yaml")), Target("shop", "on"), READ])
@pytest.mark.parametrize("address", [ADDRESS, KAFKA, Address("h:1;i:2", ca_file=Path("ca.pem"))])
def test_the_written_policy_reads_back_as_it_was_and_explains_each_field(
    address: Address, target: Target | None
) -> None:
    sample = watch(1)[0]
    policy = without_bounds(default_policy(address, sample, target, 12))
    text = policy_text(policy, sample, target)
    assert parse_policy(text, "policy.yaml") == policy
    bare = [line for line in text.splitlines() if ": " in line and "#" not in line and not line.startswith(("a", "k"))]
    assert bare == []


def test_the_policy_that_init_writes_states_no_bound_and_is_decided_by_what_counts_cost() -> None:
    sample = watch(1)[0]
    policy = without_bounds(default_policy(ADDRESS, sample))
    text = policy_text(policy, sample, None)
    read = parse_policy(text, "policy.yaml")
    assert read == policy
    assert read.spec.objective.decides_by == "Horizon"
    assert read.spec.objective.utilisation_bound == float("inf")
    assert "    # maxUtilisation: 0.8" in text
    assert parse_policy(text.replace("# maxUtilisation", "maxUtilisation"), "p").spec.objective.decides_by == "Horizon"


def test_the_written_policy_has_the_facts_of_the_deployment() -> None:
    sample = watch(1)[0]
    policy = default_policy(ADDRESS, sample, READ)
    assert (policy.spec.min_replicas, policy.spec.max_replicas) == (2, 6)
    assert policy.spec.kubernetes is not None
    assert policy.spec.kubernetes.member_label == "client"
    text = policy_text(policy, sample, READ)
    assert "2 pods now, 30 s for a pod to stop" in text
    assert "# autoscaler: {mode: setBounds}" in text
    assert "HorizontalPodAutoscaler orders sets the replicas, from 2 to 6" in text


@pytest.mark.parametrize(
    ("scalers", "highest", "bounds"),
    [
        ((HPA,), 4, (2, 4)),
        ((HPA,), 1, (1, 1)),
        ((replace(HPA, minimum=0),), None, (1, 6)),
        ((replace(HPA, maximum=20_000),), None, (2, 10_000)),
        ((replace(HPA, is_paused=True),), None, (1, 22)),
        ((HPA, replace(HPA, name="other")), None, (1, 22)),
        ((Autoscaler("ScaledObject", "so", 3, 9), replace(HPA, made_by="ScaledObject so")), None, (3, 9)),
        (None, None, (1, 22)),
    ],
)
def test_bounds_are_those_of_the_one_autoscaler_that_sets_the_replicas(
    scalers: tuple[Autoscaler, ...] | None, highest: int | None, bounds: tuple[int, int]
) -> None:
    target = Target("shop", "orders", None, deployment(("10.0.0.1",), scalers))
    spec = default_policy(ADDRESS, watch(1)[0], target, highest).spec
    assert (spec.min_replicas, spec.max_replicas) == bounds


def test_the_bound_is_no_smaller_than_what_the_deployment_asks_for() -> None:
    target = Target("shop", "orders", None, deployment((), replicas=40))
    assert default_policy(ADDRESS, watch(1)[0], target).spec.max_replicas == 40


def test_doubts_name_what_does_not_fit_once() -> None:
    sample = watch(1)[0]
    more = Target("shop", "orders", None, deployment((), replicas=5, problems=("HPAs could not be read",)))
    assert list(doubts(more, sample)) == [
        "HPAs could not be read",
        "Deployment default/shop-consumer asks for 5 pods, but the group has 3 members: the planner holds until each "
        "pod runs as many members as the others and no member runs elsewhere",
    ]
    foreign = Target("shop", "orders", None, deployment(("10.9.9.1", "10.9.9.2", "10.9.9.3")))
    assert all("runs in none of the pods looked at" in doubt for doubt in doubts(foreign, sample))
    assert len(list(doubts(foreign, sample))) == SHOWN
    assert list(doubts(Target("shop", "orders"), sample)) == []


def test_the_comments_of_the_written_policy_are_fields_that_a_policy_takes() -> None:
    sample = watch(1)[0]
    text = policy_text(without_bounds(default_policy(ADDRESS, sample)), sample, None)
    opened = "\n".join(
        line.replace("# ", "", 1) if line.lstrip().startswith("# ") else line for line in text.splitlines()[1:]
    )
    policy = parse_policy(opened, "policy.yaml")
    assert policy.spec.capacity is not None
    assert policy.spec.stabilisation is not None
    assert policy.spec.kubernetes is not None
    assert policy.spec.objective.utilisation_bound == 0.8
    assert policy.spec.prices.moved_queue_seconds == 30


def test_kafka_gets_the_timing_that_its_price_supposes() -> None:
    sample = watch(1)[0]
    assert default_policy(ADDRESS, sample).spec.timing is None
    kafka = default_policy(KAFKA, _as_kafka(sample))
    assert kafka.snapshot_settings.timing == KafkaTiming("4.1.0", "4.1.0")


def _as_kafka(sample: GroupSample) -> GroupSample:
    return replace(sample, system="kafka")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-n", "h:1"), "either --group NAME or --all"),
        (("--group", "g"), "neither of --name-server and --kafka"),
        (("--group", "g", "-n", "h:1", "--kafka", "h:2"), "both of --name-server and --kafka"),
        (("--all", "--kafka", "h:2", "--deployment", "a/b"), "belong to one group"),
        (("--group", "g", "--kafka", "h:2", "--deployment", "a/b/c"), "expected NAMESPACE/NAME"),
        (("--group", "g", "--kafka", "h:2", "--tls"), "--tls and --ca-file go with -n"),
        (("--group", "g", "--kafka", "h:2", "--kubeconfig", "k"), "needs --deployment"),
        (("--all", "--prometheus", "http://h:9", "--proxy", "h:8080"), "reads no broker: leave --proxy out"),
    ],
)
def test_options_that_do_not_go_together_are_named(arguments: tuple[str, ...], said: str) -> None:
    refused(planner("advise", *arguments), 2, said)


def test_init_replaces_no_file_unasked(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("mine")
    refused(planner("init", "-n", "127.0.0.1:1", "--group", "g", "-o", path), 2, "exists", "--force")
    assert path.read_text() == "mine"


def test_plan_goes_by_the_policy_of_today(tmp_path: Path) -> None:
    from planner import pipeline
    from planner.documents.data import SNAPSHOT

    then = parse_policy(POLICY, "then")
    samples = watch(25, client_tuning=IDLE)
    taken = pipeline.take_snapshot(samples, 5.0, then, samples[-1].at)
    (tmp_path / "snap.json").write_bytes(SNAPSHOT.dump(taken))
    policy, plan = tmp_path / "policy.yaml", tmp_path / "plan.yaml"
    policy.write_text(POLICY + "  capacity: {messagesPerSecond: 4}\n", encoding="utf-8")

    made = planner("plan", tmp_path / "snap.json", "-p", policy, "-o", plan, "--at", "snapshot")
    assert made.returncode == 0, made.stderr
    assert "Scale from 3 to 16 consumers" in made.stdout
    assert "by the policy of today, capacity: 4 messages/s a consumer" in made.stderr
    beside = SNAPSHOT.read(tmp_path / "plan.snapshot.json")
    assert yaml.safe_load(plan.read_text())["spec"]["snapshot"]["digest"] == SNAPSHOT.digest(beside)

    policy.write_text(POLICY.replace("seconds: 120", "seconds: 600"), encoding="utf-8")
    held = planner("plan", tmp_path / "snap.json", "-p", policy, "-o", tmp_path / "hold.yaml", "--at", "snapshot")
    assert "samples of 2 min for a window of 10 min" in held.stdout
    assert held.stdout.splitlines()[-1].startswith(f"Next: planner snapshot --policy {policy}")


def test_a_percentile_that_differs_from_the_snapshots_holds_and_a_deployment_that_differs_is_refused(
    tmp_path: Path,
) -> None:
    from planner import pipeline
    from planner.documents.data import SNAPSHOT

    samples = watch(25)
    taken = pipeline.take_snapshot(samples, 5.0, parse_policy(POLICY, "then"), samples[-1].at)
    snap, policy = tmp_path / "snap.json", tmp_path / "policy.yaml"
    snap.write_bytes(SNAPSHOT.dump(replace(taken, deployment=deployment((), name="another"))))
    policy.write_text(POLICY, encoding="utf-8")
    refused(
        planner("plan", snap, "-p", policy),
        2,
        "is of Deployment another",
        "is for Deployment shop-consumer",
    )

    snap.write_bytes(SNAPSHOT.dump(taken))
    policy.write_text(
        POLICY.replace("window: {seconds: 120", "window: {percentile: 99, seconds: 120"), encoding="utf-8"
    )
    held = json.loads(planner("plan", snap, "-p", policy, "--at", "snapshot", "--format", "json").stdout)
    assert (held["decision"], held["cause"]) == ("hold", "IncompleteData")
    assert "no percentile 99 can be computed" in held["reason"]


@pytest.mark.parametrize(
    ("was", "becomes", "observed", "expected"),
    [
        ("cluster: DefaultCluster", "cluster: Other", "group shop of cluster DefaultCluster", "of cluster Other"),
        ("{name: shop}", "{name: shop, namespace: blue}", "Deployment default/shop-consumer", "blue/shop-consumer"),
        ("spec:", "spec:\n  kubernetes: {memberLabel: client}", "pods matched without a label", "by label client"),
    ],
)
@pytest.mark.parametrize("command", [("plan",), ("migrate", "reset", "--to", "2026-01-01T00:00:00Z")])
def test_a_snapshot_of_another_cluster_namespace_or_member_label_is_refused(
    command: tuple[str, ...], was: str, becomes: str, observed: str, expected: str, tmp_path: Path
) -> None:
    from planner import pipeline
    from planner.documents.data import SNAPSHOT

    samples = tuple(replace(sample, deployment=deployment(())) for sample in watch(3))
    taken = pipeline.take_snapshot(samples, 5.0, parse_policy(POLICY, "then"), samples[-1].at)
    snap, policy = tmp_path / "snap.json", tmp_path / "policy.yaml"
    snap.write_bytes(SNAPSHOT.dump(taken))
    assert was in POLICY
    policy.write_text(POLICY.replace(was, becomes), encoding="utf-8")
    refused(planner(*command, snap, "-p", policy), 2, f"is of {observed}, but policy", expected)


def test_pods_of_a_snapshot_that_states_no_label_are_named_as_not_compared(tmp_path: Path) -> None:
    from planner import pipeline
    from planner.documents.data import SNAPSHOT

    samples = tuple(replace(sample, deployment=deployment(())) for sample in watch(3))
    taken = pipeline.take_snapshot(samples, 5.0, parse_policy(POLICY, "then"), samples[-1].at)
    snap, policy = tmp_path / "snap.json", tmp_path / "policy.yaml"
    snap.write_bytes(SNAPSHOT.dump(replace(taken, member_label=None)))
    policy.write_text(POLICY.replace("spec:", "spec:\n  kubernetes: {memberLabel: client}"), encoding="utf-8")
    planned = planner("plan", snap, "-p", policy, "--format", "json")
    assert planned.returncode == 0, planned.stderr
    assert "not compared with the policy of today, label client" in planned.stderr


def test_a_snapshot_of_an_earlier_release_is_written_beside_the_plan_that_names_it(tmp_path: Path) -> None:
    """Red when the plan names a digest that no file has: planner report would not find its snapshot."""
    from planner import pipeline
    from planner.documents.data import SNAPSHOT
    from planner.documents.format import digest_of

    samples = watch(25, steady(60, 55))
    document = SNAPSHOT.document(pipeline.take_snapshot(samples, 5.0, parse_policy(POLICY, "then"), samples[-1].at))
    del document["body"]["percentile"]
    document["digest"] = digest_of(document["body"])
    snap, policy, plan = tmp_path / "snap.json", tmp_path / "policy.yaml", tmp_path / "plan.yaml"
    snap.write_text(json.dumps(document), encoding="utf-8")
    policy.write_text(POLICY, encoding="utf-8")
    made = planner("plan", snap, "-p", policy, "-o", plan, "--at", "snapshot")
    assert "not compared with the policy of today, percentile" in made.stderr
    named = yaml.safe_load(plan.read_text())["spec"]["snapshot"]["digest"]
    assert named == SNAPSHOT.digest(SNAPSHOT.read(tmp_path / "plan.snapshot.json")) != document["digest"]


def test_members_a_pod_that_are_said_are_in_the_policy_and_in_the_next_commands() -> None:
    sample = watch(1)[0]
    said = without_bounds(default_policy(ADDRESS, sample, None, None, 4))
    assert said.snapshot_settings.members_per_pod == 4
    assert parse_policy(policy_text(said, sample, None), "p.yaml") == said
    assert "# membersPerPod" in policy_text(default_policy(ADDRESS, sample), sample, None)
    commands = AddressCommands("g", "--kafka k:9092", options=" --members-per-pod 4")
    assert commands.watch == "planner advise --kafka k:9092 --group g --members-per-pod 4"
    assert commands.proceed == "planner init --kafka k:9092 --group g --members-per-pod 4 -o g.yaml"
