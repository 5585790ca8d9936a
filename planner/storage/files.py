"""Write a file whole or not at all."""

import os
import re
import stat
from pathlib import Path
from uuid import uuid4

from planner.errors import BadInputError, StorageError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""What a relative path begins with that was made of a URI: ``s3://bucket`` would be the folder ``s3:``."""


def write_atomically(path: Path, content: bytes | str) -> Path:
    """Put ``content`` at ``path`` and return the path; readers see the old file or the new one, never a part.

    Written to a temporary file beside it, flushed to disk, then renamed, and the folder is flushed. A file that was
    there keeps its mode, a new one gets what the umask leaves; a link stays a link. A device or a pipe is written
    into, as nothing can be renamed over it without taking it away. Raises ``StorageError`` when that fails (disk full,
    no permission), ``BadInputError`` for a folder; the old file, if there was one, is then untouched and no temporary
    file is left.
    """
    data = content.encode() if isinstance(content, str) else content
    if _SCHEME.fullmatch(path.parts[0] if path.parts else ""):
        raise BadInputError(
            f"{path} was made of a URI, and only files of this machine can be written: mount the store, give its path"
        )
    try:
        if path.is_dir():
            raise BadInputError(
                f"{path} is a folder, expected a file to write: add a name, like {path / 'answer.json'}"
            )
        if _is_device(path):
            path.write_bytes(data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(
            f"{path} cannot be written ({reason}): make room or check the permissions, then run again"
        ) from error
    return path


def remove_file(path: Path) -> None:
    """Remove a file; none there is fine. Raises ``StorageError`` where it stays."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"{path} cannot be removed ({reason}): check the disk and the permissions") from error


def _is_device(path: Path) -> bool:
    """True for what is there and neither a file nor a folder: a device, a pipe, a socket."""
    return path.exists() and not path.is_file()


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    flush(path.parent)


def flush(path: Path) -> None:
    """Have what was written into a file on disk, or the names in a folder: a machine that crashes loses them else.

    Raises ``OSError``.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
