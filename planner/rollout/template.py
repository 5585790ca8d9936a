"""``TemplateChange``: what becomes different in a Deployment's pod template, and nothing else does."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """A name with its new value: of an environment variable, an annotation or a node label."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class ContainerChange:
    """What becomes different in one container: its image, its arguments (all of them), variables set and removed."""

    container: str
    image: str | None = None
    arguments: tuple[str, ...] | None = None
    env: tuple[Setting, ...] = ()
    removed_env: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [*(setting.name for setting in self.env), *self.removed_env]
        if len(set(names)) < len(names):
            raise ValueError(f"each variable of container {self.container} once, not {', '.join(names)}")
        if self.image is None and self.arguments is None and not names:
            raise ValueError(f"a change of container {self.container}, not none")

    def __str__(self) -> str:
        return f"{', '.join(self._changes())} in container {self.container}"

    def _changes(self) -> Iterator[str]:
        if self.image is not None:
            yield f"image {self.image}"
        if self.arguments is not None:
            yield f"arguments {' '.join(self.arguments) or 'none'}"
        yield from map(str, self.env)
        yield from (f"no {name}" for name in self.removed_env)


@dataclass(frozen=True, slots=True)
class TemplateChange:
    """A change of the pod template: containers, annotations, and the node labels that its pods want.

    An annotation alone restarts all pods, as ``kubectl rollout restart`` does, so that they read a changed ConfigMap.
    """

    containers: tuple[ContainerChange, ...] = ()
    annotations: tuple[Setting, ...] = ()
    node_labels: tuple[Setting, ...] = ()

    def __post_init__(self) -> None:
        if not (self.containers or self.annotations or self.node_labels):
            raise ValueError("a template change to change something")
        for names in (
            [change.container for change in self.containers],
            [setting.name for setting in self.annotations],
            [setting.name for setting in self.node_labels],
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"a template change to name each thing once, not {', '.join(names)}")

    def __str__(self) -> str:
        changes = [
            *map(str, self.containers),
            *(f"annotation {setting}" for setting in self.annotations),
            *(f"nodes with {setting}" for setting in self.node_labels),
        ]
        return "; ".join(changes)
