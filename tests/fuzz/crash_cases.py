"""Inputs that once raised something else than a typed error: they stay. ``make fuzz`` prints new ones in this form."""

import json
from typing import Any, Final

from tests.parquet_footers import Footer

_LEVELS: Final = "[" * 3_000
_PLAN: Final = (
    b"apiVersion: consumerplanner.dev/v1alpha1\nkind: ConsumerRolloutPlan\n"
    b"metadata: {name: p, annotations: {consumerplanner.dev/digest: x}}\n"
)


def _objects(annotations: dict[str, str], applied: str = "{}") -> bytes:
    from tests.fuzz.cluster import object_seeds

    document: Any = json.loads(object_seeds()[0])
    document["annotations"] = annotations
    document["deployment"]["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = applied
    return json.dumps(document).encode()


def _scraped(at: str) -> bytes:
    from tests.fuzz.brokers import prometheus_seeds

    document: Any = json.loads(prometheus_seeds()[0])
    for series in document["query_range kafka_topic_partition_current_offset"]["data"]["result"]:
        if series["metric"]["planner_reads"] == "time":
            series["values"][-1][1] = at
    return json.dumps(document).encode()


def _form(**params: Any) -> bytes:
    return json.dumps(
        {"dag": "consumer_planner", "params": {"source": "recording", "recording": "/r", **params}}
    ).encode()


def _with_offset(offset: int) -> bytes:
    from tests.fuzz.documents import sample_seeds, sealed

    document: Any = json.loads(sample_seeds()[0])
    document["body"]["offsets"][0]["broker_offset"] = offset
    return sealed(json.dumps(document).encode())


def _plan_until(until: str) -> bytes:
    from tests.fuzz.documents import plan_seeds, sealed_plan

    document: Any = json.loads(plan_seeds()[1])
    document["spec"]["validUntil"] = until
    return sealed_plan(json.dumps(document).encode())


def _arrivals(path: str) -> bytes:
    from tests.fuzz.readers import reader

    document: Any = json.loads(reader("backtest scenario").seeds()[0])
    return json.dumps(document | {"arrivals": path}).encode()


def _policy_of_kind(kind: str) -> bytes:
    from tests.fuzz.readers import reader

    document: Any = json.loads(reader("policy").seeds()[0])
    del document["spec"]["scaleTargetRef"]
    document["spec"]["scaleTargetRefs"] = [{"name": "app", "kind": kind}, {"name": "app-next"}]
    return json.dumps(document).encode()


def _judged_plan(system: str) -> bytes:
    from tests.fuzz.cluster import event_seeds

    document: Any = json.loads(event_seeds()[-1])
    document["spec"]["group"]["system"] = system
    return json.dumps(document).encode()


CASES: Final[list[tuple[str, bytes, str]]] = [
    # OverflowError: a value that was scraped when no calendar reaches.
    ("prometheus", _scraped("1e300"), "AnswerError"),
    # TypeError: a time without zone is neither before nor after one that has a zone.
    ("plan", _plan_until("2026-11-21T10:45:00"), "DocumentError"),
    # ValueError: no file has a name with a NUL in it.
    ("backtest scenario", _arrivals("\0"), "DocumentError"),
    # ValueError, and a record that would have been written outside of its folder: the system was taken as a name.
    ("watch event", _judged_plan("\0"), "read"),
    ("watch event", _judged_plan("../../x"), "read"),
    # TypeError: a list as a key of YAML cannot be looked up.
    ("yaml", b"? [a]\n: b\n", "DocumentError"),
    ("yaml", b"{[a]: b}", "DocumentError"),
    # TypeError: an anchor without a key beside texts cannot be sorted for the digest.
    ("plan file", _PLAN + b"spec:\n  &a: b\n  c: d\n", "DocumentError"),
    # AttributeError, IndexError, KeyError, ValueError of PyYAML: tags on what is none.
    ("yaml", b"a: !!timestamp 2", "DocumentError"),
    ("yaml", b"a: !!int ''", "DocumentError"),
    ("yaml", b"a: !!bool x", "DocumentError"),
    # ValueError and RecursionError: one line of a recording.
    ("capture", b" " + b"9" * 5_000, "DocumentError"),
    ("capture", b" " + _LEVELS.encode(), "DocumentError"),
    # Annotations that anybody who may change a Deployment writes: JSON of thousands of levels, digits, another shape.
    ("kubernetes objects", _objects({}, _LEVELS), "read"),
    ("kubernetes objects", _objects({}, '{"spec":3}'), "read"),
    *(
        ("kubernetes objects", _objects({f"consumerplanner.dev/{name}": text}), "ImpossibleError")
        for name in ("strategy-before", "behavior-before")
        for text in (_LEVELS, "9" * 5_000, "3", '"x"', "[]", "")
    ),
    # OverflowError: times at the end of all times, in another zone.
    ("airflow form", _form(since="2026-11-21T10:00:00Z", until="0001-01-01T00:00:00+23:59"), "BadInputError"),
    # UnicodeEncodeError and ValueError: a path of half a character, or with a zero byte.
    ("airflow form", _form(recording="/r\ud800"), "BadInputError"),
    ("airflow form", _form(recording="/r\0"), "BadInputError"),
    # KeyError and TypeError: a journal of another shape; and one that would have deleted what is not the history's.
    ("history journal", b"{}", "DocumentError"),
    ("history journal", b'{"moves": [["a"]], "deletes": []}', "DocumentError"),
    ("history journal", b'{"moves": [], "deletes": ["file:///etc"]}', "DocumentError"),
    ("history journal", b'{"moves": [], "deletes": ["file:///data/history/../other"]}', "DocumentError"),
    ("history journal", b'{"moves": [], "deletes": ["file:///data/history/"]}', "DocumentError"),
    # OverflowError: an offset that no column holds; each run of the history stumbled over the file again.
    ("history rows", _with_offset(2**63), "BadInputError"),
    ("history rows", _with_offset(2**63 - 1), "read"),
    # UnicodeEncodeError: pydantic could not pass on a sentence that quotes half a surrogate pair.
    ("policy", _policy_of_kind("a\ud800p"), "DocumentError"),
    # The whole process ended, in pyarrow's C++: row groups with columns that the schema lacks.
    ("parquet footer", Footer(columns=0, group_columns=1).file(), "StorageError"),
]
"""Reader, input, what comes of it."""
