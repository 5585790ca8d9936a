"""What can go wrong between us and a Prometheus server.

::

    BadInputError              exit 2
    ├── QueryError             the server read the query and will not answer it: too costly, too old, wrong
    ├── RefusedError           it does not let this account in (401, 403)
    └── AmbiguousSeriesError   one figure comes from several places, and no matcher states which of them is meant
    OutOfReachError            exit 3: no server listens, no answer in time, 5xx
    └── AnswerError            what came is not what a Prometheus server sends, or only a part of it
        └── TooLargeError      more came than is read (``planner.text.bounded``)

Messages name the URL (never an account), the query and what came.
"""

from planner.errors import BadInputError, OutOfReachError


class QueryError(BadInputError):
    """The server will not answer this query (400, 404, 422)."""


class RefusedError(BadInputError):
    """The server does not let this account read (401, 403, or a page for logging in)."""


class AmbiguousSeriesError(BadInputError):
    """Several series give the same figure at the same time: two clusters, or two exporters for one."""


class AnswerError(OutOfReachError):
    """The answer is no Prometheus answer (HTML, broken JSON, wrong shape), is too large, or is marked as partial."""


class TooLargeError(AnswerError):
    """The answer is larger than any that is read."""
