"""Every sentence in the product's code, docstrings and types left out: placeholders may be renamed, words may not."""

import ast
from collections.abc import Iterator
from pathlib import Path

CODE = ("planner", "spark_apps", "dags")


def sentences(root: Path) -> Iterator[tuple[str, str]]:
    """Yield folder and text of every string with a space in it, placeholders as ``{}``, as often as it stands there."""
    for folder in CODE:
        for path in sorted((root / folder).rglob("*.py")):
            yield from ((folder, text) for text in _texts(ast.parse(path.read_text(encoding="utf-8"))) if " " in text)


def _texts(tree: ast.AST) -> Iterator[str]:
    if isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant):
        return
    if isinstance(tree, ast.JoinedStr):
        yield _joined(tree)
    elif isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.value
    types = (getattr(tree, "annotation", None), getattr(tree, "returns", None))
    for child in ast.iter_child_nodes(tree):
        if child not in types and (not isinstance(tree, ast.JoinedStr) or isinstance(child, ast.FormattedValue)):
            yield from _texts(child)


def _joined(text: ast.JoinedStr) -> str:
    return "".join(_piece(value) for value in text.values)


def _piece(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value)
    form = value.format_spec if isinstance(value, ast.FormattedValue) else None
    return f"{{:{_joined(form)}}}" if isinstance(form, ast.JoinedStr) else "{}"
