"""Readers of documents: files of the data folder, policies, plans, requests of the commands, scenarios."""

import functools
import gzip
import io
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from planner.cli.allocate import read_document
from planner.documents.allocation import answer as allocate
from planner.documents.backtest import read_scenario
from planner.documents.data import CALIBRATION, METRIC_HISTORY, OUTCOMES, SAMPLE, SNAPSHOT, DataKind
from planner.documents.forecast import forecast
from planner.documents.format import digest_of
from planner.documents.migration import parse_request
from planner.documents.plan import DECISION, DIGEST_ANNOTATION, PLAN, read_plan_or_decision
from planner.documents.policy import parse_policy, policy_of
from planner.documents.yaml import dump_yaml, load_yaml
from planner.errors import BadInputError, DocumentError, PlannerError
from planner.orchestration.examples import EXAMPLES
from planner.runs.landed import read_sample
from planner.sources.capture import HEADER, HEADER_FILE, SAMPLES_FILE, open_capture, write_capture
from planner.storage.landing import samples_of_reading
from planner.storage.readings import line_of_group, write_reading
from planner.verification.calibration import calibration_records
from planner.verification.judge import judge
from planner.verification.observed_change import Between, ObservedChange
from tests.builders import AT, clients, decided, kafka_snapshot, queues, snapshot
from tests.fuzz.damage import changed_json, damaged_bytes, json_or_bytes
from tests.fuzz.engine import Reader
from tests.pod_groups import plan_for
from tests.sample_builders import POLICY, kafka_policy, watch
from tests.step_builders import STEPS
from tests.unit.allocation.kafka.worked import WORKED as KAFKA_WORKED
from tests.unit.allocation.worked import WORKED
from tests.unit.snapshot.test_metrics import past

ROOT: Final = Path(__file__).parents[2]
MEMORY: Final = Path("/dev/shm")


@functools.cache
def folder() -> Path:
    """Return a folder of this process for readers that take paths."""
    return Path(_kept().name)


@functools.cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    # In memory where there is such a folder: each case writes a file, which on a disk takes as long as reading it.
    return tempfile.TemporaryDirectory(prefix="planner-fuzz-", dir=MEMORY if MEMORY.is_dir() else None)


def sealed(data: bytes) -> bytes:
    """Return a data file with the digest of the body that it has."""
    return _sealed(data, lambda document: document.update(digest=digest_of(document["body"])))


def sealed_plan(data: bytes) -> bytes:
    """Return a plan with the digest of the spec that it has."""

    def seal(document: Any) -> None:
        document["metadata"]["annotations"][DIGEST_ANNOTATION] = digest_of(document["spec"])

    return _sealed(data, seal)


def _sealed(data: bytes, seal: Callable[[Any], None]) -> bytes:
    try:
        document = json.loads(data)
        seal(document)
        return json.dumps(document).encode()
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError, PlannerError, MemoryError):
        return data  # readers refuse it before they look at its digest


def data_reader(name: str, kind: DataKind[Any], seeds: Callable[[], Sequence[bytes]]) -> Reader:
    """Return the reader of one kind of data file."""
    return Reader(name, lambda data: kind.parse(data, name), seeds, ("planner.documents", "planner.model"), seal=sealed)


@functools.cache
def _decided() -> Any:
    return decided(snapshot(capacity=65.0), trials=2)


def plan_seeds() -> list[bytes]:
    """Return plans with every step, a plan of a decision, and a decision to hold."""
    plans = [plan_for("app", ["a", "b"], STEPS), _decided().plan]
    documents = [PLAN.document(plan, "plan", "shop") for plan in plans]
    return [json.dumps(one).encode() for one in (*documents, DECISION.document(_decided().record, "hold"))]


def read_plan(data: bytes) -> object:
    """Read a plan as a cluster gives it, or a decision."""
    document = load_json(data)
    kind = document.get("kind") if isinstance(document, dict) else None
    return (DECISION if kind == DECISION.kind else PLAN).parse(document, "plan")


