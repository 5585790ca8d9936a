"""Write a file whole or not at all."""

import os
import tempfile
from pathlib import Path

from planner.errors import BadInputError, StorageError


def write_atomically(path: Path, content: bytes | str) -> Path:
    """Put ``content`` at ``path`` and return the path; readers see the old file or the new one, never a part.

    Written to a temporary file beside it, flushed to disk, then renamed. Raises ``StorageError`` when that fails
    (disk full, no permission), ``BadInputError`` for a folder; the old file, if there was one, is then untouched and no
    temporary file is left.
    """
    if path.is_dir():
        raise BadInputError(f"{path} is a folder, expected a file to write: add a name, like {path / 'answer.json'}")
    data = content.encode() if isinstance(content, str) else content
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise StorageError(
            f"{path} cannot be written ({reason}): make room or check the permissions, then run again"
        ) from error
    return path
