"""A wrong policy gets one sentence that names file, field, what was found and what was expected."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from planner.decision.objective import StepLimit, WaitObjective
from planner.decision.prices import DEFAULT_PRICES
from planner.demand.events import DateSpan
from planner.documents.policy import parse_policy, read_policy
from planner.documents.policy_folder import read_policies
from planner.documents.source import KafkaSource
from planner.errors import BadInputError, DocumentError, NewerVersionError
from planner.model.snapshot import KafkaTiming
from planner.rollout.approval import ApprovalRule
from planner.rollout.autoscalers import Handling
from planner.rollout.windows import ChangeWindow
from tests.sample_builders import POLICY, kafka_policy


def test_a_policy_with_defaults() -> None:
    policy = parse_policy(POLICY, "p.yaml")
    assert (policy.objective.lowest, policy.objective.highest, policy.objective.backlog_gone_s) == (1, 16, 600.0)
    assert policy.objective.oldest_message_s is None
    assert policy.snapshot_settings.window_s == 120.0
    assert policy.rollout_settings.deployment == "shop-consumer"


@pytest.mark.parametrize(
    ("text", "handling", "quiet_s"),
    [
        ("minReplicas: 1", Handling("refuse"), None),
        ("autoscaler: {mode: setBounds}", Handling("setBounds"), None),
        ("autoscaler: {mode: pause, afterwards: restore}", Handling("pause", restores=True), None),
        ("stabilisation: {seconds: 900}", Handling("refuse"), 900),
    ],
)
def test_who_else_moves_the_count_and_how_often_it_may_move(
    text: str, handling: Handling, quiet_s: float | None
) -> None:
    policy = parse_policy(POLICY.replace("minReplicas: 1", text), "p.yaml")
    assert policy.rollout_settings.autoscaler == handling
    assert (policy.objective.sets_autoscaler, policy.objective.quiet_s) == (handling.is_allowed, quiet_s)


def auto(criteria: str, *windows: str) -> str:
    return f"approval: {{mode: Auto, criteria: {{{criteria}}}}}\n  changeWindows: [{', '.join(windows)}]"


def windowed(window: str) -> str:
    return auto("mostDuplicates: 1, onlyInChangeWindows: true", f"{{{window}}}")


def event(body: str, times: int = 1) -> str:
    return "events: [" + ", ".join([f"{{name: sale, {body}}}"] * times) + "]"


WRONG = [
    ("maxReplicas: 16", "maxReplicas: many", "field spec.maxReplicas: found 'many', expected a valid integer"),
    ("maxReplicas: 16", "maxReplicas: '16'", "field spec.maxReplicas: found '16', expected a valid integer"),
    ("maxReplicas: 16", "maxReplicas: 0", "field spec.maxReplicas: found 0, expected greater than or equal to 1"),
    ("  maxReplicas: 16\n", "", "field spec.maxReplicas is missing"),
    ("minReplicas: 1", "minReplicas: 17", "minReplicas 17 to be at most maxReplicas 16"),
    ("minReplicas: 1", "minReplica: 1", "field spec.minReplica is not known"),
    ("minReplicas: 1", "minReplicas: 1\n  minReplicas: 2", "line 8, column 3: not valid YAML: key 'minReplicas' occ"),
    ("{maxUtilisation: 0.8,", "{maxUtilisation: 1.8,", "field spec.objective.maxUtilisation: found 1.8"),
    ("{maxUtilisation: 0.8,", "{maxUtilisation: .nan,", "field spec.objective.maxUtilisation: found nan"),
    ("system: rocketmq", "system: rabbit", "field spec.source.system: found 'rabbit', expected 'rocketmq', 'kafka'"),
    ("minReplicas: 1", "strategyOptions: {virtual_nodes: 5}", "expected strategyOptions to stand beside the strategy"),
    ("minReplicas: 1", "strategy: AVG\n  strategyOptions: {rooms: 5}", "field spec.strategyOptions: options: found"),
    ("system: rocketmq, ", "", "field spec.source.system is missing"),
    ("system: rocketmq", "system: kafka", "also wrong: spec.source.bootstrapServers"),
    ("group: shop", "grup: shop", "field spec.source.grup is not known: did you mean group?"),
    ("group: shop", "group: shop, tls: {verify: 3}", "field spec.source.tls.verify: found 3"),
    ("group: shop", "group: shop, prometheus: {url: 'http://u:p@h'}", "field spec.source.prometheus.url: found"),
    ("minReplicas: 1", f"newPods: {{topics: {['t'] * 1_001}}}", "expected at most 1000 items, not 1001"),
    ("group: shop", f"group: shop, topics: {['t'] * 1_001}", "expected at most 1000 items, not 1001"),
    ("minReplicas: 1", "approval:", "field spec.approval: found nothing, expected fields below it: mode, cri"),
    ("window: {seconds: 120}", "window: 600", "spec.window: found 600, expected fields below it: seconds, percen"),
    ("minReplicas: 1", "stabilisation: {}", "field spec.stabilisation.seconds is missing"),
    ("minReplicas: 1", "stabilisation: {seconds: -1}", "field spec.stabilisation.seconds: found -1"),
    ("minReplicas: 1", "behavior: {scaleUp: {periodSeconds: 60}}", "field spec.behavior.scaleUp.pods is missing"),
    ("minReplicas: 1", "behavior: {scaleDown: {pods: 0}}", "field spec.behavior.scaleDown.pods: found 0"),
    ("minReplicas: 1", "autoscaler: {mode: fight}", "field spec.autoscaler.mode: found 'fight'"),
    ("minReplicas: 1", "prices: {duplicateSeconds: -1}", "spec.prices.duplicateSeconds: found -1, expected greater"),
    ("minReplicas: 1", "prices: {queue: 1}", "field spec.prices.queue is not known"),
    ("minReplicas: 1", "timing: {clientVersion: '4', brokerVersion: '4'}", "field spec.timing is for Kafka"),
    ("minReplicas: 1", "approval: {mode: Auto}", "field spec.approval: expected criteria with mode Auto"),
    ("minReplicas: 1", "approval: {criteria: {mostDuplicates: 1}}", "field spec.approval: expected criteria with mode"),
    ("minReplicas: 1", "approval: {mode: auto}", "field spec.approval.mode: found 'auto', expected 'Manual' or 'Auto'"),
    ("minReplicas: 1", "approval: {approvers: ['a b']}", "field spec.approval.approvers.0: found 'a b'"),
    ("minReplicas: 1", "approval: {mode: Auto, criteria: {}}", "expected criteria to name mostMovedQueues"),
    ("minReplicas: 1", "approval: {mode: Auto, criteria: {onlyInChangeWindows: true}}", "criteria to name mostMoved"),
    ("minReplicas: 1", auto("mostDuplicates: -1"), "criteria.mostDuplicates: found -1, expected greater than or equal"),
    ("minReplicas: 1", auto("mostDuplicates: 1", "{}"), "expected changeWindows together with approval.criteria.only"),
    ("minReplicas: 1", auto("mostDuplicates: 1, onlyInChangeWindows: true"), "expected changeWindows together with"),
    ("minReplicas: 1", windowed("from: 22:00"), 'spec.changeWindows.0.from: found 1320, expected a time in quotes'),
    ("minReplicas: 1", windowed("from: '9:00'"), "spec.changeWindows.0.from: found '9:00', expected"),
    ("minReplicas: 1", windowed("from: '24:00'"), "spec.changeWindows.0: expected a day to begin at"),
    ("minReplicas: 1", windowed("from: '09:00', to: '09:00'"), "spec.changeWindows.0: expected from and to to differ"),
    ("minReplicas: 1", windowed("days: [Mon]"), "spec.changeWindows.0.days.0: found 'Mon', expected 'Monday'"),
    ("minReplicas: 1", windowed("days: []"), "spec.changeWindows.0.days: found []"),
    ("minReplicas: 1", windowed("timeZone: Berlin"), "spec.changeWindows.0.timeZone: found 'Berlin', expected a time"),
    ("minReplicas: 1", windowed("timeZone: Europe"), "spec.changeWindows.0.timeZone: found 'Europe', expected a time"),
    ("minReplicas: 1", windowed("timeZone: ../x"), "spec.changeWindows.0.timeZone: found '../x', expected a time"),
    ("minReplicas: 1", "prices: {consumerHour: -0.1}", "spec.prices.consumerHour: found -0.1, expected greater than"),
    ("minReplicas: 1", "prices: {consumerHour: .inf}", "spec.prices.consumerHour: found inf, expected"),
    ("minReplicas: 1", event("from: 18:00, to: '22:00', factor: 3"), "found 1080, expected a time in quotes"),
    ("minReplicas: 1", event("from: '18:00', to: '2026-11-27T22:00', factor: 3"), "expected from and to to be both"),
    ("minReplicas: 1", event("from: '2026-02-30T18:00', to: '2026-03-01T22:00', factor: 3"), "dates of the calendar"),
    ("minReplicas: 1", event("from: '2026-11-20T18:00', to: '2026-11-27T18:01', factor: 3"), "by 7 days at most"),
    ("minReplicas: 1", event("from: '2026-11-27T18:00', to: '2026-11-27T18:00', factor: 3"), "to lie after from"),
    ("minReplicas: 1", event("days: [Monday], from: '2026-11-27T18:00', to: '2026-11-27T19:00', floor: 3"), "days bes"),
    ("minReplicas: 1", event("from: '18:00', to: '18:00', factor: 3"), "spec.events.0: expected from and to to differ"),
    ("minReplicas: 1", event("from: '18:00', to: '22:00'"), "spec.events.0: expected either factor or floor"),
    ("minReplicas: 1", event("from: '18:00', to: '22:00', factor: 3, floor: 5"), "expected either factor or floor"),
    ("minReplicas: 1", event("from: '18:00', to: '22:00', factor: 101"), "found 101, expected less than or"),
    ("minReplicas: 1", event("from: '18:00', to: '22:00', factor: .nan"), "spec.events.0.factor: found nan, expected"),
    ("minReplicas: 1", event("from: '18:00', to: '22:00', floor: 3", 2), "expected events to have a name of their own"),
    ("minReplicas: 1", event("from: '18:00', to: '22:00', floor: 3", 51), "spec.events: found"),
    ("metadata: {name: shop}", "metadata: {name: Shop Orders}", "field metadata.name: found 'Shop Orders'"),
    ("kind: ConsumerScalingPolicy", "kind: Deployment", "field kind is 'Deployment', expected ConsumerScalingPolicy"),
    ("dev/v1alpha1", "dev/v1", "field apiVersion is consumerplanner.dev/v1, this planner reads"),
    ("apiVersion: consumerplanner.dev/v1alpha1", "apiVersion: apps/v1", "field apiVersion is 'apps/v1'"),
    ("spec:", "spec: [", "p.yaml line 6, column 3: not valid YAML"),
    ("apiVersion:", "--- {}\n---\napiVersion:", "found 2 YAML documents"),
]  # fmt: skip


def test_events_are_times_of_their_zone_and_a_policy_without_any_keeps_its_digest() -> None:
    plain = parse_policy(POLICY, "p.yaml")
    assert parse_policy(POLICY.replace("minReplicas: 1", "events: []"), "p.yaml").digest == plain.digest
    dates = event("from: '2026-11-27T18:00', to: '2026-11-28T24:00', timeZone: Europe/Berlin, factor: 3")
    policy = parse_policy(POLICY.replace("minReplicas: 1", dates), "p.yaml")
    assert policy.digest != plain.digest
    (sale,) = policy.objective.events
    assert sale.times == DateSpan(datetime(2026, 11, 27, 17, tzinfo=UTC), datetime(2026, 11, 28, 23, tzinfo=UTC))
    assert (sale.factor, sale.floor) == (3.0, 0.0)


def test_step_limits_are_the_objective_s_and_a_policy_without_any_keeps_its_digest() -> None:
    plain = parse_policy(POLICY, "p.yaml")
    assert parse_policy(POLICY.replace("minReplicas: 1", "behavior: {}"), "p.yaml").digest == plain.digest
    text = "behavior: {scaleUp: {pods: 4, periodSeconds: 600}, scaleDown: {pods: 1}}"
    policy = parse_policy(POLICY.replace("minReplicas: 1", text), "p.yaml")
    assert (policy.objective.step_up, policy.objective.step_down) == (StepLimit(4, 600.0), StepLimit(1))
    assert policy.digest != plain.digest
    assert (plain.objective.step_up, plain.objective.step_down) == (None, None)


def test_prices_are_those_that_a_rollout_is_weighed_by() -> None:
    assert parse_policy(POLICY, "p.yaml").rollout_settings.prices == DEFAULT_PRICES
    money = parse_policy(POLICY.replace("minReplicas: 1", "prices: {consumerHour: 0.05}"), "p.yaml")
    assert money.rollout_settings.prices == replace(DEFAULT_PRICES, consumer_hour=0.05)
    priced = POLICY.replace("minReplicas: 1", "prices: {movedQueueSeconds: 5, standstillSeconds: 0}")
    assert parse_policy(priced, "p.yaml").rollout_settings.prices == replace(
        DEFAULT_PRICES, moved_queue_s=5.0, standstill_s=0.0
    )


def test_how_long_a_plan_stays_changes_no_digest_of_policies_that_do_not_say() -> None:
    """Red when plans that earlier releases made under a policy are refused as made under another one."""
    path = Path(__file__).parents[3] / "examples" / "policies" / "shop-orders.yaml"
    policy = read_policy(path)
    assert policy.digest == "sha256:97eced3ffe0593d38949b481319fe3292a6002f3b8ef6e781408bb905c78aaa7"
    assert policy.rollout_settings.ttl_s is None
    text = path.read_text(encoding="utf-8").replace("\nspec:\n", "\nspec:\n  rollout: {ttlSecondsAfterFinished: %d}\n")
    saying = parse_policy(text % 3600, "p.yaml")
    assert (saying.rollout_settings.ttl_s, saying.digest == policy.digest) == (3600, False)
    with pytest.raises(DocumentError, match=r"spec\.rollout\.ttlSecondsAfterFinished"):
        parse_policy(text % 59, "p.yaml")


def test_approvers_are_part_of_what_is_wanted() -> None:
    named = parse_policy(POLICY.replace("minReplicas: 1", "approval: {approvers: [ana]}"), "p.yaml")
    assert named.spec.approval.approvers == ("ana",)
    assert named.digest != parse_policy(POLICY, "p.yaml").digest
    empty = parse_policy(POLICY.replace("minReplicas: 1", "approval: {approvers: []}"), "p.yaml")
    assert empty.digest == parse_policy(POLICY, "p.yaml").digest


def test_the_rule_that_weighs_knows_only_the_bounds_that_are_stated() -> None:
    text = POLICY.replace("{maxUtilisation: 0.8, backlogGoneSeconds: 600}", "{rule: SmallestCount}")
    smallest = parse_policy(text, "p.yaml")
    assert (smallest.objective.max_utilisation, smallest.objective.wait) == (0.8, None)
    weighing = POLICY.replace("{maxUtilisation: 0.8, backlogGoneSeconds: 600}", "{rule: Horizon, lateAfterSeconds: 30}")
    policy = parse_policy(weighing.replace("minReplicas: 1", "prices: {lateMinuteSeconds: 60}"), "p.yaml")
    assert policy.objective.stated_utilisation is None
    assert policy.objective.wait == WaitObjective(
        late_after_s=30.0, pod_start_s=30.0, decided_every_s=600.0, prices=replace(DEFAULT_PRICES, late_minute_s=60.0)
    )
    bound = parse_policy(weighing.replace("{rule", "{maxUtilisation: 0.8, rule"), "p.yaml")
    assert bound.objective.stated_utilisation == 0.8
    # Each field is part of what a plan is made under; the rule of earlier releases keeps their digest.
    stated = parse_policy(POLICY.replace("{maxUtilisation", "{rule: SmallestCount, maxUtilisation"), "p.yaml")
    assert stated.digest == parse_policy(POLICY, "p.yaml").digest
    later = parse_policy(weighing.replace("30}", "31}"), "p.yaml")
    assert len({one.digest for one in (smallest, policy, bound, later)}) == 4
    with pytest.raises(DocumentError, match=r"spec\.objective\.rule: found 'Cheapest', expected 'SmallestCount' or"):
        parse_policy(POLICY.replace("{maxUtilisation", "{rule: Cheapest, maxUtilisation"), "p.yaml")


@pytest.mark.parametrize(
    ("stated", "is_weighed"),
    [
        ("{}", True),
        ("{lateAfterSeconds: 30}", True),
        ("{maxUtilisation: 0.9, podStartSeconds: 60}", True),
        ("{maxUtilisation: 0.8}", False),
        ("{oldestMessageSeconds: 60}", False),
        ("{backlogGoneSeconds: 600}", False),
        ("{rule: Horizon, maxUtilisation: 0.8}", True),
        ("{rule: SmallestCount}", False),
    ],
)
def test_a_policy_without_bounds_gets_the_count_that_costs_least(stated: str, is_weighed: bool) -> None:
    """Red when a bound that somebody stated stops being the rule, or when the required fields alone bring 80 %."""
    policy = parse_policy(POLICY.replace("{maxUtilisation: 0.8, backlogGoneSeconds: 600}", stated), "p.yaml")
    assert (policy.objective.wait is not None) == is_weighed
    rule = "Horizon" if is_weighed else "SmallestCount"
    written = "rule: " + rule + (", " if stated != "{}" else "")
    if "rule" not in stated:
        explicit = parse_policy(
            POLICY.replace("{maxUtilisation: 0.8, backlogGoneSeconds: 600}", stated.replace("{", "{" + written)),
            "p.yaml",
        )
        assert explicit.digest == policy.digest


def test_a_policy_that_approves_by_rule() -> None:
    assert parse_policy(POLICY, "p.yaml").approval_rule is None
    window = windowed("days: [Monday, Friday], from: '22:00', to: '06:30', timeZone: Europe/Berlin")
    rule = parse_policy(POLICY.replace("minReplicas: 1", window), "p.yaml").approval_rule
    assert rule == ApprovalRule(
        most_duplicates=1, windows=(ChangeWindow(frozenset({0, 4}), 1320, 390, ZoneInfo("Europe/Berlin")),)
    )
    anytime = parse_policy(POLICY.replace("minReplicas: 1", auto("longestPauseSeconds: 2.5")), "p.yaml").approval_rule
    assert anytime == ApprovalRule(longest_pause_s=2.5)


def test_a_window_that_names_nothing_is_always_open() -> None:
    rule = parse_policy(POLICY.replace("minReplicas: 1", windowed("")), "p.yaml").approval_rule
    assert rule is not None
    assert rule.windows == (ChangeWindow(frozenset(range(7)), 0, 1440, ZoneInfo("UTC")),)


@pytest.mark.parametrize(("right", "wrong", "said"), WRONG, ids=[said[:50] for _, _, said in WRONG])
def test_a_wrong_policy_is_named(right: str, wrong: str, said: str) -> None:
    assert right in POLICY
    with pytest.raises(DocumentError) as refused:
        parse_policy(POLICY.replace(right, wrong), "p.yaml")
    assert said in str(refused.value)
    assert str(refused.value).startswith("p.yaml")
    assert "\n" not in str(refused.value)


def test_a_newer_version_is_told_apart() -> None:
    with pytest.raises(NewerVersionError):
        parse_policy(POLICY.replace("v1alpha1", "v1beta1"), "p.yaml")


def test_an_empty_file_is_no_policy() -> None:
    with pytest.raises(DocumentError, match="found 0 YAML documents"):
        parse_policy("# nothing\n", "p.yaml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"absent\.yaml does not exist"):
        read_policy(tmp_path / "absent.yaml")


def test_a_missing_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="does not exist"):
        read_policies(tmp_path / "absent")
    with pytest.raises(BadInputError, match=r"holds no \.yaml file"):
        read_policies(tmp_path)


def test_two_policies_for_one_group_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POLICY)
    (tmp_path / "b.yaml").write_text(POLICY.replace("name: shop}", "name: shop-too}"))
    with pytest.raises(BadInputError, match="have the same group shop"):
        read_policies(tmp_path)


def test_two_policies_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POLICY)
    (tmp_path / "b.yml").write_text(POLICY.replace("group: shop", "group: other"))
    with pytest.raises(BadInputError, match="have the same name shop"):
        read_policies(tmp_path)


def test_a_kafka_group_names_its_secrets_by_file() -> None:
    kafka = "system: kafka, bootstrapServers: ['127.0.0.1:9092'], cluster: main, propertiesFile: /etc/kafka.properties"
    source = POLICY.split("source: {")[1].split(", group:")[0]
    read = parse_policy(POLICY.replace(source, kafka), "p.yaml").spec.source
    assert isinstance(read, KafkaSource)
    assert (read.bootstrap_servers, str(read.properties_file)) == (("127.0.0.1:9092",), "/etc/kafka.properties")


TIMING = "timing: {clientVersion: 'librdkafka 2.12.1', brokerVersion: '4.1.0', settings: {session.timeout.ms: 10000}}"


def kafka(timing: str) -> str:
    return kafka_policy("127.0.0.1:9092", "g").replace("minReplicas: 1", f"minReplicas: 1\n  {timing}")


def test_timing_reaches_the_snapshot() -> None:
    settings = parse_policy(kafka(TIMING), "p.yaml").snapshot_settings
    assert settings.timing == KafkaTiming("librdkafka 2.12.1", "4.1.0", settings=(("session.timeout.ms", 10_000),))


def test_the_example_with_several_members_a_pod_can_be_read() -> None:
    policy = read_policy(Path(__file__).parents[3] / "examples/kafka/shop-notifications.yaml")
    settings = policy.snapshot_settings
    stated = (settings.members_per_pod, settings.capacity_messages_per_s, settings.pod_capacity_messages_per_s)
    assert stated == (4, 100.0, 300.0)


@pytest.mark.parametrize("members", ["0", "65", "'4'", "2.5"])
def test_members_a_pod_are_1_to_64(members: str) -> None:
    with pytest.raises(DocumentError, match=r"spec\.membersPerPod"):
        parse_policy(f"{POLICY}  membersPerPod: {members}\n", "p.yaml")


def test_a_policy_without_the_newer_fields_keeps_the_digest_that_earlier_releases_gave_it() -> None:
    plain = parse_policy(f"{POLICY}  capacity: {{messagesPerSecond: 50}}\n", "p.yaml")
    # What the release before members a pod, and before the horizon, made of this policy.
    assert plain.digest == "sha256:8bd4dcc032e77df35f6813b6113589b11b8b0d02249236c732895f1bd6cc3403"
    assert parse_policy(f"{POLICY}  membersPerPod: 4\n", "p.yaml").digest != parse_policy(POLICY, "p.yaml").digest


@pytest.mark.parametrize(("stated", "may_repeat"), [("true", True), ("false", False)])
def test_a_policy_states_whether_consumers_are_idempotent(stated: str, may_repeat: bool) -> None:
    automatic = POLICY.replace("minReplicas: 1", auto("mostMovedQueues: 4"))
    silent, policy = parse_policy(automatic, "p.yaml"), parse_policy(f"{automatic}  idempotent: {stated}\n", "p.yaml")
    assert policy.rollout_settings.idempotent is may_repeat
    assert policy.approval_rule is not None
    assert policy.approval_rule.may_repeat is may_repeat
    assert (silent.rollout_settings.idempotent, policy.digest != silent.digest) == (None, True)
    with pytest.raises(DocumentError, match=r"spec\.idempotent: found 'yes'"):
        parse_policy(f"{POLICY}  idempotent: 'yes'\n", "p.yaml")


def test_the_kafka_example_can_be_read() -> None:
    policy = read_policy(Path(__file__).parents[3] / "examples/kafka/shop-payments.yaml")
    assert policy.snapshot_settings.timing is not None
    assert policy.snapshot_settings.timing.record_s == 0.005


@pytest.mark.parametrize(
    ("found", "wrong", "says"),
    [
        ("session.timeout.ms: 10000", "session.timeout: 10000", 'field spec.timing: settings: found "session.timeout"'),
        ("session.timeout.ms: 10000", "group.protocol: consumer", "found group.protocol, which the planner learns"),
        ("10000", "abc", 'field spec.timing: settings.session.timeout.ms: found "abc"'),
        ("librdkafka 2.12.1", "newest", 'field spec.timing: versions.client: found "newest"'),
        ("brokerVersion: '4.1.0', ", "", "field spec.timing.brokerVersion is missing"),
    ],
)
def test_wrong_timing_is_one_sentence(found: str, wrong: str, says: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_policy(kafka(TIMING.replace(found, wrong)), "p.yaml")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("field", "most"),
    [
        ("rollout: {validForSeconds: %s}", 604_800),
        ("rollout: {readySeconds: %s}", 604_800),
        ("rollout: {settledSeconds: %s}", 604_800),
        ("objective: {oldestMessageSeconds: %s}", 31_536_000),
        ("objective: {backlogGoneSeconds: %s}", 31_536_000),
        ("objective: {lateAfterSeconds: %s}", 31_536_000),
        ("objective: {podStartSeconds: %s}", 31_536_000),
        ("objective: {decidedEverySeconds: %s}", 31_536_000),
        ("freshness: {maxAgeSeconds: %s}", 31_536_000),
    ],
)
def test_times_of_a_policy_can_be_counted_to(field: str, most: int) -> None:
    """Red without a bound: the first run that adds such a time to a date fails, and so do all after it."""
    plain = "\n".join(
        line for line in POLICY.splitlines() if not line.startswith(f"  {field.split(':', maxsplit=1)[0]}:")
    )
    text = plain.replace("minReplicas: 1", "minReplicas: 1\n  " + field)
    assert parse_policy(text % most, "p.yaml") is not None
    for seconds in (most + 1, 999_999_999_999):
        with pytest.raises(DocumentError, match=rf"expected less than or equal to {most}"):
            parse_policy(text % seconds, "p.yaml")


@pytest.mark.parametrize(
    ("place", "spelt", "field"),
    [
        ("spec:", 'spec:\n  kubernetes: {kubeconfigFile: "a\\0b"}', "spec.kubernetes.kubeconfigFile"),
        ("group: shop", 'group: shop, credentialsFile: "a\\0b"', "spec.source.credentialsFile"),
        ("group: shop", 'group: shop, tls: {caFile: "a\\0b"}', "spec.source.tls.caFile"),
    ],
)
def test_a_path_that_no_file_can_have_is_refused(place: str, spelt: str, field: str) -> None:
    """Red when a NUL reaches the call that opens the file, which then fails with no error of ours."""
    with pytest.raises(DocumentError) as refused:
        parse_policy(POLICY.replace(place, spelt, 1), "p.yaml")
    assert f"field {field}: found 'a\\x00b', expected a path of whole characters" in str(refused.value)