def load_json(data: bytes) -> Any:
    """Return the JSON as a request's file is read; raise ``BadInputError`` for none."""
    path = folder() / "request.json"
    path.write_bytes(data)
    return read_document(str(path))


def read_plan_file(data: bytes) -> object:
    """Read a plan file: YAML, as a person may have edited it."""
    path = folder() / "plan.yaml"
    path.write_bytes(data)
    return read_plan_or_decision(path)


def read_capture(data: bytes) -> object:
    """Read a recording whose samples file holds these bytes, packed where the first is a blank."""
    place = _recording("capture")
    packed = gzip.compress(data[1:], 1) if data[:1] == b" " else data
    (place / SAMPLES_FILE).write_bytes(packed)
    return list(open_capture(place).samples())


def _recording(name: str) -> Path:
    """Return a recording of two samples, in a folder of its own."""
    place = folder() / name
    if not place.exists():
        write_capture(place, watch(2, topics={"t": 1}), 5.0, (), ())
    return place


def read_reading(data: bytes) -> object:
    """Read every sample of a reading whose file holds these bytes, and look for a group by bisection."""
    place = folder() / "readings" / "kafka" / "main" / "20261121T100000.000Z-0123456789ab.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    samples, fault = samples_of_reading(place)
    values = [read_sample(sample) for sample in samples]
    line_of_group(place, "b")
    if fault is not None:
        raise DocumentError(fault)
    return values


def reading_seeds() -> list[bytes]:
    """Return readings of one group and of three."""
    place, (sample,) = folder() / "landed", watch(1, topics={"t": 1})
    readings = []
    for groups in ("b", "abc"):
        documents = {
            group: SAMPLE.dump(replace(sample, system="kafka", cluster="main", group=group)) for group in groups
        }
        readings.append(write_reading(place, "kafka", "main", sample.at, documents).read_bytes())
    return readings


def capture_seeds() -> list[bytes]:
    """Return samples a line, packed and not."""
    packed = (_recording("recorded") / SAMPLES_FILE).read_bytes()
    return [b" " + gzip.decompress(packed), packed]


