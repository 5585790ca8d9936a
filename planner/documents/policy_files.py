"""Which files a policy of the cluster may name: those of its own namespace, below a folder of the administrator's.

Whoever may write a policy would otherwise have any file of the host read and sent to servers of his own choice, other
tenants' broker accounts among them.
"""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import DocumentError

FILES_VARIABLE = "PLANNER_POLICY_FILES"
"""The folder that has a folder for each namespace."""


def check_files(policy: ConsumerScalingPolicy, root: Path | None, where: str) -> None:
    """Raise ``DocumentError`` for a file that lies, links resolved, outside the namespace's folder below ``root``.

    Without a ``root`` no policy may name a file.
    """
    for field, path in _files(policy.spec, "spec"):
        if root is None:
            raise DocumentError(
                f"{where}: field {field} names a file, and no folder was named whose files policies of the cluster may "
                f"have read: set {FILES_VARIABLE} to a folder that has a folder for each namespace"
            )
        folder = root.resolve() / policy.metadata.namespace
        if not path.is_absolute() or not path.resolve().is_relative_to(folder.resolve()):
            raise DocumentError(
                f"{where}: field {field} names a file outside {folder}: policies of namespace "
                f"{policy.metadata.namespace} may name the files below that folder only, by their whole path"
            )


def _files(part: BaseModel, field: str) -> Iterator[tuple[str, Path]]:
    """Yield every path in the model with the field that holds it, however deep: a new field is checked, too."""
    for name, info in type(part).model_fields.items():
        value = getattr(part, name)
        inner = f"{field}.{info.alias or name}"
        if isinstance(value, Path):
            yield inner, value
        elif isinstance(value, BaseModel):
            yield from _files(value, inner)
