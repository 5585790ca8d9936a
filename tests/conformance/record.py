"""One observed change of a real group: the forecast request that describes it, and what was seen."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]
PINNED = "fixed"
"""How the load program's producers choose a queue: each message is meant for one. Older records do not say so."""
TABLE = "table"
"""The key of a packed list; its value is how many objects the list has."""


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
        """Return the record as one line of JSON, keys in order, no spaces, lists of like objects as tables."""
        fields = {name: getattr(self, name) for name in ("id", "system", "request", "observed", "setup")}
        return json.dumps(fields | {"request": packed(self.request)}, separators=(",", ":"), ensure_ascii=False)


def read_record(line: str) -> Record:
    """Return the record of one line; ``ValueError`` or ``TypeError`` where it is none."""
    fields = json.loads(line)
    request = unpacked(fields["request"])
    if fields["system"] == "rocketmq" and request["change"]["kind"] == "broker_down":
        request.setdefault("producers", PINNED)
    return Record(**fields | {"request": request})


def packed(value: Any) -> Any:
    """Return JSON in which a list of objects with the same keys is a table: what they share once, the rest by column.

    Queues and members are most of a request, and all but alike.
    """
    if isinstance(value, dict):
        return {name: packed(one) for name, one in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) < 2 or not all(isinstance(one, dict) and one.keys() == value[0].keys() for one in value):
        return [packed(one) for one in value]
    columns = {name: [one[name] for one in value] for name in value[0]}
    each = {name: cells[0] for name, cells in columns.items() if all(cell == cells[0] for cell in cells)}
    return {TABLE: len(value), "each": each, "columns": {name: columns[name] for name in columns if name not in each}}


def unpacked(value: Any) -> Any:
    """Return the JSON of which ``packed`` made this."""
    if isinstance(value, list):
        return [unpacked(one) for one in value]
    if not isinstance(value, dict):
        return value
    if TABLE not in value:
        return {name: unpacked(one) for name, one in value.items()}
    rows = range(value[TABLE])
    return [value["each"] | {name: cells[row] for name, cells in value["columns"].items()} for row in rows]


def record_id(system: str, cell: Mapping[str, Any], repetition: int) -> str:
    """Return the same twelve digits for the same cell and repetition, whatever the order of the cell's fields."""
    text = json.dumps([system, cell, repetition], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
