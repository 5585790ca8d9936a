"""Machine rooms by name: what a policy states of brokers and clients, some of which are yet to come."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any


def room_of(rooms: Mapping[str, str], name: str) -> str | None:
    """Return the room of ``name``: its own, else that of the longest name with ``*`` that fits.

    ``10.1.2.3@c`` is in room b of ``{"10.*": "a", "10.1.*": "b"}``.
    """
    if own := rooms.get(name):
        return own
    fitting = [key for key in rooms if "*" in key and fnmatchcase(name, key)]
    return rooms[max(fitting, key=len)] if fitting else None


def with_rooms(options: Mapping[str, Any], clients: Iterable[str], room: str | None) -> dict[str, Any]:
    """Return a strategy's options with ``room`` for each client that they do not name: it came since, as a new pod's.

    The same options where they have no rooms, or no room is stated.
    """
    table = options.get("machine_rooms")
    if room is None or not isinstance(table, Mapping):
        return dict(options)
    known = table.get("clients", {})
    since = {client: room for client in clients if room_of(known, client) is None}
    return {**options, "machine_rooms": {**table, "clients": {**known, **since}}}


def with_new_rooms(options: Mapping[str, Any], rooms: Mapping[str, str]) -> dict[str, Any]:
    """Return the strategy's options with the machine rooms of more clients."""
    table = options.get("machine_rooms")
    if not rooms or not isinstance(table, Mapping):
        return dict(options)
    return {**options, "machine_rooms": {**table, "clients": {**table.get("clients", {}), **rooms}}}
