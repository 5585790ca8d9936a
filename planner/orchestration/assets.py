"""What the scheduled DAG hands to the approval DAG and to others: events of assets, for each plan and each run."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import Asset, AssetAlias

from planner.errors import BadInputError

if TYPE_CHECKING:
    from planner.approval.offers import Offer

PLANS: Final = Asset("consumer_planner_plans")
"""Plans that are offered; each event's ``extra`` is an ``Offer``."""
OFFERED: Final = Asset("consumer_planner_offered")
"""Runs that offer plans; each event's ``extra`` has all of a run's offers as ``plans``. It starts the approval DAG.

Airflow 3.3.2 starts a DAG with the events up to the moment at which the first of them queued it
(``SchedulerJobRunner._create_dag_runs_asset_triggered``): of several events of one task the others would wait for the
next one. So it goes by one event a run. One that meets that of the run before, not yet taken, waits in the same way:
the next run offers its plans again (``planner.approval.offers.keep_asked``).
"""
OFFERS: Final = AssetAlias("consumer_planner_offers")
"""By which one task makes the events: of an asset as its outlet it would make one for a run without plans, too."""

SOURCE: Final = ("consumer_planner", "offer")
"""DAG and task that make the events; what comes from elsewhere, as Airflow's API lets it, is refused."""


def add_events(outlet_events: Any, plans: "Sequence[Offer]") -> None:
    """Make an event for each plan, and one for all of them; none where there is no plan."""
    for plan in plans:
        outlet_events[OFFERS].add(PLANS, extra=dict(plan))
    if plans:
        outlet_events[OFFERS].add(OFFERED, extra={"plans": [dict(plan) for plan in plans]})


def offers_of(events: Iterable[Any]) -> "Iterator[Offer]":
    """Yield the offers of events of ``OFFERED``, of each policy the newest one.

    Raises ``BadInputError`` for an event that our task did not make: a plan file goes into a cluster by it.
    """
    from planner.approval.offers import read_offer  # noqa: PLC0415  DAG files that import us stay quick

    newest: dict[str, Offer] = {}
    for event in sorted(events, key=lambda event: event.timestamp):
        if (event.source_dag_id, event.source_task_id) != SOURCE:
            made_by = event.source_dag_id or "Airflow's API"
            raise BadInputError(
                f"an event of asset {OFFERED.name} was made by {made_by}, expected task {SOURCE[1]} of DAG "
                f"{SOURCE[0]}: nothing is asked or applied by it. See who may make events of assets"
            )
        offers = map(read_offer, event.extra["plans"])
        newest |= {offer["policy"]: offer for offer in offers}
    yield from newest.values()
