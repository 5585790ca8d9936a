"""One observed change of a real group: the forecast request that describes it, and what was seen."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """``request`` is a whole request of ``planner forecast``; ``observed`` as ``measure`` returns it.

    ``setup`` says how it was seen: versions, when, how busy the machine was, notes.
    """

    id: str
    system: str
    request: Document
    observed: Document
    setup: Document

    @property
    def kind(self) -> str:
        """What changed, in a few words: ``join``, ``leave crash``, ``join by broker``, ``join with backlog``."""
        change = self.request["change"]
        words = [change["kind"], change.get("how", "")]
        if any(client.get("orderly") for client in self.request.get("clients", ())):
            words.append("orderly")
        if self.request.get("settings", {}).get("clientRebalance") is False:
            words.append("by broker")
        if "consumer" in self.request.get("options", {}):
            words.append(self.request["options"]["consumer"].replace("_", " "))
        if self.setup.get("series", "").startswith("backlog"):
            words.append("with backlog")
        return " ".join(word for word in words if word)

    @property
    def versions(self) -> str:
        """Client and broker, as ``5.5.0 on 4.9.7``."""
        versions = self.request.get("versions", {})
        return f"{versions.get('client')} on {versions.get('broker')}"

    def line(self) -> str:
        """Return the record as one line of JSON, keys in order, no spaces."""
        fields = {name: getattr(self, name) for name in ("id", "system", "request", "observed", "setup")}
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def read_record(line: str) -> Record:
    """Return the record of one line; ``ValueError`` or ``TypeError`` where it is none."""
    return Record(**json.loads(line))


def record_id(system: str, cell: Mapping[str, Any], repetition: int) -> str:
    """Return the same twelve digits for the same cell and repetition, whatever the order of the cell's fields."""
    text = json.dumps([system, cell, repetition], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
