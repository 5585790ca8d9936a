"""A folder on any file system that Spark reads: local, HDFS, S3A, ... Everything goes through Hadoop's own clients."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from planner.errors import StorageError
from planner.storage.files import flush
from planner.text.bounded import MOST_BYTES

_LOCAL: Final = "file://"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder or file at ``uri``, as Hadoop spells it: nothing in it is percent-encoded.

    Every method raises ``StorageError`` when the file system refuses or does not answer.
    """

    spark: SparkSession
    uri: str

    @classmethod
    def of(cls, spark: SparkSession, location: Path | str) -> "Folder":
        """Return the folder at a URI or a local path."""
        text = str(location)
        return cls(spark, text.rstrip("/") if _SCHEME.match(text) else f"{_LOCAL}{Path(text).absolute()}")

    @property
    def name(self) -> str:
        """The last part of the URI."""
        return self.uri.rpartition("/")[2]

    def under(self, *names: str) -> "Folder":
        """Return what lies below."""
        return Folder(self.spark, "/".join((self.uri, *names)))

    def exists(self) -> bool:
        """Return whether anything exists at the URI."""
        return bool(self._ask("exists"))

    def folders(self) -> list["Folder"]:
        """Return the folders right below, by name; none where there is nothing at the URI."""
        return [self.under(name) for name, is_folder, _ in self._children() if is_folder]

    def files(self) -> list["Folder"]:
        """Return the files right below, by name, hidden ones left out."""
        return [self.under(name) for name, is_folder, _ in self._children() if not is_folder and name[0] not in "._"]

    def size(self) -> int:
        """Return how many bytes the file holds."""
        return int(self._ask("getFileStatus").getLen())

    def read(self) -> bytes:
        """Return the content of the file; raises ``StorageError`` beyond ``MOST_BYTES``."""
        size = self.size()
        if size > MOST_BYTES:
            raise StorageError(
                f"{self.uri}: found {size} bytes, expected at most {MOST_BYTES}: the planner writes no such file; "
                "move it away, then run again"
            )
        return self.read_end(size)

    def read_end(self, count: int) -> bytes:
        """Return the last ``count`` bytes of the file."""
        stream = self._ask("open")
        try:
            stream.seek(max(0, self.size() - count))
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, count))
        except Py4JJavaError as error:
            raise self._refusal("read", error) from error
        finally:
            stream.close()

    def write(self, content: bytes) -> None:
        """Put the content there; a reader sees all of it or no file."""
        partial = Folder(self.spark, f"{self.uri}.part")
        partial._fill(partial._ask("create", True), content)
        partial.move_to(self)

    def create(self, content: bytes) -> bool:
        """Put the content there and return true, or return false where there is a file already."""
        if self.exists():
            return False
        try:
            stream = self._ask("create", False)
        except StorageError:
            if self.exists():  # somebody was faster
                return False
            raise
        self._fill(stream, content)
        return self.read() == content

    def _fill(self, stream: Any, content: bytes) -> None:
        try:
            stream.write(bytearray(content))
            stream.close()
        except Py4JJavaError as error:
            raise self._refusal("write", error) from error

    def move_to(self, target: "Folder") -> None:
        """Give the file the other name on the same file system; what was there before is replaced."""
        parent = Folder(self.spark, target.uri.rpartition("/")[0])
        parent._ask("mkdirs")
        if target.exists():
            target.delete()
        if not self._ask("rename", target._path):
            raise StorageError(f"{self.uri} cannot be moved to {target.uri}: check the permissions, then run again")

    def flush(self) -> None:
        """Have a local file and its name on disk, whatever becomes of the machine; other stores do so by themselves."""
        if not self.uri.startswith(_LOCAL):
            return
        path = Path(self.uri.removeprefix(_LOCAL))
        try:
            flush(path)
            flush(path.parent)
        except OSError as error:
            raise StorageError(
                f"{path} cannot be put on disk ({error.strerror}): check its free space, then run again"
            ) from error

    def delete(self) -> None:
        """Remove the file, or the folder with all that is in it; nothing there is fine."""
        self._ask("delete", True)

    def _children(self) -> list[tuple[str, bool, int]]:
        if not self.exists():
            return []
        children = [(item.getPath().getName(), item.isDirectory(), item.getLen()) for item in self._ask("listStatus")]
        return sorted(children)

    @property
    def _jvm(self) -> Any:
        return self.spark.sparkContext._jvm

    @property
    def _path(self) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.uri)

    def _ask(self, request: str, *arguments: Any) -> Any:
        try:
            path = self._path
            system = path.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())
            return getattr(system, request)(path, *arguments)
        except Py4JJavaError as error:
            raise self._refusal(request, error) from error

    def _refusal(self, request: str, error: Py4JJavaError) -> StorageError:
        reason = str(error.java_exception.getMessage() or error.java_exception.getClass().getName())
        return StorageError(
            f"{self.uri} cannot be reached ({request}: {reason.splitlines()[0]}): check the URI, Spark's settings for "
            "its file system, its free space and the permissions"
        )
