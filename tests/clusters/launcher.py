"""``Launcher``: what all clusters have in common that tests start."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Launcher(ABC):
    """Something that runs until it is stopped. A context manager: leaving it stops everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def stop(self) -> None:
        """Stop all of it and delete its files."""

    @abstractmethod
    def _start_all(self) -> None:
        """Start all of it and wait until it serves."""

    def _started(self) -> Self:
        """Return itself running; what it has begun is stopped again when it cannot start."""
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise
        return self
