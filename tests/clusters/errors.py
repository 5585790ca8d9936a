"""What keeps a real cluster from running.

ClusterError
├── CannotRunHereError    this machine lacks something (Java, Maven, the registry): tests skip by name
└── StartFailedError      everything was there, yet it did not come up or did not answer: tests fail
"""


class ClusterError(RuntimeError):
    """Anything the launchers report."""


class CannotRunHereError(ClusterError):
    """This machine lacks ``need``: a retry helps only after it has been provided."""

    def __init__(self, need: str, reason: str) -> None:
        super().__init__(f"{need}: {reason}")
        self.need = need
        self.reason = reason


class NoSuchArtifactError(ClusterError):
    """The registry was reached and has no such artifact; a retry does not help."""


class StartFailedError(ClusterError):
    """A process ended, stayed silent or never became ready; the message ends with the tail of its log."""
