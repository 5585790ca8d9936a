"""Kubernetes documents spell fields in camelCase, the core in snake_case: pydantic translates, at this edge only."""

from collections.abc import Iterable
from dataclasses import is_dataclass

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel


def spell_in_camel_case(members: Iterable[object]) -> None:
    """Let every dataclass among them be read and written in camelCase; call it before an adapter is made of one."""
    for member in members:
        if isinstance(member, type) and is_dataclass(member):
            member.__pydantic_config__ = ConfigDict(alias_generator=to_camel)  # type: ignore[attr-defined]
