"""``spec.timing`` of a policy: how a Kafka group's clients are set up, as no broker knows it."""

from typing import Annotated

from pydantic import Field, StrictBool

from planner.documents.forecast.kafka import check_clients
from planner.documents.source import Name, Options, SpecModel
from planner.errors import BadInputError, DocumentError
from planner.model.snapshot import KafkaTiming
from planner.model.systems import system_named

VISIBLE = frozenset(
    {"bootstrap.servers", "client.id", "group.id", "group.instance.id", "group.protocol", "group.remote.assignor"}
    | {"partition.assignment.strategy"}
)
"""Settings of clients that their coordinator shows, or that the policy's source has."""

Milliseconds = Annotated[float, Field(gt=0, le=3_600_000, allow_inf_nan=False)]


class TimingSpec(SpecModel):
    """Versions, settings by the clients' own names, and how long one record takes in the poll loop.

    ``clientVersion`` is one of the Java client, or ``librdkafka 2.12.1``. Without ``recordMilliseconds`` the capacity
    tells it. ``commitsOnRevoke``: the application commits in ``onPartitionsRevoked``.
    """

    client_version: Name
    broker_version: Name
    record_milliseconds: Milliseconds | None = None
    commits_on_revoke: StrictBool = False
    settings: Options = Field(default_factory=dict)

    @property
    def timing(self) -> KafkaTiming:
        """The same as the snapshot keeps it."""
        return KafkaTiming(
            client=self.client_version,
            broker=self.broker_version,
            record_s=None if self.record_milliseconds is None else self.record_milliseconds / 1000,
            commits_on_revoke=self.commits_on_revoke,
            settings=tuple(sorted(self.settings.items())),
        )


def check_timing(spec: TimingSpec | None, system: str, where: str) -> None:
    """Raise ``DocumentError`` for versions and settings that no client has, or for a system that reports them."""
    if spec is None:
        return
    if system_named(system).reports_setup:
        raise DocumentError(f"{where}: field spec.timing is for Kafka, whose brokers do not know it; remove it here")
    if visible := sorted(VISIBLE.intersection(spec.settings)):
        raise DocumentError(
            f"{where}: field spec.timing.settings: found {', '.join(visible)}, which the planner learns from brokers "
            "and from spec.source; remove it here"
        )
    try:
        check_clients({"client": spec.client_version, "broker": spec.broker_version}, spec.settings)
    except BadInputError as error:
        raise DocumentError(f"{where}: field spec.timing: {error}") from error
