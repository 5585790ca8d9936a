"""What follows from the rest of a request: releases, the assignor's own name, warnings, and what nobody forecasts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.allocation import fields
from planner.allocation.kafka.assignment import ASSIGNORS
from planner.allocation.kafka.names import Member as AllocationMember
from planner.allocation.kafka.own import OwnAssignor, find_own
from planner.allocation.kafka.request import Request as AllocationRequest
from planner.allocation.kafka.request import missing_claims
from planner.errors import BadInputError
from planner.forecast.common.request_fields import Version, version
from planner.forecast.kafka.request.changes import Change, Member, RollingUpdate, StrategyChange, Upgrade
from planner.forecast.kafka.request.refusals import check_change, check_figures, refuse_what_has_no_model
from planner.forecast.kafka.request.request import OF_PROTOCOL, ForecastRequest, is_of_clients
from planner.forecast.kafka.request.settings import CLASSIC, CONSUMER, WITHOUT_INFLUENCE, Settings, read_settings

OLDEST_MODELLED, NEWEST_MODELLED = Version(2, 4), Version(4, 4)
_LIBRDKAFKA = re.compile(r"librdkafka(?:[ /-](.+))?")
_NEWEST_LIBRDKAFKA = Version(2, 16)


def checked(request: ForecastRequest) -> ForecastRequest:
    """Return the request that a program makes, completed; a document's is checked field by field where it is read.

    Raises ``BadInputError`` for figures that no group has, for a change that is none, and as ``completed`` does.
    """
    check_figures(request)
    check_change(request)
    return completed(request)


def completed(request: ForecastRequest, unknown: Sequence[str] = ()) -> ForecastRequest:
    """Return the request with its warnings, among them ``unknown``, what whoever asks says is not known.

    Raises ``BadInputError`` for a group that cannot be, or is not stable, and for what the simulation does not cover.
    """
    allocation = _allocation(request)
    allocation.check()
    _refuse_second_owners(request.members)
    about = (*_about_versions(request), *unknown, *missing_claims(allocation), *_about_settings(request.settings))
    complete = replace(request, warnings=about)
    refuse_what_has_no_model(complete)
    return complete


def release_of(client: object) -> tuple[Version, bool]:
    """Return the release that a text such as ``4.4.0`` or ``librdkafka 2.16.1`` names, and whether it is Java's."""
    match = _LIBRDKAFKA.fullmatch(client) if isinstance(client, str) else None
    if match is None:
        return version(client, "versions.client"), True
    return (version(match[1], "versions.client") if match[1] else _NEWEST_LIBRDKAFKA), False


def assignor_of(name: str, protocol: str, *, is_java: bool, options: Mapping[str, Any] | None = None) -> str:
    """Return the assignor's own name: the server's ``range`` is ``range-server``; a user's own stays as it is."""
    known = OF_PROTOCOL[protocol]
    if name not in ASSIGNORS and (own := find_own(name, options or {})) is not None:
        return _own_of_eager_clients(own, name, protocol, is_java=is_java)
    if protocol == CLASSIC and not is_java:
        known = tuple(assignor for assignor in known if assignor != "sticky")
    if protocol == CONSUMER and name == "range":
        return "range-server"
    if name not in known:
        client = f"protocol {protocol}" if is_java else f"protocol {protocol} of librdkafka"
        raise fields.refusal("strategy", name, f"one of {', '.join(known)} with {client}")
    return name


def _own_of_eager_clients(own: OwnAssignor, name: str, protocol: str, *, is_java: bool) -> str:
    """Return the name; refuse a user's assignor where no client could run it, or where its rounds are not known."""
    if protocol != CLASSIC or not is_java:
        client = f"protocol {protocol}" if is_java else "librdkafka"
        raise BadInputError(
            f"strategy: found {name}, an assignor of your own, with {client}, expected protocol {CLASSIC} and Java "
            f"clients: no others run one"
        )
    if own.is_cooperative:
        raise BadInputError(
            f"strategy: found {name}, an assignor of your own that is cooperative, expected an eager one: in how many "
            f"rounds it settles is not known"
        )
    return name


def settings_for(
    change: Change, given: Mapping[str, Any], protocol: str, client: Version, broker: Version, *, is_java: bool
) -> Settings:
    """Return the checked settings; members that come by the classic protocol have settings of their own."""
    asks = change.to if isinstance(change, StrategyChange | RollingUpdate) else None
    comes_by = CLASSIC if asks is not None and is_of_clients(asks) else protocol
    return read_settings(given, comes_by, client, broker, is_java=is_java)


def _allocation(request: ForecastRequest) -> AllocationRequest:
    """Return what the assignor is asked before the change."""
    members = tuple(
        AllocationMember(member.id or "", member.topics, member.instance_id, member.rack, member.owned or ())
        for member in request.members
    )
    counts = {topic: len(partitions) for topic, partitions in request.partitions.items()}
    return AllocationRequest(request.strategy, counts, members, request.racks)


def _refuse_second_owners(members: Sequence[Member]) -> None:
    owners: dict[tuple[str, int], str | None] = {}
    for member in members:
        for claim in member.owned or ():
            if owners.setdefault(claim, member.id) != member.id:
                raise BadInputError(
                    f"members: found {fields.shown(list(claim))} owned by {owners[claim]} and by {member.id}, expected "
                    f"one owner: a forecast begins with a group that is stable"
                )


def _about_versions(request: ForecastRequest) -> list[str]:
    stated = [("client", request.client)] if request.is_java else []
    stated.append(("broker", request.broker))
    if request.is_java and isinstance(request.change, Upgrade):
        stated.append(("client", request.change.to))
    return [_nearest(side, release) for side, release in stated if not _has_model(release)]


def _has_model(release: Version) -> bool:
    oldest, newest = ((bound.major, bound.minor) for bound in (OLDEST_MODELLED, NEWEST_MODELLED))
    return oldest <= (release.major, release.minor) <= newest


def _nearest(side: str, release: Version) -> str:
    nearest = "the oldest one, of 2.4," if release < OLDEST_MODELLED else "the nearest older one, of 4.4,"
    return f"{side} {release} has no model of its own; {nearest} is used instead"


def _about_settings(settings: Settings) -> list[str]:
    idle = [name for name in settings.given if name in WITHOUT_INFLUENCE]
    return [f"settings without influence on a forecast: {', '.join(idle)}"] if idle else []
