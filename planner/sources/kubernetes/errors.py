"""What can go wrong between us and an API server.

::

    OutOfReachError                  exit 3   no connection, no answer in time, or the server is overloaded
    ├── NotLetInError                         401: no token or certificate, or one that is no longer good
    ├── ForbiddenError                        403: known, but without this right
    └── AnswerError                           what came is not what an API server sends
    BadInputError                    exit 2   kubeconfig or context is not there or broken, a name is impossible
    UnknownNameError                 exit 2   no such Deployment

Each names the server and the request. ``read_workload`` lets through what concerns the Deployment itself; of the parts
around it, it marks those that are forbidden.
"""

from typing import Final

from planner.errors import OutOfReachError

_MOST_QUOTED: Final = 300
"""Characters of a server's own words that one error carries."""


class NotLetInError(OutOfReachError):
    """The API server does not know us; a retry helps once the token or certificate was renewed."""


class ForbiddenError(OutOfReachError):
    """A right is missing; a retry helps once it has been granted."""

    can_retry = False


class AnswerError(OutOfReachError):
    """The answer is not Kubernetes' own: another service listens there, or the server failed inside."""


def excerpt(text: str) -> str:
    """Return a server's or library's own words as one error quotes them: on one line, and not too long."""
    shown = " ".join(text.split()).rstrip(".:")
    return shown if len(shown) <= _MOST_QUOTED else shown[:_MOST_QUOTED] + "…"
