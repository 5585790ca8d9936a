"""How the command line says what becomes different in a pod template: options for the usual, a file for the rest."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.errors import BadInputError, DocumentError, why_unread

if TYPE_CHECKING:
    from planner.model.snapshot import GroupSnapshot

Json = dict[str, Any]

ContainerName = Annotated[
    str | None, typer.Option(help="Container that changes; default: the Deployment's only one.", show_default=False)
]
Image = Annotated[str | None, typer.Option(help="New image of the container.", show_default=False)]
Environment = Annotated[
    list[str] | None, typer.Option("--env", help="NAME=VALUE of the container; once for each.", show_default=False)
]
NodeLabels = Annotated[
    list[str] | None,
    typer.Option("--node-label", help="NAME=VALUE that nodes must have; once for each.", show_default=False),
]
ChangeFile = Annotated[
    Path | None,
    typer.Option(
        "--change",
        help="YAML file instead: containers (container, image, arguments, env, removedEnv), annotations, nodeLabels.",
        show_default=False,
    ),
]


def change_of(
    taken: "GroupSnapshot",
    container: str | None,
    image: str | None,
    env: Sequence[str] | None,
    node_labels: Sequence[str] | None,
    file: Path | None,
) -> Json | None:
    """Return the change of the template as a document, ``None`` where no option asks for one.

    Raises ``BadInputError`` for options beside a file, or a container that is ambiguous.
    """
    given = bool(image or env)
    if file is not None:
        if given or node_labels:
            raise BadInputError(f"--change {file} says all that changes: leave --image, --env and --node-label out")
        return _read(file)
    change: Json = {}
    if given:
        named: Json = {"container": container or the_container(taken), "env": list(_settings("--env", env))}
        change["containers"] = [named if image is None else {**named, "image": image}]
    if node_labels:
        change["nodeLabels"] = list(_settings("--node-label", node_labels))
    return change or None


def needed(change: Json | None) -> Json:
    """Return the change. Raises ``BadInputError`` where no option asks for one."""
    if change is None:
        raise BadInputError("nothing would become different: give --image, --env, --node-label or --change FILE")
    return change


def the_container(taken: "GroupSnapshot") -> str:
    """Return the Deployment's only container. Raises ``BadInputError`` where there are several, or none was read."""
    names = [container.name for container in taken.deployment.containers] if taken.deployment else []
    if len(names) != 1:
        reason = f"it has {', '.join(names) or 'none'}" if taken.deployment else "its Deployment was not read"
        raise BadInputError(f"which container of group {taken.group} changes is unknown, as {reason}: --container")
    return names[0]


def _settings(option: str, texts: Sequence[str] | None) -> Iterator[Json]:
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise BadInputError(f"option {option}: found {text!r}, expected NAME=VALUE")
        yield {"name": name, "value": value}


def _read(file: Path) -> Json:
    from planner.documents.yaml import load_yaml

    try:
        document = load_yaml(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"file {file} of --change cannot be read: {why_unread(error)}") from error
    if not isinstance(document, dict):
        raise DocumentError(f"{file}: found no mapping, expected containers, annotations or nodeLabels")
    return document
