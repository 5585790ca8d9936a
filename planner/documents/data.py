"""Data files: snapshots, samples and outcomes as versioned JSON around the model's own types."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from planner.documents.format import (
    API_VERSION,
    canonical,
    check_digest,
    check_header,
    digest_of,
    document_error,
)
from planner.errors import BadInputError, DocumentError, why_unread
from planner.model.points import MetricHistory
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import CandidateOutcome
from planner.text.bounded import MOST_BYTES, bounded_json
from planner.verification.calibration import CalibrationRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DataKind(Generic[T]):
    """One kind of data file: ``{"apiVersion", "kind", "digest", "body"}``, the digest over the body."""

    kind: str
    adapter: TypeAdapter[T]
    most_values: int | None = None
    """What others may write has a bound, in ``MOST_BYTES`` and in values; what a run makes for itself has none."""

    def body(self, value: T) -> Any:
        """Return ``value`` as plain JSON types."""
        return _without_news(self.adapter.dump_python(value, mode="json"))

    def digest(self, value: T) -> str:
        """Return the digest that names exactly this content."""
        return digest_of(self.body(value))

    def document(self, value: T) -> dict[str, Any]:
        """Return the whole document as plain JSON types."""
        body = self.body(value)
        return {"apiVersion": API_VERSION, "kind": self.kind, "digest": digest_of(body), "body": body}

    def dump(self, value: T) -> bytes:
        """Return the file's bytes; equal values give equal bytes."""
        return canonical(self.document(value)) + b"\n"

    def parse(self, text: bytes | str, where: str) -> T:
        """Return the value in ``text``. Raises ``DocumentError``, ``NewerVersionError`` or ``DigestError``."""
        try:
            document = check_header(self._load(text), self.kind, where)
        except (ValueError, RecursionError) as error:
            _refuse_yaml(text, self.kind, where)
            raise DocumentError(
                f"{where}: not valid JSON ({error}): it is cut off or was edited, make it again"
            ) from error
        body = document.get("body")
        check_digest(body, document.get("digest"), where)
        return self.validate(body, where)

    def load_body(self, text: bytes) -> Any:
        """Return the plain JSON of a body. Raises ``ValueError`` for what is no JSON, too large or too deep."""
        return self._load(text)

    def _load(self, text: bytes | str) -> Any:
        if self.most_values is None:
            return json.loads(text)
        return bounded_json(text.encode() if isinstance(text, str) else text, self.most_values)

    def claimed_digest(self, path: Path) -> object:
        """Return the digest that a file of this kind states, which ``read`` checks; of bytes, not of what was read."""
        return json.loads(path.read_bytes())["digest"]

    def validate(self, body: object, where: str) -> T:
        """Return the value of a body that was read already. Raises ``DocumentError``."""
        try:
            return self.adapter.validate_json(canonical(body), strict=True, extra="forbid")
        except ValidationError as error:
            raise document_error(error, where, ("body",)) from error

    def read(self, path: Path) -> T:
        """Return the value in the file. Raises ``BadInputError`` when it is missing or wrong."""
        try:
            text = self._read(path)
        except FileNotFoundError:
            raise BadInputError(f"{self.kind} file {path} does not exist: check the path") from None
        except OSError as error:
            raise BadInputError(f"{self.kind} file {path} cannot be read: {why_unread(error)}") from error
        return self.parse(text, str(path))

    def _read(self, path: Path) -> bytes:
        """Return the file's bytes, or one more than are read at most, which ``parse`` then refuses."""
        with path.open("rb") as file:
            return file.read() if self.most_values is None else file.read(MOST_BYTES + 1)


def _without_news(body: Any) -> Any:
    """Return a body without what earlier releases did not know and it does not use: it then keeps its digest."""
    for outcome in body if isinstance(body, list) else ():
        _drop_tails(outcome.get("transition") or {})
    deployment = body.get("deployment") if isinstance(body, dict) else None
    for news in ("ordinals", "also_serving", "targets", "scale"):
        if deployment is not None and not deployment.get(news):
            deployment.pop(news, None)
    for pod in (deployment or {}).get("pods") or ():
        if pod.get("deletion_cost_by", ...) is None:
            del pod["deletion_cost_by"]
    if isinstance(body, dict):
        _drop_unknown(body)
        _drop_other_groups(body)
        if body.get("past_load", ...) is None:
            del body["past_load"]
    return body


def _drop_other_groups(body: dict[str, Any]) -> None:
    """Remove the other groups of the clients of a sample or snapshot, where there are none."""
    for group in (body, body.get("rocketmq")):
        if isinstance(group, dict) and not group.get("other_groups", ...):
            del group["other_groups"]


def _drop_unknown(body: dict[str, Any]) -> None:
    """Remove what queues, new pods, capacities and clients have in later releases alone, where they do not have it."""
    states = body.get("queues")  # of a calibration record it is a number
    for holder in (*(states if isinstance(states, list) else ()), body.get("new_pods")):
        for name in ("racks", "rack", "expected_share"):
            if isinstance(holder, dict) and holder.get(name, ...) is None:
                del holder[name]
    capacity = body.get("capacity")
    if isinstance(capacity, dict) and capacity.get("measured_high", ...) is None:
        del capacity["measured_high"], capacity["measured_source"]
    for client in (
        *_mappings(body.get("setups")),
        *(member.get("tuning") for member in _mappings(body.get("members"))),
    ):
        for name in ("handled_per_s", "cached_messages"):
            if isinstance(client, dict) and client.get(name, ...) is None:
                del client[name]


def _mappings(listed: object) -> list[dict[str, Any]]:
    """Return what is a list of objects; under these names calibration records have numbers."""
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _drop_tails(transition: dict[str, Any]) -> None:
    """Remove the tails of figures that have none."""
    for figure in transition.values():
        if isinstance(figure, dict) and figure.get("tail", ...) is None:
            del figure["tail"]


def _refuse_yaml(text: bytes | str, kind: str, where: str) -> None:
    """Raise ``DocumentError`` with the document's kind where the text is one of ours in YAML, as plans are."""
    if (text.lstrip()[:1] in (b"{", b"[")) if isinstance(text, bytes) else (text.lstrip()[:1] in ("{", "[")):
        return  # broken JSON: to read it once more as YAML takes half a minute a megabyte
    from planner.documents.yaml import MOST_PLAN_TEXT, load_yaml  # noqa: PLC0415  # data files are JSON: only a wrong one needs it

    try:
        document = load_yaml(text.decode() if isinstance(text, bytes) else text, where, MOST_PLAN_TEXT)
    except (DocumentError, UnicodeDecodeError):
        return
    if isinstance(document, dict) and "kind" in document:
        check_header(document, kind, where)


MOST_SAMPLE_VALUES: Final = 2_000_000
"""Of one look at a group: a queue takes some 10, a member some 20."""
CALIBRATION: DataKind[CalibrationRecord] = DataKind(
    "CalibrationRecord", TypeAdapter(CalibrationRecord), MOST_SAMPLE_VALUES
)
OUTCOMES: DataKind[tuple[CandidateOutcome, ...]] = DataKind(
    "CandidateOutcomes", TypeAdapter(tuple[CandidateOutcome, ...])
)
METRIC_HISTORY: DataKind[MetricHistory] = DataKind("MetricHistory", TypeAdapter(MetricHistory))
SAMPLE: DataKind[GroupSample] = DataKind("GroupSample", TypeAdapter(GroupSample), MOST_SAMPLE_VALUES)
SNAPSHOT: DataKind[GroupSnapshot] = DataKind("GroupSnapshot", TypeAdapter(GroupSnapshot))
