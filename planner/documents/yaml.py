"""YAML in and out, as the Kubernetes tools read it (YAML 1.1), strict about duplicate keys."""

from collections.abc import Hashable
from typing import Any, Final

import yaml

from planner.errors import DocumentError
from planner.text.printable import printable

MOST_TEXT: Final = 262_144
"""Characters of a policy or another document that people write: read within seconds, whatever stands in it."""
MOST_PLAN_TEXT: Final = 1_048_576
"""Characters of a plan or decision, which names all consumers and their queues."""
MOST_BRACKETS: Final = 50_000
"""Lists and objects within brackets: each costs the parser 60 µs, ten times as much as what stands on a line."""
MOST_DEPTH: Final = 32
"""Levels of lists and mappings; the parser looks at all open ones for each word; ours have 10, a Deployment 16."""

_TEXT_TAG: Final = "tag:yaml.org,2002:str"


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that occurs twice, as the parser would silently take the last one, and what grows when read.

    An alias stands for as much as its anchor, and aliases of aliases for any amount: 500 bytes can hang a reader.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "tag", None) not in (None, _TEXT_TAG):
            # PyYAML fails on their wrong content with any error: !!int '', !!bool x, !!timestamp 1.
            raise yaml.composer.ComposerError(
                None, None, f"found the tag {event.tag}, which no document of ours needs", event.start_mark
            )
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "found an alias (*), which no document of ours needs", mark)
        self._depth = getattr(self, "_depth", 0) + 1
        if self._depth > MOST_DEPTH:
            raise yaml.composer.ComposerError(
                None,
                None,
                f"more than {MOST_DEPTH} levels",
                self.peek_event().start_mark,  # type: ignore[no-untyped-call]
            )
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        known_keys: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                # JSON has no others, and texts beside others cannot be sorted for a digest.
                kind = "nothing" if key is None else f"a {type(key).__name__}"
                raise yaml.constructor.ConstructorError(
                    None, None, f"found {kind} as a key, expected a text: put it in quotes", key_node.start_mark
                )
            if key in known_keys:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} occurs twice", key_node.start_mark)
            known_keys.add(key)
        return super().construct_mapping(node, deep=deep)


# Times stay text here; pydantic reads them with their zone.
_StrictLoader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_yaml(text: str, where: str, most: int = MOST_TEXT) -> object:
    """Return the one document in ``text`` of at most so many characters.

    Raises ``DocumentError`` with the line for broken syntax, a duplicate key, an alias, several documents or none, and
    for what is larger or deeper than any document of ours.
    """
    check_length(text, where, most)
    try:
        documents = list(yaml.load_all(text, Loader=_StrictLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise DocumentError(f"{where}{line}: not valid YAML: {error.problem or error}: correct it") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: not valid YAML: {error}: correct it") from error
    if len(documents) != 1:
        raise DocumentError(f"{where}: found {len(documents)} YAML documents, expected one: one file, one document")
    return documents[0]


def check_length(text: str, where: str, most: int = MOST_TEXT) -> None:
    """Raise ``DocumentError`` for a text of more than so many characters, or ``MOST_BRACKETS``."""
    if (brackets := text.count("[") + text.count("{")) > MOST_BRACKETS:
        raise DocumentError(f"{where}: found {brackets} opening brackets, expected at most {MOST_BRACKETS}: split it")
    if len(text) > most:
        raise DocumentError(f"{where}: found {len(text)} characters, expected at most {most}: split it")


class _VisibleDumper(yaml.SafeDumper):
    """Writes what no reader would see (marks of reading direction, controls, lone surrogates) as escapes in quotes."""

    def analyze_scalar(self, scalar: str) -> yaml.emitter.ScalarAnalysis:
        analysis = super().analyze_scalar(scalar)
        if printable(scalar) != scalar:
            analysis.allow_flow_plain = analysis.allow_block_plain = False
            analysis.allow_single_quoted = analysis.allow_block = False
        return analysis

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        kept, self.allow_unicode = self.allow_unicode, printable(text) == text
        super().write_double_quoted(text, split)
        self.allow_unicode = kept


def dump_yaml(value: object) -> str:
    """Return ``value`` as YAML with its keys in the given order; nothing in it steers a terminal."""
    return yaml.dump(value, Dumper=_VisibleDumper, sort_keys=False, allow_unicode=True, width=100)
