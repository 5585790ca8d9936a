"""YAML in and out, as the Kubernetes tools read it (YAML 1.1), strict about duplicate keys."""

from collections.abc import Hashable
from typing import Any

import yaml

from planner.errors import DocumentError


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that occurs twice: the parser would silently take the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} occurs twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


# Times stay text here; pydantic reads them with their zone.
_StrictLoader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_yaml(text: str, where: str) -> object:
    """Return the one document in ``text``.

    Raises ``DocumentError`` with the line for broken syntax, a duplicate key, several documents or none.
    """
    try:
        documents = list(yaml.load_all(text, Loader=_StrictLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise DocumentError(f"{where}{line}: not valid YAML: {error.problem or error}: correct it") from error
    except yaml.YAMLError as error:
        raise DocumentError(f"{where}: not valid YAML: {error}: correct it") from error
    if len(documents) != 1:
        raise DocumentError(f"{where}: found {len(documents)} YAML documents, expected one: one file, one document")
    return documents[0]


def dump_yaml(value: object) -> str:
    """Return ``value`` as YAML with its keys in the given order."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)