def damage_capture(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Damage one line of the samples, or the packed file."""
    if data[:1] != b" ":
        return damaged_bytes(chance, data, others)
    lines = data[1:].split(b"\n")
    number = chance.randrange(len(lines))
    lines[number] = json_or_bytes(chance, lines[number], [lines[0]])
    return b" " + b"\n".join(lines)


def read_yaml(data: bytes) -> object:
    """Read YAML and, where there is a document in it, a policy."""
    text = data.decode(errors="replace")
    try:
        load_yaml(text, "document")
    finally:
        parse_policy(text, "policy")
    return None


def yaml_seeds() -> list[bytes]:
    """Return short documents with all that YAML has."""
    texts = (
        "a: [1, 2.5, true, null, ~, .inf, 0x1f, 0o17, 1_000, 12:30:45]\nb: {c: 'd', \"e\": f}\n",
        "- |\n  text\n- >-\n  folded\n- !!str 1\n- !!int '3'\n- !!float '3'\n- !!bool 'yes'\n- !!binary aGk=\n",
        "? a\n: !!set {b, c}\nd: !!omap [e: 1]\nf: !!pairs [g: 1]\nh: !!timestamp 2026-11-21\n",
        '%YAML 1.1\n---\na: "\\x41\\u0042"\n...\n',
        POLICY,
    )
    return [text.encode() for text in texts]


def policy_seeds() -> list[bytes]:
    """Return the policies of the examples and one with every part, as JSON, which is YAML, too."""
    texts = [POLICY, kafka_policy("k:9092", "g")]
    texts += [path.read_text() for path in sorted((ROOT / "examples").rglob("*.yaml"))]
    found = [document for text in texts if (document := load_yaml(text, "example")) and isinstance(document, dict)]
    policies = [one for one in found if one.get("kind") == "ConsumerScalingPolicy"]
    full = json.loads(json.dumps(policies[0]))
    full["spec"] |= {
        "strategy": "CONSISTENT_HASH",
        "strategyOptions": {"virtual_nodes": 5},
        "stabilisation": {"seconds": 900},
        "behavior": {"scaleUp": {"pods": 4}, "scaleDown": {"pods": 1, "periodSeconds": 600}},
        "autoscaler": {"mode": "pause", "afterwards": "restore"},
        "approval": {"mode": "Auto", "criteria": {"mostDuplicates": 1, "onlyInChangeWindows": True}},
        "changeWindows": [{"days": ["Monday"], "from": "09:00", "to": "17:00", "timeZone": "Europe/Berlin"}],
        "events": [{"name": "sale", "from": "2026-11-27T18:00", "to": "2026-11-27T22:00", "factor": 3}],
        "prices": {"movedQueueSeconds": 1, "duplicateSeconds": 1, "standstillSeconds": 1},
        "capacity": {"messagesPerSecond": 50},
        "freshness": {"minCompleteness": 0.5},
        "rollout": {"validForSeconds": 900, "ttlSecondsAfterFinished": 3600},
    }
    full["spec"]["source"] |= {
        "prometheus": {"url": "http://p:9090", "labels": {"group": "g"}, "matchers": {"a": "b"}, "caFile": "/ca"},
        "tls": {"caFile": "/ca", "verifyNames": False},
        "credentialsFile": "airflow://brokers",
    }
    return [json.dumps(one).encode() for one in (*policies, full)]


def read_policy(data: bytes) -> object:
    """Read a policy written as JSON: YAML takes a hundred times as long and has its own reader."""
    try:
        document = json.loads(data.decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise BadInputError("no JSON") from error
    return policy_of(document, "policy")


def allocation_seeds() -> list[bytes]:
    """Return the worked requests of all strategies."""
    return [json.dumps(one.request).encode() for one in (*WORKED.values(), *KAFKA_WORKED.values())]


def forecast_seeds() -> list[bytes]:
    """Return the examples, with few trials: the reader is meant, not the simulation."""
    paths = sorted((ROOT / "examples" / "changes").glob("*.json"))
    return [json.dumps({**json.loads(path.read_bytes()), "trials": 2}).encode() for path in paths]


def read_forecast(data: bytes) -> object:
    """Forecast one change with at most two trials: more are only more of the same."""
    request = load_json(data)
    if isinstance(request, dict) and isinstance(request.get("trials", 200), int) and request.get("trials", 200) > 2:
        request["trials"] = 2
    return forecast(request)


SCENARIO: Final = {
    "arrivals": "arrivals.csv", "interval_s": 60, "history_s": 0, "system": "rocketmq", "strategy": "AVG",
    "capacity": 100.0, "pod_start_s": 30.0, "min": 1, "max": 4, "start": 2, "late_after_s": 60.0,
    "prices": {"rebalance_h": 0.25, "late_minute_h": 1.0}, "every_s": 60.0, "seed": 1, "policies": ["planner"],
}  # fmt: skip
ARRIVALS: Final = "second,topic,queue,messages\n0,t,0,10\n0,t,1,5\n60,t,0,1e3\n120,t,1,7.5\n"


def read_backtest(data: bytes) -> object:
    """Read a scenario, or, where the bytes begin with a letter, arrivals of a good one: CSV, or Parquet (``PAR1``)."""
    name = "arrivals.parquet" if data[:3] == b"PAR" else "arrivals.csv"
    scenario, arrivals = folder() / "scenario.json", folder() / name
    is_scenario = data[:1] in b'{["'
    scenario.write_bytes(data if is_scenario else json.dumps(SCENARIO | {"arrivals": name}).encode())
    arrivals.write_bytes(ARRIVALS.encode() if is_scenario else data)
    return read_scenario(scenario)


def parquet_arrivals() -> bytes:
    """Return the arrivals as a Parquet file."""
    rows = [line.split(",") for line in ARRIVALS.splitlines()[1:]]
    second, topic, queue, messages = zip(*rows, strict=True)
    columns = {
        "second": [int(value) for value in second],
        "topic": topic,
        "queue": [int(value) for value in queue],
        "messages": [float(value) for value in messages],
    }
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def read_migration(data: bytes) -> object:
    """Read what somebody asks for in the form or in a file."""
    asked = load_json(data)
    if not isinstance(asked, dict):
        raise BadInputError("the form's schema asks for an object")
    return parse_request(asked, "migration")


def record_seeds() -> list[bytes]:
    """Return a record of how a forecast did."""
    plan = plan_for("app", ["a"], STEPS[:1])
    seen = ObservedChange(moved_queues=Between.exactly(3), pause_seconds=Between(1.0, 2.0))
    return [CALIBRATION.dump(calibration_records(plan, judge(plan.forecast, seen, AT))[0])]


def sample_seeds() -> list[bytes]:
    """Return a sample of each system."""
    kafka = ROOT / "examples" / "captures" / "kafka-restart-overload" / SAMPLES_FILE
    with gzip.open(kafka) as file:
        body = SAMPLE.validate(json.loads(next(file)), "example")
    return [SAMPLE.dump(watch(1, topics={"t": 1})[0]), SAMPLE.dump(body)]


def snapshot_seeds() -> list[bytes]:
    """Return a snapshot of each system."""
    return [SNAPSHOT.dump(one) for one in (snapshot(queues(each=1), clients(2)), kafka_snapshot())]


def past_seeds() -> list[bytes]:
    """Return pasts out of metrics, of queues and of the group alone."""
    whole, lean = past(), past(has_queues=False)
    return [
        METRIC_HISTORY.dump(replace(whole, intervals=whole.intervals[:3], points=whole.points[:2])),
        METRIC_HISTORY.dump(replace(lean, points=lean.points[:3], by_topic=lean.points[:1])),
    ]


def header_seeds() -> list[bytes]:
    """Return the headers of the bundled recordings."""
    return [path.read_bytes() for path in sorted((ROOT / "examples" / "captures").rglob(HEADER_FILE))]


def outcome_seeds() -> list[bytes]:
    """Return two outcomes with their forecasts."""
    return [OUTCOMES.dump(_decided().outcomes[:2])]


_DOCUMENTS: Final = ("planner.documents", "planner.rollout", "planner.decision", "planner.model")
READERS: Final = (
    data_reader("sample", SAMPLE, sample_seeds),
    data_reader(
        "snapshot",
        SNAPSHOT,
        lambda: [SNAPSHOT.dump(snapshot(queues(each=1), clients(2))), SNAPSHOT.dump(kafka_snapshot())],
    ),
    data_reader("calibration record", CALIBRATION, record_seeds),
    data_reader("metric history", METRIC_HISTORY, past_seeds),
    data_reader("outcomes", OUTCOMES, outcome_seeds),
    data_reader("capture header", HEADER, header_seeds),
    Reader("capture", read_capture, capture_seeds, ("planner.sources.capture",), damage_capture),
    Reader(
        "reading", read_reading, reading_seeds, ("planner.storage.readings", "planner.storage.landing"), damaged_bytes
    ),
    Reader("plan", read_plan, plan_seeds, _DOCUMENTS, changed_json, seal=sealed_plan),
    Reader(
        "plan file",
        read_plan_file,
        lambda: [dump_yaml(PLAN.document(plan_for("app", ["a"], STEPS[:1]), "plan", "shop")).encode()],
        _DOCUMENTS,
        damaged_bytes,
    ),
    Reader("yaml", read_yaml, yaml_seeds, ("planner.documents", "yaml"), damaged_bytes),
    Reader("policy", read_policy, policy_seeds, _DOCUMENTS, changed_json),
    Reader("allocate request", lambda data: allocate(load_json(data)), allocation_seeds, ("planner.allocation",)),
    Reader("forecast request", read_forecast, forecast_seeds, ("planner.forecast",)),
    Reader(
        "backtest scenario",
        read_backtest,
        lambda: [json.dumps(SCENARIO).encode(), ARRIVALS.encode(), parquet_arrivals()],
        ("planner.documents.backtest", "planner.documents.arrivals"),
    ),
    Reader(
        "migration request",
        read_migration,
        lambda: [json.dumps(request).encode() for _, request in EXAMPLES.values()],
        ("planner.documents", "planner.rollout.migrations"),
    ),
)
