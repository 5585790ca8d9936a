"""Data files: snapshots, samples and outcomes as versioned JSON around the model's own types."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from planner.documents.format import (
    API_VERSION,
    canonical,
    check_digest,
    check_header,
    digest_of,
    document_error,
)
from planner.errors import BadInputError, DocumentError
from planner.model.points import MetricHistory
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import CandidateOutcome
from planner.verification.calibration import CalibrationRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DataKind(Generic[T]):
    """One kind of data file: ``{"apiVersion", "kind", "digest", "body"}``, the digest over the body."""

    kind: str
    adapter: TypeAdapter[T]

    def body(self, value: T) -> Any:
        """Return ``value`` as plain JSON types."""
        return self.adapter.dump_python(value, mode="json")

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
            document = check_header(json.loads(text), self.kind, where)
        except (ValueError, RecursionError) as error:
            _refuse_yaml(text, self.kind, where)
            raise DocumentError(
                f"{where}: not valid JSON ({error}): it is cut off or was edited, make it again"
            ) from error
        body = document.get("body")
        check_digest(body, document.get("digest"), where)
        return self.validate(body, where)

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
            text = path.read_bytes()
        except FileNotFoundError:
            raise BadInputError(f"{self.kind} file {path} does not exist: check the path") from None
        except OSError as error:
            raise BadInputError(f"{self.kind} file {path} cannot be read: {error}") from error
        return self.parse(text, str(path))


def _refuse_yaml(text: bytes | str, kind: str, where: str) -> None:
    """Raise ``DocumentError`` with the document's kind where the text is one of ours in YAML, as plans are."""
    if (text.lstrip()[:1] in (b"{", b"[")) if isinstance(text, bytes) else (text.lstrip()[:1] in ("{", "[")):
        return  # broken JSON: to read it once more as YAML takes half a minute a megabyte
    from planner.documents.yaml import load_yaml  # noqa: PLC0415  # data files are JSON: only a wrong one needs it

    try:
        document = load_yaml(text.decode() if isinstance(text, bytes) else text, where)
    except (DocumentError, UnicodeDecodeError):
        return
    if isinstance(document, dict) and "kind" in document:
        check_header(document, kind, where)


CALIBRATION: DataKind[CalibrationRecord] = DataKind("CalibrationRecord", TypeAdapter(CalibrationRecord))
OUTCOMES: DataKind[tuple[CandidateOutcome, ...]] = DataKind(
    "CandidateOutcomes", TypeAdapter(tuple[CandidateOutcome, ...])
)
METRIC_HISTORY: DataKind[MetricHistory] = DataKind("MetricHistory", TypeAdapter(MetricHistory))
SAMPLE: DataKind[GroupSample] = DataKind("GroupSample", TypeAdapter(GroupSample))
SNAPSHOT: DataKind[GroupSnapshot] = DataKind("GroupSnapshot", TypeAdapter(GroupSnapshot))
